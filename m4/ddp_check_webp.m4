dnl SPDX-License-Identifier: LGPL-2.1-or-later
dnl DDP_CHECK_WEBP
dnl --with-webp requires libwebp, --without-webp disables it; default: if
dnl found.  Sets WEBP_CFLAGS, WEBP_LIBS, WEBP_VERSION (empty: no), and HAVE_WEBP
dnl for automake and config.h.
AC_DEFUN([DDP_CHECK_WEBP], [
    AC_ARG_WITH([webp],
        [AS_HELP_STRING([--with-webp],
            [decode WebP files with libwebp (default: if found)])],
        [], [with_webp=check])
    WEBP_VERSION=
    AS_CASE([$with_webp],
        [no], [],
        [yes], [PKG_CHECK_MODULES([WEBP], [libwebp >= 1.0], [ddp_webp=yes])],
        [check], [PKG_CHECK_MODULES([WEBP], [libwebp >= 1.0], [ddp_webp=yes],
                     [ddp_webp=no])],
        [AC_MSG_ERROR([--with-webp=$with_webp: expected yes or no])])
    AS_IF([test "$ddp_webp" = yes], [
        WEBP_VERSION=`$PKG_CONFIG --modversion libwebp`
        AC_DEFINE([HAVE_WEBP], [1], [Define if libwebp is used.])
    ])
    AM_CONDITIONAL([HAVE_WEBP], [test "$ddp_webp" = yes])
])
