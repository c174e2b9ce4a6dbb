#!/bin/sh
# app_bench.sh - bench train and bench load print one line of JSON, bench roof
# a table
# SPDX-License-Identifier: LGPL-2.1-or-later
. "$srcdir/tests/tap.sh"

# number NAME: its value in the line
number()
{
    tr ',{}' '[\n*]' <"$tmp/out" | sed -n "s/^\"$1\"://p" | grep . || echo 0
}

# is_json: one line, which Python reads where there is one
is_json()
{
    [ "$(wc -l <"$tmp/out")" = 1 ] || return 1
    command -v python3 >/dev/null || return 0
    python3 -c 'import json, sys; json.loads(sys.stdin.read())' <"$tmp/out"
}

keys="img_per_s step_ms peak_share tasks sched_share peak_rss_mib"
has_keys()
{
    for k in $keys; do
        grep -q "\"$k\":" "$tmp/out" || { echo "# no $k" && return 1; }
    done
}

run "$bench" train --model resnet18 --small-stem --img-size 16 --classes 10 \
    --sub-batch 4 --lanes 2 --batch-size 16 --steps 3
exits 0 "bench train succeeds"
is_json
point $? "it prints one line of JSON"
has_keys
point $? "with all keys"
holds "$(number img_per_s) > 0 && $(number tasks) > 1" "speed and tasks"
says '"loss":[0-9.]+,"weights":"[0-9a-f]{8}",' "the last loss, and a CRC"
# img_per_s is the batch over step_ms; both are rounded to 3 decimals.
ratio=$(awk "BEGIN { print $(number img_per_s) * $(number step_ms) / 16000 }")
holds "$ratio > 0.99 && $ratio < 1.01" "images a second fit the step time"
# A clock that rises after the peak was measured can lift a share above 1, not
# above 1.5; this network is too small to come near.
holds "$(number peak_share) > 0 && $(number peak_share) < 1.5" \
    "a share of the peak ($(number peak_share))"
holds "$(number peak_rss_mib) > 1" "memory"

run "$bench" train --model resnet18 --small-stem --img-size 16 --classes 10 \
    --sub-batch 4 --steps 1 --input f32 --inspect
is_json
point $? "f32 input, and a table of layers that is not on stdout"
complains "conv1" "but on stderr"

# A multiply-add is 2: 4,089,184,256 of them in forward (torchvision), thrice as
# many in a step, but for the gradient of the images, 64 112^2 3 7^2.
run "$bench" roof --sub-batch 256
exits 0 "bench roof succeeds"
says '^all,,,"1 x NVIDIA H200, [^"]*",[0-9]*,[0-9.]*,6220\.564,,[0-9.]*,,$' \
    "resnet50: the sum of a step's FLOPs"
# 256 56^2 (64 + 256) values of 2 bytes, 64 256 weights of 4: at 4.3 TB/s.
says '^conv_fwd,256,bf16,"56x56x64 56x56x256 by 1x1/1",4,490.062,26.307,bytes,119.50,,$' \
    "a convolution's bytes, FLOPs and limit"
says '^conv_bwd_x,256,bf16,"56x56x64 56x56x256 by 1x1/1, added",2,' \
    "gradients are added where they are computed"
[ "$(cut -d , -f 1 "$tmp/out" | grep -cx acc)" = 0 ]
point $? "not in a pass of their own"

"$imagenet" data synth --output "$tmp/data" --classes 2 --train-count 8 \
    --val-count 2 --size 48 >/dev/null || exit 99
run "$bench" load --data "$tmp/data" --seconds 0.3 --img-size 32 --threads 2
exits 0 "bench load succeeds"
is_json
point $? "it prints one line of JSON"
has_keys
point $? "with all keys"
holds "$(number img_per_s_per_core) > 0 && $(number bad) == 0" \
    "images a second and core"

done_testing
