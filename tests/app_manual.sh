#!/bin/sh
# app_manual.sh - the commands of the manual's pages, as a reader copies them
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# tests/test_commands.sh has those that need root, a network or a GPU.
. "$srcdir/tests/tap.sh"
export DDP_MODULE_DIR="${DDP_MODULE_DIR:-$builddir/.libs}"
PATH=$builddir/bin:$PATH
cd "$tmp" || exit 99

# page NAME [SED]: run its commands, which are indented by four spaces, until one
# fails; SED puts something in the place of a reader's own names
page()
{
    sed -n -E '/^```/,/^```/!s/^    //p' "$srcdir/$1.md" |
        grep -v -E '^(\./quickstart|export PATH|[{#])' | sed -E "$2" >page.sh
    grep -q imagenet page.sh
    point $? "$1.md has commands"
    run sh -e -x ./page.sh
    exits 0 "and they succeed"
}

# top1 RUN: of its last epoch
top1()
{
    tail -n 1 "$1/summary.csv" | cut -d, -f4
}

page docs/start
holds "$(top1 run) > 90" "what start.md trains has learned ($(top1 run) %)"
[ "$(grep -c 'ILSVRC2012_val.*%' out)" = 150 ]
point $? "and classifies all images"

page docs/finetune
holds "$(top1 tuned) > $(top1 fresh) && $(top1 tuned) > 90" \
    "trained weights help ($(top1 fresh) % without, $(top1 tuned) % with)"

page docs/reproducibility
[ -s one/weights.safetensors ] && [ "$(wc -l <two/metrics.jsonl)" -ge 6 ]
point $? "both runs have made their steps"

# ---- pages that stand for longer runs ----

# The same commands with a smaller network, and fewer and smaller images: the
# last option of a name counts.  Each run starts from scratch.
mkdir small tour
cat >small/imagenet <<'END'
#!/bin/sh
imagenet=$builddir/bin/imagenet
case "$1 $2" in
"data synth")
    exec "$imagenet" "$@" --classes 2 --train-count 24 --val-count 8
    ;;
train*)
    case "$*" in *"--output RUN"*) rm -rf RUN ;; esac
    net="--model resnet9 --img-size 16 --val-resize-size 16"
    case "$*" in *cifar10-94*) net= ;; esac # its groups are by name
    exec "$imagenet" "$@" $net --width 8 --epochs 1 --batch-size 8 \
        --sub-batch 4 --lanes 2
    ;;
*) exec "$imagenet" "$@" ;;
esac
END
# Launchers that start one process.
cat >small/srun <<'END'
#!/bin/sh
while [ "$1" != imagenet ]; do shift; done
exec "$@"
END
cp small/srun small/mpirun
chmod +x small/*
PATH=$tmp/small:$PATH
cd tour || exit 99
mkdir -p photos/train/cat photos/train/dog photos/val/cat photos/val/dog folder
i=0
for picture in ../pictures/ILSVRC/Data/CLS-LOC/val/*; do
    i=$((i + 1))
    case $i in
    [1-8]) cp "$picture" photos/train/cat/$i.jpg ;;
    9 | 1[0-6]) cp "$picture" photos/train/dog/$i.jpg ;;
    1[78]) cp "$picture" photos/val/cat/$i.jpg ;;
    19 | 20) cp "$picture" photos/val/dog/$i.jpg ;;
    21) cp "$picture" photo.jpg && cp "$picture" new.jpg ;;
    2[23]) cp "$picture" folder ;;
    esac
done

page README 's,^build/bin/,,; /^(photos|cc|cd build)/d'
[ "$(grep -c '^new.jpg: .*%' ../out)" = 1 ]
point $? "README.md classifies its image"

cp RUN/weights.safetensors resnet50.safetensors
# Recipes go by their names once they are installed.  A run without --output has
# the second when it began as its name, and these runs are short.
command -v rsvg-convert >/dev/null || no_png='/ --png /d'
command -v dot >/dev/null || no_svg='; / --graph step.svg/d'
page docs/training "${no_png-}"'
    /^imagenet train \.\.\./s/\.\.\./--data DIR/
    s/cifar10/DIR/; s/cifar-run/RUN/; /^wandb /d; /^MLFLOW/d; /^contrib/d'"${no_svg-}"'
    /^ddp-bench calibrate/s/$/ --img-size 32 --sub-batch 2 --steps 1 --skip 1/
    s,--config (resnet50|cifar10-94),--config "$srcdir/recipes/\1.conf",
    s/^.*--config old-run/cp -r RUN old-run; &/; /--config/s/^/sleep 1; /
    s/^imagenet report RUN1 RUN2/cp -r RUN RUN1; cp -r RUN RUN2; &/'
for file in RUN/weights.safetensors FILE T.csv net.onnx small.safetensors \
    step.dot; do
    [ -s $file ]
    point $? "training.md leaves $file"
done

page docs/weights
[ -s net.onnx ]
point $? "weights.md exports a network"

# What needs no server; "..." stands for options that others have shown.
cp -r photos imagenet
page docs/data '/s3:|https:|\.\.\.$/d; /^python3/,/NAME train/d
    /^[a-z_]+ = |^\[|^path,|^birds/d; s/^imagenet train data/imagenet train photos/
    s,disk:/scratch/,disk:,
    s/^cd imagenet.*/(&)/; s/^imagenet data pack.*resize/rm -r packed; &/'
[ -s imagenet/index.txt ] && [ -s packed/train/index.csv ]
point $? "data.md lists and packs images"

page docs/nodes '/^imagenet train:/d; /^ *ddprun:/d; s/imagenet train \.\.\./imagenet train --data DIR/'

done_testing
