# oracle_infer.py make DIR | check DIR FILE flip|none | table DIR FILE CSV
#
# make   in DIR: images as PNG in folders, weights of torchvision's resnet18
#        (averages of its batch norms made up), classes.txt, config.txt
# check  FILE, which imagenet infer --format jsonl wrote, against torchvision
# table  CSV, which imagenet eval --per-class wrote, against FILE
# SPDX-License-Identifier: LGPL-2.1-or-later
import csv
import glob
import json
import os
import sys

import torch
import torchvision
from PIL import Image
from torchvision import transforms

sys.dont_write_bytecode = True
import oracle_file  # noqa: E402

CLASSES = ["a cat, sitting", 'the "dog"', "c\u00f4te", "d"]
SIZE = 32


def network():
    oracle_file.seed("infer")
    m = torchvision.models.resnet18(num_classes=len(CLASSES)).eval()
    for n in m.modules():
        if isinstance(n, torch.nn.BatchNorm2d):
            n.running_mean.normal_(0, 0.1)
            n.running_var.uniform_(0.5, 1.5)
    m.fc.weight.data *= 20  # answers that differ
    return m


def pixels(index):
    """Large squares: neither a single colour nor noise."""
    small = torch.randint(256, (4, 4, 3), dtype=torch.uint8,
                          generator=torch.Generator().manual_seed(index))
    return small.repeat_interleave(8, 0).repeat_interleave(8, 1).numpy()


def make(top):
    for i in range(12):
        folder = os.path.join(top, "val", "c%d" % (i % len(CLASSES)))
        os.makedirs(folder, exist_ok=True)
        Image.fromarray(pixels(i)).save(os.path.join(folder, "%02d.png" % i))
    tensors = {k: v for k, v in network().state_dict().items()
               if not k.endswith("num_batches_tracked")}
    oracle_file.write(os.path.join(top, "weights.safetensors"), tensors)
    with open(os.path.join(top, "classes.txt"), "w", encoding="utf-8") as f:
        f.write("".join(c + "\n" for c in CLASSES))
    with open(os.path.join(top, "config.txt"), "w") as f:
        f.write("img-size = 32\nval-resize-size = 32\nmodel = resnet18\n"
                "num-classes = 4\n")


def answers(m, path, flip):
    to_x = transforms.Compose([
        transforms.ToTensor(), transforms.Normalize([0.485, 0.456, 0.406],
                                                    [0.229, 0.224, 0.225])])
    x = to_x(Image.open(path).convert("RGB"))[None]
    with torch.no_grad():
        y = m(x)
        if flip:
            y = (y + m(x.flip(3))) / 2
    return y.softmax(1)[0]


def check(top, file, flip):
    """18 layers of f32 in another order of summation: probabilities are off
    by less than 1e-4, of which the file has six digits."""
    m, worst, seen = network(), 0, []
    for line in open(file, encoding="utf-8"):
        got = json.loads(line)
        seen.append(got["path"])
        want, order = answers(m, got["path"], flip).sort(descending=True)
        for g, p, k in zip(got["classes"], want.tolist(), order.tolist()):
            assert g["class"] == k and g["name"] == CLASSES[k], (g, k)
            worst = max(worst, abs(g["probability"] - p))
    assert seen == sorted(glob.glob(os.path.join(top, "val", "*", "*"))), seen
    assert worst < 1e-4, worst


def table(file, path):
    """Counted once more, from the answers and the names of the folders."""
    rows = list(csv.DictReader(open(path, newline="", encoding="utf-8")))
    for c, row in enumerate(rows):
        mine = [json.loads(line)["classes"][0]["class"] for line in open(file)
                if "/c%d/" % c in json.loads(line)["path"]]
        wrong = [k for k in mine if k != c]
        worst = max(sorted(set(wrong)), key=wrong.count) if wrong else ""
        assert row["class"] == str(c) and row["name"] == "c%d" % c, row
        assert int(row["n"]) == len(mine) == 3, row
        right = 100 * (len(mine) - len(wrong)) / len(mine)
        assert abs(float(row["top1"]) - right) < 0.006, row
        assert row["top5"] == "100.00", row
        assert row["confused_with"] == str(worst), row
        assert int(row["confused_n"]) == wrong.count(worst), row
    assert len(rows) == len(CLASSES)


def main():
    torch.set_num_threads(1)
    if sys.argv[1] == "make":
        make(sys.argv[2])
    elif sys.argv[1] == "check":
        check(sys.argv[2], sys.argv[3], sys.argv[4] == "flip")
    else:
        table(sys.argv[3], sys.argv[4])


main()
