#!/bin/sh
# app_ranks.sh - imagenet train in several processes: one training, equal bits
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What one process computes alone is the oracle.
. "$srcdir/tests/tap.sh"

. "$srcdir/tests/ranks.sh"

data=$tmp/data
"$imagenet" data synth --output "$data" --classes 3 --train-count 60 \
    --val-count 21 --size 24 >/dev/null || exit 99

# 12 lanes, of which the last step of an epoch uses 6; several buckets.
others="--data $data --img-size 16 --epochs 2 -b 24 --sub-batch 2 --lanes 12
    --lr 0.05"
net="$others --model resnet9 --width 32"

# Without MPI nobody may think that ranks train together.
# shellcheck disable=SC2086
run env SLURM_STEP_NUM_TASKS=4 "$imagenet" train $net --output "$tmp/s"
exits 2 "4 tasks of srun without MPI: exit code 2"
complains "srun has started 4 processes without MPI.*srun --mpi=pmix" \
    "with what to do"
# shellcheck disable=SC2086
run env WORLD_SIZE=2 "$imagenet" train $net --output "$tmp/s"
complains "WORLD_SIZE is 2.*mpirun -n 2" "so are processes of another launcher"
for f in .libs/libddp.so bin/.libs/imagenet bin/.libs/ddp-bench \
    bin/.libs/ddp-iris; do
    LD_LIBRARY_PATH=$builddir/.libs ldd "$builddir/$f" >"$tmp/out" 2>"$tmp/err"
    grep -q libstarpu "$tmp/out" && ! grep -q libmpi "$tmp/out"
    point $? "$f needs no MPI"
done
if ! command -v mpirun >/dev/null || [ ! -e "$builddir/.libs/ddp_mpi.so" ]; then
    run env OMPI_COMM_WORLD_SIZE=2 "$imagenet" train $net --output "$tmp/s"
    exits 69 "a rank in a build without MPI: exit code 69"
    complains "MPI cannot be used: .*install an MPI and build libddp again" \
        "with what to do"
    skip 65 "no MPI here"
    done_testing
fi

if ! has_mpi; then
    skip 65 "$why"
    done_testing
fi

# result: the final line, without the speed and the files
result()
{
    tail -n 1 "$tmp/out" | sed 's/ img.s=[^ ]*//; s/ best=.* last=[^ ]*//'
}

# same N NAME OPTIONS...: N ranks have the weights and the result of one
same()
{
    n=$1 name=$2
    shift 2
    if [ ! -e "$tmp/$name.want" ]; then
        # shellcheck disable=SC2086
        run "$imagenet" train $net "$@" --output "$tmp/$name"
        result >"$tmp/$name.want"
    fi
    # shellcheck disable=SC2086
    ranks "$n" "$imagenet" train $net "$@" --output "$tmp/$name-$n"
    exits 0 "$name: $n ranks succeed"
    result | cmp -s - "$tmp/$name.want"
    point $? "$name: the result and the weights are those of one process"
}

whole="--clip-grad 1 --model-ema-decay 0.9"
# What programs compute together.
build tests/ranks_program
build tests/ranks_own
build tests/ranks_data
for n in 1 2 3 4 5; do
    ranks $n "$builddir/tests/ranks_program"
    says " points on $n ranks, 0 failed$" "$n ranks reduce"
done
for n in 1 2 3; do
    ranks $n "$builddir/tests/ranks_own"
    says " points on $n ranks, 0 failed$" "$n ranks train on data of their own"
done

# Bound by the launcher, or by us.
for bind in core none; do
    if [ "$(getconf _NPROCESSORS_ONLN)" -lt 2 ]; then
        skip 1 "one core"
        continue
    fi
    # shellcheck disable=SC2086
    run timeout 60 $launcher --bind-to $bind -n 2 \
        "$builddir/tests/ranks_program" places
    says " points on 2 ranks, 0 failed$" "--bind-to $bind: ranks have cores of their own"
done

for n in 1 2 3 4 8; do
    ranks $n "$builddir/tests/ranks_data"
    says " points on $n ranks, 0 failed$" "$n ranks read each sample once, and skip bad steps"
    of=$(sed -n 's/^weights=//p' "$tmp/out")
    [ -n "$of" ] && [ "$of" = "${alone:=$of}" ]
    point $? "1 to 64 samples train to the weights of one rank: $of"
done

for n in 3 8; do
    # shellcheck disable=SC2086
    same $n f32 $whole
