/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a message of a user's process before it is used. */
#include "preload/protocol.h"

#include <errno.h>
#include <string.h>

#include "preload/page.h"

/* 1 PiB: no GPU has so much; sums of a few of these do not overflow. */
#define BYTES_MAX (UINT64_C(1) << 50)

struct preload_message preload_message_of(enum preload_kind kind)
{
    return (struct preload_message){
        .magic = PRELOAD_MESSAGE_MAGIC, .version = PRELOAD_MESSAGE_VERSION, .kind = (uint8_t)kind};
}

static int check_wait(const struct preload_message *m)
{
    if (m->reason < PRELOAD_NEEDS_MEMORY || m->reason > PRELOAD_OVER_CAP)
        return -EBADMSG;
    if (m->bytes == 0 || m->bytes > BYTES_MAX || m->held_bytes > BYTES_MAX)
        return -EBADMSG;
    return m->ordinal < PRELOAD_DEVICES_MAX ? 0 : -EBADMSG;
}

int preload_request_decode(const void *data, size_t size, struct preload_message *ret_message)
{
    struct preload_message m;
    if (size != sizeof(m))
        return -EBADMSG;
    memcpy(&m, data, sizeof(m));
    if (m.magic != PRELOAD_MESSAGE_MAGIC)
        return -EBADMSG;
    if (m.version != PRELOAD_MESSAGE_VERSION)
        return -EPROTO;
    if (m.kind != PRELOAD_HELLO && m.kind != PRELOAD_WAIT)
        return -EBADMSG;
    int r = m.kind == PRELOAD_WAIT ? check_wait(&m) : 0;
    if (r == 0)
        *ret_message = m;
    return r;
}
