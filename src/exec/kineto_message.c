/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads and writes the messages of PyTorch's profiler. A message is a header of 40 bytes, the size
 * of what follows (64 bits) and a type (32 bytes, ended by NUL), and that many bytes. Numbers are
 * the machine's own.
 *
 *     "ctxt"  gpu, pid (32 bits each), job (64)                      answered by a "ctxt" of 32 bits
 *     "req"   kinds, number of pids (32 bits each), job (64), pids   answered by a "req" of text
 *
 * The pids are those of the process and its ancestors. The process itself states them; the kernel
 * identifies the sender of the datagram.
 */
#include "exec/kineto_message.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { HEADER_SIZE = 40, CONTEXT_SIZE = 16, REQUEST_SIZE = 16, WANTS_ACTIVITIES = 2 };
static const char CONTEXT_TYPE[] = "ctxt", REQUEST_TYPE[] = "req";

static uint32_t read_number(const unsigned char *at)
{
    uint32_t number;
    memcpy(&number, at, sizeof number);
    return number;
}

static bool is_type(const unsigned char *message, const char *type)
{
    return strncmp((const char *)message + sizeof(uint64_t), type, KINETO_TYPE_SIZE) == 0;
}

int kineto_message_read(const void *data, size_t size, struct kineto_request *ret_request)
{
    const unsigned char *message = data;
    uint64_t body_size;
    if (size < HEADER_SIZE)
        return -EBADMSG;
    memcpy(&body_size, message, sizeof body_size);
    if (body_size != size - HEADER_SIZE)
        return -EBADMSG;
    const unsigned char *body = message + HEADER_SIZE;
    if (is_type(message, CONTEXT_TYPE) && body_size == CONTEXT_SIZE) {
        *ret_request = (struct kineto_request){.kind = KINETO_CONTEXT};
        return 0;
    }
    if (!is_type(message, REQUEST_TYPE) || body_size < REQUEST_SIZE)
        return -EBADMSG;
    uint64_t n_pids = read_number(body + sizeof(uint32_t));
    if (body_size - REQUEST_SIZE != n_pids * sizeof(int32_t))
        return -EBADMSG;
    *ret_request = (struct kineto_request){
        .kind = KINETO_REQUEST, .wants_activities = read_number(body) & WANTS_ACTIVITIES};
    return 0;
}

static size_t write_message(const char *type, const void *body, size_t size, unsigned char *message)
{
    const uint64_t body_size = size;
    memset(message, 0, HEADER_SIZE);
    memcpy(message, &body_size, sizeof body_size);
    memcpy(message + sizeof body_size, type, strlen(type));
    memcpy(message + HEADER_SIZE, body, size);
    return HEADER_SIZE + size;
}

size_t kineto_message_count(int32_t count, unsigned char message[KINETO_MESSAGE_MAX])
{
    return write_message(CONTEXT_TYPE, &count, sizeof count, message);
}

size_t kineto_message_config(const char *config, unsigned char message[KINETO_MESSAGE_MAX])
{
    size_t size = strnlen(config, KINETO_MESSAGE_MAX - HEADER_SIZE);
    return write_message(REQUEST_TYPE, config, size, message);
}

/* A first step of 0 with a multiple to round up to is libkineto's form of "the next step". */
const char *kineto_config_write(
    const struct torch_order *order, const char *path, char *text, size_t size)
{
    int n;
    if (order->steps && order->step)
        n = snprintf(text, size, "PROFILE_START_ITERATION=%" PRId64 "\n", order->step);
    else if (order->steps)
        n = snprintf(text, size, "PROFILE_START_ITERATION=0\nPROFILE_START_ITERATION_ROUNDUP=1\n");
    else
        n = snprintf(text, size, "PROFILE_START_TIME=0\nACTIVITIES_DURATION_MSECS=%" PRId64 "\n",
            order->duration_ms);
    size_t used = (size_t)n;
    if (order->steps && used < size)
        used += (size_t)snprintf(
            text + used, size - used, "ACTIVITIES_ITERATIONS=%" PRId64 "\n", order->steps);
    if (used < size)
        used += (size_t)snprintf(text + used, size - used, "ACTIVITIES_LOG_FILE=%s\n", path);
    return used < size && !strchr(path, '\n') ? text : NULL;
}
