#!/bin/sh
# app_bench.sh - bench train and bench load print one line of JSON, bench roof,
# bench sweep and bench report a table
# SPDX-License-Identifier: LGPL-2.1-or-later
. "$srcdir/tests/tap.sh"
python=${DDP_PYTHON:-/usr/bin/python3}

# number NAME: its value in the line
number()
{
    tr ',{}' '[\n*]' <"$tmp/out" | sed -n "s/^\"$1\"://p" | grep . || echo 0
}

# is_json: one line, which Python reads where there is one
is_json()
{
    [ "$(wc -l <"$tmp/out")" = 1 ] || return 1
    command -v python3 >/dev/null || return 0
    python3 -c 'import json, sys; json.loads(sys.stdin.read())' <"$tmp/out"
}

keys="start_s img_per_s step_ms peak_share tasks sched_share peak_rss_mib"
has_keys()
{
    for k in $keys; do
        grep -q "\"$k\":" "$tmp/out" || { echo "# no $k" && return 1; }
    done
}

run "$bench" train --model resnet18 --small-stem --img-size 16 --classes 10 \
    --sub-batch 4 --lanes 2 --batch-size 16 --steps 3
exits 0 "bench train succeeds"
is_json
point $? "it prints one line of JSON"
has_keys
point $? "with all keys"
holds "$(number img_per_s) > 0 && $(number tasks) > 1" "speed and tasks"
says '"loss":[0-9.]+,"weights":"[0-9a-f]{8}",' "the last loss, and a CRC"
# img_per_s is the batch over step_ms; both are rounded to 3 decimals.
ratio=$(awk "BEGIN { print $(number img_per_s) * $(number step_ms) / 16000 }")
holds "$ratio > 0.99 && $ratio < 1.01" "images a second fit the step time"
# A clock that rises after the peak was measured can lift a share above 1, not
# above 1.5; this network is too small to come near.
holds "$(number peak_share) > 0 && $(number peak_share) < 1.5" \
    "a share of the peak ($(number peak_share))"
holds "$(number peak_rss_mib) > 1" "memory"

run "$bench" train --model resnet18 --small-stem --img-size 16 --classes 10 \
    --sub-batch 4 --steps 1 --input f32 --inspect
is_json
point $? "f32 input, and a table of layers that is not on stdout"
complains "conv1" "but on stderr"

run "$bench" train --model resnet18 --small-stem --img-size 16 --classes 10 \
    --sub-batch 4 --skip 1 --steps 2 --trace "$tmp/trace"
exits 0 "a trace"
[ "$(grep -o '"step":[0-9]*' "$tmp/trace" | sort -u | tr -d '\n')" = \
    '"step":1"step":2' ]
point $? "of the tasks of the steps that are measured"

# On CPUs alone, a norm of 8 MiB or more leaves it to the depthwise convolution
# behind it to normalise, forward and for its weight gradient.
run env STARPU_NCUDA=0 "$bench" train --model mobilenet_v2 --sub-batch 2 --lanes 1 \
    --skip 1 --steps 1 --trace "$tmp/trace"
want=0
grep -q 'oneDNN.* loops AVX-512' "$tmp/out" && want=3
[ "$(grep -Eo '"name":"(bn_stat|norm_conv_(fwd|bwd_w))"' "$tmp/trace" |
    sort -u | wc -l)" = $want ]
point $? "$want kinds of tasks of norms that convolutions complete"

# The table's parts are a step, each rounded to a microsecond.  Backward computes
# two gradients where forward computes one result; what else the machine does
# may slow either down.
run "$bench" train --model resnet18 --small-stem --img-size 16 --classes 10 \
    --sub-batch 4 --lanes 2 --steps 3 --table
exits 0 "a table"
awk -F '|' 'NR > 2 && NF == 5 {
    gsub(/^ +| +$/, "", $2); if ($2 == "step") step = $3; else sum += $3
    ms[$2] = $3; rows++ }
    END { print rows, sum, step, ms["forward"], ms["backward"]
        exit !(rows == 8 && sum > step - 0.008 && sum < step + 0.008 &&
            ms["forward"] > 0 && ms["backward"] > ms["forward"] / 2) }' \
    "$tmp/out" >"$tmp/sum"
point $? "whose parts are the time of a step: $(cat "$tmp/sum")"

# A multiply-add is 2: 4,089,184,256 of them in forward (torchvision), thrice as
# many in a step, but for the gradient of the images, 64 112^2 3 7^2.
# The first steps of one worker: a line for each call, also of ResNet-9's 8
# convolutions forward in each of 2 steps.
run env DDP_PROFILE="$tmp/profile.csv" STARPU_NCPU=1 "$bench" train \
    --model resnet9 --img-size 32 --classes 10 --sub-batch 2 --steps 1 --skip 1
