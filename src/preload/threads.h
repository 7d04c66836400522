/* SPDX-License-Identifier: Apache-2.0 */
/* Threads of the library's own in a foreign program. They handle none of its signals. */
#ifndef COLLOC_PRELOAD_THREADS_H
#define COLLOC_PRELOAD_THREADS_H

#include <pthread.h>
#include <stdbool.h>

/* Returns whether the program has a threading library. */
bool threads_are_there(void);

/* Begins a thread. Returns false when it cannot. */
bool thread_begin(pthread_t *ret_thread, void *(*run)(void *), void *argument);

/* Waits for its end. */
void thread_join(pthread_t thread);

#endif
