/* SPDX-License-Identifier: Apache-2.0 */
/* What a process sends to the daemon's end of the preloaded library: packets of any bytes. The
 * first byte of each says how long the packet is; what is accepted is in range, and each hook that
 * begins something is followed by the one that ends it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fuzz.h"
#include "preload/preload_listener.h"

static int open_processes, open_waits;
static char path[64];

static void require(int holds)
{
    if (!holds)
        abort();
}

static bool on_admits(void *context, const struct preload_peer *peer)
{
    return peer->task % 2 == 1;
}

static void on_begins(void *context, struct preload_process *process)
{
    require(process->peer.task % 2 == 1 && process->page != NULL);
    open_processes++;
}

static void on_ends(void *context, struct preload_process *process)
{
    open_processes--;
}

/* Answered by what it asks for: so that all turns of the conversation are seen. */
static void on_waits(void *context, struct preload_waiter *waiter)
{
    static const enum preload_kind kinds[] = {PRELOAD_BOUND, PRELOAD_RETRY, PRELOAD_FAIL};
    require(waiter->bytes > 0 && waiter->bytes <= UINT64_C(1) << 50 && waiter->is_asking);
    require(waiter->reason >= PRELOAD_NEEDS_MEMORY && waiter->reason <= PRELOAD_OVER_CAP);
    open_waits += waiter != *(struct preload_waiter **)context;
    *(struct preload_waiter **)context = waiter;
    preload_answer(waiter, kinds[waiter->bytes % 3], 1);
}

static void on_stops_waiting(void *context, struct preload_waiter *waiter)
{
    *(struct preload_waiter **)context = NULL;
    open_waits--;
}

static void on_refuses(void *context, uid_t uid, int count)
{
}

static void remove_socket(void)
{
    unlink(path);
}

/* One socket for all inputs. */
static void listen_once(uv_loop_t *loop)
{
    static struct preload_listener *listener;
    static struct preload_waiter *waiter; /* the one of the connection of the moment */
    if (!listener) {
        const struct preload_hooks hooks = {
            &waiter, on_admits, on_begins, on_ends, on_waits, on_stops_waiting, on_refuses};
        struct fault fault;
        snprintf(path, sizeof(path), "/tmp/fuzz-preload.%d", (int)getpid());
        uv_loop_init(loop);
        require(preload_listener_create(
                    loop, path, PRELOAD_CONNECTIONS_MAX, &hooks, &fault, &listener) == 0);
        atexit(remove_socket);
    }
}

static void run(uv_loop_t *loop)
{
    for (int i = 0; i < 4; i++)
        uv_run(loop, UV_RUN_NOWAIT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uv_loop_t loop;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    listen_once(&loop);
    memcpy(address.sun_path, path, sizeof(path));
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    require(fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0);
    for (size_t at = 0; at < size;) {
        size_t n = data[at++];
        if (n > size - at)
            n = size - at;
        struct preload_message message;
        if (preload_request_decode(data + at, n, &message) == 0)
            require(message.kind == PRELOAD_HELLO || message.kind == PRELOAD_WAIT);
        send(fd, data + at, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        at += n;
        run(&loop);
    }
    close(fd);
    run(&loop);
    require(open_processes == 0 && open_waits == 0);
    return 0;
}
