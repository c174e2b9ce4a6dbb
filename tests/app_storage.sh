#!/bin/sh
# app_storage.sh - data on S3 and web servers, which fail in many ways
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The server is ours (s3_server.py) and checks signatures by itself.
. "$srcdir/tests/tap.sh"

if ! grep -q '^#define HAVE_CURL 1' "$builddir/config.h"; then
    run "$imagenet" data check s3://bucket/folder
    exits 74 "without libcurl, addresses are refused"
    complains "install libcurl 7.87 or later and expat" "with what to install"
    done_testing
fi
python=${PYTHON:-/usr/bin/python3}
if ! "$python" -c 'import http.server' 2>/dev/null; then
    skip 1 "no python3 to run a server with"
    done_testing
fi

# ---- the server ----

server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$tmp"' EXIT
top=$tmp/top
mkdir -p "$top/bucket" "$top/public" "$tmp/home/.aws"

# serve OPTION...: restart the server
serve()
{
    [ -z "$server" ] || kill "$server"
    [ -z "$server" ] || wait "$server" 2>/dev/null
    rm -f "$top/port"
    "$python" "$srcdir/tests/s3_server.py" "$top" "$@" 2>"$tmp/server.err" &
    server=$!
    await test -e "$top/port"
    port=$(cat "$top/port")
    AWS_ENDPOINT_URL=http://127.0.0.1:$port
    export AWS_ENDPOINT_URL
}

# fault LINE...: what fails from now on; without any: nothing
fault()
{
    for line; do
        echo "$line"
    done >"$top/faults.new"
    mv "$top/faults.new" "$top/faults"
    : >"$top/log"
}

# asked REGEX: lines of the server's log that match
asked()
{
    grep -E -c -e "$1" "$top/log"
}

# Nobody's own settings, and no instance to ask.
unset AWS_PROFILE AWS_REGION AWS_DEFAULT_REGION AWS_SESSION_TOKEN
unset AWS_ENDPOINT_URL_S3 AWS_CONFIG_FILE AWS_SHARED_CREDENTIALS_FILE
unset AWS_CONTAINER_CREDENTIALS_RELATIVE_URI AWS_CONTAINER_CREDENTIALS_FULL_URI
unset AWS_CONTAINER_AUTHORIZATION_TOKEN AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE
HOME=$tmp/home
AWS_EC2_METADATA_DISABLED=true
no_proxy=127.0.0.1
export HOME AWS_EC2_METADATA_DISABLED no_proxy

key=AKIDTEST secret=TestSecretKey/wJalrXUtnFEMI+K7MDENG
session=SessionToken+/AAAA==
sign_in()
{
    AWS_ACCESS_KEY_ID=$key AWS_SECRET_ACCESS_KEY=$secret
    export AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
}

# All that programs print is kept, and searched for secrets at the end.
run()
{
    "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
    rc=$?
    cat "$tmp/out" "$tmp/err" >>"$tmp/printed"
}

# ---- the data ----

"$imagenet" data synth --output "$top/bucket/kaggle" --classes 3 \
    --train-count 24 --val-count 12 --size 32 >/dev/null || exit 99
kaggle=$top/bucket/kaggle
folders=$top/bucket/folders
mkdir -p "$folders/val"
cp -r "$kaggle/ILSVRC/Data/CLS-LOC/train" "$folders/train"
mv "$folders/train/n90000001" "$folders/train/a cat+dog=50% (é)"
cp -r "$folders/train/." "$folders/val"
one=$(ls "$folders/train/n90000000" | head -n 1)
mkdir "$folders/train/n90000000/deep" "$folders/train/n90000000/.hidden"
cp "$folders/train/n90000000/$one" "$folders/train/n90000000/deep/~x@y,z;.JPEG"
cp "$folders/train/n90000000/$one" "$folders/train/n90000000/.hidden/a.JPEG"
cp "$folders/train/n90000000/$one" "$folders/train/n90000000/.b.JPEG"
echo notes >"$folders/train/n90000000/notes.txt"

net="--model resnet9 --width 4 --img-size 16 -b 8 --sub-batch 4 --lanes 2
    --epochs 2 --lr 0.01"
