# oracle_layers.py FILE - what PyTorch makes of the cases of layer_cases.c
#
# For every case NAME: a module, random x, dy and parameters, and what follows
# from them in f64.  Tensors are NAME/x, y, dx, dy (channels last), NAME/eval
# (y in evaluation), NAME/p/PARAM, NAME/g/PARAM (its gradient), NAME/r/PARAM
# (running statistics after one step) and NAME/sub, the samples that go through
# together.  Modules are made so that their parameters' names are ours.
# SPDX-License-Identifier: LGPL-2.1-or-later
import sys

import torch
import torch.nn.functional as F
from torch import nn

sys.dont_write_bytecode = True
import oracle_file  # noqa: E402

MARGIN = 1e-5  # of kinks: f32 errors of values around 1 stay below it

# ---- our layers, in PyTorch -------------------------------------------------


class Dense(nn.Linear):
    """Vectors are (n, c, 1, 1) here."""

    def forward(self, x):
        return super().forward(x[:, :, 0, 0])[:, :, None, None]


class Flatten(nn.Module):
    """Channels last, as our samples are."""

    def forward(self, x):
        return oracle_file.nhwc(x).flatten(1)[:, :, None, None]


class FlattenFirst(nn.Module):
    """As PyTorch's, channels first."""

    def forward(self, x):
        return x.flatten(1)[:, :, None, None]


class PadConv(nn.Conv2d):
    """Padding for each side: top, left, bottom, right."""

    def __init__(self, *args, pads, **options):
        super().__init__(*args, **options)
        self.pads = pads

    def forward(self, x):
        top, left, bottom, right = self.pads
        return super().forward(F.pad(x, (left, right, top, bottom)))


class Skip(nn.Sequential):
    def forward(self, x):
        shortcut = self[1](x) if len(self) > 1 else x
        return self[0](x) + shortcut


class Concat(nn.Sequential):
    def forward(self, x):
        return torch.cat([branch(x) for branch in self], 1)


class Add(nn.Sequential):
    def forward(self, x):
        return sum(branch(x) for branch in self)


class Scale(nn.Sequential):
    def forward(self, x):
        return x * self[0](x)


ACTS = {"identity": nn.Identity, "relu": nn.ReLU, "relu6": nn.ReLU6,
        "silu": nn.SiLU, "sigmoid": nn.Sigmoid, "tanh": nn.Tanh,
        "gelu": nn.GELU, "hardswish": nn.Hardswish,
        "hardsigmoid": nn.Hardsigmoid}
# ---- the cases --------------------------------------------------------------

seq, conv, bn, relu = nn.Sequential, nn.Conv2d, nn.BatchNorm2d, nn.ReLU
SHAPE = (5, 4, 9, 7)
VECTOR = (5, 7, 1, 1)


def norm_conv(i, o, k, **options):
    return conv(i, o, k, bias=False, **options)


def residual(c):
    return seq(norm_conv(c, c, 3, padding=1), bn(c), relu(),
               norm_conv(c, c, 3, padding=1), bn(c))


def gate(c, squeezed):
    return seq(nn.AdaptiveAvgPool2d(1), conv(c, squeezed, 1), relu(),
               conv(squeezed, c, 1), nn.Sigmoid())


