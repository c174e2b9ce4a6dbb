#!/bin/sh
# app_peers.sh - ranks that are lost: the others say so, and end
# SPDX-License-Identifier: LGPL-2.1-or-later
. "$srcdir/tests/tap.sh"
. "$srcdir/tests/ranks.sh"

if ! has_mpi; then
    skip 12 "$why"
    done_testing
fi
build tests/ranks_program

# MPICH's launcher may give the number of SIGKILL, by which it ends the last.
is_loss()
{
    [ $rc = 76 ] || { [ $rc = 9 ] && [ "$recover" = -disable-auto-cleanup ]; }
    point $? "$1"
}

# A launcher does nothing about a rank that hangs.
ranks 3 "$builddir/tests/ranks_program" stop
is_loss "a rank that is stopped: exit code 76"
complains "^lost: rank 1 [(].*[)] has not been heard of for [34] s; it was .*, after step [0-9]" \
    "which names it, its host and what it did"
[ "$(grep -c '^lost: rank 1' "$tmp/err")" = 2 ]
point $? "each of the others reports it once"
ranks 3 "$builddir/tests/ranks_program" hang
is_loss "a rank that reads input for ever: exit code 76"
complains "^lost: rank 1 [(].*[)] hangs and others wait for it: it has been reading input for [3-9] s, after step [0-9]" \
    "which names it"
complains "^rank [02]: code -12, rank 1 [(].*[)] hangs" "so do calls that fail"

# Survivors end by themselves if no launcher ends them.
cat >"$tmp/code" <<'EOF'
#!/bin/sh
trap : USR1
"$@"
echo "rank ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} ends with $?"
EOF
chmod +x "$tmp/code"
# shellcheck disable=SC2086
ranks 3 $recover "$tmp/code" "$builddir/tests/ranks_program" kill
says "^rank 0 ends with 76$" "a rank that is killed: the first of the others ends"
says "^rank 2 ends with 76$" "and the last"
complains "^lost: rank 1 [(].*[)] has died: its process [0-9]* is gone; it was last heard of" \
    "and say why"

# With a program, and with a launcher that ends all soon.
"$imagenet" data synth --output "$tmp/data" --classes 3 --train-count 60 \
    --val-count 21 --size 24 >/dev/null || exit 99
cat >"$tmp/kill" <<'EOF'
#!/bin/sh
[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = "$WHO" ] || exec "$@"
trap '' TERM USR1
"$@" &
while [ ! -e "$WAIT" ]; do
    sleep 0.1
done
kill -KILL $!
wait $!
EOF
chmod +x "$tmp/kill"
for who in 0 1; do
    # shellcheck disable=SC2086
    ranks 2 $patient env WHO=$who WAIT="$tmp/run-$who/ckpt/latest" "$tmp/kill" \
        "$imagenet" train --data "$tmp/data" --model resnet9 --width 16 \
        --img-size 16 --epochs 100 --no-val -b 24 --sub-batch 2 --lanes 12 --lr 0.05 \
        --ckpt-every 1it --output "$tmp/run-$who"
    complains "^imagenet train: (rank 1 [(].*[)]: )?rank $who [(].*[)] has died: its process" \
        "rank $who is killed: the other one says so"
done
"$imagenet" eval --data "$tmp/data" \
    --weights "$tmp/run-1/ckpt/latest/model.safetensors" >"$tmp/out" 2>"$tmp/err"
rc=$?
exits 0 "the newest checkpoint is whole"

done_testing