exits 0 "a profile of CPU workers"
[ "$(head -n 1 "$tmp/profile.csv")" = \
    worker,start_ms,ms,operation,samples,type,shapes ]
point $? "its columns"
[ "$(grep -c ',conv_fwd,2,f32,"' "$tmp/profile.csv")" = 16 ]
point $? "a line for each call"
run env DDP_PROFILE=/nowhere/profile.csv "$bench" train --model mlp
exits 74 "a profile that cannot be written is an error"
complains 'DDP_PROFILE: cannot write /nowhere/profile\.csv' "with the file"

# Times of operations, where imagenet looks for them without an option.
small="--model resnet9 --img-size 32 --sub-batch 4"
plan()
{
    # shellcheck disable=SC2086
    run env XDG_CACHE_HOME="$tmp/cache" "$imagenet" inspect $small --lanes 1 "$@"
}
plan
says "^time: not known: ddp-bench calibrate $small --dtype f32 measures that$" \
    "without them the time of a step is not known"
# shellcheck disable=SC2086
run env XDG_CACHE_HOME="$tmp/cache" "$bench" calibrate $small --workers 1 --steps 2 \
    --skip 1
exits 0 "bench calibrate succeeds"
times=$(sed -n 's/.*"file":"\([^"]*\)".*/\1/p' "$tmp/out")
[ "${times#"$tmp/cache/libddp/times/"}" != "$times" ] && [ -s "$times" ]
point $? "it says where the times are: $times"
step=$(number step_ms)
plan
planned=$(sed -n 's/^time: about \([0-9]*\) ms a step.*csv$/\1/p' "$tmp/out")
holds "${planned:-0} > 0.4 * $step && ${planned:-0} < 2.5 * $step" \
    "the plan has $planned ms a step, $step were measured"
plan --sub-batch 5
says "^  [0-9]+ of [0-9]+ operations are not there: .*--sub-batch 5 .*measures that$" \
    "operations of another size are not there, and how they would be is said"
run env -u XDG_CACHE_HOME -u HOME "$bench" calibrate
exits 74 "without a home folder a file has to be named"

run "$bench" roof --sub-batch 256
exits 0 "bench roof succeeds"
says '^all,,,"1 x NVIDIA H200, [^"]*",[0-9]*,[0-9.]*,6220\.564,,[0-9.]*,,$' \
    "resnet50: the sum of a step's FLOPs"
# 256 56^2 (64 + 256) values of 2 bytes, 64 256 weights of 4: at 4.3 TB/s.
says '^conv_fwd,256,bf16,"56x56x64 56x56x256 by 1x1/1",4,490.062,26.307,bytes,119.50,,$' \
    "a convolution's bytes, FLOPs and limit"
says '^conv_bwd_x,256,bf16,"56x56x64 56x56x256 by 1x1/1, added",2,' \
    "gradients are added where they are computed"
[ "$(cut -d , -f 1 "$tmp/out" | grep -cx acc)" = 0 ]
point $? "not in a pass of their own"

# Of one image with one pixel batch norm has no variance.
csv=$tmp/sweep.csv
run "$bench" sweep --model resnet18 --model resnet9 --img-sizes 16,64 \
    --sub-batches 1,4 --point-seconds 0.2 --output "$csv"
exits 0 "bench sweep succeeds"
says '^resnet18: img/s, GFLOP/s, floor$' "a table of the one network"
says '^ +64( +[0-9.]+ +[0-9.]+ +[0-9]+ %[* ]){2}$' "with a cell for each sub-batch"
says '^cliffs: [0-9]+$' "and the number of cliffs"
[ "$(grep -c . "$csv")" = 9 ]
point $? "the CSV has a header, and a line for each point"
grep -q '^resnet18,16,1,,,,,the network does not take such images$' "$csv"
point $? "also for one that cannot be, which says why"
# 1,813,561,344 multiply-adds of convolutions at 224 pixels (torchvision), (64 /
# 224)^2 of them here, and 512,000; 2 FLOPs each, thrice in a step, but for the
# gradient of the images, 64 32^2 3 7^2: 0.8721 GFLOP.
rate=$(awk -F , '$1 == "resnet18" && $2 == 64 && $3 == 4 { print $5 / $4 }' \
    "$csv")
holds "$rate > 0.871 && $rate < 0.873" "GFLOP/s are those of the images ($rate)"
# The mark, from the figures: at 64 pixels each point has one neighbour.
awk -F , 'NR > 1 && $2 == 64 {
        rate[$1, $3] = $5; floor[$1, $3] = $6; cliff[$1, $3] = $7
    }
    function wrong(m, a, b) {
        return rate[m, a] && rate[m, b] &&
               cliff[m, a] != (rate[m, a] < rate[m, b] / 2 &&
                               floor[m, a] < floor[m, b] / 2)
    }
    END { exit wrong("resnet18", 1, 4) || wrong("resnet18", 4, 1) }' "$csv"
