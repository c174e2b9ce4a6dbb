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
complains "7.weight \(3, 32\), expected \(5, 32\)" "the message names what does not fit"

# Another network.
# shellcheck disable=SC2086
run "$imagenet" train "$data" $size --model mlp --hidden 4 --img-size 16 \
    --output "$tmp/mlp" --weights "$w"
exits 65 "weights of another network"
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

# ONNX.
run "$imagenet" export
exits 2 "export without a file to write"
complains "MODEL.onnx" "the message names it"
run "$imagenet" export "$tmp/net.onnx" --weights "$w"
if grep -q "built without ONNX" "$tmp/err"; then
    skip 7 "built without ONNX"
    done_testing
fi
exits 0 "export succeeds, the network taken from config.txt"
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
