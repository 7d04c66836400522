/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work waits in one list until there is a slot for its user. A slot is taken from the start of a
 * helper until it is reaped, which the kernel may delay: a process that waits for a file system
 * does not die. So a timer ends work that has waited too long.
 */
#include "service/helper_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"

struct slot {
    struct helper_queue *queue; /* NULL: the slot is free */
    uid_t uid;
};

/* Work that waits or has a helper. */
struct entry {
    struct entry *next;
    struct helper_queue *queue;
    struct helper_work work;
    void *answer; /* mapped while it has a helper */
    struct user_helper helper;
    int64_t waits_until_us; /* on the monotonic clock */
};

struct helper_queue {
    struct helper_queue_options options;
    uv_timer_t waited_enough;
    bool is_closed;
    struct slot slots[HELPER_QUEUE_HELPERS_MAX];
    struct entry *waiting, *running;
};

/* ---- one entry ---- */

/* Returns NULL when the user, or all users together, have the maximum number of helpers. */
static struct slot *find_slot(struct helper_queue *queue, uid_t uid)
{
    struct slot *unused = NULL;
    int of_user = 0;
    for (int i = 0; i < queue->options.helpers; i++) {
        struct slot *slot = &queue->slots[i];
        of_user += slot->queue && slot->uid == uid;
        if (!slot->queue)
            unused = slot;
    }
    return of_user < queue->options.per_user ? unused : NULL;
}

static void unlink_entry(struct entry **list, const struct entry *entry)
{
    while (*list && *list != entry)
        list = &(*list)->next;
    if (*list)
        *list = entry->next;
}

/* A process of the user may write to the shared memory at any time. What is checked must be what is
 * used later, so the owner gets a copy. */
static void *copy_answer(const struct entry *entry)
{
    void *copy = malloc(entry->work.answer_size);
    return copy ? memcpy(copy, entry->answer, entry->work.answer_size) : NULL;
}

/* The entry is in no list any more. */
static void finish_entry(struct entry *entry, int r, const struct fault *fault)
{
    struct fault words = *fault;
    void *copy = r == 0 ? copy_answer(entry) : NULL;
    if (r == 0 && !copy)
        r = fault_set(&words, ENOMEM, "out of memory");
    entry->work.on_done(entry->work.context, r, copy, &words);
    free(copy);
    if (entry->answer)
        munmap(entry->answer, entry->work.answer_size);
    free(entry);
}

static void start_waiting(struct helper_queue *queue);

static void on_helper_gone(void *context)
{
    struct slot *slot = context;
    struct helper_queue *queue = slot->queue;
    slot->queue = NULL;
    start_waiting(queue);
}

static void on_helper_done(struct user_helper *helper, int answer, const struct fault *fault)
{
    struct entry *entry = helper->context;
    unlink_entry(&entry->queue->running, entry);
    finish_entry(entry, answer > 0 ? -EIO : answer, fault);
}

/* Forks. Returns 0 or -errno with a fault. */
static int give_helper(struct entry *entry, struct slot *slot, struct fault *fault)
{
    const struct helper_queue_options *options = &entry->queue->options;
    const struct user_helper_order order = {.uid = entry->work.uid,
        .gid = entry->work.gid,
        .limit_ms = options->limit_ms,
        .queued_ms = options->limit_ms,
        .what = options->what,
        .on_gone = on_helper_gone,
        .gone_context = slot};
    void *shared = mmap(
        NULL, entry->work.answer_size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return fault_set(fault, ENOMEM, "out of memory");
    entry->answer = shared;
    int r = user_helper_begin(&entry->helper, options->loop, &order, fault);
    if (r == USER_HELPER_CHILD) {
        struct user_helper_report report = {0};
        report.answer = entry->work.run(entry->work.context, &order, shared, &report.fault);
        user_helper_end(&entry->helper, &report);
    }
    entry->helper.context = entry;
    entry->helper.on_done = on_helper_done;
    return r;
}

static void start_entry(struct entry *entry, struct slot *slot)
{
    struct helper_queue *queue = entry->queue;
    struct fault fault = {0};
    int r = give_helper(entry, slot, &fault);
    if (r < 0) {
        finish_entry(entry, r, &fault);
        return;
    }
    *slot = (struct slot){.queue = queue, .uid = entry->work.uid};
    entry->next = queue->running;
    queue->running = entry;
}

/* ---- waiting for a helper ---- */

static void on_waited_enough(uv_timer_t *timer);

static void watch_waiting(struct helper_queue *queue)
{
    if (queue->is_closed)
        return;
    if (!queue->waiting) {
        uv_timer_stop(&queue->waited_enough);
        return;
    }
    int64_t left_us = queue->waiting->waits_until_us - clock_monotonic_us();
    uv_timer_start(&queue->waited_enough, on_waited_enough,
        left_us > 0 ? (uint64_t)(left_us / MS_US) + 1 : 0, 0);
}

/* Work that cannot begin is answered, and may bring further work. */
static void start_waiting(struct helper_queue *queue)
{
    for (struct entry **at = &queue->waiting; *at;) {
        struct entry *entry = *at;
        struct slot *slot = find_slot(queue, entry->work.uid);
        if (slot) {
            *at = entry->next;
            start_entry(entry, slot);
        } else {
            at = &entry->next;
        }
    }
    watch_waiting(queue);
}

static void on_waited_enough(uv_timer_t *timer)
{
    struct helper_queue *queue = timer->data;
    struct fault fault;
    fault_set(&fault, EBUSY, "too many helpers are at work: try again later");
    while (queue->waiting && queue->waiting->waits_until_us <= clock_monotonic_us()) {
        struct entry *entry = queue->waiting;
        queue->waiting = entry->next;
        finish_entry(entry, HELPER_QUEUE_BUSY, &fault);
    }
    watch_waiting(queue);
}

static void cancel_all(struct entry *entry)
{
    struct fault fault;
    fault_set(&fault, ECANCELED, "the daemon is going down");
    for (struct entry *next; entry; entry = next) {
        next = entry->next;
        user_helper_leave(&entry->helper);
        finish_entry(entry, -ECANCELED, &fault);
    }
}

int helper_queue_add(struct helper_queue *queue, const struct helper_work *work)
{
    struct entry *entry = calloc(1, sizeof *entry), **end = &queue->waiting;
    if (!entry)
        return -ENOMEM;
    *entry = (struct entry){.queue = queue, .work = *work};
    entry->waits_until_us = clock_monotonic_us() + queue->options.wait_ms * MS_US;
    if (queue->is_closed) {
        cancel_all(entry);
        return 0;
    }
    while (*end)
        end = &(*end)->next;
    *end = entry;
    start_waiting(queue);
    return 0;
}

/* ---- life ---- */

struct helper_queue *helper_queue_create(const struct helper_queue_options *options)
{
    struct helper_queue *queue = calloc(1, sizeof *queue);
    if (!queue)
        return NULL;
    queue->options = *options;
    queue->waited_enough.data = queue;
    uv_timer_init(options->loop, &queue->waited_enough);
    return queue;
}

void helper_queue_close(struct helper_queue *queue)
{
    if (!queue || queue->is_closed)
        return;
    struct entry *waiting = queue->waiting, *running = queue->running;
    queue->waiting = queue->running = NULL;
    queue->is_closed = true;
    uv_close((uv_handle_t *)&queue->waited_enough, NULL);
    cancel_all(waiting);
    cancel_all(running);
}

void helper_queue_destroy(struct helper_queue *queue)
{
    free(queue);
}
