#!/bin/sh
# app_fusebench.sh - cuDNN has plans for what fusebench times, on a GPU that is
# only described
# SPDX-License-Identifier: LGPL-2.1-or-later
. "$srcdir/tests/tap.sh"

fusebench=$builddir/tests/fusebench
if [ ! -x "$fusebench" ]; then
    echo "1..0 # SKIP built without CUDA"
    exit 0
fi

# As test_cuda_plans has it.
cat >"$tmp/h200.json" <<END
{"maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64],
"regsPerBlock": 65536, "multiProcessorCount": 132, "warpSize": 32,
"maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448,
"reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536,
"maxCtasPerSM": 32, "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048,
"pciDeviceId": 0, "isTccDriver": 0, "supportCoopLaunch": 1,
"smClockRateKHz": 1980000, "memClockRateKHz": 3201000, "l2CacheSize": 62914560,
"deviceName": "NVIDIA H200", "deviceVer": 900, "driverVer": 13000,
"cudaDeviceId": 0, "totalGlobalMem": 151000000000}
END

# plans TYPE WHAT NUMBER: so many of its lines have an engine
plans()
{
    n=$(grep -c "^$1,[^\"]*,\"$2\",[0-9]*,[0-9]" "$tmp/out")
    [ "$n" = "$3" ]
    point $? "$1, $2: $n plans"
}

run "$fusebench" --describe "$tmp/h200.json" 256 1000
exits 0 "a described GPU"
for type in bf16 f16; do
    for what in forward data filter "data, added" "forward, statistics"; do
        plans $type "$what" 23
    done
    plans $type "norm" 9
    plans $type "norm's gradient" 9
done
# Fused engines were made for f16 alone.
for what in "norm, forward, statistics" "norm, filter" \
    "data, relu, norm's sums"; do
    plans f16 "$what" 22
    plans bf16 "$what" 0
done
done_testing
