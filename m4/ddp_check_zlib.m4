dnl SPDX-License-Identifier: LGPL-2.1-or-later
dnl DDP_CHECK_ZLIB
dnl --with-zlib requires zlib, --without-zlib disables it; default: if found.
dnl Sets ZLIB_CFLAGS, ZLIB_LIBS, ZLIB_VERSION (empty: no), and HAVE_ZLIB for
dnl config.h.
AC_DEFUN([DDP_CHECK_ZLIB], [
    AC_ARG_WITH([zlib],
        [AS_HELP_STRING([--with-zlib],
            [read MNIST's .gz files with zlib (default: if found)])],
        [], [with_zlib=check])
    ZLIB_VERSION=
    AS_CASE([$with_zlib],
        [no], [],
        [yes], [PKG_CHECK_MODULES([ZLIB], [zlib >= 1.2], [ddp_zlib=yes])],
        [check], [PKG_CHECK_MODULES([ZLIB], [zlib >= 1.2], [ddp_zlib=yes],
                     [ddp_zlib=no])],
        [AC_MSG_ERROR([--with-zlib=$with_zlib: expected yes or no])])
    AS_IF([test "$ddp_zlib" = yes], [
        ZLIB_VERSION=`$PKG_CONFIG --modversion zlib`
        AC_DEFINE([HAVE_ZLIB], [1], [Define if zlib is used.])
    ])
])
