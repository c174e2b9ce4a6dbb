#!/bin/sh
# app_report.sh - imagenet report: a page whose values a browser reads back
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# With a Chromium (DDP_CHROMIUM names one) the page runs there; else its text is
# looked at.
. "$srcdir/tests/tap.sh"

# Names that a page must not obey.
data="$tmp/</script><script>document.title='broken'</script><b>&amp;"
"$imagenet" data synth --output "$data" --classes 3 --train-count 24 \
    --val-count 9 --size 24 >/dev/null || exit 99

# train NAME OPTION...: a run of six epochs
train()
{
    name=$1
    shift
    run "$imagenet" train --data "$data" --model mlp --hidden 8 --img-size 8 \
        -b 8 --sub-batch 4 --opt adamw --epochs 6 --output "$tmp/$name" "$@"
    [ $rc = 0 ] || exit 99
}
train 'one "<i>' --lr 0.001
train two --lr 0.002 --model-ema-decay 0.9

run "$imagenet" report "$tmp/two"
exits 0 "a report of a run"
page=$tmp/two/report.html
says "^wrote $page$" "it says where it is"

# The same curves as a drawing.
figures=$(sed -n '/id="loss"/,/<\/figure>/p; /id="top1"/,/<\/figure>/p' "$page" |
    grep -o -E 'd="M[^"]*"' | sort)
run "$srcdir/contrib/draw-curves" "$page" loss top1
exits 0 "draw-curves draws them"
[ "$(grep -o -E ' d="M[^"]*"' "$tmp/out" | sed 's/^ //' | sort)" = "$figures" ]
point $? "as the page does"
if command -v xmllint >/dev/null; then
    xmllint --noout "$tmp/out" 2>"$tmp/err"
    point $? "in XML"
else
    skip 1 "no xmllint here"
fi
run "$srcdir/contrib/draw-curves" "$page" nothing
exits 1 "a chart that is not there is an error"

# best FILE: the best top1 of summary.csv
best()
{
    sed 1d "$1" | cut -d, -f4 | sort -g | tail -n 1
}

# key NAME: what the page in $tmp/dom has there
key()
{
    sed -n "s/.*data-key=\"$1\">\\([^<]*\\)<.*/\\1/p" "$tmp/dom" | head -n 1
}

chromium=${DDP_CHROMIUM:-$(command -v chromium || command -v chromium-browser ||
    command -v google-chrome)}

# look PAGE: the document in $tmp/dom when its scripts have run, with the
# pointer over the curve of the loss; the console in $tmp/console
look()
{
    if [ -z "$chromium" ]; then
        cp "$1" "$tmp/dom"
        return
    fi
    { cat "$1"; cat <<'EOF'
<script>
const svg = document.querySelector('#loss svg.chart'), box =
    svg.getBoundingClientRect();
svg.dispatchEvent(new PointerEvent('pointermove',
    {clientX: box.right - 5, clientY: box.top + 20}));
const shown = document.querySelector('#loss .tip');
document.body.dataset.tip = shown ? shown.textContent : 'none';
document.body.dataset.wide =
    document.documentElement.scrollWidth > window.innerWidth;
</script>
EOF
    } >"$tmp/page.html"
    HOME=$tmp timeout 120 "$chromium" --headless --no-sandbox --disable-gpu \
        --user-data-dir="$tmp/profile" --enable-logging=stderr \
        --window-size=1000,800 --dump-dom "file://$tmp/page.html" \
        >"$tmp/dom" 2>"$tmp/console"
}

look "$page"
[ "$(key best-top1)" = "$(printf '%.2f %%' "$(best "$tmp/two/summary.csv")")" ]
point $? "its best accuracy is that of summary.csv: $(key best-top1)"
[ "$(key state)" = complete ]
point $? "it says how the run ended: $(key state)"
grep -q "two/weights.safetensors</code>.*end of the run" "$tmp/dom" &&
    grep -q "ckpt/best/model.safetensors</code>" "$tmp/dom"
point $? "and where the weights are"
lacks=
for curve in loss top1 lr norm speed data; do
    grep -q "id=\"$curve\"" "$tmp/dom" || lacks="$lacks $curve"
done
[ -z "$lacks" ]
point $? "the curves are there${lacks:+, but$lacks}"
grep -q "imagenet train --data .* --output .*two --lr 0.002" "$tmp/dom"
point $? "the command that makes it again"
! grep -E -q -i '(src|href)="?(https?:|//)|@import|url\(' "$page"
point $? "nothing comes from a network"
! grep -q -e "<script>document" -e "<b>&" "$page"
point $? "names are text"
if [ -n "$chromium" ]; then
    ! grep -q -i "console" "$tmp/console"
    point $? "the browser's console is empty: $(grep -i console "$tmp/console")"
    want=$(tail -n 1 "$tmp/two/summary.csv" | cut -d, -f3 |
        awk '{printf "%.4g", $1}')
    tip=$(sed -n 's/.*data-tip="\([^"]*\)".*/\1/p' "$tmp/dom")
    case $tip in
    "epoch 6train"*"evaluation$want"*averages*) true ;;
    *) false ;;
    esac
    point $? "the pointer shows the last values: $tip, evaluation $want"
    ! grep -q '<title>broken' "$tmp/dom" && grep -q 'data-wide="false"' \
        "$tmp/dom"
    point $? "no name was obeyed, and nothing is too wide"
