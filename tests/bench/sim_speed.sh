#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Speed of the simulator: packet-hops per second of one core, leaf-spine, 100 Gb/s, MTU 1024, payload
# skipped, 64 and 1,024 hosts with the same number of packets; and the all-reduce over 1,024 hosts.
# usage: sim_speed.sh [URNIC]
set -eu
top=$(cd "$(dirname "$0")/../.." && pwd)
urnic=${1:-$top/build/app/urnic/urnic}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

cat >"$tmp/speed.sim" <<'SIM'
set leaves 4
set size 32M
duration 10s
topology leaf-spine hosts=16 leaves=$leaves spines=4 rate=100G core=400G delay=500ns
switch buffer=32M pfc=on
permutation size=$size
SIM

speed() { # options: best of three, in millions per second
    for _ in 1 2 3; do
        "$urnic" sim "$@" 2>&1 | sed -n 's/.* s, \([0-9.]*\) M packet-hops.*/\1/p'
    done | sort -n | tail -1
}
small=$(speed "$tmp/speed.sim")
large=$(speed "$tmp/speed.sim" -s leaves=64 -s size=2M)
echo "64 hosts:    $small M packet-hops/s (goal: 1)"
echo "1,024 hosts: $large M packet-hops/s, slow-down $(awk "BEGIN { print $small / $large }") (goal: 1.5)"

SECONDS=0
"$urnic" sim -q "$top/app/urnic/scenarios/all-reduce.sim" -s hosts=1024 -s cc=dcqcn
echo "all-reduce over 1,024 hosts: $SECONDS s (goal: 600)"
