#!/bin/sh
# app_resume.sh - imagenet train, killed, refused and out of disk, and again
# SPDX-License-Identifier: LGPL-2.1-or-later
. "$srcdir/tests/tap.sh"

data=$tmp/data
"$imagenet" data synth --output "$data" --classes 3 --train-count 24 \
    --val-count 9 --size 24 >/dev/null || exit 99
net="--data $data --model mlp --hidden 8 --img-size 8 --epochs 2 -b 8
    --sub-batch 4 --opt adamw"
often="--ckpt-every 1it"

# What nothing disturbed is the oracle.
# shellcheck disable=SC2086
run "$imagenet" train $net --ckpt-every none --output "$tmp/whole"
exits 0 "a run succeeds"
want=$(value weights)
[ -s "$tmp/whole/ckpt/latest/MANIFEST.json" ]
point $? "there is a checkpoint of its end"
cmp -s "$tmp/whole/ckpt/latest/model.safetensors" \
    "$tmp/whole/weights.safetensors"
point $? "its weights are those of the run"

# The same command resumes; a run that is over prints its last line again.
# shellcheck disable=SC2086
run "$imagenet" train $net --output "$tmp/whole"
exits 0 "a run that is over succeeds again"
says "^resume: step=6 from $tmp/whole/ckpt/step-0*6$" "it says where it begins"
[ "$(value weights)" = "$want" ]
point $? "with the same weights"

# What a checkpoint knows of evaluations is not computed again.
# shellcheck disable=SC2086
run "$imagenet" train $net --model-ema-decay 0.9 --output "$tmp/ema"
final=$(tail -n 1 "$tmp/out" | sed 's/img.s=[^ ]*//')
# shellcheck disable=SC2086
run "$imagenet" train $net --model-ema-decay 0.9 --output "$tmp/ema"
! grep -q ^eval "$tmp/out"
point $? "a run that is over is not evaluated again"
[ "$(tail -n 1 "$tmp/out" | sed 's/img.s=[^ ]*//')" = "$final" ] &&
    [ "$(value ema_loss)" ]
point $? "its last line is the same, that of the averages too"
# shellcheck disable=SC2086
run "$imagenet" train $net --sched constant --epochs 1 --no-val \
    --output "$tmp/more"
# shellcheck disable=SC2086
run "$imagenet" train $net --sched constant --output "$tmp/more"
says "^eval step=3 " "an evaluation that was not made is made up for"

# A run keeps its split of a step, even if a new one would have another.
short="--data $data --model mlp --hidden 8 --img-size 8 --epochs 1 --no-val"
# shellcheck disable=SC2086
run "$imagenet" train $short -b 12 --sub-batch 3 --lanes 3 --output "$tmp/split"
exits 0 "a batch of 12 in lanes of 3"
final=$(value weights)
# shellcheck disable=SC2086
run "$imagenet" train $short --output "$tmp/split"
exits 0 "a run resumes without the options that split its steps"
says "^batch: 12 images a step, .* 4 sub-batches of up to 3 in 3 lanes$" \
    "it has those that it began with"
[ "$(value weights)" = "$final" ]
point $? "and its weights"
# shellcheck disable=SC2086
run "$imagenet" train $short --resume "$tmp/split" --output "$tmp/split2"
says "sub-batches of up to 3 in 3 lanes$" "so does one in another folder"
# shellcheck disable=SC2086
run "$imagenet" train $short --lanes 4 --output "$tmp/split"
exits 2 "other lanes are another run"
complains "batch is 12, in this run 24; --sub-batch is 3.* lanes is 3" \
    "and the message says that they follow from the lanes"

