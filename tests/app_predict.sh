#!/bin/sh
# app_predict.sh - training on simulated GPUs: no lane is split, and it scales
# SPDX-License-Identifier: LGPL-2.1-or-later
. "$srcdir/tests/tap.sh"

predict=$builddir/bin/ddp-predict

# This test describes its machines itself.
unset STARPU_NCUDA STARPU_NCPU

# of DEVICES NAME: a number out of the line of the machine with so many devices
of()
{
    grep "\"[gc]pus\":$1," "$tmp/out" | tr ',{}' '[\n*]' |
        sed -n "s/^\"$2\"://p" | grep . || echo 0
}

if [ ! -x "$predict" ]; then
    skip 1 "configured without --with-simgrid"
    done_testing
fi

# print: the figures, for the log
print()
{
    grep -o '"lanes":.*' "$tmp/out" | sed 's/,"version".*"eff/,"eff/; s/^/# /'
}

run "$predict" --json
exits 0 "ResNet-50, 16 lanes of 64, on 1, 2, 4 and 8 GPUs"
print
for n in 1 2 4 8; do
    # 9 steps: 3 that do not count, 5 that do, and one after them.
    holds "$(of $n lanes_run) == 144 && $(of $n lanes_split) == 0" \
        "no lane is split over $n"
    holds "$(of $n idle_share) > 0 && $(of $n idle_share) < 0.06" \
        "they are hardly idle"
done
for n in 1 8; do
    holds "$(of $n planned_step_ms) > 0.95 * $(of $n step_ms) && \
        $(of $n planned_step_ms) < 1.05 * $(of $n step_ms)" \
        "the plan of a step on $n has $(of $n planned_step_ms) ms"
done
one=$(of 1 step_ms)
holds "$(of 8 efficiency) >= 0.97 && $(of 8 efficiency) <= 1" \
    "8 GPUs do 97 % of 8 times the work"

