#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# contained.sh COMMAND...: runs COMMAND, under `urnic run`, in a container of bubblewrap: of this machine it has /usr, read
# only, and of urnic the library, the engine that it loads, and the daemon's socket. OPTIONS are bwrap's, beside those below.
set -eu
folder=$(dirname "$URNIC_SOCKET")
library=${LD_PRELOAD%%[: ]*}
for engine in "$(dirname "$library")"/liburnic-engine.so "$(dirname "$library")"/../nic/program/liburnic-engine.so; do
    [ -e "$engine" ] && OPTIONS="--ro-bind $engine /urnic/liburnic-engine.so ${OPTIONS:-}"
done
unset LD_PRELOAD
# shellcheck disable=SC2086 # several words
exec bwrap --ro-bind /usr /usr --symlink usr/lib /lib --symlink usr/lib64 /lib64 --symlink usr/bin /bin --proc /proc \
    --dev /dev --tmpfs /tmp --unshare-ipc --unshare-uts --unshare-cgroup-try --ro-bind "$library" /urnic/libibverbs.so.1 \
    --bind "$folder" /run/urnic --setenv URNIC_SOCKET "/run/urnic/$(basename "$URNIC_SOCKET")" \
    --setenv LD_PRELOAD /urnic/libibverbs.so.1 ${OPTIONS:-} "$@"