CASES = {
    "dense": (lambda: seq(Dense(7, 5)), VECTOR),
    "dense_no_bias": (lambda: seq(Dense(7, 5, bias=False)), VECTOR),
    "dense_alone": (lambda: Dense(7, 5), VECTOR),
    "dense_twice": (lambda: seq(Dense(2, 2), Dense(2, 2)), (4, 2, 1, 1)),
    "dense_wide": (lambda: seq(Dense(300, 37)), (5, 300, 1, 1)),
    "conv": (lambda: seq(conv(4, 8, 3, padding=1)), SHAPE),
    "conv_alone": (lambda: conv(4, 8, 3), SHAPE),
    "conv_no_bias": (lambda: seq(conv(4, 8, 3, bias=False)), SHAPE),
    "conv_1x1": (lambda: seq(conv(4, 6, 1)), SHAPE),
    "conv_1x1_stride": (lambda: seq(conv(4, 6, 1, stride=2)), SHAPE),
    "conv_odd": (lambda: seq(conv(17, 19, 3, padding=1)), (3, 17, 6, 5)),
    "conv_stride": (lambda: seq(conv(4, 8, 3, stride=2, padding=1)), SHAPE),
    "conv_strides": (lambda: seq(conv(4, 8, 3, stride=(3, 2))), SHAPE),
    "conv_stem": (lambda: seq(conv(3, 16, 7, stride=2, padding=3,
                                   bias=False)), (2, 3, 21, 18)),
    "conv_patch": (lambda: seq(conv(3, 6, 4, stride=4)), (3, 3, 12, 10)),
    "conv_whole": (lambda: seq(conv(4, 8, (9, 7))), SHAPE),
    "conv_pad_w": (lambda: seq(conv(4, 8, 3, padding=(0, 2))), SHAPE),
    "conv_pads": (lambda: seq(PadConv(4, 8, 3, pads=(0, 1, 2, 3))), SHAPE),
    "conv_dilation": (lambda: seq(conv(4, 8, 3, padding=2, dilation=2)),
                      SHAPE),
    "conv_dilations": (lambda: seq(conv(4, 8, 3, padding=2, dilation=(3, 2))),
                       SHAPE),
    "conv_groups": (lambda: seq(conv(8, 12, 3, padding=1, groups=4)),
                    (5, 8, 9, 7)),
    "depthwise": (lambda: seq(conv(8, 8, 3, padding=1, groups=8)),
                  (5, 8, 9, 7)),
    "depthwise_wide": (lambda: seq(conv(4, 8, 5, padding=2, stride=2,
                                        groups=4)), SHAPE),
    "conv_rect": (lambda: seq(conv(4, 8, (1, 7), padding=(0, 3)),
                              conv(8, 4, (7, 1), padding=(3, 0))), SHAPE),
    "conv_all": (lambda: seq(PadConv(4, 6, (3, 2), stride=(2, 1),
                                     dilation=(1, 3), groups=2,
                                     pads=(1, 0, 2, 3))), SHAPE),
    "bn": (lambda: seq(bn(4)), SHAPE),
    "bn_relu": (lambda: seq(bn(4), relu()), SHAPE),
    "bn_relu6": (lambda: seq(bn(4), nn.ReLU6()), SHAPE),
    "bn_tanh": (lambda: seq(bn(4), nn.Tanh()), SHAPE),
    "bn_options": (lambda: seq(bn(4, eps=1e-2, momentum=0.3)), SHAPE),
    "bn_vector": (lambda: seq(Dense(7, 6, bias=False), bn(6), relu()), VECTOR),
    "bn_sub": (lambda: seq(norm_conv(4, 8, 3), bn(8), relu()), SHAPE, 3),
    "bn_twice": (lambda: seq(norm_conv(4, 8, 3), bn(8), relu(),
                             norm_conv(8, 6, 1), bn(6)), SHAPE, 2),
    "max_pool": (lambda: seq(nn.MaxPool2d(2)), SHAPE),
    "max_pool_overlap": (lambda: seq(nn.MaxPool2d(3, 2, 1)), SHAPE),
    "max_pool_same": (lambda: seq(nn.MaxPool2d(3, 1, 1)), SHAPE),
    "max_pool_ceil": (lambda: seq(nn.MaxPool2d(3, 2, ceil_mode=True)),
                      (5, 4, 8, 10)),
    # the last window would see padding only
    "max_pool_ceil_drop": (lambda: seq(nn.MaxPool2d(2, 3, 1, ceil_mode=True)),
                           (5, 4, 5, 8)),
    "max_pool_rect": (lambda: seq(nn.MaxPool2d((3, 2), (1, 2), (1, 1))),
                      SHAPE),
    "max_pool_large": (lambda: seq(nn.MaxPool2d((18, 17), (3, 2))),
                       (2, 3, 21, 19)),
    "mean_pool": (lambda: seq(nn.AvgPool2d(2)), SHAPE),
    "mean_pool_pad": (lambda: seq(nn.AvgPool2d(3, 1, 1)), SHAPE),
    "mean_pool_inside": (lambda: seq(
        nn.AvgPool2d(3, 1, 1, count_include_pad=False)), SHAPE),
    "mean_pool_ceil": (lambda: seq(nn.AvgPool2d(3, 2, 1, ceil_mode=True)),
                       (5, 4, 8, 10)),
    "mean_pool_ceil_inside": (lambda: seq(
        nn.AvgPool2d(3, 2, 1, ceil_mode=True, count_include_pad=False)),
        (5, 4, 8, 10)),
    "mean_pool_ceil_drop": (lambda: seq(nn.AvgPool2d(2, 3, 1, ceil_mode=True)),
                            (5, 4, 5, 8)),
    "mean_pool_rect": (lambda: seq(nn.AvgPool2d((2, 3), (2, 1))), SHAPE),
    "adaptive": (lambda: seq(nn.AdaptiveAvgPool2d((4, 3))), SHAPE),
    "adaptive_up": (lambda: seq(nn.AdaptiveAvgPool2d((11, 5))), SHAPE),
    "global_mean": (lambda: seq(nn.AdaptiveAvgPool2d(1), Dense(4, 3)), SHAPE),
    "flatten": (lambda: seq(conv(4, 3, 3), Flatten(), Dense(105, 6)), SHAPE),
    "flatten_chw": (lambda: seq(conv(4, 3, 3), FlattenFirst(), Dense(105, 6)),
                    SHAPE),
    "flatten_first": (lambda: seq(Flatten(), Dense(252, 6)), SHAPE),
    "nothing": (lambda: seq(), SHAPE),
    "skip_conv": (lambda: seq(Skip(conv(4, 4, 3, padding=1))), SHAPE),
    "skip_conv_relu": (lambda: seq(Skip(conv(4, 4, 3, padding=1)), relu()),
                       SHAPE),
    "skip_bn": (lambda: seq(Skip(residual(4))), SHAPE),
    "skip_bn_relu": (lambda: seq(conv(4, 4, 1), Skip(residual(4)), relu()),
                     SHAPE),
    "skip_bn_relu6": (lambda: seq(Skip(residual(4)), nn.ReLU6()), SHAPE),
    "skip_bn_silu": (lambda: seq(Skip(residual(4)), nn.SiLU()), SHAPE),
    "skip_bn_alone": (lambda: seq(Skip(bn(4)), relu()), SHAPE),
    "skip_projection": (lambda: seq(
        Skip(seq(norm_conv(4, 6, 3, padding=1, stride=2), bn(6), relu(),
                 norm_conv(6, 6, 3, padding=1), bn(6)),
             seq(norm_conv(4, 6, 1, stride=2), bn(6))), relu()), SHAPE),
    "skip_projection_plain": (lambda: seq(
        Skip(conv(4, 6, 3), conv(4, 6, 3)), conv(6, 2, 1)), SHAPE),
    "skip_conv_1x1": (lambda: seq(
        Skip(conv(4, 6, 3, padding=1), conv(4, 6, 1)),
        Skip(conv(6, 2, 1), conv(6, 2, 3, padding=1))), SHAPE),
    "skip_conv_1x1_pad": (lambda: seq(
        Skip(conv(4, 6, 3, padding=2), conv(4, 6, 1, padding=1)),
        Skip(conv(6, 2, 1, padding=1), conv(6, 2, 3, padding=2))), SHAPE),
    "skip_nested": (lambda: seq(
        Skip(seq(Skip(conv(4, 4, 3, padding=1)), relu(),
                 Skip(residual(4)), relu())), relu()), SHAPE),
    "skip_skip": (lambda: seq(Skip(Skip(Skip(conv(4, 4, 1))))), SHAPE),
    "skip_nothing": (lambda: seq(Skip(seq())), SHAPE),
    "skip_act": (lambda: seq(Skip(nn.Tanh())), SHAPE),
    "skip_shortcut_act": (lambda: seq(Skip(conv(4, 4, 1), nn.Tanh())), SHAPE),
    "skip_dense": (lambda: seq(Skip(seq(Dense(7, 7), nn.GELU())),
                               Dense(7, 3)), VECTOR),
    "concat": (lambda: seq(Concat(conv(4, 3, 1),
                                  seq(conv(4, 5, 3, padding=1), relu()),
                                  nn.MaxPool2d(3, 1, 1)), relu()), SHAPE),
    "concat_first": (lambda: seq(Concat(conv(4, 3, 1), conv(4, 2, 1)),
                                 conv(5, 3, 3)), SHAPE),
    "concat_one": (lambda: seq(Concat(conv(4, 3, 1)), relu()), SHAPE),
    "concat_identity": (lambda: seq(conv(4, 4, 1), Concat(seq(), seq(),
                                                          nn.Tanh())), SHAPE),
    "add": (lambda: seq(Add(conv(4, 4, 1), conv(4, 4, 3, padding=1),
                            nn.Identity()), relu()), SHAPE),
    "add_first": (lambda: seq(Add(conv(4, 3, 1), conv(4, 3, 1)),
                              conv(3, 3, 3)), SHAPE),
    "add_one": (lambda: seq(conv(4, 3, 1), Add(nn.Tanh()), conv(3, 2, 1)),
                SHAPE),
    "add_identities": (lambda: seq(conv(4, 4, 1), Add(seq(), seq(), seq())),
                       SHAPE),
    "parallel_nested": (lambda: seq(
        Concat(seq(norm_conv(4, 4, 1), bn(4), relu(),
                   Add(conv(4, 3, 1), conv(4, 3, 3, padding=1))),
               Concat(conv(4, 2, 1), nn.AvgPool2d(3, 1, 1),
                      Skip(conv(4, 4, 1)))), conv(13, 2, 1)), SHAPE),
    "scale": (lambda: seq(conv(4, 6, 3, padding=1), Scale(gate(6, 3))), SHAPE),
    "scale_first": (lambda: seq(Scale(gate(4, 2)), conv(4, 3, 1)), SHAPE),
    "scale_dense": (lambda: seq(
        conv(4, 6, 1), relu(),
        Scale(seq(nn.AdaptiveAvgPool2d(1), Dense(6, 6), nn.Hardsigmoid())),
        conv(6, 2, 1)), SHAPE),
    "scale_skip": (lambda: seq(
        Skip(seq(norm_conv(4, 4, 3, padding=1), bn(4), Scale(gate(4, 2)))),
        relu()), SHAPE),
    "scale_silu": (lambda: seq(
        norm_conv(4, 6, 3, padding=1), bn(6), nn.SiLU(), Scale(gate(6, 3)),
        conv(6, 2, 1)), SHAPE),
    "scale_hardswish": (lambda: seq(
        norm_conv(4, 6, 3, padding=1), bn(6), nn.Hardswish(),
        Scale(gate(6, 3)), conv(6, 2, 1)), SHAPE),
    "scale_shared": (lambda: seq(
        norm_conv(4, 6, 3, padding=1), bn(6), nn.SiLU(),
        Skip(Scale(gate(6, 3))), conv(6, 2, 1)), SHAPE),
    "nested": (lambda: seq(seq(conv(4, 6, 3), seq(relu())),
                           seq(seq(conv(6, 3, 1)))), SHAPE),
    "ends_nested": (lambda: seq(seq(norm_conv(4, 6, 3), bn(6)), relu()),
                    SHAPE),
}
for act, make in ACTS.items():
    CASES.update({
        "act_" + act: (lambda m=make: seq(m()), SHAPE),
        "conv_" + act: (lambda m=make: seq(conv(4, 6, 3), m(), conv(6, 3, 1)),
                        SHAPE),
        "conv_apart_" + act: (lambda m=make: seq(conv(4, 6, 3), seq(m())),
                              SHAPE),
        "norm_" + act: (lambda m=make: seq(norm_conv(4, 6, 3), bn(6), m(),
                                           conv(6, 3, 1)), SHAPE),
        "dense_" + act: (lambda m=make: seq(Dense(7, 5), m(), Dense(5, 3)),
                         VECTOR),
    })

