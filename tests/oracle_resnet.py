# oracle_resnet.py FILE WIDTH - torchvision's ResNets
#
# Writes FILE, and FILE.weights with a ResNet-18 as a state_dict has it.
# Everything is computed in f64 from parameters and inputs that are f32 numbers;
# what f32 makes of the same is written as its distance, |f32 - f64| / |f64| or
# the difference of losses.
#
#   eval/x0 y0 x1 y1           logits of two sizes of image
#   train/x label loss         8 samples and their loss
#   train/g/NAME e/NAME        gradient, its distance in f32
#   train/b/NAME               and in bf16 (autocast)
#   deep/...                   the same for ResNet-50 and 4 samples; p/NAME too
#   slim18/... slim50/...      the same for 16 and 8 channels in place of 64,
#                              with no value close to a kink
#   trace/p/NAME x label       a ResNet-18 of WIDTH, 40 samples for 20 steps
#   trace/loss                 loss of each step
#   trace/off                  what it becomes off by from weights off by 1e-6
#   trace/r/NAME e/NAME        running statistics after them, their distance
# SPDX-License-Identifier: LGPL-2.1-or-later
import copy
import sys

import torch
import torchvision
from torch import nn

sys.dont_write_bytecode = True
import oracle_file  # noqa: E402

STEPS, BATCH, CLASSES = 20, 8, 1000
MARGIN = 1.5e-5  # what f32 is off by in the last layers, times 3
smooth_loss = nn.CrossEntropyLoss(label_smoothing=0.1)


def distance(got, want):
    norm = want.norm()
    off = (got.double() - want).norm()
    return (off / norm if norm > 0 else off).reshape(1)


class Slim(torchvision.models.ResNet):
    """`width` channels in place of 64, twice that for 128, ..."""

    def __init__(self, block, layers, width):
        self.width = width
        super().__init__(block, layers, num_classes=CLASSES)
        self.conv1 = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.fc = nn.Linear(8 * width * block.expansion, CLASSES)

    def _make_layer(self, block, planes, blocks, stride=1, dilate=False):
        if planes == 64:
            self.inplanes = self.width
        return super()._make_layer(block, planes * self.width // 64, blocks,
                                   stride, dilate)


def resnet(depth, width=64):
    """Random weights, and norms that are not the trivial ones."""
    kinds = torchvision.models.resnet
    m = (Slim(kinds.BasicBlock, [2, 2, 2, 2], width) if depth == 18 else
         Slim(kinds.Bottleneck, [3, 4, 6, 3], width))
    with torch.no_grad():
        m.train()
        for _ in range(2):
            m(torch.randn(4, 3, 64, 64))
        for b in m.modules():
            if isinstance(b, nn.BatchNorm2d):
                b.weight.mul_(torch.empty_like(b.weight).uniform_(0.8, 1.2))
                b.bias.normal_(std=0.1)
                b.running_mean.mul_(1.1)
                b.running_var.mul_(0.9)
    return m


def samples(n, side):
    return torch.randn(n, 3, side, side), torch.randint(CLASSES, (n,))


# ---- forward, gradients -----------------------------------------------------


def evaluation(m, out):
    m = copy.deepcopy(m).double().eval()
    for i, size in enumerate([(224, 224), (97, 130)]):
        x = torch.randn(2, 3, *size)
        with torch.no_grad():
            out["eval/y%d" % i] = m(x.double())
        out["eval/x%d" % i] = oracle_file.nhwc(x)


def gradients(m, x, label, dtype, bf16=False):
    m = copy.deepcopy(m).to(dtype).train()
    with torch.autocast("cpu", torch.bfloat16, enabled=bf16):
        y = m(x.to(dtype))
    loss = smooth_loss(y.to(dtype), label)
    loss.backward()
    return loss.detach(), {k: p.grad for k, p in m.named_parameters()}


def training(part, m, x, label, out, bf16):
    loss, want = gradients(m, x, label, torch.float64)
    _, got = gradients(m, x, label, torch.float32)
    out[part + "/loss"] = loss.reshape(1)
    out.update({part + "/g/" + k: g for k, g in want.items()})
    out.update({part + "/e/" + k: distance(g, want[k])
                for k, g in got.items()})
    if bf16:
        _, got = gradients(m, x, label, torch.float32, True)
        out.update({part + "/b/" + k: distance(g, want[k])
                    for k, g in got.items()})


def smooth(part, depth, width, out):
    """As training(), from inputs that are drawn until f32 cannot take another
    branch anywhere."""

    def compute():
        m = resnet(depth, width)
        x, label = samples(4, 64)
        watched = copy.deepcopy(m).double().train()
        oracle_file.watch(watched, MARGIN)
        with torch.no_grad():
            watched(x.double())
        return m, x, label

    m, x, label = oracle_file.draw(part, compute)
    put_params(part, m, out)
    put_samples(part, x, label, out)
    training(part, m, x, label, out, False)


# ---- steps ------------------------------------------------------------------


def steps(m, x, label, perturbation=0):
    """Losses of the steps, over the samples again and again."""
    m = copy.deepcopy(m).double().train()
    with torch.no_grad():
        for p in m.parameters():
            p.mul_(1 + perturbation * torch.randn_like(p))
    o = torch.optim.SGD(m.parameters(), 0.05, momentum=0.9, weight_decay=1e-4)
    losses = []
    for step in range(STEPS):
        i = step * BATCH % len(x)
        o.zero_grad()
        loss = smooth_loss(m(x[i:i + BATCH].double()), label[i:i + BATCH])
        loss.backward()
        o.step()
        losses.append(loss.item())
    running = {k: v for k, v in m.state_dict().items() if "running" in k}
    return torch.tensor(losses, dtype=torch.float64), running


def trace(m, x, label, out):
    """The steps, and how much three runs differ from them whose weights were
    a little off at the beginning."""
    loss, want = steps(m, x, label)
    out["trace/loss"] = loss
    out.update({"trace/r/" + k: v for k, v in want.items()})
    off, e = 0, {k: 0 for k in want}
    for _ in range(3):
        other, got = steps(m, x, label, 1e-6)
        off = torch.maximum((other - loss).abs(), torch.zeros(STEPS) + off)
        e = {k: max(e[k], distance(got[k], want[k])) for k in e}
    out["trace/off"] = off
    out.update({"trace/e/" + k: v for k, v in e.items()})


# ---- all of it ---------------------------------------------------------------


def put_samples(part, x, label, out):
    out.update({part + "/x": oracle_file.nhwc(x), part + "/label": label})


def put_params(part, m, out):
    out.update({part + "/p/" + k: v.clone() for k, v in m.state_dict().items()
                if not k.endswith("num_batches_tracked")})


def main():
    path, width, out = sys.argv[1], int(sys.argv[2]), {}
    torch.set_num_threads(2)
    oracle_file.seed("resnet")
    smooth("slim18", 18, 16, out)
    smooth("slim50", 50, 8, out)
    m, x, label = resnet(18), *samples(BATCH, 96)
    oracle_file.write(path + ".weights", m.state_dict(), integers=True)
    evaluation(m, out)
    put_samples("train", x, label, out)
    training("train", m, x, label, out, True)
    m, x, label = resnet(50), *samples(4, 64)
    put_params("deep", m, out)
    put_samples("deep", x, label, out)
    training("deep", m, x, label, out, False)
    m, x, label = resnet(18, width), *samples(5 * BATCH, 64)
    put_params("trace", m, out)
    put_samples("trace", x, label, out)
    trace(m, x, label, out)
    oracle_file.write(path, out)


main()
