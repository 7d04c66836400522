/* SPDX-License-Identifier: Apache-2.0 */
/* Lets a failed allocation wait until the daemon says that there is memory. A thread that waits
 * talks to the daemon over a connection that only it uses. */
#include "preload/memory_wait.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

#include "preload/connection.h"
#include "preload/failure_round.h"
#include "preload/symbol_table.h"

enum {
    /* A daemon that is silent for this long counts as ended. It answers within milliseconds. */
    ANSWER_MS = 3000,
    /* Without a daemon, which may be restarting, the allocation is tried again so often. */
    LONE_TRY_MS = 1000,
    /* Chosen: if the program takes our descriptor, poll waits for another file. */
    POLL_MS = 1000,
};

/* No daemon can make a thread wait longer: a day. */
#define BOUND_MAX_MS (UINT64_C(24) * 3600 * 1000)

/* ---- which failure waits ---- */

/* In the library, whose threads are there from the start; not allocated at first use. */
static _Thread_local struct failure_round rounds[FAILURE_KINDS]
    __attribute__((tls_model("initial-exec")));

void memory_wait_forget_failures(enum failure_kind kind)
{
    if (rounds[kind].last_bytes)
        rounds[kind] = (struct failure_round){0};
}

static bool is_in(const struct dl_phdr_info *object, uintptr_t address)
{
    for (int i = 0; i < object->dlpi_phnum; i++) {
        uintptr_t begin = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr;
        if (object->dlpi_phdr[i].p_type == PT_LOAD &&
            address - begin < object->dlpi_phdr[i].p_memsz)
            return true;
    }
    return false;
}

/* `data`: an address. NVIDIA's libraries have a CUDA runtime linked into them, so they call the
 * driver themselves. */
static int is_in_vendor_library(struct dl_phdr_info *object, size_t size, void *data)
{
    static const char *const names[] = {
        "libcublas", "libcudnn", "libcufft", "libcurand", "libcusolver", "libcusparse", "libnccl"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (symbol_table_is_of(object, names[i]))
            return is_in(object, (uintptr_t)data);
    return 0;
}

static int is_framework(struct dl_phdr_info *object, size_t size, void *data)
{
    static const char *const parts[] = {"libc10_cuda", "/cupy", "jaxlib", "xla_", "tensorflow"};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (strstr(object->dlpi_name, parts[i]))
            return 1;
    return 0;
}

static bool may_wait(struct memory_wait *wait)
{
    if (wait->kind == FAILURE_FINAL || wait->since_ms ||
        dl_iterate_phdr(is_in_vendor_library, wait->caller))
        return true;
    bool again = failure_round_add(&rounds[wait->kind], wait->bytes);
    return again || !dl_iterate_phdr(is_framework, NULL);
}

/* ---- the wait ---- */

static void disconnect_daemon(struct memory_wait *wait)
{
    connection_close(wait->daemon);
    wait->daemon = NULL;
}

static bool send_question(struct memory_wait *wait)
{
    struct preload_message question = preload_message_of(PRELOAD_WAIT);
    struct process_state *state = wait->state;
    if (!wait->daemon)
        wait->daemon = connection_open();
    if (!wait->daemon)
        return false;
    question.reason = (uint8_t)wait->reason;
    question.bytes = wait->bytes;
    question.ordinal = (uint32_t)wait->device;
    question.held_bytes = state->ledger.devices[wait->device].held_bytes;
    memcpy(question.gpu_uuid, state->uuids[wait->device], sizeof(question.gpu_uuid));
    if (!connection_send(wait->daemon, &question))
        disconnect_daemon(wait);
    return wait->daemon;
}

/* Milliseconds until the deadline; before the daemon gave one, until it must have answered. */
static int left_ms(const struct memory_wait *wait)
{
    uint64_t now = coarse_ms();
    uint64_t end = wait->deadline_ms ? wait->deadline_ms : wait->since_ms + ANSWER_MS;
    uint64_t left = end > now ? end - now : 0;
    return left > INT32_MAX ? INT32_MAX : (int)left;
}

/* The daemon has ended. The wait continues up to its last time limit. */
static bool wait_alone(struct memory_wait *wait)
{
    int left = left_ms(wait);
    disconnect_daemon(wait);
    if (!wait->deadline_ms || left == 0)
        return false;
    poll(NULL, 0, left < LONE_TRY_MS ? left : LONE_TRY_MS);
    return true;
}

static void take_bound(struct memory_wait *wait, uint64_t bound_ms)
{
    wait->deadline_ms = coarse_ms() + (bound_ms < BOUND_MAX_MS ? bound_ms : BOUND_MAX_MS);
}

/* None: the time limit has passed, or a stream is being captured. */
enum word { WORD_NONE, WORD_RETRY, WORD_FAIL };

/* Messages that have come are read even when the time limit has passed: while the process was
 * stopped, the daemon may have extended it. */
static enum word wait_for_word(struct memory_wait *wait)
{
    for (;;) {
        struct preload_message answer;
        int left = left_ms(wait);
        int r = connection_receive(wait->daemon, left < POLL_MS ? left : POLL_MS, &answer, NULL);
        if (r < 0)
            return wait_alone(wait) ? WORD_RETRY : WORD_NONE;
        if (r == 1 && answer.kind == PRELOAD_RETRY)
            return WORD_RETRY;
        if (r == 1 && answer.kind == PRELOAD_FAIL)
            return WORD_FAIL;
        if (r == 1 && answer.kind == PRELOAD_BOUND)
            take_bound(wait, answer.bound_ms);
        if (r == 0 && left == 0)
            return WORD_NONE;
    }
}

static enum word wait_once(struct memory_wait *wait)
{
    if (send_question(wait))
        return wait_for_word(wait);
    return wait->since_ms && wait_alone(wait) ? WORD_RETRY : WORD_NONE;
}

static void begin_waiting(struct memory_wait *wait)
{
    wait->page = process_page(wait->state);
    wait->since_ms = coarse_ms();
    atomic_fetch_add(&wait->page->waiting, 1);
    atomic_fetch_add(&wait->page->waits, 1);
}

bool memory_wait_after_failure(struct memory_wait *wait)
{
    int error = errno;
    enum word word = WORD_FAIL;
    if (atomic_load(&wait->state->captures)) {
        word = WORD_NONE;
    } else if (may_wait(wait)) {
        if (!wait->since_ms)
            begin_waiting(wait);
        word = wait_once(wait);
    }
    errno = error;
    if (word != WORD_NONE || wait->reason != PRELOAD_OVER_CAP)
        return word == WORD_RETRY;
    wait->lifts_cap = true;
    return true;
}

void memory_wait_end(struct memory_wait *wait, bool succeeded)
{
    struct preload_page *page = process_page(wait->state);
    if (!succeeded)
        atomic_fetch_add(&page->failures, 1);
    if (succeeded && wait->kind == FAILURE_OF_BLOCK)
        memory_wait_forget_failures(FAILURE_OF_BLOCK);
    if (!wait->since_ms)
        return;
    disconnect_daemon(wait);
    atomic_fetch_sub(&wait->page->waiting, 1);
    atomic_fetch_add(&wait->page->waited_ms, coarse_ms() - wait->since_ms);
}
