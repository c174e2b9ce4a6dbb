#!/bin/sh
# app_board.sh - imagenet train --log, read by TensorBoard and W&B, and what
# terminals show
# SPDX-License-Identifier: LGPL-2.1-or-later
. "$srcdir/tests/tap.sh"

data=$tmp/data
"$imagenet" data synth --output "$data" --classes 3 --train-count 24 \
    --val-count 9 --size 24 >/dev/null || exit 99
net="--data $data --model mlp --hidden 8 --img-size 8 -b 8 --sub-batch 4
    --opt adamw --ckpt-every 1it --model-ema-decay 0.9"
python=${DDP_PYTHON:-/usr/bin/python3}

# read_board RUN: scalars in $tmp/board; steps twice would be there twice
read_board()
{
    "$python" "$srcdir/tests/oracle_board.py" "$1/tb" >"$tmp/board" \
        2>"$tmp/err"
    rc=$?
}

# of_metrics RUN: the same from metrics.jsonl: loss and rate of steps, and the
# evaluations
of_metrics()
{
    "$python" - "$1/metrics.jsonl" <<'END'
import json, sys

def put(tag, step, v):
    print(tag, step, "%.9g" % v)

for line in open(sys.argv[1]):
    o = json.loads(line)
    if o["type"] == "step":
        put("loss/train", o["step"], o["loss"])
        put("acc/top1_train", o["step"], o["top1"])
    elif o["type"] == "eval":
        kind = "ema" if o["averages"] else "val"
        put("loss/" + kind, o["step"], o["loss"])
        put("acc/top1_" + kind, o["step"], o["top1"])
END
}

# read_wandb RUN: what W&B reads in $tmp/wandb
read_wandb()
{
    "$python" "$srcdir/tests/oracle_wandb.py" \
        "$1"/wandb/offline-run-*-????????/run-*.wandb >"$tmp/wandb" \
        2>"$tmp/err"
}

# read_mlflow RUN: what MLflow reads in $tmp/mlflow
read_mlflow()
{
    "$python" "$srcdir/tests/oracle_mlflow.py" "$1/mlruns" >"$tmp/mlflow" \
        2>"$tmp/err"
}

# near: $tmp/got has the values in $tmp/want.  An f32 of TensorBoard is half a unit
# of its last place away, 6e-8 of it, and the record's 9 digits 5e-9; to round the
# latter to f32 could take it to the next one.
near()
{
    [ -s "$tmp/got" ] && paste -d ' ' "$tmp/got" "$tmp/want" |
        awk '{ d = $3 - $6; if (d < 0) d = -d
            if ($1 != $4 || $2 != $5 || d > 7e-8 * $6) { print; bad = 1 } }
            END { exit bad }' >"$tmp/out"
}

# same_rows FILE: its rows have the values in $tmp/want
same_rows()
{
    grep -E '^row [0-9]+ (loss/|acc/top1_)' "$1" |
        awk '{ print $3, $2, $4 }' | sort >"$tmp/got"
    near
}

# each_once FILE [STEPS]: it has a row for each of so many steps, or 150
each_once()
{
    sed -n 's/^row \([0-9]*\) loss\/train .*/\1/p' "$1" | sort -n >"$tmp/got"
    seq "${2:-150}" | cmp -s - "$tmp/got"
}

# lacks FILE LINE...: names lines that no line of the file begins with
lacks()
{
    file=$1
    shift
    for line; do
        grep -q "^$line" "$file" || echo ", but no $line"
    done >"$tmp/lacks"
    [ ! -s "$tmp/lacks" ]
}

# compare RUN: TensorBoard's values are the record's
compare()
{
    read_board "$1"
    grep -E '^(loss/|acc/top1_)' "$tmp/board" | sort >"$tmp/got"
    of_metrics "$1" | sort >"$tmp/want"
    near
}

# shellcheck disable=SC2086
run "$imagenet" train $net --epochs 3 --log csv,tensorboard,wandb,mlflow --weight-norm \
    --log-histograms 3 --output "$tmp/whole"
exits 0 "a run with event files succeeds"
says "^epoch=3/3 train_loss=.* eval_loss=.* best_step=[369] best_top1=.* time=" \
    "it has a line for each epoch"
