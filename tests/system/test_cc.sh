#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Congestion control of a running daemon: marks on an emulated link become CNPs, these become rates that
# the tools show; parameters are changed while traffic runs, of the device and of one queue pair (CC-25).
#
#     test_cc.sh URNICD URNIC
set -euo pipefail

urnicd=$1 urnic=$2
# shellcheck source=tests/system/rig.sh
. "$(dirname "$0")/rig.sh" cc

export URNIC_SOCKET=$dir/sock
"$urnicd" --foreground --socket "$URNIC_SOCKET" --seed 1 \
    --device "name=urn0,port=mem:cc,rate=1G,queue=4M,ecn_kmin=20K,ecn_kmax=20K,ecn_pmax=1,cc=dcqcn:paper,recovery=sr,addr=10.0.0.1/24" \
    --device "name=urn1,port=mem:cc,cc=dcqcn:paper,recovery=sr,addr=10.0.0.2/24" >"$dir/urnicd.log" 2>&1 &
pids+=($!)
wait_line serving "$dir/urnicd.log"
grep -q "cc: urn0: dcqcn:paper,.*timer=2200us,.*ai=1M,.*recovery=sr" "$dir/urnicd.log" ||
    fail "the log doesn't state the parameters, fitted to 1 Gb/s (CC-31)"

"$urnic" perf --server --device urn1 >"$dir/server.out" 2>&1 &
pids+=($!)
wait_line waiting "$dir/server.out"
"$urnic" perf 10.0.0.2 --device urn0 --op write --size 64K --time 60 >"$dir/perf.out" 2>&1 &
pids+=($!)

wait_for 'np_cnp_sent +[1-9]' "$urnic" stat urn1
wait_for 'rp_cnp_handled +[1-9]' "$urnic" stat urn0
"$urnic" cc urn0 --qps >"$dir/last.out"
qpn=$(sed -n '/^ *qp 0x/{s/^ *qp \(0x[0-9a-f]*\) .*/\1/p;q}' "$dir/last.out")
wait_for ' CNP rate [0-9]+ Mb/s target [0-9]+ Mb/s alpha 0\.[0-9]*[1-9]' "$urnic" stat urn0 --qp "$qpn"
wait_for 'cc dcqcn rate [0-9.]+ [MG]b/s alpha 0\.[0-9]*[1-9]' "$urnic" stat urn0 --qps
wait_for '"recovery":"sr","agreed":true' "$urnic" cc urn0 --qps --json
wait_for 'np_ecn_marked_roce_packets +[1-9]' "$urnic" stat urn1

"$urnic" cc urn0 timely >/dev/null
wait_for '"cc":"timely"' "$urnic" cc urn0 --qps --json
grep -q 'cc: urn0: timely:paper' "$dir/urnicd.log" || fail "the log doesn't state the change"
"$urnic" cc urn0 fixed,rate=100M --qp "$qpn" >/dev/null
wait_for 'rate 100.* Mb/s' "$urnic" cc urn0 --qp "$qpn"
grep -Eqi "cc: urn0 qp $qpn: fixed:default,.*rate=100M" "$dir/urnicd.log" || fail "the log doesn't state the queue pair's"
"$urnic" cc urn0 none >/dev/null # the queue pair keeps its own
wait_for 'rate 100.* Mb/s' "$urnic" cc urn0 --qp "$qpn"

# Whose it is needn't be said.
"$urnic" cc --qp "$qpn" | grep -q "^urn0 .*fixed:default" || fail "a queue pair of the first device"
"$urnic" cc urn1 --qps >"$dir/last.out"
peer=$(sed -n '/^ *qp 0x/{s/^ *qp \(0x[0-9a-f]*\) .*/\1/p;q}' "$dir/last.out")
"$urnic" cc --qp "$peer" | grep -q "^urn1 " || fail "a queue pair of the second device"
if "$urnic" cc --qp 1234567 >"$dir/last.out" 2>&1 || ! grep -q 'no queue pair 0x12d687' "$dir/last.out"; then
    fail "a queue pair of no device"
fi

# However many queue pairs there are: an answer of the daemon holds some hundred.
"$urnic" perf 10.0.0.2 --device urn0 --idle-qps 300 --time 60 >"$dir/many.out" 2>&1 &
pids+=($!)
wait_for 'urn1 302' bash -c "'$urnic' info >/dev/null && echo urn1 \$('$urnic' stat urn1 --qps --json | grep -o '\"qpn\"' | wc -l)"
for device in urn0 urn1; do
    "$urnic" cc "$device" --qps >"$dir/last.out" || fail "cc --qps of many"
    [ "$(sed -n 's/^  qp \(0x[0-9a-f]*\) .*/\1/p' "$dir/last.out" | sort -u | wc -l)" -eq 302 ] || fail "cc --qps lacks some"
done
"$urnic" cc --qps --json >"$dir/last.out" || fail "cc --qps --json of many"
[ "$(wc -l <"$dir/last.out") $(grep -o '"qpn"' "$dir/last.out" | wc -l)" = "2 604" ] || fail "cc --qps --json lacks some"

# What a run ran with stands in its log.
"$urnic" perf 10.0.0.2 --device urn0 --op write --size 1K --count 10 --json >"$dir/last.out"
grep -Eq '"parameters":.*"depth":128,.*"cc":"none:default,.*recovery=gbn' "$dir/last.out" || fail "perf's parameters"

if "$urnic" cc urn0 nonsense >"$dir/last.out" 2>&1; then
    fail "nonsense is taken"
fi
grep -q 'known: none fixed dcqcn' "$dir/last.out" || fail "the message doesn't say what there is"
if "$urnic" cc urn0 none --qp 1234567 >/dev/null 2>&1; then
    fail "a queue pair that isn't there"
fi
"$urnic" cc --list >"$dir/last.out"
grep -q 'dcqcn-mlx:hpcc' "$dir/last.out" || fail "--list lacks a preset"
echo ok
