# examples.sh - build the programs of examples/ as their README says
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# After tap.sh.  test_install.sh builds them with what pkg-config says; here it
# is the library of this build.

# example NAME [COMPILER]: build $tmp/NAME, of C++ if there is a compiler
example()
{
    source=$srcdir/examples/$1.c
    [ $# = 1 ] || source=$srcdir/examples/$1.cc
    # shellcheck disable=SC2086
    ${2:-${DDP_TEST_CC:-cc}} -O1 -Wall -Wextra -Werror -I"$srcdir/lib" \
        "$source" -o "$tmp/$1" -L"$builddir/.libs" -lddp -lm \
        -Wl,-rpath,"$builddir/.libs" >"$tmp/out" 2>"$tmp/err" ||
        point 1 "${source##*/} builds"
}
