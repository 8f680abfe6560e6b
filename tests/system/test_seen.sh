#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Programs that run the engine themselves are seen and steered from outside as those that don't (SHM-15):
# captures are taken in the daemon's switch, and lint finds nothing in them; counters, queue pairs, their
# histories and their congestion control are asked of the programs.
#
#     test_seen.sh URNICD URNIC [WORKERS]
set -euo pipefail
urnicd=$1 urnic=$2 workers=${3:-1}
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/system/rig.sh
. "$(dirname "$0")/rig.sh" seen
export URNIC_SOCKET=$dir/sock
"$urnicd" --foreground --socket "$URNIC_SOCKET" --seed 3 \
    --device "port=mem:l,addr=10.0.0.1/24,workers=$workers" --device "port=mem:l,addr=10.0.0.2/24,workers=$workers" >"$dir/d.log" 2>&1 </dev/null &
pids+=($!)
wait_line serving "$dir/d.log"
head -c 2000000 /dev/urandom >"$dir/file"
# A context on the first worker of each device: what comes is on the next ones.
for device in urn0 urn1; do
    [ "$workers" -gt 1 ] || break
    "$urnic" perf --server --device "$device" --port "990${device#urn}" >"$dir/$device.log" 2>&1 </dev/null &
    pids+=($!)
    wait_line waiting "$dir/$device.log"
done

# packets FILE FILTER: how many there are
packets() { tshark -r "$1" -Y "$2" 2>/dev/null | wc -l; }

# copy_seen HERE THERE DEVICE ADDRESS: a copy from urn0 to DEVICE, with these engines, and a capture of it
copy_seen() {
    local name=$1-$2-$3 capture serve
    "$urnic" capture --device urn0 "$dir/$name.pcapng" >"$dir/$name.c.log" 2>&1 </dev/null &
    capture=$!
    pids+=("$capture")
    wait_line capturing "$dir/$name.c.log"
    mkdir "$dir/$name"
    URNIC_ENGINE=$2 "$urnic" serve --device "$3" --dir "$dir/$name" --once 1 >"$dir/$name.s.log" 2>&1 </dev/null &
    serve=$!
    pids+=("$serve")
    wait_line serving "$dir/$name.s.log"
    URNIC_ENGINE=$1 "$urnic" copy --quiet --device urn0 "$dir/file" "$4:file" || fail "$name: the copy failed"
    wait "$serve" || fail "$name: serve failed"
    sleep 0.5 # the goodbye
    kill -INT "$capture"
    wait "$capture" || fail "$name: the capture failed"
    cmp "$dir/file" "$dir/$name/file" || fail "$name: the copy differs"
    # Timers of two ends on one machine say nothing about the protocol, so only violations count.
    "$urnic" lint --violations "$dir/$name.pcapng" >"$dir/$name.lint.log" 2>&1 || fail "$name: lint finds something"
    # A device that sends to itself receives nothing from its port.
    [ "$3" = urn0 ] || python3 "$here/check_capture.py" "$dir/$name.pcapng" || fail "$name: the capture is not good"
    [ "$(packets "$dir/$name.pcapng" 'infiniband.bth.opcode == 0x11')" -gt 5 ] || fail "$name: no ACKs were captured"
    [ "$(packets "$dir/$name.pcapng" 'data.len > 1000 || infiniband.payload')" -gt 100 ] || fail "$name: no data was captured"
}
copy_seen application application urn1 10.0.0.2
copy_seen application daemon urn1 10.0.0.2
copy_seen daemon application urn1 10.0.0.2
copy_seen application application urn0 10.0.0.1 # inside the switch
copy_seen application daemon urn0 10.0.0.1

# value NAME DEVICE: a counter
value() { "$urnic" stat "$2" --all | sed -n "s/^ *$1 *\\([0-9]*\\)$/\\1/p"; }

