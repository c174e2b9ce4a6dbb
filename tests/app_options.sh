#!/bin/sh
# app_options.sh - the programs' command lines: what is wrong is named
# SPDX-License-Identifier: LGPL-2.1-or-later
. "$srcdir/tests/tap.sh"

# refuses REGEX SENTENCE ARGUMENT...: exit code 2 and a message
refuses()
{
    regex=$1 what=$2
    shift 2
    run "$imagenet" "$@"
    [ $rc = 2 ] && grep -E -q -e "$regex" "$tmp/err"
    point $? "$what"
}

refuses "unknown option --bach-size; did you mean --batch-size" \
    "a misspelt option is named, with the nearest one" train --bach-size 3
refuses "'adan'.*did you mean 'adam'.*Available:.*rmsprop" \
    "a misspelt choice too, with all there are" train --opt adan
refuses "unknown value 'resnet81'.*did you mean 'resnet18'.*Available:.*mlp" \
    "and a misspelt model" train --data "$tmp" --model resnet81
refuses "unknown command 'tran'; did you mean 'train'" "and a command" tran
refuses "--lr: 'abc' is not a number" "a number that is none" train --lr abc
refuses "--lr: '0.1x' is not a number" "nor is one with a tail" train --lr 0.1x
refuses "--lr: 'nan' is not a number" "nor is nan" train --lr nan
refuses "--epochs: '1.5' is not a whole" "whole numbers are whole" \
    train --epochs 1.5
refuses "--epochs: .*between" "and not too large for their type" \
    train --epochs 99999999999
refuses "--lanes: 0 is not between 1 and" "a value out of range" train --lanes 0
refuses "--max-bad: '1x%' is not a fraction" "a share" train --max-bad 1x%
for time in 1:99 1:2:3:4 -5 1-24:00 5m 1-; do
    refuses "--time-limit: '$time' is not a time" "time $time" \
        train "--time-limit=$time"
done
refuses "--mean: .*list" "a list that is too short" train --mean 0.5,0.5
refuses "--std: .*list" "a list that is too long" train --std 1,1,1,1
refuses "--hidden: .*list" "a list of widths" train --hidden 3,,4
refuses "--seed requires a value" "a value that is missing" train --seed
refuses "--output: .*empty" "a value that is empty" train --output=
refuses "--no-val takes no value" "a value for a flag" train --no-val=1
refuses "unknown option -z" "a letter that is no option" train -z
refuses "--weig.* could be --weights --weight-decay" \
    "a prefix of two options" train --weig 3
refuses "unexpected argument 'more'" "one argument too many" train "$tmp" more
refuses "data check.*unreadable" "a command without its second word" data
refuses "'data chek'; available: data check, data pack, data unpack, data synth" \
    "a second word there is not" data chek

# shows REGEX SENTENCE ARGUMENT...: help, on stdout
shows()
{
    regex=$1 what=$2
    shift 2
    run "$imagenet" "$@"
    [ $rc = 0 ] && [ ! -s "$tmp/err" ] && grep -E -q -e "$regex" "$tmp/out"
    point $? "$what"
}

shows "^Usage: imagenet COMMAND" "help" help
shows "^Usage: imagenet COMMAND" "-h" -h
shows "^Usage: imagenet train" "help train" help train
shows "^Usage: imagenet data synth" "help data synth" help data synth
shows "^Usage: imagenet data COMMAND" "help data" help data
shows "^Usage: imagenet data COMMAND" "data --help" data --help
shows "^Usage: imagenet data check" "data check --help" data check --help
refuses "unknown command 'tran'; did you mean 'train'" "help tran" help tran
refuses "--data DIR is missing" "train without data" train
refuses "there is no folder or file $tmp/none" "data that are not there" \
    train --data "$tmp/none"
refuses "--weights FILE is missing" "eval without weights" eval --data "$tmp"
refuses "--weights FILE is missing" "infer without weights" infer "$tmp"
refuses "--format: .*'cvs'.*did you mean 'csv'" "a format there is not" \
    infer --format cvs "$tmp"
