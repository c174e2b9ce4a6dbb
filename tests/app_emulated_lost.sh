#!/bin/bash
# app_emulated_lost.sh - emulated GPUs that cannot go on: no memory, no kernels
# any more, other devices
# SPDX-License-Identifier: LGPL-2.1-or-later
. "$srcdir/tests/tap.sh"
. "$srcdir/tests/emulated.sh"

make_images || exit 99

# ---- memory ------------------------------------------------------------------

run on 1 "$builddir/tests/test_accumulators"
[ $rc = 0 ] && grep -q "^ok.*on a GPU" "$tmp/out"
point $? "accumulators: $(sed -n 's/^ok.* - \(16 lanes.*\)/\1/p' "$tmp/out")"

# With less and less memory the same run has fewer sub-batches at a time, then
# gradients and state in main memory, then ends with an error.

# within MIB VARIABLE=VALUE...: on a GPU of so much memory; what it needs, in $need
within()
{
    run on 1 env "STARPU_LIMIT_CUDA_MEM=$1" "${@:2}" "$imagenet" train \
        --data "$tmp/data" --output "$tmp/run" --model mlp --hidden 2048,2048 \
        --img-size 32 --sub-batch 2 --lanes 8 -b 16 --steps 2 --lr 0.01 --no-val
    rm -rf "$tmp/run"
    crc=$(value weights)
    need=$(sed -n 's/^memory: \([0-9]*\) of .*/\1/p' "$tmp/out")
}

# answers HOW: with the weights of plenty of memory
answers()
{
    [ $rc = 0 ] && [ -n "$crc" ] && [ "$crc" = "$plenty" ]
    point $? "$1, $need MiB: $plenty again"
}

within 1000
plenty=$crc
[ $rc = 0 ] && [ -n "$plenty" ] && ! grep -q "^  only\|^  .*main memory" "$tmp/out"
point $? "enough memory, $need MiB: $plenty"
within $((need - 1))
answers "fewer at a time"
says "^  only 1 of 2 sub-batches at a time" "which is said"
! grep -q "main memory and back" "$tmp/out"
point $? "and gradients stay on the GPU"
within $((need - 1))
answers "gradients and state in main memory"
says "^  [0-9]+ MiB of gradients and optimizer state go to main memory and back" \
    "which is said"
within $((need - 1))
exits 71 "less than that"
complains "this needs [0-9]+ MiB: .* of gradients, .*; a GPU has [0-9]+: use a smaller --sub-batch" \
    "ends with what needs how much"

# Two workers of a GPU share it.
two=(STARPU_NWORKER_PER_CUDA=2 DDP_INFLIGHT=1)
within 1000 "${two[@]}"
answers "two workers"
within $((need - 1)) "${two[@]}"
answers "whose updates wait for the decision"
within $((need - 1)) "${two[@]}"
answers "that take turns"
says "^plan: 1 of 8 sub-batches at a time, limited by the memory$" "which is said"
! grep -q "main memory and back" "$tmp/out"
point $? "before gradients leave the GPU"

# From some allocation on another program has all memory: what needs memory
# before the first task says so, and a task's buffer does not wait for ever.
for room in 2 3 4; do
    run on 1 env EMULATED_ROOM=$room timeout 90 "$imagenet" train \
        --data "$tmp/data" --output "$tmp/run" --model resnet18 --width 8 \
        --small-stem --img-size 16 --sub-batch 4 --lanes 8 --batch-size 36 \
        --steps 3 --lr 0.1 --dtype bf16 --model-ema-decay 0.9
    cat "$tmp/err" >>"$tmp/room"
    exits 71 "a GPU without memory after $room allocations"
done
grep -q "out of device memory for a buffer of [0-9]* bytes" "$tmp/room"
point $? "the size of a task's buffer is named"
rm -rf "$tmp/run"

starpu=$(ldd "$builddir/.libs/libddp.so" | awk '$1 ~ /^libstarpu/ { print $3 }')

# measures VARIABLE=VALUE CODE MESSAGE: StarPU starts with an empty folder, where it
# measures copies between two GPUs, and stores nothing wrong
measures()
{
    rm -rf "$tmp/new"
    mkdir "$tmp/new"
    run on 2 env STARPU_HOME="$tmp/new" XDG_CACHE_HOME="$tmp/new" "$1" timeout 90 \
        "$imagenet" train --data "$tmp/data" --output "$tmp/run" --model mlp \
        --hidden 8 --img-size 16 --sub-batch 4 --lanes 2 --steps 2 --no-val
    exits "$2" "StarPU measures copies, $1"
    complains "$3" "which is said"
    [ -z "$(find "$tmp/new" -type f)" ]
    point $? "and it stores no measurement"
    rm -rf "$tmp/run"
}

if grep -q starpu_bus_errors_return "$starpu"; then
    measures EMULATED_ROOM=0 71 \
        "StarPU got no memory of a device: out of memory .in measure_.*: wait"
    measures EMULATED_ROOM=2 71 "StarPU got no memory of a device: out of memory"
    measures "EMULATED_GONE=malloc 0" 76 "a device was lost: uncorrectable ECC"
