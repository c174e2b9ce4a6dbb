#!/bin/sh
# app_train.sh - imagenet train and eval, as a user's script would run them
# SPDX-License-Identifier: LGPL-2.1-or-later
. "$srcdir/tests/tap.sh"

data=$tmp/data
"$imagenet" data synth --output "$data" --classes 4 --train-count 48 \
    --val-count 20 --size 32 >/dev/null || exit 99
net="--model resnet18 --width 16 --small-stem --img-size 16"
size="-b 16 --sub-batch 8 --lanes 2 --lr 0.02 --seed 3"

# shellcheck disable=SC2086
run "$imagenet" train --data "$data" $net $size --epochs 2 --log-every 1 \
    --save-every 1 --output "$tmp/run"
exits 0 "train succeeds"
number='-?[0-9]+\.[0-9]+'
final="^final step=6 loss=$number top1=$number top5=$number img/s=$number"
places="best_step=[36] best_top1=$number best=$tmp/run/[a-z/]*\.safetensors \
last=$tmp/run/weights\.safetensors"
tail -n 1 "$tmp/out" | grep -E -q "$final $places weights=crc32c:[0-9a-f]{8}\$"
point $? "the last line is the one scripts read"
[ "$(grep -c -E "^step=[0-9]+ loss=$number img/s=$number data=$number% " \
    "$tmp/out")" = 6 ]
point $? "there is a line for each step"
[ "$(grep -c '^eval step=.* samples=20 ' "$tmp/out")" = 2 ]
point $? "and one for the evaluation of each epoch"
[ -s "$tmp/run/weights.safetensors" ]
point $? "weights.safetensors is there"
[ -s "$tmp/run/ckpt/step-000000000003/model.safetensors" ] &&
    [ -s "$tmp/run/ckpt/step-000000000006/model.safetensors" ]
point $? "and so are the checkpoints of --save-every"
tr -d '\r' <"$tmp/out" | cmp -s - "$tmp/out"
point $? "nothing is redrawn where there is no terminal"
crc=$(value weights) loss=$(value loss) top1=$(value top1)

# Every row of the table is in config.txt, from the table, and in the help.
"$imagenet" train --help >"$tmp/help"
absent=$(sed 's/ = .*//' "$tmp/run/config.txt" | while read -r name; do
    grep -q -e "--$name\( \|\$\)" "$tmp/help" || echo "$name"
done)
[ -z "$absent" ]
point $? "--help has every option $absent"
[ "$(wc -l <"$tmp/run/config.txt")" -gt 40 ]
point $? "config.txt has the values of all"
grep -q '^num-classes = 4$' "$tmp/run/config.txt"
point $? "also those that were found, not given"

# shellcheck disable=SC2086
run "$imagenet" train "$data" $net $size --epochs 2 --output "$tmp/again"
[ "$(value weights)" = "$crc" ]
point $? "the same run again gives the same weights"
cmp -s "$tmp/run/weights.safetensors" "$tmp/again/weights.safetensors"
point $? "and the same file"

run "$imagenet" eval --data "$data" --weights "$tmp/run/weights.safetensors"
exits 0 "eval succeeds, the network taken from the weights' metadata"
says "weights.safetensors .*model=resnet18 .*small-stem=true" "and says so"
says "^eval samples=20 loss=$number top1=$number top5=$number top10=$number \
img/s=" "its line has samples, loss, top1, top5, top10, img/s"
[ "$(value loss)" = "$loss" ] && [ "$(value top1)" = "$top1" ]
point $? "they are those the training ended with"
run "$imagenet" eval --data "$data" --weights "$tmp/run/weights.safetensors" \
    --model resnet34
exits 2 "weights of another network: exit code 2"
complains "--model is resnet34, but the weights .* of a network with resnet18" \
    "both are named"

# shellcheck disable=SC2086
run "$imagenet" train "$data" $net $size --steps 2 --no-val --output "$tmp/s"
says "^final step=2 " "--steps ends a run"
# shellcheck disable=SC2086
run "$imagenet" train "$data" $net $size --steps 1 --no-val \
    --output "$tmp/w" --weights "$tmp/run/weights.safetensors" --lr 1e-30
