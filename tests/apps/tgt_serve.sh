#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# tgt_serve.sh PORT TARGET FILE INITIATOR: tgt serves FILE as LUN 1 of TARGET by iSER, until it is ended.
# tgt lets an initiator in by iSER only when both its address and its name are bound to the target.
set -eu
port=$1 target=$2 file=$3 initiator=$4
control=$(($$ % 32768))
mkdir -p /var/run/tgtd
tgtd -f -C $control --iscsi portal=127.0.0.1:"$port" --iser port="$port",pool_sz_mb=64 &
daemon=$!
# It hears no SIGTERM.
trap 'kill -9 $daemon; rm -f /var/run/tgtd/socket.$control*; exit 0' TERM INT
trap 'kill -9 $daemon; rm -f /var/run/tgtd/socket.$control*' EXIT
adm() { tgtadm -C $control --lld iser --mode "$@"; }
for _ in 1 2 3 4 5 6 7 8 9 10; do
    adm target --op show >/dev/null 2>&1 && break
    sleep 0.3
done
adm target --op new --tid 1 -T "$target"
adm logicalunit --op new --tid 1 --lun 1 -b "$file"
adm target --op bind --tid 1 -I ALL
adm target --op bind --tid 1 --initiator-name "$initiator"
echo serving
wait $daemon
