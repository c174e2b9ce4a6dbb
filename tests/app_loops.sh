#!/bin/sh
# app_loops.sh - programs whose ranks have loops of their own
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What FluxMPI's quick start and DistributedFluxML's tests expect of theirs.
. "$srcdir/tests/tap.sh"
. "$srcdir/tests/ranks.sh"
. "$srcdir/tests/examples.sh"

csv=$srcdir/apps/iris/iris.csv
flowers=$tmp/flowers
example square
example flowers

# learns: the loss of "square" falls to a tenth
learns()
{
    first=$(sed -n 's/^step 20: loss //p' "$tmp/out")
    last=$(sed -n 's/^step 100: loss //p' "$tmp/out")
    holds "${last:-9} < 0.1 * ${first:-0}" "$1: the loss falls ($first to $last)"
}

# agree RANKS STEPS: all have made so many steps and have the same weights
agree()
{
    [ $rc = 0 ] && [ "$(grep -c "^rank [0-9]: $2 steps" "$tmp/out")" = "$1" ] &&
        [ "$(sed -n 's/^rank.*weights //p' "$tmp/out" | sort -u | wc -l)" = 1 ]
    point $? "$1 ranks make $2 steps and have the same weights"
}

run "$tmp/square"
exits 0 "square succeeds alone"
learns "alone"
run "$flowers" "$csv"
agree 1 950
if ! has_mpi; then
    skip 10 "$why"
    done_testing
fi

ranks 2 "$tmp/square"
exits 0 "and with two ranks"
learns "with two ranks"

# One class each, 7 batches in each of 50 epochs.
ranks 3 "$flowers" "$csv"
agree 3 350
right=$(sed -n 's/^rank 0.* \([0-9.]*\) % right.*/\1/p' "$tmp/out")
holds "${right:-0} > 90" "more than 90 % are right (${right:-none})"

# Regression of log(loss) on the epoch: F > 300 with 48 degrees of freedom has
# p < 1e-21.
fit=$(sed -n 's/^epoch \([0-9]*\): loss /\1 /p' "$tmp/out" | awk '
    { x = $1; y = log($2); n++; sx += x; sy += y; xx += x * x; yy += y * y
      xy += x * y }
    END { c = n * xy - sx * sy; vx = n * xx - sx * sx; vy = n * yy - sy * sy
          r = c * c / vx / vy; print c / vx < 0, (n - 2) * r / (1 - r) }')
holds "${fit% *} + 0 == 1 && ${fit#* } + 0 > 300" "the loss decays ($fit)"

# 50, 25 and 8 samples, so 7, 4 and 1 batches: three ranks take part, then two,
# then one.
ranks 3 "$flowers" "$csv" 1 2 6
agree 3 350
last=$(sed -n 's/^epoch 50: loss //p' "$tmp/out")
holds "${last:-9} < 1" "ranks with fewer samples end earlier (loss $last)"

# A program that has started MPI keeps it.
build tests/mpi_program
ranks 2 "$builddir/tests/mpi_program" multiple
[ "$(grep -c '^sums agree, MPI runs on$' "$tmp/out")" = 2 ]
point $? "a program's own MPI is used, and runs on"
ranks 2 "$builddir/tests/mpi_program" single
[ "$(grep -c '^no sums, MPI runs on$' "$tmp/out")" = 2 ]
point $? "also where it cannot be used"
complains "call MPI_Init_thread[(][)] with MPI_THREAD_MULTIPLE" "for this reason"

done_testing
