#!/bin/sh
# app_examples.sh - the programs of examples/ that run alone
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What each computes is known from elsewhere: by hand, by construction of its
# data, or from another program.
. "$srcdir/tests/tap.sh"
. "$srcdir/tests/examples.sh"

csv=$srcdir/apps/iris/iris.csv
export DDP_MODULE_DIR="${DDP_MODULE_DIR:-$builddir/.libs}"
cd "$tmp" || exit 99

# number REGEX: what its group matches in the output, or 999
number()
{
    n=$(sed -n -E "s/(^|.*[^0-9.e+-])$1.*/\2/p" "$tmp/out" | head -n 1)
    echo "${n:-999}"
}
any='(-?[0-9.e+-]+)'

# runs NAME ARGUMENT...: build an example, and run it
runs()
{
    name=$1
    shift
    example "$name"
    run "$tmp/$name" "$@"
    exits 0 "$name.c runs"
}

# right LEAST: so many percent at least, and no more than there can be
right()
{
    share=$(number "$any % right")
    holds "$share >= $1 && $share <= 100" "$name.c: $share % are right"
}

# ---- own data, layers, losses ----

# The ring covers a third of the square: without learning, 61 % are right.
runs callback
right 95

# More of its points, in lines.
runs stream 'awk "BEGIN { srand(1); for (i = 0; i < 1599; i++) {
    x = 2 * rand() - 1; y = 2 * rand() - 1; r = x * x + y * y
    print x, y, (r > 0.2 && r < 0.7) } }"' 30
share=$(number "epoch 29: 1599 samples, $any % right")
holds "$share > 90 && $share <= 100" "stream.c: $share % of all are right"

runs layer
slope=$(number "slope $any")
holds "$slope > 0.2999 && $slope < 0.3001" "layer.c learns its slope ($slope)"

# A tenth of the errors is 30, so least squares are 3 too high; Huber's loss
# has one tenth pulling with force 1 against nine with e: e = 1/9.
runs loss
high=$(number "squared errors: y = .* x [+] $any")
low=$(number "Huber's loss: +y = .* x [+] $any")
holds "$high > 3.9 && $high < 4.1" "loss.c: squared errors are pulled ($high)"
holds "$low > 1.06 && $low < 1.16" "loss.c: Huber's loss hardly is ($low)"

# Networks that have learned nothing agree on half of the points, or on the 61 %
# outside of the ring.
runs distill
agrees=$(number "agrees with its teacher on $any %")
holds "$agrees >= 90 && $agrees <= 100" "distill.c: the student agrees ($agrees)"

# ---- own optimizers, gradients, loops, records ----

runs optimizer "$csv"
right 90

# Gradients of 0.01 at most, times a rate of 0.5; some are that large.
runs gradient "$csv"
moved=$(number "moved by $any")
holds "$moved > 0.00499 && $moved < 0.00501" "gradient.c clips ($moved)"
first=$(number "step 1: loss $any")
last=$(number "step 100: loss $any")
holds "$last < 0.9 * $first" "gradient.c: the loss falls ($first to $last)"

runs loop "$csv"
says "30 flowers held back" "loop.c holds back a fifth of each class"
right 85
best=$(number "best loss $any")
again=$(number "held back: loss $any")
holds "$best < 1 && $best == $again" "loop.c ends with its best weights ($best, $again)"

# 3 steps in each of 2 epochs; the rate falls by a sixth of 0.1 a step.
runs sink "$csv"
[ "$(cut -d, -f1,2 out | tr '\n' ' ')" = \
    "step,1 step,2 step,3 step,4 step,5 step,6 end, eval,6 " ]
point $? "sink.c records 6 steps, the end and an evaluation"

# ---- networks as functions ----

runs pullback
off=$(number "inputs: $any off")
holds "$off < 1e-3" "pullback.c: slopes of the inputs (off by $off)"
a=$(number "a weight: $any,")
b=$(number "finite differences $any\$")
holds "$a - $b < 1e-3 && $b - $a < 1e-3" "and of a weight ($a, $b)"

# By hand: y = W1 (W0 x + b) + b, dx = W0^T W1^T 1, dW0 = (W1^T 1) (sum of x).
runs dagger
printf '%s\n' "y 0 5" "y -0.5 8" "y -3 15" "y -1 11" >want
sed -n 's/, dx 4.5 7$//p' out >got
cmp want got
point $? "dagger.c: outputs and their derivatives"
says "^gradient of the first weights 1.5 6 1 4$" "and those of the weights"

# ---- files ----

