dnl SPDX-License-Identifier: LGPL-2.1-or-later
dnl DDP_CHECK_MPI
dnl --with-mpi requires an MPI, --without-mpi disables it; default: if found.
dnl MPI_CFLAGS and MPI_LIBS come from the user, else from pkg-config (the
dnl system's choice, Open MPI, MPICH), else from the compiler wrapper MPICC.
dnl Sets MPI_VERSION (empty: no) and HAVE_MPI for automake.
AC_DEFUN([DDP_CHECK_MPI], [
    AC_ARG_WITH([mpi],
        [AS_HELP_STRING([--with-mpi],
            [train on several nodes with MPI (default: if found)])],
        [], [with_mpi=check])
    AC_ARG_VAR([MPICC], [compiler wrapper of an MPI that pkg-config does not know])
    MPI_VERSION=
    AS_CASE([$with_mpi],
        [no], [],
        [yes|check], [
            AS_IF([test -z "$MPICC"], [
                for ddp_mpi in mpi-c ompi-c ompi mpich; do
                    AS_IF([test -z "$MPI_VERSION"],
                        [PKG_CHECK_MODULES([MPI], [$ddp_mpi],
                            [MPI_VERSION=`$PKG_CONFIG --modversion $ddp_mpi`],
                            [:])])
                done
            ])
            AS_IF([test -z "$MPICC"], [AC_PATH_PROGS([MPICC], [mpicc])])
            AS_IF([test -z "$MPI_VERSION" && test -n "$MPICC"], [
                MPI_CFLAGS=`$MPICC --showme:compile 2>/dev/null ||
                    $MPICC -compile-info 2>/dev/null |
                    tr ' ' '\n' | grep '^-[[DI]]' | tr '\n' ' '`
                MPI_LIBS=`$MPICC --showme:link 2>/dev/null ||
                    $MPICC -link-info 2>/dev/null |
                    tr ' ' '\n' | grep -e '^-[[Ll]]' -e '^-Wl' | tr '\n' ' '`
                MPI_VERSION=$MPICC
            ])
            ddp_cppflags=$CPPFLAGS
            CPPFLAGS="$CPPFLAGS $MPI_CFLAGS"
            AS_IF([test -n "$MPI_VERSION"],
                [AC_CHECK_HEADER([mpi.h], [], [MPI_VERSION=])])
            CPPFLAGS=$ddp_cppflags
            AS_IF([test "$with_mpi$MPI_VERSION" = yes],
                [AC_MSG_ERROR([--with-mpi: found no MPI; set MPICC, or MPI_CFLAGS and MPI_LIBS])])
        ],
        [AC_MSG_ERROR([--with-mpi=$with_mpi: expected yes or no])])
    AC_SUBST([MPI_CFLAGS])
    AC_SUBST([MPI_LIBS])
    AC_SUBST([MPI_VERSION])
    AM_CONDITIONAL([HAVE_MPI], [test -n "$MPI_VERSION"])
])
