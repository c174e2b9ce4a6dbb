# oracle_weights.py FILE DIR - torchvision's ResNet-18 and our recipes
#
# DIR has weights.safetensors of a ResNet-18 with 10 classes.  It goes through
# the recipe of docs/weights.md into weights.pth, which torchvision has to take
# strictly: ours/NAME are its tensors then.  model.pth with random weights goes
# the other way into model.safetensors: theirs/NAME, and into two files with a
# list, as transformers writes a large model.  DIR/types.safetensors has one
# tensor in each of the types that are read; types/NAME are their values.
# SPDX-License-Identifier: LGPL-2.1-or-later
import json
import os
import re
import sys

import torch
import torchvision
from safetensors.torch import save_file

sys.dont_write_bytecode = True
import oracle_file  # noqa: E402


def recipes():
    """The Python of docs/weights.md."""
    path = os.path.join(os.path.dirname(__file__), "..", "docs", "weights.md")
    with open(path) as f:
        return re.findall(r"```python\n(.*?)```", f.read(), re.S)


def tensors(part, m):
    return {"%s/%s" % (part, k): v.clone() for k, v in m.state_dict().items()
            if not k.endswith("num_batches_tracked")}


def save_parts(state):
    """model-00001-of-00002.safetensors, ..., and which tensor is in which."""
    names = sorted(state)
    half, where = len(names) // 2, {}
    for i, part in enumerate((names[:half], names[half:])):
        name = "model-%05d-of-00002.safetensors" % (i + 1)
        save_file({k: state[k] for k in part}, name, {"format": "pt"})
        where.update({k: name for k in part})
    size = sum(v.numel() * v.element_size() for v in state.values())
    with open("model.safetensors.index.json", "w") as f:
        json.dump({"metadata": {"total_size": size}, "weight_map": where}, f,
                  indent=2)


def main():
    file, folder = sys.argv[1:]
    code = recipes()
    os.chdir(folder)
    torch.manual_seed(1)
    m = torchvision.models.resnet18(num_classes=10)
    for v in m.state_dict().values():
        v.copy_((torch.randn(v.shape) * 100).to(v.dtype))
    out = tensors("theirs", m)
    torch.save(m.state_dict(), "model.pth")
    save_parts(m.state_dict())
    for c in code:
        exec(c, {})
    m.load_state_dict(torch.load("weights.pth"), strict=True)
    out.update(tensors("ours", m))

    x = torch.randn(3, 2) * 100
    types = {"f32": x, "f16": x.half(), "bf16": x.bfloat16(),
             "f64": x.double(), "i64": x.long()}
    save_file(types, "types.safetensors")
    out.update({"types/" + k: v.float() for k, v in types.items()})
    oracle_file.write(file, out)


main()
