# oracle_weights.py FILE DIR - torchvision's ResNet-18 and the README's recipes
#
# DIR has weights.safetensors of a ResNet-18 with 10 classes.  It goes through
# the recipe of the README into weights.pth, which torchvision has to take
# strictly: ours/NAME are its tensors then.  model.pth with random weights goes
# the other way into model.safetensors: theirs/NAME.  DIR/types.safetensors has
# one tensor in each of the types that are read; types/NAME are their values.
# SPDX-License-Identifier: LGPL-2.1-or-later
import os
import re
import sys

import torch
import torchvision
from safetensors.torch import save_file

sys.dont_write_bytecode = True
import oracle_file  # noqa: E402


def recipes():
    """The Python of the README."""
    path = os.path.join(os.path.dirname(__file__), "..", "README.md")
    with open(path) as f:
        return re.findall(r"```python\n(.*?)```", f.read(), re.S)


def tensors(part, m):
    return {"%s/%s" % (part, k): v.clone() for k, v in m.state_dict().items()
            if not k.endswith("num_batches_tracked")}


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
