#!/bin/sh
# app_recipes.sh - recipes, and command lines of torchvision and timm
# SPDX-License-Identifier: LGPL-2.1-or-later
. "$srcdir/tests/tap.sh"

STARPU_NCPU=1
export STARPU_NCPU
data=$tmp/data
"$imagenet" data synth --output "$data" --classes 4 --train-count 1024 \
    --val-count 4 --size 16 >/dev/null || exit 99

# is NAME VALUE: what --dry-run printed last
is()
{
    grep -q -x -F -e "$1 = $2" "$tmp/out" ||
        { echo "# $(grep -e "^$1 = " "$tmp/out"), not $2" && false; }
}

# ---- recipes ----------------------------------------------------------------

for recipe in "$srcdir"/recipes/*.conf; do
    run "$imagenet" train --data "$data" --config "$recipe" --dry-run
    exits 0 "$(basename "$recipe") can be run"
done
run "$imagenet" train --data "$data" --config "$srcdir/recipes/resnet50.conf" \
    --dry-run
is model resnet50 && is lr 0.1 && is epochs 90 && is batch-size 256 &&
    is sched step && is decay-all true && is img-size 224
point $? "a recipe sets what it says"
[ ! -e runs ]
point $? "a dry run writes nothing"
cp "$tmp/out" "$tmp/config.txt"
run "$imagenet" train --data "$data" --config "$tmp/config.txt" --dry-run
# The default output has the time in its name.
[ "$(grep -v -E '^(config|output) = ' "$tmp/out")" = \
    "$(grep -v -E '^(config|output) = ' "$tmp/config.txt")" ]
point $? "the record of a run, as a recipe, is that run"
run "$imagenet" train --data "$data" --config "$tmp/config.txt" --dry-run \
    --lr-base 0.2 --epochs 3 -b 128
is lr 0.1 && is lr-base 0.2 && is epochs 3 && is batch-size 128
point $? "what is given goes before it"
printf '# a comment\n\nmodell = resnet18\n' >"$tmp/bad.conf"
run "$imagenet" train --data "$data" --config "$tmp/bad.conf" --dry-run
exits 2 "a name that is no option"
complains "line 3 of $tmp/bad.conf" "is refused, with its line"
run "$imagenet" train --data "$data" --config "$tmp/none.conf" --dry-run
exits 2 "as is a recipe that is not there"

# ---- command lines ----------------------------------------------------------

# runs "NAME VALUE..." LINE: after the program's name, of a train.py
runs()
{
    want=$1 line=$2
    # shellcheck disable=SC2086
    run "$imagenet" train --dry-run --data-path "$data" $line
    [ $rc = 0 ]
    good=$?
    set -f
    # shellcheck disable=SC2086
    set -- $want
    set +f
    while [ $# -gt 1 ]; do
        is "$1" "$2" || good=1
        shift 2
    done
    point $good "$line"
}

# torchvision's references/classification
runs "lr 0.1 sched step batch-size 256 decay-epochs 30" \
    "--model resnet50 -b 256 --lr-scheduler steplr --lr-step-size 30"
runs "lr 0.01" "--model alexnet --lr 1e-2"
runs "epochs 100" "--model resnext50_32x4d --epochs 100"
runs "epochs 100 dtype bf16" "--model resnext50_32x4d --epochs 100 --amp"
runs "epochs 300 lr 0.045 weight-decay 4e-05 decay-epochs 1 decay-rate 0.98" \
    "--model mobilenet_v2 --epochs 300 --lr 0.045 --wd 0.00004 \
--lr-scheduler steplr --lr-step-size 1 --lr-gamma 0.98"
runs "opt rmsprop batch-size 128 random-erase 0.2 decay-rate 0.973" \
    "--model mobilenet_v3_large --epochs 600 --opt rmsprop --batch-size 128 \
--lr 0.064 --wd 0.00001 --lr-scheduler steplr --lr-step-size 2 \
--lr-gamma 0.973 --random-erase 0.2"
runs "sched step decay-epochs 2 aa imagenet" \
    "--model mobilenet_v3_large --epochs 600 --opt rmsprop --batch-size 128 \
--lr 0.064 --wd 0.00001 --lr-step-size 2 --lr-gamma 0.973 \
--auto-augment imagenet --random-erase 0.2"
runs "sched cosine mixup 0.2 cutmix 1 aug-repeats 4" \
    "--model efficientnet_v2_s --batch-size 128 --lr 0.5 --lr-scheduler \
cosineannealinglr --lr-warmup-epochs 5 --lr-warmup-method linear \
--auto-augment ta_wide --epochs 600 --random-erase 0.1 --label-smoothing 0.1 \
--mixup-alpha 0.2 --cutmix-alpha 1.0 --weight-decay 0.00002 \
--norm-weight-decay 0.0 --train-crop-size 300 --model-ema --val-crop-size 384 \
--val-resize-size 384 --ra-sampler --ra-reps 4"
runs "sched cosine warmup-epochs 5 val-resize-size 232 img-size 176" \
    "--model resnet50 --batch-size 128 --lr 0.5 --lr-scheduler \
cosineannealinglr --lr-warmup-epochs 5 --lr-warmup-method linear --epochs 600 \
--random-erase 0.1 --weight-decay 0.00002 --norm-weight-decay 0.0 \
--label-smoothing 0.1 \
--train-crop-size 176 --model-ema --val-crop-size 224 --val-resize-size 232"
runs "model-ema-decay 0.999 workers 2" \
    "--model resnet18 --model-ema --model-ema-decay 0.999 --workers 2 \
--print-freq 10 --output-dir $tmp/o"
runs "sched exponential decay-rate 0.97 warmup-epochs 5" \
    "--model resnet18 --lr-scheduler exponentiallr --lr-gamma 0.97 \
--lr-warmup-epochs 5 --lr-warmup-decay 0.01 --epochs 10"
runs "clip-grad 1 opt adamw" \
    "--model vgg11 --opt adamw --lr 0.001 --clip-grad-norm 1"
runs "opt nesterov momentum 0.8" \
    "--model resnet34 --opt sgd_nesterov --momentum 0.8"
runs "opt momentum momentum 0.9" "--model resnet34 --opt sgd --momentum 0.9"

# timm's train.py
runs "epochs 150 warmup-epochs 5 random-erase 0.5 batch-size 256 dtype bf16" \
    "--model resnet34 --sched cosine --epochs 150 --warmup-epochs 5 --lr 0.4 \
--reprob 0.5 --batch-size 256 --amp -j 4"
runs "scale 0.08,1 ratio 0.75,1.3333" \
    "--model resnet50 --scale 0.08 1.0 --ratio 0.75 1.3333 -b 128"
runs "sched step decay-epochs 2.4 decay-rate 0.97 warmup-lr 1e-06 drop 0.2" \
    "--model efficientnet_b0 -b 128 --sched step --epochs 450 \
--decay-epochs 2.4 --decay-rate .97 --opt rmsprop --opt-eps .001 -j 8 \
--warmup-lr 1e-6 --warmup-epochs 3 --weight-decay 1e-5 --drop 0.2 \
--drop-connect 0.2 --model-ema --model-ema-decay 0.9999 --reprob 0.2 --amp \
--lr .048"
runs "model mobilenet_v3_large drop 0.2" \
    "--model mobilenetv3_large_100 -b 512 --sched step --epochs 600 \
--decay-epochs 2.4 --decay-rate .973 --opt rmsprop --opt-eps .001 -j 7 \
--warmup-lr 1e-6 --weight-decay 1e-5 --warmup-epochs 3 --drop 0.2 \
--model-ema --model-ema-decay 0.9999 --reprob 0.2 --amp --lr .064"
runs "sched multistep decay-milestones 30,60,80" \
    "--model resnet50 --sched multistep --decay-milestones 30 60 80 \
--decay-rate 0.1 --epochs 100"
runs "sched plateau patience-epochs 3 cooldown-epochs 1 min-lr 1e-05" \
    "--model resnet18 --sched plateau --patience-epochs 3 --cooldown-epochs 1 \
--decay-rate 0.5 --min-lr 1e-5"
runs "sched polynomial warmup-prefix false" "--model resnet18 --sched poly"
runs "opt adamw opt-betas 0.9,0.98 clip-grad 1 clip-mode norm label-smoothing 0.1" \
    "--model resnet50 --opt adamw --opt-betas 0.9 0.98 --clip-grad 1.0 \
--clip-mode norm --smoothing 0.1 --weight-decay 0.05 --channels-last --pin-mem"
runs "sync-bn true lanes 2" "--model resnet18 --sync-bn --sub-batch 15 -b 30"
runs "color-jitter 0.4,0.4,0.4,0 mean 0.5,0.5,0.5 interpolation bicubic" \
    "--model resnet50 --color-jitter 0.4 --mean 0.5 0.5 0.5 --std 0.5 0.5 0.5 \
--interpolation bicubic --crop-pct 0.95 --img-size 160 --vflip 0.5"
runs "lr-base 0.05 lr-base-size 256 lr 0.05 dtype bf16 keep-last 2" \
    "--model resnet34 --lr-base 0.05 -b 256 --amp --amp-dtype bfloat16 \
--checkpoint-hist 2"

# ---- what there is not ------------------------------------------------------

# refuses REGEX ARGUMENT...
refuses()
{
    regex=$1
    shift
    run "$imagenet" train --dry-run --data-path "$data" "$@"
    [ $rc = 2 ] && grep -E -q -e "$regex" "$tmp/err"
    point $? "$*: $regex"
}

refuses "--test-only: use .imagenet eval" --test-only --model resnet18
refuses "--grad-accum-steps: .*--sub-batch" --grad-accum-steps 4
refuses "--dist-url: .*mpirun" --dist-url env://
refuses "--log-wandb: .*tensorboard" --log-wandb
refuses "--ratio: .*list" --ratio 0.75
done_testing
