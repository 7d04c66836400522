/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request of a user on another machine to colloc-slurm. It goes over HTTP as it is; beside it, in
 * the header Authorization, goes a munge credential with this text:
 *
 *     {"v": 1, "for": "colloc-slurm", "to": "ctl1:7491", "method": "GET",
 *      "path": "/v1/tasks?state=live", "body": "e3b0c442...", "key": "5f1c..."}
 *
 * Contract:
 *   1. munge proves which user made it, accepts it once, for a minute, and lets only the
 *      controller's user read it. What was altered, or is sent again, is refused.
 *   2. The key is random and for this request alone: it signs the answer (api/answer_code.h).
 *   3. "to" names the controller as its user does. Several controllers may have one munge key, and
 *      each accepts a credential once: one that is meant for another is refused.
 *   4. Neither the request nor its answer is encrypted.
 */
#ifndef COLLOC_NODELINK_SIGNED_REQUEST_H
#define COLLOC_NODELINK_SIGNED_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/fault.h"
#include "base/sha256.h"

enum {
    SIGNED_METHOD_SIZE = 8,
    SIGNED_PATH_SIZE = 2048,
    SIGNED_PLACE_SIZE = 320,
    SIGNED_CREDENTIAL_SIZE = 8192, /* longer ones are refused unread; measured: under 4 KiB */
};

struct signed_request {
    char controller[SIGNED_PLACE_SIZE]; /* that it is meant for: "HOST:PORT" */
    char method[SIGNED_METHOD_SIZE];
    char path[SIGNED_PATH_SIZE]; /* with the query, as it is sent */
    char body_digest[SHA256_HEX_SIZE];
    uint8_t key[SHA256_SIZE];
};

/*
 * Makes one with a new key.
 *
 * controller: "HOST:PORT"
 * body:       `size` bytes
 *
 * Returns 0; or -errno with a fault: -ENAMETOOLONG (controller, method or path), -EAGAIN (no
 * randomness yet).
 */
int signed_request_make(const char *controller, const char *method, const char *path,
    const char *body, size_t size, struct fault *fault, struct signed_request *ret_request);

/* Writes the text of the credential, for the caller to free. Returns 0 or -ENOMEM. */
int signed_request_encode(const struct signed_request *request, char **ret_text);

/* Reads it from any bytes. Returns 0; or -EPROTO, -EINVAL, -EMSGSIZE with a fault. */
int signed_request_decode(
    const char *text, size_t size, struct fault *fault, struct signed_request *ret_request);

/*
 * Is it meant for this controller?
 *
 * name: "HOST:PORT" as its users name it, in letters of any case; "none": not known, so that the
 *       port alone decides
 * port: at which it listens
 */
bool signed_request_is_for(const struct signed_request *request, const char *name, int port);

/* Is this the request that was signed? `body`: `size` bytes. */
bool signed_request_matches(const struct signed_request *request, const char *method,
    const char *path, const char *body, size_t size);

#endif
