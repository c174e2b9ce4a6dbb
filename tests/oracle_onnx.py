# oracle_onnx.py FILE DIR - what others make of the models DIR/NAME.onnx
#
# Each goes through the onnx package's checker, with inference of all shapes.
# Then it is run on NAME.x, the tensor x of a safetensors file, channels last:
# NAME/torch is what the operators are by their description, in PyTorch and f64,
# NAME/runtime what onnxruntime makes of them, if that is there.  Images come
# out channels last again.
# SPDX-License-Identifier: LGPL-2.1-or-later
import glob
import importlib.util
import json
import os
import struct
import sys

import onnx
import torch
import torch.nn.functional as F
from onnx import numpy_helper

sys.dont_write_bytecode = True
import oracle_file  # noqa: E402

onnxruntime = None
if importlib.util.find_spec("onnxruntime"):
    import onnxruntime


def read_x(path):
    with open(path, "rb") as f:
        n = struct.unpack("<Q", f.read(8))[0]
        t = json.loads(f.read(n))["x"]
        x = torch.frombuffer(bytearray(f.read()), dtype=torch.float32)
    return x.reshape(t["shape"]).permute(0, 3, 1, 2)


# ---- the operators, from docs/Operators.md ----------------------------------


def padded(x, pads, value):
    top, left, bottom, right = pads
    return F.pad(x, (left, right, top, bottom), value=value)


def conv(a, x, w, b=None):
    return F.conv2d(padded(x, a["pads"], 0), w, b, a["strides"],
                    0, a["dilations"], a["group"])


def max_pool(a, x):
    return F.max_pool2d(padded(x, a["pads"], -1e30), a["kernel_shape"],
                        a["strides"])


def average_pool(a, x):
    """Sums by windows, divided by the pixels that count."""
    inside = torch.ones_like(x)
    total, count = (F.avg_pool2d(padded(v, a["pads"], 0), a["kernel_shape"],
                                 a["strides"], divisor_override=1)
                    for v in (x, inside))
    if a.get("count_include_pad", 0):
        count = torch.full_like(count, a["kernel_shape"][0] *
                                a["kernel_shape"][1])
    return total / count


def gemm(a, x, w, b=None):
    y = x @ (w.T if a.get("transB", 0) else w)
    return y if b is None else y + b


def norm(a, x, scale, bias, mean, var):
    return F.batch_norm(x, mean, var, scale, bias, eps=a["epsilon"])


def pad(a, x, pads):
    p = [int(v) for v in pads]
    assert p[0] == p[1] == p[4] == p[5] == 0
    return padded(x, (p[2], p[3], p[6], p[7]), 0)


def reshape(a, x, shape):
    return x.reshape([x.shape[i] if s == 0 else int(s)
                      for i, s in enumerate(shape)])


def unsqueeze(a, x, axes):
    for i in axes:
        x = x.unsqueeze(int(i))
    return x


OPERATORS = {
    "Add": lambda a, x, y: x + y,
    "AveragePool": average_pool,
    "BatchNormalization": norm,
    "Clip": lambda a, x, low, high: x.clamp(low.item(), high.item()),
    "Concat": lambda a, *x: torch.cat(x, a["axis"]),
    "Conv": conv,
    "Erf": lambda a, x: torch.erf(x),
    "Flatten": lambda a, x: x.flatten(a.get("axis", 1)),
    "Gemm": gemm,
    "GlobalAveragePool": lambda a, x: x.mean((2, 3), keepdim=True),
    "HardSigmoid": lambda a, x: (a["alpha"] * x + a.get("beta", 0.5)).clamp(
        0, 1),
    "HardSwish": lambda a, x: x * (x / 6 + 0.5).clamp(0, 1),
    "Identity": lambda a, x: x,
    "MatMul": lambda a, x, y: x @ y,
    "MaxPool": max_pool,
    "Mul": lambda a, x, y: x * y,
    "Pad": pad,
    "Relu": lambda a, x: x.clamp(min=0),
    "Reshape": reshape,
    "Sigmoid": lambda a, x: torch.sigmoid(x),
    "Tanh": lambda a, x: torch.tanh(x),
    "Transpose": lambda a, x: x.permute(a["perm"]),
    "Unsqueeze": unsqueeze,
}


def constant(t):
    v = torch.from_numpy(numpy_helper.to_array(t).copy())
    return v.double() if v.is_floating_point() else v


def run(model, x):
    values = {t.name: constant(t) for t in model.graph.initializer}
    values["input"] = x.double()
    for n in model.graph.node:
        attributes = {a.name: onnx.helper.get_attribute_value(a)
                      for a in n.attribute}
        values[n.output[0]] = OPERATORS[n.op_type](
            attributes, *(values[i] for i in n.input))
    return values["output"]


# ---- the models -------------------------------------------------------------


def described(model, x, y):
    """Whether input and output are as the model describes them, of any batch."""
    for info, t in (model.graph.input[0], x), (model.graph.output[0], y):
        dims = info.type.tensor_type.shape.dim
        if dims[0].dim_param != "N" or [d.dim_value for d in dims[1:]] != list(
                t.shape[1:]):
            raise SystemExit("%s is not as the model describes it" % info.name)


def last(y):
    return oracle_file.nhwc(y) if y.dim() == 4 else y


def main():
    file, folder = sys.argv[1:]
    out = {}
    for path in sorted(glob.glob(os.path.join(folder, "*.onnx"))):
        name = os.path.basename(path)[:-5]
        model = onnx.load(path)
        onnx.checker.check_model(model, full_check=True)
        x = read_x(path[:-4] + "x")
        if len(model.graph.input[0].type.tensor_type.shape.dim) == 2:
            x = x.flatten(1)
        y = run(model, x)
        described(model, x, y)
        out[name + "/torch"] = last(y)
        if onnxruntime:
            options = onnxruntime.SessionOptions()
            options.log_severity_level = 3
            options.intra_op_num_threads = 1
            session = onnxruntime.InferenceSession(
                path, options, providers=["CPUExecutionProvider"])
            y = session.run(None, {"input": x.contiguous().numpy()})[0]
            out[name + "/runtime"] = last(torch.from_numpy(y))
    oracle_file.write(file, out)


main()
