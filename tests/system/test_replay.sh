#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# `urnic replay` over every capture of pcaps/: each has the exit status and the rules that
# pcaps/expected-replay.txt says; no capture lacks a line.
set -u
urnic=$1 pcaps=$2
status=0

fail() {
    printf '%s\n' "$*" >&2
    status=1
}

# "RD-10:3 RNR-02:8" of a run's JSON lines.
rules() {
    sed -n 's/.*"type":"difference".*"rule":"\([A-Z0-9-]*\)".*/\1/p' | sort | uniq -c |
        awk '{ printf "%s%s:%d", n++ ? " " : "", $2, $1 }'
}

seen=0
while read -r name role want_status want_rules; do
    case $name in '' | '#'*) continue ;; esac
    out=$("$urnic" replay --json --max 0 --as "$role" "$pcaps/$name")
    got=$?
    got_rules=$(printf '%s\n' "$out" | rules)
    [ "$got $got_rules" = "$want_status $want_rules" ] ||
        fail "$name as $role: expected $want_status '$want_rules', got $got '$got_rules'"
    seen=$((seen + 1))
done <"$pcaps/expected-replay.txt"
[ "$seen" -gt 100 ] || fail "only $seen lines in expected-replay.txt"
for f in "$pcaps"/*.pcap "$pcaps"/*.pcapng; do
    grep -q "^$(basename "$f") " "$pcaps/expected-replay.txt" || fail "$f has no line"
done
# A time is written as short as it can be read back.
"$urnic" replay --json "$pcaps/err-rnr.pcap" | head -n 1 | grep -q '"time":0.000733,' || fail "the time of a difference"
# Where there is nothing to compare, it says why: no packet; one packet, without an answer.
part=$(mktemp)
trap 'rm -f "$part"' EXIT
head -c 24 "$pcaps/err-rnr.pcap" >"$part"
out=$("$urnic" replay "$part") && fail "an empty capture is no success"
printf '%s\n' "$out" | grep -q 'nothing to compare: no RoCE packet' || fail "an empty capture: $out"
{ head -c 20 "$pcaps/err-rnr.pcap"; printf '\x69\0\0\0'; tail -c +25 "$pcaps/err-rnr.pcap"; } >"$part"
out=$("$urnic" replay "$part") && fail "packets of another link type are no success"
printf '%s\n' "$out" | grep -q '44 packets of link types without Ethernet or IP' || fail "another link type: $out"
"$urnic" replay --json "$part" | grep -q '"other_link": *44' || fail "another link type, JSON"
{ head -c $((24 + 16 + 1081)) "$pcaps/err-rnr.pcap"; printf x; } >"$part"
out=$("$urnic" replay "$part") && fail "a damaged packet is no success"
printf '%s\n' "$out" | grep -q 'nothing to compare: each RoCE packet is damaged' || fail "a damaged packet: $out"
head -c $((24 + 16 + 1082)) "$pcaps/err-rnr.pcap" >"$part"
out=$("$urnic" replay --as responder "$part") && fail "one packet is no success"
printf '%s\n' "$out" | grep -q 'nothing to compare: no connection has both' || fail "one packet: $out"
# XRC isn't replayed, and it says so.
{
    printf '\xd4\xc3\xb2\xa1\2\0\4\0\0\0\0\0\0\0\0\0\0\0\4\0\1\0\0\0'
    printf '\0\0\0\0\0\0\0\0\x3e\0\0\0\x3e\0\0\0'
    printf '\x02\x00\x00\x00\x00\x02\x02\x00\x00\x00\x00\x01\x08\x00\x45\x6a\x00\x30\x44\xcc\x40\x00\x40\x11\xe1\x82\x0a\x01\x00\x01\x0a'
    printf '\x01\x00\x02\xc0\x00\x12\xb7\x00\x1c\x00\x00\xa4\x40\xff\xff\x00\x00\x02\x00\x80\x00\x00\x64\x00\x00\x00\x33\x08\xc8\x77\xc8'
} >"$part"
out=$("$urnic" replay "$part") && fail "XRC is no success"
printf '%s\n' "$out" | grep -q "0 differ; 1 of XRC, which isn't replayed" || fail "XRC: $out"
printf '%s\n' "$out" | grep -q 'nothing to compare: each RoCE packet is of XRC' || fail "nothing but XRC: $out"
# More than may be held: it says so, and what to do, and prints no half of a result.
head -c 24 "$pcaps/write-lat.pcap" >"$part"
for _ in 1 2 3 4; do tail -c +25 "$pcaps/write-lat.pcap" >>"$part"; done
out=$("$urnic" replay --memory 1M "$part" 2>&1)
[ $? -eq 2 ] || fail "more memory than --memory allows: status $?"
[ "$out" = "${out#difference}" ] || fail "half of a result: $out"
printf '%s\n' "$out" | grep -q 'takes more than 1.0 MiB of memory: allow more with --memory, or cut it' ||
    fail "more memory than --memory allows: $out"
"$urnic" replay --memory 64M "$part" >/dev/null 2>&1
[ $? -eq 2 ] && fail "--memory 64M is enough"
# Without a terminal there is no progress.
[ -z "$("$urnic" replay "$part" 2>&1 >/dev/null)" ] || fail "progress, without a terminal"
exit $status
