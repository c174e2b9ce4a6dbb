#!/bin/sh
# app_bundle.sh - the checks of make bundle notice what would not start on an
# older system
# SPDX-License-Identifier: LGPL-2.1-or-later
. "$srcdir/tests/tap.sh"

bundle=$srcdir/contrib/bundle

mkdir "$tmp/bin"
for tool in bash perl gzip; do
    ln -s "$(command -v $tool)" "$tmp/bin/"
done
run env PATH="$tmp/bin" "$bundle" --tools
exits 1 "make bundle needs tools"
complains 'cannot find patchelf objdump readelf strip gcc: apt-get install' \
    "and names those that are missing"

if ! command -v objdump >/dev/null; then
    skip 6 "no objdump"
    done_testing
fi

# made_up LIBRARY VERSION SYMBOL: a library with one symbol, which is empty
made_up()
{
    echo "$2 { $3; };" >"$tmp/versions"
    echo "int $3(void); int $3(void) { return 1; }" |
        cc -shared -fPIC -nostdlib -x c - -o "$tmp/made-up/$1" \
            -Wl,-soname,"$1" -Wl,--version-script="$tmp/versions"
}

# user NAME LIBRARY SYMBOL: a file of an unpacked archive that needs both
user()
{
    echo "int $3(void); int start(void); int start(void) { return $3(); }" |
        cc -shared -fPIC -nostdlib -x c - -o "$tmp/root/$1" -x none \
            "$tmp/made-up/$2"
}

mkdir -p "$tmp/made-up" "$tmp/root/lib" "$tmp/root/bin"
made_up libm.so.6 GLIBC_2.34 ddp_root
user bin/old libm.so.6 ddp_root
run "$bundle" --check "$tmp/root"
exits 0 "a program of glibc 2.34 passes"

made_up libm.so.6 GLIBC_2.35 ddp_hypot
user bin/new libm.so.6 ddp_hypot
run "$bundle" --check "$tmp/root"
exits 1 "one of glibc 2.35 does not"
complains '^bundle: bin/new needs ddp_hypot of GLIBC_2\.35, expected at most' \
    "and file, symbol and version are named"
rm "$tmp/root/bin/new"

made_up libstdc++.so.6 GLIBCXX_3.4 ddp_new
user lib/plus.so libstdc++.so.6 ddp_new
run "$bundle" --check "$tmp/root"
exits 1 "nor does a library that needs libstdc++"
complains '^bundle: lib/plus.so needs libstdc\+\+\.so\.6, which is not packed' \
    "and both are named"
made_up libplus.so.6 PLUS_1 ddp_new
user lib/plus.so libplus.so.6 ddp_new
cp "$tmp/made-up/libplus.so.6" "$tmp/root/lib/"
run "$bundle" --check "$tmp/root"
exits 0 "what is packed may be needed"

done_testing
