#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# `urnic wire --suite` against our own daemon: the report card is clean; against a device that times out
# earlier, or sends CNPs more often than it claims, it is not.
#
#     test_wire_suite.sh SCRIPTS/WIRE-SUITE BUILD
set -euo pipefail

suite=$1 build=$2
dir=$(mktemp -d /tmp/urnic-suite-test-XXXXXX)
trap 'rm -rf "$dir"' EXIT

fail() {
    echo "$1"
    tail -c 3000 "$dir"/*
    exit 1
}

"$suite" --build "$build" --json -q >"$dir/card.json" 2>"$dir/log" || fail "exit status $?"
jq -e '.type == "suite" and .failed == 0 and .passed >= 40 and
    ([.results[] | select(.verdict == "PASS").rule] | unique | contains(
        ["ACK-06", "ACK-07", "ACK-08", "CC-03", "CC-04", "ICRC-08", "RD-10", "RD-14", "RNR-05", "RTX-01", "RTX-05",
         "TMR-03", "TMR-04", "TMR-05"]))' "$dir/card.json" >/dev/null || fail "the card lacks something"
jq -e '[.results[] | select(.rule == "TMR-05")] == [{"case": "exhausted", "rule": "TMR-05", "verdict": "PASS",
    "text": "sent 8 times with retry count 7", "value": 8.0, "unit": "transmissions", "faults": "drop b->a write"}]' \
    "$dir/card.json" >/dev/null || fail "TMR-05"

# A device that waits for 67 ms, and should for 268.
if "$suite" --build "$build" -q --only acks-lost --timeout 16 >"$dir/card" 2>"$dir/log"; then
    fail "a device that times out early passes"
fi
grep -Eq '^  FAIL +TMR-03 +timeout after' "$dir/card" || fail "TMR-03 is not FAIL"

# One that sends a CNP each 50 us, and claims 100 ms.
if "$suite" --build "$build" -q --only marked --cnp-interval 100000 >"$dir/card" 2>"$dir/log"; then
    fail "a device that sends too many CNPs passes"
fi
grep -Eq '^  FAIL +CC-04' "$dir/card" || fail "CC-04 is not FAIL"

# Nothing to see is not a pass, and says why.
if "$suite" --build "$build" -q --only go-back --client-b 'echo no such machine; false' >"$dir/card" 2>"$dir/log"; then
    fail "no traffic passes"
fi
grep -Eq 'UNTESTED RTX-01 +no such request came from side B: no such machine' "$dir/card" || fail "no reason"
echo ok
