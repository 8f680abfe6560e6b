#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# shellcheck disable=SC2086,SC2317,SC2034,SC2001  # $lab is two words; functions are called by check
#
# RDMA between two daemons in scripts/lab over DPDK ports, by IPv4 and IPv6. It survives a pulled
# cable and a killed peer. Needs root, else skipped (77).
#
# usage: test_lab_rdma.sh URNICD URNIC DRIVER
set -u
export URNICD=$1
urnic=$2 driver=$3
lab="$(cd "$(dirname "$0")/../.." && pwd)/scripts/lab --name r$$"
[ "$(id -u)" -eq 0 ] || { echo "needs root: skipped"; exit 77; }

URNIC_LAB_DIR=$(mktemp -d)/state
export URNIC_LAB_DIR
trap '$lab down >/dev/null 2>&1; rmdir "${URNIC_LAB_DIR%/state}"' EXIT

failed=0
check() { # check WHAT COMMAND...
    local what=$1 out
    shift
    if out=$("$@" 2>&1); then
        echo "ok   $what${out:+: }$(tail -n 1 <<<"$out")"
    else
        echo "FAIL $what"
        sed 's/^/     /' <<<"$out"
        failed=1
    fi
}
server() { # in host 2, until the lab goes down
    $lab exec 2 timeout 60 "$urnic" perf --server >/dev/null 2>&1 &
    sleep 0.3
}
write_to() {
    timeout 15 $lab exec 1 "$urnic" perf "$1" --op write --size 1,4096,64K --count 200
}
link_is() { # link_is N 0|1: the port of host N noticed, within two seconds
    local i
    for i in 1 2 3 4 5 6 7 8 9 10; do
        $lab exec "$1" "$urnic" stat | grep -Eq "port_up +$2\$" && return 0
        [ "$2" = 0 ] && ! $lab exec "$1" "$urnic" stat | grep -q port_up && return 0
        sleep 0.2
    done
    $lab exec "$1" "$urnic" stat | grep port_up
    return 1
}

check "up" $lab up --driver "$driver"
server
check "WRITE over IPv4" write_to 10.77.0.2
check "WRITE over IPv6" write_to '[fd77::2]:7472'
check "cable out" $lab link 1 down
check "noticed" link_is 1 0
check "cable in" $lab link 1 up
check "noticed" link_is 1 1
check "WRITE after it" write_to 10.77.0.2
check "kill -9 the peer" $lab kill 2
check "start it again" $lab restart 2
server
check "WRITE to the new one" write_to 10.77.0.2
check "no frame was too long" test -z "$($lab exec 2 "$urnic" stat | grep -E 'oversize +[1-9]')"
exit $failed