serve --page 5
sign_in

# same NAME SENTENCE: a run on the bucket's folder ends in the weights of one on
# the same files here
same()
{
    # shellcheck disable=SC2086
    run "$imagenet" train "$top/bucket/$1" $net --output "$tmp/here-$1"
    [ $rc = 0 ] || point $rc "training on $1 here"
    want=$(sed -n 's/^data: //p' "$tmp/out" | sed "s,$top/,s3://,")
    # shellcheck disable=SC2086
    run "$imagenet" train "s3://bucket/$1" $net --output "$tmp/there-$1"
    exits 0 "$2"
    [ "$(sed -n 's/^data: //p' "$tmp/out")" = "$want" ]
    point $? "what is found is the same"
    cmp "$tmp/here-$1/weights.safetensors" "$tmp/there-$1/weights.safetensors"
    point $? "and so are the weights, bit for bit"
}

: >"$top/log"
same folders "class folders on S3, with all kinds of names, in pages of five"
[ "$(asked '^signed GET 200')" -gt 50 ] && [ "$(asked -v '^signed GET 200')" = 0 ]
point $? "all requests are signed, and the server finds all signatures right"
[ "$(asked 'list-type=2.* -$')" -lt 40 ] && [ "$(asked 'list-type')" -gt 5 ]
point $? "a folder is listed once, page by page"
same kaggle "Kaggle's layout on S3"
run "$imagenet" eval s3://bucket/folders/ \
    --weights "$tmp/here-folders/weights.safetensors"
exits 0 "eval reads from S3"
value top1 >"$tmp/there"
run "$imagenet" eval "$folders" \
    --weights "$tmp/here-folders/weights.safetensors"
[ "$(value top1)" = "$(cat "$tmp/there")" ]
point $? "with the same result"
run "$imagenet" data check s3://bucket/folders
exits 0 "data check reads from S3"
# shellcheck disable=SC2086
run "$imagenet" train "$top/bucket/folders" $net --epochs 3 \
    --resume "$tmp/there-folders" --resume-with epochs --output "$tmp/x"
exits 0 "a run on S3 continues with the same files here"

cp "$srcdir/apps/iris/iris.csv" "$top/bucket"
run "$iris" s3://bucket/iris.csv
exits 0 "a table on S3"
for address in s3://bucket s3://bucket/; do
    run "$iris" $address
    complains "$address: expected the address of a file" "$address is no table"
done

# ---- who asks ----

folder=folders
read_all()
{
    run "$imagenet" data check "${1:-s3://bucket/$folder}" --storage-timeout 2
}

unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
read_all
exits 74 "a bucket that is not public needs credentials"
complains "403 AccessDenied: access with no credentials is denied: set AWS_ACC" \
    "it says so, and what to do"
cp -r "$folders" "$top/public/folders"
read_all s3://public/folders
exits 0 "a public one needs none"
printf '[other]\naws_access_key_id = no\n[default]\n# none\n%s\n%s\n' \
    "aws_access_key_id = $key" "aws_secret_access_key=$secret" \
    >"$HOME/.aws/credentials"
read_all
exits 0 "credentials of the default profile"
AWS_PROFILE=work
export AWS_PROFILE
read_all
exits 74 "a profile that does not exist"
complains 'AWS_PROFILE is "work", which is a profile neither' "it is named"
printf '[profile work]\nregion=eu-west-7\ns3 =\n  region = x\n%s\n%s\n%s\n' \
    aws_access_key_id=ASIATEST "aws_session_token = $session" \
    "aws_secret_access_key = SessionSecret/bPxRfiCYEXAMPLEKEY+x" \
    >"$HOME/.aws/config"
serve --page 5 --region eu-west-7
read_all
exits 0 "a profile of ~/.aws/config, with a session's token and a region"
unset AWS_PROFILE
rm "$HOME/.aws/credentials" "$HOME/.aws/config"
printf '[default]\nsso_session = work\n' >"$HOME/.aws/config"
read_all
complains 'gets its credentials by sso_session, which libddp does not do' \
    "a profile of another kind is named"
