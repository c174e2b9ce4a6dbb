dnl SPDX-License-Identifier: LGPL-2.1-or-later
dnl DDP_CHECK_STARPU
dnl Finds StarPU by pkg-config: 1.4 if there is one, else 1.3.10 or later.
dnl Sets STARPU_CFLAGS, STARPU_LIBS and STARPU_VERSION; an error without it.
dnl The headers warn under our flags, hence -isystem.
AC_DEFUN([DDP_CHECK_STARPU], [
    PKG_PROG_PKG_CONFIG([0.29])
    AS_IF([test -z "$PKG_CONFIG"], [AC_MSG_ERROR([pkg-config is missing])])
    ddp_starpu="starpu-1.3"
    PKG_CHECK_EXISTS([starpu-1.4], [ddp_starpu="starpu-1.4"])
    PKG_CHECK_MODULES([STARPU], [$ddp_starpu >= 1.3.10], [],
        [AC_MSG_ERROR([StarPU 1.3.10 or later is needed: \
Debian's libstarpu-dev, or contrib/build-starpu and then \
PKG_CONFIG_PATH=PREFIX/lib/pkgconfig])])
    STARPU_VERSION=`$PKG_CONFIG --modversion $ddp_starpu`
    STARPU_CFLAGS=`AS_ECHO(["$STARPU_CFLAGS"]) | $SED 's/-I */-isystem /g'`
])
