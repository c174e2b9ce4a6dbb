# oracle_zoo.py FILE MODELS - networks of torchvision by their names
#
# MODELS is a list with commas: name, or name-eval for no gradients.  For each,
# tensors NAME/..., computed in f64 from values that are f32 numbers; what f32
# makes of a gradient is written as its distance from that.
#
#   p/PARAM            parameters
#   eval/x y           two samples, of another width than height; their logits
#   train/x label loss samples and the loss of a step, auxiliary ones added
#   train/g/PARAM      gradients, and how far off f32 is: at worst, of several
#   train/e/PARAM      orders of adding up, as one may be right by luck
#
# A gradient jumps where a value crosses the kink of an activation, so that
# random networks cannot be compared closely.  These are made such that norms
# (and layers with a bias) give 1 or -1 with a small deviation: a relu is on for
# half of the channels and off for the others, and no value is near 0.  (Where no
# activation has a kink, norms give 0 with a deviation of 1.)  Inputs are
# drawn until no two maxima of a pool are close either.  In Inception networks
# some always are: GoogLeNet and Inception v2, which have a pool in every module,
# are taken as they come; channels of Inception v3 are turned off or moved until
# none is.
# SPDX-License-Identifier: LGPL-2.1-or-later
import copy
import inspect
import os
import sys
import warnings

import torch
import torchvision
from torch import nn
from torchvision.ops import StochasticDepth

sys.dont_write_bytecode = True
import oracle_file  # noqa: E402
from oracle_airbench import airbench  # noqa: E402
from oracle_inception_v2 import InceptionV2  # noqa: E402

BATCH, CLASSES, SPREAD, MARGIN = 4, 10, 0.1, 1e-6
AUX = {"googlenet": 0.3, "inception_v3": 0.4}
# Their relus are no modules.
CALL_RELU = (torchvision.models.GoogLeNet, torchvision.models.Inception3)
loss_of = nn.CrossEntropyLoss(label_smoothing=0.1)


