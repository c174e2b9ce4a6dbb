#!/bin/sh
# app_data.sh - folders that are not what the user thinks, and unreadable images
# SPDX-License-Identifier: LGPL-2.1-or-later
. "$srcdir/tests/tap.sh"

"$imagenet" data synth --output "$tmp/synth" --classes 3 --train-count 24 \
    --val-count 12 --size 32 >/dev/null || exit 99
flat=$tmp/synth/ILSVRC/Data/CLS-LOC/train
net="--model resnet9 --width 4 --img-size 16 -b 8 --sub-batch 4 --lanes 1
    --epochs 1 --lr 0.01"

# take FOLDER CLASS...: copy classes of the training images to FOLDER
take()
{
    folder=$1
    shift
    mkdir -p "$folder"
    for class; do
        cp -r "$flat/$class" "$folder"
    done
}
a=n90000000 b=n90000001 c=n90000002
[ -d "$flat/$a" ] && [ -d "$flat/$b" ] && [ -d "$flat/$c" ] || exit 99

# Validation images must not be those that are trained on.
# shellcheck disable=SC2086
run "$imagenet" train "$flat" $net --output "$tmp/x"
exits 65 "class folders without splits do not validate on themselves"
complains "a folder \"val\", \"valid\", \"validation\" or \"test\" in it; without" \
    "the message says what is missing"
complains "--val DIR, .*--val-split 10%, .*: --no-val" "and what to do"
[ ! -e "$tmp/x" ]
point $? "nothing is written"
# shellcheck disable=SC2086
run "$imagenet" train "$flat" $net --no-val --output "$tmp/run"
exits 0 "--no-val is a way out"
# shellcheck disable=SC2086
run "$imagenet" train "$flat" $net --val "$flat" --output "$tmp/both"
exits 0 "--val is another"
says "^validation: $flat, 24 images of 3 classes" "it names the folder"
run "$imagenet" data check "$flat"
exits 0 "data check takes them as training images"

# A folder may have one split alone.
mkdir "$tmp/half"
cp -r "$flat" "$tmp/half/train"
run "$imagenet" data check "$tmp/half"
exits 0 "data check of a folder with training images only"
complains "half has no validation images$" "it says so"
! grep -q 'split=val' "$tmp/out"
point $? "and looks at no others"
# shellcheck disable=SC2086
run "$imagenet" train "$tmp/half" $net --output "$tmp/x"
exits 65 "training expects them"
# shellcheck disable=SC2086
run "$imagenet" train "$tmp/half" $net --val-split 20% --output "$tmp/held"
exits 0 "or holds some back"
run "$imagenet" eval "$tmp/half" --weights "$tmp/held/weights.safetensors"
exits 0 "which eval finds"
says "^eval .*samples=[3-6] " "and no others"
if grep -q '^#define HAVE_ARCHIVE 1' "$builddir/config.h"; then
    run "$imagenet" data pack "$tmp/half" --output "$tmp/half-packed"
    exits 0 "data pack writes the split that there is"
    [ "$(ls "$tmp/half-packed")" = train ]
    point $? "and no other"
    run "$imagenet" data unpack "$tmp/half-packed" --output "$tmp/half-again"
    exits 0 "data unpack too"
else
    skip 3 "no libarchive"
fi
mv "$tmp/half/train" "$tmp/half/val"
run "$imagenet" data check "$tmp/half"
exits 0 "data check of a folder with validation images only"
complains "half has no training images$" "it says so"

# Some classes are the data that have no others.
take "$tmp/two" $a $c
# shellcheck disable=SC2086
run "$imagenet" train "$tmp/two" $net --val "$tmp/two" --output "$tmp/two-run"
want=$(value weights)
printf '%s\n' $c $a >"$tmp/names"
# shellcheck disable=SC2086
run "$imagenet" train "$flat" $net --val "$flat" --output "$tmp/named" \
    --classes "$tmp/names"
exits 0 "classes that a file names"
says "^data: .*; of these 1[0-9], in 2 classes" "the others are left out"
says "^validation: .*; of these 1[0-9], in 2 classes" "in validation too"
[ "$(value weights)" = "$want" ]
point $? "the weights are those of a folder without the others"
run "$imagenet" eval "$flat" --split train \
    --weights "$tmp/named/weights.safetensors"
