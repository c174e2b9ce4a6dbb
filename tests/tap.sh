# tap.sh - test points of the programs' tests, for a shell that sources it
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The programs are in $builddir/bin.  Each test has a folder of its own, $tmp,
# that goes away at the end.

imagenet=$builddir/bin/imagenet
iris=$builddir/bin/ddp-iris
bench=$builddir/bin/ddp-bench

count=0
failed=0
tmp=$(mktemp -d) || exit 99
trap 'rm -rf "$tmp"' EXIT

# point RC SENTENCE: a test point that passes when RC is 0
point()
{
    count=$((count + 1))
    if [ "$1" = 0 ]; then
        echo "ok $count - $2"
    else
        echo "not ok $count - $2"
        failed=$((failed + 1))
        sed 's/^/# out: /' "$tmp/out" 2>/dev/null | tail -n 20
        sed 's/^/# err: /' "$tmp/err" 2>/dev/null | tail -n 20
    fi
}

# skip N WHY
skip()
{
    skipped=0
    while [ $skipped -lt "$1" ]; do
        skipped=$((skipped + 1))
        count=$((count + 1))
        echo "ok $count # SKIP $2"
    done
}

# run COMMAND...: output in $tmp/out and $tmp/err, exit code in $rc
run()
{
    "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
    rc=$?
}

# exits CODE SENTENCE: what run() ran ended with CODE
exits()
{
    [ $rc = "$1" ] || echo "# exit code $rc, not $1"
    [ $rc = "$1" ]
    point $? "$2"
}

# says REGEX SENTENCE: a line of its output matches the extended expression
says()
{
    grep -E -q -e "$1" "$tmp/out"
    point $? "$2"
}

complains()
{
    grep -E -q -e "$1" "$tmp/err"
    point $? "$2"
}

# value NAME: of the last name=value on the last line of its output
value()
{
    tail -n 1 "$tmp/out" | tr ' ' '\n' | sed -n "s/^$1=//p" | tail -n 1
}

# holds EXPRESSION SENTENCE: awk finds the expression true
holds()
{
    awk "BEGIN { exit !($1) }"
    point $? "$2"
}

# await COMMAND...: until it succeeds, for a minute at most
await()
{
    waited=0
    while ! "$@" && [ $waited -lt 600 ]; do
        sleep 0.1
        waited=$((waited + 1))
    done
}

done_testing()
{
    echo "1..$count"
    [ $failed = 0 ]
    exit $?
}
