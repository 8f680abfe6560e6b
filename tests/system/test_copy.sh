#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Copies that fail on the other side: the user learns the reason, whichever side disconnects first.
# Lint judges the packets. $URNIC_ENGINE says where the engines run.
#
#     test_copy.sh URNICD URNIC
set -euo pipefail

urnicd=$1 urnic=$2 tries=5
# shellcheck source=tests/system/rig.sh
. "$(dirname "$0")/rig.sh" copy

export URNIC_SOCKET=$dir/sock
"$urnicd" --foreground --socket "$URNIC_SOCKET" --device name=urn0,port=mem:copy,addr=10.0.0.1/24 \
    --device name=urn1,port=mem:copy,addr=10.0.0.2/24 >"$dir/urnicd.log" 2>&1 &
pids+=($!)
wait_line serving "$dir/urnicd.log"
record "$urnic" urn0
mkdir "$dir/files"
head -c 24000000 /dev/zero >"$dir/big"

# Files of the server have at most 20,000 KiB: its first writes work, a later one doesn't. (Memory that an
# engine in the server shares with liburnic is a file for the kernel, too, and has to fit.)
(
    trap '' XFSZ
    ulimit -f 20000
    exec "$urnic" serve --device urn1 --dir "$dir/files" --once "$tries"
) >"$dir/serve.out" 2>&1 &
pids+=($!)
wait_line serving "$dir/serve.out"
for ((i = 0; i < tries; i++)); do
    status=0
    "$urnic" copy --quiet --device urn0 "$dir/big" 10.0.0.2:big >"$dir/copy.out" 2>&1 || status=$?
    [ "$status" -eq 1 ] || fail "copy ends with status $status, not 1"
    grep -q "the other side says: writing the file: File too large" "$dir/copy.out" ||
        fail "copy $i doesn't say why it failed"
done
judge
echo ok