says "^final step=1 " "a run can begin with weights"
run "$imagenet" train "$data" --model mlp --hidden 16 --img-size 8 --epochs 1 \
    --opt adamw --sched onecycle --smoothing 0.1 --clip-grad 1 \
    --output "$tmp/mlp"
says "^final step=1 " "an mlp trains as well"

# Faults.
# shellcheck disable=SC2086
run "$imagenet" train "$data" $net $size --epochs 1 --output /proc/none
exits 74 "an output folder that cannot be: exit code 74"
complains "/proc/none" "it is named"
run env STARPU_SCHED=lsw "$imagenet" train "$data" --epochs 1 \
    --output "$tmp/x"
exits 2 "a misspelt STARPU_SCHED: exit code 2"
complains "lsw.*lws" "with those there are"
mlp="--model mlp --hidden 4 --img-size 8 -b 16 --steps 1 --no-val"
# shellcheck disable=SC2086
run env STARPU_SCHED=ddp "$imagenet" train "$data" $mlp --sub-batch 4 \
    --output "$tmp/ddp"
[ $rc = 0 ] && [ ! -s "$tmp/err" ]
point $? "STARPU_SCHED=ddp is no error, and StarPU does not complain"
# shellcheck disable=SC2086
run env STARPU_NCPU=2 "$imagenet" train "$data" $mlp --lanes 1 \
    --output "$tmp/idle"
exits 0 "fewer lanes than workers are no error"
complains "--lanes 1 keeps 1 of 2 devices busy; --sub-batch 8 --lanes 2 has" \
    "but what uses them is said"
# shellcheck disable=SC2086
run "$imagenet" train "$data" $net $size --epochs 1 --weights "$tmp/none" \
    --output "$tmp/x"
exits 2 "weights that are not there: exit code 2"
complains "$tmp/none" "they are named"
# shellcheck disable=SC2086
run "$imagenet" train "$data" $net $size --epochs 4 --opt sgd --lr 1e5 \
    --output "$tmp/nan" --no-val --max-nan-steps 2
exits 1 "a run that diverges: exit code 1"
complains "step [0-9]+ skipped: .* not finite" "skipped steps are reported"
complains "3 steps in a row were skipped" "and that they are too many"
[ "$(sed -n 's/.*last one was \(step [0-9]*\): .*/\1/p' "$tmp/err")" = \
    "$(sed -n 's/.* \(step [0-9]*\): .* in a row.*/\1/p' "$tmp/err")" ]
point $? "steps are counted in one way"
[ ! -e "$tmp/nan/weights.safetensors" ] && [ ! -e "$tmp/nan/ckpt/latest" ]
point $? "its weights are not saved"
# shellcheck disable=SC2086
run "$imagenet" train "$data" $net $size --steps 1 --dtype f16 \
    --output "$tmp/f16" --no-val
exits 69 "f16 where no device has it: exit code 69"
complains "no device here computes in f16" "and a word why"
# shellcheck disable=SC2086
run "$imagenet" train "$data" --model mlp --hidden 8 --img-size 8 $size \
    --steps 2 --dtype f16 --backend ref --output "$tmp/f16" --no-val
exits 0 "plain C has it"
says "classes, f16" "and says so"

# shellcheck disable=SC2086
"$imagenet" train "$data" $net $size --steps 1 --no-val --output "$tmp/full" \
    >/dev/full 2>"$tmp/err" </dev/null
rc=$?
exits 74 "lines on stdout that cannot be written: exit code 74"
complains "lines on stdout could not be written" "and a word why"
"$imagenet" inspect 2>"$tmp/err" | head -n 1 >"$tmp/out"
[ ! -s "$tmp/err" ]
point $? "but a reader may end first"

# begin DIR ARGUMENT...: a run without end, in the background, at its first step
begin()
{
    dir=$1
    shift
    : >"$tmp/out"
    # shellcheck disable=SC2086
    $before "$imagenet" train "$data" $net $size --epochs 100000 --log-every 1 \
        --output "$dir" "$@" >"$tmp/out" 2>"$tmp/err" </dev/null &
    pid=$!
    await grep -q '^step=' "$tmp/out"
}

