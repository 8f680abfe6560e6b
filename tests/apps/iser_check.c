// SPDX-License-Identifier: BSD-3-Clause
// Writes to an iSER target by libiscsi, reads everything back and compares.
//
//   iser_check INITIATOR iser://HOST:PORT/TARGET/LUN
//
// The whole disk is left with a pattern that depends on the place. Exit status 0 when all data was
// right, 1 otherwise.
#include <iscsi/iscsi.h>
#include <iscsi/scsi-lowlevel.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void pattern(unsigned char *p, size_t n, unsigned long long at, unsigned round)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (unsigned char)((at + i) * 7 + ((at + i) >> 9) + round * 31);
}

static int bad(struct iscsi_context *iscsi, const char *what, unsigned lba)
{
    fprintf(stderr, "iser_check: %s at block %u: %s\n", what, lba, iscsi_get_error(iscsi));
    return 1;
}

// The whole disk, written and read by pieces of this many blocks.
static int over_disk(struct iscsi_context *iscsi, int lun, unsigned blocks, unsigned size,
                     unsigned piece, unsigned round)
{
    unsigned char *data = malloc((size_t)piece * size);
    for (int reads = 0; reads < 2; reads++) {
        for (unsigned lba = 0; lba < blocks; lba += piece) {
            unsigned n = blocks - lba < piece ? blocks - lba : piece, octets = n * size;
            struct scsi_task *task;
            pattern(data, octets, (unsigned long long)lba * size, round);
            task =
                reads ? iscsi_read10_sync(iscsi, lun, lba, octets, (int)size, 0, 0, 0, 0, 0)
                      : iscsi_write10_sync(iscsi, lun, lba, data, octets, (int)size, 0, 0, 0, 0, 0);
            if (!task || task->status != SCSI_STATUS_GOOD)
                return bad(iscsi, reads ? "read" : "write", lba);
            if (reads && ((unsigned)task->datain.size != octets ||
                          memcmp(task->datain.data, data, octets) != 0))
                return bad(iscsi, "other data was read", lba);
            scsi_free_scsi_task(task);
        }
    }
    free(data);
    return 0;
}

int main(int argc, char **argv)
{
    static const unsigned pieces[] = {1, 8, 100, 256};
    struct iscsi_context *iscsi;
    struct iscsi_url *url;
    struct scsi_task *task;
    struct scsi_readcapacity10 *capacity;
    if (argc != 3) {
        fprintf(stderr, "usage: iser_check INITIATOR iser://HOST:PORT/TARGET/LUN\n");
        return 2;
    }
    iscsi = iscsi_create_context(argv[1]);
    url = iscsi_parse_full_url(iscsi, argv[2]);
    if (!url)
        return bad(iscsi, "the address", 0);
    iscsi_set_session_type(iscsi, ISCSI_SESSION_NORMAL);
    iscsi_set_targetname(iscsi, url->target);
    if (iscsi_full_connect_sync(iscsi, url->portal, url->lun) != 0)
        return bad(iscsi, "connect", 0);
    task = iscsi_readcapacity10_sync(iscsi, url->lun, 0, 0);
    capacity = task && task->status == SCSI_STATUS_GOOD ? scsi_datain_unmarshall(task) : NULL;
    if (!capacity)
        return bad(iscsi, "read capacity", 0);
    for (unsigned round = 0; round < sizeof(pieces) / sizeof(*pieces); round++)
        if (over_disk(iscsi, url->lun, capacity->lba + 1, capacity->block_size, pieces[round],
                      round))
            return 1;
    printf("iser_check: %u blocks: all data is right\n", capacity->lba + 1);
    scsi_free_scsi_task(task);
    iscsi_logout_sync(iscsi);
    iscsi_destroy_url(url);
    iscsi_destroy_context(iscsi);
    return 0;
}
