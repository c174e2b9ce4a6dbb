dnl SPDX-License-Identifier: LGPL-2.1-or-later
dnl DDP_CHECK_CURL
dnl --with-curl requires libcurl and expat, --without-curl disables them;
dnl default: if found.
dnl Sets CURL_CFLAGS, CURL_LIBS, CURL_VERSION (empty: no), and HAVE_CURL for
dnl automake and config.h.
AC_DEFUN([DDP_CHECK_CURL], [
    AC_ARG_WITH([curl],
        [AS_HELP_STRING([--with-curl],
            [read data from S3 and web servers with libcurl and expat \
(default: if found)])],
        [], [with_curl=check])
    CURL_VERSION=
    AS_CASE([$with_curl],
        [no], [],
        [yes], [PKG_CHECK_MODULES([CURL], [libcurl >= 7.87 expat],
                    [ddp_curl=yes])],
        [check], [PKG_CHECK_MODULES([CURL], [libcurl >= 7.87 expat],
                      [ddp_curl=yes], [ddp_curl=no])],
        [AC_MSG_ERROR([--with-curl=$with_curl: expected yes or no])])
    AS_IF([test "$ddp_curl" = yes], [
        CURL_VERSION=`$PKG_CONFIG --modversion libcurl`
        AC_DEFINE([HAVE_CURL], [1], [Define if libcurl and expat are used.])
    ])
    AM_CONDITIONAL([HAVE_CURL], [test "$ddp_curl" = yes])
])
