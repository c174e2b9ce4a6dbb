#!/bin/bash
# app_emulated_tests.sh - tests of CPU workers, and gradients of networks, on
# emulated GPUs
# SPDX-License-Identifier: LGPL-2.1-or-later
. "$srcdir/tests/tap.sh"
. "$srcdir/tests/emulated.sh"

for t in once custom optim ema layers; do
    passes $t
done

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
