#!/bin/sh
# app_smpi.sh - the model of exchanges between nodes, and a simulated network
#
# SMPI runs the exchange itself, message by message, on as many simulated nodes;
# ddp-predict has a formula instead.
# SPDX-License-Identifier: LGPL-2.1-or-later
. "$srcdir/tests/tap.sh"

if ! command -v smpicc >/dev/null || ! command -v smpirun >/dev/null; then
    skip 1 "needs SMPI (libsimgrid-dev)"
    done_testing
fi

# As ddp-predict --net 100: 85 % of the bandwidth.  There are two links on the
# way, and a call that finds a message sent, or come, for half of what one costs.
GBS=10.625 LATENCY_US=5 MESSAGE_US=0.5
cat >"$tmp/net.xml" <<END
<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1"><zone id="all" routing="Full">
<cluster id="nodes" prefix="node-" suffix="" radical="0-63" speed="1Gf"
    bw="${GBS}GBps" lat="2.5us" sharing_policy="SPLITDUPLEX"/>
</zone></platform>
END

# shellcheck disable=SC2086
smpicc -O1 -I"$builddir" -I"$srcdir/lib" -I"$srcdir/codelets" \
    "$srcdir/tests/smpi_exchange.c" "$srcdir/codelets/mpi/mpi.c" \
    "$srcdir/lib/engine/parts.c" "$srcdir/lib/engine/stage.c" "$srcdir/lib/engine/exchange.c" \
    "$srcdir/lib/engine/messages.c" "$srcdir/lib/engine/near_sum.c" \
    "$srcdir/lib/engine/lanes.c" "$srcdir/lib/base/error.c" \
    "$srcdir/lib/base/printable.c" \
    -o "$tmp/exchange" >"$tmp/out" 2>"$tmp/err"
point $? "the exchange is built for SMPI" || sed 's/^/# /' "$tmp/err"

# exchange NODES ELEMENTS...: a line for each number of elements
exchange()
{
    nodes=$1
    shift
    run smpirun -np "$nodes" -platform "$tmp/net.xml" \
        --cfg=network/model:CM02 --cfg=network/TCP-gamma:-1 \
        --cfg=network/crosstraffic:0 --cfg=smpi/simulate-computation:no \
        --cfg=smpi/test:0.25e-6 --cfg=smpi/grow-injected-times:no \
        --log=root.thres:error \
        "$tmp/exchange" "$@"
    exits 0 "$nodes nodes exchange vectors of $*"
    grep '^[0-9]* [0-9]* ' "$tmp/out" >"$tmp/lines"
    while read -r n len messages bytes seconds right; do
        model=$(echo "$messages $bytes" | awk -v gbs=$GBS \
            -v latency=$LATENCY_US -v message=$MESSAGE_US '{
            link = $2 / gbs / 1e9; host = $1 * message * 1e-6
            print (link > host ? link : host) + 2e-6 * latency }')
        holds "$seconds < 1.15 * $model && $seconds > 0.95 * $model" \
            "$n nodes, $len numbers: $seconds s, $model by the model"
        [ "$right" = right ]
        point $? "the sum is right"
        holds "$bytes > 0.999 * 8 * $len * ($n - 1) / $n && \
            $bytes < 1.001 * 8 * $len * ($n - 1) / $n" \
            "a node sends two vectors less its own shares: $bytes bytes"
    done <"$tmp/lines"
}

exchange 2 4194304
exchange 8 4194304 1048576 262144
exchange 64 1048576

done_testing
