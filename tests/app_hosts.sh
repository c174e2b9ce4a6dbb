#!/bin/sh
# app_hosts.sh - imagenet train on two hosts that only a network connects
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# The hosts are namespaces of this machine: each has its name, its processes and
# one interface.  What one process computes alone is the oracle.
points=15

# In namespaces of the test's own, so that nothing is left of them.
if [ -z "${DDP_TEST_SPACE:-}" ]; then
    root=
    [ "$(id -u)" = 0 ] || root="--user --map-root-user"
    # shellcheck disable=SC2086
    if unshare $root --mount --net sh -c 'mount -t tmpfs none /run &&
        ip netns add a && ip link add va netns a type veth peer name vb' \
        >/dev/null 2>&1; then
        export DDP_TEST_SPACE=1
        # shellcheck disable=SC2086
        exec unshare $root --mount --net sh "$0"
    fi
fi
. "$srcdir/tests/tap.sh"
. "$srcdir/tests/ranks.sh"

if [ -z "${DDP_TEST_SPACE:-}" ]; then
    skip $points "no network namespaces here"
    done_testing
fi
ip link set lo up
if ! has_mpi; then
    skip $points "$why"
    done_testing
fi

# ---- the hosts --------------------------------------------------------------

mount -t tmpfs none /run
for host in a b; do
    ip netns add $host
    ip -n $host link set lo up
done
ip link add va netns a type veth peer name vb netns b
ip -n a addr add 10.77.0.1/24 dev va
ip -n b addr add 10.77.0.2/24 dev vb
ip -n a link set va up
ip -n b link set vb up

# ssh [-o OPTION] HOST COMMAND...: by mpirun and ddprun
mkdir "$tmp/bin"
cat >"$tmp/bin/ssh" <<'END'
#!/bin/sh
while [ "$1" != a ] && [ "$1" != b ]; do
    shift
done
host=$1
shift
[ -n "$(ip -n "$host" link show "v$host" up)" ] || exit 255
exec ip netns exec "$host" unshare --uts --pid --fork --mount-proc \
    --kill-child sh -c 'hostname "$0"; exec sh -c "$*"' "$host" "$@"
END
chmod +x "$tmp/bin/ssh"
PATH=$tmp/bin:$builddir/bin:$PATH
export PATH

# on_a COMMAND...
on_a()
{
    run timeout -k 10 120 ip netns exec a unshare --uts sh -c \
        'hostname a; exec "$@"' sh "$@"
}

mpirun="mpirun --allow-run-as-root --bind-to none
    --mca oob_tcp_if_include 10.77.0.0/24 --mca btl_tcp_if_include 10.77.0.0/24
    -x PATH -x STARPU_NCPU -x DDP_MODULE_DIR -x WAIT"

data=$tmp/data
imagenet data synth --output "$data" --classes 3 --train-count 60 \
    --val-count 21 --size 24 >/dev/null || exit 99
net="--data $data --img-size 16 --epochs 2 -b 24 --sub-batch 3 --lanes 8
    --lr 0.05 --model resnet9 --width 16"

# weights: the checksum on the last line of what ran
weights()
{
    sed -n 's/^final .* weights=//p' "$tmp/out" | tail -n 1
}

# ---- one training -----------------------------------------------------------

# shellcheck disable=SC2086
run imagenet train $net --output "$tmp/one"
want=$(weights)
# shellcheck disable=SC2086
on_a $mpirun --host a,b -n 2 imagenet train $net --output "$tmp/two"
exits 0 "two hosts"
[ -n "$want" ] && [ "$(weights)" = "$want" ]
point $? "train to the weights of one process"
parameters=$(sed -n 's/^model: .*, \([0-9]*\) parameters.*/\1/p' "$tmp/out")
bytes=$(ip netns exec b cat /sys/class/net/vb/statistics/rx_bytes)
echo "# $bytes bytes for 6 sums of $parameters f32"
holds "$bytes > 6 * 4 * $parameters && $bytes < 1.2 * 6 * 4 * $parameters" \
    "6 steps have sent as many bytes over the network as an all-reduce"

# ---- a process dies ---------------------------------------------------------

# named SECONDS WHAT: the lost rank is, whether its silence is noticed or, after
# the connection has broken, that MPI does not return (codelets/runtime/watch.c).
named()
{
    complains "^imagenet train: rank 1 .b. (has not been heard of for $1 s; it was|is lost: MPI has not returned for [0-9]+ s; it was last heard of) [a-z ]*, after step [0-9]*$" \
        "$2"
}

write_odd "$tmp/odd"
export WAIT="$tmp/d/ckpt/latest"
# shellcheck disable=SC2086
on_a bash "$srcdir/contrib/ddprun" --hosts a,b --mpirun "$mpirun" \
    "$tmp/odd" train $net --ckpt-every 1it --output "$tmp/d"
exits 0 "a process on the other host is killed: ddprun continues"
named "[4-9]" "the rank on this host names it"
complains "^ddprun: a rank was lost .*again with 2$" "with both hosts"
says "^resume: step=[1-6]" "from the newest checkpoint"
[ "$(weights)" = "$want" ]
point $? "to the same weights"

# ---- a host is lost ---------------------------------------------------------

# cut NAME: its processes live, but nothing of them arrives.
cut()
{
    while [ ! -e "$tmp/$1/ckpt/latest" ]; do
        sleep 0.05
    done
    ip -n b link set vb down
}

# mpirun keeps waiting for the host after the rank here has ended.
long="$net --epochs 40 --no-val"
export err="$tmp/err"
cut l &
# shellcheck disable=SC2086
on_a sh -c '"$@" & while ! grep -q heard "$err" && kill -0 $!; do sleep 0.1
    done; kill -KILL $!' sh $mpirun --host a,b -n 2 \
    imagenet train $long --ckpt-every 5it --peer-timeout 2 --output "$tmp/l"
named 2 "a host is lost: a rank on another names it"

# A rank of the first run may still be writing to its folder.
ip -n b link set vb up
cut l-again &
# shellcheck disable=SC2086
on_a env OMPI_MCA_oob_tcp_keepalive_time=3 \
    OMPI_MCA_oob_tcp_keepalive_intvl=1 bash "$srcdir/contrib/ddprun" --hosts a,b \
    --mpirun "$mpirun" imagenet train $long --ckpt-every 5it --output "$tmp/l-again"
exits 0 "ddprun continues"
complains "^ddprun: b does not answer$" "it sees that the host is gone"
complains "^ddprun: a rank was lost .*; again with 1$" "and continues without"
says "^resume: step=[1-9]" "from the newest checkpoint"
cp "$tmp/out" "$tmp/lost"
# shellcheck disable=SC2086
run imagenet train $long --output "$tmp/long"
want=$(weights)
cp "$tmp/lost" "$tmp/out"
[ "$(weights)" = "$want" ]
point $? "to the same weights"
! pgrep -f "$tmp/l" >/dev/null
point $? "and the lost processes have ended by themselves"

done_testing
