#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The examples of doc/examples, each as two programs against one daemon with two devices on an emulated
# link; lint judges their packets. $URNIC_ENGINE says where their engines run.
#
#     test_examples.sh URNICD URNIC EXAMPLES_FOLDER [EXAMPLE ...]
set -euo pipefail

urnicd=$1 urnic=$2 folder=$3
shift 3
# shellcheck source=tests/system/rig.sh
. "$(dirname "$0")/rig.sh" examples

export URNIC_SOCKET=$dir/sock
"$urnicd" --foreground --socket "$URNIC_SOCKET" --seed 1 \
    --device name=urn0,port=mem:examples,addr=10.0.0.1/24 \
    --device name=urn1,port=mem:examples,addr=10.0.0.2/24 >"$dir/urnicd.log" 2>&1 &
pids+=($!)
for ((i = 0; i < 200; i++)); do
    [[ -S $URNIC_SOCKET ]] && break
    sleep 0.05
done
[[ -S $URNIC_SOCKET ]] || fail "the daemon doesn't start"
record "$urnic" urn0

# run EXAMPLE CLIENT_SAYS SERVER_SAYS: server on urn0, client on urn1
run() {
    local name=$1 server number
    timeout 30 "$folder/example-$name" -d urn0 >"$dir/$name.server.out" 2>&1 &
    server=$!
    pids+=("$server")
    wait_line listening "$dir/$name.server.out"
    number=$(sed -n 's/.*queue pair //p' "$dir/$name.server.out")
    # shellcheck disable=SC2086 # number is one word or none
    timeout 30 "$folder/example-$name" -d urn1 10.0.0.1 $number >"$dir/$name.client.out" 2>&1 ||
        fail "$name: the client failed"
    wait "$server" || fail "$name: the server failed"
    grep -q "$2" "$dir/$name.client.out" || fail "$name: the client doesn't say \"$2\""
    grep -q "$3" "$dir/$name.server.out" || fail "$name: the server doesn't say \"$3\""
    echo "$name: $(tail -n 1 "$dir/$name.client.out")"
}

wanted() {
    [[ $# -eq 1 || " ${*:2} " == *" $1 "* ]]
}

wanted pingpong "$@" && run pingpong "1000 rounds" "answered 1000 messages"
wanted remote_buffer "$@" &&
    run remote_buffer 'read back 1048576 octets; the last word is "done"' 'left "done"'
wanted counter "$@" && run counter "drew 100 tickets; held the lock: yes" "counter 100, lock 0"
wanted datagrams "$@" && run datagrams "10 answers" "answered 10 datagrams"
wanted event_loop "$@" && run event_loop "3 connections, 300 messages answered" "3 connections, 300 messages received"

judge

# Two programs with a port of their own each: no daemon.
own_port() {
    local server port=memif:$dir/memif.sock
    timeout 30 "$folder/example-own_port" "$port,role=server,addr=10.1.0.1/24" >"$dir/own_port.server.out" 2>&1 &
    server=$!
    pids+=("$server")
    wait_line listening "$dir/own_port.server.out"
    timeout 30 "$folder/example-own_port" "$port,role=client,addr=10.1.0.2/24" 10.1.0.1 >"$dir/own_port.client.out" 2>&1 ||
        fail "own_port: the client failed: $(cat "$dir/own_port.client.out")"
    wait "$server" || fail "own_port: the server failed: $(cat "$dir/own_port.server.out")"
    grep -q "1000 rounds" "$dir/own_port.client.out" || fail "own_port: the client doesn't say \"1000 rounds\""
    echo "own_port: $(tail -n 1 "$dir/own_port.client.out")"
}
wanted own_port "$@" && own_port
kill -0 "${pids[0]}" || fail "the daemon has died"
exit 0
