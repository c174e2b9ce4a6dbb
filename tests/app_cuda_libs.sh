#!/bin/bash
# app_cuda_libs.sh - libraries of CUDA that do not fit together are noticed when
# a program starts, and reported in one sentence
#
# The driver is a made-up one, and so is what does not fit.
# SPDX-License-Identifier: LGPL-2.1-or-later
. "$srcdir/tests/tap.sh"

emulator=$builddir/tests/.libs/emulated_gpu.so
if [ ! -e "$builddir/.libs/ddp_cuda.so" ] || [ ! -e "$emulator" ]; then
    echo "1..0 # SKIP built without CUDA"
    exit 0
fi
export DDP_LIBCUDA=$builddir/tests/.libs/fake_cuda.so FAKE_CUDA="0 99000 0/9/0"
export DDP_MODULE_DIR=$builddir/.libs STARPU_HOME=$tmp XDG_CACHE_HOME=$tmp
unset STARPU_NCUDA

# fake NAME: a library, its source on stdin
fake()
{
    mkdir -p "$(dirname "$tmp/$1")"
    ${DDP_TEST_CC:-cc} -shared -fPIC -x c - -o "$tmp/$1"
}

# start VARIABLE=VALUE...: a program that says which devices it has
start()
{
    run env "$@" "$bench" train --model resnet18 --width 8 --img-size 32 \
        --sub-batch 2 --lanes 1 --steps 1 --skip 1 --workers 1
}

fake cudnn.so <<'END'
#include <stdlib.h>
size_t cudnnGetVersion(void) { return (size_t)atoi(getenv("FAKE_CUDNN")); }
int cudnnGraphVersionCheck(void) { return 0; }
int cudnnOpsVersionCheck(void) { return getenv("FAKE_MIX") ? 1 : 0; }
int cudnnCnnVersionCheck(void) { return 0; }
END
start LD_PRELOAD="$tmp/cudnn.so" FAKE_CUDNN=90501
exits 0 "a cuDNN that is too old is no failure"
says 'GPUs not used: cuDNN 9\.5\.1 was found, expected 9\.8 or a later 9' \
    "but CPU workers train, and the reason is reported"
start LD_PRELOAD="$tmp/cudnn.so" FAKE_CUDNN=100000
says 'GPUs not used: cuDNN 10\.0\.0 was found, expected 9\.8' "so is cuDNN 10"
start LD_PRELOAD="$tmp/cudnn.so" FAKE_CUDNN=91900 FAKE_MIX=1
says "GPUs not used: cuDNN's libraries are of different versions" \
    "and parts of two versions"

# A cuDNN of which there is only one file.
real=$(ldd "$builddir/.libs/ddp_cuda.so" |
    sed -n 's/.*libcudnn\.so\.[0-9]* => \([^ ]*\).*/\1/p')
mkdir "$tmp/part"
cp -L "$real" "$tmp/part/"
# An empty file keeps the loader from finding the part elsewhere.
mkdir "$tmp/empty"
: >"$tmp/empty/$(basename "$real" | sed 's/libcudnn/libcudnn_graph/')"
start DDP_CUDA_LIBS="$tmp/part" LD_LIBRARY_PATH="$tmp/empty"
says "GPUs not used: cuDNN in $tmp/part is incomplete: libcudnn_graph" \
    "a missing part is named"

# NVRTC without the builtins of its version, next to a GPU that works.
major=$(ls "$(dirname "$real")" | sed -n 's/^libnvrtc\.so\.\([0-9]*\)$/\1/p')
if [ -n "$(start LD_PRELOAD="$emulator" EMULATED_GPUS=1
    grep -v 'CUDA worker' "$tmp/out")" ] || [ -z "$major" ]; then
    skip 7 "no emulated GPU, or no NVRTC"
    done_testing
fi
says "1 CUDA worker on 1 GPU \(CUDA [0-9.]*, cuDNN [0-9.]*\)," \
    "nothing is reported where all fits"
fake "nvrtc/libnvrtc.so.$major" <<END
int nvrtcVersion(int *a, int *b) { *a = $major; *b = 77; return 0; }
END
start LD_PRELOAD="$emulator" EMULATED_GPUS=1 DDP_CUDA_LIBS="$tmp/nvrtc"
says "some batch norm by libddp's kernels: NVRTC $major\.77 in $tmp/nvrtc has no libnvrtc-builtins\.so\.$major\.77\)" \
    "NVRTC without its builtins is, next to the GPU"
echo 'int unused;' | fake "nvrtc/libnvrtc-builtins.so.$major.77"
start LD_PRELOAD="$emulator" EMULATED_GPUS=1 DDP_CUDA_LIBS="$tmp/nvrtc"
says "1 CUDA worker on 1 GPU \(CUDA [0-9.]*, cuDNN [0-9.]*\)," \
    "with them it is good"
start LD_PRELOAD="$emulator" EMULATED_GPUS=1 EMULATED_REVERSED=1
says "some batch norm by libddp's kernels: cuDNN orders the bits of a mask" \
    "and so is a plan that cannot be used, once that is known"

# A T4: no bf16, and the user hears of f16.
export FAKE_CUDA="0 99000 0/7/0/5" EMULATED_CAPABILITY=75 EMULATED_GPUS=1
start LD_PRELOAD="$emulator"
says "1 CUDA worker on 1 GPU" "a GPU of capability 7.5 trains in f32"
run env LD_PRELOAD="$emulator" "$bench" train --model resnet18 --width 8 \
    --img-size 32 --sub-batch 2 --lanes 1 --steps 1 --skip 1 --dtype f16
says '"dtype":"f16".*"loss":[0-9].*1 CUDA worker' "and in f16"
run env LD_PRELOAD="$emulator" "$bench" train --model resnet18 --img-size 32 \
    --sub-batch 2 --dtype bf16
complains "no bf16 arithmetic that the backend uses: use f32 or f16" "not in bf16"

done_testing
