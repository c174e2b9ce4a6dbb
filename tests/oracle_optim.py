# oracle_optim.py FILE - fifty steps of each rule of torch.optim, in f64
#
#   x label                    50 batches of 6 samples
#   p/NAME                     the network's parameters before
#   KIND/loss p/NAME e/NAME    losses of the steps, parameters after them, and
#                              their averages of decay 0.9 (swa_utils)
#   steps/shares steps/several steps/teacher
#                              targets of these batches: shares, 0 or 1 of each
#                              class, logits with the label after them
#   steps/LOSS/...             the same as KIND/... of momentum with that loss
#   loss/x loss/shares         logits of 7 samples, and shares of 9 classes
#   loss/RULE loss/RULE/dx     the mean loss of them, and its gradient
# SPDX-License-Identifier: LGPL-2.1-or-later
import copy
import sys

import torch
from torch import nn
from torchvision.ops import sigmoid_focal_loss

sys.dont_write_bytecode = True
import oracle_file  # noqa: E402

F = nn.functional


class Rule(torch.optim.Optimizer):
    """What PyTorch lacks, from the papers: a subclass has update()."""

    def __init__(self, params, **options):
        super().__init__(params, dict(weight_decay=0) | options)

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                s = self.state[p]
                if not s:
                    s.update(t=0, m=torch.zeros_like(p),
                             v=torch.zeros_like(p))
                s["t"] += 1
                self.update(p, p.grad, s, group, group["lr"])

    @staticmethod
    def means(s, g, beta1, beta2):
        s["m"].mul_(beta1).add_((1 - beta1) * g)
        s["v"].mul_(beta2).add_((1 - beta2) * g * g)
        return s["m"], s["v"]


class FluxMomentum(Rule):
    """v = m v + lr g, w -= v: lr goes into v when it is met."""

    def update(self, p, g, s, o, lr):
        p.sub_(s["v"].mul_(o["momentum"]).add_(lr * g))


class NAdam(Rule):
    """Dozat 2016, as PyTorch has it since 2.0: before, mu_t was counted twice
    in the product that m is divided by."""

    def update(self, p, g, s, o, lr):
        g = g + o["weight_decay"] * p
        m, v = self.means(s, g, 0.9, 0.999)
        mu, after = (0.9 * (1 - 0.5 * 0.96 ** (0.004 * t))
                     for t in (s["t"], s["t"] + 1))
        s["product"] = s.get("product", 1) * mu
        p.sub_(lr * ((1 - mu) / (1 - s["product"]) * g
                     + after / (1 - s["product"] * after) * m)
               / ((v / (1 - 0.999 ** s["t"])).sqrt() + 1e-8))


class NAdamW(Rule):
    """timm's: AdamW, but the mean is taken with the gradient once more."""

    def update(self, p, g, s, o, lr):
        m, v = self.means(s, g, 0.9, 0.999)
        p.mul_(1 - lr * o["weight_decay"])
        p.sub_(lr * (0.9 * m + 0.1 * g) / (1 - 0.9 ** s["t"])
               / ((v / (1 - 0.999 ** s["t"])).sqrt() + 1e-8))


class AdamP(Rule):
    """timm's, with its delta and wd_ratio: AdamW, whose steps lose the part along
    the weights where gradients have none."""

    def update(self, p, g, s, o, lr):
        m, v = self.means(s, g, 0.9, 0.999)
        step = m / (1 - 0.9 ** s["t"]) / (
            (v / (1 - 0.999 ** s["t"])).sqrt() + 1e-8)
        rows = (p.shape[0], 1) if p.dim() > 1 else ()
        step, decay = self.project(p, g, step, rows)
        p.mul_(1 - lr * o["weight_decay"] * decay).sub_(lr * step)

    @staticmethod
    def project(p, g, step, rows):
        for n in rows:
            w, d, u = (x.reshape(n, -1) for x in (p, g, step))
            most = F.cosine_similarity(w, d, 1).abs().max()
            least = 0.1 / w.shape[1] ** 0.5
            assert abs(most - least) > 1e-5  # f32 decides in the same way
            if most < least:
                w = w / (w.norm(dim=1, keepdim=True) + 1e-8)
                return (u - w * (w * u).sum(1, keepdim=True)).reshape(p.shape), 0.1
        return step, 1