point $? "a cliff is below half of its neighbour in GFLOP/s and floor"
run "$bench" sweep --model resnet9 --img-sizes 32 --sub-batches 1,64 \
    --point-seconds 0.01 --output "$csv"
grep -q '^resnet9,32,64,,,,,a step would take too long$' "$csv"
point $? "points that would take too long are left out"
run "$bench" sweep --model resnet9 --img-sizes 64,96 --sub-batches 8 \
    --seconds 1 --point-seconds 1.2 --output "$csv"
grep -q '^resnet9,96,8,,,,,the time limit was reached$' "$csv"
point $? "no point begins after the time limit"
run "$bench" sweep --model resnet
exits 2 "an unknown network is refused"

# A peer that is 4 times as fast in f32 and does not have bf16.
cat >"$tmp/peer" <<'END'
echo "$*" >>"$0.args"
[ "$4" = bf16 ] || echo 200
END
run env STARPU_NCPU=1 "$bench" report --model resnet9 --point-seconds 0.01 \
    --rounds 1 --peer "sh $tmp/peer"
exits 0 "bench report succeeds"
types="f32 bf16"
grep -q "this processor has no bf16" "$tmp/err" && types=f32
# shellcheck disable=SC2086
printf 'resnet9 32 64 %s 10 1 0.01\n' $types | diff - "$tmp/peer.args"
point $? "it asks the peer for the same steps"
awk -F ' *[|] *' -v types="$types" '$2 == "resnet9" && $5 == "f32" {
        n++; bad += NF != 12 || $8 !~ /^[1-9][0-9]* %$/ || $9 !~ /^[1-9][0-9]* %$/
        bad += $10 != "200.0" || $11 - $6 / 200 > 0.006 ||
            $11 - $6 / 200 < -0.006 }
    $2 == "resnet9" && $5 == "bf16" { n++; bad += $10 != "-" || $11 != "-" }
    END { exit n != split(types, t, " ") || bad }' "$tmp/out"
point $? "and prints $types, and their ratio"
# Convolutions and the dense layer of resnet9 at 32 pixels, by hand: 379,261,952
# multiply-adds, 3 times in a step but once for 1,769,472 of the images' gradient.
# A round measures the peak, too: the last line has the lowest and the highest one.
# The report rounds peaks and the share to whole numbers and img/s to 0.1.
awk -F '[| ]+' '$2 == "resnet9" && $5 == "f32" { img = $6; share = $7 }
    / workers: / { least = $3; most = $5 }
    END {
        want = 100 * 6 * img * (379261952 - 589824) / 1e9
        off = 0.51 + want / least * (0.51 / least + 0.051 / img)
        exit !(want > 0 && share < want / least + off && share > want / most - off)
    }' "$tmp/out"
point $? "the share of the peak is that of its multiply-adds"
# A peer whose speed doubles from call to call: the medians of two rounds.
cat >"$tmp/rising" <<'END'
n=$(cat "$0.n" 2>/dev/null)
echo $((2 * ${n:-50})) | tee "$0.n"
END
run env STARPU_NCPU=1 "$bench" report --model mlp --point-seconds 0.01 --rounds 2 \
    --peer "sh $tmp/rising"
[ "$(cat "$tmp/rising.n")" = 200 ] && grep -q '^| mlp .*| 150\.0 |' "$tmp/out"
point $? "each of its rounds asks the peer, and the medians count"
run env STARPU_NCPU=1 ONEDNN_MAX_CPU_ISA=AVX2 "$bench" report --model resnet9 \
    --point-seconds 0.01 --rounds 1
exits 0 "bench report needs no bf16"
complains "this processor has no bf16" "but says that it lacks it"
[ "$(grep '^| resnet9 ' "$tmp/out" | cut -d'|' -f5)" = " f32 " ]
point $? "and has the line in f32"
# At 64 pixels one core trains on fewer than 200 images a second.
run env STARPU_NCPU=1 "$bench" sweep --model resnet9 --img-sizes 64 \
    --sub-batches 2 --point-seconds 0.01 --peer "sh $tmp/peer" --output "$csv"