rm "$HOME/.aws/config"
: >"$top/log"
AWS_EC2_METADATA_DISABLED=
AWS_EC2_METADATA_SERVICE_ENDPOINT=$AWS_ENDPOINT_URL
export AWS_EC2_METADATA_DISABLED AWS_EC2_METADATA_SERVICE_ENDPOINT
read_all
exits 0 "the role of an instance, in a region that the server names"
[ "$(asked '^metadata')" = 3 ] && [ "$(asked 'wrong-region.* 400')" -gt 0 ]
point $? "it was asked for once"
unset AWS_EC2_METADATA_SERVICE_ENDPOINT
AWS_EC2_METADATA_DISABLED=true

# A container's role: an address and a token, or a path on a host that all
# containers have, which a network of its own has here.
serve --page 5
: >"$top/log"
AWS_CONTAINER_CREDENTIALS_FULL_URI=$AWS_ENDPOINT_URL/container/role
AWS_CONTAINER_AUTHORIZATION_TOKEN=Container-Token
export AWS_CONTAINER_CREDENTIALS_FULL_URI AWS_CONTAINER_AUTHORIZATION_TOKEN
read_all
exits 0 "the role of a container, by its address and a token"
[ "$(asked '^container GET 200')" = 1 ]
point $? "it was asked for once"
AWS_CONTAINER_AUTHORIZATION_TOKEN=wrong-token
read_all
exits 74 "a wrong token"
complains "the container's role, .*, does not answer: it refuses the token" \
    "it says so"
! grep -q wrong-token "$tmp/err"
point $? "without the token"
echo Container-Token >"$tmp/token"
AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=$tmp/token read_all
exits 0 "a token in a file, which goes first"
printf 'Container-Token\nHost: x\n' >"$tmp/token"
AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=$tmp/token read_all
exits 74 "one of two lines"
complains "$tmp/token: expected the container's token, which is one line" \
    "is refused"
AWS_CONTAINER_CREDENTIALS_FULL_URI=http://127.0.0.1:1/ read_all
exits 74 "a host that does not answer"
if unshare -rn ip addr add 169.254.170.2/32 dev lo 2>/dev/null; then
    cat >"$tmp/task.sh" <<'EOF'
ip link set lo up && ip addr add 169.254.170.2/32 dev lo || exit 99
"$1" "$2/tests/s3_server.py" "$3" --address 169.254.170.2 --port 80 &
while [ ! -e "$3/port" ] && kill -0 $! 2>/dev/null; do
    sleep 0.1
done
"$4" data check s3://bucket/folders --storage-timeout 2
rc=$?
kill $!
exit $rc
EOF
    mkdir "$tmp/task"
    ln -s "$top/bucket" "$tmp/task/bucket"
    AWS_CONTAINER_CREDENTIALS_RELATIVE_URI=/container/role \
        AWS_CONTAINER_AUTHORIZATION_TOKEN=Container-Token \
        AWS_ENDPOINT_URL=http://169.254.170.2 \
        run unshare -rn sh "$tmp/task.sh" "$python" "$srcdir" "$tmp/task" \
        "$imagenet"
    exits 0 "the role of a container, by a path, which goes before an address"
    grep -q '^container GET 200' "$tmp/task/log"
    point $? "it was asked for"
else
    skip 2 "no network of its own: neither unshare nor ip can make one"
fi
unset AWS_CONTAINER_CREDENTIALS_FULL_URI AWS_CONTAINER_AUTHORIZATION_TOKEN
sign_in
serve --page 5 --region eu-west-7
AWS_SECRET_ACCESS_KEY=Wrong/$secret read_all
exits 74 "a wrong secret"
complains "403 SignatureDoesNotMatch: .* denied: check the access key and its" \
    "the server refuses it"
serve --page 5 --region eu-west-7 --swift
read_all
exits 0 "a region that only the text of an error has"
(
    unset AWS_ACCESS_KEY_ID AWS_SECRET_ACCESS_KEY
    run "$imagenet" data check s3://bucket/$folder --storage-timeout 2
    exit $rc
)
[ $? = 74 ]
point $? "a request without signature, of which Swift makes nothing"
complains "answered 412: access with no credentials is denied: set AWS_ACC" \
    "is denied"
