# ranks.sh - run programs in several processes
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# After tap.sh.

unset STARPU_NCPU
export STARPU_NCPU=1 DDP_MODULE_DIR=${DDP_MODULE_DIR:-$builddir/.libs}

# Open MPI's mpirun makes a folder there, and removes it when it is empty: one that
# begins while another ends may not find it, and ends with exit code 1.
export TMPDIR=$tmp

# MPICH names ranks by PMI_RANK, and binds none; $launcher leaves that to a test.
# With $recover the launcher lets the others live when a rank has died, with
# $patient for a while; MPICH's only if it sees a shell end, and UCX ends who reads
# a large message out of the memory of a dead rank.
if mpirun --version 2>/dev/null | grep -q HYDRA; then
    launcher=mpirun
    mpirun=$launcher
    recover=-disable-auto-cleanup
    patient=$recover
    export UCX_RNDV_THRESH=inf
else
    launcher="mpirun --allow-run-as-root --oversubscribe
        --mca btl_vader_single_copy_mechanism none"
    mpirun="$launcher --bind-to none"
    recover=--enable-recovery
    patient="--mca odls_base_sigkill_timeout 5"
fi

# ranks N COMMAND...: as run() does
ranks()
{
    n=$1
    shift
    # shellcheck disable=SC2086
    run timeout -k 10 240 $mpirun -n "$n" "$@"
}

# has_mpi: or skip all, for the reason in $why
has_mpi()
{
    why="no MPI here"
    command -v mpirun >/dev/null && [ -e "$builddir/.libs/ddp_mpi.so" ] ||
        return 1
    why="mpirun does not start processes here"
    ranks 2 true
    [ $rc = 0 ] || sed 's/^/# /' "$tmp/err"
    return $rc
}

# build PROGRAM: of tests that are only run by others, one at a time
build()
(
    unset MAKEFLAGS MFLAGS MAKELEVEL
    exec flock "$builddir/Makefile" "${DDP_TEST_MAKE:-make}" -C "$builddir" \
        "$1" >/dev/null 2>&1
)

# write_odd FILE: a script that runs imagenet; rank 1's is killed once $WAIT exists,
# but not when the run continues
write_odd()
{
    cat >"$1" <<'END'
#!/bin/sh
[ "${OMPI_COMM_WORLD_RANK:-$SLURM_PROCID}" = 1 ] && [ ! -e "$WAIT" ] ||
    exec imagenet "$@"
imagenet "$@" &
while [ ! -e "$WAIT" ]; do
    sleep 0.05
done
kill -KILL $!
wait $!
END
    chmod +x "$1"
}
