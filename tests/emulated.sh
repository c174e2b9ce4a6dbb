# emulated.sh - run programs on GPUs that the processor plays
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# After tap.sh.  StarPU's CUDA workers, our kernels' launches, plans, copies,
# streams and events are the real ones; what CUDA's libraries would do is done by
# tests/emulator.

emulator=$builddir/tests/.libs/emulated_gpu.so
export DDP_LIBCUDA=$builddir/tests/.libs/fake_cuda.so
export DDP_MODULE_DIR=$builddir/.libs
export STARPU_HOME=$tmp/home XDG_CACHE_HOME=$tmp/home
# A worker for the input keeps a core busy while it waits: two of them would leave
# none of two cores to what is tested.
export STARPU_NCPU=1
mkdir "$tmp/home"

# on N COMMAND...: with N GPUs
on()
{
    local n=$1
    shift
    env FAKE_CUDA="0 99000$(printf ' 0/9/0%.0s' $(seq "$n"))" \
        EMULATED_GPUS="$n" STARPU_NCUDA="$n" LD_PRELOAD="$emulator" "$@"
}

why="built without CUDA"
[ -e "$emulator" ] &&
    why=$(on 1 "$builddir/tests/test_gpu_train" --probe 2>&1 |
        sed -n 's/^1\.\.0 # SKIP //p')
if [ -n "$why" ]; then
    echo "1..0 # SKIP $why"
    exit 0
fi

# make_images: a data set of ten sub-batches, in $tmp/data
make_images()
{
    "$imagenet" data synth --output "$tmp/data" --classes 4 --train-count 40 \
        --val-count 8 --size 16 >"$tmp/out" 2>"$tmp/err"
}

# passes VARIABLE=VALUE... TEST ARGUMENT...: on a GPU
passes()
{
    local set=()
    while [[ $1 = *=* ]]; do
        set+=("$1")
        shift
    done
    run on 1 env "${set[@]}" "$builddir/tests/test_$1" "${@:2}"
    [ $rc = 0 ] && [ "$(grep -c '^ok' "$tmp/out")" -gt 20 ]
    point $? "test_$* on a GPU, ${set[*]}: $(grep -c '^ok' "$tmp/out") points"
}
