#!/bin/bash
# test_docs.sh - the manual says what is in the source
# SPDX-License-Identifier: LGPL-2.1-or-later
. "$srcdir/tests/tap.sh"
cd "$srcdir" || exit 99

# none SENTENCE FILE: a point that passes if the file is empty
none()
{
    sed 's/^/# /' "$2"
    [ ! -s "$2" ]
    point $? "$1"
}

# ---- links ----

# The anchors that a page's headings have, as GitHub and pandoc make them.
anchors()
{
    sed -n 's/^##* //p' "$1" | tr '[:upper:]' '[:lower:]' |
        sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}

for page in *.md docs/*.md examples/*.md; do
    grep -o '](\([^)]*\))' "$page" | sed 's/^](//; s/)$//' |
        grep -v -E '^(https?|mailto):' | sort -u | while read -r link; do
        file=${link%%#*} anchor=${link#"${link%%#*}"}
        target=${file:+$(dirname "$page")/$file}
        target=${target:-$page}
        if [ ! -e "$target" ]; then
            echo "$page: $link: there is no such file"
        elif [ -n "$anchor" ] && ! anchors "$target" | grep -q -x "${anchor#?}"
        then
            echo "$page: $link: there is no such heading"
        fi
    done
done >"$tmp/links"
none "links lead to files and headings" "$tmp/links"
for page in docs/*.md; do
    grep -q "]($page)" README.md || echo "$page"
done >"$tmp/lost"
none "the README has a link to every page" "$tmp/lost"

# ---- environment ----

# The names of variables that code or scripts read, but for enumerators.
enumerators=$(sed 's,/\*.*,,; s,^ \*.*,,' lib/ddp.h |
    grep -o -w 'DDP_[A-Z0-9_]*' | sort -u)
grep -r -h -o -E --include='*.[ch]' '"DDP_[A-Z0-9_]+"' lib codelets apps |
    tr -d '"' | sort -u | grep -v -x -F "$enumerators" >"$tmp/read"
sed -n '/^## Of libddp/,/^## Of StarPU/s/^| `\(DDP_[A-Z0-9_]*\).*/\1/p' \
    docs/environment.md | sort >"$tmp/listed"
[ "$(wc -l <"$tmp/read")" -ge 10 ]
point $? "the library reads variables"
diff "$tmp/read" "$tmp/listed" >"$tmp/diff"
none "docs/environment.md lists those that it reads (<), and no others (>)" \
    "$tmp/diff"

# Those that others have named.
grep -r -h -o -E --include='*.[ch]' \
    -e 'getenv\("[A-Z0-9_]+"' -e '"(AWS|STARPU|OMPI|PMI|PMIX|SLURM)_[A-Z0-9_]+"' \
    lib codelets apps | grep -o '"[A-Z].*"' | tr -d '"' | sort -u |
    grep -v '^DDP_' | while read -r name; do
    grep -q "\`$name[\`=]" docs/environment.md || echo "$name"
done >"$tmp/lost"
none "and those of others" "$tmp/lost"

