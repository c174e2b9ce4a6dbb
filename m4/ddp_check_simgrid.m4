dnl SPDX-License-Identifier: LGPL-2.1-or-later
dnl DDP_CHECK_SIMGRID
dnl --with-simgrid=PREFIX builds ddp-predict against StarPU's SimGrid flavour
dnl in PREFIX (contrib/build-starpu --simgrid); default: it is not built.  The
dnl library itself does not use that StarPU.
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
        [yes], [AC_MSG_ERROR([--with-simgrid: expected a folder that \
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
        AC_MSG_ERROR([--with-simgrid=$with_simgrid: cannot use $ddp_pc or a \
package that it requires; contrib/build-starpu --simgrid builds StarPU])
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
         AC_MSG_ERROR([--with-simgrid=$with_simgrid: StarPU there was built \
without SimGrid; contrib/build-starpu --simgrid builds one with it])])
    CPPFLAGS=$ddp_CPPFLAGS
])
