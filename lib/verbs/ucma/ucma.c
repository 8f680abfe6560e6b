/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The lock, and the reset of all state in a child.
 */
#include "ucma.h"

#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

/* A thread of the parent may have held the lock, and does not exist here. */
static void in_child(void)
{
    lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    ucma_dev_forget();
    for (struct ucma_file *f = ucma_files(); f != NULL; f = LIST_NEXT(f, next))
        ucma_file_forget(f);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, in_child);
}

void ucma_lock(void)
{
    pthread_once(&fork_once, watch_forks);
    pthread_mutex_lock(&lock);
}

void ucma_unlock(void)
{
    pthread_mutex_unlock(&lock);
}
