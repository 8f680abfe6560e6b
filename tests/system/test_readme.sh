#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# The tour in doc/tour.md and the programs of README.md, line by line as they stand there: every command succeeds, and nothing is left
# running. But times are shorter, where a person waits a second the test waits for what the person waits
# for, /tmp is a folder of the test's own, and `urnic top` prints two looks instead of waiting for a key.
# Everything is as after `scripts/test`: beside build/ there are newer builds. Then the lines about the lab, as root.
#
#     test_readme.sh SOURCE_ROOT URNICD URNIC
set -euo pipefail
readme=$1/README.md tour=$1/doc/tour.md urnicd=$(realpath "$2") urnic=$(realpath "$3")
dir=$(mktemp -d /tmp/urnic-readme-XXXXXX)
cleanup() {
    local s
    for s in "$dir"/*.sock; do
        [ "${s##*/}" = m.sock ] || "$urnicd" --socket "$s" --stop >/dev/null 2>&1 || true
    done
    [ ! -d "$dir/lab-state" ] || "$dir/scripts/lab" down >/dev/null 2>&1 || true
    rm -rf "$dir"
}
trap cleanup EXIT

# until_there COMMAND...: ten seconds at most
cat >"$dir/tour" <<'END'
until_there() {
    for ((i = 0; i < 100; i++)); do "$@" >/dev/null 2>&1 && return 0; sleep 0.1; done
    echo "gave up waiting for: $*"
    exit 1
}
END
# The indented lines after the mark, up to the next paragraph.
awk '/^<!-- tour/ { on = 1; next } on && /^[^ ]/ { exit } on' "$tour" | sed -e 's/^    //' \
    -e "s|/tmp/|$dir/|g" \
    -e 's/^PERF=$!; sleep 1/PERF=$!; until_there bash -c "urnic stat --qps | grep -q RTS"/' \
    -e 's/^sleep 1/until_there grep -q capturing out/' -e 's/--for 5/--for 2/' -e 's/urnic top/& --once/' \
    -e 's/^\(urnic perf .*[0-9]K\?\)\( *#.*\)\?$/\1 --time 0.5\2/' >>"$dir/tour"
[ "$(grep -c '^urnic' "$dir/tour")" -ge 15 ] || { echo "the tour is not where it was"; exit 1; }

cd "$dir"
mkdir -p build/app/urnic build/app/urnicd
ln -s "$urnic" build/app/urnic/urnic
ln -s "$urnicd" build/app/urnicd/urnicd
mkdir -p scripts build-{asan,tsan}/app/{urnic,urnicd}
cp "${readme%/*}/scripts/lab" scripts
# shellcheck disable=SC2016 # for the stub to expand
for name in build-{asan,tsan}/app/{urnic/urnic,urnicd/urnicd}; do
    printf '#!/bin/sh\necho "$0: not the build of the tour" >&2\nexit 1\n' >"$name"
    chmod +x "$name"
done
if ! bash -e "$dir/tour" >>"$dir/out" 2>&1 </dev/null; then
    echo "a line of the tour failed; up to it:"
    cat "$dir/out"
    exit 1
fi
said() {
    grep -Eq -- "$1" "$dir/out" || { echo "the tour does not say: $1"; cat "$dir/out"; exit 1; }
}
said 'gid 3 +v2 +10\.0\.0\.1'
said '65536 +[1-9][0-9]* '
said 'half round trip'
said '^0 violations'
said ' 0 differ'
said 'qp 0x[0-9a-f]+ RC +RTS'
for s in a b; do
    [ ! -e "$dir/$s.sock" ] || { echo "urnicd at $s.sock was not stopped"; exit 1; }
done

# The programs: need the library that is preloaded.
if [ -e "${urnicd%/app/urnicd/urnicd}/lib/verbs/libibverbs.so.1" ]; then
    awk '/^<!-- programs/ { on = 1; next } on && /^[^ ]/ { exit } on' "$readme" | sed -e 's/^    //' >programs
    [ "$(grep -c '^urnic run' programs)" -ge 2 ] || { echo "the programs are not where they were"; exit 1; }
    if ! bash -e programs >out 2>&1 </dev/null; then
        echo "a program failed:"
        cat out
        exit 1
    fi
    said 'PORT_ACTIVE'
    said '^ *65536 +5000 +[1-9]'
fi

# The lab: needs root, namespaces and the driver for interfaces.
awk '/^<!-- lab/ { on = 1; next } on && /^[^ ]/ { exit } on' "$tour" | sed -e 's/^    //' \
    -e 's/; sleep 1$/; until_there grep -q "waiting on port" out/' | cat <(sed -n '1,/^}/p' tour) - >lab
[ "$(grep -c '^scripts/lab' lab)" -ge 3 ] || { echo "the lab is not where it was"; exit 1; }
if [ "$(id -u)" != 0 ] || ! unshare --net true 2>/dev/null ||
    [ ! -e "${urnicd%/app/urnicd/urnicd}/drivers/dpdk/liburnic-dpdk.so" ]; then
    echo "the lab was not run: it needs root, network namespaces and a build with DPDK"
    exit 0
fi
unset URNICD
export URNIC_LAB=r$$ URNIC_LAB_DIR=$dir/lab-state
if ! bash -e lab >out 2>&1 </dev/null; then
    echo "a line about the lab failed; up to it:"
    cat out
    exit 1
fi
said '^urn0$'
said '10\.77\.0\.1'
said '65536 +[1-9][0-9]* '
said 'lab: is down'
