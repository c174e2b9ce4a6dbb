# apps/ranks/local.mk - programs whose ranks have loops of their own, a page each;
# tests/app_examples.sh builds and runs them, and they are installed as examples
# SPDX-License-Identifier: LGPL-2.1-or-later

EXTRA_PROGRAMS += %D%/flowers %D%/square
%C%_flowers_CPPFLAGS = $(APPS_CPPFLAGS)
%C%_flowers_LDADD = libddp.la
%C%_square_CPPFLAGS = $(APPS_CPPFLAGS)
%C%_square_LDADD = libddp.la

dist_examples_DATA += %D%/flowers.c %D%/square.c
