# oracle_trace.py FILE DEVICE - steps of a small ResNet, on "cuda" or "cpu"
#
#   trace/p/NAME x label   a ResNet-18 of 8 channels, 80 samples
#   trace/loss             losses of 20 steps in strict f32 on the device
#   trace/off              how far runs that ought to be the same are apart
# SPDX-License-Identifier: LGPL-2.1-or-later
import copy
import sys

import torch
from torch import nn

sys.dont_write_bytecode = True
import oracle_file  # noqa: E402
import torch_resnet  # noqa: E402

# Small steps: with large ones a relu that flips soon makes another run of it.
STEPS, BATCH, CLASSES, RATE = 20, 16, 10, 0.003


def steps(m, x, label, dtype, device, perturbation=0):
    """Losses, over the samples again and again."""
    m = copy.deepcopy(m).to(device, dtype).train()
    x, label = x.to(device, dtype), label.to(device)
    with torch.no_grad():
        for p in m.parameters():
            p.add_(perturbation * p * torch.randn(p.shape).to(p))
    o = torch.optim.SGD(m.parameters(), RATE, 0.9, weight_decay=1e-4)
    loss_of = nn.CrossEntropyLoss(label_smoothing=0.1)
    losses = []
    for k in range(STEPS):
        i = k * BATCH % len(x)
        o.zero_grad()
        loss = loss_of(m(x[i:i + BATCH]), label[i:i + BATCH])
        loss.backward()
        o.step()
        losses.append(loss.item())
    return torch.tensor(losses, dtype=torch.float64)


def main(path, device):
    # No TF32: f32 is f32, as DDP_TF32 says it is by default here.
    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.deterministic = True
    oracle_file.seed("trace")
    m = torch_resnet.ResNet(18, CLASSES, 8, small_stem=True)
    x, label = torch.randn(80, 3, 16, 16), torch.randint(CLASSES, (80,))
    out = {"trace/p/" + k: v for k, v in m.state_dict().items()
           if "num_batches" not in k}
    out["trace/x"], out["trace/label"] = oracle_file.nhwc(x), label
    got = steps(m, x, label, torch.float32, device)
    true = steps(m, x, label, torch.float64, device)
    off = (got - true).abs()
    for _ in range(3):
        near = steps(m, x, label, torch.float64, device, 1e-6)
        off = torch.maximum(off, (near - true).abs())
    out["trace/loss"], out["trace/off"] = got, off
    oracle_file.write(path, out)


main(*sys.argv[1:])
