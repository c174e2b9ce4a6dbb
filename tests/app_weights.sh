#!/bin/sh
# app_weights.sh - imagenet with weights of other networks, and imagenet export
# SPDX-License-Identifier: LGPL-2.1-or-later
. "$srcdir/tests/tap.sh"

# synth CLASSES: a data set in $tmp/CLASSES
synth()
{
    "$imagenet" data synth --output "$tmp/$1" --classes "$1" --train-count 8 \
        --val-count 4 --size 32 >/dev/null || exit 99
}
synth 3
synth 5
data=$tmp/3 other=$tmp/5
net="--model resnet9 --width 4 --img-size 16"
size="-b 8 --sub-batch 4 --lanes 1 --steps 1 --no-val --lr 1e-30"
w=$tmp/run/weights.safetensors

# shellcheck disable=SC2086
run "$imagenet" train "$data" $net $size --output "$tmp/run"
exits 0 "a network of 3 classes is trained"

# Fine-tuning: the last layer has other classes.
# shellcheck disable=SC2086
run "$imagenet" train "$other" $net $size --output "$tmp/tuned" --weights "$w"
exits 0 "its weights begin one of 5 classes"
complains "run/weights.safetensors: 7 has 3 outputs in the file and 5 here" \
    "with a notice on the last layer"
crc=$(value weights)
# shellcheck disable=SC2086
run "$imagenet" train "$other" $net $size --output "$tmp/tuned" --weights "$w"
[ "$(value weights)" = "$crc" ]
point $? "the same seed gives the same last layer"
# shellcheck disable=SC2086
run "$imagenet" train "$other" $net $size --output "$tmp/tuned" --weights "$w" \
    --seed 7
[ "$(value weights)" != "$crc" ]
point $? "another seed another one"
run "$imagenet" eval "$data" --weights "$w" --num-classes 5
exits 2 "evaluation takes no such weights"
complains "--num-classes is 5, but the weights .* of a network with 3" \
    "the message names what does not fit"

# Weights carry what evaluation depends on to wherever they are copied.
mkdir "$tmp/away"
images="--val-resize-size 20 --mean 0.5,0.4,0.3 --std 0.2,0.3,0.4"
# shellcheck disable=SC2086
run "$imagenet" train "$data" $net $size --lr 0.1 $images --steps 3 \
    --output "$tmp/fine" --model-ema-decay 0.5
cp "$tmp/fine/weights.safetensors" "$tmp/away/x.safetensors"
cp "$tmp/fine/weights-ema.safetensors" "$tmp/fine/ckpt/latest/model.safetensors" \
    "$tmp/away"
figures()
{
    echo "$(value loss) $(value top1) $(value top5)"
}
run "$imagenet" eval "$data" --weights "$tmp/fine/weights.safetensors"
want=$(figures)
for name in x model; do
    run "$imagenet" eval "$data" --weights "$tmp/away/$name.safetensors"
    [ $rc = 0 ] && [ "$(figures)" = "$want" ]
    point $? "$name.safetensors gives the same figures elsewhere: $want"
done
says "away/model.safetensors .*val-resize-size=20 .*mean=0.5,0.4,0.3 " \
    "and eval prints what it read there"
run "$imagenet" eval "$data" --weights "$tmp/away/weights-ema.safetensors"
exits 0 "averages as well"
run "$imagenet" convert "$tmp/away/x.safetensors" "$tmp/away/y.safetensors"
run "$imagenet" eval "$data" --weights "$tmp/away/y.safetensors"
[ $rc = 0 ] && [ "$(figures)" = "$want" ]
point $? "so does what convert makes of it"
run "$imagenet" eval "$data" --weights "$tmp/away/x.safetensors" --img-size 24
exits 0 "the size of images may be another"
[ "$(figures)" != "$want" ]
point $? "with other figures"
run "$imagenet" eval "$data" --weights "$tmp/away/x.safetensors" \
    --mean 0.5,0.5,0.5
exits 2 "their mean may not"
complains "--mean is 0.5,0.5,0.5, but .* 0.5,0.4,0.3: leave out --mean" \
    "with the way out"
run "$imagenet" infer --weights "$tmp/away/x.safetensors" \
    "$data/ILSVRC/Data/CLS-LOC/val"
says ": [0-9.]+% [0-2] [a-z]+ [a-z]+; " "infer has the names of the classes"

