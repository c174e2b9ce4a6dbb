#!/bin/bash
# app_emulated.sh - GPUs that the processor plays: kernels, and the same bits
# on any number of them
#
# StarPU's CUDA workers, our kernels' launches, plans, copies, streams and
# events are the real ones; what CUDA's libraries would do is done by
# tests/emulator.
# SPDX-License-Identifier: LGPL-2.1-or-later
. "$srcdir/tests/tap.sh"

emulator=$builddir/tests/.libs/emulated_gpu.so
export DDP_LIBCUDA=$builddir/tests/.libs/fake_cuda.so
export DDP_MODULE_DIR=$builddir/.libs
export STARPU_HOME=$tmp/home XDG_CACHE_HOME=$tmp/home
mkdir "$tmp/home"

# on N COMMAND...: with N GPUs
on()
{
    local n=$1
    shift
    env FAKE_CUDA="0 99000$(printf ' 0/9/0%.0s' $(seq "$n"))" \
        EMULATED_GPUS="$n" STARPU_NCUDA="$n" LD_PRELOAD="$emulator" "$@"
}

why="built without CUDA"
[ -e "$emulator" ] &&
    why=$(on 1 "$builddir/tests/test_gpu_train" --probe 2>&1 |
        sed -n 's/^1\.\.0 # SKIP //p')
if [ -n "$why" ]; then
    echo "1..0 # SKIP $why"
    exit 0
fi

# ---- the tests of CPU workers, and of kernels --------------------------------

# passes TEST VARIABLE=VALUE...: on a GPU
passes()
{
    run on 1 env "${@:2}" "$builddir/tests/test_$1"
    [ $rc = 0 ] && [ "$(grep -c '^ok' "$tmp/out")" -gt 20 ]
    point $? "test_$1 on a GPU, ${*:2}: $(grep -c '^ok' "$tmp/out") points"
}

passes ops_cuda
says "masks, f32 and bf16: cuDNN, cuDNN" "masks of batch norm are cuDNN's"
passes ops_cuda EMULATED_REVERSED=1
says "masks, f32 and bf16: our own" "not if they are in another order than ours"
passes ops_cuda EMULATED_NO_SUMS=1
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

# ---- the same bits -----------------------------------------------------------

"$imagenet" data synth --output "$tmp/data" --classes 4 --train-count 40 \
    --val-count 8 --size 16 >"$tmp/out" 2>"$tmp/err"
point $? "images"

# train N TYPE VARIABLE=VALUE...: the weights after some steps, in $crc
lanes=8
train()
{
    local n=$1 type=$2
    shift 2
    run on "$n" env "$@" "$imagenet" train --data "$tmp/data" \
        --output "$tmp/run" --model resnet18 --width 8 --small-stem \
        --img-size 16 --sub-batch 4 --lanes $lanes --batch-size 36 \
        --steps "$steps" --lr 0.1 --dtype "$type" --model-ema-decay 0.9
    rm -rf "$tmp/run"
    crc=$(value weights)
}

# same N VARIABLE=VALUE...: as on one GPU
same()
{
    train "$1" "$type" "${@:2}"
    [ $rc = 0 ] && [ -n "$crc" ] && [ "$crc" = "$first" ]
    point $? "$type on $1: $first again, ${*:2}"
}

for type in f32 f16 bf16; do
    # In f16 the first steps lower the loss scale and are not applied.
    steps=$([ $type = f16 ] && echo 6 || echo 3)
    train 1 $type DDP_SEGMENT_US=1000
    first=$crc
    [ $rc = 0 ] && [ -n "$first" ]
    point $? "$type on one GPU: $first"
    same 2 DDP_SEGMENT_US=0
done
same 8 DDP_SEGMENT_US=1000
same 3 EMULATED_DELAY_US=300
same 2 STARPU_NWORKER_PER_CUDA=2 EMULATED_DELAY_US=300
same 2 STARPU_CUDA_PIPELINE=0 STARPU_PREFETCH=0
same 2 DDP_INFLIGHT=4
for sched in eager lws random dmdas; do
    same 2 STARPU_SCHED=$sched
done
# Lanes of three sub-batches, which may move from one GPU to another.
lanes=3 eight=$first
train 1 $type
first=$crc
same 2 DDP_INFLIGHT=1
lanes=8 first=$eight

# ---- GPUs of two models --------------------------------------------------------

# Emulated ones compute the same; a plan that is for the other model would end the
# process.
two=(FAKE_CUDA="0 99000 0/9/0 0/10/0" EMULATED_CAPABILITY="90 100")
train 2 $type "${two[@]}"
[ $rc != 0 ]
point $? "GPUs of two models"
complains "GPU 1 .Fake 1. is not like GPU 0 .*DDP_UNLIKE_GPUS=1" \
    "do not train together by themselves"
