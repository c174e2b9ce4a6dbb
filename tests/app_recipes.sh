#!/bin/sh
# app_recipes.sh - recipes, and command lines of torchvision and timm
# SPDX-License-Identifier: LGPL-2.1-or-later
. "$srcdir/tests/tap.sh"

STARPU_NCPU=1
export STARPU_NCPU
data=$tmp/data
recipes=$srcdir/recipes
"$imagenet" data synth --output "$data" --classes 4 --train-count 1600 \
    --val-count 4 --size 16 >/dev/null || exit 99

# is NAME VALUE: what --dry-run printed last
is()
{
    grep -q -x -F -e "$1 = $2" "$tmp/out" ||
        { echo "# $(grep -e "^$1 = " "$tmp/out"), not $2" && false; }
}

# are "NAME VALUE...": the same of several
are()
{
    all=0
    set -f
    # shellcheck disable=SC2086
    set -- $1
    set +f
    while [ $# -gt 1 ]; do
        is "$1" "$2" || all=1
        shift 2
    done
    return $all
}

# ---- recipes ----------------------------------------------------------------

for recipe in "$recipes"/*.conf; do
    run "$imagenet" train --data "$data" --config "$recipe" --dry-run
    exits 0 "$(basename "$recipe") can be run"
    # On any processor: without AVX-512 oneDNN has no bf16.
    run env ONEDNN_MAX_CPU_ISA=AVX2 "$imagenet" train --data "$data" \
        --config "$recipe" --dry-run
    exits 0 "as it can without bf16"
done
run "$imagenet" train --data "$data" --config "$recipes/resnet50.conf" --dry-run
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
# Two runs, of another epsilon: the usual one, which the record leaves open, and
# that of most other optimizers.
run "$imagenet" train --data "$data" --opt rmsproptf --dry-run
is opt-eps 0 && is opt-betas 0,0
point $? "an optimizer has its own epsilon and betas"
run "$imagenet" train --data "$data" --opt rmsproptf --opt-eps 1e-8 --dry-run
cp "$tmp/out" "$tmp/config.txt"
run "$imagenet" train --data "$data" --config "$tmp/config.txt" --dry-run
is opt-eps 1e-08
point $? "or those that are given, in the record of the run, too"
printf '# a comment\n\nmodell = resnet18\n' >"$tmp/bad.conf"
run "$imagenet" train --data "$data" --config "$tmp/bad.conf" --dry-run
exits 2 "a name that is no option"
complains "line 3 of $tmp/bad.conf" "is refused, with its line"
run "$imagenet" train --data "$data" --config "$tmp/none.conf" --dry-run
exits 2 "as is a recipe that is not there"
run "$imagenet" train --data "$data" --config none --dry-run
exits 2 "and a name of no recipe"
complains "there is no such file, and no .*/none.conf.*need their path" "with what helps"

# ---- command lines, as they are published -----------------------------------

# only_name LINE: the line for this program, in $tmp/line, one argument a line.
# What starts processes is the only change, but for the folder of the data.
only_name()
{
    echo "$1" | sed -e 's/\\ *$//' | tr -s ' \n' '\n\n' |
        sed -e '/^$/d; s|^/data/imagenet$|/imagenet|; s|^/imagenet/*$|'"$data"'|
            s|^torchrun$|--config\n'"$recipes"'/torchvision.conf|
            /^train\.py$/d
            s|^./distributed_train.sh$|--config\n'"$recipes"'/timm.conf\n--nproc_per_node|' \
            >"$tmp/line"
    grep -q -x -F "$data" "$tmp/line" || printf '%s\n' "$data" >>"$tmp/line"
}

# backend_for ARGUMENT...: --amp is bf16, in which ref computes on any processor
backend_for()
{
    case "$*" in *--amp*) echo --backend ref ;; esac
}

# works "NAME VALUE..." LINE
works()
{
    only_name "$2"
    # shellcheck disable=SC2046
    run "$imagenet" train --dry-run $(backend_for "$2") $(cat "$tmp/line")
    [ $rc = 0 ] && are "$1"
    point $? "$(echo "$2" | tr -s ' \\\n' '   ' | cut -c1-160)"
}

