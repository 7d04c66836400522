/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's side of colloc-checkpoint: one living helper process, one call at a time, a time
 * limit for each call. A helper that exceeds a limit is killed, and the next call starts another.
 *
 * Contract:
 * 1. Each call that was accepted is answered once, from the loop, never from within
 *    helper_client_call; after helper_client_close none is.
 * 2. The loop never waits for a helper, nor for one that the kernel keeps after a kill.
 */
#ifndef COLLOC_CHECKPOINT_HELPER_CLIENT_H
#define COLLOC_CHECKPOINT_HELPER_CLIENT_H

#include <uv.h>

#include "checkpoint/helper_line.h"

struct helper_client;

/*
 * Takes the reply, which is valid during the call. Beside the driver's and the helper's results:
 * -ETIMEDOUT (it was killed), -EPIPE (it died or wrote nonsense), -ENOEXEC (it cannot be started;
 * `text` says why).
 */
typedef void helper_on_reply(void *context, const struct helper_reply *reply);

/*
 * Creates the client; starts nothing yet.
 *   program: path of colloc-checkpoint; copied
 * Returns NULL when memory is out.
 */
struct helper_client *helper_client_create(uv_loop_t *loop, const char *program);

/* Ends the helper. The client is freed once the loop has run. NULL is fine. */
void helper_client_close(struct helper_client *client);

/*
 * Makes a call.
 *   limit_us: after that the helper is killed
 * Returns 0, or -EBUSY: another call is under way.
 */
int helper_client_call(struct helper_client *client, const struct helper_request *request,
    int64_t limit_us, helper_on_reply *on_reply, void *context);

/* Takes the descriptor that came with the reply to a HELPER_LEND; the caller closes it. Returns -1:
 * none came. */
int helper_client_take_descriptor(struct helper_client *client);

/* Returns whether a call is under way: then no other may begin. */
bool helper_client_is_busy(const struct helper_client *client);

/* Returns the pid of the living helper; 0: there is none. */
pid_t helper_client_pid(const struct helper_client *client);

#endif
