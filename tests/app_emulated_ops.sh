#!/bin/bash
# app_emulated_ops.sh - operations on emulated GPUs
# SPDX-License-Identifier: LGPL-2.1-or-later
. "$srcdir/tests/tap.sh"
. "$srcdir/tests/emulated.sh"

passes ops_cuda
says "masks, f32 and bf16: cuDNN, cuDNN" "masks of batch norm are cuDNN's"
passes EMULATED_REVERSED=1 ops_cuda bn
says "masks, f32 and bf16: our own" "not if they are in another order than ours"
passes EMULATED_NO_SUMS=1 ops_cuda conv dense

done_testing
