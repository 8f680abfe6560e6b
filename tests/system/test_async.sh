#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What ibv_get_async_event tells an unmodified program of devices and ports: PORT_ERR and PORT_ACTIVE when a link is
# switched, GID_CHANGE when an address comes or goes, each at the device that it is about and no other, DEVICE_FATAL when
# the daemon ends. On a daemon of one device, and of two.
#
#     test_async.sh URNICD URNIC ASYNC_WATCH
set -euo pipefail
urnicd=$1 urnic=$2 watch=$3
# shellcheck source=tests/system/rig.sh
. "$(dirname "$0")/rig.sh" async
fatal=8 active=9 err=10 gid=18 # enum ibv_event_type
export URNIC_SOCKET=$dir/sock

# begin DEVICE...: a daemon with these, and the program that watches them
begin() {
    local args=()
    for d in "$@"; do args+=(--device "name=$d,port=mem:$d,addr=10.9.${d#urn}.1/24"); done
    "$urnicd" --foreground --socket "$URNIC_SOCKET" "${args[@]}" >"$dir/d.log" 2>&1 </dev/null &
    daemon=$!
    pids+=("$daemon")
    wait_line serving "$dir/d.log"
    "$urnic" run -- "$watch" >"$dir/watch.log" 2>&1 </dev/null &
    watcher=$!
    pids+=("$watcher")
    wait_line "watching $#" "$dir/watch.log"
}

# What the program has printed; the end, which all devices come to at once, by device.
printed() {
    grep -v "watching\| $fatal 1" "$dir/watch.log" || true
    grep " $fatal 1" "$dir/watch.log" | sort || true
}

# told LINE...: that is these lines, and stays so; it may take a moment
told() {
    local i want
    want=$(printf '%s\n' "$@")
    for ((i = 0; i < 200; i++)); do
        [ "$(printed)" = "$want" ] && break
        sleep 0.05
    done
    sleep 0.2
    [ "$(printed)" = "$want" ] || fail "not as expected: $*"
}

for devices in urn0 "urn0 urn1"; do
    # shellcheck disable=SC2086
    begin $devices
    last=${devices##* }
    seen=()
    "$urnic" link "$last" --down
    seen+=("$last $err 1")
    told "${seen[@]}"
    "$urnic" link "$last" --up
    seen+=("$last $active 1")
    told "${seen[@]}"
    "$urnic" link "$last" --addr-add 10.9.7.1/24
    seen+=("$last $gid 1")
    told "${seen[@]}"
    "$urnic" link "$last" --addr-del 10.9.7.1
    seen+=("$last $gid 1")
    told "${seen[@]}"
    kill -9 "$daemon"
    wait "$watcher" || fail "the program ends with $?"
    for d in $devices; do seen+=("$d $fatal 1"); done
    told "${seen[@]}"
    wait "$daemon" 2>/dev/null || true
    rm -f "$URNIC_SOCKET"
    echo "$devices: ${#seen[@]} events"
done