# Other settings are refused, by name, and change nothing.
sum=$(cat "$tmp/whole/config.txt" "$tmp"/whole/ckpt/*/* | cksum)
# shellcheck disable=SC2086
run "$imagenet" train $net --output "$tmp/whole" --lanes 1 --seed 9 --no-flip
exits 2 "other settings: exit code 2"
complains "lanes is 2, in this run 1; seed is 42, in this run 9" \
    "they are named, with both values"
complains "augmentation.flip is 1, in this run 0" "so is an augmentation"
complains "add --resume-with lanes,seed,augmentation$" \
    "the option that allows them is named"
# shellcheck disable=SC2086
run "$imagenet" train $net --output "$tmp/whole" --color-jitter 0.4 \
    --vflip 0.5 --mixup 0.2
exits 2 "other colours: exit code 2"
complains "augmentation.vertical_flip is .*, in this run 0.5" "they are named"
complains "augmentation.jitter_contrast is .*, in this run 0.4" "each of them"
complains "add --resume-with augmentation,mixup$" "so is mixing"
cp -r "$data" "$tmp/changed"
mv "$tmp/changed/ILSVRC/Data/CLS-LOC/train/n90000001/n90000001_3.JPEG" \
    "$tmp/changed/ILSVRC/Data/CLS-LOC/train/n90000001/other.JPEG"
# shellcheck disable=SC2086
run "$imagenet" train $net --data "$tmp/changed" --output "$tmp/whole"
exits 2 "an image of another name: exit code 2"
complains "data.contents is crc32c [0-9a-f]*, in this run crc32c" \
    "the data are named"

# So are images and labels that changed under their names: of training, and of
# validation.
changed=$tmp/changed/ILSVRC/Data/CLS-LOC
# changes FILE WITH: a copy of the data in which FILE is a copy of WITH
changes()
{
    rm -r "$tmp/changed"
    cp -r "$data" "$tmp/changed"
    cp "$2" "$1"
}
changes "$changed/train/n90000001/n90000001_3.JPEG" \
    "$changed/train/n90000001/n90000001_2.JPEG"
# shellcheck disable=SC2086
run "$imagenet" train $net --data "$tmp/changed" --output "$tmp/whole"
exits 2 "another image under the same name: exit code 2"
complains "data.sample.[^ ]*/n90000001_3.JPEG is crc32c [0-9a-f]*, in this run crc32c [0-9a-f]*$" \
    "it is named, with both values"
complains "add --resume-with data$" "and the option"
# shellcheck disable=SC2086
run "$imagenet" train $net --data "$tmp/changed" --resume "$tmp/whole" \
    --resume-with data --output "$tmp/other"
exits 0 "--resume-with data: the run continues"
complains "other settings: data.sample.*_3.JPEG is" "and reports the change"
for image in "$data"/ILSVRC/Data/CLS-LOC/val/*; do break; done
changes "$changed/val/${image##*/}" "$changed/train/n90000001/n90000001_2.JPEG"
# shellcheck disable=SC2086
run "$imagenet" train $net --data "$tmp/changed" --output "$tmp/whole"
exits 2 "another validation image: exit code 2"
complains "settings: eval_data.sample.[^ ]*${image##*/} is crc32c [0-9a-f]*, in this run crc32c [0-9a-f]*$" \
    "it is named"
complains "add --resume-with val$" "and the option"
# shellcheck disable=SC2086
run "$imagenet" train $net --data "$tmp/changed" --resume "$tmp/whole" \
    --resume-with val --output "$tmp/other-val"
exits 0 "--resume-with val: the run continues"
complains "other settings: eval_data.sample.*${image##*/} is" \
    "and reports the change"
[ "$(value weights)" = "$want" ]
point $? "no weight depends on it"
sed '2s/n9[0-9]*/n90000002/; 3s/n9[0-9]*/n90000001/' \
    "$data/LOC_val_solution.csv" >"$tmp/labels.csv"
changes "$tmp/changed/LOC_val_solution.csv" "$tmp/labels.csv"
# shellcheck disable=SC2086
run "$imagenet" train $net --data "$tmp/changed" --output "$tmp/whole"
exits 2 "other labels of validation: exit code 2"
complains "settings: eval_data.contents is crc32c [0-9a-f]*, in this run crc32c [0-9a-f]*$" \
    "they are named"
# shellcheck disable=SC2086
run "$imagenet" train $net --output "$tmp/whole" --resume none
exits 2 "a run is not written over another"
[ "$(cat "$tmp/whole/config.txt" "$tmp"/whole/ckpt/*/* | cksum)" = "$sum" ]
point $? "existing files are kept"
# shellcheck disable=SC2086
run "$imagenet" train $net --output "$tmp/x" --resume "$tmp/none"
exits 74 "--resume of a folder that is not there: exit code 74"

