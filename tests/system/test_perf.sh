#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Several clients of one `urnic perf --server` at once: the pings of one are not the other's. One client is
# interrupted. Then copy, rping and ucmatose with a server on all devices. Lint judges the packets.
# $URNIC_ENGINE says where the engines run.
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
record "$urnic" urn0
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

# The warm-up counts neither as time nor as messages, and goes with a time.
before=$(date +%s%N)
"$urnic" perf 10.0.0.2 --device urn0 --warm-up 1 --time 0.1 --json >"$dir/warm.out" || fail "--warm-up: status $?"
[ $(($(date +%s%N) - before)) -ge 1100000000 ] || fail "--warm-up: no warm-up"
grep -Eq '"seconds":0\.' "$dir/warm.out" || fail "--warm-up: it counts"
rc=0
"$urnic" perf 10.0.0.2 --device urn0 --warm-up 1 --count 10 2>"$dir/warm.out" || rc=$?
[ $rc = 2 ] && grep -q -e "--warm-up: only for bandwidth" "$dir/warm.out" || fail "--warm-up with --count: $rc"

# What is measured until a signal comes counts.
"$urnic" perf 10.0.0.2 --device urn0 --op connect --time 100 >"$dir/connect.out" 2>&1 &
client=$!
sleep 3
kill -TERM "$client"
wait "$client" || fail "connections until a signal: status $?"
grep -q "per second" "$dir/connect.out" || fail "connections until a signal: no result"
# A server without --device listens on all devices, and says so once.
"$urnic" perf --server --port 7999 >"$dir/all.out" 2>&1 &
all=$!
pids+=("$all")
wait_line waiting "$dir/all.out"
for n in 1 2; do
    "$urnic" perf 10.0.0.$n:7999 --device urn0 --count 10 >"$dir/last.out" 2>&1 || fail "the server of all devices: 10.0.0.$n"
done
kill -TERM $all
wait $all || fail "the server of all devices: status $?"
[ "$(wc -l <"$dir/all.out")" = 1 ] || fail "the server of all devices: more than one line"

"$urnic" serve --dir "$dir" --once 2 --port 7998 >"$dir/serve.out" 2>&1 &
all=$!
pids+=("$all")
wait_line serving "$dir/serve.out"
echo text >"$dir/text"
for n in 1 2; do
    "$urnic" copy --device urn0 "$dir/text" 10.0.0.$n:7998:copy$n >"$dir/last.out" 2>&1 || fail "serve: 10.0.0.$n"
    cmp "$dir/text" "$dir/copy$n" || fail "serve: 10.0.0.$n: another file"
done
wait $all || fail "serve --once 2: status $?"

for program in rping ucmatose; do
    for n in 1 2; do
        "$urnic" $program --port 7997 >"$dir/$program.out" 2>&1 &
        all=$!
        pids+=("$all")
        wait_line listening "$dir/$program.out"
        "$urnic" $program --device urn0 10.0.0.$n:7997 >"$dir/last.out" 2>&1 || fail "$program: 10.0.0.$n"
        wait $all || fail "$program of all devices: status $?"
        grep -Eq "served 10 rounds|1 connections" "$dir/$program.out" || fail "$program of all devices: no result"
    done
done

# SHM-16: files of no octet at all are permitted, also in memory.
(
    ulimit -f 0
    exec "$urnic" perf 10.0.0.2 --device urn0 --count 10 --size 1M
) 2>&1 | cat >"$dir/last.out" || fail "ulimit -f 0"
judge
echo ok