else
    skip 3 "no Chromium (DDP_CHROMIUM names one)"
fi

run "$imagenet" report "$tmp/two" "$tmp/one \"<i>" -o "$tmp/both.html"
exits 0 "a report of two runs"
look "$tmp/both.html"
grep -q "<th>lr</th><td>0.002</td><td>0.001</td>" "$tmp/dom" &&
    grep -q "<th>model-ema-decay</th><td>0.9</td><td>0" "$tmp/dom"
point $? "it has what differs"
sed -n '/id="diff"/,/<\/table>/p' "$tmp/dom" |
    sed -n 's/^<tr><th>\([^<]*\)<.*/\1/p' >"$tmp/n"
[ "$(paste -s -d' ' "$tmp/n")" = "lr model-ema-decay" ]
point $? "and nothing else: $(paste -s -d' ' "$tmp/n")"
grep -q 'one "&lt;i&gt;' "$tmp/dom" || grep -q 'one &quot;&lt;i&gt;' "$tmp/dom"
point $? "a strange name is text"
[ -z "$chromium" ] || ! grep -q -i "console" "$tmp/console"
point $? "the console is empty again"

# What an evaluation says of each image.
run "$imagenet" eval --data "$data" --weights "$tmp/two/weights.safetensors" \
    --predictions "$tmp/two/predictions.jsonl" --per-class "$tmp/table.csv"
exits 0 "an evaluation with predictions"
wrong=$(awk -F '[:,]' '{ for (i = 1; i < NF; i++) {
        if ($i == "\"class\"") a = $(i + 1)
        if ($i == "\"predicted\"") b = $(i + 1) }
    n += a != b } END { print n + 0 }' "$tmp/two/predictions.jsonl")
right=$(awk "BEGIN { printf \"%.2f\", 100 * (9 - $wrong) / 9 }")
[ "$(wc -l <"$tmp/two/predictions.jsonl")" = 9 ] && [ "$(value top1)" = "$right" ]
point $? "it has a line for each image: $wrong of 9 are wrong, top1 $(value top1)"
run "$imagenet" report "$tmp/two"
look "$page"
sed -n '/id="classes"/,/<\/table>/p' "$tmp/dom" | grep -o '^<tr><td>[^<]*' |
    sed 's/.*>//' >"$tmp/got"
sed 1d "$tmp/table.csv" | cut -d, -f2 >"$tmp/want"
cmp -s "$tmp/got" "$tmp/want"
point $? "the report has the classes: $(paste -s -d' ' "$tmp/got")"
sed -n '/id="confusion"/,/<\/table>/p' "$tmp/dom" | tr '>' '\n' |
    sed -n 's/^\([0-9][0-9]*\)<\/td$/\1/p' >"$tmp/got"
