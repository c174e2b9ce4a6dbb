# oracle_inception_v2.py - Inception with batch norm, which torchvision lacks
#
# Figure 5 of Ioffe and Szegedy, "Batch normalization", 2015, row by row.
# SPDX-License-Identifier: LGPL-2.1-or-later
import torch
from torch import nn

# name: channels in; 1x1; 3x3 reduced, 3x3; double 3x3 reduced, double 3x3;
# kind of pool, its projection.  A row without 1x1 halves the image.
ROWS = {
    "3a": (192, 64, 64, 64, 64, 96, "avg", 32),
    "3b": (256, 64, 64, 96, 64, 96, "avg", 64),
    "3c": (320, 0, 128, 160, 64, 96, "max", 0),
    "4a": (576, 224, 64, 96, 96, 128, "avg", 128),
    "4b": (576, 192, 96, 128, 96, 128, "avg", 128),
    "4c": (576, 160, 128, 160, 128, 160, "avg", 96),
    "4d": (576, 96, 128, 192, 160, 192, "avg", 96),
    "4e": (576, 0, 128, 192, 192, 256, "max", 0),
    "5a": (1024, 352, 192, 320, 160, 224, "avg", 128),
    "5b": (1024, 352, 192, 320, 192, 224, "max", 128),
}


class Unit(nn.Module):
    def __init__(self, i, o, k=1, stride=1):
        super().__init__()
        self.conv = nn.Conv2d(i, o, k, stride, k // 2, bias=False)
        self.bn = nn.BatchNorm2d(o, eps=1e-3)
        self.relu = nn.ReLU()

    def forward(self, x):
        return self.relu(self.bn(self.conv(x)))


class Stem(Unit):
    """7x7 on each channel, eight of each, then 1x1."""

    def __init__(self, i, o):
        super().__init__(8 * i, o)
        self.depthwise = nn.Conv2d(i, 8 * i, 7, 2, 3, groups=i, bias=False)

    def forward(self, x):
        return super().forward(self.depthwise(x))


class Module(nn.Module):
    def __init__(self, i, one, r3, three, r33, double, kind, projected):
        super().__init__()
        stride = 1 if one else 2
        pool = nn.AvgPool2d if kind == "avg" else nn.MaxPool2d
        self.branch1 = Unit(i, one) if one else None
        self.branch2 = nn.Sequential(Unit(i, r3), Unit(r3, three, 3, stride))
        self.branch3 = nn.Sequential(Unit(i, r33), Unit(r33, double, 3),
                                     Unit(double, double, 3, stride))
        self.branch4 = nn.Sequential(pool(3, stride, 1))
        if projected:
            self.branch4.append(Unit(i, projected))

    def forward(self, x):
        branches = [self.branch1, self.branch2, self.branch3, self.branch4]
        return torch.cat([b(x) for b in branches if b is not None], 1)


class InceptionV2(nn.Sequential):
    def __init__(self, num_classes=1000):
        super().__init__()
        self.conv1 = Stem(3, 64)
        self.pool1 = nn.MaxPool2d(3, 2, 1)
        self.conv2 = Unit(64, 64)
        self.conv3 = Unit(64, 192, 3)
        self.pool2 = nn.MaxPool2d(3, 2, 1)
        for name, row in ROWS.items():
            self.add_module("inception" + name, Module(*row))
        self.mean = nn.AdaptiveAvgPool2d(1)
        self.flatten = nn.Flatten()
        self.fc = nn.Linear(1024, num_classes)