serve --page 5

# ---- by name ----

# Who asks, and whom, is in the file: not what the environment has.
printf '%s\n' 'data_config_version = 1' '[[datasets]]' 'name = "far"' \
    'uuid = "b498f769-a7f6-4f67-8d74-40b770398f26"' '[datasets.storage]' \
    'driver = "S3"' 'bucket = "bucket"' 'prefix = "folders"' \
    "endpoint = \"$AWS_ENDPOINT_URL\"" 'profile = "named"' >"$tmp/Data.toml"
printf '[named]\n%s\n%s\n' "aws_access_key_id = $key" \
    "aws_secret_access_key=$secret" >"$HOME/.aws/credentials"
AWS_ENDPOINT_URL=http://127.0.0.1:1 AWS_SECRET_ACCESS_KEY=wrong \
    run "$imagenet" data check --data-config "$tmp/Data.toml" --data far
exits 0 "a data set of a Data.toml, with its endpoint and profile"
rm "$HOME/.aws/credentials"
run "$imagenet" data check --data-config "$tmp/Data.toml" --data far
exits 74 "without that profile"
complains 'the profile of the data set is "named", which is a profile neither' \
    "it is named"

# ---- faults ----

# passes LINE SENTENCE: training with a fault ends in the same weights.  One read
# may meet all nine faults, and its pauses then take up to 45 s.
passes()
{
    fault "$1"
    rm -rf "$tmp/run"
    # shellcheck disable=SC2086
    run "$imagenet" train s3://bucket/folders $net --storage-timeout 60 \
        --output "$tmp/run"
    exits 0 "$2"
    cmp "$tmp/here-folders/weights.safetensors" "$tmp/run/weights.safetensors"
    point $? "the weights are the same"
}

# fails CODE LINE REGEX SENTENCE
fails()
{
    fault "$2"
    read_all
    exits "$1" "$4"
    complains "$3" "it says so"
}

passes 'JPEG 500 9' "nine reads are answered by 500"
complains "9 reads of images failed by a fault of the storage and were tried" \
    "they are counted"
passes 'JPEG 503 9' "nine by 503"
passes 'list-type 503 3' "three lists by 503"
passes 'JPEG reset 5' "five connections are reset"
passes 'list-type reset 2' "two of them while listing"
passes 'JPEG cut 5' "five bodies end early"
passes 'JPEG short 5' "five are shorter than was listed"
passes 'JPEG drip 5' "five come in small pieces"
fails 74 '_1.*JPEG stall 0' "could not be read: Operation too slow.* times in" \
    "a server that stops sending"
fails 74 'JPEG 500 0' "folders/train/.*JPEG: the server answered 500, [0-9]+ \
times in [0-9]+ s: a fault of the storage" "a server that always fails"
fails 74 'list-type 500 0' "s3://bucket/folders: the server answered 500," \
    "also when it lists"
fails 74 'JPEG changed 0' "JPEG: changed since its folder was listed" \
    "an object that has changed"
fails 74 'JPEG long 0' "the server sent more than the [0-9]+ bytes that it" \
    "a body that is longer than was listed"
fails 74 'JPEG html 0' "an HTML page of 39 bytes for a file of [0-9]+" \
    "a page in place of an image"
fails 74 'list-type html 0' "the answer is no listing but <html>" \
    "a page in place of a list"
fails 74 'JPEG moved 0' "names another place, .http://elsewhere.example/x., \
which is not followed" "a redirection"
! grep -q SECRET "$tmp/err"
point $? "without the signature in its query"
fails 74 'JPEG expired 0' "403 ExpiredToken: access with the environment's" \
    "a token that has expired"
fault 'JPEG 404 0'
read_all
exits 65 "an object that went away is a bad image"
says "^bad .*JPEG: is not there: the server answered 404" "it is named"
fault
run "$imagenet" data check s3://bucket/nothing --storage-timeout 2
exits 65 "a folder that does not exist"
complains "s3://bucket/nothing: there are no files below this address" \
    "it says so"
