#!/bin/sh
# app_joining.sh - ranks that are lost before all have joined, or when all have ended
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Ranks cannot speak to each other then: the launcher ends the others, and ddprun
# says who was lost.
. "$srcdir/tests/tap.sh"
. "$srcdir/tests/ranks.sh"

if ! has_mpi; then
    skip 20 "$why"
    done_testing
fi

build tests/die_mpi.la
"$imagenet" data synth --output "$tmp/data" --classes 3 --train-count 24 \
    --val-count 6 --size 24 >/dev/null || exit 99

# lose NAME MOMENT LAUNCHER...: rank 1 is killed then, but not when it starts again.
# Such runs wait nearly all the time, for launchers: four at once.
lose()
{
    name=$1 moment=$2
    shift 2
    begun=$((${begun:-0} + 1))
    [ $((begun % 4)) != 1 ] || wait
    mkdir "$tmp/$name"
    (
        export TMPDIR="$tmp/$name"
        timeout -k 10 120 "$@" env "LD_PRELOAD=$builddir/tests/.libs/die_mpi.so" \
            "ASAN_OPTIONS=verify_asan_link_order=0" DIE_AT="$moment" \
            DIE_ONCE="$tmp/$name/once" "$imagenet" train --data "$tmp/data" \
            --model resnet9 --width 16 --img-size 16 --epochs 1 --no-val -b 24 \
            --sub-batch 2 --lanes 12 --lr 0.05 --output "$tmp/$name/run" \
            >"$tmp/$name/out" 2>"$tmp/$name/err" </dev/null
        rc=$?
        died=$(stat -c %.9Y "$tmp/$name/once" 2>/dev/null || echo 0)
        echo $rc "$(awk "BEGIN { printf \"%.1f\", $(date +%s.%N) - $died }")" \
            >"$tmp/$name/ended"
    ) &
}

# lost NAME: what became of it, in $rc and $took, and as if run() had run it
lost()
{
    read -r rc took <"$tmp/$1/ended"
    cp "$tmp/$1/out" "$tmp/$1/err" "$tmp"
}

# In the order in which libddp calls MPI; MPICH's launcher does nothing about a rank
# that has not begun to.
moments="started dup hosts groups share hello end"
[ "$recover" = -disable-auto-cleanup ] || moments="start init $moments"
for moment in $moments; do
    # shellcheck disable=SC2086
    lose "mpirun-$moment" "$moment" $mpirun -n 3
done
if [ "$recover" != -disable-auto-cleanup ]; then
    # shellcheck disable=SC2086
    lose mpirun-lock lock $mpirun -n 3
fi
for moment in init hello end; do
    lose "ddprun-$moment" "$moment" \
        bash "$srcdir/contrib/ddprun" -n 3 --restarts 0 --mpirun "$mpirun"
done
lose ddprun-shrink init \
    bash "$srcdir/contrib/ddprun" -n 2 --shrink --mpirun "$mpirun"
wait

for moment in $moments; do
    lost "mpirun-$moment"
    holds "$took <= 10 && $rc != 0" \
        "mpirun, killed at \"$moment\": the others end in time ($took s, exit code $rc)"
done
if [ "$recover" != -disable-auto-cleanup ]; then
    lost mpirun-lock
    [ $rc = 0 ] && [ ! -e "$tmp/mpirun-lock/once" ]
    point $? "no rank holds a lock that mpirun would wait for"
    lost mpirun-init
    exits 137 "exit code 137"
    complains "process rank 1 with PID [0-9]* on node [^ ]* exited on signal 9" \
        "and mpirun says who was killed"
fi
for moment in init hello end; do
    lost "ddprun-$moment"
    complains "^ddprun: rank 1 [(].*[)] was killed by SIGKILL$" \
        "ddprun, killed at \"$moment\": it says which rank"
    holds "$took <= 10 && $rc == 76" \
        "the others end in time, with exit code 76 ($took s)"
done
lost ddprun-shrink
complains "^ddprun: a rank was lost .*; again with 1$" "it starts those that are left"
exits 0 "which succeed"

done_testing
