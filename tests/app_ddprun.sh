#!/bin/sh
# app_ddprun.sh - how ddprun starts ranks, and when it starts them again
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# A script in place of mpirun logs how it was called, and the k-th time exits with
# the k-th of $CODES.
. "$srcdir/tests/tap.sh"

cat >"$tmp/mpirun" <<'EOF'
#!/bin/sh
if [ "$1" = --version ]; then
    echo "$VERSION"
    exit
fi
echo "$*" | tr '\n' ' ' >>"$0.calls"
echo "UCX_RNDV=${UCX_RNDV_THRESH-}" >>"$0.calls"
exit "$(echo "$CODES" | cut -d ' ' -f "$(wc -l <"$0.calls")")"
EOF
chmod +x "$tmp/mpirun"
PATH=$tmp:$PATH
export PATH

# ddprun CODES OPTION...
ddprun()
{
    rm -f "$tmp/mpirun.calls"
    CODES=$1
    export CODES
    shift
    run bash "$srcdir/contrib/ddprun" "$@" program 'two words'
}

# calls LINE...: the ranks of each start
calls()
{
    [ "$(sed -n 's/.*-n \([0-9]*\) .*/\1/p' "$tmp/mpirun.calls" |
        tr '\n' ' ')" = "$* " ]
}

VERSION="mpirun (Open MPI) 4.1.4"
export VERSION
ddprun "0" -n 3
exits 0 "a run that ends well: exit code 0"
calls 3
point $? "after one start"
ddprun "65" -n 3
exits 65 "a run that fails: its exit code"
calls 3
point $? "and no other start"
ddprun "137 76 0" -n 3 --shrink
exits 0 "a rank that is killed, or found gone by others: again"
calls 3 2 1
point $? "with one rank less each time"
ddprun "137 137 137" -n 3 --restarts 2
exits 76 "too many are lost: exit code 76"
calls 3 3 3
point $? "after as many starts as it may make"
ddprun "137 137" -n 3 --shrink --least 3
exits 76 "too few are left: exit code 76"

# Only MPICH ends with the number of a signal.
ddprun "9 0" -n 2
exits 9 "exit code 9 of a program is final"
! grep -q 'UCX_RNDV=.' "$tmp/mpirun.calls"
point $? "and UCX is as it was"
VERSION="HYDRA build details:"
ddprun "9 0" -n 2
exits 0 "that of MPICH's mpiexec is a loss"
grep -q 'UCX_RNDV=inf$' "$tmp/mpirun.calls"
point $? "in which UCX does not end ranks"

VERSION="slurm 22.05.8"
ddprun "0" -n 2
grep -q -e '-n 2 program two words UCX' "$tmp/mpirun.calls"
point $? "srun needs no shell"

# Without ranks and hosts there is no launcher.
cat >"$tmp/program" <<'EOF'
#!/bin/sh
echo "$*" >>"$0.calls"
exit "$(echo "$CODES" | cut -d ' ' -f "$(wc -l <"$0.calls")")"
EOF
chmod +x "$tmp/program"
ddprun "76 134 0"
exits 0 "a process that loses a GPU, or is aborted by it: again"
complains "^ddprun: the run failed .exit code 76.; again with 1$" "which is said"
[ "$(grep -c '^two words$' "$tmp/program.calls")" = 3 ] &&
    [ ! -e "$tmp/mpirun.calls" ]
point $? "three starts without mpirun"
rm "$tmp/program.calls"
ddprun "1"
exits 1 "a process that fails otherwise: its exit code"

# The shell that a launcher starts for a rank.
VERSION="mpirun (Open MPI) 4.1.4"
cat >"$tmp/one" <<'EOF'
#!/bin/sh
[ "$1" != --version ] || exec mpirun --version
shift 2
OMPI_COMM_WORLD_RANK=1 exec "$@"
EOF
chmod +x "$tmp/one"
# shellcheck disable=SC2016
run bash "$srcdir/contrib/ddprun" -n 2 --restarts 0 --mpirun "$tmp/one" \
    sh -c 'kill -KILL $$'
complains "^ddprun: rank 1 [(]$(uname -n)[)] was killed by SIGKILL$" \
    "a rank that is killed is named"
# shellcheck disable=SC2016
run bash "$srcdir/contrib/ddprun" -n 2 --restarts 0 --mpirun "$tmp/one" \
    sh -c 'kill -TERM $PPID $$'
! grep -q 'was killed' "$tmp/err"
point $? "but not those that end with it"

done_testing
