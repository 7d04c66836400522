/* SPDX-License-Identifier: Apache-2.0 */
/* Requests by libcurl, which keeps the connection open between them. */
#include "api/client.h"

#include <curl/curl.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "api/client_socket.h"
#include "base/array.h"
#include "base/units.h"

enum {
    REPLY_MAX_BYTES = 256 << 20, /* chosen: ten times a list of 10,000 tasks */
    SILENCE_MAX_S = 90,          /* longer than the longest wait in docs/protocol.md */
};

struct client {
    CURL *curl;
    bool was_answered;
    char socket_path[sizeof(((struct sockaddr_un *)0)->sun_path)];
};

/* An answer being received. */
struct reply {
    char *data;
    size_t size, capacity;
    int status;
    struct client_log log; /* its members that headers carry */
};

int client_open(const char *socket_path, struct fault *fault, struct client **ret_client)
{
    struct client *client = calloc(1, sizeof *client);
    if (!client)
        return fault_set(fault, ENOMEM, "out of memory");
    int r = client_find_socket(socket_path, client->socket_path, sizeof client->socket_path, fault);
    if (r == 0) {
        client->curl = curl_easy_init();
        if (!client->curl)
            r = fault_set(fault, ENOMEM, "cannot start libcurl");
    }
    if (r < 0) {
        client_close(client);
        return r;
    }
    *ret_client = client;
    return 0;
}

void client_close(struct client *client)
{
    if (!client)
        return;
    curl_easy_cleanup(client->curl);
    free(client);
}

const char *client_socket(const struct client *client)
{
    return client->socket_path;
}

bool client_is_unserved(const struct client *client)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    strcpy(address.sun_path, client->socket_path);
    int r = connect(fd, (struct sockaddr *)&address, sizeof address) < 0 ? errno : 0;
    close(fd);
    return r == ENOENT || r == ENOTDIR || r == ECONNREFUSED;
}

bool client_was_answered(const struct client *client)
{
    return client->was_answered;
}

static size_t on_body(char *data, size_t size, size_t count, void *context)
{
    struct reply *reply = context;
    size_t n = size * count;
    if (n > REPLY_MAX_BYTES - reply->size)
        return 0;
    if (ARRAY_RESERVE(reply->data, reply->capacity, reply->size + n) < 0)
        return 0;
    memcpy(reply->data + reply->size, data, n);
    reply->size += n;
    return n;
}

/* Copies the value of a header line of this name, without blanks. False: another header. */
static bool header_value(
    const char *line, size_t size, const char *name, char *ret_value, size_t value_size)
{
    size_t n = strlen(name);
    if (size <= n || strncasecmp(line, name, n) != 0 || line[n] != ':')
        return false;
    size_t i = n + 1, used = 0;
    for (; i < size && used < value_size - 1; i++)
        if ((unsigned char)line[i] > ' ')
            ret_value[used++] = line[i];
    ret_value[used] = '\0';
    return true;
}

static size_t on_header(char *line, size_t size, size_t count, void *context)
{
    struct client_log *log = &((struct reply *)context)->log;
    char value[32];
    int64_t number;
    size_t n = size * count;
    if (header_value(line, n, "Colloc-Next-Offset", value, sizeof value))
        parse_int64(value, 0, INT64_MAX, &log->next_offset);
    else if (header_value(line, n, "Colloc-Ended", value, sizeof value))
        log->ended = strcmp(value, "true") == 0;
    else if (header_value(line, n, "Colloc-Dropped", value, sizeof value))
        parse_int64(value, 0, INT64_MAX, &log->dropped);
    else if (header_value(line, n, "Colloc-Merged", value, sizeof value))
        log->merged = strcmp(value, "true") == 0;
    else if (header_value(line, n, "Colloc-Attempt", value, sizeof value) &&
             parse_int64(value, 0, INT32_MAX, &number) == 0)
        log->attempt = (int)number;
    return n;
}

