/* SPDX-License-Identifier: Apache-2.0 */
/* Begins threads with all signals blocked: a handler of the program must not run in one of ours. */
#include "preload/threads.h"

#include <signal.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Before glibc 2.34 they are in libpthread, which not every program has. */
#pragma weak pthread_create
#pragma weak pthread_join

bool threads_are_there(void)
{
    return pthread_create && pthread_join;
}

bool thread_begin(pthread_t *ret_thread, void *(*run)(void *), void *argument)
{
    uint64_t all = UINT64_MAX, before = 0; /* as the kernel counts signals */
    if (!threads_are_there())
        return false;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all);
    bool has_begun = pthread_create(ret_thread, NULL, run, argument) == 0;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof before);
    return has_begun;
}

void thread_join(pthread_t thread)
{
    pthread_join(thread, NULL);
}
