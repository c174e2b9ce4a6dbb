dnl SPDX-License-Identifier: LGPL-2.1-or-later
dnl DDP_CHECK_STARPU
dnl Finds StarPU with pkg-config: 1.4 if installed, else 1.3.10 or later.
dnl Sets STARPU_CFLAGS, STARPU_LIBS and STARPU_VERSION; it is an error if not
dnl found.  Its headers cause warnings with our flags, hence -isystem.
AC_DEFUN([DDP_CHECK_STARPU], [
    PKG_PROG_PKG_CONFIG([0.29])
    AS_IF([test -z "$PKG_CONFIG"], [AC_MSG_ERROR([pkg-config is missing])])
    ddp_starpu="starpu-1.3"
    PKG_CHECK_EXISTS([starpu-1.4], [ddp_starpu="starpu-1.4"])
    PKG_CHECK_MODULES([STARPU], [$ddp_starpu >= 1.3.10], [],
        [AC_MSG_ERROR([StarPU 1.3.10 or later is required: install \
Debian's libstarpu-dev, or run contrib/build-starpu and then configure \
with PKG_CONFIG_PATH=PREFIX/lib/pkgconfig])])
    STARPU_VERSION=`$PKG_CONFIG --modversion $ddp_starpu`
    STARPU_CFLAGS=`AS_ECHO(["$STARPU_CFLAGS"]) | $SED 's/-I */-isystem /g'`
])
