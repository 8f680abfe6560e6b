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

# Cases that say anything but PASS. On a machine where a daemon gets no core for a quarter of a second,
# "not later than 4 T" fails: such a case runs again, alone. What is broken stays broken.
not_passed() {
    jq -r '.results[] | select(.verdict != "PASS").case' "$1" | sort -u
}

"$suite" --build "$build" --json -q >"$dir/card.json" 2>"$dir/log" || [ -s "$dir/card.json" ] || fail "no card"
jq -e '.type == "suite" and .passed >= 40 and .passed == ([.results[] | select(.verdict == "PASS")] | length) and
    ([.results[].rule] | unique | contains(["ACK-06", "ACK-07", "ACK-08", "CC-03", "CC-04", "ICRC-08", "RD-10", "RD-14",
        "RNR-05", "RTX-01", "RTX-05", "TMR-03", "TMR-04", "TMR-05"]))' "$dir/card.json" >/dev/null ||
    fail "the card lacks something"
for name in $(not_passed "$dir/card.json"); do
    for try in 1 2 3 4 5; do
        "$suite" --build "$build" --json -q --only "$name" >"$dir/again.json" 2>"$dir/log" || true
        [ -n "$(not_passed "$dir/again.json")" ] || break
        [ "$try" != 5 ] || fail "$name does not pass alone either"
    done
done
jq -e '[.results[] | select(.rule == "TMR-05")][0] | .case == "exhausted" and .unit == "transmissions" and
    .faults == "drop b->a write" and (.text | contains("with retry count 7"))' "$dir/card.json" >/dev/null || fail TMR-05

# A device that waits for 67 ms, and should for 268.
if "$suite" --build "$build" -q --only acks-lost --timeout 16 >"$dir/card" 2>"$dir/log"; then
    fail "a device that times out early passes"
fi
grep -Eq '^  FAIL +TMR-03 +timeout after' "$dir/card" || fail "TMR-03 is not FAIL"

# One that sends a CNP each 50 us, and claims 100 ms.
if "$suite" --build "$build" -q --capture "$dir/seen" --only marked --cnp-interval 100000 >"$dir/card" 2>"$dir/log"; then
    fail "a device that sends too many CNPs passes"
fi
grep -Eq '^  FAIL +CC-04' "$dir/card" || fail "CC-04 is not FAIL"

"$build/app/urnic/urnic" lint --json "$dir/seen" >"$dir/lint" || true
grep -q '"cnps":[1-9]' "$dir/lint" || fail "no CNPs in the capture"
rm "$dir/seen"

# Nothing to see is not a pass, and says why.
if "$suite" --build "$build" -q --only go-back --client-b 'echo no such machine; false' >"$dir/card" 2>"$dir/log"; then
    fail "no traffic passes"
fi
grep -Eq 'UNTESTED RTX-01 +no such request came from side B: no such machine' "$dir/card" || fail "no reason"
echo ok
