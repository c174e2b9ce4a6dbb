#!/bin/sh
# app_memory.sh - imagenet train with less memory than it needs
# SPDX-License-Identifier: LGPL-2.1-or-later
. "$srcdir/tests/tap.sh"

export STARPU_NCPU=2
data=$tmp/data
"$imagenet" data synth --output "$data" --classes 3 --train-count 16 \
    --val-count 4 --size 64 >/dev/null || exit 99

# mib NAME: what is planned, in MiB; "memory": all of it
mib()
{
    sed -n "s/^memory: .*[ :]$1 \([0-9]*\).*/\1/p; s/^$1: \([0-9]*\) of.*/\1/p" \
        "$tmp/out"
}

# train LIMIT: with so many MiB of main memory; 0: all
train()
{
    run env STARPU_LIMIT_CPU_MEM="$1" "$imagenet" train "$data" \
        --model mobilenet_v2 --img-size 64 -b 16 --sub-batch 4 --lanes 2 \
        --steps 2 --no-val --lr 0.1 --output "$tmp/limit$1"
}

train 0
exits 0 "enough memory"
weights=$(grep -o 'weights=crc32c:.*' "$tmp/out")
all=$(mib memory) two=$(mib activations)
holds "$all > 50 && $two > 10" "$all MiB, $two of them for two sub-batches"
train $((all - two / 4))
exits 0 "a bit less"
says "only 1 of 2 sub-batches at a time" "the workers take turns, which is said"
says "^plan: 1 of 4 sub-batches at a time, limited by the memory$" "in the plan"
[ "$weights" ] && grep -q "$weights" "$tmp/out"
point $? "for the same weights"
train $((all - two))
exits 71 "too little for one"
complains "this needs [0-9]+ MiB: .* the machine has $((all - two)):" \
    "the message compares the memory"

# Half a sub-batch has half the activations.
little=$((all - two * 2 / 3))
train $little
exits 71 "too little for one, but not for half of it"
complains "use a smaller --sub-batch, .*--sub-batch 2 should fit, with other sums" \
    "the message names it"
run env STARPU_LIMIT_CPU_MEM=$little "$imagenet" train "$data" --model mobilenet_v2 \
    --img-size 64 -b 16 --sub-batch 2 --lanes 2 --steps 2 --no-val --lr 0.1 \
    --output "$tmp/smaller"
exits 0 "it fits"
[ "$weights" ] && grep -q "weights=crc32c:" "$tmp/out" && ! grep -q "$weights" "$tmp/out"
point $? "and gives other weights: $(grep -o 'weights=.*' "$tmp/out"), not $weights"

# within KIB COMMAND...: with so much address space
within()
{
    # shellcheck disable=SC3045
    run sh -c 'ulimit -v "$1" && shift && exec timeout -k 9 60 "$@"' - "$@"
}

within 20000000 "$imagenet" --version
if [ $rc != 0 ]; then # a sanitizer takes more
    skip 14 "address space cannot be limited here"
    done_testing
fi

# It is short when the run starts, when it makes its buffers, or in a step.
short=0
for kib in 300000 400000 420000 424000 450000; do
    within $kib "$imagenet" train "$data" --model resnet18 --img-size 64 \
        -b 16 --sub-batch 8 --lanes 2 --steps 1 --no-val --lr 0.1 \
        --output "$tmp/run$kib"
    [ $rc = 71 ] && short=$((short + 1))
    [ $rc = 71 ] || [ $rc = 0 ]
    point $? "$kib KiB: exit code $rc"
    [ $rc = 0 ] || grep -q "out of memory for" "$tmp/err"
    point $? "$(head -n 1 "$tmp/err")"
done
[ $short -gt 0 ]
point $? "$short runs had too little"

# And when oneDNN makes many primitives, whose code generator does not check what
# it gets.
wrong=0
for kib in $(seq 354000 6000 402000); do
    within "$kib" "$imagenet" train "$data" --model resnet50 --width 16 \
        --img-size 64 -b 16 --sub-batch 8 --lanes 2 --steps 1 --no-val --lr 0.1 \
        --output "$tmp/primitives$kib"
    [ $rc = 71 ] || [ $rc = 0 ] || wrong=$((wrong + 1))
done
[ $wrong = 0 ]
point $? "$wrong runs of many primitives ended with another code than 71"

# It is short for a thread, where StarPU would abort.  The loader of programs
# ends with 127 if there is less.
wrong=0 threads=0
for kib in $(seq 96000 6000 180000); do
    within "$kib" "$imagenet" train "$data" --model resnet18 --img-size 64 \
        -b 16 --steps 1 --no-val --lr 0.1 --output "$tmp/thread$kib"
    [ $rc = 71 ] || [ $rc = 127 ] || [ $rc = 0 ] || wrong=$((wrong + 1))
    grep -q "out of memory for threads: the workers need 2" "$tmp/err" &&
        threads=$((threads + 1))
done
[ $wrong = 0 ]
point $? "$wrong runs ended with another code than 71"
[ $threads -gt 0 ]
point $? "$threads runs had no room for threads"
done_testing
