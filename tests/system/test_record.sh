#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The captures that the recorder makes now: each shows its subject, breaks no rule, and replays as
# pcaps/expected-*.txt say of the kept one; two runs make the same octets.
#
#     test_record.sh URNIC RECORD PCAPS
set -u
urnic=$1 record=$2 pcaps=$3
dir=$(mktemp -d /tmp/urnic-record-XXXXXX)
trap 'rm -rf "$dir"' EXIT
status=0

fail() {
    printf '%s\n' "$*" >&2
    status=1
}

mkdir "$dir/1" "$dir/2"
"$record" "$dir/1" || fail "a scenario doesn't show what it is for"
"$record" "$dir/2" || fail "the second time, a scenario doesn't show what it is for"
diff -r "$dir/1" "$dir/2" >&2 || fail "made twice, they differ"

rc=0
"$record" "$dir/1" nosuch >"$dir/out" 2>&1 || rc=$?
[ "$rc" = 2 ] && grep -q "no scenario 'nosuch'" "$dir/out" || fail "a scenario that is none: exit status $rc"

n=0 changed=0
for f in "$dir"/1/*.pcapng; do
    name=$(basename "$f")
    n=$((n + 1))
    cmp -s "$f" "$pcaps/$name" || changed=$((changed + 1))
    want=$(awk -v f="$name" '$1 == f { print $2 }' "$pcaps/expected-lint.txt")
    "$urnic" lint --violations "$f" >"$dir/out" 2>&1
    got=$?
    [ "$got" = "$want" ] || { cat "$dir/out" >&2; fail "$name: lint exits with $got, not ${want:-listed}"; }
    for role in responder requester; do
        want=$(awk -v f="$name" -v r="$role" '$1 == f && $2 == r { print $3 }' "$pcaps/expected-replay.txt")
        "$urnic" replay --as "$role" "$f" >"$dir/out" 2>&1
        got=$?
        [ "$got" = "$want" ] ||
            { cat "$dir/out" >&2; fail "$name: replay as $role exits with $got, not ${want:-listed}"; }
    done
done
[ "$n" -gt 30 ] || fail "only $n captures"
echo "$n captures; $changed aren't those of pcaps/: see scripts/record-pcaps"
exit $status
