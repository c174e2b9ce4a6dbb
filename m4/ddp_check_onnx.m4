dnl SPDX-License-Identifier: LGPL-2.1-or-later
dnl DDP_CHECK_ONNX
dnl --with-onnx=yes|FILE requires ONNX export (FILE is onnx.proto), no disables
dnl it; default: if libprotobuf-c, protoc-c and the description of the format,
dnl onnx.proto, are found.
dnl Sets PROTOBUF_C_CFLAGS, PROTOBUF_C_LIBS, PROTOC_C, ONNX_PROTO, have_onnx, and
dnl HAVE_ONNX for automake and config.h.
AC_DEFUN([DDP_CHECK_ONNX], [
    AC_ARG_WITH([onnx],
        [AS_HELP_STRING([--with-onnx=yes|no|FILE],
            [export networks as ONNX, using protobuf-c and onnx.proto, which \
is FILE (default: if found)])],
        [], [with_onnx=check])
    have_onnx=no
    ONNX_PROTO=
    AS_CASE([$with_onnx],
        [no], [],
        [yes|check], [
            for f in /usr/include/onnx /usr/local/include/onnx; do
                for p in "$f/onnx-ml.proto" "$f/onnx.proto"; do
                    AS_IF([test -r "$p"], [ONNX_PROTO=$p])
                done
            done],
        [ONNX_PROTO=$with_onnx])
    AS_IF([test "$with_onnx" != no], [
        AC_CHECK_PROG([PROTOC_C], [protoc-c], [protoc-c])
        PKG_CHECK_MODULES([PROTOBUF_C], [libprotobuf-c >= 1.3],
            [have_onnx=yes], [have_onnx=no])
        AS_IF([test -z "$PROTOC_C" || test ! -r "$ONNX_PROTO"], [have_onnx=no])
        AS_IF([test "$have_onnx" = no && test "$with_onnx" != check],
            [AC_MSG_ERROR([--with-onnx=$with_onnx: libprotobuf-c, protoc-c \
or onnx.proto is missing (Debian: libprotobuf-c-dev, protobuf-c-compiler, \
libonnx-dev)])])
    ])
    AS_IF([test "$have_onnx" = yes],
        [AC_DEFINE([HAVE_ONNX], [1], [Define if networks are exported as ONNX.])],
        [PROTOBUF_C_CFLAGS= PROTOBUF_C_LIBS=])
    AC_SUBST([PROTOBUF_C_CFLAGS])
    AC_SUBST([PROTOBUF_C_LIBS])
    AC_SUBST([ONNX_PROTO])
    AM_CONDITIONAL([HAVE_ONNX], [test "$have_onnx" = yes])
])
