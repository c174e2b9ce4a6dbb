#!/bin/bash
# app_pages.sh - manual pages and completions fit the programs they are about
# SPDX-License-Identifier: LGPL-2.1-or-later
. "$srcdir/tests/tap.sh"
cd "$builddir" || exit 99

# ---- manual pages ----

pages=$(cd "$builddir" && ls man/*.1)
missing=
for words in $("$imagenet" help | sed -n 's/^  \([a-z][a-z ]*[a-z]\)  .*/\1/p' |
    tr ' ' '-'); do
    [ -s "man/imagenet-$words.1" ] || missing="$missing $words"
done
[ -z "$missing" ] && [ -s man/imagenet.1 ]
point $? "there is a page of imagenet and of each of its commands$missing"

# text PAGE: as a reader sees it, in one line without hyphenation
text()
{
    MANWIDTH=500 man -l "$1" 2>/dev/null | col -bx | tr -s ' \n' ' '
}

if command -v man >/dev/null && command -v col >/dev/null; then
    complaints=$(for page in $pages "$srcdir/docs/ddp-iris.1"; do
        LC_ALL=C.UTF-8 MANWIDTH=80 man --warnings -l "$page" 2>&1 >/dev/null
    done)
    echo "$complaints" >"$tmp/err"
    [ -z "$complaints" ]
    point $? "man has no warnings about the pages"
    text man/imagenet-train.1 >"$tmp/out"
    says "NAME imagenet-train - train a network on a folder of images" \
        "a page begins with what it is about"
    says "SYNOPSIS imagenet train \[options\] \[DATA\]" "then how to call it"
    says "EXIT STATUS 0 success, 1 failed" "exit codes have their section"
    says "[-]-opt NAME update rule.* One of sgd, momentum.* The default is momentum" \
        "choices and defaults are there"
    says "SEE ALSO imagenet ?\(1\), imagenet-eval ?\(1\)" "and the other pages"
else
    skip 6 "no man here"
fi
if command -v mandoc >/dev/null; then
    # shellcheck disable=SC2086
    mandoc -Tlint -Wwarning $pages "$srcdir/docs/ddp-iris.1" >"$tmp/err" 2>&1
    point $? "mandoc has none either"
else
    skip 1 "no mandoc here"
fi

# The same options, by their names.
for command in train "data check"; do
    # shellcheck disable=SC2086
    "$imagenet" $command --help | sed -n "s/^ \{2,6\}\(-., \)\{0,1\}\(--[a-z-]*\).*/\2/p" |
        sort >"$tmp/help"
    sed 's/\\f.//g; s/\\-/-/g' "man/imagenet-${command/ /-}.1" |
        sed -n '/^\.TP/ { n; s/^\(-., \)\{0,1\}\(--[a-z-]*\).*/\2/p }' | sort >"$tmp/page"
    cmp "$tmp/help" "$tmp/page" && [ "$(wc -l <"$tmp/help")" -gt 4 ]
    point $? "the page of $command has the options of its help"
done

run "$imagenet" manual tran
exits 2 "there is no page of an unknown command"
run "$imagenet" completion csh
exits 2 "nor a completion for an unknown shell"
"$imagenet" help | grep -q -e manual -e completion
[ $? = 1 ]
point $? "help does not list what is for the build"

# ---- bash ----

# completes WORD... : what bash offers for the last word, in one line
completes()
{
    COMP_WORDS=("$@")
    COMP_CWORD=$(($# - 1))
    COMPREPLY=()
    "_${1//-/_}" 2>/dev/null
    echo "${COMPREPLY[*]}"
}

# offers EXPECTED WORD...
offers()
{
    local expected=$1 got
    shift
    got=$(completes "$@")
    [ "$got" = "$expected" ]
    point $? "bash: $* -> $got"
}

. completions/bash/imagenet
. completions/bash/ddp-bench
offers "train" imagenet tr
offers "check pack unpack synth" imagenet data ""
offers "--batch-size --batch-per-device" imagenet train --batch
offers "resnet101" imagenet train --model resnet10
offers "resnet18" imagenet eval --data x --model = resnet18
offers "adam adamw adabelief adagrad adadelta adamp" imagenet train --opt ada
offers "" imagenet train --lr ""
offers "--classes" imagenet data synth --cl
offers "train" ddp-bench tr
mkdir "$tmp/there" && touch "$tmp/file"
offers "$tmp/there" imagenet train --data "$tmp/th"
offers "" imagenet train --data "$tmp/fi"
offers "$tmp/file" imagenet eval --weights "$tmp/fi"

# Every word that is offered is one that the program knows.
unknown=
for option in $(completes imagenet infer --); do
    "$imagenet" infer "$option" </dev/null 2>&1 | grep -q "unknown option" &&
        unknown="$unknown $option"
done
[ -z "$unknown" ] && [ "$(completes imagenet infer -- | wc -w)" -gt 10 ]
point $? "bash offers options that the program knows$unknown"
models=$(completes imagenet train --model "" | tr ' ' '\n' | sort)
"$imagenet" inspect | awk 'NR > 1 && NF == 5 { print $1 }' | sort >"$tmp/models"
[ "$models" = "$(cat "$tmp/models")" ]
point $? "and all networks"

# ---- zsh and fish ----

if command -v zsh >/dev/null; then
    bad=
    for f in completions/zsh/*; do
        zsh -n "$f" 2>"$tmp/err" || bad="$bad $f"
    done
    [ -z "$bad" ]
    point $? "zsh can read its completions$bad"
    cat >"$tmp/complete.zsh" <<'END'
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "stty cols 200; PS1=; fpath=($1 \$fpath); autoload -U compinit
    compinit -u -d $2/zcompdump; bindkey '^I' complete-word; print RE''ADY"
zpty -r shell got '*READY*'
# try TYPED WHOLE: what a tab makes of it, or wait for it until we are killed
try()
{
    zpty -w -n shell "$1"$'\t'
    zpty -r shell got "*$2*"
    zpty -w -n shell $'\C-u'
}
try 'imagenet tra' 'imagenet train'
try 'imagenet train --model resnet15' resnet152
try 'imagenet data ch' check
END
    timeout 20 zsh -f "$tmp/complete.zsh" "$PWD/completions/zsh" "$tmp" \
        >"$tmp/out" 2>"$tmp/err"
    point $? "zsh completes a command, a network and a second word"
else
    skip 2 "no zsh here"
fi
if command -v fish >/dev/null; then
    # shellcheck disable=SC2016
    HOME=$tmp fish --no-config -c '
        for f in completions/fish/*.fish; source $f; or exit 1; end
        complete -C "imagenet train --model resnet15"
        complete -C "imagenet data ch"
        complete -C "imagenet tra"' >"$tmp/out" 2>"$tmp/err"
    says "^resnet152" "fish completes a network"
    says "^check.*unreadable" "and a second word"
    says "^train.*network" "and a command"
else
    skip 3 "no fish here"
fi

done_testing