# A run that is over is made longer, knowingly: where it is, and in a copy.
longer="$net --epochs 3"
cp -a "$tmp/whole" "$tmp/old"
# shellcheck disable=SC2086
run "$imagenet" train $longer --output "$tmp/whole"
exits 2 "more epochs: exit code 2"
complains "schedule.steps is 6, in this run 9" "both values are named"
complains "add --resume-with epochs$" "and the option"
# shellcheck disable=SC2086
run "$imagenet" train $longer --resume-with epochs --output "$tmp/whole"
exits 0 "--resume-with epochs: the run continues"
says "^resume: step=6 from" "from where it ended"
says "^final step=9 " "to its new end"
complains "schedule.steps is 6, in this run 9; the bits are those of a new run" \
    "the change is reported"
grep -q '^resume-with = epochs$' "$tmp/whole/config.txt"
point $? "it is in config.txt"
grep -q '"settings": "schedule.steps is 6, in this run 9"' \
    "$tmp/whole/ckpt/latest/trainer.json"
point $? "and in the checkpoint"
more=$(value weights)
# shellcheck disable=SC2086
run "$imagenet" train $longer --output "$tmp/whole"
exits 0 "it resumes without the option from then on"
# shellcheck disable=SC2086
run "$imagenet" train $longer --resume "$tmp/old" --resume-with epochs \
    --output "$tmp/new"
[ "$(value weights)" = "$more" ]
point $? "in a folder of its own it gets the same weights"
# shellcheck disable=SC2086
run "$imagenet" train $longer -b 12 --resume-with batch,epochs \
    --output "$tmp/whole"
exits 2 "another batch in the same folder: exit code 2"
complains "add --resume $tmp/whole and use another --output" "and the way out"
# shellcheck disable=SC2086
run "$imagenet" train $longer -b 12 --resume "$tmp/old" --resume-with batch \
    --output "$tmp/batch"
says "^resume: step=4 " "into another one it renumbers its steps"
says "^final step=6 " "to the same epoch"
# shellcheck disable=SC2086
run "$imagenet" train $longer --resume-with model --output "$tmp/new"
exits 2 "what cannot change: exit code 2"
complains "'model' cannot change .*: epochs, " "with what can"
rm -r "$tmp/whole"
mv "$tmp/old" "$tmp/whole"

# A second run in the folder of one that is running, which has no checkpoint
# yet.
# shellcheck disable=SC2086
"$imagenet" train $net --epochs 1000000 --no-val --output "$tmp/busy" \
    >"$tmp/busy.out" 2>&1 &
pid=$!
await [ -e "$tmp/busy/classes.txt" ]
sum=$(cksum <"$tmp/busy/config.txt")
for resume in none auto "$tmp/whole"; do
    # shellcheck disable=SC2086
    run "$imagenet" train $net --lanes 1 --output "$tmp/busy" --resume "$resume"
    exits 2 "a second run in the folder of a running one, --resume $resume"
    complains "process [0-9]+ on this machine, since 20[0-9T:-]+Z, is writing" \
        "the message has the process, and since when"
done
[ "$(cksum <"$tmp/busy/config.txt")" = "$sum" ]
point $? "config.txt of the first is as it was"
kill -9 $pid
wait $pid 2>"$tmp/err"
run "$imagenet" train --data "$data" --ckpt-every 3x --output "$tmp/x"
exits 2 "--ckpt-every without a unit: exit code 2"

# Other kernels may round in another way.
if grep -q '"devices": "CPU (oneDNN' "$tmp/whole/ckpt/latest/trainer.json"; then
    # shellcheck disable=SC2086
    run "$imagenet" train $net --output "$tmp/whole" --backend ref
    exits 0 "a run resumes on other devices"
    complains "ran on CPU .oneDNN.* run on CPU .plain C.*bits may differ" \
        "which is reported"
    # shellcheck disable=SC2086
    run env DNNL_MAX_CPU_ISA=SSE41 "$imagenet" train $net --output "$tmp/whole"
    exits 0 "a run resumes on an older processor"
    complains "run on CPU .oneDNN.* SSE4.1, loops.*bits may differ" \
        "which is reported"