exits 0 "bench sweep has a peer, too"
says '^ +64 +[0-9.]+ +[0-9.]+ +[0-9]+ % +0\.[0-9]{2}<$' "which is faster at this point"
says '^below 1\.2 times the peer: 1$' "so that it counts"
grep -q '^resnet9,64,2,[0-9.]*,[0-9.]*,[0-9.]*,0,,200\.00$' "$csv"
point $? "its speed is in the CSV"
run "$bench" report --model resnet
exits 2 "an unknown network is refused"
if "$python" -c 'import importlib.util, sys
sys.exit(not importlib.util.find_spec("torchvision"))'; then
    # One process, as PyTorch takes long to start: each call prints into a file.
    "$python" - "$srcdir/contrib/bench-torch" "$tmp" <<'END' 2>"$tmp/err" || exit 99
import contextlib, os, runpy, sys
program, top = sys.argv[1:]
for model, dtype in (("resnet18", "f32"), ("airbench", "bf16"),
                     ("resnet9", "f32"), ("resnet8", "f32")):
    sys.argv = [program, model, "32", "2", dtype, "10", "1", "0.1"]
    with open(os.path.join(top, model), "w") as f, contextlib.redirect_stdout(f):
        try:
            runpy.run_path(program, run_name="__main__")
        except SystemExit:
            pass

import torch, torchvision
torch.manual_seed(0)
for split in "train", "test":
    for c in range(3):
        folder = os.path.join(top, "cifar", split, str(c))
        os.makedirs(folder)
        for i in range(12):
            x = torch.randint(85 * c, 85 * (c + 1), (3, 32, 32))
            torchvision.io.write_jpeg(x.byte(), os.path.join(folder, f"{i}.jpg"))
END
    for model in resnet18 airbench resnet9; do
        cp "$tmp/$model" "$tmp/out"
        says '^[0-9.]+$' "PyTorch's images per second, $model"
    done
    [ -e "$tmp/resnet8" ] && [ ! -s "$tmp/resnet8" ]
    point $? "nothing for what it does not have"
    run "$python" "$srcdir/contrib/cifar-torch" "$tmp/cifar" --epochs 2 \
        --warmup-epochs 1 --width 8 --batch-size 12 --sub-batch 6 --dtype f32 \
        --mixup 0.2 --aa ta_wide --threads 1
    exits 0 "the peer of the recipe for CIFAR-10 trains"
    [ "$(grep -c '"epoch": .*"loss": [0-9.]*}' "$tmp/out")" = 2 ]
    point $? "each epoch has its loss"
    holds "$(number top1) > 0 && $(number top1) <= 100" \
        "and the test images their accuracy"
else
    skip 7 "no torchvision"
fi

# Means 90.2 and 90.3, deviations of 0.2: sqrt(0.04 / 3 + 0.04 / 3) times 2.78, which
# is Student's t of 4 degrees of freedom.
for kind in plain mixed; do
    for seed in 1 2 3; do
        for by in libddp PyTorch; do
            echo "{\"kind\": \"$kind\", \"seed\": $seed, \"by\": \"$by\"," \
                "\"epochs\": 6, \"options\": []," \
                "\"top1\": $((898 + 2 * seed + (${#by} - 6)))e-1}"
        done
    done
done >"$tmp/known"
run python3 "$srcdir/contrib/cifar-race" --results "$tmp/known" "$tmp"
exits 0 "runs that are within noise"
says 'plain, .*libddp 90.20 %, PyTorch 90.30 %, difference -0.10, noise 0.45' \
    "their means, difference and noise"
sed '/mixed.*PyTorch/s/: 9[0-9]*e-1/: 920e-1/' "$tmp/known" >"$tmp/other"
run python3 "$srcdir/contrib/cifar-race" --results "$tmp/other" "$tmp"
exits 1 "runs that are not"

"$imagenet" data synth --output "$tmp/data" --classes 2 --train-count 8 \
    --val-count 2 --size 48 >/dev/null || exit 99
run "$bench" load --data "$tmp/data" --seconds 0.3 --img-size 32 --threads 2
exits 0 "bench load succeeds"
is_json
point $? "it prints one line of JSON"
has_keys
point $? "with all keys"
holds "$(number img_per_s_per_core) > 0 && $(number bad) == 0" \
    "images a second and core"
run "$bench" load --data "$tmp/data" --seconds 0.3 --img-size 32 --aa ta_wide
says '"aa":"ta_wide",.*"img_per_s_per_core":[0-9]' "with TrivialAugment"
run "$bench" load --data "$tmp/data" --aa ta_wild
exits 2 "an unknown policy is refused"

done_testing
