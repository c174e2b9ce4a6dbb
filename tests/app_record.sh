#!/bin/sh
# app_record.sh - metrics.jsonl, summary.csv, run.json and log.txt of imagenet
# train, also of runs that were killed and resumed
# SPDX-License-Identifier: LGPL-2.1-or-later
. "$srcdir/tests/tap.sh"

data=$tmp/data
"$imagenet" data synth --output "$data" --classes 3 --train-count 24 \
    --val-count 9 --size 24 >/dev/null || exit 99
net="--data $data --model mlp --hidden 8 --img-size 8 -b 8 --sub-batch 4
    --opt adamw --ckpt-every 30it --model-ema-decay 0.9"

# steps FILE: the numbers of its steps, in its order
steps()
{
    sed -n 's/^{"type":"step","step":\([0-9]*\),.*}$/\1/p' "$1" | xargs
}

# losses FILE: step, loss and rate of each step and evaluation
losses()
{
    sed -n -e 's/,"[a-z_]*seconds":[^,}]*//g' -e 's/,"images_per_s":[^,}]*//' \
        -e 's/,"data_share":[^,}]*//' -e 's/,"busy":\[[^]]*\]//' \
        -e 's/,"part_ms":{[^}]*}//' \
        -e 's/,"memory_peak":[0-9]*//' -e '/"type":"\(step\|eval\)"/p' "$1"
}

# rows FILE: summary.csv without times
rows()
{
    cut -d, -f1-10 "$1"
}

begin=$(date +%s.%N)
# shellcheck disable=SC2086
run "$imagenet" train $net --ckpt-every 1it --epochs 3 --output "$tmp/whole"
exits 0 "a run succeeds"
whole=$(awk "BEGIN { print $(date +%s.%N) - $begin }")
m=$tmp/whole/metrics.jsonl s=$tmp/whole/summary.csv
[ "$(steps "$m")" = "1 2 3 4 5 6 7 8 9" ]
point $? "every step has a line: $(steps "$m")"
[ "$(grep -c '"type":"eval","step":[369],"averages":false' "$m")" = 3 ] &&
    [ "$(grep -c '"type":"eval","step":[369],"averages":true' "$m")" = 3 ]
point $? "every evaluation has one, also of the averages"
[ "$(grep -c '"type":"checkpoint"' "$m")" = 9 ]
point $? "every checkpoint has one"
# Each of its parts is rounded to a tenth of a millisecond; the kernel has the beginning
# of a process in hundredths of a second.
grep '"type":"start","step":1,' "$m" >"$tmp/start"
took=$(sed 's/.*"seconds":\([0-9.]*\),.*/\1/' "$tmp/start")
sum=$(sed 's/.*"part_ms"//' "$tmp/start" | tr -c '0-9.\n' ' ' |
    awk '{ for (i = 1; i <= NF; i++) s += $i } END { print s + 0 }')
holds "$sum > 1e3 * ${took:-0} - 1 && $sum < 1e3 * ${took:-0} + 1" \
    "it began in $took s, whose parts add up to $sum ms"
step=$(sed -n 's/.*"step":1,.*"step_seconds":\([0-9.e-]*\),.*/\1/p' "$m")
holds "${took:-0} > $step && ${took:-9e9} < $whole + 0.02" \
    "more than its first step's $step s, less than all: $whole s"
tail -n 1 "$m" | grep -q '^{"type":"end","step":9,.*"reason":"complete"}$'
point $? "the last line says how it ended: $(tail -n 1 "$m")"
head -n 1 "$s" | grep -q '^epoch,train_loss,eval_loss,eval_top1,eval_top5,lr,'
point $? "a summary begins with timm's columns"
[ "$(sed 1d "$s" | cut -d, -f1 | xargs)" = "0 1 2" ]
point $? "it has a row for each epoch"
loss=$(sed -n '$p' "$s" | cut -d, -f3)
printf '%.4f' "$loss" | grep -q "^$(value loss)$"
point $? "the last one has the loss of the final line: $loss, $(value loss)"

number='[0-9.e+-]*'
grep '"type":"step","step":9,' "$m" | grep -E -q "\"gradient_norm\":$number,\
\"loss_scale\":1\.0,\"skipped_steps\":0,\"memory_peak\":[0-9]{6,},\
\"busy\":\[$number(,$number)*\],\"part_ms\":\{\"input\":$number,\
\"forward\":$number,\"backward\":$number,\"merge\":$number,\"update\":$number\}"
point $? "a step has norm, scale, memory and shares: $(tail -n 3 "$m" | head -n 1)"

# What was printed is in the log, and nothing else but the command.
sed -e '/^# /d' -e '/^imagenet train: /d' "$tmp/whole/log.txt" |
    cmp - "$tmp/out"