# ---- one case ---------------------------------------------------------------


def randomize(module):
    """Parameters that are f32 numbers, norms that are not trivial."""
    for m in module.modules():
        if isinstance(m, nn.BatchNorm2d):
            nn.init.uniform_(m.weight, 0.5, 1.5)
            nn.init.normal_(m.bias, std=0.3)
            nn.init.normal_(m.running_mean, std=0.3)
            nn.init.uniform_(m.running_var, 0.5, 2)


def state(module):
    return {k: v.clone() for k, v in module.state_dict().items()
            if not k.endswith("num_batches_tracked")}


def step(module, start, x, dy, out):
    """One sub-batch from the same start: adds to what is in out."""
    module.load_state_dict(start, strict=False)
    x.requires_grad_()
    y = module(x)
    y.backward(dy)
    out["y"].append(oracle_file.nhwc(y))
    out["dx"].append(oracle_file.nhwc(x.grad))
    for k, v in state(module).items():
        if "running" in k:
            out["r/" + k] = out.get("r/" + k, 0) + v * len(x)


def compute(name, module, shape, sub):
    scale = 3 if name.startswith("act_") else 1
    x = (torch.randn(shape) * scale).double()
    randomize(module)
    module.double()
    oracle_file.watch(module, MARGIN)
    start, out = state(module), {"y": [], "dx": []}
    dy = torch.randn(module.eval()(x).shape).double()
    if name == "dense_twice":
        dy = torch.ones_like(dy)
    out["eval"] = oracle_file.nhwc(module(x))
    module.train()
    for i in range(0, len(x), sub):
        step(module, start, x[i:i + sub].clone(), dy[i:i + sub], out)
    out["y"], out["dx"] = torch.cat(out["y"]), torch.cat(out["dx"])
    out.update({k: v / len(x) for k, v in out.items() if k[:2] == "r/"})
    out.update({"p/" + k: v for k, v in start.items()})
    out.update({"g/" + k: p.grad for k, p in module.named_parameters()})
    out.update(x=oracle_file.nhwc(x), dy=oracle_file.nhwc(dy),
               sub=torch.tensor([sub]))
    return {name + "/" + k: v for k, v in out.items()}


def main():
    torch.set_num_threads(1)
    tensors = {}
    for name, (make, shape, *sub) in CASES.items():
        n = sub[0] if sub else shape[0]
        tensors.update(oracle_file.draw(
            name, lambda: compute(name, make(), shape, n)))
    oracle_file.write(sys.argv[1], tensors)


main()
