#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What DPDK itself moves on this machine: dpdk-testpmd sends (txonly) to dpdk-testpmd (rxonly), over
# DPDK's memif between two processes, and over af_packet on a veth pair. One JSON object per line:
#
#     {"name":"testpmd_memif_74","value":13600000,"unit":"pps","samples":[...]}
#
# value = median of the receiver's packets per second, one sample a second, the first left out.
#
# What is the same for urnic: the bursts of 64, af_packet's rings (1024 frames, no longer than needed)
# and its driver's defaults, among them PACKET_QDISC_BYPASS. What isn't: testpmd's frames go to a MAC
# address that no host has, so the receiving kernel drops them before its IP stack; urnic has to see to
# that itself (drivers/dpdk/dpdk_claim.c). And nothing flows back.
set -euo pipefail

usage() {
    cat <<EOF
usage: $0 [--over memif|af_packet|all] [--sizes "74 1090 4162"] [--seconds N] [--cores RX,TX]

  --over     what to measure over; af_packet needs root (a namespace with a veth pair) [all]
  --sizes    frame sizes without FCS [74 1090 4162]
  --seconds  samples per figure [4]
  --cores    CPUs of the receiver and of the sender [0,1]
EOF
}

over=all sizes="74 1090 4162" seconds=4 cores=0,1
while [ $# -gt 0 ]; do
    case $1 in
    --over | --sizes | --seconds | --cores)
        [ $# -ge 2 ] || { usage >&2; exit 2; }
        declare "${1#--}=$2"
        shift 2
        ;;
    --help | -h) usage; exit 0 ;;
    *) usage >&2; exit 2 ;;
    esac
