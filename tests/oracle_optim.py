# oracle_optim.py FILE - ten steps of each rule of torch.optim, in f64
#
#   x label                    10 batches of 6 samples
#   p/NAME                     the network's parameters before
#   KIND/loss p/NAME e/NAME    losses of the steps, parameters after them, and
#                              their averages of decay 0.9 (swa_utils)
# SPDX-License-Identifier: LGPL-2.1-or-later
import copy
import sys

import torch
from torch import nn

sys.dont_write_bytecode = True
import oracle_file  # noqa: E402

class FluxMomentum(torch.optim.Optimizer):
    """v = m v + lr g, w -= v: lr goes into v when it is met."""

    def __init__(self, params, lr, momentum):
        super().__init__(params, dict(lr=lr, momentum=momentum))

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                v = self.state[p].setdefault("v", torch.zeros_like(p))
                v.mul_(group["momentum"]).add_(p.grad, alpha=group["lr"])
                p.sub_(v)


def falling(step):
    return 1 / (1 + step)


# Name, class, options; "all": norms and biases decay too; "clip": the norm;
# "limit": each value of a gradient is clipped;
# "falls": the learning rate is divided by 1, 2, 3, ...; "cycles": OneCycleLR
O = torch.optim
OPTIMIZERS = {
    "sgd": (O.SGD, dict(lr=0.1)),
    "sgd_decay": (O.SGD, dict(lr=0.1, weight_decay=0.1)),
    "sgd_clip": (O.SGD, dict(lr=0.1), "clip"),
    "sgd_limit": (O.SGD, dict(lr=0.1, weight_decay=0.1), "limit"),
    "momentum": (O.SGD, dict(lr=0.05, momentum=0.9)),
    "momentum_decay": (O.SGD, dict(lr=0.05, momentum=0.9, weight_decay=0.1)),
    "momentum_decay_all": (O.SGD, dict(lr=0.05, momentum=0.9,
                                       weight_decay=0.1), "all"),
    "momentum_falls": (O.SGD, dict(lr=0.1, momentum=0.9), "falls"),
    "momentum_flux_falls": (FluxMomentum, dict(lr=0.1, momentum=0.9),
                            "falls"),
    "nesterov": (O.SGD, dict(lr=0.05, momentum=0.9, nesterov=True,
                             weight_decay=0.1)),
    "adam": (O.Adam, dict(lr=0.01)),
    "adam_decay": (O.Adam, dict(lr=0.01, weight_decay=0.1)),
    "adam_clip": (O.Adam, dict(lr=0.01), "clip"),
    "adamw": (O.AdamW, dict(lr=0.01, weight_decay=0.1)),
    "adamw_all": (O.AdamW, dict(lr=0.01, weight_decay=0.1), "all"),
    "rmsprop": (O.RMSprop, dict(lr=0.01)),
    "rmsprop_decay": (O.RMSprop, dict(lr=0.01, weight_decay=0.1)),
    "rmsprop_momentum": (O.RMSprop, dict(lr=0.001, momentum=0.9)),
    "rmsprop_momentum_falls": (O.RMSprop, dict(lr=0.002, momentum=0.9),
                               "falls"),
    "rmsprop_eps": (O.RMSprop, dict(lr=0.01, eps=1e-3)),
    "adam_eps": (O.Adam, dict(lr=0.01, eps=1e-3)),
    "nesterov_cycles": (O.SGD, dict(lr=0.1, momentum=0.9, nesterov=True),
                        "cycles"),
    "adamw_cycles": (O.AdamW, dict(lr=0.02, weight_decay=0.1), "cycles"),
}


class Flat(nn.Module):
    def forward(self, x):
        return oracle_file.nhwc(x).flatten(1)


def small_net():
    return nn.Sequential(nn.Conv2d(2, 4, 3, bias=False), nn.BatchNorm2d(4),
                         nn.Tanh(), Flat(), nn.Linear(4 * 4 * 3, 5)).double()


def averages(m):
    def mean(e, w, n):
        return 0.9 * e + 0.1 * w

    e = O.swa_utils.AveragedModel(m, avg_fn=mean, use_buffers=True)
    e.update_parameters(m)  # the first time, it takes them as they are
    return e


def optimize(m, kind, options, how, x, label):
    plain = [p for k, p in m.named_parameters() if p.dim() == 1]
    weights = [p for k, p in m.named_parameters() if p.dim() > 1]
    groups = [dict(params=weights), dict(params=plain)]
    if "all" not in how and "weight_decay" in options:
        groups[1]["weight_decay"] = 0
    o, losses, e = kind(groups, **options), [], averages(m)
    s = None
    if "falls" in how:
        s = O.lr_scheduler.LambdaLR(o, falling)
    if "cycles" in how:
        s = O.lr_scheduler.OneCycleLR(o, options["lr"], len(x) // 6)
    for i in range(0, len(x), 6):
        o.zero_grad()
        loss = nn.functional.cross_entropy(m(x[i:i + 6]), label[i:i + 6])
        loss.backward()
        if "clip" in how:
            norm = nn.utils.clip_grad_norm_(m.parameters(), 0.5)
            assert norm > 0.6  # it has something to do
        if "limit" in how:
            assert m[0].weight.grad.abs().max() > 0.06
            nn.utils.clip_grad_value_(m.parameters(), 0.05)
        o.step()
        e.update_parameters(m)
        if s:
            s.step()
        losses.append(loss.item())
    return losses, e.module


def main():
    torch.set_num_threads(1)
    oracle_file.seed("optimizers")
    m, out = small_net(), {}
    x, label = torch.randn(60, 2, 6, 5), torch.randint(5, (60,))
    for p in m.parameters():
        p.data = p.data.float().double()
    out.update(x=oracle_file.nhwc(x), label=label)
    out.update({"p/" + k: p.clone() for k, p in m.state_dict().items()})
    for name, (kind, options, *how) in OPTIMIZERS.items():
        n = copy.deepcopy(m)
        losses, e = optimize(n, kind, options, how, x.double(), label)
        out[name + "/loss"] = torch.tensor(losses)
        out.update({name + "/p/" + k: v for k, v in n.state_dict().items()})
        out.update({name + "/e/" + k: v for k, v in e.state_dict().items()})
    oracle_file.write(sys.argv[1], out)


main()