point $? "log.txt has the lines of stdout"
head -n 1 "$tmp/whole/log.txt" |
    grep -q "^# [0-9-]*T[0-9:]*Z .*imagenet train --data $data .* --output "
point $? "after the command: $(head -n 1 "$tmp/whole/log.txt")"
j=$tmp/whole/run.json
[ "$(grep -c '"start"' "$j")" = 1 ] && grep -q '"to_step": 9' "$j" &&
    grep -q '"code": 0' "$j" && grep -q '"reason": "complete"' "$j"
point $? "run.json says how it ended"
grep -q '"sub-batch": 4' "$j" && grep -q '"model": "mlp"' "$j" &&
    grep -q '"no-val": false' "$j" && grep -q '"StarPU": "[0-9.]*"' "$j" &&
    grep -q '"compiler": "..*"' "$j" && grep -q '"host": "..*"' "$j"
point $? "and what made it: settings, versions, machine"

# shellcheck disable=SC2086
run env AWS_SECRET_ACCESS_KEY=sesame "$imagenet" train $net --epochs 1 \
    --output "$tmp/s3://me:sesame@host/run?key=sesame"
exits 0 "a run in a folder that looks like a URL"
find "$tmp/s3:" -type f ! -name config.txt ! -path '*/ckpt/*' \
    ! -name '*.safetensors' >"$tmp/files"
[ "$(wc -l <"$tmp/files")" -ge 4 ] && ! xargs -d '\n' grep -l sesame \
    <"$tmp/files"
point $? "no record has what a URL or the environment has of secrets"

# shellcheck disable=SC2086
run "$imagenet" train $net --epochs 50 --output "$tmp/long"
m=$tmp/long/metrics.jsonl s=$tmp/long/summary.csv
# Killed after some step, and its files damaged as a crash may: what a run says
# of the steps that it makes again replaces what an earlier process said.
# shellcheck disable=SC2086
"$imagenet" train $net --ckpt-every 1it --epochs 50 --output "$tmp/run" \
    >/dev/null 2>&1 &
pid=$!
await grep -qs '"step":20,' "$tmp/run/metrics.jsonl"
kill -9 $pid 2>/dev/null
wait $pid 2>/dev/null
printf '{"type":"step","step":999,"loss":1}\n{"type":"st' \
    >>"$tmp/run/metrics.jsonl"
printf '99,0.5,0.5\n1,0' >>"$tmp/run/summary.csv"
printf 'step=999 loss=1\nstep=1' >>"$tmp/run/log.txt"
# shellcheck disable=SC2086
run "$imagenet" train $net --epochs 50 --output "$tmp/run"
exits 0 "a killed run resumes"
losses "$m" >"$tmp/want"
losses "$tmp/run/metrics.jsonl" >"$tmp/got"
cmp -s "$tmp/want" "$tmp/got"
point $? "its metrics are those of a run that nothing disturbed"
rows "$s" >"$tmp/want"
rows "$tmp/run/summary.csv" >"$tmp/got"
diff "$tmp/want" "$tmp/got"
point $? "and so is its summary"
[ "$(grep -c '"type":"run"' "$tmp/run/metrics.jsonl")" = 2 ]
point $? "both processes are there"

sed -n 's/^step=\([0-9]*\) .*/\1/p' "$tmp/run/log.txt" >"$tmp/got"
[ -z "$(uniq -d "$tmp/got")" ] && [ "$(tail -n 1 "$tmp/got")" = 150 ] &&
    sort -n -c "$tmp/got" && [ "$(grep -c '^# ' "$tmp/run/log.txt")" = 2 ]
point $? "the log of both has no step twice"
[ "$(grep -c '"start"' "$tmp/run/run.json")" = 2 ] &&
    [ "$(grep -c '"end": null' "$tmp/run/run.json")" = 1 ]
point $? "run.json has both, and that the first had no end"

# A run that is over is not changed.
# shellcheck disable=SC2086
run "$imagenet" train $net --epochs 50 --output "$tmp/run"
rows "$tmp/run/summary.csv" | cmp -s "$tmp/want" - &&
    [ "$(steps "$tmp/run/metrics.jsonl")" = "$(seq 150 | xargs)" ]
point $? "a run that is over keeps its records"

# shellcheck disable=SC2086
run "$imagenet" train $net --steps 2 --no-val --output "$tmp/part"
[ "$(sed 1d "$tmp/part/summary.csv" | cut -d, -f1,3)" = "0," ]
point $? "what was not evaluated is empty"

