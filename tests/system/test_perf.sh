#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Several clients of one `urnic perf --server` at once: the pings of one are not the other's. And one that is
# interrupted.
#
#     test_perf.sh URNICD URNIC
set -euo pipefail

urnicd=$1 urnic=$2
# shellcheck source=tests/system/rig.sh
. "$(dirname "$0")/rig.sh" perf

export URNIC_SOCKET=$dir/sock
"$urnicd" --foreground --socket "$URNIC_SOCKET" --device name=urn0,port=mem:perf,addr=10.0.0.1/24 \
    --device name=urn1,port=mem:perf,addr=10.0.0.2/24 >"$dir/urnicd.log" 2>&1 &
pids+=($!)
wait_line serving "$dir/urnicd.log"
"$urnic" perf --server --device urn1 >"$dir/server.out" 2>&1 &
pids+=($!)
wait_line waiting "$dir/server.out"

for op in write send; do
    clients=()
    for size in 8 8 100 64K; do
        "$urnic" perf 10.0.0.2 --device urn0 --op $op --lat --size $size --count 1000 --json \
            >"$dir/$op-${#clients[@]}.out" 2>&1 &
        clients+=($!)
    done
    for i in "${!clients[@]}"; do
        wait "${clients[$i]}" || fail "$op: client $i"
        grep -q '"messages":1000,' "$dir/$op-$i.out" || fail "$op: client $i has not measured 1000 times"
    done
done

# What is measured until a signal comes counts.
"$urnic" perf 10.0.0.2 --device urn0 --op connect --time 100 >"$dir/connect.out" 2>&1 &
client=$!
sleep 3
kill -TERM "$client"
wait "$client" || fail "connections until a signal: status $?"
grep -q "per second" "$dir/connect.out" || fail "connections until a signal: no result"
echo ok
