#!/bin/sh
# app_gpu_check.sh - gpu-check without a GPU, and on programs that are made up
# SPDX-License-Identifier: LGPL-2.1-or-later
. "$srcdir/tests/tap.sh"

check=$srcdir/contrib/gpu-check

run "$check" --help
exits 0 "gpu-check has a help text"
says '^  trace ' "with its parts"
run "$check" nonsense
exits 2 "an unknown part is an error"
complains "unknown part 'nonsense'" "that names it"
run "$check" --seconds soon
exits 2 "so is a budget that is no number"

# made_up NAME BODY: a program of a build tree that is not there
made_up()
{
    mkdir -p "$tmp/build/$(dirname "$1")"
    printf '#!/bin/sh\n%s\n' "$2" >"$tmp/build/$1"
    chmod +x "$tmp/build/$1"
}

made_up tests/test_gpu_train 'echo "1..0 # SKIP no driver, says the test"'
run "$check" --build "$tmp/build" --output "$tmp/check"
exits 0 "no GPU is no failure"
says '^gpu-check: skipped: no driver, says the test' "and the reason is said"

made_up tests/test_gpu_train \
    '[ "$1" = --probe ] || { echo "ok 1 - a"; echo "ok 2 # SKIP b"; }'
made_up tests/test_ops_cuda 'echo "not ok 1 - c"; exit 1'
made_up tests/test_trace 'echo "1..0 # SKIP no PyTorch"'
made_up tests/test_gpu 'sleep 100'
made_up bin/ddp-bench 'echo "{}"'
run "$check" --build "$tmp/build" --output "$tmp/check" --seconds 100 \
    train ops trace
exits 1 "a row that fails is a failure"
says '^train  *good .* 1 passed, 0 failed, 1 skipped' "a row counts points"
says '^ops  *FAILED \(1\) .* 0 passed, 1 failed' "of what failed too"
says '^trace  *skipped .* no PyTorch' "and has the reason of a skip"
[ -s "$tmp/check/table.txt" ] && grep -q "not ok" "$tmp/check/ops.log"
point $? "table and logs are kept"

run "$check" --build "$tmp/build" --output "$tmp/check" --seconds 13 \
    faults train bench
says '^faults  *TIME OUT ' "a row that is still running when time is up ends"
says '^train  *left out .* takes 90 s' "what no longer fits is left out"
says 'some rows were left out' "and that is said once more"

# The program itself, given less to do than the rows ask for.  GPUs compute in
# bf16, this processor perhaps not; the last --dtype counts, but all are read.
less="--img-size 32 --sub-batch 1 --steps 1 --skip 1"
# shellcheck disable=SC2086
run "$bench" train --model resnet9 --dtype bf16 $less
if [ $rc = 69 ] && grep -q "no bf16 arithmetic" "$tmp/err"; then
    less="$less --dtype f32"
fi
made_up tests/test_gpu 'echo "ok 1 - d"'
made_up bin/ddp-bench "exec '$bench' \"\$@\" $less"
run env STARPU_NCPU=1 "$check" --build "$tmp/build" --output "$tmp/check" \
    --seconds 0 faults bench
exits 0 "the options of all rows are bench's"
says '^faults-hidden  *good ' "with the GPU hidden, too"
says '^bench-bf16-resnet50-224-256  *good .*"img_per_s":' \
    "a row of bench shows what it printed"

done_testing