# lacks REGEX LINE: refused for this alone
lacks()
{
    only_name "$2"
    # shellcheck disable=SC2046
    run "$imagenet" train --dry-run $(cat "$tmp/line")
    [ $rc = 2 ] && grep -q -E -e "$1" "$tmp/err"
    point $? "$1: $(echo "$2" | cut -c1-100)"
}

# torchvision: references/classification/README.md.  What every line says of
# the batch: 8 processes.
for model in alexnet vgg11 vgg13 vgg16 vgg19; do
    works "model $model lr 0.01 batch-size 256 epochs 90 sched step" \
        "torchrun --nproc_per_node=8 train.py\\
    --model $model --lr 1e-2"
done
for model in resnet18 resnet34 resnet50 resnet101 resnet152; do
    works "model $model lr 0.1 batch-size 256 decay-epochs 30 decay-all true \
weight-decay 0.0001 opt momentum" \
        "torchrun --nproc_per_node=8 train.py --model $model"
done
for model in resnext50_32x4d resnext101_32x8d; do
    works "model $model epochs 100 batch-size 256 dtype f32" \
        "torchrun --nproc_per_node=8 train.py\\
    --model $model --epochs 100"
done
works "model mobilenet_v2 epochs 300 lr 0.045 weight-decay 4e-05 sched step \
decay-epochs 1 decay-rate 0.98" \
    "torchrun --nproc_per_node=8 train.py\\
     --model mobilenet_v2 --epochs 300 --lr 0.045 --wd 0.00004\\
     --lr-step-size 1 --lr-gamma 0.98"
for model in mobilenet_v3_large mobilenet_v3_small; do
    works "model $model opt rmsprop batch-size 1024 lr 0.064 aa imagenet \
random-erase 0.2 sched step decay-epochs 2 decay-rate 0.973" \
        "torchrun --nproc_per_node=8 train.py\\
     --model $model --epochs 600 --opt rmsprop --batch-size 128 --lr 0.064\\ 
     --wd 0.00001 --lr-step-size 2 --lr-gamma 0.973 --auto-augment imagenet \
--random-erase 0.2"
    [ $model = mobilenet_v3_large ] && cp "$tmp/out" "$tmp/mobilenet_v3_large"
done
for sizes in "efficientnet_v2_s 300 384" "efficientnet_v2_m 384 480"; do
    # shellcheck disable=SC2086
    set -- $sizes
    works "model $1 batch-size 1024 lr 0.5 sched cosine mixup 0.2 cutmix 1 \
aug-repeats 4 aa ta_wide img-size $2 val-crop-size $3 val-resize-size $3 \
model-ema-decay 0.999965849 norm-weight-decay 0 decay-all true" \
        "torchrun --nproc_per_node=8 train.py \\
--model $1 --batch-size 128 --lr 0.5 --lr-scheduler cosineannealinglr \\
--lr-warmup-epochs 5 --lr-warmup-method linear --auto-augment ta_wide --epochs 600 --random-erase 0.1 \\
--label-smoothing 0.1 --mixup-alpha 0.2 --cutmix-alpha 1.0 --weight-decay 0.00002 --norm-weight-decay 0.0 \\
--train-crop-size $2 --model-ema --val-crop-size $3 --val-resize-size $3 \\
--ra-sampler --ra-reps 4"
    [ "$1" = efficientnet_v2_s ] && cp "$tmp/out" "$tmp/efficientnet_v2_s"
done
works "model resnext50_32x4d epochs 100 dtype bf16" \
    "torchrun --nproc_per_node=8 train.py\\
    --model resnext50_32x4d --epochs 100 --amp"
# vision/issues/3995, which the weights IMAGENET1K_V2 name as their recipe
works "model resnet50 batch-size 1024 lr 0.5 img-size 176 val-resize-size 232 \
warmup-epochs 5 random-erase 0.1" \
    "torchrun --nproc_per_node=8 train.py --model resnet50 --batch-size 128 --lr 0.5 \\
--lr-scheduler cosineannealinglr --lr-warmup-epochs 5 --lr-warmup-method linear \\
--auto-augment ta_wide --epochs 600 --random-erase 0.1 --weight-decay 0.00002 \\
--norm-weight-decay 0.0 --label-smoothing 0.1 --mixup-alpha 0.2 --cutmix-alpha 1.0 \\
--train-crop-size 176 --model-ema --val-resize-size 232 --ra-sampler --ra-reps 4"
cp "$tmp/out" "$tmp/resnet50_v2"
lacks "--test-only: use .imagenet eval" \
    "torchrun --nproc_per_node=8 train.py --model inception_v3\\
      --test-only --weights Inception_V3_Weights.IMAGENET1K_V1"
