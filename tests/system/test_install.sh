#!/bin/bash
# SPDX-License-Identifier: BSD-3-Clause
#
# What `meson install` leaves is enough: in a tree of its own, programs are built against it by
# pkg-config alone and talk to its daemon, which finds its driver, reads its example of a configuration
# and tells systemd when it is ready; the manual's pages are pages, and the documents' links lead somewhere. A release can be
# built without tests, without warnings as errors, and with a static library.
#
#     test_install.sh BUILD EXAMPLES
set -euo pipefail
build=$1 examples=$2
here=$(cd "$(dirname "$0")" && pwd)
dir=$(mktemp -d /tmp/urnic-install-XXXXXX)
trap 'rm -rf "$dir"' EXIT
fail() {
    echo "$1"
    exit 1
}
DESTDIR=$dir/root meson install -C "$build" --no-rebuild >"$dir/install.log" 2>&1 ||
    fail "meson install: $(tail -n 5 "$dir/install.log")"
root=$dir/root
pc=$(find "$root" -name urnic.pc)
[ -n "$pc" ] || fail "no urnic.pc"
prefix=$root$(sed -n 's/^prefix=//p' "$pc")
outside=$(find "$root" ! -type d ! -path "$prefix/*")
[ -z "$outside" ] || fail "outside of the prefix: $outside"
export PKG_CONFIG_SYSROOT_DIR=$root PKG_CONFIG_LIBDIR=${pc%/*}
LD_LIBRARY_PATH=$root$(PKG_CONFIG_SYSROOT_DIR='' pkg-config --variable=libdir urnic)
export LD_LIBRARY_PATH
unset URNIC_PLUGIN_DIR

# ---- the library: a header and a .pc file are all that a program needs ----
mkdir "$dir/bin"
for source in "$examples"/*.c; do
    name=$(basename "$source" .c)
    # shellcheck disable=SC2046 # words
    cc -Wall -Wextra -Werror -o "$dir/bin/example-$name" "$source" $(pkg-config --cflags --libs urnic) ||
        fail "$name can't be built against what is installed"
done
printf '#include <urnic/urnic.h>\nint main() { return urnic_inc_rkey(255) != 0; }\n' >"$dir/cpp.cc"
# shellcheck disable=SC2046
c++ -Wall -Wextra -Werror -o "$dir/cpp" "$dir/cpp.cc" $(pkg-config --cflags --libs urnic) && "$dir/cpp" ||
    fail "C++ programs can't use the headers"
# shellcheck disable=SC2046
cc -x c -std=c99 -Wall -Wextra -Wpedantic -Werror -fsyntax-only "$dir/cpp.cc" $(pkg-config --cflags urnic) \
    -Wno-strict-prototypes || fail "the headers are not C99"
if command -v clang++ >/dev/null; then # which minds what other compilers let pass
    # shellcheck disable=SC2046
    clang++ -std=c++11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only "$dir/cpp.cc" $(pkg-config --cflags urnic) ||
        fail "the headers are not C++11"
fi
needs=$(readelf -d "$LD_LIBRARY_PATH"/liburnic.so.0 | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p')
[ "$needs" = libc.so.6 ] || fail "liburnic needs more than libc: $needs"
"$here/test_examples.sh" "$prefix/bin/urnicd" "$prefix/bin/urnic" "$dir/bin" || fail "the examples fail with the installed daemon"

# ---- the daemon ----
"$prefix/bin/urnicd" --config "$prefix/share/doc/urnic/urnicd.json.example" --check-config >/dev/null ||
    fail "the example of a configuration is not good"
if ls "$LD_LIBRARY_PATH"/urnic/liburnic-dpdk.so >/dev/null 2>&1; then
    "$prefix/bin/urnicd" --foreground --socket "$dir/s" --port dpdk:net_af_packet0,iface=nosuch9 \
        --addr 10.0.0.1/24 >"$dir/dpdk.log" 2>&1 && fail "it serves an interface that isn't there"
    # The driver's own words, to root and to others.
    grep -Eq 'no interface "nosuch9"|takes CAP_NET_RAW' "$dir/dpdk.log" || fail "the driver is not found: $(cat "$dir/dpdk.log")"
fi
unit=$(find "$root" -name urnicd.service)
program=$(sed -n 's/^ExecStart=\([^ ]*\).*/\1/p' "$unit")
cmp "$root$program" "$prefix/bin/urnicd" || fail "the unit starts $program"
cat >"$dir/ready.py" <<'EOF'
import os, socket, subprocess, sys
at = sys.argv[1] + "/notify"
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind(at)
s.settimeout(20)
p = subprocess.Popen([sys.argv[2], "--foreground", "--socket", sys.argv[1] + "/sock", "--port", "mem:l",
                      "--addr", "10.0.0.1/24"], env=dict(os.environ, NOTIFY_SOCKET=at))
try:
    said = s.recv(4096)
    there = os.path.exists(sys.argv[1] + "/sock")
finally:
    p.terminate()
    status = p.wait(20)
sys.exit(0 if said == b"READY=1" and there and status == 0 else f"said {said}, socket {there}, status {status}")
EOF
python3 "$dir/ready.py" "$dir" "$prefix/bin/urnicd" 2>"$dir/ready.log" ||
    fail "systemd is not told that it is ready: $(tail -n 2 "$dir/ready.log")"
! command -v systemd-sysusers >/dev/null ||
    systemd-sysusers --dry-run "$prefix"/lib/sysusers.d/urnic.conf >"$dir/users" 2>&1 || fail "$(cat "$dir/users")"

# ---- the manual ----
for page in man1/urnic.1 man8/urnicd.8; do
    if command -v man >/dev/null; then
        MANWIDTH=100 man -l "$prefix/share/man/$page" 2>"$dir/man.log" | grep -q 'SEE ALSO' ||
            fail "$page is not a page: $(head -n 3 "$dir/man.log")"
    else
        grep -q '^\.SH' "$prefix/share/man/$page" || fail "$page is not a page"
    fi
done
for command in $("$prefix/bin/urnic" --help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
    grep -q "$command" "$prefix/share/man/man1/urnic.1" || fail "urnic(1) lacks $command"
done

# ---- the documents ----
doc=$prefix/share/doc/urnic
for file in README.md LICENSE doc/architecture.md doc/examples/pingpong.c; do
    [ -s "$doc/$file" ] || fail "share/doc/urnic lacks $file"
done
# shellcheck disable=SC2013 # words
for link in $(grep -Eoh '\]\((doc/)?[A-Za-z./-]+\)|src="[^"]*"' "$doc/README.md" | sed 's/^](\(.*\))/\1/; s/^src="\(.*\)"/\1/' |
    grep -v '^\(lib\|app\|tests\)/'); do
    [ -e "$doc/$link" ] || fail "the installed README.md links to $link"
done
[ -z "$(find "$doc" -name 'meson*')" ] || fail "files of the build among the documents"

# ---- a release ----
source=$here/../..
env -u PKG_CONFIG_LIBDIR -u PKG_CONFIG_SYSROOT_DIR meson setup -Dbuildtype=release -Dtests=disabled -Ddefault_library=static "$dir/release" "$source" \
    >"$dir/setup.log" 2>&1 || fail "a release: $(tail -n 5 "$dir/setup.log")"
[ "$(meson introspect --tests "$dir/release")" = "[]" ] || fail "-Dtests=disabled has tests"
! grep -q 'dependency check ' "$dir/setup.log" || fail "-Dtests=disabled looks for Check: $(grep check "$dir/setup.log")"
meson introspect --buildoptions "$dir/release" | jq -e '.[] | select(.name == "werror").value == false' >/dev/null ||
    fail "a warning is an error to people who build a release"
ninja -C "$dir/release" lib/client/liburnic.a >"$dir/ninja.log" 2>&1 || fail "a static library: $(tail -n 5 "$dir/ninja.log")"
DESTDIR=$dir/static meson install -C "$dir/release" --no-rebuild --tags devel >"$dir/install.log" 2>&1 ||
    fail "meson install: $(tail -n 5 "$dir/install.log")"
export PKG_CONFIG_SYSROOT_DIR=$dir/static
PKG_CONFIG_LIBDIR=$(dirname "$(find "$dir/static" -name urnic.pc)")
# The library's own functions are not in the way of an application's.
printf 'int client_channel_next(void);\nint ipc_map(void);\nint client_channel_next(void) { return 0; }\nint ipc_map(void) { return 0; }\n' \
    >"$dir/mine.c"
# shellcheck disable=SC2046
cc -Wall -Wextra -Werror -o "$dir/pingpong" "$examples/pingpong.c" "$dir/mine.c" \
    $(pkg-config --static --cflags --libs urnic) || fail "pingpong can't be built against the static library"
needs=$(readelf -d "$dir/pingpong" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p')
[ "$needs" = libc.so.6 ] || fail "with the static library a program needs $needs"
foreign=$(nm -g --defined-only "$(find "$dir/static" -name liburnic.a)" | sed -n 's/.* [A-Z] //p' | grep -v ^urnic_ || true)
[ -z "$foreign" ] || fail "the static library has other names: $foreign"