# Those of the library, and those that make or a test sets, are not listed.
mv "$tmp/read" "$tmp/library"
{
    grep -h -o -E 'getenv\("DDP_[A-Z0-9_]+' tests/*.c
    grep -h -o -E '\$\{?DDP_[A-Z0-9_]+' tests/*.sh tests/run-test
} | grep -o 'DDP_.*' | sort -u | grep -v -x -f "$tmp/library" |
    grep -v -x -E "DDP_(CRASH|FAIL_AT|TEST_SPACE)|$(grep -o 'export DDP_[A-Z_]*' \
        tests/local.mk | sed 's/export //' | paste -s -d '|')" >"$tmp/read"
sed -n '/^## Of the tests/,$s/^| `\(DDP_[A-Z0-9_]*\).*/\1/p' \
    docs/environment.md | sort >"$tmp/listed"
diff "$tmp/read" "$tmp/listed" >"$tmp/diff"
none "and those of the tests" "$tmp/diff"

# ---- options ----

# Those of our programs and scripts, and of others' that a page calls.
# coming-from.md is left out: it names others' throughout.
{
    sed 's/\\-/-/g' "$builddir"/man/*.1
    ./configure --help
    cat quickstart contrib/build-* contrib/bench-infer contrib/bundle contrib/ddprun \
        contrib/gpu-check contrib/cifar-race contrib/slurm/*
    grep -h -o -E '"[a-z][a-z-]+"' apps/predict/*.c | sed 's/"//g; s/^/--/'
    echo "--cflags --libs (pkg-config)  --logdir (tensorboard)
        --include-synced (wandb)  --backend-store-uri (mlflow)
        --bind-to --hostfile --map-by --mca (mpirun)
        --gpus --gpus-per-node --gpus-per-task (srun)"
} | grep -o -E -e '--[a-z][a-z0-9-]*' | sort -u >"$tmp/options"
for page in README.md docs/*.md examples/*.md; do
    [ "$page" = docs/coming-from.md ] ||
        grep -o -E -e '--[a-z][a-z0-9-]*' "$page" | sort -u |
        grep -v -x -F -f "$tmp/options" | sed "s,^,$page: ,"
done >"$tmp/unknown"
none "options that the manual names exist" "$tmp/unknown"

# ---- programs ----

# Blocks of C with a main() are whole programs: each becomes a file.
programs=0
cp apps/iris/iris.csv "$tmp"
for page in *.md docs/*.md; do
    awk -v to="$tmp/block" '/^```c$/ { inside = 1; n++; next }
        /^```$/ { inside = 0 }
        inside { print >(to n ".c") }' "$page"
    for c in "$tmp"/block*.c; do
        [ -e "$c" ] || continue
        if grep -q 'int main(' "$c"; then
            programs=$((programs + 1))
            # shellcheck disable=SC2086
            ${DDP_TEST_CC:-cc} -Wall -Wextra -Werror -Ilib "$c" -o "$tmp/a.out" \
                -L"$builddir/.libs" -lddp -lm -Wl,-rpath,"$builddir/.libs" \
                >"$tmp/out" 2>"$tmp/err"
            point $? "the program in $page compiles"
            run env -C "$tmp" DDP_MODULE_DIR="$builddir/.libs" ./a.out
            exits 0 "and runs"
        fi
        rm "$c"
    done
done
[ $programs -gt 0 ]
point $? "the manual has programs ($programs)"

# ---- reference ----

# Names in paragraphs without a comment; a paragraph ends at an empty line
# outside of braces and comments.
for header in lib/ddp.h lib/ddp_layer.h; do
    awk '
        function report() {
            if (!comment)
                printf "%s", names
            names = ""
            comment = 0
        }
        {
            line = $0
            if (inside || line ~ /\/\*/) {
                comment = comment || line !~ /\/\* ----/
                inside = line !~ /\*\//
                if (line ~ /^ *\/?\*/)
                    next
                sub(/\/\*.*/, "", line)
            }
            if (line == "" && !depth)
                report()
            if (!depth && match(line, /^(struct|enum) [a-z_]+ {|ddp_[a-z0-9_]+\(|^typedef .*;|^#define (ddp|DDP)_[A-Za-z_]+/))
                names = names FILENAME ": " substr(line, RSTART, RLENGTH) "\n"
            if (line !~ /^extern "C"/)
                depth += gsub(/{/, "", line) - gsub(/}/, "", line)
        }
        END { report() }' $header
done >"$tmp/undocumented"
none "every name of the public headers has a comment" "$tmp/undocumented"

# ---- HTML ----

# Links that lead nowhere, and files that come from a network.
check_html()
{
    cd "$tmp/html" || return
    for page in *.html; do
        grep -o -E '(href|src)="[^"]*"' "$page" | sed 's/^[a-z]*="//; s/"$//' |
            grep -v -E '^(https?|mailto):' | sort -u >"$tmp/hrefs"
        grep -o 'id="[^"]*"' "$page" | sed 's/^id="//; s/"$//' >"$tmp/ids"
        while read -r link; do
            file=${link%%#*}
            [ -e "${file:-$page}" ] || echo "$page: $link: no such file"
        done <"$tmp/hrefs"
        sed -n 's/^#//p' "$tmp/hrefs" | while read -r id; do
            grep -q -x -F "$id" "$tmp/ids" || echo "$page: #$id: no such id"
        done
    done
    grep -n -E '<(script|img|link)[^>]*https?:' ./*.html
}

# The names that a program can use: of symbols, macros, types.
public_names()
{
    nm -D --defined-only "$builddir/.libs/libddp.so" |
        sed -n 's/.* \(ddp_[a-z0-9_]*\).*/\1/p'
    sed -n -E 's/^#define +((ddp|DDP)_[A-Za-z0-9_]+)[ (].*/\1/p
        s/^typedef .*(ddp_[a-z_]+)(;|\)\().*/\1/p
        s/^(struct|enum) (ddp_[a-z_0-9]+) \{.*/\2/p' lib/ddp.h lib/ddp_layer.h
}

if command -v pandoc >/dev/null; then
    run contrib/build-docs . "$tmp/html"
    exits 0 "make docs succeeds"
    [ "$(find "$tmp/html" -name '*.html' | wc -l)" = \
        $(($(find ./*.md docs examples -name '*.md' | wc -l) + 2)) ]
    point $? "every page is there, and the reference"
    (check_html) >"$tmp/broken"
    none "links between them lead somewhere, none to a network" "$tmp/broken"
    sed -n -E 's,</code></a>,&\n,gp' "$tmp"/html/ddp*.h.html |
        sed -n -E 's,.*<code>((struct|enum) )?([a-zA-Z_0-9]+).*,\3,p' |
        sort -u >"$tmp/index"
    public_names | sort -u | grep -v -x -F -f "$tmp/index" >"$tmp/missing"
    none "the index of the reference has every public name" "$tmp/missing"
else
    skip 4 "no pandoc here"
fi

done_testing
