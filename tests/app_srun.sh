#!/bin/sh
# app_srun.sh - imagenet train under a real Slurm, on two nodes of a sandbox
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Slurm's daemons run as the user, without authentication, and this machine is
# each of their nodes.  What one process computes alone is the oracle.
. "$srcdir/tests/tap.sh"
. "$srcdir/tests/ranks.sh"

PATH=$builddir/bin:$PATH:/usr/sbin
export PATH
points=18

for tool in slurmctld slurmd srun sbatch; do
    command -v $tool >/dev/null && continue
    skip $points "Slurm's $tool is not installed"
    done_testing
done
if [ ! -e "$builddir/.libs/ddp_mpi.so" ]; then
    skip $points "no MPI here"
    done_testing
fi

# ---- the sandbox ------------------------------------------------------------

port=$((10000 + $$ % 7000 * 3)) # below those that clients get
user=$(id -un)
SLURM_CONF=$tmp/slurm.conf
export SLURM_CONF
mkdir "$tmp/state" "$tmp/n1" "$tmp/n2"
cat >"$SLURM_CONF" <<END
ClusterName=sandbox
SlurmctldHost=$(hostname -s)(127.0.0.1)
SlurmctldPort=$port
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
StateSaveLocation=$tmp/state
SlurmdSpoolDir=$tmp/%n
TmpFS=$tmp/%n
SlurmctldPidFile=$tmp/slurmctld.pid
SlurmdPidFile=$tmp/%n.pid
MailProg=/bin/true
NodeName=n1 NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=$((port + 1))
NodeName=n2 NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 Port=$((port + 2))
PartitionName=all Nodes=ALL Default=YES
END

slurmctld -D >"$tmp/slurmctld.log" 2>&1 &
daemons=$!
for node in n1 n2; do
    slurmd -D -N $node >"$tmp/$node.log" 2>&1 &
    daemons="$daemons $!"
done

# Jobs end before the folder that they write to does.
end_sandbox()
{
    timeout 10 scancel --quiet --user "$user"
    sleep 0.5
    # shellcheck disable=SC2086
    kill $daemons
    wait
    rm -rf "$tmp"
}
trap end_sandbox EXIT

are_nodes_idle()
{
    [ "$(sinfo -h -t idle -o %D 2>/dev/null)" = 2 ]
}

await are_nodes_idle
if ! are_nodes_idle || ! srun --mpi=list 2>&1 | grep -q pmix; then
    sed 's/^/# /' "$tmp"/*.log
    skip $points "Slurm does not start here, or has no pmix"
    done_testing
fi

# ---- one training -----------------------------------------------------------

data=$tmp/data
imagenet data synth --output "$data" --classes 3 --train-count 60 \
    --val-count 21 --size 24 >/dev/null || exit 99
net="--data $data --img-size 16 --epochs 20 -b 24 --sub-batch 2 --lanes 12
    --lr 0.05 --model resnet9 --width 8 --no-val"

# weights FILE: the checksum on the last line of a run
weights()
{
    sed -n 's/^final .* weights=//p' "$1" | tail -n 1
}

# shellcheck disable=SC2086
run imagenet train $net --output "$tmp/one"
exits 0 "one process alone"
want=$(weights "$tmp/out")

# shellcheck disable=SC2086
run timeout 120 srun -N 2 -n 2 --mpi=pmix imagenet train $net \
    --output "$tmp/two"
exits 0 "srun --mpi=pmix on two nodes"
says "^ranks: 2$" "trains one model"
[ -n "$want" ] && [ "$(weights "$tmp/out")" = "$want" ]
point $? "with the weights of one process"

# shellcheck disable=SC2086
run timeout 120 srun -N 2 -n 2 imagenet train $net --output "$tmp/alone"
exits 2 "srun without MPI: exit code 2"
complains "srun has started 2 processes without MPI.*srun --mpi=pmix" \
    "with what to do"

# ---- a rank that dies -------------------------------------------------------

# On a host of its own a rank could not see the other's process: where that is
# possible.
apart="unshare --pid --fork --mount-proc --kill-child"
$apart true 2>/dev/null || apart=
write_odd "$tmp/odd"
# shellcheck disable=SC2086
run env WAIT="$tmp/d/ckpt/latest" timeout 120 \
    bash "$srcdir/contrib/ddprun" -n 2 --shrink \
    --mpirun "srun --mpi=pmix --kill-on-bad-exit" \
    $apart "$tmp/odd" train $net --ckpt-every 1it --output "$tmp/d"
complains "^ddprun: a rank was lost .*again with 1$" \
    "a rank is killed, and ddprun continues with the other"
complains "rank 1 .* (has died|has not been heard of for [4-9] s|cannot be reached|is lost: MPI)" \
    "which names it"
exits 0 "to the end"
says "^resume: step=[1-9]" "from the newest checkpoint"
[ "$(weights "$tmp/out")" = "$want" ]
point $? "to the same weights"

# ---- jobs -------------------------------------------------------------------

# is_job STATE
is_job()
{
    [ "$(squeue -h -j "$job" -o %T 2>/dev/null)" = "$1" ]
}

# Out of the queue: over.
is_job_over()
{
    case $(squeue -h -j "$job" -o %T 2>/dev/null) in
    '' | COMPLETED | FAILED) return 0 ;;
    esac
    return 1
}

# shellcheck disable=SC2086
job=$(sbatch --parsable -N 2 --time 5 --output "$tmp/job.log" \
    "$srcdir/contrib/slurm/train.sbatch" $net --output "$tmp/job" \
    --ckpt-every 1it)
await test -e "$tmp/job/ckpt/latest"
scancel --signal USR1 "$job" # as --signal does
await is_job PENDING
cp "$tmp/job.log" "$tmp/out"
says "^imagenet train: interrupted by SIGUSR1 after step [0-9]*; checkpoint saved" \
    "train.sbatch: a job whose time is nearly up saves"
is_job PENDING
point $? "and is queued again"

# Not in two minutes; but nodes refuse a job that was revoked a moment ago, which
# ends it.
sleep 5
scontrol update JobId="$job" StartTime=now
await is_job_over
cp "$tmp/job.log" "$tmp/out"
says "^resume: step=[1-9]" "it continues"
[ "$(weights "$tmp/out")" = "$want" ]
point $? "to the same weights"

# shellcheck disable=SC2086
job=$(sbatch --parsable --array 3-4 --time 5 --output "$tmp/seed-%a.log" \
    "$srcdir/contrib/slurm/seeds.sbatch" "$tmp/runs" $net)
await is_job_over
# shellcheck disable=SC2086
run imagenet train $net --seed 3 --output "$tmp/seed3"
[ "$(weights "$tmp/seed-3.log")" = "$(weights "$tmp/out")" ]
point $? "seeds.sbatch: a job trains with its seed"
[ -s "$tmp/runs/seed-3/weights.safetensors" ] &&
    [ -s "$tmp/runs/seed-4/weights.safetensors" ]
point $? "in a folder of its own"
[ "$(weights "$tmp/seed-4.log")" != "$(weights "$tmp/seed-3.log")" ]
point $? "each to other weights"

done_testing