static int report_unreachable(
    const struct client *client, CURLcode code, const char *detail, struct fault *fault)
{
    const char *reason = detail[0] ? detail : curl_easy_strerror(code);
    if (code == CURLE_COULDNT_CONNECT)
        return fault_set(fault, ECONNREFUSED,
            "cannot reach collocd at %s: is it running? start it with `colloc serve`",
            client->socket_path);
    if (code == CURLE_OPERATION_TIMEDOUT)
        return fault_set(fault, ETIMEDOUT, "collocd at %s does not answer (waited %d s)",
            client->socket_path, SILENCE_MAX_S);
    return fault_set(
        fault, EIO, "the connection to collocd at %s was closed: %s", client->socket_path, reason);
}

static int transfer_request(struct client *client, const char *method, const char *path,
    const char *body, struct fault *fault, struct reply *reply)
{
    char url[2048], detail[CURL_ERROR_SIZE] = "";
    if (snprintf(url, sizeof url, "http://colloc%s", path) >= (int)sizeof url)
        return fault_set(fault, ENAMETOOLONG, "request path of %zu bytes", strlen(path));
    CURL *curl = client->curl;
    curl_easy_reset(curl); /* keeps the connection */
    struct curl_slist *headers = curl_slist_append(NULL, "Expect:");
    headers = curl_slist_append(headers, "Content-Type: application/json");
    curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, client->socket_path);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)SILENCE_MAX_S);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, detail);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, reply);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, reply);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    if (strcmp(method, "GET") != 0) {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)(body ? strlen(body) : 0));
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body ? body : "");
        curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
    }
    CURLcode code = curl_easy_perform(curl);
    curl_slist_free_all(headers);
    if (code != CURLE_OK)
        return report_unreachable(client, code, detail, fault);
    long status = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    reply->status = (int)status;
    client->was_answered = true;
    return 0;
}

static int parse_reply(
    const struct client *client, const struct reply *reply, struct fault *fault, json_t **ret)
{
    json_error_t error;
    json_t *json = json_loadb(reply->data ? reply->data : "", reply->size, 0, &error);
    if (!json)
        return fault_set(fault, EPROTO, "%s: the answer is not collocd's (HTTP status %d): %s",
            client->socket_path, reply->status, error.text);
    *ret = json;
    return 0;
}

int client_request(struct client *client, const char *method, const char *path, const json_t *body,
    struct fault *fault, int *ret_status, json_t **ret_reply)
{
    struct reply reply = {0};
    char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
    if (body && !text)
        return fault_set(fault, ENOMEM, "the request cannot be written as JSON");
    int r = transfer_request(client, method, path, text, fault, &reply);
    free(text);
    if (r == 0)
        r = parse_reply(client, &reply, fault, ret_reply);
    if (r == 0)
        *ret_status = reply.status;
    free(reply.data);
    return r;
}

void client_error(int status, const json_t *reply, struct fault *fault)
{
    const char *message = json_string_value(
        json_object_get(json_object_get(reply, "error"), "message"));
    if (message)
        fault_set(fault, EREMOTEIO, "%s", message);
    else
        fault_set(fault, EREMOTEIO, "collocd answered with HTTP status %d", status);
}

int client_read_log(struct client *client, const char *path, struct fault *fault, int *ret_status,
    struct client_log *ret_log)
{
    struct reply reply = {0};
    json_t *error = NULL;
    int r = transfer_request(client, "GET", path, NULL, fault, &reply);
    if (r == 0 && reply.status != 200)
        r = parse_reply(client, &reply, fault, &error);
    if (r < 0 || reply.status != 200) {
        if (r == 0)
            client_error(reply.status, error, fault);
        json_decref(error);
        free(reply.data);
        reply.data = NULL;
        reply.size = 0;
    }
    *ret_status = reply.status;
    *ret_log = reply.log;
    ret_log->data = reply.data;
    ret_log->size = reply.size;
    return r;
}