lacks "--model: unknown value 'regnet_x_400mf'" \
    "torchrun --nproc_per_node=8 train.py\\
     --model regnet_x_400mf --epochs 100 --batch-size 128 --wd 0.00005 --lr=0.8\\
     --lr-scheduler=cosineannealinglr --lr-warmup-method=linear\\
     --lr-warmup-epochs=5 --lr-warmup-decay=0.1"
lacks "--model: unknown value 'shufflenet_v2_x1_5'" \
    "torchrun --nproc_per_node=8 train.py --model shufflenet_v2_x1_5 \\
--batch-size=128 \\
--lr=0.5 --lr-scheduler=cosineannealinglr --lr-warmup-epochs=5 --lr-warmup-method=linear \\
--auto-augment=ta_wide --epochs=600 --random-erase=0.1 --weight-decay=0.00002 \\
--norm-weight-decay=0.0 --label-smoothing=0.1 --mixup-alpha=0.2 --cutmix-alpha=1.0 \\
--train-crop-size=176 --model-ema --val-resize-size=232 --ra-sampler --ra-reps=4"

# timm: hfdocs/source/training_script.mdx
works "model resnext50_32x4d batch-size 1536 lr 0.6 epochs 240 warmup-epochs 5 \
warmup-inside true weight-decay 0.0001 random-erase 0.4 aa rand-m7-mstd0.5-inc1 dtype bf16 \
opt nesterov label-smoothing 0.1" \
    "./distributed_train.sh 8 --data-dir /imagenet --model resnext50_32x4d --lr 0.6 \
--warmup-epochs 5 --epochs 240 --weight-decay 1e-4 --sched cosine --reprob 0.4 --recount 3 \
--remode pixel --aa rand-m7-mstd0.5-inc1 -b 192 -j 6 --amp --dist-bn reduce"
lacks "--model: unknown value 'seresnet34'" \
    "./distributed_train.sh 4 --data-dir /data/imagenet --model seresnet34 --sched cosine \
--epochs 150 --warmup-epochs 5 --lr 0.4 --reprob 0.5 --remode pixel --batch-size 256 --amp -j 4"
lacks "--model: unknown value 'seresnext26t_32x4d'" \
    "./distributed_train.sh 2 --data-dir /imagenet/ --model seresnext26t_32x4d --lr 0.1 \
--warmup-epochs 5 --epochs 160 --weight-decay 1e-4 --sched cosine --reprob 0.4 --remode pixel -b 112"
lacks "--(aug-splits|jsd-loss): .*clean and changed" \
    "./distributed_train.sh 2 --data-dir /imagenet -b 64 --model resnet50 --sched cosine \
--epochs 200 --lr 0.05 --amp --remode pixel --reprob 0.6 --aug-splits 3 \
--aa rand-m9-mstd0.5-inc1 --resplit --split-bn --jsd --dist-bn reduce"

