#!/bin/sh
# app_manual.sh - the commands of the manual's first pages, as a reader copies
# them, in one folder
# SPDX-License-Identifier: LGPL-2.1-or-later
. "$srcdir/tests/tap.sh"
export DDP_MODULE_DIR="${DDP_MODULE_DIR:-$builddir/.libs}"
PATH=$builddir/bin:$PATH
cd "$tmp" || exit 99

# Commands are indented by four spaces.
commands()
{
    sed -n -E '/^```/,/^```/!s/^    //p' "$srcdir/docs/$1.md" |
        grep -v -E '^(\./quickstart|export PATH)'
}

# page NAME: run its commands until one fails
page()
{
    commands "$1" >"$1.sh"
    [ "$(grep -c imagenet "$1.sh")" -ge 2 ]
    point $? "$1.md has commands"
    run sh -e "./$1.sh"
    exits 0 "and they succeed"
}

# top1 RUN: of its last epoch
top1()
{
    tail -n 1 "$1/summary.csv" | cut -d, -f4
}

page start
holds "$(top1 run) > 90" "what start.md trains has learned ($(top1 run) %)"
[ "$(grep -c 'ILSVRC2012_val.*%' out)" = 150 ]
point $? "and classifies all images"

page finetune
holds "$(top1 tuned) > $(top1 fresh) && $(top1 tuned) > 90" \
    "trained weights help ($(top1 fresh) % without, $(top1 tuned) % with)"

page reproducibility
[ -s one/weights.safetensors ] && [ "$(wc -l <two/metrics.jsonl)" -ge 6 ]
point $? "both runs have made their steps"

done_testing
