#!/bin/sh
# app_kernelbench.sh - kernelbench runs ours and oneDNN's, with equal results
# SPDX-License-Identifier: LGPL-2.1-or-later
. "$srcdir/tests/tap.sh"

kernelbench=$builddir/tests/kernelbench
if [ ! -x "$kernelbench" ]; then
    echo "1..0 # SKIP built without oneDNN"
    exit 0
fi

# rows FILE PASS NUMBER: f32 lines of this kernel, whose times are numbers
rows()
{
    n=$(grep -cE "^\| $1: [^|]+\| [0-9x]+( to [0-9]+)? \| f32, $2 (\| [0-9.]+ ){3}" \
        "$tmp/out")
    [ "$n" = "$3" ]
    point $? "$1, $2: $n lines"
}

run "$kernelbench" -w -n 1 -s 0
exits 0 "each kernel once, of one image"
rows pool max_pool_fwd 5
rows pool max_pool_bwd 5
rows pool mean_pool_fwd 3
rows pool mean_pool_bwd 3
rows bn bn_fwd 7
rows bn bn_bwd 7
rows act act_bwd 7
for pass in conv_fwd conv_bwd_x conv_bwd_w; do
    rows wino $pass 3
    rows wino_line $pass 4
    rows taps $pass 3
done
rows wgrad conv_bwd_w 6
rows i16_conv conv_fwd 11
rows bias conv_bwd_w 7
rows "depthwise_wgrad" conv_bwd_w 2
rows "depthwise_train" conv_fwd 16
rows "depthwise_train" conv_bwd_x 16
rows skinny dense_bwd_w 4
rows dense dense_fwd 2
rows dense dense_bwd_w 2
rows dense conv_bwd_x 5
rows "depthwise_infer" conv_norm 8

# Both are right, so they are as close as roundings: of f32 sums, Winograd's
# included, within 1e-4 of the norm; a bf16 result is rounded by 2^-9 = 2e-3,
# twice with a norm before a sum or an activation, and Winograd's to 2.4e-3.
awk -F '|' '/ f32, / { most = 1e-4 } / bf16, / { most = 1e-2 }
    / (f32|bf16), / { n++; if (!($9 + 0 < most)) { print; bad++ } }
    END { exit !(n > 60 && !bad) }' "$tmp/out" >"$tmp/far"
point $? "results differ by roundings$(cat "$tmp/far")"

run "$kernelbench" -w -n 1 -s 0 "mean of all"
[ "$(grep -c '^| pool: mean of all | 1x7x7x2048 |' "$tmp/out")" -ge 2 ] &&
    ! grep -q max "$tmp/out"
point $? "only what has a word"
run "$kernelbench" -n 0
exits 64 "no images"
done_testing
