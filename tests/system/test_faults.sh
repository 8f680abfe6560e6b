#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Fault rules on an emulated link of a running daemon: from a file when the link is made, exchanged while it
# runs, and what they did is told. Data arrive whole all the same.
#
#     test_faults.sh URNICD URNIC
set -euo pipefail

urnicd=$1 urnic=$2
# shellcheck source=tests/system/rig.sh
. "$(dirname "$0")/rig.sh" faults

# expect TEXT COMMAND...: its output has the text
expect() {
    local text=$1
    shift
    "$@" >"$dir/last.out" 2>&1 || fail "failed: $*"
    grep -Eq "$text" "$dir/last.out" || fail "no \"$text\" from: $*"
}

perf() {
    "$urnic" perf 10.0.0.2 --device urn0 --op write --size 4K --count 64 >"$dir/perf.out" 2>&1 ||
        fail "perf failed"
}

cat >"$dir/first.faults" <<END
drop conn 2 psn +4 first-tx     # the second connection, not the first
drop conn 99
END
export URNIC_SOCKET=$dir/sock
"$urnicd" --foreground --socket "$URNIC_SOCKET" --seed 1 \
    --device "name=urn0,port=mem:faults,rules=$dir/first.faults,addr=10.0.0.1/24" \
    --device "name=urn1,port=mem:faults,addr=10.0.0.2/24" >"$dir/urnicd.log" 2>&1 &
pids+=($!)
wait_line serving "$dir/urnicd.log"
"$urnic" perf --server --device urn1 >"$dir/server.out" 2>&1 &
pids+=($!)
wait_line waiting "$dir/server.out"

perf
expect '^ +0 +0 +0  drop conn 2 psn \+4 first-tx$' "$urnic" link urn0 --show
perf
expect '^ +1 +1 +0  drop conn 2 psn \+4 first-tx$' "$urnic" link urn0 --show
expect '"rule":"drop conn 99","matched":0,"done":0,"failed":0' "$urnic" link urn1 --json
expect 'link_lost +1$' "$urnic" stat urn0
expect 'tx_retransmit +[1-9]' "$urnic" stat urn0

# Other rules while it runs, and none. The link's connections count from the rules' beginning.
echo 'corrupt icrc data every 20 count 2' >"$dir/second.faults"
"$urnic" link urn1 --rules "$dir/second.faults"
perf
expect '^ +[0-9]+ +2 +0  corrupt icrc data every 20 count 2$' "$urnic" link urn0 --show
expect 'rx_icrc_err +2$' "$urnic" stat urn1
"$urnic" link urn0 --no-rules
expect '"rules":\[\]' "$urnic" link urn0 --json

# Wrong rules are refused with their place, and those that are there stay.
"$urnic" link urn0 --rules "$dir/second.faults"
printf 'drop\n\n  drop conn x\n' >"$dir/wrong.faults"
"$urnic" link urn0 --rules "$dir/wrong.faults" >"$dir/last.out" 2>&1 && fail "wrong rules were taken"
grep -q "wrong.faults:3:13: expected a number" "$dir/last.out" || fail "the place is not told"
expect 'corrupt icrc' "$urnic" link urn0 --show
"$urnicd" --foreground --socket "$dir/other" --port "mem:x,rules=$dir/wrong.faults" >"$dir/last.out" 2>&1 &&
    fail "the daemon started with wrong rules"
grep -q "wrong.faults:3:13: expected a number" "$dir/last.out" || fail "the daemon doesn't tell the place"
