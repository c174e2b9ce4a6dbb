#!/bin/bash
# test_recipes.sh - the recipes of packages and containers fit the source
# SPDX-License-Identifier: LGPL-2.1-or-later
. "$srcdir/tests/tap.sh"
cd "$srcdir" || exit 99
version=$(./configure --version | sed -n 's/^libddp configure //p')
./configure --help | grep -o -E -e '--(with|enable)-[a-z-]+' |
    sort -u >"$tmp/options"

# known: options in $tmp/used that configure does not have
known()
{
    sed 's/^--without-/--with-/; s/^--disable-/--enable-/' "$tmp/used" |
        grep -v -x -F -f "$tmp/options" >"$tmp/err"
    [ ! -s "$tmp/err" ] && [ -s "$tmp/used" ]
}

# ---- Debian ----

if [ -e debian ]; then # the tarball has none
    sed -n '1s/.*(\(.*\)-.*/\1/p' debian/changelog >"$tmp/out"
    says "^$version$" "debian/changelog has the version of configure"
    grep -o -E -e '--(with|without)-[a-z-]+' debian/rules >"$tmp/used"
    known
    point $? "debian/rules has options of configure"
    # What quickstart installs, but for what debhelper requires.
    eval "$(sed -n '/^needed=/,/"$/p; /^useful=/,/"$/p' quickstart)"
    # shellcheck disable=SC2154
    echo "$needed" "$useful" | tr -s ' ' '\n' | grep -v -x -E \
        'autoconf|automake|libtool|make|gcc|libc6-dev' |
        sed 's/libjpeg62-turbo-dev/libjpeg-dev/' >"$tmp/wanted"
    sed -n '/^Build-Depends:/,/^[A-Z]*[a-z]*-Depends-Indep/p' debian/control |
        grep -o '[a-z0-9.+-]*' >"$tmp/named"
    grep -v -x -F -f "$tmp/named" "$tmp/wanted" >"$tmp/err"
    [ ! -s "$tmp/err" ] && [ -s "$tmp/wanted" ]
    point $? "debian/control has the packages that quickstart installs"
else
    skip 3 "no debian/ here"
fi

# ---- Spack ----

python=${DDP_PYTHON:-python3}
if command -v "$python" >/dev/null; then
    run "$python" tests/oracle_spack.py contrib/spack/packages/libddp/package.py
    exits 0 "the recipe for Spack runs"
    says "^version $version$" "it has the version of configure"
    sed -n 's/^option //p' "$tmp/out" >"$tmp/used"
    known
    point $? "and options of configure"
    grep '^--with-' "$tmp/options" | grep -v -E -e \
        '-completion-dir|--with-(pic|gnu-ld|aix-soname|sysroot)$' |
        grep -v -x -F -f <(sed 's/^--without-/--with-/' "$tmp/used") >"$tmp/err"
    [ ! -s "$tmp/err" ]
    point $? "all of those for packages"
else
    skip 4 "no Python here"
fi

# ---- containers ----

# words: of commands on stdin, without what joins them
words()
{
    tr -d '\\&' | tr -s ' \n' ' ' | sed 's/^ //'
}
docker=$(awk 'sub(/^RUN /, "") { on = 1 } on { print } !/\\$/ { on = 0 }' \
    contrib/container/Dockerfile | words)
def=$(sed -n '/^%post/,/^%runscript/{/^%/d; /^ *cd /d; p}' \
    contrib/container/libddp.def | words)
[ -n "$docker" ] && [ "$docker" = "$def" ]
point $? "the Dockerfile and libddp.def run the same commands"

done_testing
