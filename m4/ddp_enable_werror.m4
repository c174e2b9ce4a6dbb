dnl SPDX-License-Identifier: LGPL-2.1-or-later
dnl DDP_ENABLE_WERROR
dnl --enable-werror turns warnings into errors for make, but not in CFLAGS, where
dnl it would break libtool's tests during configure.  Sets WERROR_CFLAGS, and
dnl WERROR_NVCCFLAGS for nvcc, whose option has another name.
AC_DEFUN([DDP_ENABLE_WERROR], [
    AC_ARG_ENABLE([werror],
        [AS_HELP_STRING([--enable-werror], [warnings are errors])],
        [], [enable_werror=no])
    AS_IF([test "$enable_werror" = yes], [
        WERROR_CFLAGS=-Werror WERROR_NVCCFLAGS=-Werror=all-warnings
    ], [
        WERROR_CFLAGS= WERROR_NVCCFLAGS=
    ])
    AC_SUBST([WERROR_CFLAGS])
    AC_SUBST([WERROR_NVCCFLAGS])
])