run "$imagenet" data check s3://nobucket/x --storage-timeout 2
complains "s3://nobucket/x: is not there: the server answered 404 NoSuchBucket" \
    "a bucket that does not exist"

# ---- parts of tar files ----

fault
if "$imagenet" data pack "$folders" --output "$top/bucket/packed" \
    --shard-samples 9 >/dev/null 2>"$tmp/err"; then
    same packed "tar files on S3"
    range() # SPLIT: the address of its tar files
    {
        files=$(find "$top/bucket/packed/$1" -name '*.tar' | wc -l)
        printf 's3://bucket/packed/%s/{000000..%06d}.tar' "$1" $((files - 1))
    }
    rm -rf "$tmp/run"
    # shellcheck disable=SC2086
    run "$imagenet" train "$(range train)" --val "$(range val)" $net \
        --output "$tmp/run"
    exits 0 "the same without their index"
    cmp "$tmp/here-packed/weights.safetensors" "$tmp/run/weights.safetensors"
    point $? "the weights are the same"
    folder=packed
    fault 'tar 503 6' 'tar short 3'
    rm -rf "$tmp/run"
    # shellcheck disable=SC2086
    run "$imagenet" train s3://bucket/packed $net --storage-timeout 60 \
        --output "$tmp/run"
    exits 0 "parts that are refused, or too short"
    cmp "$tmp/here-packed/weights.safetensors" "$tmp/run/weights.safetensors"
    point $? "the weights are the same"
    [ "$(asked 'tar bytes=')" -gt 50 ] && [ "$(asked 'tar -$')" = 0 ]
    point $? "only parts are asked for"
    fails 74 'tar changed 0' "0000.*tar: .*changed since its folder was listed" \
        "a tar file that has changed"
    fails 74 'tar wrongrange 0' "sent the part .bytes [0-9-]*/[0-9]*., expected" \
        "another part than was asked for"
    fails 74 'tar whole 0' "whole files only: it does not answer requests for" \
        "a server that does not know of parts"
    folder=folders
else
    complains "install libarchive" "without libarchive there are no tar files"
fi

# ---- reading ahead ----

serve --delay 100
rm -rf "$tmp/run"
# shellcheck disable=SC2086
run "$imagenet" train s3://bucket/folders $net -j 1 --output "$tmp/run"
exits 0 "one worker, and a tenth of a second for each object"
most=$(cat "$top/most")
holds "$most >= 8 && $most <= 64" "waits for several at a time, up to 64"
cmp "$tmp/here-folders/weights.safetensors" "$tmp/run/weights.safetensors"
point $? "the weights are the same"
serve --delay 20
run "$imagenet" data check s3://bucket/folders -j 1
exits 0 "data check with one thread"
most=$(cat "$top/most")
holds "$most >= 8 && $most <= 64" "waits for several at a time, too"
mkdir -p "$top/bucket/many/train/a" "$top/bucket/many/train/b"
for i in $(seq 150); do
    ln "$folders/train/n90000000/$one" "$top/bucket/many/train/a/$i.JPEG"
    ln "$folders/train/n90000000/$one" "$top/bucket/many/train/b/$i.JPEG"
done
serve --delay 100
rm -rf "$tmp/run"
# shellcheck disable=SC2086
run "$imagenet" train s3://bucket/many $net --epochs 1 --no-val --output "$tmp/run"
exits 0 "300 images of which workers need more than arrive"
most=$(cat "$top/most")
holds "$most > 64 && $most <= 256" "more than 64 are fetched at a time"
serve --delay 20
rm -rf "$tmp/run" "$top/most"
# shellcheck disable=SC2086
run "$imagenet" train s3://bucket/folders $net -j 1 --storage-requests 3 \
    --output "$tmp/run"
exits 0 "three requests at a time"
[ "$(cat "$top/most")" -le 3 ]
point $? "are not exceeded"
cmp "$tmp/here-folders/weights.safetensors" "$tmp/run/weights.safetensors"
point $? "the weights are the same"
serve --page 5

# ---- copies on the disk ----