refuses "--model-ema-decay: 1 is not between" "averages that never move" \
    train "$tmp" --model-ema-decay 1
refuses "--tta has no effect.*--no-val" "mirror images of no evaluation" \
    train "$tmp" --no-val --tta flip
run "$imagenet" train --help
tr -s ' \n' '  ' <"$tmp/out" |
    grep -q "own\] of adam, adamw, .*adagrad, adadelta, lamb, rmsproptf, nadamw and adamp -"
point $? "--help names the optimizers that an option is for"
refuses "two files: IN and OUT" "convert with one file" convert "$tmp/in"
refuses "--output DIR is missing" "data synth without output" data synth

# What would be ignored is refused.
refuses "--decay-milestones has no effect.*--sched multistep" \
    "milestones of a cosine" train "$tmp" --milestones 3,5
refuses "--lr-power has no effect.*--sched polynomial" "a power of none" \
    train "$tmp" --lr-scheduler steplr --lr-power 2
refuses "--sched plateau needs evaluations: leave out --no-val" "a plateau of no evaluations" \
    train "$tmp" --sched plateau --no-val
refuses "--momentum has no effect" "momentum of Adam" \
    train "$tmp" --opt adam --momentum 0.9
refuses "--decay-rate has no effect.*--sched step" "a step's rate for cosine" \
    train "$tmp" --decay-rate 0.5
refuses "--lr-base has no effect.*--lr is given" "a base rate with a rate" \
    train "$tmp" --lr 1 --lr-base 1
refuses "--epochs has no effect.*--steps" "epochs with steps" \
    train "$tmp" --epochs 1 --steps 1
refuses "--hidden has no effect.*mlp" "hidden layers of a ResNet" \
    train "$tmp" --hidden 3

run "$imagenet"
exits 2 "no command at all: exit code 2"
run "$imagenet" --help
exits 0 "--help succeeds"
says "data synth" "and lists the commands"
run "$imagenet" --version
says "^imagenet of libddp [0-9]" "--version says which library"
run "$imagenet" inspect
says "^resnet50  *224  *25557032 " "inspect without a model lists them"
STARPU_NCPU=2 run "$imagenet" inspect mlp --img-size 8 -b 96 --lanes 1
says "^plan: 1 of 3 sub-batches at a time, limited by the lanes$" \
    "with a model it shows the plan of a step"
says "^memory: [1-9]" "and the memory that it takes"
STARPU_NCPU=2 run "$imagenet" inspect mlp --img-size 8 -b 96 --lanes 3
says "^plan: 2 of 3 sub-batches at a time, limited by the devices$" \
    "as it is with more lanes"

for cmd in train eval infer convert export inspect doctor report \
    "data check" "data pack" "data unpack" "data synth"; do
    # shellcheck disable=SC2086
    run "$imagenet" $cmd --help
    exits 0 "$cmd --help succeeds"
    awk 'length > 79 { bad = 1 } END { exit bad }' "$tmp/out"
    point $? "$cmd --help fits 79 columns"
    # Each option of the text is one that the parser knows.
    unknown=
    for o in $(sed -n 's/^  *\(-[a-z], \)\{0,1\}--\([a-z-]*\).*/\2/p' \
        "$tmp/out"); do
        # shellcheck disable=SC2086
        "$imagenet" $cmd "--$o" 2>&1 >/dev/null </dev/null |
            grep -q "unknown option" && unknown="$unknown $o"
    done
    [ -z "$unknown" ]
    point $? "$cmd knows the options of its help$unknown"
done

run "$bench"
exits 2 "bench without a command: exit code 2"
run "$bench" train --modle x
complains "did you mean --model" "bench has the same manners"
run "$bench" load --data "$tmp/none"
exits 2 "bench load without its folder: exit code 2"

done_testing
