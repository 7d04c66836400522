/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the signatures of requests from login nodes, in threads. Requests that wait for munged are
 * in a queue, and go to the thread pool by up to TURN_MAX at a time, one turn after the other:
 *
 *     admit --> queue --> credential opened in the pool --> compared with the request --> handler
 *
 * What waits is bounded: the server has one request for each connection, and few connections for
 * users that are not proven yet.
 */
#include "slurm/login_gate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "nodelink/munge_seal.h"
#include "nodelink/signed_request.h"

enum { TURN_MAX = 64 }; /* chosen: 4 ms of munge */

static const char scheme[] = "Munge ";

/* A request whose credential has to be decoded. */
struct waiting {
    struct api_request *request; /* the loop's only; NULL: it was forgotten in the pool */
    struct waiting *next;
    char *credential; /* a copy: the request may end before the pool has read it */

    /* the pool's result */
    int opened; /* 0; a seal_answer; or -errno */
    struct fault fault;
    struct seal_writer writer;
    struct signed_request made;
};

struct login_gate {
    struct login_gate_options parts;
    struct munge_seal *seal;
    struct waiting *first, **last;
    struct waiting *turn; /* the pool's; NULL: it has none */
    uv_work_t work;
    bool is_closed;
};

static void free_waiting(struct waiting *waiting)
{
    while (waiting) {
        struct waiting *next = waiting->next;
        free(waiting->credential);
        free(waiting);
        waiting = next;
    }
}

/* ---- in the pool ---- */

static void open_credential(struct munge_seal *seal, struct waiting *waiting)
{
    char *text;
    size_t size;
    waiting->opened = munge_seal_decode_from(
        seal, waiting->credential, &waiting->fault, &waiting->writer, &text, &size);
    if (waiting->opened == 0)
        waiting->opened = signed_request_decode(text, size, &waiting->fault, &waiting->made);
    free(text);
}

/* Where munged does not answer the first, the others do not wait for it, too. */
static void in_pool(uv_work_t *work)
{
    const struct login_gate *gate = work->data;
    const struct waiting *stuck = NULL;
    for (struct waiting *waiting = gate->turn; waiting; waiting = waiting->next) {
        if (stuck) {
            waiting->opened = stuck->opened;
            waiting->fault = stuck->fault;
            continue;
        }
        open_credential(gate->seal, waiting);
        if (waiting->opened == -EAGAIN)
            stuck = waiting;
    }
}

/* ---- in the loop ---- */

/* Advice for a user or an administrator. */
static const char *advice_of(int opened)
{
    switch (opened) {
    case SEAL_INVALID:
        return ": is the munge key of this machine the controller's, and is ControllerUser in "
               "colloc.conf the user that colloc-slurm runs as?";
    case SEAL_REPLAYED:
        return ": each request is accepted once";
    default:
        return "";
    }
}

static void refuse_foreign(const struct login_gate *gate, const struct waiting *waiting)
{
    if (strcmp(gate->parts.name, "none") != 0)
        api_reply_error(waiting->request, 401,
            "the request is meant for the controller %s, but this is %s: name it so in "
            "--controller or colloc.conf",
            waiting->made.controller, gate->parts.name);
    else
        api_reply_error(waiting->request, 401,
            "the request is meant for the controller %s, but this one has port %d: a tunnel to it "
            "must have the same",
            waiting->made.controller, tcp_address_port(gate->parts.address));
}

