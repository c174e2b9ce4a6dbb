# oracle_models.py FILE - MODEL/NAME: the shapes of torchvision's tensors
#
# MODEL#: how many parameters its documentation says, in thousands and the rest
# MODEL^NAME: mean, deviation and largest value that a tensor begins with
# SPDX-License-Identifier: LGPL-2.1-or-later
import sys
import warnings

import torch
import torchvision
from torch import nn

sys.dont_write_bytecode = True
import oracle_file  # noqa: E402
from oracle_inception_v2 import InceptionV2  # noqa: E402

FAMILIES = ("alexnet", "densenet", "efficientnet", "googlenet", "inception_v3",
            "mobilenet", "resnet", "resnext", "squeezenet", "vgg",
            "wide_resnet")


def begin(name, out):
    oracle_file.seed(name)
    for k, v in torchvision.models.get_model(name).named_parameters():
        out["%s^%s" % (name, k)] = torch.tensor(
            [v.mean(), v.std(unbiased=False), v.abs().max()])


def main():
    out = {}
    torch.set_num_threads(1)
    for name in ("densenet121", "efficientnet_b0", "mobilenet_v3_small",
                 "resnext50_32x4d", "squeezenet1_1"):
        begin(name, out)
    # Their values do not matter, and take time.
    for kind in ("constant_", "kaiming_normal_", "kaiming_uniform_", "normal_",
                 "ones_", "trunc_normal_", "uniform_", "zeros_"):
        setattr(nn.init, kind, lambda t, *a, **o: t)
    warnings.simplefilter("ignore")
    for name in torchvision.models.list_models(torchvision.models):
        if not name.startswith(FAMILIES):
            continue
        weights = torchvision.models.get_model_weights(name).DEFAULT
        n = weights.meta["num_params"]
        out[name + "#"] = torch.tensor([n // 1000, n % 1000])
        put(name, torchvision.models.get_model(name), out)
    put("inception_v2", InceptionV2(), out)
    oracle_file.write(sys.argv[1], out)


def put(name, m, out):
    for k, v in m.state_dict().items():
        if not k.endswith("num_batches_tracked"):
            out["%s/%s" % (name, k)] = torch.tensor(v.shape)


main()