else
    skip 4 "built without oneDNN"
fi

# Input that fails in the middle of a run: the steps before it are kept.  Which
# image is read after the first step is left to chance.
kept=1
for image in "$data"/ILSVRC/Data/CLS-LOC/train/*/*.JPEG; do
    rm -rf "$tmp/k"
    cp "$image" "$tmp/good"
    echo none >"$image"
    # shellcheck disable=SC2086
    run "$imagenet" train $net --max-bad 0 --output "$tmp/k"
    cp "$tmp/good" "$image"
    [ ! -e "$tmp/k/ckpt/latest" ] || { kept=0; break; }
done
exits 65 "an unreadable image: exit code 65"
point $kept "a checkpoint has the steps before it"
complains "the checkpoint of step [1-2] has all steps" "which is reported"
complains "step [1-2], reading input: .*--max-bad allows 0: .*JPEG" \
    "the message says what failed, and the image"
complains "same command again to resume from its newest" "and what to do"
# shellcheck disable=SC2086
run "$imagenet" train $net --output "$tmp/k"
says "^resume: step=[1-2] " "the same command resumes"
[ "$(value weights)" = "$want" ]
point $? "to the same weights"
for image in "$data"/ILSVRC/Data/CLS-LOC/val/*; do break; done
cp "$image" "$tmp/good"
echo none >"$image"
# shellcheck disable=SC2086
run "$imagenet" train $net --max-bad 0 --output "$tmp/v"
cp "$tmp/good" "$image"
exits 65 "an unreadable validation image: exit code 65"
complains "the checkpoint of step 3 has all steps" "and a checkpoint"

# A checkpoint is what eval takes.
run "$imagenet" eval "$data" \
    --weights "$tmp/whole/ckpt/best/model.safetensors"
exits 0 "eval of a checkpoint, the network taken from its metadata"

# Every call that changes the disk, in a library that is preloaded.  With
# sanitizers theirs has to come first.
shim=$tmp/crash.so
if ! $DDP_TEST_CC -shared -fPIC -I"$builddir" -o "$shim" "$srcdir/tests/crash.c" \
    >"$tmp/out" 2>&1; then
    skip 25 "cannot build a library to preload"
    done_testing
fi
ASAN_OPTIONS=$ASAN_OPTIONS:verify_asan_link_order=0
export ASAN_OPTIONS

# with WHAT AT DIR COMMAND...
with()
{
    crash="$1 $2 $3"
    shift 3
    run env DDP_CRASH="$crash" LD_PRELOAD="$shim" "$@"
}

# shellcheck disable=SC2086
with count 0 "$tmp/c" "$imagenet" train $net $often --output "$tmp/c"
exits 0 "a run whose calls are counted"
[ "$(value weights)" = "$want" ]
point $? "checkpoints after every step change no weight"
calls=$(sed -n 's/^calls=//p' "$tmp/err")
holds "$calls > 100" "it makes $calls calls that change the disk"
stride=27 # so many lie between those that are tried
[ -z "$DDP_LONG" ] || stride=1
points=$(seq $((stride / 2)) $stride $((calls - 1)))

# After a power failure there is what has been synced: each folder and file in
# the folder that it is in.
# shellcheck disable=SC2086
with list 0 "$tmp/l" "$imagenet" train $net --output "$tmp/l/a/run"
exits 0 "a run in a new folder"
for name in "mkdir $tmp/l" "mkdir $tmp/l/a" "mkdir $tmp/l/a/run" \
    "mkdir $tmp/l/a/run/ckpt" "rename $tmp/l/a/run/config.txt" \
    "rename $tmp/l/a/run/classes.txt" "rename $tmp/l/a/run/weights.safetensors"
do
    grep -A 1 -x "$name" "$tmp/err" |
        grep -q -x "fsync $(dirname "${name#* }")"
    point $? "${name%% *} of ${name##*/} is followed by a sync"
