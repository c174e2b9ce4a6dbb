#!/bin/sh
# app_named.sh - data sets by the names of a Data.toml
# SPDX-License-Identifier: LGPL-2.1-or-later
. "$srcdir/tests/tap.sh"

mkdir "$tmp/sets"
"$imagenet" data synth --output "$tmp/sets/pictures" --classes 2 \
    --train-count 8 --val-count 4 --size 16 >/dev/null || exit 99
uuid=b498f769-a7f6-4f67-8d74-40b770398f26

# sets LINE...: a Data.toml whose data set "pictures/small" has this storage
sets()
{
    printf '%s\n' 'data_config_version = 1' '' '[[datasets]]' \
        'name = "pictures/small"' "uuid = \"$uuid\"" 'description = "eight"' \
        '[datasets.storage]' "$@" >"$tmp/sets/Data.toml"
}

check()
{
    run "$imagenet" data check --data-config "$tmp/sets/Data.toml" \
        --data "${1:-pictures/small}"
}

# refused CODE REGEX SENTENCE
refused()
{
    check "$4"
    exits "$1" "$3"
    complains "$2" "it says so"
}

folder='driver = "FileSystem"'
sets "$folder" 'type = "BlobTree"' 'path = "@__DIR__/pictures"'
check
exits 0 "a folder next to the file"
says "^checked split=train images=8 " "its images are found"
check 'pictures/small#ILSVRC/Data/CLS-LOC/train'
exits 0 "a folder in it"
net="--model mlp --hidden 4 --img-size 8 -b 4 --epochs 1 --no-val"
# shellcheck disable=SC2086
run "$imagenet" train $net --data-config "$tmp/sets/Data.toml" \
    --data pictures/small --output "$tmp/run"
exits 0 "training finds it too"
want=$(value weights)
# shellcheck disable=SC2086
run "$imagenet" train $net --data "$tmp/sets/pictures" --output "$tmp/other"
[ "$(value weights)" = "$want" ]
point $? "and ends in the weights of the same folder"

found()
{
    run env DDP_DATASETS_PATH="$1" JULIA_DATASETS_PATH="$2" \
        "$imagenet" data check --data pictures/small
}
mkdir "$tmp/first"
sed 's,pictures/small,other,' "$tmp/sets/Data.toml" >"$tmp/first/Data.toml"
found "/nowhere:$tmp/first:$tmp/sets" x
exits 0 "the first file of a search path that has the name"
says "^checked split=train images=8 " "its images are found"
(unset DDP_DATASETS_PATH
export JULIA_DATASETS_PATH="$tmp/sets/Data.toml"
"$imagenet" data check --data pictures/small >/dev/null)
point $? "Julia's variable"
found "$tmp/first" x
exits 65 "a name that none has"
complains 'first/Data.toml: no data set "pictures/small"; available: other$' \
    "it says so"
found "/nowhere:@" x
exits 74 "no file at all"
complains "no Data.toml in the search path /nowhere:@" "it says so"

refused 65 'no data set "x"; available: pictures/small$' "an unknown name" x
refused 2 '"../x" is no path in a data set' "a folder outside" \
    'pictures/small#../x'
sets "$folder" 'type = "Blob"' 'path = "x"'
refused 65 'the type is "Blob", expected a folder' "a file"
sets 'driver = "FTP"'
refused 65 'unknown driver "FTP"; available: FileSystem, S3' "another driver"
sets 'driver = "S3"'
refused 65 'the driver S3 needs a bucket' "S3 without a bucket"
sets "$folder" 'path = "a'
refused 65 'Data.toml:9: a string does not end' "no TOML"
sets "$folder" 'path = "a"' '[[datasets]]' 'name = "../a"'
refused 65 'data set 2: the name "../a" must be words' "a bad name"
sets "$folder" 'path = "a"' '[[datasets]]' 'name = "a"' 'uuid = "1"'
refused 65 'a: expected a uuid such as' "a bad UUID"
echo 'data_config_version = 2' >"$tmp/sets/Data.toml"
refused 65 'expected data_config_version = 1' "a newer version"
rm "$tmp/sets/Data.toml"
refused 74 'Data.toml: cannot be opened: No such file' "no file"

done_testing