# A signal ends the run after a step and leaves a checkpoint, also when the tests
# run under nohup.
before="env --default-signal=HUP"
for sig in TERM INT HUP USR1 USR2; do
    begin "$tmp/$sig" --no-val
    kill -$sig $pid
    wait $pid
    rc=$?
    exits 75 "SIG$sig: exit code 75"
    says "^final step=[0-9]+ .*weights=crc32c:" "with a last line"
    complains "interrupted by SIG$sig after step [0-9]+; checkpoint saved" \
        "and a word on stderr"
    [ -s "$tmp/$sig/ckpt/latest/model.safetensors" ]
    point $? "and a checkpoint"
done
before=
# With evaluation after every epoch of three steps, it comes in between.
begin "$tmp/val" --sched constant
kill -TERM $pid
wait $pid
rc=$?
exits 75 "a signal with evaluation: exit code 75"
crc=$(value weights)
step=$(sed -n 's/^final step=\([0-9]*\) .*/\1/p' "$tmp/out")
# shellcheck disable=SC2086
run "$imagenet" train "$data" $net $size --steps "$step" --sched constant \
    --no-val --output "$tmp/same"
[ "$(value weights)" = "$crc" ]
point $? "its weights are those of a run of $step steps"

# The second one does not wait.
begin "$tmp/two" --no-val
kill -TERM $pid
kill -INT $pid
wait $pid
rc=$?
[ $rc = 130 ] || [ $rc = 143 ]
point $? "a second signal ends the program by itself: $rc"

# A signal that is ignored, as by nohup, remains so.
trap '' HUP
begin "$tmp/nohup" --no-val
trap - HUP
kill -HUP $pid
sleep 1
kill -TERM $pid
wait $pid
rc=$?
exits 75 "a run with SIGHUP ignored"
complains "interrupted by SIGTERM" "ends by the next signal"

# A step of minutes stands for one that hangs.
"$imagenet" train "$data" --model resnet18 --img-size 224 --sub-batch 16 \
    --backend ref --no-val --grace 1 --output "$tmp/grace" >"$tmp/out" \
    2>"$tmp/err" </dev/null &
pid=$!
await grep -q '^devices:' "$tmp/out"
kill -TERM $pid
wait $pid 2>"$tmp/err"
rc=$?
exits 142 "--grace 1 ends it: SIGALRM"

# shellcheck disable=SC2086
run "$imagenet" train "$data" $net $size --epochs 100000 --no-val \
    --time-limit 0:00:04 --output "$tmp/limit"
exits 75 "a time limit: exit code 75"
complains "interrupted by --time-limit after step [0-9]+; checkpoint saved" \
    "with a word on stderr"
[ -s "$tmp/limit/ckpt/latest/model.safetensors" ]
point $? "and a checkpoint"
grep -q '^time-limit = 4$' "$tmp/limit/config.txt"
point $? "0:00:04 is 4 seconds"

# A bad picture is named and replaced, or ends the run.
victim=$data/ILSVRC/Data/CLS-LOC/train/n90000001/n90000001_3.JPEG
printf 'not a picture' >"$victim"
# shellcheck disable=SC2086
run "$imagenet" train "$data" $net $size --epochs 1 --output "$tmp/bad" \
    --max-bad 5%
exits 0 "a bad picture within --max-bad is tolerated"
complains "n90000001_3.JPEG" "and named"
# shellcheck disable=SC2086
run "$imagenet" train "$data" $net $size --epochs 1 --output "$tmp/worse" \
    --max-bad 0
exits 65 "beyond it: exit code 65"
complains "n90000001_3.JPEG" "and named as well"

# On a terminal: one line, redrawn.
if script -q -e -c true "$tmp/typescript" >/dev/null 2>&1 </dev/null; then
    cmd="'$imagenet' train '$data' $net $size --epochs 1 --output '$tmp/tty'"
    TERM=xterm NO_COLOR='' script -q -e -c "$cmd --max-bad 5%" \
        "$tmp/typescript" >"$tmp/out" 2>"$tmp/err" </dev/null
    rc=$?
    exits 0 "train on a terminal succeeds"
    grep -q "$(printf '\r')epoch 1/1 .*|" "$tmp/out"
    point $? "it draws a line"
    grep -q '^step=' "$tmp/out"
    [ $? = 1 ]
    point $? "and no others"
    says "final step=3 " "the last line is printed too"
    rm -rf "$tmp/tty"
    TERM=dumb script -q -e -c "$cmd --max-bad 5% --log-every 1" \
        "$tmp/typescript" >"$tmp/out" 2>"$tmp/err" </dev/null
    says "^step=3 " "on a dumb one it prints lines"