done

# Killed there, then continued, on one worker and another scheduler.
wrong=0
for at in $points; do
    rm -rf "$tmp/k"
    # shellcheck disable=SC2086
    with kill "$at" "$tmp/k" "$imagenet" train $net $often --output "$tmp/k"
    [ $rc = 137 ] || { echo "# call $at: exit code $rc"; wrong=1; }
    # shellcheck disable=SC2086
    run env STARPU_NCPU=1 STARPU_SCHED=eager \
        "$imagenet" train $net $often --output "$tmp/k"
    [ "$(value weights)" = "$want" ] || { echo "# call $at: other"; wrong=1; }
done
tried=$(echo "$points" | wc -l)
point $wrong "killed at $tried of them, a run resumes to the same weights"

# fails HOW AT: a run that one call, or all from there on, fail for
fails()
{
    rm -rf "$tmp/k"
    # shellcheck disable=SC2086
    with "$1" "$2" "$tmp/k" "$imagenet" train $net $often --ckpt-failures 1 \
        --output "$tmp/k"
    # Old checkpoints that cannot be removed are no reason to stop, nor is a
    # record of the run; and when the last one is written nothing is lost.
    if [ $rc = 0 ] && grep -q -e '^failed=unlink$' \
        -e 'the run continues without it' -e 'does not have the end of the run$' \
        -e 'checkpoint of step .* could not be written' "$tmp/err"; then
        :
    elif [ $rc != 74 ] ||
        ! grep -q "$tmp/k.*: \(No space\|Input/output\)" "$tmp/err"; then
        echo "# $1 $2: exit code $rc, $(tail -n 1 "$tmp/err")"
        wrong=1
    fi
    # shellcheck disable=SC2086
    run "$imagenet" train $net $often --output "$tmp/k"
    [ "$(value weights)" = "$want" ] || { echo "# $1 $2: other"; wrong=1; }
}

wrong=0
for at in $points; do
    fails ENOSPC "$at"
    fails EIO+ "$at"
done
point $wrong "each fails, in two ways: exit code 74, and nothing is lost"

# A disk that is full for one checkpoint, a file of which is among those that are
# written from some call on.
for at in $(seq $((calls / 2)) $((calls / 2 + 19))); do
    rm -rf "$tmp/k"
    # shellcheck disable=SC2086
    with ENOSPC "$at" "$tmp/k" "$imagenet" train $net $often --output "$tmp/k"
    ! grep -q 'checkpoint of step' "$tmp/err" || break
done
exits 0 "a full disk does not end a run"
complains "checkpoint of step [1-5] could not be written: .*No space left" \
    "the message has the step and the reason"
[ "$(value weights)" = "$want" ]
point $? "the weights are the same"

# A disk that fills up when there are checkpoints.
rm -rf "$tmp/k"
# shellcheck disable=SC2086
with ENOSPC+ $((calls * 3 / 4)) "$tmp/k" \
    "$imagenet" train $net $often --output "$tmp/k"
exits 74 "a disk that is full from then on: exit code 74"
complains "No space left on device" "the message has the reason"
complains "same command again to resume from its newest checkpoint" "and what to do"
run "$imagenet" eval "$data" \
    --weights "$tmp/k/ckpt/latest/model.safetensors"
exits 0 "the weights of the newest checkpoint can be read"
# shellcheck disable=SC2086
run "$imagenet" train $net $often --output "$tmp/k"
says "^resume: step=[1-9]" "the same command resumes from it"
[ "$(value weights)" = "$want" ]
point $? "to the same weights"

# A disk that is full from the start of the second checkpoint on, for real:
# files may not become that large.
# shellcheck disable=SC2086
(
    trap '' XFSZ
    ulimit -f 8
    "$imagenet" train $net $often --output "$tmp/full" \
        >"$tmp/out" 2>"$tmp/err" </dev/null
)
rc=$?
exits 74 "a file that cannot grow: exit code 74"
complains "$tmp/full/ckpt.*: File too large" "the message names it"
complains "no checkpoint was written yet: .* to start over" "and what to do"

done_testing
