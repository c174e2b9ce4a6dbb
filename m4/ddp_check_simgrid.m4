dnl SPDX-License-Identifier: LGPL-2.1-or-later
dnl DDP_CHECK_SIMGRID
dnl --with-simgrid=PREFIX builds ddp-predict against the StarPU there, which
dnl is of the flavour that simulates (contrib/build-starpu --simgrid); default:
dnl it is not built.  The library itself stays with its own StarPU.
dnl Sets SIMGRID_CPPFLAGS, SIMGRID_LIBS, simgrid_text for the summary, and
dnl HAVE_SIMGRID for automake.
AC_DEFUN([DDP_CHECK_SIMGRID], [
    AC_ARG_WITH([simgrid],
        [AS_HELP_STRING([--with-simgrid=PREFIX],
            [StarPU's SimGrid flavour, for ddp-predict (default: not
            built)])],
        [], [with_simgrid=no])
    SIMGRID_CPPFLAGS= SIMGRID_LIBS=
    AS_CASE([$with_simgrid],
        [no], [simgrid_text="no (--with-simgrid=PREFIX builds it)"],
        [yes], [AC_MSG_ERROR([--with-simgrid wants the folder that \
contrib/build-starpu --simgrid has filled])],
        [_DDP_TRY_SIMGRID])
    AC_SUBST([SIMGRID_CPPFLAGS])
    AC_SUBST([SIMGRID_LIBS])
    AM_CONDITIONAL([HAVE_SIMGRID], [test "$with_simgrid" != no])
])

AC_DEFUN([_DDP_TRY_SIMGRID], [
    AC_MSG_CHECKING([for StarPU's SimGrid flavour in $with_simgrid])
    AS_VAR_SET([ddp_pc], [$with_simgrid/lib/pkgconfig/starpu-1.4.pc])
    AS_IF([$PKG_CONFIG --exists "$ddp_pc"], [], [
        AC_MSG_RESULT([no])
        AC_MSG_ERROR([--with-simgrid=$with_simgrid, but StarPU is not there, \
or needs what is not: $ddp_pc; contrib/build-starpu --simgrid builds it])
    ])
    SIMGRID_CPPFLAGS=`$PKG_CONFIG --cflags "$ddp_pc" |
        $SED 's/-I */-isystem /g'`
    SIMGRID_LIBS="`$PKG_CONFIG --libs "$ddp_pc"` -Wl,-rpath,$with_simgrid/lib"
    ddp_CPPFLAGS=$CPPFLAGS
    CPPFLAGS="$SIMGRID_CPPFLAGS $CPPFLAGS"
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[
        #include <starpu_config.h>
        #ifndef STARPU_SIMGRID
        # error another flavour
        #endif
        ]])],
        [simgrid_text="StarPU `$PKG_CONFIG --modversion "$ddp_pc"`, SimGrid"
         AC_MSG_RESULT([yes])],
        [AC_MSG_RESULT([no])
         AC_MSG_ERROR([the StarPU in $with_simgrid does not simulate: \
contrib/build-starpu --simgrid builds one that does])])
    CPPFLAGS=$ddp_CPPFLAGS
])