class Slim(torchvision.models.ResNet):
    """32 channels in place of 64, twice that for 128, ..."""

    def _make_layer(self, block, planes, *args, **options):
        if planes == 64:
            self.inplanes = 32
            self.conv1 = nn.Conv2d(3, 32, 7, 2, 3, bias=False)
            self.bn1 = nn.BatchNorm2d(32)
        return super()._make_layer(block, planes // 2, *args, **options)


def network(name):
    if name == "airbench":
        return airbench(CLASSES)
    if name == "inception_v2":
        return InceptionV2(CLASSES)
    if name.endswith("-slim"):
        make = getattr(torchvision.models, name[:-5])
        options = inspect.getsource(make)
        groups, width = ((32, 4) if "resnext50" in options else (1, 128))
        m = Slim(torchvision.models.resnet.Bottleneck, [3, 4, 6, 3], CLASSES,
                 groups=groups, width_per_group=width)
        m.fc = nn.Linear(1024, CLASSES)
        return m
    return torchvision.models.get_model(name, num_classes=CLASSES)


def always(names, m):
    """A tensor of 1 and -1; of 1 alone for norms that end a residual block and
    are added to what a relu gave."""
    n = len(m.bias)
    if names[-1] == "bn3" or names[-2:-1] == ["downsample"]:
        return torch.ones(n)
    return torch.randint(2, (n,)) * 2. - 1


def centre(m, x, mean):
    """Scale and shift a layer with a bias so that its values of x are close to
    a mean, channel by channel; what varies little is not scaled up, since that may be
    nothing but rounding."""
    y = m.forward(x) - m.bias.reshape([-1] + [1] * (x.ndim - 2))
    y = y.transpose(0, 1).flatten(1)
    scale = (SPREAD / (y.std(1) + 1e-6)).clamp(max=2)
    m.weight.mul_(scale.reshape([-1] + [1] * (m.weight.ndim - 1)))
    m.bias.copy_(mean - y.mean(1) * scale)


def prepare(m, x):
    """Values as described above, and running statistics that belong to them."""
    layers = [(k.split("."), l) for k, l in m.named_modules()
              if isinstance(l, (nn.Conv2d, nn.Linear, nn.BatchNorm2d))]
    smooth = not isinstance(m, CALL_RELU) and not any(
        type(l) in oracle_file.KINKS for l in m.modules())
    hooks, momentum = [], {}
    for names, l in layers:
        if isinstance(l, nn.BatchNorm2d):
            momentum[l], l.momentum = l.momentum, 1.
            l.weight.uniform_(0.8, 1).mul_(1 if smooth else SPREAD)
            l.bias.uniform_(1, 1.2).mul_(0 if smooth else always(names, l))
        elif l.bias is not None and len(l.bias) != CLASSES and not smooth:
            hooks.append(l.register_forward_pre_hook(
                lambda l, x, mean=always(names, l): centre(l, x[0], mean)))
    m.train()(x)
    for h in hooks:
        h.remove()
    for l, value in momentum.items():
        l.momentum = value
        l.running_mean.add_(0.1 * l.running_var.sqrt())
        l.running_var.mul_(1.1)


# Max pools of Inception v3, 3x3 with stride 2: the module that has one, units
# whose values it sees, and how far two maxima are apart: behind the first layers
# f32 is off by 2e-7, then by 1e-6, of which there are 10^6.
POOLS = [
    ("maxpool1", 3e-6, ["Conv2d_2b_3x3"]),
    ("maxpool2", 1e-5, ["Conv2d_4a_3x3"]),
    ("Mixed_6a", 1e-5, ["Mixed_5d.branch1x1", "Mixed_5d.branch5x5_2",
                        "Mixed_5d.branch3x3dbl_3", "Mixed_5d.branch_pool"]),
    ("Mixed_7a", 1e-5, ["Mixed_6e.branch1x1", "Mixed_6e.branch7x7_3",
                        "Mixed_6e.branch7x7dbl_5", "Mixed_6e.branch_pool"]),
]


def shift(norm, y):
    """Move channels that have a value close to a relu's kink."""
    while (close := (y.abs() < 1e-5).transpose(0, 1).flatten(1).any(1)).any():
        norm.bias[close] += 0.01
        y[:, close] += 0.01


def turn_off(m, margin, units, x):
    """Have the relus of channels whose maxima are close give 0."""
    biases = [m.get_submodule(u + ".bn").bias for u in units]
    while True:
        top = x.unfold(2, 3, 2).unfold(3, 3, 2).flatten(4).topk(2).values
        close = (top[..., 0] - top[..., 1] < margin) & (top[..., 0] != 0)
        off = close.flatten(2).any(2).any(0)
        if not off.any():
            break
        for b, o in zip(biases, off.split([len(b) for b in biases])):
            b[o] -= 2.2
        x[:, off] = (x[:, off] - 2.2).relu()


def part(m, x):
    """Until nothing is close, from the first layer to the last."""
    m.double()
    hooks = [l.register_forward_hook(lambda l, x, y: shift(l, y))
             for l in m.modules() if isinstance(l, nn.BatchNorm2d)]
    hooks += [m.get_submodule(name).register_forward_pre_hook(
        lambda l, x, rest=rest: turn_off(m, *rest, x[0]))
        for name, *rest in POOLS]
    m(x.double())
    for h in hooks:
        h.remove()
    m.float()


def sides(name):
    """Of the images: for a step, and height and width for evaluation."""
    if name == "inception_v3":
        return 299, (75, 90)
    if name == "alexnet":
        return 127, (127, 90)
    # VGG has five pools and takes seconds to draw: with 32, half are good.
    return 32 if name.startswith("vgg") else 48, (48, 70)


def draw(name):
    """A network and samples, without values of a pool that are too close."""
    m = network(name)
    for l in m.modules():
        if isinstance(l, (nn.Dropout, StochasticDepth)):
            l.p = 0.
    side = sides(name)[0]
    x = torch.randn(BATCH, 3, side, side)
    label = torch.randint(CLASSES, (BATCH,))
    with torch.no_grad():
        prepare(m, x)
        if name == "inception_v3":
            part(m, x)
        elif name not in ("googlenet", "inception_v2"):
            watched = copy.deepcopy(m).double()
            oracle_file.watch(watched, MARGIN)
            watched(x.double())
    return m, x, label


def draw_eval(name):
    m = network(name)
    aux = getattr(m, "AuxLogits", None)
    if aux:
        m.AuxLogits = None  # needs large images, and takes no part
    with torch.no_grad():
        prepare(m, torch.randn(2, 3, *sides(name)[1]))
    if aux:
        m.AuxLogits = aux
    return m


def gradients(m, name, x, label):
    m = copy.deepcopy(m).to(x.dtype).train()
    y, *aux = m(x) if name in AUX else [m(x)]
    loss = loss_of(y, label)
    for a in aux:
        loss = loss + AUX[name] * loss_of(a, label)
    loss.backward()
    return loss.detach(), {k: p.grad for k, p in m.named_parameters()}


def distance(got, want):
    norm = want.norm()
    off = (got.double() - want).norm()
    return (off / norm if norm > 0 else off).reshape(1)


def training(m, name, x, label, out):
    loss, want = gradients(m, name, x.double(), label)
    off = {k: [] for k in want}
    for form in (torch.contiguous_format, torch.channels_last):
        for order in (slice(None), [3, 2, 1, 0], [2, 0, 3, 1]):
            _, got = gradients(m.to(memory_format=form), name,
                               x[order].to(memory_format=form), label[order])
            for k, g in got.items():
                off[k].append(distance(g, want[k]))
    m.to(memory_format=torch.contiguous_format)
    out.update({"train/x": oracle_file.nhwc(x), "train/label": label,
                "train/loss": loss.reshape(1)})
    out.update({"train/g/" + k: g for k, g in want.items()})
    out.update({"train/e/" + k: max(e) for k, e in off.items()})


def evaluation(m, name, out):
    x = torch.randn(2, 3, *sides(name)[1])
    with torch.no_grad():
        out["eval/y"] = copy.deepcopy(m).double().eval()(x.double())
    out["eval/x"] = oracle_file.nhwc(x)


def compute(asked):
    name, out = asked.replace("-eval", ""), {}
    if name != asked:
        oracle_file.seed(name)
        m = draw_eval(name)
    else:
        m, x, label = oracle_file.draw(name, lambda: draw(name))
        training(m, name, x, label, out)
    evaluation(m, name, out)
    out.update({"p/" + k: v for k, v in m.state_dict().items()
                if not k.endswith("num_batches_tracked")})
    return {"%s/%s" % (name, k): v for k, v in out.items()}


def main():
    # Slow ones, and what they leave is overwritten.
    nn.init.trunc_normal_ = lambda t, std=1., **o: nn.init.normal_(t, 0, std)
    warnings.simplefilter("ignore")
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    out = {}
    for asked in sys.argv[2].split(","):
        out.update(compute(asked))
    oracle_file.write(sys.argv[1], out)


main()
