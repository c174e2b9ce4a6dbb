# oracle_airbench.py - airbench94's network, which torchvision lacks
#
# Table 1 of K. Jordan, arXiv:2404.00498; its factor of 1/9 is in the weights of
# the head.
# SPDX-License-Identifier: LGPL-2.1-or-later
from collections import OrderedDict

from torch import nn


def block(i, o):
    return nn.Sequential(OrderedDict(
        conv1=nn.Conv2d(i, o, 3, padding="same", bias=False),
        pool=nn.MaxPool2d(2),
        norm1=nn.BatchNorm2d(o, momentum=0.4),
        act1=nn.GELU(),
        conv2=nn.Conv2d(o, o, 3, padding="same", bias=False),
        norm2=nn.BatchNorm2d(o, momentum=0.4),
        act2=nn.GELU()))


def airbench(classes=1000, width=64):
    """Larger images than 32x32 leave several pixels, of which the mean is taken."""
    wide = 4 * width
    return nn.Sequential(OrderedDict(
        whiten=nn.Conv2d(3, 24, 2, bias=False),
        act=nn.GELU(),
        block1=block(24, width),
        block2=block(width, wide),
        block3=block(wide, wide),
        pool=nn.MaxPool2d(3),
        mean=nn.AdaptiveAvgPool2d(1),
        flat=nn.Flatten(),
        head=nn.Linear(wide, classes, bias=False)))