same 2 "${two[@]}" DDP_UNLIKE_GPUS=1
says "^devices: 2 CUDA workers on 2 GPUs .*of several kinds train together .Fake 0, Fake 1.: .*no run repeats" \
    "which says what is promised"
train 2 bf16 FAKE_CUDA="0 99000 0/9/0 0/7/0/5" EMULATED_CAPABILITY="90 75" \
    DDP_UNLIKE_GPUS=1
complains "bf16" "bf16 is not for a T4 beside an H100"

# ---- batch norm over the whole step -------------------------------------------

# Nine sub-batches are nine lanes.
synced()
{
    run on "$1" env "${@:2}" "$imagenet" train --data "$tmp/data" --sync-bn \
        --output "$tmp/run" --model resnet18 --width 8 --small-stem \
        --img-size 16 --sub-batch 4 --batch-size 36 --steps 2 --lr 0.1
    rm -rf "$tmp/run"
    crc=$(value weights)
    loss=$(value loss)
}

synced 1 DDP_SEGMENT_US=1000
first=$crc on_gpu=$loss
[ $rc = 0 ] && [ -n "$first" ]
point $? "norms over the step: $first"
synced 2 EMULATED_DELAY_US=300
[ "$crc" = "$first" ]
point $? "again on two GPUs"
synced 0
holds "$loss - $on_gpu < 2e-3 && $on_gpu - $loss < 2e-3" \
    "cores evaluate to the same loss, $loss and $on_gpu, in 4 digits of f32 sums"
first=$eight

# ---- plans -------------------------------------------------------------------

# Steps end with sub-batches of 2, epochs with one of 1; evaluation with 2.
run on 1 env EMULATED_AHEAD=1 "$imagenet" train --data "$tmp/data" \
    --output "$tmp/run" --model resnet18 --width 8 --small-stem --img-size 16 \
    --sub-batch 3 --lanes 2 --batch-size 11 --epochs 1 --lr 0.1
point $rc "plans for short sub-batches are there before the first task"
rm -rf "$tmp/run"

# 75 % of the products and 88 % of the copies that fake_cuda.c promises in f32.
run on 1 "$imagenet" inspect --model resnet18 --img-size 32 --sub-batch 4 \
    --lanes 2
says "^time: about [0-9.]+ ms a step, [0-9]+ images/s, estimated for Fake 0 with 50 TFLOP/s and 4.3 TB/s" \
    "inspect estimates the time of a step"

# ---- copies -------------------------------------------------------------------

# Two sub-batches, on two GPUs: the input of four images of 16x16 once each, from
# main memory; and sums of gradients from one to the other.
run on 2 "$imagenet" train --data "$tmp/data" --output "$tmp/run" \
    --model resnet18 --width 8 --small-stem --img-size 16 --sub-batch 4 \
    --lanes 2 --batch-size 8 --steps 5 --lr 0.1 --trace 1
t=$tmp/run/trace.json
[ "$(grep -c '"ph":"b".* to CUDA [01]".*"step":3,"bytes":3072}' "$t")" = 2 ]
point $? "the trace has a copy of each sub-batch's input"
grep -q '"ph":"b".*"CUDA [01] to CUDA [01]"' "$t"
point $? "and of gradients from GPU to GPU"
rm -rf "$tmp/run"

# ---- time ---------------------------------------------------------------------

small="--model resnet18 --width 8 --small-stem --img-size 16 --classes 4
    --sub-batch 4 --dtype bf16"

# What the host takes to launch kernels is time without a kernel.
# shellcheck disable=SC2086
run on 1 env EMULATED_LAUNCH_US=1500 "$bench" train $small --lanes 2 --steps 2
idle=$(tr , '\n' <"$tmp/out" | sed -n 's/^"gpu_idle_share"://p')
holds "$idle > 0.5" "a GPU that waits for its host is idle: $idle"

# shellcheck disable=SC2086
run on 1 "$bench" roof $small
[ $rc = 0 ] && [ "$(wc -l <"$tmp/out")" -gt 30 ] && ! grep -q ',,$' "$tmp/out"
point $? "every operation of the table has a time"
! grep -q '",[0-9.]*,0,' "$tmp/out"
point $? "and the table has every operation"

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
steps=3
for room in 2 3 4; do
    run on 1 env EMULATED_ROOM=$room timeout 90 "$imagenet" train \
        --data "$tmp/data" --output "$tmp/run" --model resnet18 --width 8 \
        --small-stem --img-size 16 --sub-batch 4 --lanes 8 --batch-size 36 \
        --steps "$steps" --lr 0.1 --dtype "$type" --model-ema-decay 0.9
    cat "$tmp/err" >>"$tmp/room"
    exits 71 "a GPU without memory after $room allocations"
