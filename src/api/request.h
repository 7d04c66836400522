/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request as its handler sees it: who sent it and what, and how it is answered. It is answered
 * once, at once or later; until then it is suspended and stays valid.
 */
#ifndef COLLOC_API_REQUEST_H
#define COLLOC_API_REQUEST_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/sha256.h"

struct api_request;

struct api_header {
    const char *name, *value;
};

struct api_peer {
    uid_t uid;
    gid_t gid;
    pid_t pid;
};

/* The context of the server's routes. */
void *api_request_context(const struct api_request *request);
void *api_request_server_data(const struct api_request *request);

/* Returns the path, borrowed, valid until the handler returns. */
const char *api_request_path(const struct api_request *request);

/* Returns the path with its query as it was sent, borrowed; "" on a server without `admit`. */
const char *api_request_target(const struct api_request *request);

/* Returns the request's method, borrowed. */
const char *api_request_method(const struct api_request *request);

/* Returns the body before it is parsed, borrowed; NULL with `ret_size` 0 when there is none. */
const char *api_request_bytes(const struct api_request *request, size_t *ret_size);

/*
 * Admits a request that `admit` has left unanswered: its connection counts for the user from now
 * on, and the handler is called.
 *
 * peer: the user that is proven to have sent it
 * key:  signs the answer (api/answer_code.h)
 */
void api_request_admit(struct api_request *request, const struct api_peer *peer,
    const uint8_t key[static SHA256_SIZE]);

/* Returns the user and process that sent the request, as the kernel or `admit` identified them. */
struct api_peer api_request_peer(const struct api_request *request);

/* Did it come from another machine, signed? Neither it nor its answer is encrypted then. */
bool api_request_is_signed(const struct api_request *request);

uint64_t api_request_id(const struct api_request *request); /* the {id} of the path, or 0 */

/* Returns the {name} of the path, borrowed; "" when the path has none. Of an {id} such as 12_7, the
 * task with index 7 of an array: "7". */
const char *api_request_name(const struct api_request *request);

/* Returns the body, borrowed, or NULL when there is none. A body that is not JSON has been answered
 * with 400 already. */
const json_t *api_request_body(const struct api_request *request);

/* Returns a query parameter, borrowed, or NULL. */
const char *api_request_query(const struct api_request *request, const char *key);

/* Returns a header of the request, borrowed, or NULL. */
const char *api_request_header(const struct api_request *request, const char *name);

/* Answers; takes over the reference to `body`. NULL, from a failed allocation, answers 500. */
void api_reply(struct api_request *request, int status, json_t *body);

/* The same for JSON as text, written with these flags; takes over `text`. */
#define API_JSON_FLAGS (JSON_COMPACT | JSON_REAL_PRECISION(15))
void api_reply_text(struct api_request *request, int status, char *text);

/* Takes bytes of a long answer from the quota. Returns false when none are left: the request has
 * been answered with 503 then. */
bool api_request_hold(struct api_request *request, size_t bytes);

/* The same for a text whose bytes api_request_hold has taken. */
void api_reply_held_text(struct api_request *request, int status, char *text);

/* Returns {"code": .., "message": ..}; the code follows from the status. NULL when memory is out. */
json_t *api_error_json(int status, const char *message);

/* Answers {"error": {"code": .., "message": ..}}. */
void api_reply_error(struct api_request *request, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/*
 * Answers with bytes.
 *
 * type:    Content-Type
 * data:    `size` bytes, copied
 * headers: ended by one without a name; or NULL
 */
void api_reply_bytes(struct api_request *request, const char *type, const void *data, size_t size,
    const struct api_header *headers);

#endif
