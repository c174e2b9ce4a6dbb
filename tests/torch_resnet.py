# torch_resnet.py - ResNets out of PyTorch alone, named as torchvision's are
# SPDX-License-Identifier: LGPL-2.1-or-later
import torch
from torch import nn

STAGES = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3)}


class Block(nn.Module):
    """Two convolutions, or from 50 layers on three around a narrow one."""

    def __init__(self, cin, width, stride, deep):
        super().__init__()
        cout = width * (4 if deep else 1)
        # Input and output channels, size, stride.
        shapes = ([(cin, width, 1, 1), (width, width, 3, stride),
                   (width, cout, 1, 1)] if deep else
                  [(cin, width, 3, stride), (width, width, 3, 1)])
        self.count = len(shapes)
        for i, (a, b, k, s) in enumerate(shapes, 1):
            setattr(self, "conv%d" % i,
                    nn.Conv2d(a, b, k, s, k // 2, bias=False))
            setattr(self, "bn%d" % i, nn.BatchNorm2d(b))
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or cin != cout:
            self.downsample = nn.Sequential(
                nn.Conv2d(cin, cout, 1, stride, bias=False),
                nn.BatchNorm2d(cout))

    def forward(self, x):
        y = x
        for i in range(1, self.count + 1):
            y = getattr(self, "bn%d" % i)(getattr(self, "conv%d" % i)(y))
            if i < self.count:
                y = self.relu(y)
        return self.relu(y + (self.downsample(x) if self.downsample else x))


class ResNet(nn.Module):
    def __init__(self, depth, classes=1000, width=64, small_stem=False):
        super().__init__()
        deep = depth >= 50
        self.conv1 = (nn.Conv2d(3, width, 3, 1, 1, bias=False) if small_stem
                      else nn.Conv2d(3, width, 7, 2, 3, bias=False))
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.Identity() if small_stem else nn.MaxPool2d(3, 2, 1)
        cin = width
        for s, blocks in enumerate(STAGES[depth]):
            stage = []
            for b in range(blocks):
                stage.append(Block(cin, width << s, 2 if s and not b else 1,
                                   deep))
                cin = (width << s) * (4 if deep else 1)
            setattr(self, "layer%d" % (s + 1), nn.Sequential(*stage))
        self.fc = nn.Linear(cin, classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out")

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for s in range(1, 5):
            x = getattr(self, "layer%d" % s)(x)
        return self.fc(torch.flatten(x.mean((2, 3)), 1))