# Lines with an optimizer that has TensorFlow's epsilon.
works "model efficientnet_b2 batch-size 256 opt rmsproptf opt-eps 0.001 \
decay-epochs 2.4 decay-rate 0.97 drop 0.3 drop-path 0.2 model-ema-decay 0.9999 \
warmup-lr 1e-06 warmup-epochs 5 aa rand-m9-mstd0.5" \
    "./distributed_train.sh 2 --data-dir /imagenet/ --model efficientnet_b2 -b 128 --sched step \
--epochs 450 --decay-epochs 2.4 --decay-rate .97 --opt rmsproptf --opt-eps .001 -j 8 \
--warmup-lr 1e-6 --weight-decay 1e-5 --drop 0.3 --drop-path 0.2 --model-ema \
--model-ema-decay 0.9999 --aa rand-m9-mstd0.5 --remode pixel --reprob 0.2 --amp --lr .016"
works "model efficientnet_b0 batch-size 768 opt rmsproptf lr 0.048" \
    "./distributed_train.sh 2 --data-dir /imagenet/ --model efficientnet_b0 -b 384 --sched step \
--epochs 450 --decay-epochs 2.4 --decay-rate .97 --opt rmsproptf --opt-eps .001 -j 8 \
--warmup-lr 1e-6 --weight-decay 1e-5 --drop 0.2 --drop-path 0.2 --model-ema \
--model-ema-decay 0.9999 --aa rand-m9-mstd0.5 --remode pixel --reprob 0.2 --amp --lr .048"
# A network of timm: torchvision's, which is here, has no stochastic depth.
lacks "mobilenet_v3_large: does not support stochastic depth" \
    "./distributed_train.sh 2 /imagenet/ --model mobilenetv3_large_100 -b 512 --sched step \
--epochs 600 --decay-epochs 2.4 --decay-rate .973 --opt rmsproptf --opt-eps .001 -j 7 \
--warmup-lr 1e-6 --weight-decay 1e-5 --drop 0.2 --drop-path 0.2 --model-ema \
--model-ema-decay 0.9999 --aa rand-m9-mstd0.5 --remode pixel --reprob 0.2 --amp --lr .064 \
--lr-noise 0.42 0.9"
lacks "--model: unknown value 'mixnet_xl'" \
    "./distributed_train.sh 2 --data-dir /imagenet/ --model mixnet_xl -b 128 --sched step \
--epochs 450 --decay-epochs 2.4 --decay-rate .969 --opt rmsproptf --opt-eps .001 -j 8 \
--warmup-lr 1e-6 --weight-decay 1e-5 --drop 0.3 --drop-path 0.2 --model-ema \
--model-ema-decay 0.9999 --aa rand-m9-mstd0.5 --remode pixel --reprob 0.3 --amp --lr .016 \
--dist-bn reduce"
lacks "--model: unknown value 'efficientnet_es'" \
    "./distributed_train.sh 8 --data-dir /imagenet --model efficientnet_es -b 128 --sched step \
--epochs 450 --decay-epochs 2.4 --decay-rate .97 --opt rmsproptf --opt-eps .001 -j 8 \
--warmup-lr 1e-6 --weight-decay 1e-5 --drop 0.2 --drop-path 0.2  --aa rand-m9-mstd0.5 \
--remode pixel --reprob 0.2 --amp --lr .064"

# ---- recipes against the lines they are of ----------------------------------

# as_published NAME REGEX WHY: the settings of a recipe are those of the line in
# $tmp/NAME, but for the names in REGEX.
as_published()
{
    run "$imagenet" train --dry-run --data "$data" --config "$recipes/$1.conf"
    sed -n "s/^\\($2\\) = .*//; /./p" "$tmp/$1" |
        grep -v -E '^(config|output) = ' >"$tmp/line"
    sed -n "s/^\\($2\\) = .*//; /./p" "$tmp/out" |
        grep -v -E '^(config|output) = ' | diff "$tmp/line" - >"$tmp/err"
    [ ! -s "$tmp/err" ] && [ "$(wc -l <"$tmp/line")" -gt 100 ]
    point $? "recipe $1 is torchvision's line, but for $3"
}

for model in resnet18 resnet50; do
    works "model $model" "torchrun --nproc_per_node=8 train.py --model $model"
    cp "$tmp/out" "$tmp/$model"
    as_published $model 'val-crop-size\|lr-warmup-decay' \
        "a size that is 224 by default, and a warm-up that there is not"
done
# torchvision names constants of rmsprop in its code, where no option sets them.
as_published mobilenet_v3_large \
    'val-crop-size\|lr-warmup-decay\|opt-betas\|opt-eps' \
    "the same, and constants of rmsprop that are no options there"
# Those of its default schedule, which has no effect on this one.
as_published resnet50_v2 'decay-epochs\|decay-rate' "decays of a cosine"
as_published efficientnet_v2_s 'decay-epochs\|decay-rate' "decays of a cosine"

# ---- options of both --------------------------------------------------------

# runs "NAME VALUE..." ARGUMENT...
runs()
{
    want=$1
    shift
    # shellcheck disable=SC2046
    run "$imagenet" train --dry-run $(backend_for "$@") --data-path "$data" "$@"
    [ $rc = 0 ] && are "$want"
    point $? "$* is $want"
}