static void judge_request(const struct login_gate *gate, const struct waiting *waiting)
{
    struct api_request *request = waiting->request;
    size_t size;
    if (!request)
        return;
    const char *body = api_request_bytes(request, &size);
    if (waiting->opened == -EAGAIN || waiting->opened == -ENOMEM)
        api_reply_error(request, 503, "on the controller's machine: %s", waiting->fault.text);
    else if (waiting->opened != 0)
        api_reply_error(request, 401, "the controller refuses the credential: %s%s",
            waiting->fault.text, advice_of(waiting->opened));
    else if (!signed_request_is_for(
                 &waiting->made, gate->parts.name, tcp_address_port(gate->parts.address)))
        refuse_foreign(gate, waiting);
    else if (!signed_request_matches(&waiting->made, api_request_method(request),
                 api_request_target(request), body, size))
        api_reply_error(request, 401,
            "the controller refuses the request: it is not the one that was signed, so it was "
            "altered on its way");
    else
        api_request_admit(request,
            &(struct api_peer){.uid = waiting->writer.uid, .gid = waiting->writer.gid},
            waiting->made.key);
}

static void plan_turn(struct login_gate *gate);

static void on_turn(uv_work_t *work, int status)
{
    struct login_gate *gate = work->data;
    struct waiting *turn = gate->turn;
    gate->turn = NULL;
    for (const struct waiting *waiting = turn; waiting && !gate->is_closed; waiting = waiting->next)
        judge_request(gate, waiting);
    free_waiting(turn);
    if (gate->is_closed)
        return;
    gate->parts.answered(gate->parts.context);
    plan_turn(gate);
}

static void plan_turn(struct login_gate *gate)
{
    struct waiting **end = &gate->first;
    if (gate->turn || !gate->first || gate->is_closed)
        return;
    for (int i = 0; i < TURN_MAX && *end; i++)
        end = &(*end)->next;
    gate->turn = gate->first;
    gate->first = *end;
    *end = NULL;
    if (!gate->first)
        gate->last = &gate->first;
    gate->work.data = gate;
    uv_queue_work(gate->parts.loop, &gate->work, in_pool, on_turn);
}

bool login_gate_admit(void *data, struct api_request *request, struct api_peer *ret_peer)
{
    struct login_gate *gate = data;
    const char *header = api_request_header(request, "Authorization");
    if (!header || strncmp(header, scheme, strlen(scheme)) != 0 ||
        strlen(header) >= SIGNED_CREDENTIAL_SIZE) {
        api_reply_error(request, 401,
            "requests from other machines are signed by munge: ask by colloc's commands");
        return false;
    }
    struct waiting *waiting = calloc(1, sizeof *waiting);
    if (waiting)
        waiting->credential = strdup(header + strlen(scheme));
    if (!waiting || !waiting->credential) {
        free(waiting);
        api_reply(request, 500, NULL);
        return false;
    }
    waiting->request = request;
    *gate->last = waiting;
    gate->last = &waiting->next;
    plan_turn(gate);
    return false;
}

void login_gate_forget(void *data, struct api_request *request)
{
    struct login_gate *gate = data;
    for (struct waiting *waiting = gate->turn; waiting; waiting = waiting->next)
        if (waiting->request == request)
            waiting->request = NULL;
    for (struct waiting **link = &gate->first; *link; link = &(*link)->next) {
        struct waiting *gone = *link;
        if (gone->request != request)
            continue;
        *link = gone->next;
        if (!gone->next)
            gate->last = link;
        gone->next = NULL;
        free_waiting(gone);
        return;
    }
}

/* ---- life ---- */

struct login_gate *login_gate_create(const struct login_gate_options *options)
{
    struct login_gate *gate = calloc(1, sizeof *gate);
    if (!gate)
        return NULL;
    gate->parts = *options;
    gate->last = &gate->first;
    gate->seal = munge_seal_create(options->munge_socket, 0, SEAL_ANY_WRITER);
    if (gate->seal)
        return gate;
    free(gate);
    return NULL;
}

void login_gate_close(struct login_gate *gate)
{
    if (!gate)
        return;
    gate->is_closed = true;
    free_waiting(gate->first);
    gate->first = NULL;
    gate->last = &gate->first;
}

void login_gate_destroy(struct login_gate *gate)
{
    if (!gate)
        return;
    munge_seal_destroy(gate->seal);
    free(gate);
}
