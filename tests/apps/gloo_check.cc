// SPDX-License-Identifier: BSD-3-Clause
// Collectives of gloo over its ibverbs transport, with every number checked.
//
//   gloo_check RANK RANKS DEVICE GID-INDEX FOLDER
//
// The ranks find each other by files in FOLDER. Exit status 0 when all numbers were right, 1
// otherwise.
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/allreduce_ring.h>
#include <gloo/allreduce_ring_chunked.h>
#include <gloo/barrier_all_to_all.h>
#include <gloo/broadcast_one_to_all.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/ibverbs/device.h>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace
{

using Context = std::shared_ptr<gloo::Context>;

int64_t first(int rank, size_t i)
{
    return (rank + 1) * static_cast<int64_t>(i % 1000 + 1);
}

void check(bool truth, const std::string &what)
{
    if (!truth)
        throw std::runtime_error(what + ": a number is wrong");
}

/// gloo's algorithms end with notifications whose completions they do not wait for, and their
/// destructors throw while any are outstanding. So buffers and algorithms stay until all ranks are
/// done.
struct Kept {
    std::vector<int64_t> v;
    std::unique_ptr<gloo::Algorithm> algorithm;
};

/// Three times with the same buffers, as training does.
template <typename Algorithm>
void sums(const Context &context, std::vector<std::unique_ptr<Kept>> &kept, const char *name,
          size_t count)
{
    kept.push_back(std::make_unique<Kept>());
    std::vector<int64_t> &v = kept.back()->v;
    v.resize(count);
    kept.back()->algorithm = std::make_unique<Algorithm>(context, std::vector<int64_t *>{v.data()},
                                                         static_cast<int>(count));

    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < count; i++)
            v[i] = first(context->rank, i) + round;
        kept.back()->algorithm->run();
        for (size_t i = 0; i < count; i++) {
            int64_t sum = 0;

            for (int rank = 0; rank < context->size; rank++)
                sum += first(rank, i) + round;
            check(v[i] == sum, name);
        }
    }
}

void broadcast(const Context &context, std::vector<std::unique_ptr<Kept>> &kept, size_t count)
{
    for (int root = 0; root < context->size; root++) {
        kept.push_back(std::make_unique<Kept>());
        std::vector<int64_t> &v = kept.back()->v;
        v.resize(count);
        kept.back()->algorithm = std::make_unique<gloo::BroadcastOneToAll<int64_t>>(
            context, std::vector<int64_t *>{v.data()}, count, root);

        for (size_t i = 0; i < count; i++)
            v[i] = first(context->rank, i);
        kept.back()->algorithm->run();
        for (size_t i = 0; i < count; i++)
            check(v[i] == first(root, i), "broadcast");
    }
}

/// Each rank sends to each other one at offsets of its own.
void pairs(const Context &context)
{
    constexpr size_t size = 300000;

    for (int other = 0; other < context->size; other++) {
        if (other == context->rank)
            continue;
        auto &pair = context->getPair(other);
        int low = other < context->rank ? other : context->rank, high = other + context->rank - low;
        int slot = 10000 + 2 * (low * context->size + high);
        std::vector<char> out(size), in(size);
        bool lower = low == context->rank;

        for (size_t i = 0; i < size; i++)
            out[i] = static_cast<char>(i * 7 + static_cast<size_t>(context->rank));
        auto sender = pair->createSendBuffer(slot + lower, out.data(), size);
        auto receiver = pair->createRecvBuffer(slot + !lower, in.data(), size);
        sender->send(0, 100000, 0);
        sender->send(100000, 200000, 100000);
        receiver->waitRecv();
        receiver->waitRecv();
        sender->waitSend();
        sender->waitSend();
        for (size_t i = 0; i < size; i++)
            check(in[i] == static_cast<char>(i * 7 + static_cast<size_t>(other)), "pair");
    }
}

void run(int rank, int ranks, const gloo::transport::ibverbs::attr &attr, const char *folder)
{
    auto device = gloo::transport::ibverbs::CreateDevice(attr);
    gloo::rendezvous::FileStore store(folder);
    auto context = std::make_shared<gloo::rendezvous::Context>(rank, ranks);

    context->connectFullMesh(store, device);
    std::vector<std::unique_ptr<Kept>> kept;
    for (size_t count : {1, 1000, 1000000}) {
        sums<gloo::AllreduceRing<int64_t>>(context, kept, "ring", count);
        sums<gloo::AllreduceRingChunked<int64_t>>(context, kept, "chunked ring", count);
        sums<gloo::AllreduceHalvingDoubling<int64_t>>(context, kept, "halving and doubling", count);
        broadcast(context, kept, count);
    }
    pairs(context);
    gloo::BarrierAllToAll barrier(context);
    for (int i = 0; i < 100; i++)
        barrier.run();
    // Through the files: a rank that has left the last barrier may still have to acknowledge what others sent.
    std::vector<std::string> all;
    for (int i = 0; i < ranks; i++)
        all.push_back("done" + std::to_string(i));
    store.set(all[static_cast<size_t>(rank)], {'x'});
    store.wait(all);
    usleep(500 * 1000);
}

} // namespace

int main(int argc, char **argv)
{
    if (argc != 6) {
        fprintf(stderr, "usage: gloo_check RANK RANKS DEVICE GID-INDEX FOLDER\n");
        return 2;
    }
    try {
        run(atoi(argv[1]), atoi(argv[2]), {argv[3], 1, atoi(argv[4])}, argv[5]);
    } catch (const std::exception &e) {
        fprintf(stderr, "gloo_check: %s\n", e.what());
        return 1;
    }
    printf("gloo_check: rank %s of %s: all numbers are right\n", argv[1], argv[2]);
    return 0;
}
