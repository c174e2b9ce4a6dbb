# oracle_scale.py FILE - training with a loss scale, as GradScaler does it
#
#   x label weight             batches of 6 samples
#   p/NAME                     the network's parameters before
#   RUN/loss RUN/scale         of every step; the scale after it
#   RUN/p/NAME                 parameters at the end
#
# The network computes in f64.  Only gradients of activations, which is where
# f16 overflows, are rounded to f16.
# SPDX-License-Identifier: LGPL-2.1-or-later
import copy
import sys

import torch
from torch import nn

sys.dont_write_bytecode = True
import oracle_file  # noqa: E402

STEPS, BATCH = 20, 6
GROWTH_INTERVAL = 2000
LARGEST = 65504  # of f16


def narrow(g):
    """To f16 and back.  What is close to overflow would be an unfair
    question."""
    top = g[g.isfinite()].abs().max() if g.isfinite().any() else 0
    assert not 0.98 * LARGEST < top < 1.02 * LARGEST
    return g.half().double()


class Narrow(nn.Module):
    def forward(self, x):
        x.register_hook(narrow)
        return x


def net():
    return nn.Sequential(nn.Linear(7, 16), Narrow(), nn.Tanh(), Narrow(),
                         nn.Linear(16, 4), Narrow()).double()


def step(m, lr, scale, x, label, weight):
    """One step; the loss, and whether a gradient was not finite."""
    m.zero_grad()
    loss = nn.functional.cross_entropy(m(x), label, reduction="none")
    loss = (weight * loss).sum() / weight.sum()
    (loss * weight.sum() * scale).backward()
    for p in m.parameters():
        p.grad /= scale * weight.sum()
    bad = any(not p.grad.isfinite().all() for p in m.parameters())
    with torch.no_grad():
        for p in m.parameters():
            if not bad:
                p -= lr * p.grad
    return loss.item(), bad


def train(m, scale, good, x, label, weight):
    """GradScaler.update(): halve, or double after so many good steps."""
    losses, scales = [], []
    for i in range(0, len(x), BATCH):
        at = slice(i, i + BATCH)
        loss, bad = step(m, 0.25, scale, x[at], label[at], weight[at])
        good = 0 if bad else good + 1
        if bad:
            scale *= 0.5
        elif good == GROWTH_INTERVAL:
            scale, good = scale * 2, 0
        losses.append(loss)
        scales.append(scale)
    return torch.tensor(losses), torch.tensor(scales)


def main():
    torch.set_num_threads(1)
    oracle_file.seed("scale")
    m = net()
    x, label = torch.randn(STEPS * BATCH, 7), torch.randint(4, (STEPS * BATCH,))
    heavy = torch.ones(STEPS)
    for s, w in {0: 100, 1: 100, 4: 8, 7: 300, 8: 300, 13: 50, 16: 1000}.items():
        heavy[s] = w
    weight = heavy.repeat_interleave(BATCH)
    for p in m.parameters():
        p.data = p.data.float().double()
    names = {"0.": "0.", "4.": "2."}  # ours has no Narrow
    ours = {k: names[k[:2]] + k[2:] for k in m.state_dict()}
    out = dict(x=x, label=label, weight=weight)
    out.update({"p/" + ours[k]: v.clone() for k, v in m.state_dict().items()})
    for run, scale, good, w in (("falls", 65536, 0, weight),
                                ("grows", 1024, GROWTH_INTERVAL - 5,
                                 torch.ones_like(weight))):
        n = copy.deepcopy(m)
        losses, scales = train(n, scale, good, x.double(), label, w.double())
        out[run + "/loss"], out[run + "/scale"] = losses, scales
        out.update({run + "/p/" + ours[k]: v
                    for k, v in n.state_dict().items()})
    oracle_file.write(sys.argv[1], out)


main()
