/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's end of the preloaded library: accepts processes and threads that wait
 * (protocol.h), gives each process its page (page.h), and sends the answers of its owner.
 *
 * Contract:
 * 1. Of the data that a process sends, only the size of its allocation is trusted: its pid and user
 *    are the kernel's, and the hook `admits` says whether that user has this task.
 * 2. No call waits for a process. One that does not keep to the protocol, or does not read its
 *    answers, is disconnected.
 * 3. Connections are limited in all and by user (connection_quota.h); a thread that waits can send
 *    its next WAIT only after a RETRY, so the owner decides how often it is asked.
 * 4. Each waiter that `waits` was called for is answered with FAIL or goes away by itself.
 */
#ifndef COLLOC_PRELOAD_PRELOAD_LISTENER_H
#define COLLOC_PRELOAD_PRELOAD_LISTENER_H

#include <stdbool.h>
#include <sys/types.h>
#include <uv.h>

#include "base/fault.h"
#include "base/process.h"
#include "preload/page.h"
#include "preload/protocol.h"

enum { PRELOAD_CONNECTIONS_MAX = 4096 }; /* each takes a descriptor; chosen */

/* Of a process or a thread that waits. */
struct preload_peer {
    pid_t pid;
    uint64_t born; /* clock ticks since boot: with the pid it names one process for ever; 0: it had
                      ended when it was read */
    uid_t uid;
    uint64_t task;
    uint32_t attempt;
};

static inline struct process_id preload_peer_id(const struct preload_peer *peer)
{
    return (struct process_id){peer->pid, peer->born};
}

struct preload_process {
    struct preload_peer peer;
    struct preload_page *page; /* its content may be anything, and changes at any time */
    void *data;                /* the owner's; NULL at first */
};

struct preload_waiter {
    struct preload_peer peer;
    enum preload_reason reason;
    uint64_t bytes, held_bytes; /* less than 2^50 */
    unsigned char gpu_uuid[16];
    uint64_t since_ms; /* uv_now of its first WAIT */
    uint32_t retries;  /* that failed */
    bool is_asking;    /* it has had no answer to its last WAIT but a bound */
    bool is_reported;  /* the owner's, as the next two; false and 0 at first */
    bool is_logged;
    uint64_t bound_at_ms;
};

/* What the listener calls. All must be set; each gets `context`. */
struct preload_hooks {
    void *context;

    /* Returns whether this peer's user may speak for this attempt of the task. */
    bool (*admits)(void *context, const struct preload_peer *peer);

    /* A process has come, and its page will be handed over now: gate and cap may be set. */
    void (*begins)(void *context, struct preload_process *process);

    /* A process has ended; its page can be read for the last time. */
    void (*ends)(void *context, struct preload_process *process);

    /* A thread waits: at first, and again when its retry failed. It may be answered at once. */
    void (*waits)(void *context, struct preload_waiter *waiter);

    /* A thread does not wait any more. */
    void (*stops_waiting)(void *context, struct preload_waiter *waiter);

    /* A process or thread was not admitted, because its user has `count` connections. */
    void (*refuses)(void *context, uid_t uid, int count);
};

struct preload_listener;

/* Is the UUID that of the text? "GPU-00112233-4455-6677-8899-aabbccddeeff", or "MIG-..." of an
 * instance. */
bool preload_uuid_is(const char *text, const unsigned char uuid[16]);

/* Returns how many connections to allow: a quarter of the descriptors that this process may have,
 * from 128 to PRELOAD_CONNECTIONS_MAX. */
int preload_connections_for_limit(void);

/*
 * Listens. An existing socket file is replaced.
 *
 * loop:  borrowed.
 * path:  of the socket, for all users to connect to.
 * most:  connections of all users together, at least 128.
 * hooks: copied.
 *
 * Returns 0; or -errno with a fault.
 */
int preload_listener_create(uv_loop_t *loop, const char *path, int most,
    const struct preload_hooks *hooks, struct fault *fault, struct preload_listener **ret_listener);

/* Stops: all connections are closed without calling hooks, and the socket's file is removed. NULL
 * is fine. */
void preload_listener_close(struct preload_listener *listener);

/* Releases the listener once the loop has run after preload_listener_close. NULL is fine. */
void preload_listener_destroy(struct preload_listener *listener);

/*
 * Answers a thread that waits. It may have ended when this returns, but the hook `stops_waiting` is
 * called only from the loop.
 *
 * kind:     PRELOAD_BOUND, PRELOAD_RETRY or PRELOAD_FAIL.
 * bound_ms: of a PRELOAD_BOUND, from now.
 */
void preload_answer(struct preload_waiter *waiter, enum preload_kind kind, uint64_t bound_ms);

/*
 * Hands memory for a copy to a process (preload/copy_place.h).
 *
 * offset: in the file, of a pool's
 * fd:     the caller's; it may be closed afterwards. -1: what was handed over is given back
 *
 * Returns false: the process does not read, or has ended.
 */
bool preload_give_room(struct preload_process *process, enum preload_place place, uint64_t bytes,
    uint64_t offset, int fd);

/* Return the first (after NULL) and the following one, in the order in which they came; NULL: no
 * more. Without a listener (NULL) there is none. */
struct preload_process *preload_next_process(
    struct preload_listener *listener, const struct preload_process *after);
struct preload_waiter *preload_next_waiter(
    struct preload_listener *listener, const struct preload_waiter *after);

/* The same among the processes of a task. */
struct preload_process *preload_next_of_task(
    struct preload_listener *listener, uint64_t task, const struct preload_process *after);

/* The same among the connections of one process of a task: when it loads another program, it has
 * two for a moment. */
struct preload_process *preload_next_of_process(struct preload_listener *listener, uint64_t task,
    struct process_id id, const struct preload_process *after);

/* Returns the process of the waiting thread; NULL: it has not come yet. */
struct preload_process *preload_process_of(
    struct preload_listener *listener, const struct preload_waiter *waiter);

#endif
