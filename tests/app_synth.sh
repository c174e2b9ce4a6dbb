#!/bin/sh
# app_synth.sh - imagenet data synth and data check
# SPDX-License-Identifier: LGPL-2.1-or-later
. "$srcdir/tests/tap.sh"

a=$tmp/a
cls=$a/ILSVRC/Data/CLS-LOC
small="--classes 4 --train-count 40 --val-count 10 --size 24"

# shellcheck disable=SC2086
run "$imagenet" data synth --output "$a" $small --workers 2
exits 0 "data synth makes a data set"
[ "$(find "$cls/train" -name '*.JPEG' | wc -l)" = 40 ]
point $? "with as many pictures to train on as asked for"
[ "$(find "$cls/val" -name '*.JPEG' | wc -l)" = 10 ]
point $? "and to evaluate on"
[ "$(wc -l <"$a/LOC_synset_mapping.txt")" = 4 ] &&
    [ "$(wc -l <"$a/LOC_train_solution.csv")" = 41 ] &&
    [ "$(head -n 1 "$a/LOC_val_solution.csv")" = ImageId,PredictionString ]
point $? "and the lists that ImageNet has"
missing=$(sed -n 's/^\([^,]*\),.*/\1/p' "$a/LOC_val_solution.csv" | tail -n +2 |
    while read -r id; do [ -s "$cls/val/$id.JPEG" ] || echo "$id"; done)
[ -z "$missing" ]
point $? "every listed picture is there"

before=$(ls -l --time-style=full-iso "$cls/val")
# shellcheck disable=SC2086
run "$imagenet" data synth --output "$a" $small
says "already there" "a second time it is left as it is"
[ "$before" = "$(ls -l --time-style=full-iso "$cls/val")" ]
point $? "and no file is written again"
run "$imagenet" data synth --output "$a" --classes 5
exits 2 "another set does not go into the same folder"
mkdir "$tmp/full" && echo mine >"$tmp/full/file"
run "$imagenet" data synth "$tmp/full"
exits 2 "nor into one with something else in it"

# shellcheck disable=SC2086
run "$imagenet" data synth --output "$tmp/b" $small --workers 1
same=$(cd "$a" && find . -type f | sort | xargs cksum | cksum)
[ "$same" = "$(cd "$tmp/b" && find . -type f | sort | xargs cksum | cksum)" ]
point $? "the same seed gives the same files, with one thread or two"
# shellcheck disable=SC2086
run "$imagenet" data synth --output "$tmp/c" $small --seed 7
cmp -s "$cls/val/ILSVRC2012_val_00000001.JPEG" \
    "$tmp/c/ILSVRC/Data/CLS-LOC/val/ILSVRC2012_val_00000001.JPEG"
[ $? = 1 ]
point $? "another seed gives others"

# Interrupted: the stamp is not there yet.
mv "$tmp/b/synth.txt" "$tmp/b/synth.txt.part"
rm "$tmp/b/LOC_synset_mapping.txt"
# shellcheck disable=SC2086
run "$imagenet" data synth --output "$tmp/b" $small
exits 0 "what was interrupted is made again"
[ "$same" = "$(cd "$tmp/b" && find . -type f | sort | xargs cksum | cksum)" ]
point $? "and ends the same"

run "$imagenet" data synth --output /proc/none/x
exits 74 "a folder that cannot be made: exit code 74"
complains "/proc/none/x" "which is named"

run "$imagenet" data check --data "$a"
exits 0 "data check is content"
says "^checked split=train images=40 bad=0" "it saw every picture"
says "^checked split=val images=10 bad=0" "of both splits"
says "^class 3 .*: 10$" "and counted the classes"

victim=$cls/train/n90000001/n90000001_3.JPEG
printf 'not a picture' >"$victim"
run "$imagenet" data check --data "$a"
exits 65 "a bad picture: exit code 65"
says "^bad .*n90000001_3.JPEG: ." "it is named, with a reason"
run "$imagenet" data check --data "$a" --max-bad 5%
exits 0 "unless that many are tolerated"
: >"$victim"
run "$imagenet" data check --data "$a"
says "^bad .*n90000001_3.JPEG: ." "an empty file is named too"
run "$imagenet" data check --data "$tmp/none"
exits 2 "no such folder: exit code 2"

done_testing
