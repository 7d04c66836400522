/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Admits the requests of users on other machines that munge authenticates (nodelink/
 * signed_request.h). For an API server on TCP, as its `admit`.
 *
 * Contract:
 *   1. munged is called in the loop's thread pool only, by one thread at a time, so that a munged
 *      that does not answer blocks neither the loop nor the other work of the pool.
 *   2. A request for another controller is refused, so that a request is never answered by two
 *      controllers.
 *   3. The user of an admitted request is munge's; any other request gets 401 and the reason, or
 *      503 if munged does not answer.
 */
#ifndef COLLOC_SLURM_LOGIN_GATE_H
#define COLLOC_SLURM_LOGIN_GATE_H

#include <uv.h>

#include "api/server.h"
#include "base/tcp_address.h"

struct login_gate;

struct login_gate_options {
    uv_loop_t *loop;                   /* borrowed */
    const char *munge_socket;          /* "": libmunge's own */
    const char *name;                  /* of this controller: see signed_request_is_for; borrowed */
    const struct tcp_address *address; /* at which the server listens; borrowed */
    void (*answered)(void *context);   /* requests were answered outside of the server's turns */
    void *context;
};

/* `options` is copied. Returns NULL when memory is out. */
struct login_gate *login_gate_create(const struct login_gate_options *options);

/* For api_server_options; `gate` is the server's data. Returns false: the answer comes later. */
bool login_gate_admit(void *gate, struct api_request *request, struct api_peer *ret_peer);

/* For api_server_options, too: the request is not touched any more. */
void login_gate_forget(void *gate, struct api_request *request);

/* From now on it touches no request. Call it before the server ends. NULL is fine. */
void login_gate_close(struct login_gate *gate);

/* Releases it once the loop has run after login_gate_close. NULL is fine. */
void login_gate_destroy(struct login_gate *gate);

#endif
