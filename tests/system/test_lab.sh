#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# shellcheck disable=SC2086,SC2317,SC2015,SC2016  # $lab is two words; functions are called by check
#
# scripts/lab with a stand-in for the daemon: hosts come up, are told apart, survive a crash of
# their daemon, and go away without a trace. Needs root, else skipped (77).
set -u
lab="$(cd "$(dirname "$0")/../.." && pwd)/scripts/lab --name t$$"
[ "$(id -u)" -eq 0 ] || { echo "needs root: skipped"; exit 77; }

dir=$(mktemp -d)
mkdir "$dir/urnicd" "$dir/urnic"
export URNIC_LAB_DIR=$dir/state URNICD=$dir/urnicd/urnicd
cat >"$URNICD" <<'EOF'
#!/usr/bin/env python3
import signal, socket, sys
args = sys.argv
if "--refuse" in args:
    sys.exit("error: --refuse: no such flag")
if "--stubborn" in args:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.bind(args[args.index("--socket") + 1])
print(*args[1:], flush=True)
while True:
    signal.pause()
EOF
chmod +x "$URNICD"
printf '#!/bin/sh\necho the tool of "$URNIC_SOCKET"\n' >"$dir/urnic/urnic"
chmod +x "$dir/urnic/urnic"
trap '$lab down >/dev/null 2>&1; rm -rf "$dir"' EXIT

failed=0
check() { # check WHAT COMMAND...
    local what=$1
    shift
    if "$@" >"$dir/out" 2>&1; then
        echo "ok   $what"
    else
        echo "FAIL $what"
        sed 's/^/     /' "$dir/out"
        failed=1
    fi
}
said() { # said TEXT COMMAND...: the command prints TEXT, soon
    local text=$1 i
    shift
    for ((i = 0; i < 100; i++)); do
        "$@" >"$dir/said" 2>&1
        grep -qF -- "$text" "$dir/said" && return
        sleep 0.1
    done
    cat "$dir/said"
    return 1
}
ends() { # ends STATUS TEXT COMMAND...: it exits with STATUS and prints TEXT
    local want=$1 text=$2 status=0
    shift 2
    "$@" >"$dir/said" 2>&1 || status=$?
    [ $status = "$want" ] && grep -qF -- "$text" "$dir/said" || { cat "$dir/said"; echo "status $status"; return 1; }
}
refuses() { ends 1 "$@"; } # what can't be done
wrong() { ends 2 "$@"; }   # what can't be meant
nothing_left() {
    ! ls -d /run/netns/urnic-"${lab##* }"-* 2>/dev/null && ! [ -e "$URNIC_LAB_DIR" ] &&
        ! pgrep -f "$URNICD"
}
no_kernel_address() { # v0 is up, and the kernel holds no address on it
    $lab exec 1 ip -o link show v0 | grep -q 'UP' && ! $lab exec 1 ip -o addr show v0 | grep -q inet
}

check "down on nothing" $lab down
check "up, two hosts" $lab up --driver af_packet
check "each host has its own address" said "--addr 10.77.0.2/24 --addr fd77::2/64" $lab log 2
check "the port is named" said "dpdk:net_af_packet0,iface=v0" $lab log 1
check "exec knows the socket" said "$($lab socket 2)" $lab exec 2 printenv URNIC_SOCKET
check "exec knows the tool beside the daemon" said "the tool of $($lab socket 1)" env PATH=/usr/sbin:/usr/bin:/sbin:/bin $lab exec 1 urnic
check "interfaces carry no kernel address" no_kernel_address
check "MTU" said "mtu 9000" $lab exec 1 ip link show v0
check "up again changes nothing" said "is up" $lab up --driver af_packet
check "a cable pulled at the switch" $lab link 1 down
check "is carrier loss at the host" said "NO-CARRIER" $lab exec 1 ip link show v0
check "and comes back" $lab link 1 up
check "kill -9" $lab kill 1
check "is seen" said "10.77.0.1 fd77::1        - " $lab status
check "up mends it" $lab up --driver af_packet
check "restart with flags" $lab restart 1 -- --stubborn
check "a stubborn daemon goes all the same" $lab down
check "nothing is left" nothing_left
check "a daemon's refusal is shown" refuses "--refuse: no such flag" $lab up --driver af_packet -- --refuse
check "and nothing is left" nothing_left
check "three hosts, no daemons" $lab up --hosts 3 --no-daemon
check "the third is there" $lab exec 3 ip link show v0
check "two, direct, instead" $lab up --direct --no-daemon --mtu 4200
check "the third is gone" refuses "no host 3" $lab exec 3 true
check "down" $lab down
check "nothing is left at the end" nothing_left

# A build that is newer, and has no driver for the lab: what scripts/test leaves.
tree=$dir/tree
mkdir -p "$tree/scripts" "$tree"/build{,-tsan}/app/urnicd "$tree/build/app/urnic"
cp "${lab%% *}" "$tree/scripts"
cp "$URNICD" "$tree/build/app/urnicd"
printf '#!/bin/sh\necho "no dpdk: ports in this build" >&2\nexit 1\n' >"$tree/build-tsan/app/urnicd/urnicd"
chmod +x "$tree/build-tsan/app/urnicd/urnicd"
touch -d '1 hour ago' "$tree/build/app/urnicd/urnicd"
mine=$lab
lab="env -u URNICD $tree/scripts/lab --name ${lab##* }"
check "beside a newer TSan build, which one runs is said" said "the hosts run $tree/build/app/urnicd/urnicd" $lab up --driver af_packet
check "and it runs" said "--addr 10.77.0.1/24" $lab log 1
check "down again" $lab down
rm -r "$tree/build"
check "without build/ no other one is taken" refuses "no urnicd in build/ or PATH" env PATH=/usr/sbin:/usr/bin:/sbin:/bin $lab up --driver af_packet
lab=$mine
check "udp: the kernel has the addresses" $lab up --driver udp
check "... and the daemon is told none" said "--port udp:v0 --socket" $lab log 1
check "... both of them" said "fd77::2/64" $lab exec 2 ip addr show v0
check "down once more" $lab down
check "a wrong count" wrong "from 2 to 64" $lab up --hosts 1
check "a wrong command" wrong "no command" $lab sideways
check "a wrong option" wrong "no option --frobnicate" $lab up --frobnicate
check "an option without its value" wrong "a value is missing" $lab up --hosts
check "a wrong driver" wrong "udp, af_packet, af_xdp or none" $lab up --driver nil
check "a wrong MTU" wrong "from 1280 to 9216" $lab up --mtu 64
check "three hosts, direct" wrong "--direct joins two hosts" $lab up --direct --hosts 3
check "which host?" wrong "which host?" $lab exec
check "no host" refuses "no host 1" $lab exec 1 true
check "a missing daemon" refuses "not a program" $lab up --urnicd /nonexistent
exit $failed
