#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Huge pages are registered as any other memory: private, shared, of a memfd. Needs root, to have the kernel keep some
# for a moment.
#   test_verbs_huge.sh URNIC MR_KINDS
set -eu
urnic=$1 program=$2
setting=/proc/sys/vm/nr_hugepages
before=$(cat "$setting")
restore() { echo "$before" >"$setting"; }

if ! echo $((before + 8)) 2>/dev/null >"$setting"; then
    echo "skipped: only root can ask for huge pages"
    exit 77
fi
trap restore EXIT
if [ "$(cat "$setting")" -lt $((before + 8)) ]; then
    echo "skipped: the kernel has no memory left in pieces of 2 MiB"
    exit 77
fi
out=$("$urnic" run --private -- "$program")
echo "$out"
grep -q '^PASS mr_kinds - 1[78] kinds$' <<<"$out"