# What StarPU has allocated, to 5 %: tasks that end in another order than planned
# differ by a buffer or two.
# MODEL:GPUS:LANES
for run in mlp:1:1 mlp:1:64 mlp:2:4 mlp:2:64 mlp:4:16 mlp:8:16 mlp:8:64 vgg16:4:4 \
    vgg16:4:64 vgg16:8:4 resnet50:1:4 resnet50:1:64 resnet50:4:8 resnet50:4:16 vgg16:1:1 vgg16:4:16 efficientnet_v2_s:1:64 \
    ${DDP_LONG:+mlp:1:4 mlp:1:16 mlp:2:8 mlp:4:8 mlp:8:8 resnet50:1:1 resnet50:1:16 \
    resnet50:2:8 resnet50:8:8 vgg16:1:4 vgg16:1:16 vgg16:2:8 vgg16:8:16 efficientnet_v2_s:1:1 efficientnet_v2_s:1:4 \
    efficientnet_v2_s:1:16}; do
    model=${run%%:*} lanes=${run##*:} gpus=${run#*:}
    gpus=${gpus%:*}
    run "$predict" --json --model "$model" --sub-batch 16 --gpus "$gpus" \
        --lanes "$lanes" --steps 2 --skip 1
    plan=$(of "$gpus" planned_gpu_mib) held=$(of "$gpus" peak_gpu_mib)
    holds "$plan > 0.95 * $held && $plan < 1.05 * $held && $held > 0" \
        "$model in $lanes lanes on $gpus: $plan MiB planned, $held held"
done

# GPUs without a lane get no sums and no weights.
run "$predict" --json --model vgg16 --sub-batch 16 --gpus 4,8 --lanes 4 --steps 2 --skip 1
holds "$(of 8 step_ms) > 0 && $(of 8 step_ms) < 1.02 * $(of 4 step_ms)" \
    "4 lanes take no longer on 8 GPUs than on 4: $(of 8 step_ms) ms"

# Nothing hides what a GPU's only lane waits for.
run "$predict" --json --lanes 8 --gpus 1,8
exits 0 "8 lanes"
print
holds "$(of 8 lanes_split) == 0 && $(of 8 efficiency) >= 0.96" \
    "one for each of 8 GPUs: 96 %"
run "$predict" --json --lanes 8 --gpus 8 --trace "$tmp/trace"
[ "$(grep -c '"cat":"merge","cname":.*"bucket":9,' "$tmp/trace")" = 14 ]
point $? "--trace has the merges of two steps"

# The same sub-batches with one GPU four times slower: ideal is that the other has
# four fifths of them.
for lanes in 2 8; do
    run "$predict" --json --gpus 2 --slow 4 --lanes $lanes --sub-batches 16
    print
    holds "$(of 2 lanes_split) > 0 && $(of 2 step_ms) < 1.15 * $one * 0.8" \
        "$lanes lanes move to a GPU that is faster, if it has less to do"
done
# Nobody waits for a buffer while others wait for the scheduler.
run env DDP_EARLY=0 "$predict" --json --model densenet121 --lanes 8 --gpus 8 --link 370 \
    --steps 2 --skip 1
exits 0 "a step in which all weights travel at the same time"

run "$predict" --json --gpus 8 --lanes 8 --sub-batches 16
holds "$(of 8 lanes_split) == 0 && $(of 8 lanes_run) == 72" \
    "but not between GPUs that are as fast"

# A GPU that stops for 400 ms loses what it has not begun.
run "$predict" --json --gpus 2 --lanes 16 --sub-batches 64 --steps 1 --skip 2 \
    --stall 400
print
holds "$(of 2 step_ms) > 400 && $(of 2 step_ms) < 1.05 * (400 + (4 * $one - 400) / 2)" \
    "another does the rest of a GPU that stops: $(of 2 step_ms) ms"

# Of four sub-batches a GPU that is eight times slower takes none, unless the other
# one stops: then all but the two that that has begun.
run "$predict" --json --gpus 2 --slow 1,8 --lanes 4 --sub-batches 4 --steps 20 --skip 4
holds "$(of 2 step_ms) < 1.1 * $one / 4" \
    "what is left to a faster GPU takes $(of 2 step_ms) ms"
run "$predict" --json --gpus 2 --slow 1,8 --lanes 4 --sub-batches 4 --steps 1 --skip 4 \
    --stall 400
holds "$(of 2 step_ms) > 400 && $(of 2 step_ms) < 400 + 1.1 * $one / 8" \
    "and is taken back if that stops: $(of 2 step_ms) ms"

# CPU workers (of 0.1 TFLOP/s and 10 GB/s) next to a GPU do what they can, and do not
# make the sums and updates of one that is thousands of times faster.
mixed="--model resnet18 --sub-batch 16 --tflops 1 --gpus 1 --steps 3 --skip 4"
# shellcheck disable=SC2086
run "$predict" --json $mixed
alone=$(of 1 step_ms)
# shellcheck disable=SC2086
run env DDP_HYBRID=1 "$predict" --json $mixed
print
holds "$(of 3 step_ms) > 0 && $(of 3 step_ms) < 0.9 * $alone" \
    "a GPU and two CPU workers: $(of 3 step_ms) ms, the GPU alone $alone"
run env DDP_HYBRID=1 "$predict" --json --gpus 1 --steps 3 --skip 4
holds "$(of 3 step_ms) > 0 && $(of 3 step_ms) < 1.1 * $one" \
    "two that are far slower leave all to it: $(of 3 step_ms) ms, alone $one"

# The lanes that imagenet chooses for 32 CPU workers, and the usual ones.
run "$predict" --json --model resnet18 --dtype f32 --cpus 32 --lanes 32 \
    --sub-batch 8 --steps 2 --skip 1
exits 0 "32 CPU workers"
print
holds "$(of 32 idle_share) > 0 && $(of 32 idle_share) < 0.1" \
    "with a lane each: hardly idle"
# One layer of 308 MB: its gradients are merged, checked and updated in strips.
# A merge by one worker takes 62 ms, and five follow each other.
run "$predict" --json --model mlp --dtype f32 --cpus 32 --lanes 32 \
    --sub-batch 8 --steps 2 --skip 1
holds "$(of 32 idle_share) > 0 && $(of 32 idle_share) < 0.05" \
    "with one large layer, too: idle $(of 32 idle_share)"
# One of 25 MB: in strips of 1 MB or more 31 % idle.
run "$predict" --json --model mlp --img-size 64 --dtype f32 --cpus 32 --lanes 32 \
    --sub-batch 8 --steps 3 --skip 2
holds "$(of 32 idle_share) > 0 && $(of 32 idle_share) < 0.1" \
    "and with a smaller one: idle $(of 32 idle_share)"
run "$predict" --json --model resnet18 --dtype f32 --cpus 32 --lanes 8 \
    --sub-batch 32 --steps 2 --skip 1
# Three of four workers have no lane and help the others with tasks that are
# ready: a step takes two thirds of the time that is planned for lanes.
holds "$(of 32 idle_share) > 0.55 && $(of 32 idle_share) < 0.7" \
    "with 8 lanes: most are, $(of 32 idle_share)"
holds "$(of 32 step_ms) < 0.75 * $(of 32 planned_step_ms)" \
    "but help: $(of 32 step_ms) of $(of 32 planned_step_ms) ms"

# What workers read from other NUMA nodes.  An MLP of 3072, 512, 512 and 10 has
# $weights GiB; each of two workers, one per node, has a lane.  One node lacks
# weights that the other one updated, and the sum of one lane is read by the
# other's worker: at least these come from another node.  At most five vectors are
# read where they are not, once each: the weights, the sums of both lanes and what
# they add up to, and the optimizer's state, whose strips any worker updates.  Twice
# as many lanes on each node read the same weights again.
weights=$(awk 'BEGIN { print 4 * (3073 * 512 + 513 * 512 + 513 * 10) / 2^30 }')
small="--model mlp --img-size 32 --classes 10 --sub-batch 8 --dtype f32 --steps 4 --skip 2"
# shellcheck disable=SC2086
run "$predict" --json $small --lanes 2 --cpus 2 --numa 2
exits 0 "two NUMA nodes"
print
once=$(of 2 once_gib) remote=$(of 2 remote_gib)
holds "$once > 1.99 * $weights && $once < 5 * $weights" \
    "weights and sums come from the other node: $once GiB of $weights"
holds "$once <= $remote && $remote < $(of 2 read_gib)" \
    "$remote GiB with what is read again, of $(of 2 read_gib)"
# shellcheck disable=SC2086
run "$predict" --json $small --lanes 4 --cpus 4 --numa 2
holds "$(of 4 remote_gib) > $remote + 0.9 * $weights" \
    "two workers of a node read them twice: $(of 4 remote_gib) GiB"
# shellcheck disable=SC2086
run "$predict" $small --lanes 2 --cpus 2 --numa 1,2
says "2 NUMA nodes: .* GiB .*of them from other nodes" "a line without --json"
[ "$(grep -c "NUMA nodes" "$tmp/out")" = 1 ] && [ "$(grep -c GiB "$tmp/out")" = 3 ]
point $? "of one machine of two"
# What is far takes two times longer than at 10 GB/s: so much longer workers are busy,
# but for tasks at both ends of 20 steps, and a step takes longer by all of it at most,
# if one worker waits for the other's reads.
# shellcheck disable=SC2086
run "$predict" --json $small --steps 20 --lanes 2 --cpus 2 --numa 2
print
near=$(of 2 step_ms) idle=$(of 2 idle_share)
# shellcheck disable=SC2086
run "$predict" --json $small --steps 20 --lanes 2 --cpus 2 --numa 2 --far 3
print
longer=$(awk "BEGIN { print 2 * $(of 2 remote_gib) * 2^30 / 1e10 * 1e3 }")
busy=$(awk "BEGIN { print 2 * (1 - $(of 2 idle_share)) * $(of 2 step_ms) - \
    2 * (1 - $idle) * $near }")
holds "$busy > 0.97 * $longer && $busy < 1.03 * $longer" \
    "to read from far takes longer: $busy ms, by what is counted $longer"
holds "$(of 2 idle_share) > 0 && $(of 2 idle_share) < 1 && \
    $(of 2 step_ms) < $near + 1.1 * $longer" \
    "a step of $(of 2 step_ms) ms, near $near: idle $(of 2 idle_share)"
# A layer of 150528 x 512 in strips, each of which reads its part: the vector is read
# in two forward passes, twice to merge, to check, and three are for the
# update: 8, and what the next step has begun, less than 2 vectors in 8 steps.
run "$predict" --json --model mlp --dtype f32 --sub-batch 8 --lanes 2 --cpus 2 --numa 2 \
    --steps 8 --skip 3
weights=$(awk 'BEGIN { print 4 * 150528 * 512 / 2^30 }')
holds "$(of 2 read_gib) > 7.75 * $weights && $(of 2 read_gib) < 8.25 * $weights" \
    "strips read what they are of: $(of 2 read_gib) GiB of $weights"

# The simulation takes what calibrate measured: a step of one worker is the sum
# of its operations, and each costs the runtime task_us.
small="--model resnet9 --img-size 32 --sub-batch 4 --dtype f32"
run "$builddir/bin/ddp-bench" calibrate $small --workers 1 --steps 2 --skip 1 \
    --output "$tmp/times.csv"
exits 0 "times of a step's operations are measured"
measured=$(sed -n 's/.*"kernels_ms":\([0-9.]*\).*/\1/p' "$tmp/out")
run "$predict" --json $small --lanes 1 --cpus 1 --times "$tmp/times.csv"
exits 0 "and predict a step"
print
[ "$(of 1 unknown)" = 0 ]
point $? "each is known"
step=$(of 1 step_ms) tasks=$(of 1 tasks)
holds "$step >= 0.9 * $measured && $step < 1.5 * $measured" \
    "$step ms, where kernels took $measured"
holds "$(of 1 planned_step_ms) > 0.95 * $step && $(of 1 planned_step_ms) < 1.05 * $step" \
    "as the plan of a step has it: $(of 1 planned_step_ms) ms"
run "$predict" --json $small --lanes 6 --cpus 2 --times "$tmp/times.csv"
step2=$(of 2 step_ms)
holds "$(of 2 planned_step_ms) > 0.9 * $step2 && $(of 2 planned_step_ms) < 1.1 * $step2" \
    "also of six sub-batches on two workers: $step2 ms, $(of 2 planned_step_ms) planned"
run "$imagenet" inspect --model resnet9 --img-size 32 --sub-batch 4 --lanes 1 --times \
    "$tmp/times.csv"
says "^time: about [0-9.]+ ms a step, [0-9.]+ images/s, by .*times.csv" \
    "which imagenet inspect shows"
# The runtime joins fewer tasks when they are longer, and each that is left costs
# task_us, which is three times as long, too.
awk -F, -v OFS=, 'NR > 1 { $2 *= 3 } 1' "$tmp/times.csv" >"$tmp/slow.csv"
task=$(awk -F, '$3 == "task" { print $2 / 1e3 }' "$tmp/times.csv")
run "$predict" --json $small --lanes 1 --cpus 1 --times "$tmp/slow.csv"
longer="3 * ($step + ($(of 1 tasks) - $tasks) * $task)"
holds "$(of 1 step_ms) > 0.97 * $longer && $(of 1 step_ms) < 1.03 * $longer" \
    "three times as long with times that are"
sed 1q "$tmp/times.csv" >"$tmp/none.csv"
run "$predict" $small --lanes 1 --cpus 1 --times "$tmp/none.csv"
exits 65 "a file without times"
run "$predict" $small --lanes 1 --cpus 1 --times "$tmp/nothing"
exits 74 "a file that does not exist"

# VGG-16 has 411 MB of gradients in one layer.
run "$predict" --json --model vgg16 --gpus 1,8 --steps 2
exits 0 "VGG-16"
print
holds "$(of 8 lanes_split) == 0 && $(of 8 efficiency) >= 0.92" \
    "8 GPUs do 92 % of 8 times the work, despite a layer of 411 MB"

# The other nodes take part in a step's sums, at the speed of the network.
run "$predict" --json --gpus 8 --nodes 1,64 --net 200 --steps 2 --skip 2
exits 0 "64 nodes"
holds "$(of 8 efficiency | tail -n 1) >= 0.95 && \
    $(of 8 efficiency | tail -n 1) < 0.99" "64 nodes do 95 % of 64 times the work"
run "$predict" --json --gpus 8 --nodes 1,64 --net 100 --steps 3 --skip 3 --lanes 8 --sub-batch 128
exits 0 "64 nodes with a slow network"
holds "$(of 8 efficiency | tail -n 1) >= 0.94 && \
    $(of 8 efficiency | tail -n 1) < 0.99" "and 94 % at 100 Gb/s"

# What is compared to: a policy that knows nothing of lanes.
run env STARPU_SCHED=eager "$predict" --json --gpus 4 --model resnet18
exits 0 "another scheduler"
holds "$(of 4 lanes_split) > 0" "splits lanes, and that is seen"

run "$predict" --json --gpus 2 --model resnet18
cp "$tmp/out" "$tmp/first"
run "$predict" --json --gpus 2 --model resnet18
cmp "$tmp/first" "$tmp/out"
point $? "a prediction is the same the second time"

# Gradients and state wait in main memory if need be: this is hardly enough for what
# tasks use at a time.
run "$predict" --json --model vgg16 --img-size 64 --sub-batch 8 --lanes 4 --dtype f32 \
    --steps 1 --skip 1 --gpus 1 --memory 1.99
exits 0 "VGG-16, momentum and 4 lanes on a GPU of 1.99 GiB"
held=$(of 1 peak_gpu_mib)
holds "$held > 0 && $held < 1024 * 1.99 && $(of 1 evicted_gpu_mib) > 1000" \
    "holds $held MiB; $(of 1 evicted_gpu_mib) go to main memory and back"

run "$predict" --gpus 1 --model resnet18 --memory 0.5
exits 71 "a GPU whose memory is too small"
complains "a GPU has [0-9]+" "the message compares the memory"

mkdir "$tmp/folder"
TMPDIR=$tmp/folder "$predict" --model resnet18 >"$tmp/out" 2>"$tmp/err" &
until [ -n "$(ls "$tmp/folder")" ] || ! kill -0 $!; do sleep 0.1; done
kill -TERM $!
wait $!
[ $? = 1 ] && [ -z "$(ls "$tmp/folder")" ]
point $? "a signal ends it, and leaves no files"
complains "ended by SIGTERM" "the signal is named"

done_testing
