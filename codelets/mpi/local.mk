# codelets/mpi/local.mk - messages between ranks by MPI, a module that is opened at run time
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# libddp.so itself needs no MPI, and the module no part of libddp.so: on a
# cluster with an MPI of its own, only this is built again.

if HAVE_MPI
pkglib_LTLIBRARIES += ddp_mpi.la
ddp_mpi_la_SOURCES = %D%/mpi.c
ddp_mpi_la_CPPFLAGS = $(AM_CPPFLAGS) $(MPI_CFLAGS)
ddp_mpi_la_LIBADD = $(MPI_LIBS)
ddp_mpi_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -shared \
    -export-symbols-regex '^ddp_wire_open$$'
endif