best=$(value best)
[ -s "$best" ] && [ "$(value last)" = "$tmp/whole/weights.safetensors" ]
point $? "the final line has the files of the best and last weights: $best"
top1=$(value best_top1)
run "$imagenet" eval --data "$data" --weights "$best"
[ "$(value top1)" = "$top1" ]
point $? "the best ones are as good as it says: $top1"
[ "$(find "$tmp/whole/tb" -name 'events.out.tfevents.*' | wc -l)" = 1 ]
point $? "there is an event file"

"$python" - "$tmp/whole" >"$tmp/norm" 2>"$tmp/err" <<'END'
import json, struct, sys

data = open(sys.argv[1] + "/weights.safetensors", "rb").read()
head = 8 + struct.unpack("<Q", data[:8])[0]
want = sum(v * v for v, in struct.iter_unpack("<f", data[head:])) ** 0.5
got = [json.loads(line) for line in open(sys.argv[1] + "/metrics.jsonl")]
got = [o["norm"] for o in got if o["type"] == "weights"]
print(len(got), got[-1], want)
sys.exit(len(got) != 3 or abs(got[-1] - want) > 1e-8 * want)
END
point $? "the norm of the weights is that of the file: $(cat "$tmp/norm")"

if "$python" -c 'import tensorboard' 2>/dev/null; then
    compare "$tmp/whole"
    point $? "TensorBoard reads the values of metrics.jsonl"
    grep -q "^weight_norm 9 " "$tmp/board"
    point $? "and the norm of the weights"
    for tag in lr gradient_norm throughput/images_per_s memory/peak_mib; do
        [ "$(grep -c "^$tag " "$tmp/board")" = 9 ] || echo $tag
    done >"$tmp/lacks"
    [ ! -s "$tmp/lacks" ]
    point $? "and the others$(sed 's/^/, but no /' "$tmp/lacks")"
    grep -q '^set model string_value mlp$' "$tmp/board" &&
        grep -q '^set sub-batch number_value 4.0$' "$tmp/board" &&
        grep -q '^end 1$' "$tmp/board"
    point $? "with the settings and how it ended"

    # Histograms of the whole run's weights; norms of weights and gradients.
    "$python" - "$tmp/whole" "$tmp/board" >"$tmp/out" 2>"$tmp/err" <<'END'
import json, struct, sys

data = open(sys.argv[1] + "/weights.safetensors", "rb").read()
begin = 8 + struct.unpack("<Q", data[:8])[0]
tensors = json.loads(data[8:begin])
tensors.pop("__metadata__", None)
found, squares = set(), {}
for line in open(sys.argv[2]):
    word = line.split()
    if word[0] != "histogram":
        continue
    kind, name = word[1].split("/", 1)
    step, low, high, count = int(word[2]), float(word[3]), float(word[4]), 0
    squares.setdefault((kind, step), [0])[0] += float(word[6])
    if kind == "gradients":
        continue
    found.add(name)
    at, end = tensors[name]["data_offsets"]
    v = [x for x, in struct.iter_unpack("<f", data[begin + at:begin + end])]
    assert (low, high) == tuple(float("%.9g" % x) for x in (min(v), max(v)))
    for limit, n in (b.split(":") for b in word[7].split(",")):
        # values that are nearer to the limit than it is printed may be in
        # either bin
        count += int(n)
        limit, near = float(limit), 1e-8 * max(-low, high)
        assert (sum(x < limit - near for x in v) <= count
                <= sum(x <= limit + near for x in v)), line
    assert count == len(v) == int(word[5]), line
print(len(found), squares)
metrics = [json.loads(line) for line in open(sys.argv[1] + "/metrics.jsonl")]
norm = {("gradients", o["step"]): o["gradient_norm"] for o in metrics
        if o["type"] == "step"}
norm.update({("weights", o["step"]): o["norm"] for o in metrics
             if o["type"] == "weights"})
assert found == set(tensors), (found, set(tensors))
assert set(squares) == {("weights", 9), ("gradients", 9)}, squares
for key, (total,) in squares.items():
    assert abs(total - norm[key] ** 2) < 1e-5 * total, (key, total, norm[key])
