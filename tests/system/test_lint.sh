#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# `urnic lint` as a program: our own daemon breaks no rule over a link that loses, doubles, reorders
# and damages; exit statuses, filters and JSON are what --help says.
#
#     test_lint.sh URNICD URNIC LOSS_MATRIX PCAPS
set -euo pipefail
urnicd=$1 urnic=$2 matrix=$3 pcaps=$4
# shellcheck source=tests/system/rig.sh
. "$(dirname "$0")/rig.sh" lint
# expect STATUS ARGUMENT...: output in $dir/out.log
expect() {
    local want=$1 got=0
    shift
    "$urnic" lint "$@" >"$dir/out.log" 2>"$dir/err.log" || got=$?
    [ "$got" = "$want" ] || fail "lint $*: exit $got, not $want"
}

# The command line.
expect 0 "$pcaps/golden-mixed.pcap"
expect 1 "$pcaps/err-rnr.pcap"
grep -q '^violation RNR-02: packet ' "$dir/out.log" || fail "no RNR-02"
expect 0 --rule REQ-02,ack-05 "$pcaps/err-rnr.pcap"
expect 1 --max 1 --violations "$pcaps/err-rnr.pcap"
[ "$(grep -c '^violation' "$dir/out.log")" = 1 ] || fail "--max 1 --violations"
grep -q '^[0-9]* more findings' "$dir/out.log" || fail "what --max hides isn't counted"
expect 2 --strict "$pcaps/golden-mixed.pcap"
expect 0 --strict --rule RSP-10 "$pcaps/golden-mixed.pcap"
expect 1 --connection 1 "$pcaps/err-rnr.pcap"
expect 0 --connection 1 "$pcaps/fault-lose-responses.pcap" # only the third and the fifth break a rule
expect 1 --connection 3 "$pcaps/fault-lose-responses.pcap"
expect 2 "$dir/nothing"
expect 2 --rule XYZ-99 "$pcaps/err-rnr.pcap"
expect 2 "$pcaps/MANIFEST.md"
expect 2 "$pcaps/err-rnr.pcap" "$pcaps/err-rnr.pcap"
expect 0 --rules
grep -q '^RNR-05 ' "$dir/out.log" || fail "--rules"
head -c 20000 "$pcaps/err-rnr.pcap" >"$dir/short.pcap"
expect 1 "$dir/short.pcap"
grep -q 'cut short in packet' "$dir/out.log" || fail "nothing said about the cut"
head -c 24 "$pcaps/err-rnr.pcap" >"$dir/empty.pcap"
expect 2 "$dir/empty.pcap"
{ head -c 20 "$pcaps/err-rnr.pcap"; printf '\x69\0\0\0'; tail -c +25 "$pcaps/err-rnr.pcap"; } >"$dir/wlan.pcap"
expect 2 "$dir/wlan.pcap"
grep -q '^44 packets of link types without Ethernet or IP: not judged' "$dir/out.log" || fail "nothing said of the link type"
expect 2 --json "$dir/wlan.pcap"
grep -q '"other_link": *44' "$dir/out.log" || fail "nothing said of the link type in JSON"
{ head -c 20 "$pcaps/err-rnr.pcap"; printf '\xF7\0\0\0'; tail -c +25 "$pcaps/err-rnr.pcap"; } >"$dir/ib.pcap"
expect 2 "$dir/ib.pcap"
grep -q '^44 packets of link types without Ethernet or IP (InfiniBand itself): not judged' "$dir/out.log" ||
    fail "nothing said of InfiniBand"
{ head -c $((24 + 16 + 1081)) "$pcaps/err-rnr.pcap"; printf x; } >"$dir/damaged.pcap"
expect 2 "$dir/damaged.pcap"
grep -q '^nothing to judge: each RoCE packet is damaged' "$dir/out.log" || fail "nothing said of the damage"
expect 1 - <"$pcaps/err-rnr.pcap"
expect 1 --json "$pcaps/err-rnr.pcap"
python3 - "$dir/out.log" <<'PY' || fail "the JSON isn't what it should be"
import json, sys
o = [json.loads(line) for line in open(sys.argv[1])]
kinds = [x["type"] for x in o]
assert kinds[0] == "capture" and kinds[-1] == "summary" and "connection" in kinds
found = [x for x in o if x["type"] == "finding" and x["verdict"] == "violation"]
assert len(found) == o[-1]["violations"] == 8 and all(x["rule"] == "RNR-02" for x in found)
assert all(x["packet"] and x["dump"] and x["expected"] and x["seen"] for x in found)
flows = [x for x in o if x["type"] == "connection"][0]["flows"]
assert flows[0]["requests"] == 27 and flows[1]["rnr_naks"] == 8 == flows[1]["sequence_naks"]
PY

# Our engine under each fault, as sent by both ends.
for case in $("$matrix" --sample 24 --list | awk '{print $1}' | grep -v /1M/); do
    "$matrix" --case "$case" --capture "$dir/m.pcapng" >"$dir/m.log" 2>&1 || fail "$case failed"
    expect 0 "$dir/m.pcapng"
    ! grep -q '^artefact' "$dir/out.log" || fail "$case: the capture is whole"
done

# Our daemon.
export URNIC_SOCKET=$dir/sock
"$urnicd" --foreground --socket "$URNIC_SOCKET" \
    --port mem:l,loss=0.01,reorder=0.01,dup=0.01,corrupt=0.01 --addr 10.0.0.1/24 \
    --port mem:l --addr 10.0.0.2/24 >"$dir/d.log" 2>&1 </dev/null &
pids+=($!)
wait_line serving "$dir/d.log"
"$urnic" capture --device urn0 "$dir/d.pcapng" >"$dir/c.log" 2>&1 </dev/null &
capture=$!
pids+=("$capture")
wait_line capturing "$dir/c.log"
size=5000
for op in send write read atomic; do
    [ "$op" != atomic ] || size=8
    "$urnic" perf --server --device urn1 >"$dir/p-$op.log" 2>&1 </dev/null &
    server=$!
    pids+=("$server")
    wait_line waiting "$dir/p-$op.log"
    "$urnic" perf 10.0.0.2 --device urn0 --op "$op" --count 200 --size "$size" >"$dir/perf.log" 2>&1 \
        </dev/null || fail "perf $op failed"
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
done
kill -INT "$capture"
wait "$capture" || fail "the capture failed"
expect 0 "$dir/d.pcapng"
grep -q 'by CM' "$dir/out.log" || fail "no connection was learned from the CM"
