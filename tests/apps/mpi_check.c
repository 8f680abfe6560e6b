/* SPDX-License-Identifier: BSD-3-Clause
 *
 * MPI over urnic: a ring of messages of 1 octet to 16 MiB whose octets are checked, and an
 * MPI_Allreduce of each size whose sums are checked. With "pingpong": half round trips of 8 octets
 * and the bandwidth of 1 MiB between ranks 0 and 1.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LARGEST (16u << 20)

static uint8_t octet(int rank, size_t size, size_t at)
{
    return (uint8_t)(31 * at + 7 * (size_t)rank + size);
}

/* Each rank passes a message to the next one, around the ring. */
static int ring(int rank, int ranks, size_t size, uint8_t *out, uint8_t *in)
{
    int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
    for (size_t i = 0; i < size; i++)
        out[i] = octet(rank, size, i);
    memset(in, 0, size);
    MPI_Sendrecv(out, (int)size, MPI_BYTE, next, 1, in, (int)size, MPI_BYTE, before, 1,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (size_t i = 0; i < size; i++) {
        if (in[i] != octet(before, size, i)) {
            fprintf(stderr, "rank %d: ring of %zu octets: octet %zu is wrong\n", rank, size, i);
            return 1;
        }
    }
    return 0;
}

static int sums(int rank, int ranks, size_t size, int64_t *out, int64_t *in)
{
    size_t n = size / sizeof(*out) ? size / sizeof(*out) : 1;
    for (size_t i = 0; i < n; i++)
        out[i] = (int64_t)i * (rank + 1);
    MPI_Allreduce(out, in, (int)n, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
    for (size_t i = 0; i < n; i++) {
        if (in[i] != (int64_t)i * ranks * (ranks + 1) / 2) {
            fprintf(stderr, "rank %d: sum of %zu octets: number %zu is wrong\n", rank, size, i);
            return 1;
        }
    }
    return 0;
}

/* Seconds for n round trips between ranks 0 and 1. */
static double trips(int rank, size_t size, unsigned n, uint8_t *buf)
{
    double began = MPI_Wtime();
    for (unsigned i = 0; i < n; i++) {
        if (rank == 0)
            MPI_Send(buf, (int)size, MPI_BYTE, 1, 2, MPI_COMM_WORLD);
        if (rank < 2)
            MPI_Recv(buf, (int)size, MPI_BYTE, 1 - rank, 2, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        if (rank == 1)
            MPI_Send(buf, (int)size, MPI_BYTE, 0, 2, MPI_COMM_WORLD);
    }
    return MPI_Wtime() - began;
}

static void pingpong(int rank, uint8_t *buf)
{
    const unsigned n = 10000, m = 200;
    trips(rank, 8, n / 10, buf);
    double small = trips(rank, 8, n, buf);
    trips(rank, 1u << 20, m / 10, buf);
    double large = trips(rank, 1u << 20, m, buf);
    if (rank == 0)
        printf("half round trip of 8 octets %.2f us, bandwidth of 1 MiB %.2f Gb/s\n",
               small / n / 2 * 1e6, 2.0 * m * (1u << 20) * 8 / large / 1e9);
}

int main(int argc, char **argv)
{
    int rank, ranks, wrong = 0;
    uint8_t *out = malloc(LARGEST), *in = malloc(LARGEST);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (!out || !in)
        MPI_Abort(MPI_COMM_WORLD, 2);
    memset(out, 0, LARGEST);
    if (argc > 1 && strcmp(argv[1], "pingpong") == 0) {
        pingpong(rank, out);
    } else {
        for (size_t size = 1; size <= LARGEST && !wrong; size *= 4) {
            wrong |= ring(rank, ranks, size, out, in);
            wrong |= sums(rank, ranks, size, (int64_t *)(void *)out, (int64_t *)(void *)in);
        }
        if (!wrong && rank == 0)
            printf("%d ranks: ring and sums are right\n", ranks);
    }
    MPI_Finalize();
    free(out);
    free(in);
    return wrong;
}