END
    point $? "and histograms with the norms of weights and gradients: $(
        cat "$tmp/out")"
else
    skip 5 "no tensorboard (PyPI)"
fi

# The pages of images, here those of the files; and of graphs: edges as
# torchvision's resnet.py has them; each bn2 also gets the block's input, or what
# downsample makes of it.
if "$python" -c 'import tensorboard' 2>/dev/null; then
    "$python" - "$tmp/square" <<'END'
import os, sys
import PIL.Image

for i in range(12):
    folder = "%s/train/%s" % (sys.argv[1], "cat dog emu".split()[i % 3])
    os.makedirs(folder, exist_ok=True)
    PIL.Image.frombytes("RGB", (24, 24), bytes(
        (i * 7 + k * k // 5 + k) % 256 for k in range(24 * 24 * 3))).save(
            "%s/%d.png" % (folder, i))
END
    run "$imagenet" train --data "$tmp/square" --model resnet18 --width 8 \
        --small-stem --img-size 24 --scale 1,1 --ratio 1,1 --no-flip -b 8 \
        --steps 1 --no-val --log tensorboard --log-images 5 \
        --output "$tmp/resnet"
    exits 0 "a residual network is trained"
    read_board "$tmp/resnet"
    "$python" - <<'END' >"$tmp/want"
def node(name, op, shape, *inputs):
    print("node", name, op, "-1," + shape, *inputs)

node("input", "Placeholder", "24,24,3")
node("conv1", "conv_fwd", "24,24,8", "input")
node("bn1", "bn_eval", "24,24,8", "conv1")
x = "bn1"
for layer in range(1, 5):
    side, width = 24 >> (layer - 1), 4 << layer
    shape = "%d,%d,%d" % (side, side, width)
    for block in range(2):
        p = "layer%d/%d/" % (layer, block)
        skip = x
        if layer > 1 and block == 0:
            node(p + "downsample/0", "conv_fwd", shape, x)
            node(p + "downsample/1", "bn_eval", shape, p + "downsample/0")
            skip = p + "downsample/1"
        node(p + "conv1", "conv_fwd", shape, x)
        node(p + "bn1", "bn_eval", shape, p + "conv1")
        node(p + "conv2", "conv_fwd", shape, p + "bn1")
        node(p + "bn2", "bn_eval", shape, p + "conv2", skip)
        x = p + "bn2"
node("7", "mean_pool_fwd", "64", x)
node("fc", "dense_fwd", "3", "7")
END
    grep '^node ' "$tmp/board" | diff - "$tmp/want" >"$tmp/out"
    point $? "TensorBoard's page has its graph"
    "$python" - "$tmp/square" "$tmp/board" >"$tmp/out" 2>"$tmp/err" <<'END'
import glob, re, sys
import PIL.Image

# A JPEG file of quality 95 differs by one or two levels in the mean, and another
# image of these by tens.
def far(a, b):
    return sum(abs(x - y) for x, y in zip(a, b)) / len(a)

files = [(PIL.Image.open(path).tobytes(), path.split("/")[-2])
         for path in glob.glob(sys.argv[1] + "/train/*/*.png")]
found = []
for line in open(sys.argv[2]):
    word = line.rstrip("\n").split(" ", 3)
    if word[0] != "image":
        continue
    assert word[1] == "24x24", line
    number, name = re.match(r"first_batch/(\d+) (.*)", word[3]).groups()
    pixels = bytes.fromhex(word[2])
    near = sorted((far(f, pixels), label) for f, label in files)
    assert near[0][0] < 4 and near[1][0] > 8 and name == near[0][1], near[:2]
    found.append(int(number))
print(len(files), sorted(found))
sys.exit(sorted(found) != [0, 1, 2, 3, 4])
END
    point $? "and the first images, under their classes: $(cat "$tmp/out")"
else
    skip 3 "no tensorboard (PyPI)"
fi

if "$python" -c 'import importlib.util as i, sys
sys.exit(not i.find_spec("wandb"))' 2>/dev/null; then
    wandb=1
    read_wandb "$tmp/whole"
    of_metrics "$tmp/whole" | sort >"$tmp/want"
    same_rows "$tmp/wandb"
    point $? "W&B reads the values of metrics.jsonl"
    lacks "$tmp/wandb" 'run [a-z0-9]* whole True True' 'set model mlp' \
        'set sub-batch 4' 'set no-val False' 'row 9 weight_norm 2' \
        "row 9 gradients/3.bias {'_type': 'histogram', 'values': \[1, 0" \
        'summary _step 9' 'summary loss/ema 1' 'exit 0' 'end final'
    point $? "with the settings, a summary and how it ended$(cat "$tmp/lacks")"
else
    wandb=0
    skip 2 "no wandb (PyPI)"
fi

# A copy, for the package marks it.
if "$python" -c 'import wandb.cli.cli' 2>/dev/null; then
    cp -r "$tmp/whole/wandb" "$tmp/offline"
    run "$python" "$srcdir/tests/oracle_wandb_sync.py" "$tmp"/offline/offline-run-*
    exits 0 "wandb sync uploads the run"
    says '^said Syncing: .* done\.$' "without a complaint"
    of_metrics "$tmp/whole" | sort >"$tmp/want"
    cp "$tmp/out" "$tmp/uploaded"
    same_rows "$tmp/uploaded" && each_once "$tmp/uploaded" 9
    point $? "and a server gets the values of metrics.jsonl, once"
    lacks "$tmp/uploaded" 'run [a-z0-9]* project whole' 'set model mlp' \
        'set sub-batch 4' 'summary loss/ema 1' 'file wandb-metadata.json args' \
        "row 9 weights/3.bias {'_type': 'histogram', 'values'" 'exit 0'
    point $? "settings, summary, histograms, files, the end$(cat "$tmp/lacks")"
else
    skip 4 "no wandb with what it needs (PyPI)"
fi

if "$python" -c 'import importlib.util as i, sys
sys.exit(not i.find_spec("mlflow"))' 2>/dev/null; then
    mlflow=1
    read_mlflow "$tmp/whole"
    of_metrics "$tmp/whole" | sort >"$tmp/want"
    same_rows "$tmp/mlflow"
    point $? "MLflow reads the values of metrics.jsonl"
    lacks "$tmp/mlflow" 'run whole FINISHED True' 'set model mlp' \
        'set sub-batch 4' 'set no-val false' 'row 9 weight_norm 2' \
        'last loss/ema 1' 'tag mlflow.source.name .* --epochs 3'
    point $? "with the settings and how it ended$(cat "$tmp/lacks")"
else
    mlflow=0
    skip 2 "no mlflow-skinny (PyPI)"
fi

# Killed, resumed: no step twice.
if "$python" -c 'import tensorboard' 2>/dev/null; then
    # shellcheck disable=SC2086
    "$imagenet" train $net --epochs 50 --log tensorboard,wandb,mlflow \
        --output "$tmp/run" >/dev/null 2>&1 &
    pid=$!
    await grep -qs '"step":20,' "$tmp/run/metrics.jsonl"
    kill -9 $pid 2>/dev/null
    wait $pid 2>/dev/null
    [ $wandb = 0 ] || read_wandb "$tmp/run"
    killed=$?
    [ $mlflow = 0 ] || read_mlflow "$tmp/run"
    found=$?
    # shellcheck disable=SC2086
    run "$imagenet" train $net --epochs 50 --log tensorboard,wandb,mlflow \
        --output "$tmp/run"
    exits 0 "a killed run resumes"
    [ "$(find "$tmp/run/tb" -type f | wc -l)" = 2 ]
    point $? "in another file"
    read_board "$tmp/run"
    sed -n 's/^loss\/train \([0-9]*\) .*/\1/p' "$tmp/board" >"$tmp/got"
    seq 150 | cmp -s - "$tmp/got"
    point $? "TensorBoard has each step once"
    if [ $wandb = 1 ]; then
        [ $killed = 0 ]
        point $? "W&B reads what a killed run has left"
        read_wandb "$tmp/run"
        each_once "$tmp/wandb"
        point $? "and each step once"
    else
        skip 2 "no wandb (PyPI)"
    fi
    if [ $mlflow = 1 ]; then
        [ $found = 0 ]
        point $? "MLflow reads what a killed run has left"
        read_mlflow "$tmp/run" && each_once "$tmp/mlflow" &&
            [ "$(grep -c '^run run FINISHED' "$tmp/mlflow")" = 1 ]
        point $? "and one run with each step once"
    else
        skip 2 "no mlflow-skinny (PyPI)"
    fi
else
    skip 7 "no tensorboard (PyPI)"
fi

: >"$tmp/file"
mkdir "$tmp/bad" && cp "$tmp/file" "$tmp/bad/tb"
# shellcheck disable=SC2086
run "$imagenet" train $net --epochs 1 --log tensorboard --output "$tmp/bad"
exits 0 "a run whose event files cannot be written succeeds"
complains "cannot write .*/tb/events.*the run continues without tensorboard.s files" \
    "and says so"
# shellcheck disable=SC2086
run "$imagenet" train $net --epochs 1 --log csv,comet --output "$tmp/x"
exits 2 "an unknown kind"
complains "unknown 'comet', expected csv, tensorboard, wandb, mlflow" "is named"

# shellcheck disable=SC2086
run "$imagenet" train $net --epochs 2 --quiet --log-every 1 \
    --output "$tmp/quiet"
[ $rc = 0 ] && [ "$(wc -l <"$tmp/out")" = 1 ] && says "^final step=6 " \
    "--quiet prints the final line alone"
[ "$(grep -c '^step=' "$tmp/quiet/log.txt")" = 6 ]
point $? "the log has the others"

# quietly LINES COMMAND...: --quiet leaves so many lines, all of them results
quietly()
{
    want=$1 what=$2
    shift
    run "$imagenet" "$@" --quiet
    [ $rc = 0 ] && [ "$(wc -l <"$tmp/out")" = "$want" ] && [ ! -s "$tmp/err" ]
    point $? "$what --quiet prints $want lines"
}
quietly 1 eval --data "$data" --weights "$tmp/quiet/weights.safetensors"
quietly 2 data check "$data"
quietly 0 report "$tmp/quiet"
quietly 1 export --weights "$tmp/quiet/weights.safetensors" "$tmp/net.onnx"
quietly 1 infer --weights "$tmp/quiet/weights.safetensors" \
    "$(find "$data" -name '*.JPEG' | head -n 1)"

# A terminal, which becomes narrower while a run draws its line.
"$python" - "$imagenet" "$data" "$tmp/tty" >"$tmp/out" 2>"$tmp/err" <<'END'
import fcntl, os, pty, re, signal, struct, sys, termios, time

def resize(fd, columns):
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

pid, fd = pty.fork()
if pid == 0:
    os.environ.update(TERM="xterm", NO_COLOR="")
    time.sleep(0.2)
    os.execv(sys.argv[1], [sys.argv[1], "train", "--data", sys.argv[2],
        "--model", "mlp", "--hidden", "8", "--img-size", "8", "-b", "8",
        "--no-val", "--epochs", "100000", "--output", sys.argv[3]])
resize(fd, 100)
widths = []

def drawn(text):
    parts = re.findall(rb"\r(epoch [^\x1b\r\n]*)\x1b\[K", text)
    return max(map(len, parts)) if parts else 0

def await_line():
    text = b""
    while not drawn(text):
        text += os.read(fd, 65536)

for columns in (100, 40, 70):
    resize(fd, columns)
    if columns == 100:
        await_line()
    end = time.time() + 0.3
    while time.time() < end: # what was drawn before
        os.read(fd, 65536)
    end = time.time() + 1
    text = b""
    while time.time() < end:
        text += os.read(fd, 65536)
    widths.append(drawn(text))
os.kill(pid, signal.SIGTERM)
try:
    while os.read(fd, 65536):
        pass
except OSError:
    pass
os.waitpid(pid, 0)
print(*widths)
sys.exit(not (55 < widths[0] < 100 and 20 < widths[1] < 40
              and 40 <= widths[2] < 70))
END
point $? "a drawn line fits a terminal that is resized: $(cat "$tmp/out")"

done_testing