exits 0 "eval takes the classes of the weights"
says "^eval .*samples=1[0-9] " "and no others"
# shellcheck disable=SC2086
run "$imagenet" train "$flat" $net --no-val --output "$tmp/first" --classes 2
says "^data: .* in 2 classes" "the first two classes"
[ "$(tr '\n' ' ' <"$tmp/first/classes.txt")" = "$a $b " ]
point $? "in their order"
# shellcheck disable=SC2086
run "$imagenet" train "$flat" $net --no-val --output "$tmp/x" --classes 4
exits 2 "more than there are"
complains "classes 4: the data have 3 classes, expected at most that" "it says so"
echo kea >>"$tmp/names"
# shellcheck disable=SC2086
run "$imagenet" train "$flat" $net --no-val --output "$tmp/x" \
    --classes "$tmp/names"
exits 2 "a class that there is not"
complains 'names: the data have no class "kea"; .*data check lists' "it is named"

# The same images in a list are the same data.
(cd "$flat" && echo path,label && find . -name '*.JPEG' | sed 's|^\./||' |
    LC_ALL=C sort | sed 's|\(.*\)/\(.*\)|\1/\2,\1|') >"$tmp/list"
mv "$tmp/list" "$flat/list.csv"
# shellcheck disable=SC2086
sed '1s/label/labels/; 2s/$/;other/' "$flat/list.csv" >"$flat/several.csv"
run "$imagenet" train "$flat/several.csv" $net --val "$flat/several.csv" \
    --epochs 1 --output "$tmp/several"
exits 2 "images with several classes"
complains "several each: use --loss bce" "need the loss of each for itself"
run "$imagenet" train "$flat/several.csv" $net --val "$flat/several.csv" \
    --epochs 1 --output "$tmp/several" --bce-loss
exits 0 "with it they are trained"
says "^final step" "and evaluated"
run "$imagenet" eval "$flat/several.csv" --split train \
    --weights "$tmp/several/weights.safetensors"
exits 0 "so are the weights"
run "$imagenet" train "$flat/list.csv" $net --val "$flat/list.csv" \
    --output "$tmp/list"
exits 0 "a list of images, for training and validation"
says "^data: .*list.csv, 24 images of 3 classes" "it is described"
loss=$(value loss)
# shellcheck disable=SC2086
run "$imagenet" train "$flat" $net --val "$flat" --output "$tmp/folders"
[ "$loss" = "$(value loss)" ]
point $? "the loss is that of the same images in folders"
run "$imagenet" eval "$flat/list.csv" --split train \
    --weights "$tmp/list/weights.safetensors"
exits 0 "eval on a list"
[ "$loss" = "$(value loss)" ]
point $? "with the figures of training"
printf 'path,age\n%s/a.JPEG,3\n' $a >"$flat/ages.csv"
# shellcheck disable=SC2086
run "$imagenet" train "$flat/ages.csv" $net --no-val --output "$tmp/ages"
exits 65 "a list of numbers: exit code 65"
complains "ages.csv, 1 images with 1 numbers each, expected classes" \
    "imagenet trains classes only"
