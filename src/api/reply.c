/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers. An answer is stored in the request; libmicrohttpd sends it when the handler returns, or,
 * for a suspended request, when the connection has been resumed.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/answer_code.h"
#include "api/server_private.h"
#include "base/array.h"
#include "base/list.h"

/* Answers up to this size are not counted in the quota. Chosen. */
#define SMALL_ANSWER ((size_t)(64 * KIB))

static void add_headers(struct MHD_Response *response, const struct api_header *headers)
{
    for (; headers && headers->name; headers++)
        MHD_add_response_header(response, headers->name, headers->value);
}

void reply_response(struct api_request *request, int status, struct MHD_Response *response)
{
    if (request->response || !response)
        return;
    const struct api_server_options *options = &request->server->options;
    MHD_add_response_header(response, "Colloc-Version", options->version);
    add_headers(response, options->headers);
    request->status = status;
    request->response = response;
    request->counted->unproven.is_judged = false;
    if (request->is_suspended) {
        LIST_UNLINK(request);
        request->is_suspended = false;
        MHD_resume_connection(request->connection);
    }
}

void reply_body_problem(struct api_request *request, enum body_problem problem)
{
    switch (problem) {
    case BODY_GOOD:
        break;
    case BODY_TOO_LARGE:
        api_reply_error(request, 413, "the body is larger than %zu bytes",
            request->server->options.body_max_bytes);
        break;
    case BODY_USER_FULL:
        api_reply_error(request, 503,
            "your pending requests hold more than %zu bytes: try again when they are answered",
            BYTES_PER_USER);
        break;
    case BODY_ALL_FULL:
        api_reply_error(request, 503,
            "the pending requests of all users hold their limit of %zu bytes: try again later",
            request->server->options.bytes_max);
        break;
    case BODY_NO_MEMORY:
        api_reply_error(request, 503,
            "not enough memory for a body of %zu bytes at the moment: try again later",
            request->body_size);
        break;
    }
}

enum body_problem request_take_bytes(struct api_request *request, size_t bytes)
{
    switch (quota_take(&request->server->quota, request->counted->user, bytes)) {
    case QUOTA_USER_FULL:
        return BODY_USER_FULL;
    case QUOTA_ALL_FULL:
        return BODY_ALL_FULL;
    case QUOTA_TAKEN:
        break;
    }
    request->held_bytes += bytes;
    return BODY_GOOD;
}

bool api_request_hold(struct api_request *request, size_t bytes)
{
    enum body_problem problem = request_take_bytes(request, bytes);
    reply_body_problem(request, problem);
    return problem == BODY_GOOD;
}

static void sign_answer(
    const struct api_request *request, int status, const char *text, struct MHD_Response *response)
{
    char code[SHA256_HEX_SIZE];
    answer_code_make(request->key, status, text, strlen(text), code);
    MHD_add_response_header(response, ANSWER_CODE_HEADER, code);
}

void api_reply_held_text(struct api_request *request, int status, char *text)
{
    static char out_of_memory[] =
        "{\"error\": {\"code\": \"internal\", \"message\": \"out of memory\"}}\n";
    struct MHD_Response *response = text ? MHD_create_response_from_buffer(
                                               strlen(text), text, MHD_RESPMEM_MUST_FREE)
                                         : MHD_create_response_from_buffer(strlen(out_of_memory),
                                               out_of_memory, MHD_RESPMEM_PERSISTENT);
    if (response)
        MHD_add_response_header(response, "Content-Type", "application/json");
    if (response && request->is_signed)
        sign_answer(request, text ? status : 500, text ? text : out_of_memory, response);
    reply_response(request, text ? status : 500, response);
}

void api_reply_text(struct api_request *request, int status, char *text)
{
    if (text && strlen(text) > SMALL_ANSWER && !api_request_hold(request, strlen(text)))
        free(text);
    else
        api_reply_held_text(request, status, text);
}

void api_reply(struct api_request *request, int status, json_t *body)
{
    char *text = body ? json_dumps(body, API_JSON_FLAGS) : NULL;
    json_decref(body);
    api_reply_text(request, status, text);
}

enum { MESSAGE_SIZE = 1024 }; /* chosen: longer ones are cut */

static const char *error_code(int status)
{
    static const struct {
        int status;
        const char *code;
    } codes[] = {{400, "bad-request"}, {401, "not-logged-in"}, {403, "not-yours"},
        {404, "not-found"}, {405, "bad-method"}, {409, "wrong-state"}, {413, "too-large"},
        {429, "too-often"}, {503, "not-now"}, {507, "log-not-writable"}};
    for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
        if (codes[i].status == status)
            return codes[i].code;
    return "internal";
}

json_t *api_error_json(int status, const char *message)
{
    char plain[MESSAGE_SIZE];
    json_t *text = json_string(message);
    if (!text) { /* it quotes bytes that are not UTF-8, or was cut within a character */
        snprintf(plain, sizeof plain, "%s", message);
        for (char *at = plain; *at; at++)
            if ((unsigned char)*at >= 0x80)
                *at = '?';
        text = json_string(plain);
    }
    return json_pack("{s:s, s:o}", "code", error_code(status), "message", text);
}

void api_reply_error(struct api_request *request, int status, const char *format, ...)
{
    char message[MESSAGE_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    api_reply(request, status, json_pack("{s:o}", "error", api_error_json(status, message)));
}

void api_reply_bytes(struct api_request *request, const char *type, const void *data, size_t size,
    const struct api_header *headers)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(
        size, (void *)(uintptr_t)data, MHD_RESPMEM_MUST_COPY);
    if (response) {
        MHD_add_response_header(response, "Content-Type", type);
        add_headers(response, headers);
    }
    reply_response(request, 200, response);
}
