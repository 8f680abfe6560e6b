#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Two kernels with `urnic wire` between their cables: they find each other and see each other's own MAC
# addresses, over IPv4, IPv6, with large frames and VLAN tags; the bump itself is nowhere to be seen.
#
#     test_wire_veth.sh URNIC          (as root, with DPDK; else skipped)
set -euo pipefail

urnic=$1
if [ "$(id -u)" -ne 0 ] || ! unshare --net true 2>/dev/null; then
    echo "needs root for network namespaces: skipped"
    exit 77
fi
dir=$(mktemp -d /tmp/urnic-wire-veth-XXXXXX)
ns=urnic-wv-$$
wire='' servers=()

cleanup() {
    local pid
    for pid in "${servers[@]}"; do kill "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; done
    [ -z "$wire" ] || { kill "$wire" 2>/dev/null || true; wait "$wire" 2>/dev/null || true; }
    for n in 1 2 b; do ip netns del "$ns-$n" 2>/dev/null || true; done
    rm -rf "$dir"
}
trap cleanup EXIT

fail() {
    echo "$1"
    cat "$dir"/* 2>/dev/null
    exit 1
}

for n in 1 2 b; do ip netns add "$ns-$n"; done
ip netns exec "$ns-b" sysctl -qw net.ipv6.conf.default.disable_ipv6=1
for n in 1 2; do
    ip -n "$ns-$n" link add v0 mtu 9000 type veth peer name "p$n" mtu 9000 netns "$ns-b"
    ip -n "$ns-b" link set "p$n" up
    ip -n "$ns-$n" link set v0 up
    # Checksums in software: what the kernel leaves to hardware would arrive unfinished.
    for at in "$ns-$n v0" "$ns-b p$n"; do
        # shellcheck disable=SC2086
        set -- $at
        ip netns exec "$1" ethtool -K "$2" tx off rx off tso off gso off gro off txvlan off rxvlan off \
            >/dev/null 2>&1 || true
    done
    ip -n "$ns-$n" addr add "10.1.0.$n/24" dev v0
    ip -n "$ns-$n" addr add "fd01::$n/64" dev v0 nodad
    ip -n "$ns-$n" link add link v0 name v0.5 type vlan id 5 2>/dev/null || continue # no VLANs in this kernel
    ip -n "$ns-$n" link set v0.5 up
    ip -n "$ns-$n" addr add "10.5.0.$n/24" dev v0.5
done

for _ in 1 2 3 4 5; do # neighbouring interfaces in one namespace: see PACKET_FANOUT in doc/traps.md
    ip netns exec "$ns-b" "$urnic" wire --json --mtu 8950 dpdk:net_af_packet0,iface=p1 \
        dpdk:net_af_packet1,iface=p2 >"$dir/wire.json" 2>"$dir/wire.log" &
    wire=$!
    for _ in $(seq 150); do
        if grep -q forwarding "$dir/wire.log"; then break 2; fi
        kill -0 "$wire" 2>/dev/null || break
        sleep 0.1
    done
    if grep -q 'libdpdk-dev' "$dir/wire.log"; then
        echo "no DPDK in this build: skipped"
        wire=
        exit 77
    fi
done
grep -q forwarding "$dir/wire.log" || fail "urnic wire does not run"

# Datagrams that come back: the server answers each with its octets turned around.
cat >"$dir/echo.py" <<'EOF'
import socket, sys
where, size = sys.argv[1], int(sys.argv[2])
s = socket.socket(socket.AF_INET6 if ":" in where or not where else socket.AF_INET, socket.SOCK_DGRAM)
if not where:
    s.bind(("::", 7777))
    while True:
        data, peer = s.recvfrom(65536)
        s.sendto(data[::-1], peer)
s.settimeout(1)
s.setsockopt(socket.IPPROTO_IP, 10, 2)  # IP_MTU_DISCOVER: never in fragments
sent = bytes(i % 251 for i in range(size))
for _ in range(15):
    s.sendto(sent, (where, 7777))
    try:
        data = s.recv(65536)
    except TimeoutError:
        continue
    sys.exit(data != sent[::-1])
sys.exit("no answer")
EOF
for n in 1 2; do
    ip netns exec "$ns-$n" python3 "$dir/echo.py" "" 0 >"$dir/echo-$n.log" 2>&1 &
    servers+=($!)
done
# echo FROM ADDRESS OCTETS
echo_from() {
    ip netns exec "$ns-$1" python3 "$dir/echo.py" "$2" "$3" >"$dir/echo.log" 2>&1 || fail "host $1: $3 octets to $2"
}
echo_from 1 10.1.0.2 1
echo_from 2 fd01::1 100
! ip -n "$ns-1" link show v0.5 >/dev/null 2>&1 || echo_from 1 10.5.0.2 1000
echo_from 1 10.1.0.2 8900

mac_of() { ip netns exec "$ns-$1" cat /sys/class/net/v0/address; }
for n in 1 2; do
    seen=$(ip -n "$ns-$n" neigh show "10.1.0.$((3 - n))" dev v0 | sed -n 's/.*lladdr \([0-9a-f:]*\).*/\1/p')
    [ "$seen" = "$(mac_of $((3 - n)))" ] || fail "host $n sees $seen, not $(mac_of $((3 - n)))"
    # No other host has sent: one neighbour over IPv4, and its addresses over IPv6.
    others=$(ip -n "$ns-$n" neigh show dev v0 | grep -v "$(mac_of $((3 - n)))" || true)
    [ -z "$others" ] || fail "host $n has other neighbours: $others"
done

kill -INT "$wire"
wait "$wire" || fail "wire ended with $?"
wire=
jq -e '[.directions[] | .received > 4 and .received == .forwarded + .no_link and .oversize == 0] | all' \
    "$dir/wire.json" >/dev/null || fail "the counts"
echo ok
