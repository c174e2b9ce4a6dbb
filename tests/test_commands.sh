#!/bin/bash
# test_commands.sh - the manual's commands that need root, a network, a GPU or an
# hour, as far as they can be checked without
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# tests/app_manual.sh runs those of the other pages.  Here a function stands for
# each program: nothing is installed or built, which .ci/run does, nor sent to
# Slurm or Spack.  Programs of ours run, with smaller networks.
. "$srcdir/tests/tap.sh"
export DDP_MODULE_DIR="${DDP_MODULE_DIR:-$builddir/.libs}"
cd "$tmp" || exit 99

# wrong SENTENCE
wrong()
{
    echo "$1" >>wrong
}

# Packages are those that quickstart installs, or files that build-deb makes.
apt-get()
{
    local package
    [ "$1" = install ] || wrong "apt-get $1"
    for package in "${@:2}"; do
        case $package in
        ./build/deb/*) [ -e "$srcdir/debian" ] || continue ;;
        libsimgrid-dev) grep -q -w "$package" "$srcdir/contrib/build-starpu" ;;
        *) grep -q -w -e "$package" "$srcdir/quickstart" ;;
        esac || wrong "nobody else names the package $package"
    done
}

configure()
{
    local option
    for option; do
        case $option in
        -*) "$srcdir/configure" --help | grep -q -e "${option%%=*}" ;;
        esac || wrong "configure has no $option"
    done
}

# Targets are those of the Makefile.
make()
{
    local target
    [ "$1" != -C ] || shift 2
    for target in "${@:-all}"; do
        grep -q -E "^([a-z-]+ )*$target( [a-z-]+)*:" "$builddir/Makefile" ||
            wrong "make has no $target"
    done
}

# script NAME ARGUMENT...: of contrib/
script()
{
    local option
    bash -n "$srcdir/contrib/$1" || wrong "contrib/$1 is no script"
    for option in "${@:2}"; do
        case $option in
        -*) grep -q -e "$option" "$srcdir/contrib/$1" ;;
        esac || wrong "contrib/$1 has no $option"
    done
}

autogen.sh()
{
    sh -n "$srcdir/autogen.sh" || wrong "autogen.sh is no script"
}

spack()
{
    local recipe=$srcdir/contrib/spack
    case $1 in
    repo) [ -e "$srcdir/$3/repo.yaml" ] ;;
    dev-build) grep -q "variant(\"${3#+}\"" "$recipe/packages/libddp/package.py" ;;
    *) false ;;
    esac || wrong "spack $*"
}

tar()
{
    [ "$1" = -xf ] || wrong "tar $*"
}

srun()
{
    "${@:2}"
}

gpu-check()
{
    "$srcdir/contrib/gpu-check" "$@" --help || wrong "gpu-check $*"
}

ddp-bench()
{
    "$bench" "$@" --model resnet9 --img-size 16 --sub-batch 2 --dtype f32 \
        --steps 1 --skip 1 || wrong "ddp-bench $*"
}

# Without --with-simgrid there is none; tests/test_docs.sh looks for its options.
ddp-predict()
{
    local predict=$builddir/bin/ddp-predict
    [ ! -x "$predict" ] || "$predict" "$@" --steps 1 --skip 1 ||
        wrong "ddp-predict $*"
}

# commands NAME: of a page, without what programs print
commands()
{
    awk '/^```/ { block = !block } !block && sub(/^    /, "")' \
        "$srcdir/docs/$1.md" | sed -E '/^ *(nodes|GPUs|CPUs|[0-9]|[a-z0-9]+,)/d
            /^mkdir /d; s,(^|&& )contrib/,\1script ,g; s,\.\.?/configure,configure,
            s,\./autogen,autogen,; s,libddp-[^ ]*-bundle/(bin/)?,,; s,^bin/,,'
}

for page in install predict gpu; do
    : >wrong
    commands $page >page
    run . ./page
    grep -q . page
    point $? "$page.md has commands"
    ! grep -E "not found|No such file" err
    point $? "of programs that are there"
    [ ! -s wrong ]
    point $? "and all are right: $(paste -s -d ';' wrong)"
done

done_testing
