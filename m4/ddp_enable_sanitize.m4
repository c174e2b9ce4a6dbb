dnl SPDX-License-Identifier: LGPL-2.1-or-later
dnl DDP_ENABLE_SANITIZE
dnl --enable-sanitize=LIST: address, undefined, thread, separated by commas.
dnl Sets SANITIZE (the list) and SANITIZE_CFLAGS, for compiling and linking.
AC_DEFUN([DDP_ENABLE_SANITIZE], [
    AC_ARG_ENABLE([sanitize],
        [AS_HELP_STRING([--enable-sanitize=address|undefined|thread],
            [build with these sanitizers (address,undefined may be combined)])],
        [], [enable_sanitize=no])
    SANITIZE= SANITIZE_CFLAGS=
    AS_IF([test "$enable_sanitize" != no], [
        for s in `AS_ECHO(["$enable_sanitize"]) | tr , ' '`; do
            AS_CASE([$s], [address|undefined|thread], [],
                [AC_MSG_ERROR([--enable-sanitize=$s: expected address, undefined \
or thread])])
        done
        SANITIZE=$enable_sanitize
        SANITIZE_CFLAGS="-fsanitize=$SANITIZE -fno-omit-frame-pointer"
        AS_CASE([$SANITIZE], [*undefined*],
            [SANITIZE_CFLAGS="$SANITIZE_CFLAGS -fno-sanitize-recover=undefined"])
        ddp_CFLAGS=$CFLAGS
        CFLAGS="$CFLAGS $SANITIZE_CFLAGS"
        AC_MSG_CHECKING([whether $CC supports -fsanitize=$SANITIZE])
        AC_LINK_IFELSE([AC_LANG_PROGRAM()], [AC_MSG_RESULT([yes])],
            [AC_MSG_RESULT([no])
             AC_MSG_ERROR([--enable-sanitize=$SANITIZE: cannot link a program])])
        CFLAGS=$ddp_CFLAGS
    ])
    AC_SUBST([SANITIZE])
    AC_SUBST([SANITIZE_CFLAGS])
])
