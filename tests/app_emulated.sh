#!/bin/bash
# app_emulated.sh - the same bits on any number of emulated GPUs
# SPDX-License-Identifier: LGPL-2.1-or-later
. "$srcdir/tests/tap.sh"
. "$srcdir/tests/emulated.sh"

# ---- the same bits -----------------------------------------------------------

make_images
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
same 2 DDP_INFLIGHT=4 STARPU_NCPU=2
# Nobody may use up the input meanwhile: StarPU would abort.
same 2 EMULATED_LATE_US=300000
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
complains "bf16" "bf16 is not for a T4 next to an H100"

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
