#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
# test_apart.sh URNICD URNIC: two devices of a daemon without a link between them. rdma_cm asks each for an address that
# the other one has, then that one itself: within a second, though no host answers.
set -eu
urnicd=$1 urnic=$2
command -v rping >/dev/null || { echo "SKIP: rping is not installed"; exit 77; }
folder=$(mktemp -d)
"$urnicd" --foreground --log-level warn --socket "$folder/s" --port mem:apart-a --addr 10.0.0.1/24 \
    --port mem:apart-b --addr 10.0.0.2/24 >"$folder/log" 2>&1 &
daemon=$!
trap 'kill $daemon 2>/dev/null; wait $daemon 2>/dev/null; rm -rf "$folder"' EXIT
export URNIC_SOCKET=$folder/s
for _ in $(seq 100); do
    "$urnic" info >/dev/null 2>&1 && break
    sleep 0.1
done
# connect ADDRESS: sets $took, the milliseconds that a connection takes
connect() {
    local server began
    timeout 20 "$urnic" run -- rping -s -a "$1" -p 7500 -C 3 >/dev/null 2>&1 &
    server=$!
    sleep 0.7
    began=$(date +%s%3N)
    timeout 15 "$urnic" run -- rping -c -a "$1" -p 7500 -C 3 -V || { echo "rping $1: status $?"; wrong=1; }
    took=$(($(date +%s%3N) - began))
    echo "$1: $took ms"
    wait $server || { echo "the server at $1: status $?"; wrong=1; }
}

# The quickest of five: other programs may have the cores.
wrong=0
for address in 10.0.0.1 10.0.0.2; do
    for _ in 1 2 3 4 5; do
        connect $address
        [ "$took" -ge 1500 ] || break
    done
    [ "$took" -lt 1500 ] || { echo "$address: it took $took ms"; wrong=1; }
done
exit $wrong