done
[ "$(grep -c '^final' "$tmp/out")" = 1 ] && says "^ranks: 8$" "rank 0 prints"
cmp -s "$tmp/f32/weights-ema.safetensors" "$tmp/f32-3/weights-ema.safetensors"
point $? "averages are the same, too"
# Buckets of more than a message.
# shellcheck disable=SC2086
same 3 large $whole --width 64 --epochs 1
net=$others same 2 dropout --model mobilenet_v2 --drop 0.2 --epochs 1 \
    --lanes 3 --sub-batch 4 --mixup 0.2 --cutmix 1 --bce-loss
net=$others same 2 f16 --backend ref --model mlp --hidden 16 --dtype f16 \
    --opt adamw --lanes 5 --sub-batch 3

# Sums of batch norms in the middle of a step.
for n in 2 3; do
    same $n sync --sync-bn --epochs 1
done

# What is sent is rounded, and so is what is not.
for n in 2 3; do
    same $n wire $whole --wire-dtype bf16
done
cmp -s "$tmp/f32.want" "$tmp/wire.want"
[ $? = 1 ]
point $? "bf16 between ranks: other weights than with f32"

# The optimizer's state is divided among ranks, and whole in checkpoints.
adam="--opt adamw --lr 0.002 $whole"
# shellcheck disable=SC2086
for n in 2 3; do
    same $n adam $adam --shard-optimizer
done
# Norms of whole parameters, wherever they are updated.
same 3 lamb --opt lamb --lr 0.002 --shard-optimizer
# shellcheck disable=SC2086
ranks 3 "$imagenet" train $net $adam --shard-optimizer --output "$tmp/shard" \
    --time-limit 1
exits 75 "a time limit with divided state: exit code 75"
# shellcheck disable=SC2086
ranks 2 "$imagenet" train $net $adam --output "$tmp/shard"
says "^resume: step=[1-5] " "2 ranks without divided state resume"
result | cmp -s - "$tmp/adam.want"
point $? "to the same weights"

# A checkpoint of 3 ranks is that of any other number.
# shellcheck disable=SC2086
ranks 3 "$imagenet" train $net $whole --output "$tmp/stop" --time-limit 1
exits 75 "a time limit: exit code 75"
[ "$(grep -c 'interrupted by .* after step' "$tmp/err")" = 1 ]
point $? "which is said once"
# shellcheck disable=SC2086
ranks 2 "$imagenet" train $net $whole --output "$tmp/stop"
says "^resume: step=[1-5] " "2 ranks resume"
result | cmp -s - "$tmp/f32.want"
point $? "to the same weights"

# 3 ranks with a worker each.
ranks 3 "$imagenet" doctor --output "$tmp"
says "^ranks: 3 by .*MPI.*, MPI_THREAD_[A-Z]*$" "doctor: the library and its level"
[ "$(grep -c '^rank [0-2]: host [^ ]*, local rank [0-2], 1 device; to rank [0-2]: [0-9]* us, [0-9.]* GB/s$' "$tmp/out")" = 3 ]
point $? "each rank's place, and the network"
says "^lanes: 2 or 3 for each rank, in up to 2 pieces$" "and its lanes"
says "^advice: .* --lanes 6 or 12$" "and a better number of them"

# What goes wrong on one rank.
cat >"$tmp/odd" <<'EOF'
#!/bin/sh
[ "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" = 1 ] || exec "$imagenet" "$@"
case $ODD in
    lr) exec "$imagenet" "$@" --lr 0.06 ;;
    shard) exec "$imagenet" "$@" --shard-optimizer ;;
    data) exec "$imagenet" "$@" --data /nowhere ;;
    backend) exec "$imagenet" "$@" --backend ref ;;
esac
trap '' TERM
"$imagenet" "$@" &
while [ ! -e "$WAIT" ]; do
    sleep 0.1
done
kill "$ODD" $!
wait $!
EOF
chmod +x "$tmp/odd"
export imagenet
# shellcheck disable=SC2086
ranks 2 env ODD=lr "$tmp/odd" train $net --output "$tmp/e"
complains "rank 1 has other settings than rank 0: there --lr is 0.05, in this run 0.06$" \
    "other settings on a rank are refused by name"
[ "$(grep -c 'other settings' "$tmp/err")" = 1 ]
point $? "once"
[ $rc != 0 ]
point $? "with an exit code"
# shellcheck disable=SC2086
ranks 2 env ODD=shard "$tmp/odd" train $net --output "$tmp/e"
complains "rank 1 has other settings than rank 0: there shard_optimizer is false, in this run true" \
    "a rank that would divide the state alone is refused"