rm "$flat"/*.csv


# Or some of the training images, which eval finds again.
# shellcheck disable=SC2086
run "$imagenet" train "$flat" $net --val-split 25% --output "$tmp/part"
exits 0 "--val-split is a third"
says "^data: .*24 images .*; of these 18 for training" "it divides the images"
says "^validation: .*24 images .*; of these 6 for validation" "into two parts"
want="$(value loss) $(value top1)"
run "$imagenet" eval "$flat" --weights "$tmp/part/weights.safetensors"
exits 0 "eval finds those for validation, by what the weights carry"
says "^eval samples=6 " "all of them"
[ "$(value loss) $(value top1)" = "$want" ]
point $? "with the figures of training"
# shellcheck disable=SC2086
run "$imagenet" train "$flat" $net --val-split 25% --seed 7 \
    --resume "$tmp/part" --output "$tmp/x"
exits 2 "another seed is another run"
complains "data.contents is crc32c" "of other images"
# shellcheck disable=SC2086
run "$imagenet" train "$flat" $net --val-split 25% --val "$flat" \
    --output "$tmp/x"
exits 2 "--val-split and --val: exit code 2"
# shellcheck disable=SC2086
run "$imagenet" train "$flat" $net --val-split 100% --output "$tmp/x"
exits 2 "nothing left to train on: exit code 2"
complains "a fraction of 1 for validation" "it is named"

# Classes of the validation images are those of training, by name.
take "$tmp/some" $c $a
# shellcheck disable=SC2086
run "$imagenet" train "$flat" $net --val "$tmp/some" --output "$tmp/some-run"
exits 0 "--val may lack a class"
loss=$(value loss)
take "$tmp/pair/train" $a $b $c
take "$tmp/pair/val" $a $c
# shellcheck disable=SC2086
run "$imagenet" train "$tmp/pair" $net --output "$tmp/pair-run"
[ -n "$loss" ] && [ "$(value loss)" = "$loss" ]
point $? "and classes have the numbers of training nevertheless"
take "$tmp/other" $a $b
mv "$tmp/other/$b" "$tmp/other/unicorn"
# shellcheck disable=SC2086
run "$imagenet" train "$flat" $net --val "$tmp/other" --output "$tmp/x"
exits 65 "a class that training does not have: exit code 65"
complains '"unicorn", which is none of the 3 expected' "it is named"

# A folder too high.
mkdir "$tmp/high"
take "$tmp/high/up" $a $b $c
# shellcheck disable=SC2086
run "$imagenet" train "$tmp/high" $net --no-val --output "$tmp/x"
exits 65 "a folder above the classes: exit code 65"
complains "\"up\" is its only folder.* use $tmp/high/up" "the right one is named"

# eval takes the split that was asked for, or none.
w="--weights $tmp/run/weights.safetensors"
# shellcheck disable=SC2086
run "$imagenet" eval "$tmp/pair" $w --split test
exits 65 "eval --split test without test/: exit code 65"
complains "expected a folder \"test\" in it" "with the reason"
# shellcheck disable=SC2086
run "$imagenet" eval "$flat" $w
exits 65 "eval on class folders without splits: exit code 65"
complains "use --split train" "with the way out"
# shellcheck disable=SC2086
run "$imagenet" eval "$flat" $w --split train
exits 0 "which works"

# Unreadable validation images are named and left out.
take "$tmp/bad/train" $a $b $c
take "$tmp/bad/val" $a $b $c
victim=$(ls "$tmp/bad/val/$b" | head -n 1)
rm "$tmp/bad/val/$b/$victim"
# shellcheck disable=SC2086
run "$imagenet" eval "$tmp/bad" $w
want="$(value samples) $(value loss) $(value top1) $(value top5)"
printf 'not a picture' >"$tmp/bad/val/$b/$victim"
# shellcheck disable=SC2086
run "$imagenet" eval "$tmp/bad" $w
exits 0 "an unreadable image among 24 is tolerated"
complains "unreadable image, not evaluated: .*/$b/$victim: is not an image" \
    "and named"
[ "$(value samples) $(value loss) $(value top1) $(value top5)" = "$want" ]
point $? "the figures are those of the others: $want"
# shellcheck disable=SC2086
run "$imagenet" train "$tmp/bad" $net --epochs 2 --output "$tmp/bad-run"
exits 0 "training with it succeeds"
[ "$(grep -c "unreadable validation image, not evaluated: .*$victim" \
    "$tmp/err")" = 1 ]
point $? "and names it once"
says "^eval .*samples=23 " "its evaluations are of the others"

# More unreadable images than are listed: the reason is still the last line.
for class in $a $b; do
    mkdir -p "$tmp/many/train/$class"
    for i in 0 1 2 3 4 5; do
        for j in 0 1 2 3 4 5 6 7 8 9; do
            echo "$tmp/many/train/$class/$i$j"
        done
    done | sed 's/.*/&0.jpg\n&1.jpg\n&2.jpg\n&3.jpg\n&4.jpg\n&5.jpg\n&6.jpg\n&7.jpg\n&8.jpg\n&9.jpg/' |
        xargs touch
done
# shellcheck disable=SC2086
run "$imagenet" train "$tmp/many" $net --no-val --max-bad 0.9 \
    --output "$tmp/many-run"
exits 65 "1,200 unreadable images of which 1,080 are tolerated"
complains "1081 of 1200 samples are bad" "are counted in the reason"
done_testing