runs "batch-size 256" --model resnet18
runs "batch-size 96 world-size 1" --nproc_per_node=3 -b 32
runs "model-ema-decay 0.9998" --model-ema
runs "model-ema-decay 0.999" --model-ema --model-ema-decay 0.999
# The root of 1 - 0.001 * 64 * 2 / 4, which is for two steps.
runs "model-ema-decay 0.98386991 model-ema-steps 0" --model-ema \
    --model-ema-decay 0.999 --model-ema-steps 2 -b 64 --epochs 4
runs "sched exponential decay-rate 0.97 warmup-epochs 5" \
    --lr-scheduler exponentiallr --lr-gamma 0.97 --lr-warmup-epochs 5 \
    --lr-warmup-decay 0.01 --epochs 10
runs "clip-grad 1 opt adamw" --opt adamw --lr 0.001 --clip-grad-norm 1
runs "opt nesterov momentum 0.8" --opt sgd_nesterov --momentum 0.8
runs "opt momentum momentum 0.9" --opt sgd --momentum 0.9
runs "scale 0.08,1 ratio 0.75,1.3333" --scale 0.08 1.0 --ratio 0.75 1.3333
runs "sched multistep decay-milestones 30,60,80" --sched multistep \
    --decay-milestones 30 60 80 --decay-rate 0.1 --epochs 100
runs "sched plateau patience-epochs 3 cooldown-epochs 1 min-lr 1e-05" \
    --sched plateau --patience-epochs 3 --cooldown-epochs 1 --dr 0.5 \
    --min-lr 1e-5
runs "sched polynomial warmup-prefix false" --sched poly
run "$imagenet" train --dry-run "$data" --cache-dataset
exits 2 "torchvision's cache of lists of files is refused"
complains "--cache-dataset: .* --cache keeps decoded images" "with what there is"
runs "loss bce bce-target-thresh 0.2" --bce-loss --bce-target-thresh 0.2
runs "loss focal focal-gamma 1.5 focal-alpha -1" \
    --loss focal --focal-gamma 1.5 --focal-alpha -1
runs "opt adamw lookahead 6" --opt lookahead_adamw --lr 1e-3
runs "opt nadamw clip-grad 0.01 clip-mode agc" \
    --opt nadamw --lr 1e-3 --clip-grad 0.01 --clip-mode agc
runs "opt adamw opt-betas 0.9,0.98 clip-grad 1 clip-mode norm" \
    --opt adamw --opt-betas 0.9 0.98 --clip-grad 1.0 --clip-mode norm \
    --channels-last --pin-mem
runs "sync-bn true lanes 2" --sync-bn --sub-batch 15 -b 30
runs "color-jitter 0.4,0.4,0.4,0 mean 0.5,0.5,0.5 interpolation bicubic" \
    --color-jitter 0.4 --mean 0.5 0.5 0.5 --std 0.5 0.5 0.5 \
    --interpolation bicubic --crop-pct 0.95 --img-size 160 --vflip 0.5
runs "lr-base 0.05 lr-base-size 256 lr 0.05 dtype bf16 keep-last 2" \
    --lr-base 0.05 -b 256 --amp --amp-dtype bfloat16 --checkpoint-hist 2
runs "lr-noise 0.42,0.9 lr-noise-pct 0.67" --lr-noise 0.42 0.9
runs "lr-noise 0.4,1 lr-noise-pct 0.5" --lr-noise 0.4 --lr-noise-pct 0.5
runs "device auto tta none log wandb" --device cuda --tta 0 --log-wandb \
    --eval-metric top1 --crop-mode center --mixup-mode batch --dist-bn reduce \
    --resize-mode shortest --grad-accum-steps 1 --start-epoch 0
runs "device cpu" --device cpu
runs "augment none" --no-aug
runs "hflip 0" --no-flip
runs "drop-path 0.1" --model efficientnet_b0 --drop-connect 0.1

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

refuses "--grad-accum-steps: .*--sub-batch" --grad-accum-steps 4
refuses "--mixup-mode: .*same share: batch" --mixup-mode elem
refuses "--dist-bn: .*: reduce" --dist-bn broadcast
refuses "--dist-bn: .*: reduce" --dist-bn ""
refuses "--eval-metric: .*top-1" --eval-metric loss
refuses "--dist-url: .*mpirun" --dist-url env://
refuses "--world-size has no effect.*--batch-size" --world-size 8
refuses "--model-ema-steps has no effect.*--model-ema" --model-ema-steps 32
refuses "--ratio: .*list" --ratio 0.75
done_testing