else
    skip 5 "script(1) cannot make a terminal here"
fi

# Fine-tuning: of the last layer alone, evaluated at every step, until it no
# longer improves; groups are the run's.
rm -rf "$tmp/tuned"
# shellcheck disable=SC2086
run "$imagenet" train --data "$data" $net $size --epochs 4 --eval-steps 1 \
    --weights "$tmp/run/weights.safetensors" --head-only --patience 3 \
    --model-ema-decay 0.9 --model-ema-warmup --output "$tmp/tuned"
exits 0 "the last layer alone can be trained"
steps=$(sed -n 's/^final step=\([0-9]*\) .*/\1/p' "$tmp/out")
[ "$(grep -c '^eval step=' "$tmp/out")" = "$steps" ]
point $? "with an evaluation after each of $steps steps"
# shellcheck disable=SC2086
run "$imagenet" train --data "$data" $net $size --epochs 4 --eval-steps 1 \
    --weights "$tmp/run/weights.safetensors" --freeze conv1 --patience 3 \
    --model-ema-decay 0.9 --model-ema-warmup --output "$tmp/tuned"
exits 2 "it does not go on with others"
complains "groups is .*conv1" "which are named"
# shellcheck disable=SC2086
run "$imagenet" train --data "$data" $net $size --freeze-to layer9 \
    --output "$tmp/none"
complains "--freeze-to: the network has no layer 'layer9'; imagenet inspect lists" "nor does a layer \
that there is not"

# A first layer from the images: not at random, and kept where it is frozen.
first()
{
    # shellcheck disable=SC2086
    run "$imagenet" train --data "$data" --model airbench --width 8 $size \
        --seed "$1" --img-size 32 --epochs 1 --no-val --freeze whiten \
        --whiten "$2" --output "$tmp/first-$1-$2" &&
        "$imagenet" convert "$tmp/first-$1-$2/weights.safetensors" \
            "$tmp/$1-$2.safetensors" --drop 'block*,head*' >/dev/null
}
first 3 8 && first 4 8 && first 4 0
[ -s "$tmp/3-8.safetensors" ] &&
    cmp -s "$tmp/3-8.safetensors" "$tmp/4-8.safetensors"
point $? "--whiten: the first layer does not depend on the seed"
! cmp -s "$tmp/4-8.safetensors" "$tmp/4-0.safetensors"
point $? "as it does without"

# A learning rate to begin with: of the table, where the loss falls most.
# shellcheck disable=SC2086
run env LC_ALL=C "$imagenet" train --data "$data" $net -b 16 --sub-batch 8 \
    --lanes 2 --find-lr --find-lr-steps 30 --output "$tmp/find"
exits 0 "--find-lr ends"
says "log10 of the learning rate" "with a plot"
[ "$(ls "$tmp/find")" = lr_find.csv ]
point $? "and a table, without a run"
want=$(tr , ' ' <"$tmp/find/lr_find.csv" | awk 'NR > 1 { lr[n] = $1; y[n++] = $3 }
    END { for (i = 11; i + 2 < n; i++) if (y[i + 1] - y[i - 1] < least || !best) {
        least = y[i + 1] - y[i - 1]; best = lr[i] } printf "%.3g", best }')
[ "$(sed -n 's/^find_lr .* lr=\([^ ]*\) .*/\1/p' "$tmp/out")" = "$want" ]
point $? "its rate is $want"

# Runs that begin in the same second, without --output.
mkdir "$tmp/here"
pids=
for i in 1 2 3; do
    # shellcheck disable=SC2086
    (cd "$tmp/here" && exec "$imagenet" train --data "$data" $net $size \
        --epochs 1 --no-val) >/dev/null 2>"$tmp/err$i" </dev/null &
    pids="$pids $!"
done
for i in $pids; do
    wait "$i" || echo "run $i"
done >"$tmp/out"
[ "$(find "$tmp/here/runs" -name weights.safetensors | wc -l)" = 3 ] &&
    [ ! -s "$tmp/out" ]
point $? "runs without --output each have a folder"

done_testing
