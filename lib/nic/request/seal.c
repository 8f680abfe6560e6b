/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See seal.h. The thread that adds the seals has a descriptor of its own and knows no slab: when
 * the request is served again, its handler looks for the slab anew.
 */
#include "seal.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "foreign.h"
#include "quota.h"
#include "request.h"

struct seal {
    struct seal *next;
    struct client *client; /* NULL = disconnected */
    int fd, news;          /* the slab; the eventfd that wakes the control thread */
    bool done;
    unsigned before; /* sealings that the request has waited for */
    size_t len;
    uint8_t msg[];
};

/* A request names two completion queues and a shared receive queue at most, each in a slab of its
 * own. A slab that is still unsealed after that can't be sealed. */
#define SEALINGS_MAX 3u

static pthread_mutex_t seal_lock = PTHREAD_MUTEX_INITIALIZER;
static struct seal *seal_list;

int seal_mapped(struct request *r, struct memory *m)
{
    if (!m || m->fd < 0 || memory_is_sealed(m))
        return 0;
    bool large = m->len > MEMORY_STALL_MAX && !r->client->own; /* we punch no holes */
    if (large && r->sealings < SEALINGS_MAX) {
        r->unsealed = m->fd;
        return -EINPROGRESS;
    }
    int rc = large ? -EPERM : memory_seal(m);
    if (rc < 0)
        r->device->stats.client_unsealed++;
    return rc;
}

int seal_mapped_place(struct request *r, const struct slab_place *p)
{
    return p->slab ? seal_mapped(r, qslab_memory(p)) : 0;
}

int seal_mapped_qp(struct request *r, const struct client_qp *qp)
{
    int rc = seal_mapped_place(r, &qp->sq.place);
    return rc == 0 ? seal_mapped_place(r, &qp->rq.place) : rc;
}

static void seal_add(void *arg)
{
    struct seal *s = arg;
    const uint64_t one = 1;
    (void)fcntl(s->fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SEAL);
    close(s->fd);
    pthread_mutex_lock(&seal_lock);
    s->done = true;
    (void)!write(s->news, &one, sizeof(one));
    pthread_mutex_unlock(&seal_lock);
}

int seal_wait(struct request *r, size_t size)
{
    if (r->client->nsealing >= QUOTA_SEALING)
        return -EDQUOT;
    struct seal *s = malloc(sizeof(*s) + size);
    if (!s)
        return -ENOMEM;
    *s = (struct seal){
        .client = r->client, .news = r->nic->seals_fd, .before = r->sealings, .len = size};
    memcpy(s->msg, r->in, size);
    s->fd = fcntl(r->unsealed, F_DUPFD_CLOEXEC, 0);
    if (s->fd < 0) {
        free(s);
        return -EMFILE;
    }
    pthread_mutex_lock(&seal_lock);
    s->next = seal_list;
    seal_list = s;
    pthread_mutex_unlock(&seal_lock);
    r->client->nsealing++;
    r->deferred = true;
    if (!foreign_run(r->client->uid, seal_add, s))
        seal_add(s);
    return 0;
}

/* Take one that is done off the list; NULL = there is none. */
static struct seal *seal_take(void)
{
    struct seal **p, *s;
    pthread_mutex_lock(&seal_lock);
    for (p = &seal_list; *p && !(*p)->done;)
        p = &(*p)->next;
    s = *p;
    if (s)
        *p = s->next;
    pthread_mutex_unlock(&seal_lock);
    return s;
}

void seal_service(struct nic *n)
{
    static struct request r;
    struct seal *s;
    uint64_t news;
    (void)!read(n->seals_fd, &news, sizeof(news));
    while ((s = seal_take())) {
        struct client *c = s->client;
        if (c)
            c->nsealing--;
        if (c && !c->gone) {
            r.nic = n;
            r.client = c;
            r.nfd = 0;
            r.in_len = s->len;
            memcpy(r.in, s->msg, s->len);
            r.sealings = s->before + 1;
            r.settled = true; /* frames before it left long ago */
            request_serve(&r);
        }
        free(s);
    }
}

void seal_forget(const struct client *c)
{
    pthread_mutex_lock(&seal_lock);
    for (struct seal *s = seal_list; s; s = s->next) {
        if (s->client == c)
            s->client = NULL;
    }
    pthread_mutex_unlock(&seal_lock);
}