# 12x12 pixels with a bright row, its number is the label; 200 of them.
octal()
{
    awk -v digits="$1" 'function byte(b) { printf "\\%03o", b }
        BEGIN {
            byte(0); byte(0); byte(8); byte(digits ? 3 : 1)
            byte(0); byte(0); byte(0); byte(200)
            for (i = 0; digits && i < 8; i++)
                byte(i % 4 == 3 ? 12 : 0)
            for (i = 0; i < 200; i++)
                if (!digits)
                    byte(i * 7 % 10)
                else
                    for (p = 0; p < 144; p++)
                        byte(int(p / 12) == i * 7 % 10 + 1 ? 255 : p % 32)
        }'
}
# shellcheck disable=SC2059
printf "$(octal 1)" >images
# shellcheck disable=SC2059
printf "$(octal 0)" >labels
runs mnist images labels 8
says "^200 digits" "mnist.c reads all of them"
right 95
run ./mnist labels images
exits 1 "mnist.c refuses other files"
complains "labels is not" "and names them"

# Three classes to learn, then two others.
"$imagenet" data synth --output three --classes 3 --train-count 48 \
    --val-count 12 >log 2>&1 &&
    "$imagenet" data synth --output two --classes 2 --train-count 32 \
        --val-count 4 >>log 2>&1 &&
    "$imagenet" train --data three --model resnet18 --img-size 32 --epochs 12 \
        --batch-size 16 --sub-batch 8 --lr 0.01 --no-val --output run >>log 2>&1
point $? "the program imagenet makes data and weights"
find three/ILSVRC -name 'ILSVRC2012_val*' | sort >names
"$imagenet" infer --weights run/weights.safetensors --list names --topk 1 \
    --format csv 2>>log | awk -F, 'NR > 1 { print $1 "\t" $4 }' >want
[ "$(wc -l <want)" = 12 ] && [ "$(cut -f2 want | sort -u | wc -l)" -gt 1 ]
point $? "and finds several classes in images"

example serve
run sh -c 'cat names - <<end | ./serve run/weights.safetensors 32
missing.jpg
end'
exits 0 "serve.c runs"
head -n 12 out | cmp - want
point $? "serve.c answers as imagenet infer does"
tail -n 1 out | grep -q "missing.jpg.*: No such file"
point $? "and continues after a name without a file"
run ./serve names
exits 1 "serve.c refuses files without weights"

# 102 tensors, two of which are the head.
runs finetune run/weights.safetensors two 32
says "resnet18: 100 tensors loaded, new head" "finetune.c has a new head"
says "head only: conv1.weight moved by 0$" "only the head learns at first"
moved=$(number "all layers: conv1.weight moved by $any")
holds "$moved > 0 && $moved < 1" "then all layers do ($moved)"
run "$imagenet" eval --data two --model resnet18 --img-size 32 \
    --weights finetuned.safetensors
says "^eval samples=4 " "its weights are those of a network for two classes"

# ---- other languages ----

if command -v g++ >/dev/null; then
    case $DDP_TEST_CC in *-fsanitize*) flags=${DDP_TEST_CC#* } ;; esac
    example raii "g++ $flags"
    run ./raii "$csv"
    exits 0 "raii.cc runs"
    right 90
    run ./raii none.csv
    exits 1 "raii.cc ends at an exception"
    complains "raii: .*none.csv" "with the library's message"
else
    skip 4 "no g++ here"
fi
why=
command -v python3 >/dev/null || why="no python3 here"
case $DDP_TEST_CC in *-fsanitize*) why="Python is without sanitizers" ;; esac
if [ -z "$why" ]; then
    export LIBDDP="$builddir/.libs/libddp.so" PYTHONDONTWRITEBYTECODE=1
    run python3 "$srcdir/examples/iris.py" "$csv"
    exits 0 "iris.py runs"
    accuracy=$(number "accuracy $any")
    holds "$accuracy > 0.9 && $accuracy <= 1" "iris.py learns ($accuracy)"
    same=$(cat "$tmp/out")
    # Programs of the manual, as a reader copies them.
    cp "$srcdir/examples/ddp.py" "$csv" .
    awk '/^```python/ { n++; on = 1; next } /^```/ { on = 0 }
        on { print >("page" n ".py") }' "$srcdir/docs/python.md"
    run python3 page1.py
    exits 0 "the first program of python.md runs"
    [ "$(grep -c . page1.py)" = 5 ] && [ "$(cat "$tmp/out")" = "$same" ]
    point $? "its five lines compute the same: $same"
    python="${DDP_PYTHON:-/usr/bin/python3}"
    if "$python" -c 'import numpy' 2>/dev/null; then
        run "$python" page2.py
        exits 0 "the second one runs"
        holds "$(number "$any % right") >= 90" "and learns"
    else
        skip 2 "no numpy"
    fi
    run python3 "$srcdir/examples/iris.py" none.csv
    exits 1 "without its data it fails"
    complains "ddp.Error: .*none.csv" "with the library's message"
else
    skip 8 "$why"
fi

done_testing