done
grep -q "out of device memory for a buffer of [0-9]* bytes" "$tmp/room"
point $? "the size of a task's buffer is named"
rm -rf "$tmp/run"

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
exits 1 "a GPU that fails ends the run"
complains "on CUDA 1\.0 .*: uncorrectable ECC error.*has all steps that were made" \
    "which names it, and the checkpoint"
to 5 on 1 env
[ $rc = 0 ] && [ -n "$crc" ] && [ "$(value weights)" = "$crc" ]
point $? "the other GPU resumes to the same weights: $crc"
rm -rf "$tmp/run"

# StarPU makes the copies, and aborts if one fails.  The first steps are saved.
to 2 on 1 env
to 5 on 2 env EMULATED_LOST_COPY=40
exits 134 "a copy from or to GPU 1 that fails ends the process"
complains "aborted in thread CUDA [01], whose last copy was (from CUDA 1 to .*|from .* to CUDA 1), for the reason above" \
    "which names the copy"
complains "; the last checkpoint is .*/ckpt/step-0*2: the same command" \
    "and the checkpoint"
to 5 on 1 env
[ $rc = 0 ] && [ -n "$crc" ] && [ "$(value weights)" = "$crc" ]
point $? "from which the other GPU resumes to the same weights: $crc"
rm -rf "$tmp/run"

# ---- fewer processors than GPUs need ------------------------------------------

cpu=$(taskset -cp $$ | sed 's/.*: //; s/[-,].*//')
train 1 $type -u STARPU_NCPU taskset -c "$cpu"
[ $rc = 0 ] && [ "$crc" = "$first" ]
point $? "a GPU and its input share a processor"

# ---- several ranks on a machine -----------------------------------------------

# rank_devices N COMMAND...: how many GPUs the first of N ranks uses, of three;
# the first layer goes to other ranks in eight parts
rank_devices()
{
    local n=$1
    shift
    # shellcheck disable=SC2086
    run on 3 timeout -k 10 120 $mpirun -n "$n" env -u STARPU_NCUDA \
        STARPU_NCPU=1 "$@" LD_PRELOAD="$counter $emulator" sh -c 'eval "$SET"; exec "$@"' sh \
        "$imagenet" train --data "$tmp/ranks" --model mlp --hidden 300 \
        --img-size 64 --epochs 1 -b 24 --sub-batch 2 --lanes 12 --lr 0.05 \
        --no-val --output "$tmp/ranks-$n-$#$wire" ${wire:+--wire-dtype $wire}
    [ $rc = 0 ] && [ "$(value weights)" = "${weights:=$(value weights)}" ]
    point $? "$n ranks train to the same weights: $weights"
}

# sends BYTES WHAT: the ranks send so many out of the memory of GPUs
sends()
{
    local sum
    sum=$(awk '/^sent:/ { n += $2 } END { print n + 0 }' "$tmp/err")
    holds "$sum >= $1 && $sum <= 1.01 * $1" "$2: $sum bytes"
}

. "$srcdir/tests/ranks.sh"
counter=$builddir/tests/.libs/count_mpi.so
if has_mpi; then
    "$imagenet" data synth --output "$tmp/ranks" --classes 3 --train-count 60 \
        --val-count 21 --size 24 >/dev/null || exit 99
    rank_devices 1
    says "^devices: 3 CUDA workers" "one rank has all three GPUs"
    rank_devices 3
    says "^devices: 1 CUDA worker on 1 GPU" "three ranks have one each"
    sends 0 "gradients of GPUs travel through main memory"
    # Two steps of three pieces and one of two, of 3,687,603 numbers: 34 thirds of them
    # travel, and what fills up the buckets.
    rank_devices 3 DDP_MPI_CUDA=1
    sends 167171336 "or as an MPI that knows GPUs carries them, all of them"
    rank_devices 2 DDP_MPI_CUDA=1 EMULATED_DELAY_US=300
    rank_devices 2 EMULATED_DELAY_US=300
    rank_devices 2 SET='export CUDA_VISIBLE_DEVICES=$OMPI_COMM_WORLD_RANK'
    says "^devices: 3 CUDA workers" \
        "what the launcher gives each rank is not divided"
    wire=bf16 weights=
    rank_devices 1
    rank_devices 3
else
    skip 13 "$why"
fi

done_testing