# caches HITS SENTENCE: training with a cache; so many per cent are found in it
caches()
{
    : >"$top/log"
    rm -rf "$tmp/run"
    # shellcheck disable=SC2086
    run "$imagenet" train s3://bucket/folders $net --cache-dir "$tmp/cache" \
        --output "$tmp/run"
    exits 0 "$2"
    says "^storage requests=.* cache-hits=$1%" "as many are found there"
    cmp "$tmp/here-folders/weights.safetensors" "$tmp/run/weights.safetensors"
    point $? "the weights are the same"
}

fault
caches '[0-9.]+' "with an empty cache"
copies=$(find "$tmp/cache" -type f | wc -l)
[ "$copies" = 49 ]
point $? "every image has one copy"
caches 100.0 "with a full one"
[ "$(asked JPEG)" = 0 ]
point $? "nothing is fetched"
find "$tmp/cache" -type f | while read -r copy; do
    printf XXXXXXXX | dd of="$copy" bs=1 seek=1000 conv=notrunc 2>/dev/null
done
caches '[0-9.]+' "with one whose copies are all damaged"
[ "$(asked JPEG)" -ge 49 ]
point $? "all are fetched again"
changed=$folders/train/n90000002/n90000002_3.JPEG
cp "$changed" "$tmp/kept"
cp "$folders/train/n90000002/n90000002_4.JPEG" "$changed"
: >"$top/log"
run "$imagenet" data check s3://bucket/folders --cache-dir "$tmp/cache"
[ "$(asked JPEG)" = 1 ]
point $? "an object that has changed since is fetched"
cp "$tmp/kept" "$changed"
rm -rf "$tmp/cache"
for i in 1 2 3; do
    "$imagenet" data check s3://bucket/folders --cache-dir "$tmp/cache" \
        --cache-size 0.00005 >"$tmp/out$i" 2>&1 &
    eval "pid$i=\$!"
done
# shellcheck disable=SC2154
wait "$pid1" && wait "$pid2" && wait "$pid3"
point $? "three processes share a cache"
size=$(find "$tmp/cache" -type f -printf '%s\n' |
    awk '{ n += $1 } END { print n }')
holds "$size > 20000 && $size <= 60000" "which is below its limit"
[ -z "$(find "$tmp/cache" -name 'new-*')" ]
point $? "nothing unfinished is left"
run "$imagenet" data check s3://bucket/folders --cache-dir /proc/x/y
exits 74 "a folder that cannot be created"

# The server goes away for a while, then for good.
fault
kill "$server"
wait "$server" 2>/dev/null
server=
(
    sleep 2
    exec "$python" "$srcdir/tests/s3_server.py" "$top" --page 5 --port "$port"
) &
later=$!
rm -rf "$tmp/run"
# shellcheck disable=SC2086
run "$imagenet" train s3://bucket/folders $net --storage-timeout 60 \
    --output "$tmp/run"
exits 0 "a server that is away for two seconds is waited for"
server=$later
cmp "$tmp/here-folders/weights.safetensors" "$tmp/run/weights.safetensors"
point $? "the weights are the same"
kill "$server"
wait "$server" 2>/dev/null
server=
begin=$(date +%s)
read_all
exits 74 "one that does not come back ends the run"
complains "s3://bucket/folders: the server could not be read: .*times in" \
    "it says so"
[ $(($(date +%s) - begin)) -lt 9 ]
point $? "after the time that was set"

# ---- addresses ----

serve
for address in s3://$key:$secret@bucket/x "s3://bucket/x?X-Amz-Signature=$secret" \
    "http://me:$secret@127.0.0.1/x"; do
    run "$imagenet" data check "$address"
    exits 2 "an address with a secret in it is refused"
    ! grep -q -e TestSecret -e wJalr "$tmp/out" "$tmp/err"
    point $? "and not repeated"
done
run "$imagenet" data check ftp://host/x
complains "ftp://: expected a folder, s3://, http:// or https://" \
    "another kind of address"

# Web servers: the list is a file.
web=http://127.0.0.1:$port/public/folders
run "$imagenet" data check "$web"
complains "index.txt: is not there: the server answered 404" \
    "a web server's folder needs a list"
