#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The live sample of the loss matrix with engines in the daemon, in the programs, and one of each: all
# operations over a link that loses, doubles, mixes up and damages packets. The contents must be right, and
# lint finds no broken rule.
#
#     test_live_sample.sh URNICD URNIC LIVE_ENDS
set -euo pipefail
urnicd=$1 urnic=$2 ends=$3
# shellcheck source=tests/system/rig.sh
. "$(dirname "$0")/rig.sh" live-sample
export URNIC_SOCKET=$dir/sock
"$urnicd" --foreground --socket "$URNIC_SOCKET" \
    --port mem:l,loss=0.01,reorder=0.01,dup=0.01,corrupt=0.005 --addr 10.0.0.1/24 \
    --port mem:l --addr 10.0.0.2/24 >"$dir/d.log" 2>&1 </dev/null &
pids+=($!)
wait_line serving "$dir/d.log"

# value NAME DEVICE: a counter
value() { "$urnic" stat "$2" --all | sed -n "s/^ *$1 *\\([0-9]*\\)$/\\1/p"; }

for engines in "daemon daemon" "application daemon" "daemon application" "application application"; do
    read -r one other <<<"$engines"
    again=$(value tx_retransmit urn0) frames=$(value channel_rx_frames urn0)
    record "$urnic" urn0
    LIVE_A=$URNIC_SOCKET LIVE_B=$URNIC_SOCKET LIVE_B_DEVICE=urn1 LIVE_WORKERS=1 \
        LIVE_A_ENGINE=$one LIVE_B_ENGINE=$other "$ends" >"$dir/ends.log" 2>&1 || fail "$engines: the live sample"
    judge
    (($(value tx_retransmit urn0) > again)) || fail "$engines: urn0 has sent nothing again"
    [ "$one" = daemon ] || (($(value channel_rx_frames urn0) > frames)) || fail "$engines: urn0 has received nothing"
    [ "$(value rx_bad_qpn urn1)" = 0 ] || fail "$engines: a packet came for an unknown queue pair"
done
echo ok
