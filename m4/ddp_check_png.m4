dnl SPDX-License-Identifier: LGPL-2.1-or-later
dnl DDP_CHECK_PNG
dnl --with-png requires libpng, --without-png disables it; default: if found.
dnl Sets PNG_CFLAGS, PNG_LIBS, PNG_VERSION (empty: no), and HAVE_PNG for
dnl automake and config.h.
AC_DEFUN([DDP_CHECK_PNG], [
    AC_ARG_WITH([png],
        [AS_HELP_STRING([--with-png],
            [decode PNG files with libpng (default: if found)])],
        [], [with_png=check])
    PNG_VERSION=
    AS_CASE([$with_png],
        [no], [],
        [yes], [PKG_CHECK_MODULES([PNG], [libpng >= 1.6], [ddp_png=yes])],
        [check], [PKG_CHECK_MODULES([PNG], [libpng >= 1.6], [ddp_png=yes],
                     [ddp_png=no])],
        [AC_MSG_ERROR([--with-png=$with_png: expected yes or no])])
    AS_IF([test "$ddp_png" = yes], [
        PNG_VERSION=`$PKG_CONFIG --modversion libpng`
        AC_DEFINE([HAVE_PNG], [1], [Define if libpng is used.])
    ])
    AM_CONDITIONAL([HAVE_PNG], [test "$ddp_png" = yes])
])