(cd "$top/public/folders" && find . -type f -printf '%s %P\n' >"$tmp/index" &&
    mv "$tmp/index" index.txt)
rm -rf "$tmp/run"
# shellcheck disable=SC2086
run "$imagenet" train "$web" $net --output "$tmp/run"
exits 0 "with one it is read"
cmp "$tmp/here-folders/weights.safetensors" "$tmp/run/weights.safetensors"
point $? "the weights are the same"

# An image that was listed is gone when it is read: a link without a file, and
# servers that answer 404.
victim=train/n90000000/$one
cp -r "$folders" "$tmp/gone"
ln -sf nowhere "$tmp/gone/$victim"
fault "$victim 404 0"
for data in "$tmp/gone" s3://bucket/folders "$web"; do
    rm -rf "$tmp/run" "$tmp/strict"
    # shellcheck disable=SC2086
    run "$imagenet" train "$data" $net --output "$tmp/run"
    exits 0 "an image that is gone since it was listed is an unreadable one"
    complains "replaced by another: .*$victim: (cannot be opened|is not there)" \
        "it is named"
    value weights >>"$tmp/sums"
    # shellcheck disable=SC2086
    run "$imagenet" train "$data" $net --max-bad 0 --output "$tmp/strict"
    exits 65 "unless --max-bad allows none"
    complains "allows 0: .*$victim: (cannot be opened|is not there)" \
        "then it is named as well"
done
[ "$(wc -l <"$tmp/sums")" = 3 ] && [ "$(sort -u "$tmp/sums" | wc -l)" = 1 ]
point $? "another takes its place, the same one for all three"
fault
echo "12 ../../../etc/passwd" >>"$top/public/folders/index.txt"
run "$imagenet" data check "$web"
complains 'index.txt: line [0-9]+: "../../../etc/passwd" has the name "\.\."' \
    "a path that leads out of the folder"
sed -i '$s,.*,12 a//b,' "$top/public/folders/index.txt"
run "$imagenet" data check "$web"
complains 'index.txt: line [0-9]+: "a//b" has an empty name' "a bad path"

# ---- secrets ----

# A run that leaves every kind of file, as one with a session's token, and
# pages about it.
AWS_ACCESS_KEY_ID=ASIATEST AWS_SESSION_TOKEN=$session
AWS_SECRET_ACCESS_KEY=SessionSecret/bPxRfiCYEXAMPLEKEY+x
export AWS_SESSION_TOKEN
unset AWS_PROFILE
fault 'JPEG 503 2' 'JPEG expired 1'
rm -rf "$tmp/run" "$tmp/cache"
# shellcheck disable=SC2086
run "$imagenet" train s3://bucket/folders $net --cache-dir "$tmp/cache" \
    --output "$tmp/refused"
exits 74 "a session's token that the server refuses once"
fault 'JPEG 503 2'
# shellcheck disable=SC2086
run "$imagenet" train s3://bucket/folders $net --cache-dir "$tmp/cache" \
    --trace 3 --graph "$tmp/graph" --log tensorboard,wandb,mlflow \
    --output "$tmp/run"
exits 0 "one that it accepts"
[ -s "$tmp/run/trace.json" ] && [ -s "$tmp/graph" ]
point $? "with a trace and a graph"
run "$imagenet" report "$tmp/run"
exits 0 "a report"
run "$imagenet" doctor
point 0 "and what the doctor says of this machine"

# secrets GREP-OPTION...: grep for them in all that was written
secrets()
{
    grep -r -F -e "$secret" -e "$session" -e SessionSecret -e RoleSecret \
        -e RoleToken -e TaskSecret -e TaskToken -e Container-Token \
        -e MetadataToken "$@" "$tmp/here-folders" "$tmp/there-folders" \
        "$tmp/refused" "$tmp/run" "$tmp/cache" "$tmp/graph" "$tmp/printed"
}
secrets -l
[ $? = 1 ]
point $? "no file of a run, no copy and nothing that was printed has a secret"
echo "$session" >"$tmp/run/x"
[ "$(secrets -c | grep -c ':1$')" = 1 ]
point $? "a file that had one would be found"

done_testing