# look ENGINE: queue pairs, counters, congestion control and captures of a run of perf with this engine
look() {
    local engine=$1 name=$1-perf qpn perf server before after
    URNIC_ENGINE=$engine "$urnic" perf --server --device urn1 >"$dir/$name.s.log" 2>&1 </dev/null &
    server=$!
    pids+=("$server")
    wait_line waiting "$dir/$name.s.log"
    before=$(value tx_packets urn0)
    URNIC_ENGINE=$engine "$urnic" perf 10.0.0.2 --device urn0 --op write --size 1K --qps 2 --time 600 >"$dir/$name.log" 2>&1 </dev/null &
    perf=$!
    pids+=("$perf")
    wait_for '(qp 0x.* RTS.*){1}' "$urnic" stat urn0 --qps
    wait_for '2' bash -c "'$urnic' stat urn0 --qps | grep -c ' RC .*RTS.* $(basename "$urnic")\\[$perf\\]'"
    # A busy program may have no time to answer one of these.
    wait_for "\"engine\":\"$engine\".*\"engine\":\"$engine\"" bash -c "'$urnic' stat urn0 --qps --json | tr -d '\n'"
    for ((i = 0; i < 20; i++)); do
        after=$(value tx_packets urn0)
        ((after > before)) && break
        sleep 0.2
    done
    ((after > before)) || fail "$name: nothing is counted: $before, then $after"
    wait_for '^ *qp 0x.* RC ' "$urnic" stat urn0 --qps
    qpn=$(sed -n 's/^ *qp \(0x[0-9a-f]*\) RC .*/\1/p' "$dir/last.out" | head -n 1)
    wait_for 'RTS' "$urnic" stat urn0 --qp "$qpn"
    [ "$(wc -l <"$dir/last.out")" -gt 8 ] || fail "$name: no history"
    wait_for "$qpn" "$urnic" stat --processes urn0
    wait_for "${qpn#0x}" "$urnic" top --once --interval 0.2

    # The program follows changes to the device, and to its queue pair alone.
    "$urnic" cc urn0 timely >/dev/null
    wait_for "qp $qpn timely" "$urnic" cc urn0 --qps
    "$urnic" cc urn0 fixed,rate=100M --qp "$qpn" >/dev/null
    wait_for 'rate 100.* Mb/s' "$urnic" cc --qp "$qpn"
    "$urnic" cc urn0 none >/dev/null
    wait_for "qp $qpn fixed" "$urnic" cc urn0 --qps
    wait_for '^1$' bash -c "'$urnic' cc urn0 --qps | grep -c ' none '"
    if "$urnic" cc urn0 none --qp $((qpn ^ 1)) >"$dir/last.out" 2>&1; then
        fail "$name: a queue pair that isn't there"
    fi

    # One of the two queue pairs.
    "$urnic" capture --device urn0 --qp "$qpn" --for 0.3 "$dir/$name.one.pcapng" >"$dir/$name.c.log" 2>&1 </dev/null ||
        fail "$name: the capture of one queue pair failed"
    python3 "$here/check_capture.py" "$dir/$name.one.pcapng" "$qpn" || fail "$name: other queue pairs are in it"

    # A program that stands still is told of, and nothing waits for it longer than that.
    if [ "$engine" = application ]; then
        kill -STOP "$perf"
        timeout 5 "$urnic" stat urn0 --qps >"$dir/last.out" || fail "stat of a stopped program"
        grep -q "\[$perf\]  engine application: no answer within 100 ms" "$dir/last.out" || fail "a stopped program isn't told of"
        grep -q '1 of 1 programs with an engine of their own: no answer' "$dir/last.out" || fail "old counters aren't told of"
        timeout 5 "$urnic" cc urn0 --qps | grep -q 'no answer within 100 ms' || fail "cc doesn't tell of a stopped program"
        if timeout 5 "$urnic" cc urn0 none --qp "$qpn" >"$dir/last.out" 2>&1; then
            fail "cc sets what a stopped program has"
        fi
        grep -q 'has not answered' "$dir/last.out" || fail "cc doesn't say why not"
        kill -CONT "$perf"
        wait_for "qp $qpn RC " "$urnic" stat urn0 --qps
        [ "$(value programs_silent urn0)" = 0 ] || fail "a program that answers again counts as silent"
    fi
    kill -INT "$perf"
    wait "$perf" || fail "$name: perf failed"
    kill "$server"
    wait "$server" || true
    before=$after after=$(value tx_packets urn0)
    ((after >= before)) || fail "$name: counters have gone back: $before, then $after"
    [ "$(value qps urn0)" = 0 ] || fail "$name: queue pairs of a program that has ended"
}
look daemon
look application
echo ok