class RMSpropTF(Rule):
    """timm's: v begins at 1, eps is below the root, lr in the momentum."""

    def update(self, p, g, s, o, lr):
        if s["t"] == 1:
            s["v"].fill_(1)
        g = g + o["weight_decay"] * p
        s["v"].add_(0.1 * (g * g - s["v"]))
        step = lr * g / (s["v"] + o["eps"]).sqrt()
        p.sub_(s["m"].mul_(o["momentum"]).add_(step))


class AdaBelief(Rule):
    """Zhuang et al. 2020, algorithm 2, with decoupled decay."""

    def update(self, p, g, s, o, lr):
        m, v = s["m"], s["v"]
        m.mul_(0.9).add_(0.1 * g)
        v.mul_(0.999).add_(0.001 * (g - m) ** 2 + 1e-16)
        p.mul_(1 - lr * o["weight_decay"])
        p.sub_(lr * m / (1 - 0.9 ** s["t"])
               / ((v / (1 - 0.999 ** s["t"])).sqrt() + 1e-16))


class Lion(Rule):
    """Chen et al. 2023, program 1."""

    def update(self, p, g, s, o, lr):
        m = s["m"]
        c = 0.9 * m + 0.1 * g
        assert c.abs().min() > 1e-7 * c.abs().max()  # its sign is certain
        p.sub_(lr * (c.sign() + o["weight_decay"] * p))
        m.mul_(0.99).add_(0.01 * g)


def trust(p, step, o):
    """|p| / |step|, if it decays and neither of them is 0, as in timm."""
    w, d = p.norm(2.0), step.norm(2.0)
    adapts = o["weight_decay"] != 0 and w > 0 and d > 0
    return (w / d if adapts else torch.ones_like(w)), w, d


class Lamb(Rule):
    """timm's, without its clipping to a global norm of 1."""

    def update(self, p, g, s, o, lr):
        m, v = self.means(s, g, 0.9, 0.999)
        root = (v.sqrt() / (1 - 0.999 ** s["t"]) ** 0.5).add_(1e-6)
        step = m / (1 - 0.9 ** s["t"]) / root + o["weight_decay"] * p
        p.sub_(lr * trust(p, step, o)[0] * step)


class Lars(Rule):
    """timm's, with its trust_coeff of 0.001."""

    def update(self, p, g, s, o, lr):
        ratio, w, d = trust(p, g, o)
        if o["weight_decay"] != 0 and w > 0 and d > 0:
            ratio = 0.001 * w / (d + w * o["weight_decay"] + 1e-8)
        g = ratio * (g + o["weight_decay"] * p)
        p.sub_(lr * s["m"].mul_(o["momentum"]).add_(g))


def falling(step):
    return 1 / (1 + step)