else
    skip 9 "this StarPU is not of contrib/build-starpu"
fi

# ---- resuming on other devices -----------------------------------------------

# to STEPS WITH...: train bf16 up to this step, or continue to it; images have
# eight channels on GPUs, three on CPUs and where both train
to()
{
    local steps=$1
    shift
    run "$@" "$imagenet" train --data "$tmp/data" --output "$tmp/run" \
        --model resnet18 --width 8 --small-stem --img-size 16 --sub-batch 4 \
        --lanes 8 --batch-size 36 --sched constant --steps "$steps" \
        --dtype bf16 --no-val --backend ref
}

# resumes FROM TO WROTE READS: that went well, and names the devices
resumes()
{
    [ $rc = 0 ] && grep -q '^resume: step=2 ' "$tmp/out"
    point $? "a bf16 run of $1 resumes on $2"
    complains "ran on $3, the following run on $4: bits may differ" \
        "which is reported"
}

to 2 on 1 env
to 3 env STARPU_NCUDA=0
resumes "a GPU" "CPU workers" "GPU .*" "CPU .*"
rm -rf "$tmp/run"
to 2 env STARPU_NCUDA=0
to 3 on 2 env
resumes "CPU workers" "GPUs" "CPU .*" "GPU .*"
rm -rf "$tmp/run"
to 2 on 1 env
to 3 on 1 env DDP_HYBRID=1
resumes "a GPU" "a GPU and CPU workers" "GPU .*" "GPU .*, CPU .*"
rm -rf "$tmp/run"

# A GPU that launches no kernel any more, in the third step or later.
rm -rf "$tmp/run"
to 5 on 1 env
crc=$(value weights)
rm -rf "$tmp/run"
to 5 on 2 env EMULATED_LOST=200
exits 76 "a GPU that fails ends the run"
complains "on CUDA 1\.0 .*: uncorrectable ECC error.*has all steps that were made" \
    "which names it, and the checkpoint"
to 5 on 1 env
[ $rc = 0 ] && [ -n "$crc" ] && [ "$(value weights)" = "$crc" ]
point $? "the other GPU resumes to the same weights: $crc"
rm -rf "$tmp/run"

# A GPU that fails all calls from some moment on.  The first steps are saved.

# StarPU measures copies when the number of GPUs changes: not there.
apart=(STARPU_HOME="$tmp/two" XDG_CACHE_HOME="$tmp/two")
mkdir "$tmp/two"
to 2 on 2 env "${apart[@]}"
rm -rf "$tmp/run"

# gone CALL COUNT: it ends the run, which names the GPU and the last checkpoint;
# the other GPU resumes from that
gone()
{
    to 2 on 1 env
    to 5 on 2 env "${apart[@]}" EMULATED_GONE="$1 $2" timeout 100
    exits 76 "a GPU that fails all calls after $2 of $1"
    complains "(CUDA|GPU) 1(\.0 .Emulated 1|( was lost)?: uncorrectable ECC error)" \
        "which is named"
    complains "newest checkpoint is .*/ckpt/step-0*2: the same command resumes from it, on the devices that are left(, and repeats [12] steps)?$" \
        "and the checkpoint"
    to 5 on 1 env
    [ $rc = 0 ] && [ -n "$crc" ] && [ "$(value weights)" = "$crc" ]
    point $? "from which the other GPU resumes to the same weights: $crc"
    rm -rf "$tmp/run"
}

# survives CALL COUNT: ddprun starts the run again, without anybody's help
survives()
{
    cat >"$tmp/fragile" <<'END'
#!/bin/sh
# The first time GPU 1 fails on its way, then the driver does not open it.
if [ -e "$0.failed" ]; then
    export FAKE_CUDA="0 99000 0/9/0 0/9/214"
else
    touch "$0.failed"
    export EMULATED_GONE="$GONE"
fi
exec "$@"
END
    chmod +x "$tmp/fragile"
    rm -f "$tmp/fragile.failed"
    to 5 on 2 env -u STARPU_NCUDA "${apart[@]}" GONE="$1 $2" timeout 200 \
        bash "$srcdir/contrib/ddprun" --restarts 1 "$tmp/fragile"
    exits 0 "ddprun continues after $2 of $1"
    complains "^ddprun: the run failed .exit code 76.; again" "after it has failed"
    says "^devices: 1 CUDA worker .*GPU 1 .* does not start" "on the GPU that is left"
    [ -n "$crc" ] && [ "$(value weights)" = "$crc" ]
    point $? "to the same weights: $crc"
    rm -rf "$tmp/run"
}

if grep -q starpu_cuda_errors_return "$starpu"; then
    survives copy 25
    gone copy 0
    gone copy 5
    gone copy 25
    gone query 20
    gone query 100
    gone launch 100
    gone wait 0
else
    skip 32 "this StarPU is not of contrib/build-starpu"
fi

done_testing
