/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See foreign.h. A thread lives while its user has descriptors to close. That is rare, and then it
 * is most often a single one.
 */
#include "foreign.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 64u /* threads at most; further users wait for one to end */
#define NS_PER_S    1000000000
#define NS_PER_MS   1000000

struct foreign_job {
    struct foreign_job *next;
    void (*fn)(void *arg); /* NULL = close fd */
    void *arg;
    int fd;
};

struct foreign_user {
    struct foreign_user *next;
    struct foreign_job *first, **last;
    uid_t uid;
    unsigned waiting; /* descriptors, including the one being closed */
    bool served;      /* a thread serves this user */
};

static pthread_mutex_t foreign_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t foreign_idle = PTHREAD_COND_INITIALIZER;
static struct foreign_user *foreign_users;
static unsigned foreign_threads;

static struct foreign_user *user_find(uid_t uid)
{
    struct foreign_user *u = foreign_users;
    while (u && u->uid != uid)
        u = u->next;
    return u;
}

static struct foreign_user *user_get(uid_t uid)
{
    struct foreign_user *u = user_find(uid);
    if (u)
        return u;
    u = calloc(1, sizeof(*u));
    if (u) {
        *u = (struct foreign_user){.next = foreign_users, .uid = uid};
        u->last = &u->first;
        foreign_users = u;
    }
    return u;
}

static void user_free(struct foreign_user *u)
{
    struct foreign_user **p = &foreign_users;
    while (*p != u)
        p = &(*p)->next;
    *p = u->next;
    free(u);
    if (!foreign_users)
        pthread_cond_broadcast(&foreign_idle);
}

static struct foreign_user *user_unserved(void)
{
    struct foreign_user *u = foreign_users;
    while (u && u->served)
        u = u->next;
    return u;
}

static struct foreign_job *user_take(struct foreign_user *u)
{
    struct foreign_job *f = u->first;
    u->first = f->next;
    if (!u->first)
        u->last = &u->first;
    return f;
}

static void *foreign_main(void *arg)
{
    (void)arg;
    pthread_mutex_lock(&foreign_lock);
    for (struct foreign_user *u; (u = user_unserved());) {
        u->served = true;
        while (u->first) {
            struct foreign_job *f = user_take(u);
            bool closes = !f->fn;
            pthread_mutex_unlock(&foreign_lock);
            if (closes)
                close(f->fd);
            else
                f->fn(f->arg);
            free(f);
            pthread_mutex_lock(&foreign_lock);
            u->waiting -= closes;
        }
        user_free(u);
    }
    foreign_threads--;
    pthread_mutex_unlock(&foreign_lock);
    return NULL;
}

/* If the thread can't be started now, the next descriptor tries again. */
static void foreign_start(void)
{
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all, before;
    if (foreign_threads >= THREADS_MAX)
        return;
    sigfillset(&all);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, &attr, foreign_main, NULL) == 0)
        foreign_threads++;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
}

/* False: no memory for it. */
static bool foreign_add(uid_t uid, struct foreign_job job)
{
    struct foreign_job *f = malloc(sizeof(*f));
    pthread_mutex_lock(&foreign_lock);
    struct foreign_user *u = f ? user_get(uid) : NULL;
    if (u) {
        *f = job;
        *u->last = f;
        u->last = &f->next;
        u->waiting += !job.fn;
        if (!u->served)
            foreign_start();
    }
    pthread_mutex_unlock(&foreign_lock);
    if (!u)
        free(f);
    return u != NULL;
}

static void foreign_later(uid_t uid, int fd)
{
    if (!foreign_add(uid, (struct foreign_job){.fd = fd}))
        close(fd); /* no memory: everything else will fail, too */
}

bool foreign_run(uid_t user, void (*fn)(void *arg), void *arg)
{
    return foreign_add(user, (struct foreign_job){.fn = fn, .arg = arg});
}

void foreign_close(uid_t user, int fd)
{
    /* Files in memory have seals, and no server that a close could wait for. */
    if (fcntl(fd, F_GET_SEALS) >= 0)
        close(fd);
    else
        foreign_later(user, fd);
}

/* Peek at the next message. Returns its length, or less than 0. */
static ssize_t look(int sock, bool *descriptors)
{
    char octet;
    struct iovec iov = {.iov_base = &octet, .iov_len = sizeof(octet)};
    struct msghdr mh = {.msg_iov = &iov, .msg_iovlen = 1};
    ssize_t n = recvmsg(sock, &mh, MSG_PEEK | MSG_DONTWAIT);
    *descriptors = n >= 0 && (mh.msg_flags & MSG_CTRUNC);
    return n;
}

bool foreign_comes(int sock)
{
    bool descriptors;
    (void)look(sock, &descriptors);
    return descriptors;
}

/* Does a descriptor wait in a socket that is shut down? Messages before it are thrown away. */
static bool has_descriptors(int sock)
{
    const int on = 1;
    char octet;
    for (;;) {
        bool descriptors;
        ssize_t n = look(sock, &descriptors);
        if (n < 0 || descriptors)
            return descriptors;
        if (n == 0 || recv(sock, &octet, sizeof(octet), MSG_DONTWAIT) < 0)
            break;
    }
    /* An empty message looks like the end of file. With SO_PASSCRED each message carries control
     * data, for which there is no room here: this tells them apart. */
    return setsockopt(sock, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)) < 0 || foreign_comes(sock);
}

void foreign_hang_up(uid_t user, int sock)
{
    shutdown(sock, SHUT_RDWR); /* no more messages can come */
    if (has_descriptors(sock))
        foreign_later(user, sock);
    else
        close(sock);
}

unsigned foreign_waiting(uid_t user)
{
    pthread_mutex_lock(&foreign_lock);
    const struct foreign_user *u = user_find(user);
    unsigned n = u ? u->waiting : 0;
    pthread_mutex_unlock(&foreign_lock);
    return n;
}

uid_t foreign_user(int sock)
{
    struct ucred cred;
    socklen_t len = sizeof(cred);
    return getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0 ? (uid_t)-1 : cred.uid;
}

bool foreign_settle(unsigned ms)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)(ms / 1000);
    until.tv_nsec += (long)(ms % 1000) * NS_PER_MS;
    if (until.tv_nsec >= NS_PER_S) {
        until.tv_sec++;
        until.tv_nsec -= NS_PER_S;
    }
    pthread_mutex_lock(&foreign_lock);
    int rc = 0;
    while (foreign_users && rc == 0)
        rc = pthread_cond_timedwait(&foreign_idle, &foreign_lock, &until);
    bool none = !foreign_users;
    pthread_mutex_unlock(&foreign_lock);
    return none;
}
