/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages between libkineto, PyTorch's profiler, and a daemon that says when to profile. The form
 * is that of dynolog (github.com/facebookincubator/dynolog, dynolog/src/ipcfabric), and of
 * libkineto (github.com/pytorch/kineto, libkineto/src/IpcFabricConfigClient.cpp). Pure.
 */
#ifndef COLLOC_EXEC_KINETO_MESSAGE_H
#define COLLOC_EXEC_KINETO_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "exec/torch_order.h"

enum { KINETO_MESSAGE_MAX = 4096, KINETO_TYPE_SIZE = 32 };

enum kineto_kind {
    KINETO_CONTEXT, /* a process says that it uses a GPU; the answer is how many do */
    KINETO_REQUEST, /* a process asks for a configuration; the answer is its text */
};

struct kineto_request {
    enum kineto_kind kind;
    bool wants_activities; /* of KINETO_REQUEST: it is not being profiled now */
};

/* Reads a datagram; any bytes are allowed. Returns 0 or -EBADMSG. */
int kineto_message_read(const void *data, size_t size, struct kineto_request *ret_request);

/* Writes the answer to KINETO_CONTEXT. Returns its size. */
size_t kineto_message_count(int32_t count, unsigned char message[KINETO_MESSAGE_MAX]);

/* Writes the answer to KINETO_REQUEST. `config`: "" for nothing new; cut at what fits. Returns its
 * size. */
size_t kineto_message_config(const char *config, unsigned char message[KINETO_MESSAGE_MAX]);

/*
 * Writes the configuration that has libkineto carry the order out.
 *
 * path: of the trace; libkineto puts the process's id before its ending ".json".
 *
 * Returns `text`, or NULL if it does not fit or the path has a newline.
 */
const char *kineto_config_write(
    const struct torch_order *order, const char *path, char *text, size_t size);

#endif
