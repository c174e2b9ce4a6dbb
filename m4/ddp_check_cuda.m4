dnl SPDX-License-Identifier: LGPL-2.1-or-later
dnl DDP_CHECK_CUDA
dnl --with-cuda=yes|DIR requires kernels for NVIDIA GPUs, no disables them,
dnl compile compiles and tests them even if StarPU does not support CUDA;
dnl default: if nvcc, cuDNN 9.8, cuBLASLt and a StarPU with CUDA are found.
dnl --with-cudnn=DIR says where cuDNN is, if not in the toolkit's folder.
dnl Nothing runs on a GPU here.  To be used after DDP_CHECK_STARPU.
dnl Sets have_cuda, NVCC, NVCCFLAGS, CUDA_CPPFLAGS, CUDA_LIBS, CUDA_VERSION,
dnl cuda_text for the summary, and HAVE_CUDA for automake and config.h.
AC_DEFUN([DDP_CHECK_CUDA], [
    AC_ARG_WITH([cuda],
        [AS_HELP_STRING([--with-cuda=yes|no|compile|DIR],
            [kernels for NVIDIA GPUs; compile: even if StarPU does not
            support CUDA (default: if everything needed is found)])],
        [], [with_cuda=check])
    AC_ARG_WITH([cudnn],
        [AS_HELP_STRING([--with-cudnn=DIR],
            [where cuDNN is (default: with CUDA)])],
        [], [with_cudnn=])
    AC_ARG_VAR([NVCC], [CUDA's compiler])
    AC_ARG_VAR([NVCCFLAGS], [flags for it (default: -O3 and the code of
        sm_70 (CUDA 12), sm_75, sm_80, sm_90 and sm_100, PTX for later ones)])
    have_cuda=no cuda_text=no ddp_cuda_why=
    CUDA_CPPFLAGS= CUDA_LIBS= CUDA_VERSION=
    AS_IF([test "$with_cuda" != no], [
        _DDP_FIND_NVCC
        AS_IF([test -z "$ddp_cuda_why"], [_DDP_TRY_CUDA])
        AS_IF([test -z "$ddp_cuda_why"], [_DDP_CUDA_STARPU])
        AS_IF([test -z "$ddp_cuda_why"], [have_cuda=yes], [
            AS_IF([test "$with_cuda" != check],
                [AC_MSG_ERROR([--with-cuda=$with_cuda: $ddp_cuda_why])])
            cuda_text="no ($ddp_cuda_why)"
        ])
    ])
    AS_IF([test "$have_cuda" = yes],
        [AC_DEFINE([HAVE_CUDA], [1], [Define if kernels for CUDA are built.])
         ddp_num=${CUDA_VERSION%%.*}
         AC_DEFINE_UNQUOTED([DDP_CUDA_MAJOR], [$ddp_num], [Of CUDA.])
         AC_DEFINE_UNQUOTED([DDP_CUDA_MAJOR_TEXT], ["$ddp_num"],
             [The same, for the names of libraries.])
         ddp_num=[`echo "$NVCCFLAGS" | tr -c 'a-z0-9_' '\n' |
             $SED -n 's/^sm_\([0-9][0-9]*\).*/\1/p' | sort -n | $SED 1q`]
         AC_DEFINE_UNQUOTED([DDP_CUDA_OLDEST], [${ddp_num:-80}],
             [Ten times the oldest compute capability that NVCCFLAGS name.])
         AC_DEFINE_UNQUOTED([DDP_CUDNN_MAJOR_TEXT], ["${CUDNN_VERSION%%.*}"],
             [Of cuDNN.])],
        [CUDA_CPPFLAGS= CUDA_LIBS=])
    AC_SUBST([CUDA_CPPFLAGS])
    AC_SUBST([CUDA_LIBS])
    AM_CONDITIONAL([HAVE_CUDA], [test "$have_cuda" = yes])
])

dnl Sets NVCC and ddp_cuda_dir, or ddp_cuda_why.
AC_DEFUN([_DDP_FIND_NVCC], [
    AS_CASE([$with_cuda], [yes|check|compile],
        [ddp_cuda_path=$PATH:/usr/local/cuda/bin],
        [ddp_cuda_path=$with_cuda/bin])
    AC_PATH_PROG([NVCC], [nvcc], [], [$ddp_cuda_path])
    AS_IF([test -z "$NVCC"], [
        ddp_cuda_why="cannot find nvcc in $ddp_cuda_path"
        ddp_cuda_why=`AS_ECHO(["$ddp_cuda_why"]) | $SED 's/:/ /g'`
    ], [
        ddp_cuda_dir=`readlink -f "$NVCC"`
        ddp_cuda_dir=`AS_DIRNAME(["$ddp_cuda_dir"])`
        ddp_cuda_dir=`AS_DIRNAME(["$ddp_cuda_dir"])`
        CUDA_VERSION=[`"$NVCC" --version |
            $SED -n 's/.*release \([0-9.]*\).*/\1/p'`]
    ])
])

dnl Compiles a kernel and links the libraries of the backend; sets ddp_cuda_why
dnl if that fails.  The objects of nvcc must not need a C++ library.
AC_DEFUN([_DDP_TRY_CUDA], [
    CUDA_CPPFLAGS="-isystem $ddp_cuda_dir/include"
    CUDA_LIBS="-L$ddp_cuda_dir/lib64 -Wl,-rpath,$ddp_cuda_dir/lib64"
    AS_IF([test -n "$with_cudnn"], [
        CUDA_CPPFLAGS="-isystem $with_cudnn/include $CUDA_CPPFLAGS"
        CUDA_LIBS="-L$with_cudnn/lib -Wl,-rpath,$with_cudnn/lib $CUDA_LIBS"
    ])
    CUDA_LIBS="$CUDA_LIBS -lcudnn -lcublasLt -lcudart"
    AS_CASE([$CUDA_VERSION],
        [12.*], [: ${NVCCFLAGS="-O3 _DDP_CUDA_VOLTA _DDP_CUDA_TARGETS"}],
        [: ${NVCCFLAGS="-O3 _DDP_CUDA_TARGETS"}])

    AC_MSG_CHECKING([whether $NVCC works])
    AS_ECHO(["__global__ void f(float *x) { *x = 1; }"]) >conftest.cu
    AS_IF(["$NVCC" $NVCCFLAGS -c -o conftest.cu.o conftest.cu \
            >&AS_MESSAGE_LOG_FD 2>&1],
        [AC_MSG_RESULT([yes])],
        [AC_MSG_RESULT([no])
         ddp_cuda_why="$NVCC $NVCCFLAGS fails (see config.log)"])
    rm -f conftest.cu conftest.cu.o

    ddp_CPPFLAGS=$CPPFLAGS ddp_LIBS=$LIBS
    CPPFLAGS="$CPPFLAGS $CUDA_CPPFLAGS"
    LIBS="$CUDA_LIBS $LIBS"
    AS_IF([test -z "$ddp_cuda_why"], [
        AC_MSG_CHECKING([for cuDNN 9.8 and cuBLASLt])
        AC_LINK_IFELSE([AC_LANG_PROGRAM([[
            #include <cublasLt.h>
            #include <cuda_runtime_api.h>
            #include <cudnn.h>
            #if CUDNN_VERSION < 90800
            # error cuDNN is too old
            #endif
            ]], [[int n;
            return cudnnGetVersion() == 0 || cublasLtGetVersion() == 0 ||
                   cudaGetDeviceCount(&n) != 0;]])],
            [AC_MSG_RESULT([yes])],
            [AC_MSG_RESULT([no])
             ddp_cuda_why="CUDA $CUDA_VERSION in $ddp_cuda_dir has no cuDNN \
9.8 or no cuBLASLt; --with-cudnn=DIR says where cuDNN is"])
    ])
    AS_IF([test -z "$ddp_cuda_why"], [
        for v in MAJOR MINOR PATCHLEVEL; do
            AC_COMPUTE_INT([ddp_num], [CUDNN_$v], [[#include <cudnn.h>]],
                [ddp_num=0])
            CUDNN_VERSION=$CUDNN_VERSION${CUDNN_VERSION:+.}$ddp_num
        done
        cuda_text="$CUDA_VERSION, cuDNN $CUDNN_VERSION"
    ])
    CPPFLAGS=$ddp_CPPFLAGS LIBS=$ddp_LIBS
])

dnl Machine code for each generation that CUDA 13 and cuDNN support, and for the
dnl one that only CUDA 12 does.
m4_define([_DDP_CUDA_VOLTA], [-gencode arch=compute_70,code=sm_70])
m4_define([_DDP_CUDA_TARGETS], [-gencode arch=compute_75,code=sm_75 \
-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 -gencode arch=compute_100,code=sm_100 \
-gencode arch=compute_100,code=compute_100])

dnl Checks whether StarPU supports CUDA.
AC_DEFUN([_DDP_CUDA_STARPU], [
    ddp_CPPFLAGS=$CPPFLAGS
    CPPFLAGS="$CPPFLAGS $STARPU_CFLAGS $CUDA_CPPFLAGS"
    AC_MSG_CHECKING([whether StarPU was built with CUDA])
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
        #include <starpu_config.h>
        #ifndef STARPU_USE_CUDA
        # error without
        #endif
        ]])],
        [AC_MSG_RESULT([yes])],
        [AC_MSG_RESULT([no])
         AS_IF([test "$with_cuda" = compile],
            [cuda_text="$cuda_text, compiled only: StarPU does not support CUDA"],
            [ddp_cuda_why="StarPU $STARPU_VERSION was built without CUDA: \
contrib/build-starpu builds one with it"])])
    CPPFLAGS=$ddp_CPPFLAGS
])