# Classes are those of training, by name.
train=$data/ILSVRC/Data/CLS-LOC/train
mkdir "$tmp/sub" "$tmp/named"
cp -r "$train"/* "$tmp/named"
# shellcheck disable=SC2086
run "$imagenet" train "$tmp/named" $net $size --lr 0.1 --steps 3 \
    --output "$tmp/by-name"
cp "$tmp/by-name/weights.safetensors" "$tmp/away/named.safetensors"
cp -r "$train"/n90000002 "$train"/n90000001 "$tmp/sub"
w2="--weights $tmp/away/named.safetensors"
# shellcheck disable=SC2086
run "$imagenet" eval "$tmp/sub" --split train $w2 --per-class -
exits 0 "data may lack a class"
says "^2,n90000002,[1-9]" "and classes have the numbers of training"
says "^0,n90000000,0," "also the one that is missing"
cp -r "$train"/n90000000 "$tmp/sub"
mv "$tmp/sub/n90000001" "$tmp/sub/unicorn"
# shellcheck disable=SC2086
run "$imagenet" eval "$tmp/sub" --split train $w2
exits 65 "a class that the network does not have: exit code 65"
complains '"unicorn", which is none of the 3' "it is named"
complains "use --class-numbers" "with the way out"
# shellcheck disable=SC2086
run "$imagenet" eval "$tmp/sub" --split train $w2 --class-numbers
exits 0 "which works"
odd=$(printf 'caf\351')
mv "$tmp/named/n90000000" "$tmp/named/$odd"
# shellcheck disable=SC2086
run "$imagenet" train "$tmp/named" $net $size --output "$tmp/latin"
exits 0 "a class whose name is not UTF-8"
mv "$tmp/latin/weights.safetensors" "$tmp/away/latin.safetensors"
run "$imagenet" eval "$tmp/named" --split train \
    --weights "$tmp/away/latin.safetensors"
exits 0 "is found again"

# Weights without settings: config.txt and classes.txt next to them are read,
# but not what has no end.
mkdir "$tmp/odd"
LC_ALL=C sed 's/"imagenet[.]/"otherapp./g' "$tmp/away/x.safetensors" \
    >"$tmp/odd/w.safetensors"
mkfifo "$tmp/odd/config.txt"
run timeout 30 "$imagenet" eval "$data" --weights "$tmp/odd/w.safetensors"
exits 2 "config.txt is a pipe: exit code 2"
complains "odd/config.txt: is not a regular file" "it is named"
rm "$tmp/odd/config.txt"
cp "$tmp/fine/config.txt" "$tmp/odd"
ln -s /dev/zero "$tmp/odd/classes.txt"
run timeout 30 "$imagenet" eval "$data" --weights "$tmp/odd/w.safetensors"
exits 2 "classes.txt is a device: exit code 2"
complains "odd/classes.txt: is not a regular file" "it is named"
mkfifo "$tmp/odd/list"
run timeout 30 "$imagenet" infer --weights "$w" --list "$tmp/odd/list"
exits 2 "a list of images that is a pipe: exit code 2"
complains "odd/list: is not a regular file" "it is named"

# What a file says is checked.
tamper()
{
    LC_ALL=C sed "s/$1/$2/" "$tmp/away/x.safetensors" >"$tmp/away/bad.safetensors"
    run "$imagenet" eval "$data" --weights "$tmp/away/bad.safetensors"
}
tamper '"imagenet.num-classes":"3"' '"imagenet.num-classes":"0"'
exits 2 "a number out of range in the file is refused"
complains "the value above comes from .*bad.safetensors" "the file is named"
tamper '"imagenet.num-classes":"3"' '"imagenet.num-classes":"9"'
exits 2 "so is a network that the tensors do not fit"
complains "7.weight \(3, 32\), expected \(9, 32\)" "the tensors are named"
tamper bilinear bicubic_
exits 2 "an unknown interpolation is refused"
complains "bicubic_" "and named"

# Another network.
# shellcheck disable=SC2086
run "$imagenet" train "$data" $size --model mlp --hidden 4 --img-size 16 \
    --output "$tmp/mlp" --weights "$w"
exits 65 "weights of another network"
complains "looks like weights of resnet9, not of mlp: use --model resnet9" \
    "it is named"
"$imagenet" convert "$w" "$tmp/strange.safetensors" --add-prefix x. >/dev/null
# shellcheck disable=SC2086
run "$imagenet" train "$data" $size --model mlp --hidden 4 --img-size 16 \
    --output "$tmp/mlp" --weights "$tmp/strange.safetensors"
exits 65 "weights of an unknown network"
complains "missing: 1.weight, 1.bias" "the missing tensors are listed"
complains "unexpected: .*, .* and [0-9]+ more" "unexpected ones too"
# shellcheck disable=SC2086
run "$imagenet" train "$data" $size --model mlp --hidden 4 --img-size 16 \
    --output "$tmp/mlp" --weights "$w" --partial-weights
exits 65 "not even a part of them fits"
small="--small-stem --width 4 --img-size 16"
# shellcheck disable=SC2086
run "$imagenet" train "$data" $size --model resnet34 $small --output "$tmp/34"
# shellcheck disable=SC2086
run "$imagenet" train "$data" $size --model resnet18 $small --output "$tmp/18" \
    --weights "$tmp/34/weights.safetensors" --partial-weights
exits 0 "--partial-weights takes what fits"
complains "weights.safetensors: 80 skipped: layer1.2.*more" \
    "and reports the others"


# Messages in the words of who runs the program.
# shellcheck disable=SC2086
run "$imagenet" train "$data" $size --model resnet18 $small --output "$tmp/18" \
    --weights "$tmp/34/weights.safetensors"
exits 65 "weights of another network"
complains "34/weights.safetensors looks like weights of resnet34, not of resnet18" \
    "it is recognised"
[ "$(wc -c <"$tmp/err")" -lt 300 ]
point $? "in a sentence"
printf 'PK\003\004and so on' >"$tmp/x.pth"
# shellcheck disable=SC2086
run "$imagenet" train "$data" $size $net --weights "$tmp/x.pth" \
    --output "$tmp/x"
exits 65 "a file of PyTorch: exit code 65"
complains "x.pth: written by PyTorch's torch.save.*: python3 -c \".*\" .*x.pth" \
    "it is recognised, with a command to convert it"
python=${DDP_PYTHON:-/usr/bin/python3}
if "$python" -c 'import torch, safetensors.torch' 2>"$tmp/out"; then
    "$python" - "$w" "$tmp/x.pth" <<'END'
import sys, torch, safetensors.torch
torch.save(safetensors.torch.load_file(sys.argv[1]), sys.argv[2])
END
    # shellcheck disable=SC2086
    run "$imagenet" train "$data" $size $net --weights "$tmp/x.pth" \
        --output "$tmp/x"
    sed -n "s|.*convert it: python3\(.*\) FILE.safetensors$|'$python'\1 $tmp/y.safetensors|p" \
        "$tmp/err" >"$tmp/convert"
    sh "$tmp/convert" 2>"$tmp/err"
    # shellcheck disable=SC2086
    run "$imagenet" train "$data" $size $net --weights "$tmp/y.safetensors" \
        --output "$tmp/x"
    exits 0 "the command converts it"
else
    skip 1 "no PyTorch with safetensors"
fi
# shellcheck disable=SC2086
run "$imagenet" train "$data" $size --model alexnet --img-size 16 \
    --output "$tmp/x"
exits 2 "images too small for a network: exit code 2"
complains "--img-size 16 is too small for alexnet, which needs images of 63x63" \
    "with the least size"
run "$imagenet" inspect alexnet --img-size 62
exits 2 "one less is too small"
run "$imagenet" inspect alexnet --img-size 63
exits 0 "that size is not"
# shellcheck disable=SC2086
run "$imagenet" train "$data" $net $size --sub-batch 2 --output "$tmp/run"
complains "--sub-batch is 4, in this run 2" "a setting is called as its option"

# ONNX.
run "$imagenet" export
exits 2 "export without a file to write"
complains "MODEL.onnx" "the message names it"
run "$imagenet" export "$tmp/net.onnx" --weights "$w"
if grep -q "built without ONNX" "$tmp/err"; then
    skip 7 "built without ONNX"
    done_testing
fi
exits 0 "export succeeds, the network taken from the weights"
says "^export model=resnet9 input=Nx3x16x16 bytes=[0-9]+ file=" "and says what"
[ -s "$tmp/net.onnx" ]
point $? "the file is there"
# shellcheck disable=SC2086
run "$imagenet" export $net "$tmp/random.onnx"
exits 0 "also without weights"
complains "weights are random" "a warning is printed"
run "$imagenet" export "$tmp/no/net.onnx" --weights "$w"
exits 74 "a folder that is not there: exit code 74"
complains "no/net.onnx" "it is named"
done_testing
