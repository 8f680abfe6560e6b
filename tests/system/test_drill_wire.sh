#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Packet scripts over a wire: urnicd on a memif port is the device, its own connection manager is the way in.
# Every script that says `wire` passes, those for rping's client as well; one that is wrong fails, and says where.
#
#     test_drill_wire.sh URNICD URNIC DRILL_TARGET SCRIPTS
set -euo pipefail
urnicd=$1 urnic=$2 target=$3 scripts=$4
# shellcheck source=tests/system/rig.sh
. "$(dirname "$0")/rig.sh" drill
trap 'exec 9>&-; cleanup' EXIT # the target ends with its input
drill() { "$urnic" drill --port "memif:$dir/m,role=client" --addr 10.9.0.9/24 --peer "$@"; }

export URNIC_SOCKET=$dir/sock
"$urnicd" --foreground --socket "$URNIC_SOCKET" \
    --device "name=urn0,port=memif:$dir/m,role=server,addr=10.9.0.1/24" >"$dir/d.log" 2>&1 </dev/null &
pids+=($!)
wait_line serving "$dir/d.log"
mkfifo "$dir/in"
"$target" 10.9.0.1 7174 flush <"$dir/in" >"$dir/target.log" 2>&1 &
pids+=($!)
exec 9>"$dir/in"
wait_line ready "$dir/target.log"

drill 10.9.0.1:7174 --record "$dir/run.pcapng" "$scripts" >"$dir/run.log" || fail "a script fails"
tail -n 1 "$dir/run.log"
grep -qE '^[1-9][0-9]* passed, 0 failed' "$dir/run.log" || fail "no script ran"
[ "$(tshark -r "$dir/run.pcapng" -Y 'infiniband.aeth' 2>/dev/null | wc -l)" -gt 5 ] || fail "nothing was recorded"

printf '# ACK-05: wrong on purpose\nwire\nqp A rc\nmr M 64\n< write_only va M rkey M len 8 ackreq\n> ack psn 1\n' \
    >"$dir/wrong.drill"
drill 10.9.0.1:7174 "$dir/wrong.drill" >"$dir/wrong.log" && fail "a wrong script passes"
grep -q 'psn: expected 1, got 0' "$dir/wrong.log" || fail "no word of what is wrong"
rc=0
drill 10.9.0.1:7999 "$dir/wrong.drill" >"$dir/nobody.log" || rc=$?
[ $rc = 2 ] && grep -q 'rejects' "$dir/nobody.log" || fail "nobody listens there, and that isn't said"

# serve PROGRAM: a server for one client
serve() {
    case $1 in
        rping) exec "$urnic" rping --port 7175 ;;
        ucmatose) exec "$urnic" ucmatose --port 7175 --connections 1 --count 5 --size 100 ;;
    esac
}
for script in "$scripts"/wire/*.drill; do
    program=$(basename "$script") program=${program%%_*}
    serve "$program" >"$dir/$program.log" 2>&1 </dev/null &
    server=$!
    pids+=("$server")
    for ((i = 0; ; i++)); do # it listens when it doesn't reject us any more
        rc=0
        drill 10.9.0.1:7175 --server "$program" "$script" >"$dir/one.log" || rc=$?
        grep -q 'rejects' "$dir/one.log" && [ $i -lt 100 ] || break
        sleep 0.05
    done
    grep -q '^1 passed' "$dir/one.log" || fail "$(cat "$dir/one.log")"
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
done