# Name, class, options; "all": norms and biases decay too; "clip": the norm;
# "limit": each value of a gradient is clipped; "unit": adaptive clipping;
# "ahead": Lookahead of every 6 steps;
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
    "amsgrad": (O.Adam, dict(lr=0.01, amsgrad=True, weight_decay=0.1)),
    "nadam": (NAdam, dict(lr=0.01)),
    "nadam_decay": (NAdam, dict(lr=0.01, weight_decay=0.1)),
    "radam": (O.RAdam, dict(lr=0.01)),
    "radam_decay": (O.RAdam, dict(lr=0.1, weight_decay=0.1), "falls"),
    "adabelief": (AdaBelief, dict(lr=0.003)),
    "adabelief_decay": (AdaBelief, dict(lr=0.003, weight_decay=0.1)),
    "lion": (Lion, dict(lr=0.003)),
    "lion_decay": (Lion, dict(lr=0.003, weight_decay=0.1), "clip"),
    "adagrad": (O.Adagrad, dict(lr=0.05)),
    "adagrad_decay": (O.Adagrad, dict(lr=0.05, weight_decay=0.1), "falls"),
    "adadelta": (O.Adadelta, dict(lr=1.0)),
    "adadelta_decay": (O.Adadelta, dict(lr=1.0, weight_decay=0.1)),
    "lamb": (Lamb, dict(lr=0.01)),
    "lamb_decay": (Lamb, dict(lr=0.01, weight_decay=0.1)),
    "lamb_clip": (Lamb, dict(lr=0.01, weight_decay=0.1), "clip", "all"),
    "lars": (Lars, dict(lr=0.05, momentum=0.9)),
    "lars_decay": (Lars, dict(lr=1.0, momentum=0.9, weight_decay=0.1)),
    "lars_falls": (Lars, dict(lr=4.0, momentum=0.9, weight_decay=0.1),
                   "falls", "all"),
    "nadamw": (NAdamW, dict(lr=0.01)),
    "nadamw_decay": (NAdamW, dict(lr=0.02, weight_decay=0.1), "falls"),
    "adamp": (AdamP, dict(lr=0.01, weight_decay=0.1)),
    "adamp_falls": (AdamP, dict(lr=0.03), "falls", "clip"),
    "rmsproptf": (RMSpropTF, dict(lr=0.05, momentum=0, eps=1e-10)),
    "rmsproptf_momentum": (RMSpropTF, dict(lr=0.01, momentum=0.9, eps=1e-3,
                                           weight_decay=0.1)),
    "rmsproptf_falls": (RMSpropTF, dict(lr=0.02, momentum=0.9, eps=1e-10),
                        "falls"),
    "momentum_unit": (O.SGD, dict(lr=0.05, momentum=0.9, weight_decay=0.1),
                      "unit"),
    "nadamw_unit": (NAdamW, dict(lr=0.01, weight_decay=0.1), "unit", "clip"),
    "sgd_ahead": (O.SGD, dict(lr=0.1, weight_decay=0.1), "ahead"),
    "adamw_ahead": (O.AdamW, dict(lr=0.01, weight_decay=0.1), "ahead",
                    "falls"),
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


@torch.no_grad()
def clip_units(m, share=0.2):
    """Brock et al. 2021, as timm has it: not in the last layer."""
    clipped = []
    for p in list(m.parameters())[:-2]:
        axes = tuple(range(1, p.dim())) or 0
        most = (p * p).sum(axes, keepdim=True).sqrt().clamp(min=1e-3) * share
        norm = (p.grad * p.grad).sum(axes, keepdim=True).sqrt()
        p.grad.mul_(torch.where(norm < most, 1.0, most / norm.clamp(min=1e-6)))
        clipped += (norm >= most).flatten().tolist()
    return clipped


@torch.no_grad()
def look_ahead(m, slow):
    """Zhang et al. 2019, as timm has it: it begins when it is first met."""
    for k, p in m.named_parameters():
        if k in slow:
            p.copy_(slow[k] + 0.5 * (p - slow[k]))
        slow[k] = p.clone()


