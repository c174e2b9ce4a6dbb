dnl SPDX-License-Identifier: LGPL-2.1-or-later
dnl DDP_CHECK_ONEDNN
dnl --with-onednn=yes|DIR requires oneDNN, no disables it; default: if found.
dnl It checks header and library, since Debian's 2.6 has no pkg-config file.
dnl Sets ONEDNN_CPPFLAGS, ONEDNN_LIBS, ONEDNN_VERSION, have_onednn, and
dnl HAVE_ONEDNN for automake and config.h.
AC_DEFUN([DDP_CHECK_ONEDNN], [
    AC_ARG_WITH([onednn],
        [AS_HELP_STRING([--with-onednn=yes|no|DIR],
            [kernels for CPU workers by oneDNN 2.6 or later (default: if found)])],
        [], [with_onednn=check])
    have_onednn=no
    ONEDNN_CPPFLAGS= ONEDNN_LIBS= ONEDNN_VERSION=
    AS_IF([test "$with_onednn" != no], [
        AS_CASE([$with_onednn], [yes|check], [], [
            ddp_header=$with_onednn/include/oneapi/dnnl/dnnl.h
            AS_IF([test ! -r "$ddp_header"],
                [AC_MSG_ERROR([--with-onednn=$with_onednn: cannot read \
$ddp_header])])
            ONEDNN_CPPFLAGS="-isystem $with_onednn/include"
            for d in lib lib64; do
                AS_IF([test -e "$with_onednn/$d/libdnnl.so"],
                    [ONEDNN_LIBS="-L$with_onednn/$d -Wl,-rpath,$with_onednn/$d"])
            done
        ])
        _DDP_TRY_ONEDNN
        AS_IF([test "$have_onednn" = no && test "$with_onednn" != check],
            [AC_MSG_ERROR([--with-onednn=$with_onednn: cannot use oneDNN, \
expected 2.6 or later ($ddp_onednn_why)])])
    ])
    AS_IF([test "$have_onednn" = yes],
        [AC_DEFINE([HAVE_ONEDNN], [1], [Define if oneDNN is used.])],
        [ONEDNN_CPPFLAGS= ONEDNN_LIBS=])
    AC_SUBST([ONEDNN_CPPFLAGS])
    AC_SUBST([ONEDNN_LIBS])
    AM_CONDITIONAL([HAVE_ONEDNN], [test "$have_onednn" = yes])
])

dnl Sets have_onednn, or ddp_onednn_why.
AC_DEFUN([_DDP_TRY_ONEDNN], [
    ddp_CPPFLAGS=$CPPFLAGS ddp_LIBS=$LIBS
    CPPFLAGS="$CPPFLAGS $ONEDNN_CPPFLAGS"
    ONEDNN_LIBS="$ONEDNN_LIBS -ldnnl"
    LIBS="$ONEDNN_LIBS $LIBS"
    ddp_onednn_why="no header oneapi/dnnl/dnnl.h"
    AC_CHECK_HEADER([oneapi/dnnl/dnnl.h], [
        for v in MAJOR MINOR PATCH; do
            AC_COMPUTE_INT([ddp_num], [DNNL_VERSION_$v],
                [[#include <oneapi/dnnl/dnnl_version.h>]], [ddp_num=0])
            ONEDNN_VERSION=$ONEDNN_VERSION${ONEDNN_VERSION:+.}$ddp_num
        done
        ddp_onednn_why="version $ONEDNN_VERSION"
        AS_VERSION_COMPARE([$ONEDNN_VERSION], [2.6], [],
            [_DDP_LINK_ONEDNN], [_DDP_LINK_ONEDNN])
    ])
    CPPFLAGS=$ddp_CPPFLAGS LIBS=$ddp_LIBS
])

AC_DEFUN([_DDP_LINK_ONEDNN], [
    ddp_onednn_why="-ldnnl does not link"
    AC_MSG_CHECKING([for -ldnnl])
    AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <oneapi/dnnl/dnnl.h>]],
        [[return dnnl_version() == 0;]])], [have_onednn=yes])
    AC_MSG_RESULT([$have_onednn])
])
