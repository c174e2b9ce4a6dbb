#!/bin/sh
# app_iris.sh - the smallest program learns its flowers
# SPDX-License-Identifier: LGPL-2.1-or-later
. "$srcdir/tests/tap.sh"

csv=$srcdir/apps/iris/iris.csv

# Fisher's data as published: 150 rows and these means.
means=$(awk -F, 'NR > 1 { for (i = 1; i < 5; i++) s[i] += $i }
    END { printf "%d %.4f %.4f %.4f %.4f", NR - 1, s[1] / 150, s[2] / 150,
        s[3] / 150, s[4] / 150 }' "$csv")
[ "$means" = "150 5.8433 3.0573 3.7580 1.1993" ]
point $? "iris.csv holds the iris data ($means)"

run "$iris" "$csv"
exits 0 "iris succeeds"
right=$(sed -n 's/^trained.* \([0-9.]*\) % right$/\1/p' "$tmp/out")
# A linear network can get 97 to 99 % of them right; PyTorch's does with the
# same optimizer, batch and epochs, from four seeds.
holds "${right:-0} > 90" "more than 90 % are right (${right:-none})"
[ "$(grep -c '^epoch' "$tmp/out")" = 5 ]
point $? "it reports progress"
first=$(sed -n 's/^epoch 10: loss \([0-9.]*\),.*/\1/p' "$tmp/out")
last=$(sed -n 's/^epoch 50: loss \([0-9.]*\),.*/\1/p' "$tmp/out")
holds "${last:-9} < 0.5 * ${first:-0}" "the loss falls ($first to $last)"

run "$iris" "$tmp/none.csv"
exits 1 "without its data it fails"
complains "none.csv" "the message names the file"

run "$iris" --help
exits 0 "it has --help"
says "^Usage: ddp-iris" "which shows how to call it"
run "$iris" --epochs
exits 2 "it has no other option"

done_testing
