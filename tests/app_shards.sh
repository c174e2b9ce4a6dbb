#!/bin/sh
# app_shards.sh - images in tar files: written, checked, trained on
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Python's tarfile says what is in a tar file and where.
. "$srcdir/tests/tap.sh"

data=$tmp/data
"$imagenet" data synth --output "$data" --classes 3 --train-count 50 \
    --val-count 9 --size 32 >/dev/null || exit 99
packed=$tmp/packed
run "$imagenet" data pack "$data" --output "$packed" --shard-samples 7 -j 3
if ! grep -q '^#define HAVE_ARCHIVE 1' "$builddir/config.h"; then
    exits 74 "without libarchive, nothing is packed"
    complains "install libarchive" "with what to install"
    done_testing
fi
exits 0 "a data set is packed"
says "^packed split=train images=50 " "it says how many images"
[ "$(ls "$packed/train" | tr '\n' ' ')" = "000000.tar 000001.tar 000002.tar \
000003.tar 000004.tar 000005.tar 000006.tar 000007.tar classes.txt index.csv " ]
point $? "with so many in each file"
[ "$(ls "$packed" | tr '\n' ' ')" = "train val " ]
point $? "nothing unfinished is left"
run "$imagenet" data pack "$data" --output "$tmp/again" --shard-samples 7 -j 1
diff -r "$packed" "$tmp/again" >/dev/null
point $? "one thread writes the same bytes"
run "$imagenet" data pack "$data" --output "$packed"
exits 2 "a folder that exists is left alone"
complains "packed/train: exists: remove it or choose another" "it is named"

python=${PYTHON:-/usr/bin/python3}
cat >"$tmp/look.py" <<'EOF'
import csv, os, sys, tarfile

def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff

data, packed, split = sys.argv[1:]
folder = os.path.join(packed, split)
classes = open(os.path.join(folder, "classes.txt")).read().splitlines()
synsets = dict(line.rstrip("\n").split(" ", 1) for line in
               open(os.path.join(data, "LOC_synset_mapping.txt")))
tars, names = {}, set()
root = os.path.join(data, "ILSVRC/Data/CLS-LOC")
for row in csv.DictReader(open(os.path.join(folder, "index.csv"))):
    path = os.path.join(folder, row["shard"])
    if path not in tars:
        t = tarfile.open(path)
        tars[path] = {m.offset_data: (m, t) for m in t}
    member, t = tars[path][int(row["offset"])]
    image = t.extractfile(member).read()
    label = t.extractfile(os.path.splitext(member.name)[0] + ".cls").read()
    assert len(image) == int(row["size"]) and label.decode() == row["label"]
    assert crc32c(image) == int(row["crc32c"], 16)
    assert member.name.endswith(".jpeg") and member.mtime == 0
    original = [d for d, _, f in os.walk(data)
                if os.path.basename(row["name"]) in f]
    with open(os.path.join(original[0], os.path.basename(row["name"])),
              "rb") as f:
        assert f.read() == image
    if split == "train":
        assert synsets[os.path.basename(original[0])] == \
            classes[int(row["label"])]
    names.add(row["name"])
files = sum(len(f) for d, _, f in os.walk(os.path.join(root, split)))
assert len(names) == files, (len(names), files)
members = sum(len(m) for m in tars.values())
assert members == 2 * files, (members, files)
EOF
if "$python" -c 'import tarfile' 2>/dev/null; then
    run "$python" "$tmp/look.py" "$data" "$packed" train
    exits 0 "each image is where the index says, with its class and checksum"
    run "$python" "$tmp/look.py" "$data" "$packed" val
    exits 0 "those of validation too"
else
    skip 2 "no python3"
fi

run "$imagenet" data check "$packed"
exits 0 "data check reads it"
grep ^class "$tmp/out" >"$tmp/classes"
run "$imagenet" data check "$data"
grep ^class "$tmp/out" | cmp - "$tmp/classes"
point $? "classes and their numbers are the same"

run "$imagenet" data unpack "$packed" --output "$tmp/unpacked"
exits 0 "it is unpacked again"
[ "$(find "$tmp/unpacked/train" -type f | wc -l)" = 50 ]
point $? "into as many files"
(cd "$data/ILSVRC/Data/CLS-LOC/train" && find . -name '*.JPEG' -exec md5sum {} +) |
    sed 's,\./.*/,,' | sort >"$tmp/sums"
(cd "$tmp/unpacked/train" && find . -name '*.JPEG' -exec md5sum {} +) |
    sed 's,\./.*/,,' | sort | cmp - "$tmp/sums"
point $? "with the same names and bytes"
run "$imagenet" data check "$tmp/unpacked"
says "^class [0-9] striped disc: 17$" "in a folder for each class"
run "$imagenet" data unpack "$packed" --output "$tmp/unpacked"
exits 2 "a folder that exists is left alone"
complains "unpacked/train: cannot be created: File exists" "it is named"

# ---- resized ----

