#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Programs that run the engine themselves are seen from outside as those that don't (SHM-14): captures are
# taken in the daemon's switch, and lint finds nothing in them.
#
#     test_seen.sh URNICD URNIC
set -euo pipefail
urnicd=$1 urnic=$2
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=tests/system/rig.sh
. "$(dirname "$0")/rig.sh" seen
export URNIC_SOCKET=$dir/sock
"$urnicd" --foreground --socket "$URNIC_SOCKET" --seed 3 --port mem:l --addr 10.0.0.1/24 \
    --port mem:l --addr 10.0.0.2/24 >"$dir/d.log" 2>&1 </dev/null &
pids+=($!)
wait_line serving "$dir/d.log"
head -c 2000000 /dev/urandom >"$dir/file"

# packets FILE FILTER: how many there are
packets() { tshark -r "$1" -Y "$2" 2>/dev/null | wc -l; }

# copy_seen HERE THERE DEVICE ADDRESS: a copy from urn0 to DEVICE, with these engines, and a capture of it
copy_seen() {
    local name=$1-$2-$3 capture serve
    "$urnic" capture --device urn0 "$dir/$name.pcapng" >"$dir/$name.c.log" 2>&1 </dev/null &
    capture=$!
    pids+=("$capture")
    wait_line capturing "$dir/$name.c.log"
    mkdir "$dir/$name"
    URNIC_ENGINE=$2 "$urnic" serve --device "$3" --dir "$dir/$name" --once 1 >"$dir/$name.s.log" 2>&1 </dev/null &
    serve=$!
    pids+=("$serve")
    wait_line serving "$dir/$name.s.log"
    URNIC_ENGINE=$1 "$urnic" copy --quiet --device urn0 "$dir/file" "$4:file" || fail "$name: the copy failed"
    wait "$serve" || fail "$name: serve failed"
    sleep 0.5 # the goodbye
    kill -INT "$capture"
    wait "$capture" || fail "$name: the capture failed"
    cmp "$dir/file" "$dir/$name/file" || fail "$name: the copy differs"
    # Timers of two ends on one machine say nothing about the protocol, so only violations count.
    "$urnic" lint --violations "$dir/$name.pcapng" >"$dir/$name.lint.log" 2>&1 || fail "$name: lint finds something"
    # A device that sends to itself receives nothing from its port.
    [ "$3" = urn0 ] || python3 "$here/check_capture.py" "$dir/$name.pcapng" || fail "$name: the capture is not good"
    [ "$(packets "$dir/$name.pcapng" 'infiniband.bth.opcode == 0x11')" -gt 5 ] || fail "$name: no ACKs were captured"
    [ "$(packets "$dir/$name.pcapng" 'data.len > 1000 || infiniband.payload')" -gt 100 ] || fail "$name: no data was captured"
}
copy_seen application application urn1 10.0.0.2
copy_seen application daemon urn1 10.0.0.2
copy_seen daemon application urn1 10.0.0.2
copy_seen application application urn0 10.0.0.1 # inside the switch
copy_seen application daemon urn0 10.0.0.1
echo ok