[ "$(paste -s -d+ "$tmp/got" | sed 's/^$/0/' | xargs -I{} sh -c 'echo $(({}))')" = 9 ]
point $? "a matrix of all images: $(paste -s -d' ' "$tmp/got")"
[ "$(grep -c '<figure class="tile"' "$tmp/dom")" = "$wrong" ] &&
    [ "$(grep -c 'src="data:image/jpeg;base64,/9j/' "$tmp/dom")" = "$wrong" ]
point $? "and those that are wrong, with their pictures"
[ -z "$chromium" ] || ! grep -q -i "console" "$tmp/console"
point $? "the console is still empty"
printf '%s\n' '{"path":"</script>","class":-1,"predicted":2}' \
    '{"path":7,"class":1,"predicted":4000000000}' 'x' \
    '{"path":"<b>","class":0,"name":"<u>","predicted":1}' >"$tmp/odd.jsonl"
run "$imagenet" report "$tmp/two" --predictions "$tmp/odd.jsonl" -o -
exits 0 "odd predictions are skipped"
says "&lt;u&gt;" "and escaped"
run "$imagenet" report "$tmp/two" "$tmp/two" --predictions "$tmp/odd.jsonl"
exits 2 "predictions of several runs"

# The timeline: what a worker did is what its tasks of the trace say.
train three --trace 3 --workers 2
run "$imagenet" report "$tmp/three"
exits 0 "a report of a run with a trace"
look "$tmp/three/report.html"
# Sums of forward tasks of all workers by awk, in percent of the fifth step.
tr -d '{}' <"$tmp/three/trace.json" | grep '^"ph":"X"' |
    grep -v '"cat":"\(submission\|transfer\)"' | awk -F'[:,]' '
    { for (i = 1; i < NF; i++) v[$i] = $(i + 1)
      b = v["\"ts\""]; e = b + v["\"dur\""]
      if (v["\"step\""] == 4) {
          if (!n++ || b < first) first = b
          if (e > last) last = e
      }
      if (v["\"cat\""] == "\"forward\"") { begin[++k] = b; end[k] = e } }
    END { for (i = 1; i <= k; i++) {
          b = begin[i] < first ? first : begin[i]
          e = end[i] > last ? last : end[i]
          if (e > b) sum += e - b }
      printf "%.1f %.3f\n", 100 * sum / (last - first),
          (last - first) / 1000 }' >"$tmp/want"
sed -n '/id="shares"/,/<\/table>/p' "$tmp/dom" | grep '^<tr><td>' |
    sed -e 's/<[^>]*>/ /g' -e 's/^ *[A-Z]* [0-9]* *//' |
    awk '{ sum += $3 } END { printf "%.1f\n", sum }' >"$tmp/got"
awk "BEGIN { d = $(cat "$tmp/got") - $(cut -d' ' -f1 "$tmp/want")
    exit d * d > 0.04 }"
point $? "the forward share of a step: $(cat "$tmp/got") %, $(cat "$tmp/want")"
[ "$(key step-ms)" = "$(cut -d' ' -f2 "$tmp/want")" ]
point $? "and its time: $(key step-ms) ms"
sed -n '/id="shares"/,/<\/table>/p' "$tmp/dom" | grep '^<tr><td>' |
    sed -e 's/<[^>]*>/ /g' -e 's/^ *[A-Z]* [0-9]* *//' |
    awk '{ sum = $1; for (i = 7; i <= NF; i++) sum += $i
        if (sum <= 0 || sum > 101) bad = 1 } END { exit bad }'
point $? "work and waiting are no more than the step"
printf '{"traceEvents":[{"ph":"X","cat":"forward"},7,{"ph":"M"}' \
    >"$tmp/three/trace.json"
