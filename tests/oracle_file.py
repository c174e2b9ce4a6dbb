# oracle_file.py - what the scripts share: files, random numbers, kinks
# SPDX-License-Identifier: LGPL-2.1-or-later
import json
import struct
import zlib

import torch
import torch.nn.functional as F
from torch import nn


def seed(name):
    """Random numbers that depend on a name alone."""
    torch.manual_seed(zlib.crc32(name.encode()))


def nhwc(t):
    """Samples as the library has them: channels last."""
    return t.permute(0, 2, 3, 1).contiguous()


def write(path, tensors, integers=False):
    """A dict of tensors: length, JSON header, the data one by one.  All as
    f32, or integers as they are."""
    header, data, at = {}, [], 0
    for name, t in tensors.items():
        whole = integers and t.dtype == torch.int64
        t = t.detach().to(torch.int64 if whole else torch.float32)
        raw = t.contiguous().numpy().tobytes()
        header[name] = {"dtype": "I64" if whole else "F32",
                        "shape": list(t.shape),
                        "data_offsets": [at, at + len(raw)]}
        data.append(raw)
        at += len(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        for raw in data:
            f.write(raw)


# A gradient jumps where a value crosses the kink of an activation, and where
# two values of a window are the largest.  What is computed in f64 can be
# compared with f32 only away from there.

KINKS = {nn.ReLU: [0], nn.ReLU6: [0, 6], nn.Hardswish: [-3, 3],
         nn.Hardsigmoid: [-3, 3]}


class Close(Exception):
    """A value is closer to a kink than the margin."""


def check_kinks(module, x, margin):
    """An exact 0 is one in f32 too: it comes from another relu."""
    x = x[x != 0]
    for k in KINKS[type(module)]:
        if len(x) and (x - k).abs().min() < margin:
            raise Close


def check_maxima(module, x, margin):
    """The two largest values of a window; two zeros are exact again."""
    pair = (lambda v: v if isinstance(v, tuple) else (v, v))
    (kh, kw), (sh, sw) = pair(module.kernel_size), pair(module.stride)
    ph, pw = pair(module.padding)
    x = F.pad(x, (pw, pw + sw, ph, ph + sh), value=-1e9)
    w = x.unfold(2, kh, sh).unfold(3, kw, sw).flatten(4)
    top = w.topk(2, dim=4).values
    gap = (top[..., 0] - top[..., 1])[(top[..., 1] > -1e8) & (top[..., 0] != 0)]
    if len(gap) and gap.min() < margin:
        raise Close


def watch(module, margin):
    """Have the module raise Close when it is run."""
    for m in module.modules():
        if type(m) in KINKS:
            m.register_forward_pre_hook(
                lambda m, x: check_kinks(m, x[0], margin))
        if isinstance(m, nn.MaxPool2d):
            m.register_forward_pre_hook(
                lambda m, x: check_maxima(m, x[0], margin))


def draw(name, compute):
    """compute() with random numbers by name, until nothing is close."""
    for attempt in range(200):
        seed("%s %d" % (name, attempt))
        try:
            return compute()
        except Close:
            pass
    raise SystemExit("%s: every input is close to a kink" % name)
