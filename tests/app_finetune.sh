#!/bin/sh
# app_finetune.sh - options of fine-tuning, each against another way to say it
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# test_finetune.c compares what freezes, rates and decays do with arithmetic.
. "$srcdir/tests/tap.sh"

STARPU_NCPU=1
export STARPU_NCPU

data=$tmp/data
"$imagenet" data synth --output "$data" --classes 3 --train-count 24 \
    --val-count 9 --size 16 >/dev/null || exit 99
"$imagenet" data synth --output "$tmp/two" --classes 2 --train-count 16 \
    --val-count 8 --size 24 --seed 5 >/dev/null || exit 99
net="--model resnet18 --width 4 --small-stem --img-size 16"
size="-b 8 --sub-batch 4 --lanes 2 --seed 3"

# weights OPTION...: the checksum of those that three steps end with
weights()
{
    rm -rf "$tmp/run"
    # shellcheck disable=SC2086
    run "$imagenet" train --data "$data" $size --epochs 1 --no-val --lr 0.125 \
        --sched constant --weight-decay 0.01 --output "$tmp/run" "$@"
    value weights
}

# same SENTENCE OPTIONS OPTIONS: which do the same to $net, and something
same()
{
    # shellcheck disable=SC2086
    a=$(weights $net $2)
    # shellcheck disable=SC2086
    b=$(weights $net $3)
    [ -n "$a" ] && [ "$a" = "$b" ] && [ "$a" != "$plain" ]
    point $? "$1"
}

# Patterns are for the program, not for this shell.
set -f
# shellcheck disable=SC2086
plain=$(weights $net)
same "--freeze-to: all layers up to one" \
    "--freeze-to layer2" "--freeze conv1,bn1,layer[12]"
same "--head-only: all but the last one" \
    "--head-only" "--freeze conv1,bn1,layer?"
same "--freeze-bn: all norms" \
    "--freeze-bn" "--freeze *bn?,*downsample.1"
same "a rate of 0 freezes" "--freeze conv1" "--group-lr conv1=0"
same "--group-lr: half of the rate for all is half of it" \
    "--group-lr *=0.5" "--lr 0.0625"
same "--norm-weight-decay" "--norm-weight-decay 0.05" \
    "--group-weight-decay *bn?.*=0.05,*downsample.1.*=0.05"
same "--bias-weight-decay" "--bias-weight-decay 0.05" \
    "--group-weight-decay fc.bias=0.05"
small=$net
net="--model mlp --hidden 6,5 --img-size 8"
# shellcheck disable=SC2086
plain=$(weights $net)
same "--layer-decay: each layer has less than the one after it" \
    "--layer-decay 0.5" "--group-lr 1=0.25,3=0.5"
net=$small
set +f

# ---- other classes, at another size -----------------------------------------

# tensors FILE: the bytes of those before the last layer
tensors()
{
    "$imagenet" convert "$1" "$tmp/body.safetensors" --drop 'fc*' >/dev/null
    header=$(od -An -tu8 -N8 "$tmp/body.safetensors")
    tail -c +$((header + 9)) "$tmp/body.safetensors"
}
# shellcheck disable=SC2086
run "$imagenet" train --data "$data" $net $size --epochs 1 --lr 0.1 \
    --output "$tmp/first"
# shellcheck disable=SC2086
run "$imagenet" train --data "$tmp/two" --model resnet18 --width 4 --small-stem \
    $size --weights "$tmp/first/weights.safetensors" --head-only --img-size 24 \
    --epochs 2 --lr 0.1 --output "$tmp/second"
exits 0 "weights are trained on larger images of other classes"
complains "fc has 3 outputs in the file and 2 here" "with a new last layer"
loss=$(value loss)
tensors "$tmp/first/weights.safetensors" >"$tmp/before"
tensors "$tmp/second/weights.safetensors" >"$tmp/after"
[ -s "$tmp/before" ] && cmp -s "$tmp/before" "$tmp/after"
point $? "and all others as they were"
run "$imagenet" eval --data "$tmp/two" --weights "$tmp/second/weights.safetensors"
exits 0 "eval finds the new size"
[ -n "$loss" ] && [ "$(value loss)" = "$loss" ]
point $? "with the figures of training"
done_testing