def optimize(m, kind, options, how, x, target, rule=nn.functional.cross_entropy):
    plain = [p for k, p in m.named_parameters() if p.dim() == 1]
    weights = [p for k, p in m.named_parameters() if p.dim() > 1]
    groups = [dict(params=weights), dict(params=plain)]
    if "all" not in how and "weight_decay" in options:
        groups[1]["weight_decay"] = 0
    o, losses, e = kind(groups, **options), [], averages(m)
    s, clipped, slow = None, [], {}
    if "falls" in how:
        s = O.lr_scheduler.LambdaLR(o, falling)
    if "cycles" in how:
        s = O.lr_scheduler.OneCycleLR(o, options["lr"], len(x) // 6)
    for i in range(0, len(x), 6):
        o.zero_grad()
        loss = rule(m(x[i:i + 6]), target[i:i + 6])
        loss.backward()
        if "clip" in how:
            norm = nn.utils.clip_grad_norm_(m.parameters(), 0.5)
            assert norm > 0.6  # it has something to do
        if "limit" in how:
            assert m[0].weight.grad.abs().max() > 0.06
            nn.utils.clip_grad_value_(m.parameters(), 0.05)
        if "unit" in how:
            clipped += clip_units(m)
        o.step()
        if "ahead" in how and i // 6 % 6 == 5:
            look_ahead(m, slow)
        e.update_parameters(m)
        if s:
            s.step()
        losses.append(loss.item())
    assert "unit" not in how or 0.1 < sum(clipped) / len(clipped) < 0.9
    return losses, e.module


def hard(q):
    """timm's BinaryCrossEntropy: smoothed, then compared with 0.2."""
    return ((1 - 0.1) * q + 0.1 / q.shape[1] > 0.2).to(q.dtype)


LOSSES = {
    "soft": lambda x, q: F.cross_entropy(x, q, label_smoothing=0.1),
    "binary": F.binary_cross_entropy_with_logits,
    "hard": lambda x, q: F.binary_cross_entropy_with_logits(x, hard(q)),
    "focal": lambda x, q: sigmoid_focal_loss(x, q, reduction="mean"),
    "focal_plain": lambda x, q: sigmoid_focal_loss(x, q, -1, 1.5, "mean"),
}


CLASS_WEIGHTS = torch.tensor([1, 0.5, 2, 0, 3, 1, 0.25, 1, 1.5])


def put_weighted(out, x, q):
    """Of a layer without bias that begins as the identity: y = x W^T."""
    label = torch.tensor([0, 2, 8, 4, 3, 6, 1])
    out.update({"weighted/weight": CLASS_WEIGHTS, "weighted/label": label})
    for name, target, smoothing in (("plain", label, 0.0),
                                    ("smoothed", label, 0.1),
                                    ("shares", q.double(), 0.1)):
        w = torch.eye(9, dtype=torch.float64, requires_grad=True)
        loss = F.cross_entropy(x.double() @ w.T, target,
                               CLASS_WEIGHTS.double(),
                               label_smoothing=smoothing)
        loss.backward()
        out.update({"weighted/" + name: loss.detach().reshape(1),
                    "weighted/" + name + "/dw": w.grad})


def distilled(x, target):
    """Hinton et al. 2015, from stored logits, as examples/distill.c has it."""
    taught, label, a, t = target[:, :-1], target[:, -1].long(), 0.7, 3
    soft = F.kl_div(F.log_softmax(x / t, 1), F.softmax(taught / t, 1),
                    reduction="batchmean")
    return (1 - a) * F.cross_entropy(x, label) + a * t * t * soft


WEIGHTS_OF_5 = [1, 0.5, 2, 0.25, 3]


def positive(x, q):
    return F.binary_cross_entropy_with_logits(
        x, q, pos_weight=torch.tensor(WEIGHTS_OF_5).double())


def weighted(x, label):
    return F.cross_entropy(x, label, torch.tensor(WEIGHTS_OF_5).double())


# Of the steps: which targets, and the loss.
STEPS = {name: ("shares", rule) for name, rule in LOSSES.items()} | {
    "several": ("several", F.binary_cross_entropy_with_logits),
    "positive": ("several", positive),
    "distilled": ("teacher", distilled), "weighted": ("label", weighted)}


def put_steps(out, m, x, label):
    shares = (torch.rand(300, 5) ** 4).float()
    shares /= shares.sum(1, keepdim=True)
    teacher = torch.randn(300, 5) * 3
    targets = dict(shares=shares, several=(torch.rand(300, 5) < 0.4).float(),
                   teacher=torch.cat([teacher, label[:, None]], 1))
    out.update({"steps/" + k: v for k, v in targets.items()})
    targets = {k: v.double() for k, v in targets.items()} | dict(label=label)
    for name, (target, rule) in STEPS.items():
        n = copy.deepcopy(m)
        losses, _ = optimize(n, O.SGD, dict(lr=0.05, momentum=0.9), (), x,
                             targets[target], rule)
        out["steps/" + name + "/loss"] = torch.tensor(losses)
        out.update({"steps/" + name + "/p/" + k: v
                    for k, v in n.state_dict().items()})


def put_losses(out):
    x, q = torch.randn(7, 9) * 3, torch.rand(7, 9) ** 4
    q /= q.sum(1, keepdim=True)
    out.update({"loss/x": x, "loss/shares": q})
    for name, rule in LOSSES.items():
        logits = x.double().requires_grad_()
        loss = rule(logits, q.double())
        loss.backward()
        out.update({"loss/" + name: loss.detach().reshape(1),
                    "loss/" + name + "/dx": logits.grad})
    put_weighted(out, x, q)


def main():
    torch.set_num_threads(1)
    oracle_file.seed("optimizers")
    m, out = small_net(), {}
    x, label = torch.randn(300, 2, 6, 5), torch.randint(5, (300,))
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
    put_losses(out)
    put_steps(out, m, x.double(), label)
    oracle_file.write(sys.argv[1], out)


main()
