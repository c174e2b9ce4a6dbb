# oracle_models.py FILE - MODEL/NAME: the shapes of torchvision's tensors
#
# MODEL#: how many parameters its documentation says, in thousands and the rest
# MODEL@: size of its images, their short side before the crop, 1 for bicubic,
#         mean of the first channel, deviation of the last
# MODEL^NAME: mean, deviation and largest value that a tensor begins with
# SPDX-License-Identifier: LGPL-2.1-or-later
import inspect
import sys
import warnings

import torch
import torchvision
from torch import nn
from torchvision.transforms import InterpolationMode

sys.dont_write_bytecode = True
import oracle_file  # noqa: E402
from oracle_airbench import airbench  # noqa: E402
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
        first = torchvision.models.get_model_weights(name).IMAGENET1K_V1
        out[name + "@"] = images(name, first.transforms())
        put(name, torchvision.models.get_model(name), out)
    put("airbench", airbench(), out)
    put("inception_v2", InceptionV2(), out)
    oracle_file.write(sys.argv[1], out)


def images(name, t):
    bicubic = t.interpolation == InterpolationMode.BICUBIC
    builder = inspect.getsource(torchvision.models.get_model_builder(name))
    # With weights, it turns the values into (x - 0.5) / 0.5.
    centred = "transform_input" in builder
    return torch.tensor([t.crop_size[0], t.resize_size[0], bicubic,
                         0.5 if centred else t.mean[0],
                         0.5 if centred else t.std[2]])


def put(name, m, out):
    for k, v in m.state_dict().items():
        if not k.endswith("num_batches_tracked"):
            out["%s/%s" % (name, k)] = torch.tensor(v.shape)


main()
