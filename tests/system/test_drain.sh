#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# SIGTERM drains: a daemon whose clients are in the middle of transfers tells their peers, ends with status 0,
# and leaves its clients an error instead of a wait; the peer's daemon lets the connections go at once.
# On devices of several workers the contexts of the clients are on different ones.
#
#     test_drain.sh URNICD URNIC [WORKERS]
set -euo pipefail
urnicd=$1 urnic=$2 workers=${3:-1}
dir=$(mktemp -d /tmp/urnic-drain-XXXXXX)
pids=()
cleanup() {
    local pid
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null || true; done
    rm -rf "$dir"
}
trap cleanup EXIT
fail() {
    echo "$1"
    tail -n 20 "$dir"/*.log
    exit 1
}
# until COMMAND...: ten seconds at most
until_true() {
    local i
    for ((i = 0; i < 200; i++)); do
        "$@" >/dev/null 2>&1 && return 0
        sleep 0.05
    done
    return 1
}
# counter HOST NAME VALUE
counter_is() { "$urnic" --socket "$dir/$1" stat --all | grep -qE "^ +$2 +$3\$"; }

"$urnicd" --foreground --socket "$dir/a" \
    --device "name=urn0,port=memif:$dir/m,role=server,addr=10.0.0.1/24,workers=$workers" >"$dir/a.log" 2>&1 </dev/null &
a=$!
pids+=("$a")
until_true test -S "$dir/a" || fail "the first daemon doesn't start"
"$urnicd" --foreground --socket "$dir/b" \
    --device "name=urn0,port=memif:$dir/m,role=client,addr=10.0.0.2/24,workers=$workers" >"$dir/b.log" 2>&1 </dev/null &
pids+=($!)
until_true counter_is b port_up 1 || fail "the two never meet"
"$urnic" --socket "$dir/b" perf --server >"$dir/server.log" 2>&1 </dev/null &
pids+=($!)
until_true grep -q waiting "$dir/server.log" || fail "the server doesn't start"
clients=()
for ((i = 0; i < workers; i++)); do
    timeout 60 "$urnic" --socket "$dir/a" perf 10.0.0.2 --qps 8 --time 50 >"$dir/client$i.log" 2>&1 </dev/null &
    clients+=($!)
    pids+=($!)
done
until_true counter_is b qps $((8 * workers)) || fail "the clients don't connect"
until_true counter_is b rx_write_requests '[1-9][0-9]*' || fail "nothing is transferred"

kill -TERM "$a"
status=0
wait "$a" || status=$?
[ "$status" -eq 0 ] || fail "the daemon ends with status $status"
for client in "${clients[@]}"; do
    status=0
    wait "$client" || status=$?
    [ "$status" -eq 1 ] || fail "a client ends with status $status, not 1"
done
# Only a goodbye tells this side, which receives and sends nothing that could run out of retries.
until_true counter_is b qps 0 || fail "the peer's queue pairs are still there: nobody told it"
