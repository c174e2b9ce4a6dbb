# oracle_models.py FILE - MODEL/NAME: the shapes of torchvision's tensors
# SPDX-License-Identifier: LGPL-2.1-or-later
import sys

import torch
import torchvision
from torch import nn

sys.dont_write_bytecode = True
import oracle_file  # noqa: E402


def main():
    # Their values do not matter, and take time.
    for kind in ("kaiming_normal_", "constant_", "normal_"):
        setattr(nn.init, kind, lambda t, *a, **o: t)
    nn.Linear.reset_parameters = nn.Conv2d.reset_parameters = lambda m: None
    out = {}
    for depth in (18, 34, 50, 101, 152):
        name = "resnet%d" % depth
        m = getattr(torchvision.models, name)()
        for k, v in m.state_dict().items():
            if not k.endswith("num_batches_tracked"):
                out["%s/%s" % (name, k)] = torch.tensor(v.shape)
    oracle_file.write(sys.argv[1], out)


main()