# shellcheck disable=SC2086
ranks 2 env ODD=backend "$tmp/odd" train $net --output "$tmp/e"
complains "rank 1 has other settings than rank 0: there devices is CPU .*, in this run CPU .plain C, bf16, f16. with libddp" \
    "so are other kernels"
# MPICH's launcher ends no others if a rank has not begun with MPI.
# shellcheck disable=SC2086
ranks 2 env ODD=data "$tmp/odd" train $net --output "$tmp/e" --peer-timeout 20
complains "rank 1 .*/nowhere" "a rank without data says so"
[ $rc != 0 ] && [ $rc != 124 ]
point $? "and no other waits for it"

image=$(find "$data" -path '*train*' -name '*.JPEG' | sort | head -n 1)
cp "$image" "$tmp/good"
echo none >"$image"
# shellcheck disable=SC2086
ranks 3 "$imagenet" train $net --max-bad 0 --output "$tmp/b"
cp "$tmp/good" "$image"
exits 65 "a bad image on one rank: exit code 65"
[ "$(grep -c 'reading input' "$tmp/err")" = 1 ]
point $? "one rank says so"

# Stopping one rank stops all after the same step.
# shellcheck disable=SC2086
ranks 2 env ODD=-TERM WAIT="$tmp/t/config.txt" "$tmp/odd" train $net $whole \
    --epochs 50 --no-val --output "$tmp/t"
exits 75 "SIGTERM to rank 1: exit code 75"
complains "after step [0-9]*; checkpoint saved" "and a checkpoint"
[ -e "$tmp/t/ckpt/latest/MANIFEST.json" ]
point $? "which is there"

# A process that never joins.
# shellcheck disable=SC2086
run timeout 60 $mpirun -n 1 "$imagenet" train $net --output "$tmp/j" \
    --peer-timeout 2 : -n 1 sleep 30
exits 76 "a rank that does not start: exit code 76"
complains "MPI has not started for 2 s: another rank has died, or has not been" \
    "after --peer-timeout"

# Traces of two ranks of a host, at the same time: contrib/ranks-race compares
# them.
clock()
{
    sed -n 's/.*"clock_s":\([0-9.]*\).*/\1/p' "$1"
}

ranks 2 "$builddir/bin/ddp-bench" train --model resnet9 --img-size 16 \
    --sub-batch 2 --lanes 2 --steps 2 --trace "$tmp/trace"
holds "$(clock "$tmp/trace") - $(clock "$tmp/trace.1") < 9 && \
    $(clock "$tmp/trace.1") - $(clock "$tmp/trace") < 9" \
    "traces of two ranks begin at about the same time"
sums()
{
    sed -n 's/.*"sum of gradients".*"bucket":/ /p' "$1" | sort | uniq -c
}
[ -n "$(sums "$tmp/trace")" ] &&
    [ "$(sums "$tmp/trace")" = "$(sums "$tmp/trace.1")" ]
point $? "and have the same exchanges"

# A rank that dies takes the others with it, and the run can go on.
# shellcheck disable=SC2086
ranks 2 env ODD=-KILL WAIT="$tmp/d/ckpt/latest" "$tmp/odd" train $net $whole \
    --ckpt-every 1it --output "$tmp/d"
[ $rc != 0 ] && [ $rc != 124 ]
point $? "a rank that is killed ends the run"
# shellcheck disable=SC2086
ranks 3 "$imagenet" train $net $whole --output "$tmp/d"
says "^resume: step=[1-6] " "the same command resumes"
result | cmp -s - "$tmp/f32.want"
point $? "to the same weights"

# ddprun goes on with the ranks that are left.
# shellcheck disable=SC2086
run env ODD=-KILL WAIT="$tmp/r/ckpt/latest" bash "$srcdir/contrib/ddprun" \
    -n 3 --shrink --mpirun "$mpirun" "$tmp/odd" train $net $whole \
    --ckpt-every 1it --output "$tmp/r"
complains "^ddprun: a rank was lost .*again with 2$" "ddprun starts it again"
complains "^ddprun: a rank was lost .*again with 1$" "and again"
exits 0 "until it ends"
result | cmp -s - "$tmp/f32.want"
point $? "to the same weights"

# Each alone, on request.
# shellcheck disable=SC2086
ranks 2 env DDP_MPI=0 sh -c "exec \"$imagenet\" train $(echo $net) --output \"$tmp/alone-\${OMPI_COMM_WORLD_RANK:-\$PMI_RANK}\""
[ "$(grep -c '^final' "$tmp/out")" = 2 ]
point $? "DDP_MPI=0: each process trains alone"

done_testing
