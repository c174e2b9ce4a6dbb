#!/bin/bash
# app_emulated_ops.sh - operations, and gradients of networks, on emulated GPUs
# SPDX-License-Identifier: LGPL-2.1-or-later
. "$srcdir/tests/tap.sh"
. "$srcdir/tests/emulated.sh"

# ---- the tests of CPU workers, and of kernels --------------------------------

# passes VARIABLE=VALUE... TEST ARGUMENT...: on a GPU
passes()
{
    local set=()
    while [[ $1 = *=* ]]; do
        set+=("$1")
        shift
    done
    run on 1 env "${set[@]}" "$builddir/tests/test_$1" "${@:2}"
    [ $rc = 0 ] && [ "$(grep -c '^ok' "$tmp/out")" -gt 20 ]
    point $? "test_$* on a GPU, ${set[*]}: $(grep -c '^ok' "$tmp/out") points"
}

passes ops_cuda
says "masks, f32 and bf16: cuDNN, cuDNN" "masks of batch norm are cuDNN's"
passes EMULATED_REVERSED=1 ops_cuda bn
says "masks, f32 and bf16: our own" "not if they are in another order than ours"
passes EMULATED_NO_SUMS=1 ops_cuda conv dense
for t in once custom optim ema layers; do
    passes $t
done

# ---- gradients of whole networks ---------------------------------------------

# gradients WHAT VARIABLE=VALUE: close enough to those of plain C
gradients()
{
    run on 1 env "$2" "$builddir/tests/test_gpu_train" --gradients
    [ $rc = 0 ] && [ "$(grep -c '^ok.*gradients off by' "$tmp/out")" = 2 ]
    point $? "$1: $(sed -n 's/^ok 2 - //p' "$tmp/out")"
}

gradients "gradients are added where they are computed" EMULATED_DELAY_US=0
gradients "or in another pass" EMULATED_NO_SUMS=1

done_testing
