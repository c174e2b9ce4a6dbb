#!/bin/sh
# test_borders.sh - no folder includes or calls what it may not, and the check
# of that notices each kind of breach
# SPDX-License-Identifier: LGPL-2.1-or-later
. "$srcdir/tests/tap.sh"

borders=$srcdir/contrib/check-borders

run "$borders" "$srcdir" "$builddir"
exits 0 "there is no breach of CONTRIBUTING.md's table here"

# A tree of two rooms with a function each: lib/graph may call lib/base.
tree=$tmp/tree
reset()
{
    rm -rf "$tree"
    mkdir -p "$tree/lib/base" "$tree/lib/graph" "$tree/codelets" "$tree/apps"
    cat >"$tree/CONTRIBUTING.md" <<'END'
| 1 | base | `lib/base` | |
| 2 | graph | `lib/graph` | `starpu_` |
| 3 | apps | `apps` | |
END
    echo 'int ddp__low(void);' >"$tree/lib/base/low.h"
    echo 'int ddp__low(void) { return 1; }' >"$tree/lib/base/low.c"
    echo 'int ddp__high(void);' >"$tree/lib/graph/high.h"
    printf '%s\n' '#include "base/low.h"' '#include "graph/high.h"' \
        'int ddp__high(void) { return ddp__low() + starpu_count; }' \
        >"$tree/lib/graph/high.c"
    sed -i 's/^int ddp__high/extern int starpu_count;\n&/' \
        "$tree/lib/graph/high.c"
    echo 'int main(void) { return 0; }' >"$tree/apps/main.c"
}

# check RC SENTENCE: compile the tree, and check it
check()
{
    (cd "$tree" && find lib apps -name '*.c' | while read -r f; do
        cc -Ilib -c -o "${f%.c}.o" "$f"
    done)
    run "$borders" "$tree" "$tree"
    exits "$1" "$2"
}

reported()
{
    grep -qF "$1" "$tmp/out"
    point $? "and it is reported: $1"
}

reset
check 0 "a tree that keeps to its table passes"

echo '#include "graph/high.h"' >>"$tree/lib/base/low.c"
check 1 "a lower room includes a higher one: it fails"
reported 'lib/base/low.c:2: base includes graph/high.h of graph'

reset
echo '#include "base/low.h"' >>"$tree/apps/main.c"
check 1 "a program includes a header that is not installed: it fails"
reported 'apps/main.c:2: apps includes base/low.h of base'

reset
echo 'int ddp__high(void); int ddp__up(void) { return ddp__high(); }' \
    >>"$tree/lib/base/low.c"
check 1 "a lower room calls a higher one without its header: it fails"
reported 'lib/base/low: base calls ddp__high of graph'

reset
echo 'extern int starpu_x; int ddp__x(void) { return starpu_x; }' \
    >>"$tree/lib/base/low.c"
check 1 "a room uses a name that is reserved for another: it fails"
reported 'lib/base/low.c:2: base names starpu_'

reset
echo 'int ddp__other(void);' >>"$tree/lib/base/low.h"
echo 'int ddp__other(void) { return 2; }' >"$tree/lib/base/other.c"
check 1 "a header declares what another file defines: it fails"
reported 'lib/base/low.h declares ddp__other, which lib/base/other defines'

reset
: >"$tree/CONTRIBUTING.md"
check 2 "without a table it fails"

# Comments of public names: a struct without one, a field, an enumerator, two
# functions of which the second one has none.
if command -v python3 >/dev/null; then
    cat >"$tmp/public.h" <<'END'
/* What is bare? */
enum ddp_said { DDP_A, DDP_B };

enum ddp_bare { DDP_C };

/* The fields x and y. */
struct ddp_point {
    int x, y;
    int z, w; /* more */
    int v;
    /* Both. */
    int (*f)(int a, int b);
    int u;
};

/* Adds. */
int ddp_add(int a, int b);
int ddp_more(int a);

int ddp_alone(void);
END
    run "$srcdir/contrib/check-comments" "$tmp/public.h"
    [ $rc = 1 ] && [ "$(sed 's/.*: //' "$tmp/out" | tr '\n' ' ')" = \
        "ddp_bare DDP_C v ddp_alone 4 names without " ]
    point $? "public names without a comment are listed"
    sed -n 2,6p "$srcdir/lib/ddp_layer.h" >"$tmp/public.h"
    run "$srcdir/contrib/check-comments" "$tmp/public.h"
    exits 0 "without such names it succeeds"
else
    skip 2 "no python3"
fi

done_testing