# Pillow has another decoder of libjpeg-turbo perhaps, so both are decoded: a
# grey level on average is less than their quality loses.
resized=$tmp/resized
run "$imagenet" data pack "$data" --output "$resized" --resize 24 \
    --quality 95 --shard-samples 7 -j 2
exits 0 "images are resized"
run "$imagenet" data pack "$data" --output "$tmp/again24" --resize 24 \
    --quality 95 --shard-samples 7 -j 1
diff -r "$resized" "$tmp/again24" >/dev/null
point $? "one thread writes the same bytes"
cat >"$tmp/pillow.py" <<'EOF'
import csv, io, os, sys
import numpy
from PIL import Image

def images(folder):
    for row in csv.DictReader(open(os.path.join(folder, "index.csv"))):
        with open(os.path.join(folder, row["shard"]), "rb") as f:
            f.seek(int(row["offset"]))
            yield row["name"], row["label"], f.read(int(row["size"]))

def decoded(data):
    return numpy.asarray(Image.open(io.BytesIO(data)).convert("RGB"), int)

packed, small = sys.argv[1:]
resized = 0
for a, b in zip(images(packed), images(small)):
    assert a[:2] == b[:2]
    image = Image.open(io.BytesIO(a[2])).convert("RGB")
    short = min(image.size)
    if short <= 24:
        assert a == b
        continue
    size = tuple(24 * side // short for side in image.size)
    out = io.BytesIO()
    image.resize(size, Image.BILINEAR).save(out, "JPEG", quality=95)
    want, got = decoded(out.getvalue()), decoded(b[2])
    assert want.shape == got.shape
    assert abs(want - got).mean() < 1
    resized += 1
assert resized > 20, resized
EOF
if "$python" -c 'import numpy, PIL' 2>/dev/null; then
    run "$python" "$tmp/pillow.py" "$packed/train" "$resized/train"
    exits 0 "as Pillow resizes and writes them"
    mkdir -p "$tmp/mixed/a" "$tmp/mixed/b"
    "$python" -c 'import sys; from PIL import Image
for name, size in ("a/small", 20), ("b/large", 40):
    Image.new("RGB", (size, size)).save(f"{sys.argv[1]}/{name}.png")' \
        "$tmp/mixed"
    run "$imagenet" data pack "$tmp/mixed" --output "$tmp/few" --resize 24
    [ "$(cut -d, -f6 "$tmp/few/train/index.csv" | sort | tr '\n' ' ')" = \
        "a/small.png b/large.png.jpg name " ]
    point $? "a PNG that becomes a JPEG is named so"
else
    skip 2 "no Pillow"
fi
run "$imagenet" data check "$resized"
exits 0 "data check reads them"

# ---- Parquet ----

# The command of docs/data.md, in a folder with what it names.
sed -n "/^    python3 -c 'import os, sys, pyarrow/,/train-\*.parquet\$/s/^    //p" \
    "$srcdir/docs/data.md" >"$tmp/convert.sh"
sed "s/^python3 -c '//; s/'.*//" "$tmp/convert.sh" >"$tmp/convert.py"
if "$python" -c 'import ast' 2>/dev/null; then
    run "$python" -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' \
        "$tmp/convert.py"
    exits 0 "the conversion of Parquet files in the manual is valid Python"
else
    skip 1 "no python3"
fi
cat >"$tmp/parquet.py" <<'EOF'
import glob, os, sys
import pyarrow, pyarrow.parquet

folder, image = sys.argv[1:]
rows = [{"image": {"bytes": open(path, "rb").read(), "path": None},
         "label": i % 3}
        for i, path in enumerate(sorted(glob.glob(image)))]
os.makedirs(os.path.join(folder, "data"))
half = len(rows) // 2
for i, part in enumerate((rows[:half], rows[half:])):
    pyarrow.parquet.write_table(
        pyarrow.Table.from_pylist(part),
        os.path.join(folder, f"data/train-0000{i}-of-00002.parquet"))
os.chdir(folder)
assert os.system("PATH=%s:$PATH sh ../convert.sh" %
                 os.path.dirname(sys.executable)) == 0
for i, row in enumerate(rows):
    with open(f"imagenet/train/{i % 3:04d}/{i:08d}.jpg", "rb") as f:
        assert f.read() == row["image"]["bytes"]
assert len(glob.glob("imagenet/train/*/*")) == len(rows) > 3
EOF
if "$python" -c 'import pyarrow' 2>/dev/null; then
    run "$python" "$tmp/parquet.py" "$tmp/hub" \
        "$data/ILSVRC/Data/CLS-LOC/train/*/*.JPEG"
    exits 0 "it copies images from Parquet files byte for byte"
    run "$imagenet" data check "$tmp/hub/imagenet"
    says "^checked split=train images=50 bad=0 " "which are then found"
else
    skip 2 "no pyarrow"
fi

# ---- training ----

net="--model resnet9 --width 4 --img-size 16 -b 8 --sub-batch 4 --lanes 2
    --epochs 3 --lr 0.01 --no-val"

# trains SENTENCE OPTION...: to the weights of the first one
trains()
{
    sentence=$1
    shift
    rm -rf "$tmp/run"
    # shellcheck disable=SC2086
    run "$imagenet" train $net --output "$tmp/run" "$@"
    exits 0 "$sentence"
    [ -e "$tmp/want" ] || cp "$tmp/run/weights.safetensors" "$tmp/want"
    cmp "$tmp/want" "$tmp/run/weights.safetensors"
    point $? "the weights are the same"
}

trains "training on shards" "$packed" -j 1
trains "with two workers" "$packed" -j 2
trains "with decoded images in memory" "$packed" -j 2 --cache memory
says "^cache images=50 MB=[0-9.]* hits=6[0-9.]*%$" "and says how many were there"
says "^final .* cache-hits=6[0-9.]*% " "at the end"
grep -q '"step":15,.*"cache_hits":0\.[0-9]' "$tmp/run/metrics.jsonl"
point $? "and at each step"
trains "with room for some of them" "$packed" -j 2 --cache memory:40k
says "^cache images=[1-9][0-9]* MB=0.0 hits=[1-3][0-9.]*%$" "which stay"
trains "with decoded images on a disk" "$packed" -j 2 --cache "disk:$tmp/pixels:1M"
says "^cache images=50 MB=[0-9.]* hits=6[0-9.]*%$" "which says the same"
trains "another run with them" "$packed" -j 1 --cache "disk:$tmp/pixels"
says "^cache images=0 MB=0.0 hits=100.0%$" "finds them all"
for wrong in disk disk: disk:x:0 disk:x:8Q memories; do
    run "$imagenet" train "$packed" --cache "$wrong"
    exits 2 "--cache $wrong"
    complains "cache $wrong: expected memory, or disk:DIR" "is refused"
done
mv "$tmp/want" "$tmp/once"
trains "with each image three times" "$packed" -j 1 --ra-sampler
trains "with two workers" "$packed" -j 2 --aug-repeats 3
! cmp -s "$tmp/want" "$tmp/once"
point $? "which are others than without"
mv "$tmp/once" "$tmp/want"
run "$imagenet" train "$packed" --aug-repeats 3 --augment none
exits 2 "there is nothing to repeat without augmentation"
mkdir "$tmp/bare"
cp "$packed"/train/*.tar "$packed/train/classes.txt" "$tmp/bare"
trains "without their index" "$tmp/bare/{000000..000007}.tar" -j 2
rm -rf "$tmp/run"
# shellcheck disable=SC2086
run "$imagenet" train $net "$packed" --ckpt-every 5it --output "$tmp/run"
rm -rf "$tmp/run/ckpt/latest" "$tmp"/run/ckpt/step-*2[0-9] "$tmp/run/weights"*
# shellcheck disable=SC2086
run "$imagenet" train $net "$packed" --output "$tmp/run"
says "^resume: step=15 " "a run resumes in the middle of its third epoch"
cmp "$tmp/want" "$tmp/run/weights.safetensors"
point $? "the weights are the same"
run "$imagenet" eval "$packed" --weights "$tmp/run/weights.safetensors"
exits 0 "eval reads shards"
value top1 >"$tmp/top1"
run "$imagenet" eval "$data" --weights "$tmp/run/weights.safetensors"
[ "$(value top1)" = "$(cat "$tmp/top1")" ]
point $? "with the result for the folders"

# ---- damage ----

# damaged SENTENCE REGEX: data check names one bad image
damaged()
{
    run "$imagenet" data check "$tmp/again"
    exits 65 "$1"
    says "^bad .*again/train/000003.tar: .*n9000000[0-9]_[0-9]*.JPEG: $2" \
        "the image is named"
}

printf X | dd of="$tmp/again/train/000003.tar" bs=1 seek=700 conv=notrunc \
    2>/dev/null
damaged "one byte that changed" "is damaged: its CRC-32C is [0-9a-f]*, and"
[ "$(grep -c ^bad "$tmp/out")" = 1 ]
point $? "and no other"
truncate -s 3000 "$tmp/again/train/000003.tar"
damaged "a shard that ends early" "has 3000 bytes, and [0-9]* from byte"
rm "$tmp/again/train/000003.tar"
damaged "a shard that is missing" "cannot be opened: No such file or directory"
rm "$tmp/again/train/classes.txt"
run "$imagenet" data check "$tmp/again"
complains "classes.txt: cannot be opened" "classes that are missing"

# An unreadable file ends it, and nothing is left.
one=$(find "$data/ILSVRC/Data/CLS-LOC/train" -name '*_3.JPEG' | head -n 1)
: >"$one"
run "$imagenet" data pack "$data" --output "$tmp/bad"
exits 65 "an empty file cannot be packed"
complains "_3.JPEG: is empty" "it is named"
[ -z "$(ls "$tmp/bad")" ]
point $? "nothing of it is left"

done_testing
