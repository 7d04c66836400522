/* SPDX-License-Identifier: Apache-2.0 */
/* One lock guards the step and the end: either the loop sees that the work is done, or the thread
 * sees that it was abandoned. */
#include "daemon/gpus/poll_thread.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"

struct poll_thread {
    poll_thread_work *work;
    void *context;
    uv_async_t *on_done;
    pthread_mutex_t lock;
    pthread_cond_t ended; /* by the monotonic clock */
    size_t step;
    int64_t step_began_us;
    bool is_done, is_abandoned;
    pthread_t id;
};

static void *run_work(void *argument)
{
    struct poll_thread *thread = argument;
    thread->work(thread, thread->context);
    pthread_mutex_lock(&thread->lock);
    thread->is_done = true;
    if (!thread->is_abandoned && thread->on_done)
        uv_async_send(thread->on_done);
    pthread_cond_signal(&thread->ended);
    pthread_mutex_unlock(&thread->lock); /* now the loop may join and release it */
    return NULL;
}

static void init_locks(struct poll_thread *thread)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&thread->ended, &attributes);
    pthread_condattr_destroy(&attributes);
    pthread_mutex_init(&thread->lock, NULL);
}

static void release_thread(struct poll_thread *thread)
{
    pthread_mutex_destroy(&thread->lock);
    pthread_cond_destroy(&thread->ended);
    free(thread);
}

struct poll_thread *poll_thread_start(poll_thread_work *work, void *context, uv_async_t *on_done)
{
    struct poll_thread *thread = calloc(1, sizeof *thread);
    if (!thread)
        return NULL;
    *thread = (struct poll_thread){.work = work,
        .context = context,
        .on_done = on_done,
        .step_began_us = clock_monotonic_us()};
    init_locks(thread);
    if (pthread_create(&thread->id, NULL, run_work, thread) != 0) {
        release_thread(thread);
        return NULL;
    }
    return thread;
}

bool poll_thread_begin(struct poll_thread *thread, size_t step)
{
    pthread_mutex_lock(&thread->lock);
    thread->step = step;
    thread->step_began_us = clock_monotonic_us();
    bool goes_on = !thread->is_abandoned;
    pthread_mutex_unlock(&thread->lock);
    return goes_on;
}

bool poll_thread_is_done(struct poll_thread *thread)
{
    pthread_mutex_lock(&thread->lock);
    bool is_done = thread->is_done;
    pthread_mutex_unlock(&thread->lock);
    return is_done;
}

int64_t poll_thread_step_us(struct poll_thread *thread, size_t *ret_step)
{
    pthread_mutex_lock(&thread->lock);
    int64_t began_us = thread->step_began_us;
    *ret_step = thread->step;
    pthread_mutex_unlock(&thread->lock);
    return clock_monotonic_us() - began_us;
}

bool poll_thread_wait(struct poll_thread *thread, int64_t ms)
{
    int64_t end_us = clock_monotonic_us() + ms * MS_US;
    struct timespec end = {end_us / SECOND_US, end_us % SECOND_US * 1000};
    int r = 0;
    pthread_mutex_lock(&thread->lock);
    while (!thread->is_done && r != ETIMEDOUT)
        r = pthread_cond_timedwait(&thread->ended, &thread->lock, &end);
    bool is_done = thread->is_done;
    pthread_mutex_unlock(&thread->lock);
    return is_done;
}

bool poll_thread_abandon(struct poll_thread *thread)
{
    pthread_mutex_lock(&thread->lock);
    thread->is_abandoned = !thread->is_done;
    bool is_abandoned = thread->is_abandoned;
    pthread_mutex_unlock(&thread->lock);
    return is_abandoned;
}

void poll_thread_free(struct poll_thread *thread)
{
    if (!thread)
        return;
    pthread_join(thread->id, NULL); /* at once: its work is done */
    release_thread(thread);
}