run "$imagenet" report "$tmp/three"
exits 0 "a damaged trace"
complains "three/trace.json is not a trace" "is named"

# A run that was cut off, and one that has nothing but its first lines.
mkdir "$tmp/cut" "$tmp/none"
head -c 3000 "$tmp/two/metrics.jsonl" >"$tmp/cut/metrics.jsonl"
head -n 1 "$tmp/two/metrics.jsonl" >"$tmp/none/metrics.jsonl"
printf '{"type":"step","step":null,"loss":"x","busy":7}\n[1]\nnonsense\n' \
    >>"$tmp/none/metrics.jsonl"
run "$imagenet" report "$tmp/cut" "$tmp/none" -o -
exits 0 "damaged records are read as far as they go"
says "not ended" "their state is that nobody knows"
run "$imagenet" report "$tmp/nowhere"
exits 2 "a folder that is none"
complains "nowhere/metrics.jsonl does not exist.*not the folder of a run" \
    "is named"
run "$imagenet" report
exits 2 "no folder"

# Files for papers: XML, with the page's curves.
run "$imagenet" report --svg "$tmp/svg" "$tmp/two" "$tmp/one \"<i>"
exits 0 "curves as files"
says "^wrote $tmp/svg/loss.svg$" "it says where they are"
"${DDP_PYTHON:-/usr/bin/python3}" - "$tmp/svg" "$tmp/both.html" <<'END'
import glob, re, sys
import xml.etree.ElementTree as tree

def curves(text):
    return re.findall(r'<path class="[^"]*" d="(M[0-9]+[.][^"]*)"', text)

page = open(sys.argv[2]).read()
for path in glob.glob(sys.argv[1] + "/*.svg"):
    name = path.split("/")[-1][:-4]
    drawn = re.search(r'id="%s".*?</figure>' % name, page, re.S)
    root = tree.parse(path).getroot()
    labels = [e.text for e in root.iter("{http://www.w3.org/2000/svg}text")]
    assert any((s or "").startswith('one "<i>') for s in labels), labels
    assert curves(open(path).read()) == curves(drawn.group()) != [], path
assert len(glob.glob(sys.argv[1] + "/*.svg")) == 8
END
point $? "eight of them have the curves of the page"

if command -v rsvg-convert >/dev/null; then
    run "$imagenet" report --png "$tmp/png" "$tmp/two"
    exits 0 "pictures of curves"
    says "^wrote $tmp/png/loss.png$" "it says where they are"
    "${DDP_PYTHON:-/usr/bin/python3}" - "$tmp/png" <<'END'
import glob, sys
from PIL import Image

files = glob.glob(sys.argv[1] + "/*.png")
assert len(files) == len(glob.glob(sys.argv[1] + "/*.svg")) > 5, files
for path in files:
    image = Image.open(path)
    assert image.width > 800 and len(image.getcolors(1 << 20)) > 20, path
END
    point $? "each of them has colours"
else
    skip 3 "no rsvg-convert (Debian's librsvg2-bin)"
fi
run env PATH="$tmp/none" "$imagenet" report --png "$tmp/none" "$tmp/two"
exits 69 "without the converter there are none"
complains "rsvg-convert.*install Debian's librsvg2-bin, or use --svg" "it says why"

# The terminal.
run env LC_ALL=C.UTF-8 COLUMNS=60 "$imagenet" report --plot "$tmp/two"
says "^Loss   train  evaluation  averages$" "curves in the terminal"
says "⠉|⠒|⣀|⡇" "of dots"
[ "$(LC_ALL=C.UTF-8 awk '{ if (length($0) > n) n = length($0) } END { print n }' \
    "$tmp/out")" -le 300 ]
point $? "not too wide"
run env LC_ALL=C COLUMNS=60 "$imagenet" report --plot "$tmp/two"
says "^Loss   a=train  b=evaluation  c=averages$" "without UTF-8"
! LC_ALL=C grep -q '[^ -~]' "$tmp/out"
point $? "of letters"

done_testing
