#!/bin/bash
# test_install.sh - what make install leaves is enough to build a program with
# SPDX-License-Identifier: LGPL-2.1-or-later

n=0 failed=0
ok() # ok SENTENCE COMMAND...: shows the command's output if it fails
{
    local what=$1 out
    shift
    n=$((n + 1))
    if out=$("$@" 2>&1); then
        echo "ok $n - $what"
    else
        echo "not ok $n - $what"
        echo "$* failed:"$'\n'"$out" | sed 's/^/# /'
        failed=$((failed + 1))
    fi
}

not()
{
    ! "$@"
}

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
lib=$root$DDP_TEST_LIBDIR

# Our make is not the one that runs the tests: none of its flags or jobs.
unset MAKEFLAGS MFLAGS MAKELEVEL
ok "make install into a folder of its own" \
    "$DDP_TEST_MAKE" -s -C "$builddir" install DESTDIR="$root"

headers=$(find "$root" -name '*.h' -printf '%f\n' | sort | tr '\n' ' ')
ok "ddp.h and ddp_layer.h are the only headers ($headers)" \
    [ "$headers" = "ddp.h ddp_layer.h " ]

pages=$(find "$root" -path '*/docs/*.md' | wc -l)
ok "the manual is there ($pages pages)" \
    [ "$pages" = "$(find "$srcdir/docs" -name '*.md' | wc -l)" ]

# A moved tree: pkg-config puts the folder before the prefix.
export PKG_CONFIG_PATH=$lib/pkgconfig
export PKG_CONFIG_SYSROOT_DIR=$root
ok "pkg-config knows ddp" pkg-config --print-errors --exists ddp
flags=$(pkg-config --cflags --libs ddp 2>/dev/null)

ok "a C program builds with it alone" \
    $DDP_TEST_CC -Wall -Wextra -Werror -std=gnu11 -o "$root/main" \
    "$srcdir/tests/outside/main.c" $flags
ok "and runs, with one version everywhere" \
    env LD_LIBRARY_PATH="$lib" "$root/main" "$(pkg-config --modversion ddp)"

# The same through CMake, whose package finds the moved tree by itself.
if command -v cmake >/dev/null; then
    mkdir "$root/cmake"
    cp "$srcdir/tests/outside/main.c" "$root/cmake"
    cat >"$root/cmake/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.18)
project(outside C)
find_package(ddp ${WANTED} REQUIRED)
add_executable(outside main.c)
target_link_libraries(outside PRIVATE ddp::ddp)
END
    version=$(pkg-config --modversion ddp)
    through_cmake() # through_cmake WANTED
    {
        rm -rf "$root/cmake/build" &&
            CC=$DDP_TEST_CC cmake -S "$root/cmake" -B "$root/cmake/build" \
                -Dddp_DIR="$lib/cmake/ddp" -DWANTED="$1" &&
            cmake --build "$root/cmake/build"
    }
    ok "CMake finds the library and builds a program" through_cmake "$version"
    ok "which runs, with the version asked for" \
        "$root/cmake/build/outside" "$version"
    ok "another version is refused" not through_cmake 0.0
    ok "and a later one" not through_cmake "${version%.*}.99"
else
    n=$((n + 4))
    for i in 3 2 1 0; do echo "ok $((n - i)) # SKIP no cmake here"; done
fi

# The README's program, as a reader would copy it.
awk '/^```c$/ { inside = 1; next } /^```$/ { inside = 0 } inside' \
    "$srcdir/README.md" >"$root/readme.c"
ok "the program in the README builds" \
    $DDP_TEST_CC -Wall -Wextra -Werror -std=gnu11 -o "$root/readme" \
    "$root/readme.c" $flags
ok "and trains" env -C "$srcdir/apps/iris" LD_LIBRARY_PATH="$lib" \
    "$root/readme"

# The installed examples, as their README says.
for example in "$root$DDP_TEST_DOCDIR"/examples/*.c; do
    ok "${example##*/} builds where it is installed" \
        $DDP_TEST_CC -o "$root/example" "$example" $flags -lm
done

# Each header alone, in each language it has to be valid in.
alone() # alone COMPILER STANDARD SUFFIX HEADER
{
    echo "#include <$4>" >"$root/alone.$3"
    $1 -std="$2" -pedantic -Wall -Wextra -Werror -c -o "$root/alone.o" \
        "$root/alone.$3" $flags
}
for header in ddp.h ddp_layer.h; do
    ok "$header is C11" alone "$DDP_TEST_CC" c11 c $header
    ok "$header is C17" alone "$DDP_TEST_CC" c17 c $header
    if command -v g++ >/dev/null; then
        ok "$header is C++17" alone g++ c++17 cpp $header
    else
        n=$((n + 1))
        echo "ok $n # SKIP no g++ here"
    fi
done

bin=$root$DDP_TEST_BINDIR
export LD_LIBRARY_PATH=$lib
ok "the programs run where they are installed" "$bin/imagenet" --version
ok "the benchmark too" "$bin/ddp-bench" --version
ok "the example with its data" \
    "$bin/ddp-iris" "$root$DDP_TEST_DOCDIR/examples/iris.csv"

strangers=$(nm -D --defined-only "$lib/libddp.so" |
    awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' |
    grep -v -E '^(ddp_[a-z]|starpu_(get_sched_lib_|cuda_report_error))' | tr '\n' ' ')
ok "the library shows public names only ($strangers)" [ -z "$strangers" ]

echo "1..$n"
[ $failed = 0 ]
