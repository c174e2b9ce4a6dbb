#!/bin/sh
# app_slurm.sh - what the jobs of contrib/slurm start, and when they go on
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Here are no srun and no scontrol: scripts in their place write down how they
# were called.
. "$srcdir/tests/tap.sh"

for tool in srun scontrol; do
    cat >"$tmp/$tool" <<EOF
#!/bin/sh
echo "$tool \$*"
[ $tool = scontrol ] || exit \$END
EOF
    chmod +x "$tmp/$tool"
done
PATH=$tmp:$PATH
export PATH

# job END SCRIPT OPTIONS...: as Slurm runs it, with imagenet's exit code
job()
{
    end=$1 script=$2
    shift 2
    run env END="$end" SLURM_JOB_ID=17 bash "$srcdir/contrib/slurm/$script" "$@"
}

job 0 train.sbatch --data D --output "a run"
exits 0 "a run that ends well: exit code 0"
says "^srun --mpi=pmix .*imagenet train --ckpt-every 10m --data D --output a run$" \
    "with the options of the job"
! grep -q scontrol "$tmp/out"
point $? "is not queued again"
job 75 train.sbatch --data D --output R
exits 75 "a run that has to go on: exit code 75"
says "^scontrol requeue 17$" "is queued again"
job 76 train.sbatch --data D --output R
says "^scontrol requeue 17$" "so is one that has lost a GPU"
export SLURM_RESTART_COUNT=20
job 76 train.sbatch --data D --output R
exits 76 "but not for ever: its exit code"
! grep -q scontrol "$tmp/out"
point $? "is not queued again"
unset SLURM_RESTART_COUNT
job 70 train.sbatch --data D --output R
exits 70 "a run that fails: its exit code"
! grep -q scontrol "$tmp/out"
point $? "is not queued again"

job 0 seeds.sbatch R --data D
exits 64 "seeds without an array: exit code 64"
complains "sbatch --array" "with what to do"
export SLURM_ARRAY_TASK_ID=3
job 75 seeds.sbatch R --data D --seed 9
says "^srun --mpi=pmix .*imagenet train .* --data D --seed 9 --seed 3 --output R/seed-3$" \
    "each job of an array has its seed and its folder"
says "^scontrol requeue 17$" "and is queued again"

done_testing
