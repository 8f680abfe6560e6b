# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash
#
# What the tests in shell share: a folder of the test's own, processes that end with the test, and waiting
# for what a process says.
#
#     . "$(dirname "$0")/rig.sh" NAME
#
# Sets $dir, and $pids, to which the test adds its background processes. On a failure what is in the folder's
# *.log and *.out is shown, and before it what details(), if the test has such a function, prints.
dir=$(mktemp -d "/tmp/urnic-$1-XXXXXX")
pids=()

cleanup() {
    local pid
    for pid in "${pids[@]}"; do
        kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null || true
    done
    rm -rf "$dir"
}
trap cleanup EXIT

fail() {
    echo "$1"
    ! declare -F details >/dev/null || details
    tail -n 40 "$dir"/*.log "$dir"/*.out 2>/dev/null
    exit 1
}

# wait_for TEXT COMMAND...: until its output has the text, twenty seconds at most
wait_for() {
    local i text=$1
    shift
    for ((i = 0; i < 400; i++)); do
        "$@" >"$dir/last.out" 2>&1 && grep -Eq -- "$text" "$dir/last.out" && return 0
        sleep 0.05
    done
    fail "no \"$text\" from: $*"
}

# wait_line TEXT FILE: until a line of the file has the text
wait_line() { wait_for "$1" cat "$2"; }

# record URNIC DEVICE: capture what the device sends and receives, until judge
record() {
    recorder=$1 recorded=$2
    "$1" capture --device "$2" "$dir/recorded.pcapng" >"$dir/recorder.log" 2>&1 </dev/null &
    recording=$!
    pids+=("$recording")
    wait_line capturing "$dir/recorder.log"
}

# judge: end the capture. It has packets, and lint finds no broken rule in it. (Timers of two ends on one
# machine say nothing about the protocol, so only violations count.)
judge() {
    sleep 0.3 # the last goodbye
    kill -INT "$recording"
    wait "$recording" || fail "the capture failed"
    "$recorder" lint --violations "$dir/recorded.pcapng" >"$dir/judged.out" 2>&1 || fail "lint finds something"
    case "${URNIC_ENGINE:-}" in application*)
        "$recorder" stat "$recorded" --all >"$dir/last.out"
        grep -Eq '^ *channel_rx_frames +[1-9]' "$dir/last.out" || fail "no engine ran in a program"
        ;;
    esac
}