done
rx_core=${cores%,*} tx_core=${cores#*,}

command -v dpdk-testpmd >/dev/null || {
    echo "dpdk-testpmd is missing: apt-get install dpdk-dev" >&2
    exit 77
}

dir=$(mktemp -d "${TMPDIR:-/tmp}/urnic-testpmd.XXXXXX")
ns=urnic-tp-$$
pids=()

# shellcheck disable=SC2317  # reached by the trap
# Each testpmd is ended by its own pid: asked first, made to when it doesn't listen.
stop_all() {
    local pid
    for pid in "${pids[@]}"; do kill -INT "$pid" 2>/dev/null || true; done
    for pid in "${pids[@]}"; do
        for _ in 1 2 3 4 5 6 7 8 9 10; do
            kill -0 "$pid" 2>/dev/null || break
            sleep 0.1
        done
        kill -KILL "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    pids=()
}
# shellcheck disable=SC2317
cleanup() {
    stop_all
    ip netns del "$ns" 2>/dev/null || true
    rm -rf "$dir"
    rmdir "${XDG_RUNTIME_DIR:-/var/run}"/dpdk/urnic-tp-$$-* 2>/dev/null || true
}
trap cleanup EXIT
trap 'exit 130' INT TERM

# testpmd ROLE CORE VDEV SIZE MBUF [WRAPPER...]: start one in the background.
testpmd() {
    local role=$1 core=$2 vdev=$3 size=$4 mbuf=$5
    shift 5
    # --mbuf-size must stand before --txpkts, or a length above 2176 is ignored.
    # Both of testpmd's threads on the given core: the main one only prints once a second.
    "$@" dpdk-testpmd --no-huge --no-shconf --no-pci --no-telemetry -m 512 \
        --file-prefix="urnic-tp-$$-$role" --lcores="0@$core,1@$core" --vdev="$vdev" -- \
        --mbuf-size="$mbuf" --forward-mode="$role" --txpkts="$size" --burst=64 \
        --total-num-mbufs=8192 --rxd=1024 --txd=1024 --stats-period=1 --auto-start \
        --no-flush-rx >"$dir/$role.log" 2>&1 </dev/null &
    pids+=($!)
}

# report NAME: the receiver's samples, as JSON.
report() {
    local name=$1
    awk -v name="$name" '
        /Rx-pps:/ { for (i = 1; i < NF; i++) if ($i == "Rx-pps:" && $(i + 1) > 0) v[n++] = $(i + 1) }
        END {
            if (n < 2) exit 1
            list = v[1]
            for (i = 2; i < n; i++) list = list "," v[i]
            for (i = 1; i < n; i++) s[i] = v[i]
            for (i = 1; i < n; i++)
                for (j = i + 1; j < n; j++)
                    if (s[j] < s[i]) { t = s[i]; s[i] = s[j]; s[j] = t }
            k = n - 1
            m = k % 2 ? s[(k + 1) / 2] : (s[k / 2] + s[k / 2 + 1]) / 2
            printf "{\"name\":\"%s\",\"value\":%.0f,\"unit\":\"pps\",\"samples\":[%s]}\n", name, m, list
        }' "$dir/rxonly.log" || {
        echo "$name: nothing was received; the sender and the receiver said:" >&2
        tail -n 5 "$dir"/*.log >&2
        return 1
    }
}

# room SIZE: a power of two that holds the frame and some more.
room() {
    local r=2048
    while [ $r -lt $(($1 + 129)) ]; do r=$((r * 2)); done
    echo $r
}

# ring_frame SIZE: what af_packet needs for a frame, as urnic's driver reckons; 16 fill whole pages.
ring_frame() {
    local r=$((($1 + 129 + 255) / 256 * 256))
    echo $((r < 2048 ? 2048 : r))
}

# run NAME SIZE MBUF RX-VDEV TX-VDEV [WRAPPER...]
run() {
    local name=$1 size=$2 mbuf=$3 rx=$4 tx=$5 i
    shift 5
    testpmd rxonly "$rx_core" "$rx" "$size" "$mbuf" "$@"
    for ((i = 0; i < 50; i++)); do
        grep -q 'Port statistics' "$dir/rxonly.log" 2>/dev/null && break
        sleep 0.1
    done
    testpmd txonly "$tx_core" "$tx" "$size" "$mbuf" "$@"
    # On a busy machine a sample can be missing or late: wait for the number, not for the time.
    for ((i = 0; i < (seconds + 4) * 20; i++)); do
        [ "$(grep -c 'Rx-pps: *[1-9]' "$dir/rxonly.log")" -le "$seconds" ] || break
        sleep 0.1
    done
    stop_all
    grep -q "packet len=$size " "$dir/txonly.log" || {
        echo "$name: testpmd did not send frames of $size octets" >&2
        return 1
    }
    report "$name"
}

status=0
if [ "$over" = all ] || [ "$over" = memif ]; then
    for size in $sizes; do
        # A file as socket: the abstract one is shared by everybody in this network namespace.
        common="socket=$dir/memif.sock,socket-abstract=no,bsize=$(room "$size")"
        run "testpmd_memif_$size" "$size" $(($(room "$size") + 128)) \
            "net_memif0,role=server,$common" "net_memif0,role=client,$common" || status=1
    done
fi
if [ "$over" = all ] || [ "$over" = af_packet ]; then
    if [ "$(id -u)" -ne 0 ]; then
        echo "af_packet: needs root for a namespace with a veth pair: left out" >&2
        exit 77
    fi
    ip netns add "$ns"
    ip netns exec "$ns" sysctl -qw net.ipv6.conf.default.disable_ipv6=1
    ip -n "$ns" link add v0 mtu 9000 type veth peer name v1 mtu 9000
    ip -n "$ns" link set v0 up
    ip -n "$ns" link set v1 up
    for size in $sizes; do
        frame=$(ring_frame "$size")
        ring="framesz=$frame,framecnt=1024,blocksz=$((16 * frame))"
        run "testpmd_af_packet_$size" "$size" $((frame + 128)) \
            "net_af_packet0,iface=v1,$ring" "net_af_packet0,iface=v0,$ring" \
            ip netns exec "$ns" || status=1
    done
fi
exit $status
