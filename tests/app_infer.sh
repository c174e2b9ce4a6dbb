#!/bin/sh
# app_infer.sh - imagenet infer and eval's tables, averages, mirror images
# SPDX-License-Identifier: LGPL-2.1-or-later
. "$srcdir/tests/tap.sh"

data=$tmp/data
"$imagenet" data synth --output "$data" --classes 4 --train-count 32 \
    --val-count 12 --size 32 >/dev/null || exit 99
val=$data/ILSVRC/Data/CLS-LOC/val
run "$imagenet" train "$data" --model resnet18 --small-stem --img-size 16 \
    --width 8 -b 16 --sub-batch 8 --lanes 2 --lr 0.02 --seed 3 --epochs 2 \
    --output "$tmp/run" --model-ema-decay 0.5 --tta flip
exits 0 "train with averages and mirror images succeeds"
number='-?[0-9]+\.[0-9]+'
says "^eval .* ema_loss=$number ema_top1=$number ema_top5=$number\$" \
    "its evaluations are also of the averages"
says "^final .* ema_top1=$number .*weights=crc32c:" "and so is the last line"
[ -s "$tmp/run/weights-ema.safetensors" ] &&
    [ -s "$tmp/run/ckpt/latest/ema.safetensors" ]
point $? "the averages are saved next to the weights, and in checkpoints"
[ "$(wc -l <"$tmp/run/classes.txt")" = 4 ]
point $? "classes.txt has the names of the classes"
loss=$(value loss) ema=$(value ema_loss)

run "$imagenet" eval "$data" --weights "$tmp/run/weights.safetensors" \
    --tta flip --per-class -
[ "$(value loss)" = "$loss" ]
point $? "eval --tta flip gives what the training ended with"
says "^class,name,n,top1,top5,confused_with,confused_name,confused_n\$" \
    "--per-class - prints a table"
says "^eval samples=12 .* top10=100.00 " "before the last line"
run "$imagenet" eval "$data" --weights "$tmp/run/weights-ema.safetensors" \
    --tta flip
[ "$(value loss)" = "$ema" ]
point $? "eval of the averages too"
run "$imagenet" eval "$data" --weights "$tmp/run/weights.safetensors"
[ "$(value loss)" != "$loss" ]
point $? "without --tta flip it is another figure"
run "$imagenet" eval "$data" --weights "$tmp/run/weights.safetensors" \
    --per-class /proc/none
exits 74 "a table that cannot be written: exit code 74"

# Inputs: files, folders, lists; in their order, bad ones named and counted.
w="--weights $tmp/run/weights.safetensors"
name='odd, "name".JPEG'
cp "$val/ILSVRC2012_val_00000001.JPEG" "$tmp/$name"
printf 'not a picture' >"$tmp/bad.jpg"
printf '%s\n\n%s\n' "$tmp/$name" "$val/ILSVRC2012_val_00000002.JPEG" \
    >"$tmp/list"
# shellcheck disable=SC2086
run "$imagenet" infer $w "$tmp/bad.jpg" "$tmp/none.jpg" --list "$tmp/list" -k 2
exits 65 "images that cannot be read: exit code 65"
printf '%s\n' "$tmp/bad.jpg" "$tmp/none.jpg" "$tmp/$name" \
    "$val/ILSVRC2012_val_00000002.JPEG" >"$tmp/want"
cut -d: -f1 "$tmp/out" | cmp -s - "$tmp/want"
point $? "there is a line for each image, in their order"
says "^$tmp/bad.jpg: unreadable: " "a bad one says why"
says "^$val.*2.JPEG: $number% [0-3] [a-z ]+; $number% [0-3] [a-z ]+\$" \
    "the others name two classes"
complains "images=4 bad=2 " "they are counted"
run "$imagenet" infer --weights "$tmp/run/ckpt/latest/ema.safetensors" \
    "$tmp/$name"
exits 0 "averages of a checkpoint answer as well"
says ": $number% [0-3] [a-z ]+; " "with the settings and names of their run"
# shellcheck disable=SC2086
run "$imagenet" infer $w "$tmp/bad.jpg" "$val" --max-bad 10%
exits 0 "--max-bad bears them"
[ "$(wc -l <"$tmp/out")" = 13 ]
point $? "a folder stands for its images"
# shellcheck disable=SC2086
"$imagenet" infer $w - --format csv <"$tmp/list" >"$tmp/out" 2>"$tmp/err"
rc=$?
exits 0 "- reads paths from stdin"
head -n 1 "$tmp/out" | grep -q '^path,rank,class,name,probability,error$'
point $? "csv has a head"
grep -F -q "\"$tmp/odd, \"\"name\"\".JPEG\",1," "$tmp/out"
point $? "and quotes what needs it"
[ "$(grep -c . "$tmp/out")" = 9 ]
point $? "and a record for each class"
# shellcheck disable=SC2086
run "$imagenet" infer $w "$val" --class-map "$tmp/list"
exits 2 "two names for four classes: exit code 2"
# shellcheck disable=SC2086
run "$imagenet" infer $w
exits 2 "no images at all: exit code 2"
# shellcheck disable=SC2086
run "$imagenet" infer $w --list "$tmp/nolist"
exits 2 "a list that is not there: exit code 2"
# shellcheck disable=SC2086
"$imagenet" infer $w "$val" >/dev/full 2>"$tmp/err"
rc=$?
exits 74 "output that cannot be written: exit code 74"

# Against torchvision and Pillow; PNG files hold the pixels themselves.
python=${DDP_PYTHON:-/usr/bin/python3}
oracle=$srcdir/tests/oracle_infer.py
if ! "$python" -c 'import torchvision, PIL' 2>/dev/null; then
    skip 5 "no torchvision"
elif ! grep -q '^#define HAVE_PNG 1' "$builddir/config.h"; then
    skip 5 "built without PNG"
else
    "$python" "$oracle" make "$tmp/torch" || exit 99
    for tta in none flip; do
        "$imagenet" infer --weights "$tmp/torch/weights.safetensors" \
            "$tmp/torch/val" --format jsonl --tta $tta >"$tmp/$tta.jsonl" \
            2>"$tmp/err"
        rc=$?
        exits 0 "infer with torchvision's weights, tta $tta"
        "$python" "$oracle" check "$tmp/torch" "$tmp/$tta.jsonl" $tta \
            >"$tmp/out" 2>&1
        point $? "its answers are torchvision's, tta $tta"
    done
    run "$imagenet" eval "$tmp/torch" --weights \
        "$tmp/torch/weights.safetensors" --per-class "$tmp/table.csv" \
        --class-numbers
    "$python" "$oracle" table "$tmp/torch" "$tmp/none.jsonl" \
        "$tmp/table.csv" >"$tmp/out" 2>&1
    point $? "eval --per-class counts as one would by hand"
fi

done_testing
