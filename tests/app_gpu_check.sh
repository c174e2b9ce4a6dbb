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
made_up bin/ddp-iris 'echo "98 %% right"'
run "$check" --build "$tmp/build" --output "$tmp/check" --seconds 100 \
    train ops trace
exits 1 "a row that fails is a failure"
says '^train  *good .* 1 passed, 0 failed, 1 skipped' "a row counts points"
says '^ops  *FAILED \(1\) .* 0 passed, 1 failed' "of what failed too"
says '^trace  *skipped .* no PyTorch' "and has the reason of a skip"
[ -s "$tmp/check/table.txt" ] && grep -q "not ok" "$tmp/check/ops.log"
point $? "table and logs are kept"
tar -xzf "$tmp/check.tar.gz" -O check/ops.log check/table.txt check/machine.txt \
    >"$tmp/out" && grep -q "not ok" "$tmp/out" && grep -q "^trace " "$tmp/out"
point $? "and packed into one file"

run "$check" --build "$tmp/build" --output "$tmp/check" --seconds 19 \
    faults train speed
says '^faults  *TIME OUT ' "a row that is still running when time is up ends"
says '^train  *left out .* takes 90 s' "what no longer fits is left out"
says 'some rows were left out' "and that is said once more"

# ---- a step, twice -----------------------------------------------------------

# step LINE...: the part that looks at what two runs print
step()
{
    printf '%s\n' "$@" >"$tmp/lines"
    made_up bin/ddp-bench "
        head -n 1 '$tmp/lines'
        sed -i '1 { h; d }; \$ { p; x }' '$tmp/lines'"
    run "$check" --build "$tmp/build" --output "$tmp/check" --seconds 0 step
}

one='{"a":1,"loss":6.9,"weights":"0a","b":2}'
step "$one" "$one" "$one" "$one"
says '^step-resnet18-32-32  *good .* loss 6\.9, weights 0a, twice' \
    "equal results are good"
step "$one" '{"a":1,"loss":6.9,"weights":"0b","b":2}' "$one" "$one"
says '^step-resnet18-32-32  *FAILED .* 0a, then loss 6\.9, weights 0b' \
    "other bits the second time are not"
step '{"a":1,"loss":null,"weights":"0a","b":2}'
says '^step-resnet18-32-32  *FAILED .* the loss is not finite' \
    "nor is a loss that is no number"
exits 1 "and gpu-check fails"

# ---- the race, against a PyTorch that is made up -----------------------------

cat >"$tmp/torch.py" <<'END'
import sys
from unittest.mock import MagicMock
torch = MagicMock()
torch.__version__ = "made up"
torch.cuda.get_device_name.return_value = "no GPU"
torch.cuda.Event.return_value.elapsed_time.return_value = 10.0
torch.compile.side_effect = lambda m, mode: print("# compiled:", mode) or m
torch.optim.SGD.side_effect = (
    lambda p, lr, momentum, fused: print("# fused:", fused) or MagicMock())
sys.modules["torch"] = torch
END
echo 'from unittest.mock import MagicMock; ResNet = MagicMock()' \
    >"$tmp/torch_resnet.py"
made_up bin/ddp-bench "echo \"tune=\$DDP_TUNE\" >>'$tmp/ran'
    echo '{\"img_per_s\":9600}'"
race()
{
    run env PYTHONPATH="$tmp" python3 "$srcdir/contrib/gpu-race" --bench \
        "$tmp/build/bin/ddp-bench" --results "$tmp/race.json" "$@" 18:32:32
}

if command -v python3 >/dev/null; then
    race
    says 'batch 32: libddp 9600 img/s, eager 3200 = 3\.00 x' "a race has a ratio"
    grep -q tune=1 "$tmp/ran" && grep -q 'fused: True' "$tmp/out"
    point $? "both sides are as fast as they can be"
    race --compile reduce-overhead --compile max-autotune
    says 'eager 3200 = 3\.00 x, reduce-overhead 3200 = .*, max-autotune 3200' \
        "with torch.compile, in the modes that are asked for"
    [ "$(grep -c tune "$tmp/ran")" = 1 ] && ! grep -q '^# eager' "$tmp/out"
    point $? "what has been measured is not measured again"
    made_up bin/ddp-bench "[ \$DDP_TUNE = 0 ] || exec sleep 30
        echo '{\"img_per_s\":8000}'"
    rm "$tmp/race.json"
    race --tune-seconds 1
    says 'libddp untuned 8000 img/s, eager' "tuning that takes too long is left out"
else
    skip 5 "no python3"
fi

# ---- the programs themselves -------------------------------------------------

# Given less to do than the rows ask for.  GPUs compute in bf16 and f16, this
# processor perhaps in neither; the last --dtype counts, but all are read.
tiny="--img-size 32 --width 8 --sub-batch 2 --steps 1 --skip 1"
less="$tiny --dtype f32"
made_up tests/test_gpu 'echo "ok 1 - d"'
made_up bin/ddp-bench "exec '$bench' \"\$@\" $less"
made_up bin/ddp-iris "exec '$iris' \"\$@\""
run env STARPU_NCPU=1 "$check" --build "$tmp/build" --output "$tmp/check" \
    --seconds 0 faults step speed
exits 0 "the options of all rows are bench's"
says '^faults-hidden  *good .* right' "with the GPU hidden, too"
says '^step-resnet50-224-256  *good .* loss .*, twice' "a step is the same twice"
says '^speed-bf16-resnet50-224-256  *good .*"img_per_s":' \
    "a row of speed shows what it printed"

# On an emulated GPU.
emulator=$builddir/tests/.libs/emulated_gpu.so
export DDP_LIBCUDA=$builddir/tests/.libs/fake_cuda.so FAKE_CUDA="0 99000 0/9/0"
if [ -e "$emulator" ] && env LD_PRELOAD="$emulator" STARPU_NCUDA=1 \
    STARPU_HOME="$tmp" "$builddir/tests/test_gpu_train" --probe 2>&1 |
    grep -q '^1\.\.0 # SKIP'; then
    emulator=
fi
if [ -e "$emulator" ]; then
    for p in tests/test_gpu_facts bin/ddp-bench; do
        made_up $p "export LD_PRELOAD='$emulator' EMULATED_GPUS=1 STARPU_NCUDA=1
            DDP_MODULE_DIR='$builddir/.libs' exec '$builddir/$p' \"\$@\" \
            $([ $p = bin/ddp-bench ] && echo "$tiny --steps 2")"
    done
    run "$check" --build "$tmp/build" --output "$tmp/check" --seconds 0 \
        facts step profile
    exits 0 "an emulated GPU passes"
    says '^facts  *good .* 0 failed' "with what CUDA reports of it"
    says '^step-resnet18-32-32  *good .* loss .*, twice' "with a step, twice"
    says '^profile-events  *good .* lines in profile-events.csv' \
        "with a table of its operations"
    tar -xzf "$tmp/check.tar.gz" -O check/profile-events.csv >"$tmp/out"
    says '^0,[0-9.]+,[0-9.]+,conv_bwd_w,2,bf16,"32x32x8 16x16x8 by 7x7/2"$' \
        "which has shapes"
    # Six steps (one to warm up, three more on a GPU, two measured).
    [ "$(grep -c ,optim, "$tmp/out")" -ge 6 ]
    point $? "of all steps"
    run env DDP_PROFILE=/nowhere/profile.csv "$tmp/build/bin/ddp-bench" train
    complains 'DDP_PROFILE: cannot write /nowhere/profile\.csv' \
        "a table that cannot be written is an error"
else
    skip 7 "no emulated GPU"
fi

done_testing
