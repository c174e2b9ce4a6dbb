dnl SPDX-License-Identifier: LGPL-2.1-or-later
dnl DDP_CHECK_FORMAT(VARIABLE, OPTION, FILES, LIBRARY, MINIMUM)
dnl A library that decodes image files, by its pkg-config name: --with-OPTION
dnl requires it, --without-OPTION disables it; default: if found.  Sets
dnl VARIABLE_CFLAGS, VARIABLE_LIBS, VARIABLE_VERSION (empty: no), and
dnl HAVE_VARIABLE for automake and config.h.
AC_DEFUN([DDP_CHECK_FORMAT], [
    AC_ARG_WITH([$2],
        [AS_HELP_STRING([--with-$2],
            [decode $3 files with $4 (default: if found)])],
        [], [with_$2=check])
    $1_VERSION=
    AS_CASE([$with_$2],
        [no], [],
        [yes], [PKG_CHECK_MODULES([$1], [$4 >= $5], [ddp_$2=yes])],
        [check], [PKG_CHECK_MODULES([$1], [$4 >= $5], [ddp_$2=yes],
                     [ddp_$2=no])],
        [AC_MSG_ERROR([--with-$2=$with_$2: expected yes or no])])
    AS_IF([test "$ddp_$2" = yes], [
        $1_VERSION=`$PKG_CONFIG --modversion $4`
        AC_DEFINE([HAVE_$1], [1], [Define if $4 is used.])
    ])
    AM_CONDITIONAL([HAVE_$1], [test "$ddp_$2" = yes])
])
