#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# A capture of a real transfer over a lossy link: every iCRC is right, tshark finds nothing malformed and
# names the connection manager's messages, and a capture of one queue pair holds nothing else.
#
#     test_capture.sh URNICD URNIC
set -euo pipefail
urnicd=$1 urnic=$2
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/system/rig.sh
. "$(dirname "$0")/rig.sh" capture
export URNIC_SOCKET=$dir/sock
"$urnicd" --foreground --socket "$URNIC_SOCKET" --seed 3 --port mem:l,loss=0.01,reorder=0.01 \
    --addr 10.0.0.1/24 --port mem:l --addr 10.0.0.2/24 >"$dir/d.log" 2>&1 </dev/null &
pids+=($!)
wait_line serving "$dir/d.log"
head -c 4000000 /dev/urandom >"$dir/file"

"$urnic" capture --device urn0 "$dir/all.pcapng" >"$dir/c.log" 2>&1 </dev/null &
capture=$!
pids+=("$capture")
wait_line capturing "$dir/c.log"
mkdir "$dir/there"
"$urnic" serve --device urn1 --dir "$dir/there" --once 1 >"$dir/s.log" 2>&1 </dev/null &
pids+=($!)
wait_line serving "$dir/s.log"
"$urnic" copy --quiet --device urn0 "$dir/file" 10.0.0.2:file || fail "the copy failed"
sleep 1.5 # the goodbye, repeated if it was lost
kill -INT "$capture"
wait "$capture" || fail "the capture failed"
cmp "$dir/file" "$dir/there/file" || fail "the copy differs"

python3 "$here/check_capture.py" "$dir/all.pcapng" || fail "the capture is not good"
tshark -r "$dir/all.pcapng" --disable-protocol rpcordma -Y '_ws.malformed' 2>/dev/null >"$dir/bad"
[ ! -s "$dir/bad" ] || fail "tshark calls these malformed: $(head -n 3 "$dir/bad")"
tshark -r "$dir/all.pcapng" --disable-protocol rpcordma 2>/dev/null >"$dir/text"
for message in ConnectRequest ConnectReply ReadyToUse DisconnectRequest DisconnectReply; do
    grep -q "CM: $message" "$dir/text" || fail "tshark sees no $message"
done

# A file that can't be written is no success, and that is said at once.
full() { # FILE STATUS LOG: what came of a capture into it
    [ "$2" -eq 1 ] || fail "status $2 of a capture onto the full disk of $1"
    grep -q "$1: No space left" "$3" || fail "the full disk of $1 has no name: $(cat "$3")"
    ! grep 'Ctrl-C ends' "$3" || fail "a capture onto the full disk of $1 has started"
}
status=0
timeout 20 "$urnic" capture --device urn0 /dev/full >"$dir/full.log" 2>&1 </dev/null || status=$?
full /dev/full "$status" "$dir/full.log"
mkdir "$dir/tiny"
if unshare -m true 2>/dev/null; then
    status=0
    unshare -m bash -s - "$dir/tiny" "$urnic" >"$dir/tiny.log" 2>&1 <<'END' || status=$?
mount -t tmpfs -o size=64k tiny "$1" || exit
head -c 128K /dev/zero 2>/dev/null >"$1/large"
exec timeout 20 "$2" capture --device urn0 "$1/all.pcapng"
END
    full "$dir/tiny/all.pcapng" "$status" "$dir/tiny.log"
else
    echo "skipped: a full file system: only root can mount one"
fi

# A FIFO waits for its reader, and that he has gone is said at once.
mkfifo "$dir/fifo"
head -c 16 "$dir/fifo" >"$dir/head" &
reader=$!
timeout 20 "$urnic" capture --device urn0 "$dir/fifo" >"$dir/fifo.log" 2>&1 </dev/null &
capture=$!
pids+=("$capture")
wait_line capturing "$dir/fifo.log"
wait "$reader"
[ "$(stat -c %s "$dir/head")" -eq 16 ] || fail "nothing came out of the FIFO"
status=0
wait "$capture" || status=$?
[ "$status" -eq 1 ] || fail "a capture whose reader has gone: status $status"
grep -q "$dir/fifo: Broken pipe" "$dir/fifo.log" && grep -q "frames, .* at least .* not written" "$dir/fifo.log" ||
    fail "the FIFO without a reader: $(cat "$dir/fifo.log")"

# One of two queue pairs.
"$urnic" perf --server --device urn1 >"$dir/p.log" 2>&1 </dev/null &
pids+=($!)
wait_line waiting "$dir/p.log"
"$urnic" perf 10.0.0.2 --device urn0 --qps 2 --size 1K --time 60 >"$dir/perf.log" 2>&1 </dev/null &
perf=$!
pids+=("$perf")
for ((i = 0; i < 100; i++)); do
    qpn=$("$urnic" stat urn0 --qps --json | python3 -c '
import json, sys
qps = [q for q in json.load(sys.stdin)["qps"] if q["state"] == "RTS" and q["type"] == "RC"]
print(qps[0]["qpn"] if len(qps) == 2 else "")')
    [ -z "$qpn" ] || break
    sleep 0.05
done
[ -n "$qpn" ] || fail "the two queue pairs never came up"
"$urnic" capture --device urn0 --qp "$qpn" --for 0.3 "$dir/one.pcapng" >"$dir/c1.log" 2>&1 </dev/null ||
    fail "the capture of one queue pair failed"
python3 "$here/check_capture.py" "$dir/one.pcapng" "$qpn" || fail "other queue pairs are in it"

# A reader that has a FIFO open and reads nothing misses its end, and is not waited for.
exec 9<>"$dir/fifo"
status=0
timeout 20 "$urnic" capture --device urn0 --for 0.3 "$dir/fifo" >"$dir/unread.log" 2>&1 </dev/null || status=$?
[ "$status" -eq 1 ] && grep -q "$dir/fifo: its reader doesn't read" "$dir/unread.log" &&
    grep -q "^[1-9][0-9]* frames, .* at least [1-9][0-9]* not written" "$dir/unread.log" ||
    fail "a FIFO that nobody reads: status $status, $(cat "$dir/unread.log")"
exec 9>&-

# What is cut off still counts in a frame's length on the wire.
"$urnic" capture --device urn0 --snaplen 100 --for 0.3 "$dir/cut.pcapng" >"$dir/c2.log" 2>&1 </dev/null ||
    fail "the capture with --snaplen failed"
tshark -r "$dir/cut.pcapng" -T fields -e frame.cap_len -e frame.len 2>/dev/null | sort -u >"$dir/lengths"
grep -q '^100[[:space:]]1[0-9][0-9][0-9]$' "$dir/lengths" || fail "lengths with --snaplen 100: $(cat "$dir/lengths")"
kill -INT "$perf"
wait "$perf" || fail "perf failed"

# Nothing comes any more from a daemon that has ended.
"$urnic" capture --device urn0 "$dir/last.pcapng" >"$dir/c3.log" 2>&1 </dev/null &
capture=$!
pids+=("$capture")
wait_line capturing "$dir/c3.log"
"$urnicd" --stop
for ((i = 0; i < 200; i++)); do
    kill -0 "$capture" 2>/dev/null || break
    sleep 0.05
done
((i < 200)) || fail "the capture outlives its daemon"
! wait "$capture" || fail "a capture whose daemon has ended is no success"
