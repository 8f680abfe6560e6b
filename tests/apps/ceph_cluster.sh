#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# ceph_cluster.sh FOLDER PORT MON-DEVICE OSD-DEVICE GID-INDEX: a Ceph of one monitor and one OSD, which keeps its objects
# in memory, with ms_type=async+rdma. An object is put, got and compared. All of it happens in FOLDER/ceph, and at
# 127.0.0.1:PORT, where the daemons exchange their queue pairs' numbers.
set -eu
mkdir -p "$1/ceph"
cd "$1/ceph"
rm -rf -- *
mkdir mon osd
fsid=$(cat /proc/sys/kernel/random/uuid)
cat >ceph.conf <<EOF
[global]
fsid = $fsid
mon_host = v1:127.0.0.1:$2
public_addr = 127.0.0.1
ms_type = async+rdma
ms_bind_msgr2 = false
ms_async_rdma_device_name = $4
ms_async_rdma_port_num = 1
ms_async_rdma_gid_idx = $5
ms_async_rdma_buffer_size = 16384
ms_async_rdma_receive_buffers = 2048
ms_async_rdma_receive_queue_len = 256
ms_async_rdma_send_buffers = 256
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
run_dir = $PWD
admin_socket = $PWD/\$name.asok
log_file = $PWD/\$name.log
mon_data = $PWD/mon
mon_allow_pool_size_one = true
osd_data = $PWD/osd
osd_objectstore = memstore
memstore_device_bytes = 268435456
osd_pool_default_size = 1
osd_crush_chooseleaf_type = 0
[mon]
ms_async_rdma_device_name = $3
EOF
mon='' osd=''
trap 'kill -9 $mon $osd 2>/dev/null || true' EXIT
ceph() { timeout 20 /usr/bin/ceph -c ceph.conf "$@" 2>>said; }
rados() { timeout 20 /usr/bin/rados -c ceph.conf "$@" 2>>said; }

monmaptool --create --clobber --fsid "$fsid" --addv a "[v1:127.0.0.1:$2]" monmap >said
ceph-mon -c ceph.conf --mkfs -i a --monmap monmap
ceph-mon -c ceph.conf -f -i a >mon.out 2>&1 &
mon=$!
for _ in 1 2 3 4 5 6 7 8 9 10; do
    ceph mon stat && break
    sleep 1
done
uuid=$(cat /proc/sys/kernel/random/uuid)
ceph osd new "$uuid"
ceph-osd -c ceph.conf -i 0 --mkfs --osd-uuid "$uuid" >osd.out 2>&1
ceph-osd -c ceph.conf -f -i 0 >osd.out 2>&1 &
osd=$!
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
    ceph osd stat | grep '1 up' && break
    sleep 1
done
ceph osd pool create pool 4 4
head -c 10000000 /dev/urandom >object
rados -p pool put object object
rados -p pool get object copy
cmp object copy
echo "the object is right"
kill $osd && wait $osd
echo "ceph-osd has ended"
kill $mon && wait $mon
echo "ceph-mon has ended"
mon='' osd=''
