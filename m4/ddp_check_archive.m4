dnl SPDX-License-Identifier: LGPL-2.1-or-later
dnl DDP_CHECK_ARCHIVE
dnl --with-archive requires libarchive, --without-archive disables it; default:
dnl if found.
dnl Sets ARCHIVE_CFLAGS, ARCHIVE_LIBS, ARCHIVE_VERSION (empty: no), and
dnl HAVE_ARCHIVE for automake and config.h.
AC_DEFUN([DDP_CHECK_ARCHIVE], [
    AC_ARG_WITH([archive],
        [AS_HELP_STRING([--with-archive],
            [write shards of data with libarchive (default: if found)])],
        [], [with_archive=check])
    ARCHIVE_VERSION=
    AS_CASE([$with_archive],
        [no], [],
        [yes], [PKG_CHECK_MODULES([ARCHIVE], [libarchive >= 3.3],
                    [ddp_archive=yes])],
        [check], [PKG_CHECK_MODULES([ARCHIVE], [libarchive >= 3.3],
                      [ddp_archive=yes], [ddp_archive=no])],
        [AC_MSG_ERROR([--with-archive=$with_archive: expected yes or no])])
    AS_IF([test "$ddp_archive" = yes], [
        ARCHIVE_VERSION=`$PKG_CONFIG --modversion libarchive`
        AC_DEFINE([HAVE_ARCHIVE], [1], [Define if libarchive is used.])
    ])
    AM_CONDITIONAL([HAVE_ARCHIVE], [test "$ddp_archive" = yes])
])
