#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# `urnic wire` between two daemons over memif: traffic passes unharmed both ways, and the counts agree;
# with rules exactly that is lost which they name, and the transfer survives it.
#
#     test_wire.sh URNICD URNIC
set -euo pipefail

urnicd=$1 urnic=$2
# shellcheck source=tests/system/rig.sh
. "$(dirname "$0")/rig.sh" wire
details() { for n in 1 2; do "$urnic" --socket "$dir/$n.sock" stat; done; }

for n in 1 2; do
    "$urnicd" --foreground --socket "$dir/$n.sock" --device \
        "name=urn0,port=memif:$dir/$n.memif,role=server,addr=10.0.0.$n/24,mtu=4200" >"$dir/urnicd-$n.log" 2>&1 &
    pids+=($!)
    wait_line serving "$dir/urnicd-$n.log"
done

"$urnic" wire --json "memif:$dir/1.memif,role=client" "memif:$dir/2.memif,role=client" \
    >"$dir/wire.json" 2>"$dir/wire.log" &
wire=$!
pids+=("$wire")
for n in 1 2; do
    wait_for active "$urnic" --socket "$dir/$n.sock" info
done

"$urnic" --socket "$dir/2.sock" perf --server --wait event >"$dir/server.out" 2>&1 &
pids+=($!)
wait_line waiting "$dir/server.out"
for op in write read; do # a busy machine answers SENDs with RNR NAKs
    "$urnic" --socket "$dir/1.sock" perf 10.0.0.2 --op $op --size 64K --time 0.3 --wait event >"$dir/perf.out" 2>&1 ||
        fail "perf --op $op through the bump"
done

# Nothing was lost or put out of order.
for n in 1 2; do
    "$urnic" --socket "$dir/$n.sock" stat --json >"$dir/stat-$n.json"
    for counter in packet_seq_err out_of_sequence rx_icrc_err; do
        [ "$(jq ".counters.$counter // 0" "$dir/stat-$n.json")" = 0 ] || fail "host $n: $counter"
    done
done

kill -INT "$wire"
wait "$wire" || fail "wire ended with $?"
jq -e '.type == "wire" and (.ports | length) == 2 and (.directions | length) == 2' "$dir/wire.json" >/dev/null ||
    fail "the JSON is not what it should be"
# (The first frames of a daemon at link-up find no receiver on the other link yet.)
jq -e '[.directions[] | .received > 1000 and .received == .forwarded + .no_link and .no_link < 20
        and .dropped + .oversize + .no_room == 0] | all' "$dir/wire.json" >/dev/null ||
    { cat "$dir/wire.json"; fail "what came in did not go out"; }
grep -q 'A>B  *[0-9]* frames in' "$dir/wire.log" || fail "no summary"
# Without rules no packet is parsed, so no number of packets is reported.
! grep -q 'RoCE packets' "$dir/wire.log" || { cat "$dir/wire.log"; fail "packets are counted without rules"; }
jq -e '.roce == null and .connections == null' "$dir/wire.json" >/dev/null || fail "a count without rules"

# The fifth packet of the first connection is lost once; when all after it come again, one is damaged.
cat >"$dir/rules" <<EOF
# comment
drop a->b conn 1 psn +4 first-tx
corrupt icrc a->b conn 1 psn +6 retx count 1
delay 1ms b->a ack nth 3
EOF
"$urnic" wire --json --rules "$dir/rules" --capture "$dir/seen.pcapng" \
    "memif:$dir/1.memif,role=client" "memif:$dir/2.memif,role=client" >"$dir/wire.json" 2>"$dir/wire.log" &
wire=$!
pids+=("$wire")
for n in 1 2; do
    wait_for active "$urnic" --socket "$dir/$n.sock" info
done
"$urnic" --socket "$dir/1.sock" perf 10.0.0.2 --size 64K --count 64 --wait event >"$dir/perf.out" 2>&1 ||
    fail "perf with rules"
"$urnic" --socket "$dir/2.sock" stat --json >"$dir/stat-2.json"
jq -e '.counters | .out_of_sequence >= 1 and .rx_icrc_err == 1' "$dir/stat-2.json" >/dev/null ||
    { cat "$dir/stat-2.json"; fail "the faults did not reach host 2"; }
kill -INT "$wire"
wait "$wire" || fail "wire with rules ended with $?"
jq -e '[.rules[].done] == [1, 1, 1] and .rules[0].rule == "drop a->b conn 1 psn +4 first-tx" and .rules[0].line == 2 and
    (.directions[0] | .dropped == 1 and .changed == 1) and .directions[1].held == 1 and
    .roce > 1000 and .connections >= 1 and .forgotten == 0' "$dir/wire.json" >/dev/null ||
    { cat "$dir/wire.json"; fail "the counts of the rules"; }
grep -q '1 *1  drop a->b conn 1' "$dir/wire.log" || fail "the rules are not in the summary"
for comment in dropped damaged 'held back'; do
    grep -aq "$comment" "$dir/seen.pcapng" || fail "the capture does not say '$comment'"
done

# What can't work is said, and how.
if "$urnic" wire mem:x >/dev/null 2>"$dir/last.out"; then fail "one port is taken"; fi
grep -q 'two ports' "$dir/last.out" || fail "one port: no reason"
if "$urnic" wire mem:x nonsense:y >/dev/null 2>"$dir/last.out"; then fail "nonsense is taken"; fi
grep -q "no driver 'nonsense'" "$dir/last.out" || fail "nonsense: no reason"
if "$urnic" wire --rule 'drop psn +4' --rule 'drop sideways' mem:x mem:y 2>"$dir/last.out"; then fail "bad rule"; fi
grep -q "rule 2, column 6: .*'sideways'" "$dir/last.out" || fail "a bad rule: no place, no reason"
echo ok
