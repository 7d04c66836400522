/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The body of a request: collected piece by piece and counted in the quota, then parsed. Parsing
 * takes several times the text's size, and libjansson does not survive a failed allocation, so that
 * the memory is probed first.
 */
#include <string.h>
#include <sys/mman.h>

#include "api/server_private.h"
#include "base/array.h"
#include "base/json_text.h"

/* Limits of a body. Chosen: far above any submission. */
#define VALUES_MAX 100000
#define SMALL_BODY ((size_t)(64 * KIB)) /* up to here memory is not probed */

/* Memory that each byte of a JSON text takes while it is parsed, at most, beside its values: the
 * text of a string as it grows by doubling and its copies. Chosen: from libjansson's structures. */
#define PARSE_BYTES_PER_BYTE 4

static enum body_problem append_bytes(struct api_request *request, const char *data, size_t size)
{
    size_t total = request->body_size + size;
    if (total > request->server->options.body_max_bytes)
        return BODY_TOO_LARGE;
    enum body_problem problem = request_take_bytes(request, size);
    if (problem != BODY_GOOD)
        return problem;
    if (ARRAY_RESERVE(request->body_text, request->body_capacity, total) < 0)
        return BODY_NO_MEMORY;
    memcpy(request->body_text + request->body_size, data, size);
    request->body_size = total;
    return BODY_GOOD;
}

void request_body_append(struct api_request *request, const char *data, size_t size)
{
    if (request->problem == BODY_GOOD)
        request->problem = append_bytes(request, data, size);
}

/* Tests whether that many bytes can be mapped: RLIMIT_AS, or a machine without overcommit, may
 * refuse them. */
static bool can_allocate(size_t size)
{
    void *probe = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (probe == MAP_FAILED)
        return false;
    munmap(probe, size);
    return true;
}

bool request_body_parse(struct api_request *request)
{
    json_error_t error;
    size_t size = request->body_size, values = json_text_count_values(request->body_text, size);
    if (values > VALUES_MAX) {
        api_reply_error(request, 400, "the body has more than %d values", VALUES_MAX);
        return false;
    }
    if (size > SMALL_BODY &&
        !can_allocate(size * PARSE_BYTES_PER_BYTE + values * JSON_BYTES_PER_VALUE)) {
        reply_body_problem(request, BODY_NO_MEMORY);
        return false;
    }
    request->body = json_loadb(request->body_text, size, JSON_REJECT_DUPLICATES, &error);
    if (!request->body)
        api_reply_error(
            request, 400, "the body is not JSON: %s (byte %d)", error.text, error.position);
    return request->body;
}