# shellcheck disable=SC2086
run "$imagenet" train $net --epochs 3 --output "$tmp/traced" --trace 2 \
    --graph "$tmp/step.dot"
[ "$(value weights)" = "$(sed -n 's/.* weights=//p' "$tmp/whole/log.txt" |
    tail -n 1)" ]
point $? "a trace does not change the weights: $(value weights)"
t=$tmp/traced/trace.json
for cat in input forward backward merge update; do
    grep -q "\"cat\":\"$cat\".*\"step\":3," "$t" &&
        grep -q "\"cat\":\"$cat\".*\"step\":4[,}]" "$t" || echo "$cat"
done >"$tmp/lacks"
[ ! -s "$tmp/lacks" ] && ! grep -q '"step":[0-25-9]' "$t"
point $? "it has the parts of two steps$(sed 's/^/, but no /' "$tmp/lacks")"
! grep -q '"cat":"copy"' "$t"
point $? "CPU workers share their memory: no copies"
grep -q '^  t[0-9]* -> t[0-9]*;' "$tmp/step.dot"
point $? "a graph of one is written"

# boxes REGEX FILE: how many there are
boxes()
{
    grep -c -E "$1" "$2"
}
if command -v dot >/dev/null; then
    # shellcheck disable=SC2086
    run "$imagenet" train $net --steps 1 --no-val --output "$tmp/drawn" \
        --graph "$tmp/drawn.svg"
    exits 0 "a graph is drawn"
    says "^wrote $tmp/drawn.svg$" "it says where it is"
    tasks=$(boxes '^  t[0-9]+ \[' "$tmp/drawn.dot")
    [ "$tasks" -gt 5 ] &&
        [ "$(boxes 'class="node"' "$tmp/drawn.svg")" = "$tasks" ] &&
        [ "$(boxes 'class="edge"' "$tmp/drawn.svg")" = \
            "$(boxes ' -> ' "$tmp/drawn.dot")" ]
    point $? "the drawing has all $tasks tasks and what they wait for"
else
    skip 3 "no dot (Debian's graphviz)"
fi
# shellcheck disable=SC2086
run env PATH="$tmp" "$imagenet" train $net --steps 1 --no-val \
    --output "$tmp/undrawn" --graph "$tmp/undrawn.svg"
exits 69 "without Graphviz it is not"
complains "dot, which makes .* install Debian's graphviz, or use --graph FILE.dot" \
    "it says why"
[ -s "$tmp/undrawn.dot" ] && [ -s "$tmp/undrawn/weights.safetensors" ]
point $? "the graph for Graphviz is there, and so are the weights"
# shellcheck disable=SC2086
run "$imagenet" train $net --epochs 3 --output "$tmp/untraced" --trace 2 \
    --graph "$tmp/nowhere/step.dot"
exits 74 "one that cannot be written ends the run"
complains "cannot write $tmp/nowhere/step.dot: No such file" "and is named"

# A record that cannot be written does not end the run, which tries again.
mkdir -p "$tmp/held/metrics.jsonl/folder"
# shellcheck disable=SC2086
run "$imagenet" train $net --epochs 1 --output "$tmp/held"
exits 0 "a run without metrics.jsonl succeeds"
complains "cannot write .*metrics.jsonl: .*; the run continues without it" \
    "and says so"

mkdir -p "$tmp/again/metrics.jsonl/folder"
# shellcheck disable=SC2086
"$imagenet" train $net --epochs 9999 --output "$tmp/again" >"$tmp/out" \
    2>"$tmp/err" &
pid=$!
await grep -qs '^3,' "$tmp/again/summary.csv"
rm -r "$tmp/again/metrics.jsonl"
m=$tmp/again/metrics.jsonl
await grep -qs '"type":"missing"' "$m"
kill -TERM $pid
wait $pid
[ $? = 75 ]
point $? "a run whose record could not be written for a while is interrupted"
complains "metrics.jsonl is written again, without [0-9]* lines" \
    "it says what is missing"
head -n 1 "$m" | grep -q '{"type":"missing","step":[0-9]*,"lines":[0-9]*}'
point $? "and the record does too: $(head -n 1 "$m")"
lost=$(sed -n '1s/.*"lines":\([0-9]*\).*/\1/p' "$m")
next=$(steps "$m" | cut -d' ' -f1)
[ "$lost" -ge "$next" ] && [ "$next" -gt 9 ]
point $? "the lines of steps before $next are missing: $lost with others"
grep -q '"type":"end".*"reason":"stopped after step' "$m"
point $? "its end is there"
grep -q '"code": 75' "$tmp/again/run.json" &&
    grep -q '"reason": "SIGTERM"' "$tmp/again/run.json"
point $? "run.json names the signal"

done_testing
