/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests by libcurl, which keeps a connection to a Unix socket open between them. A connection to
 * another machine is not used again: libcurl sends a request again by itself when such a connection
 * turns out to be closed, and a signed request is valid only once.
 */
#include "api/client.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "api/answer_code.h"
#include "api/answer_time.h"
#include "api/client_socket.h"
#include "base/array.h"
#include "base/tcp_address.h"
#include "base/units.h"

enum {
    CLIENT_PLACE_SIZE = 300,     /* a host's name has up to 253 bytes */
    CONNECT_MAX_S = 10,          /* chosen: to another machine */
    REPLY_MAX_BYTES = 256 << 20, /* chosen: ten times a list of 10,000 tasks */
};

struct client {
    CURL *curl;
    bool was_answered, is_remote;
    struct client_signer signer;
    char place[CLIENT_PLACE_SIZE]; /* the path of the socket, or "HOST:PORT" */
};

/* An answer being received. */
struct reply {
    char *data;
    size_t size, capacity;
    int status;
    char code[SHA256_HEX_SIZE]; /* that signs it; "": none */
    struct client_log log;      /* its members that headers carry */
};

/* `r`: what has happened before. */
static int finish_open(struct client *client, int r, struct fault *fault, struct client **ret)
{
    if (r == 0) {
        client->curl = curl_easy_init();
        if (!client->curl)
            r = fault_set(fault, ENOMEM, "cannot start libcurl");
    }
    if (r < 0)
        client_close(client);
    else
        *ret = client;
    return r;
}

int client_open(const char *socket_path, struct fault *fault, struct client **ret_client)
{
    struct client *client = calloc(1, sizeof *client);
    if (!client)
        return fault_set(fault, ENOMEM, "out of memory");
    int r = client_find_socket(
        socket_path, client->place, sizeof((struct sockaddr_un *)0)->sun_path, fault);
    return finish_open(client, r, fault, ret_client);
}

int client_open_remote(const char *address, const struct client_signer *signer, struct fault *fault,
    struct client **ret_client)
{
    struct client *client = calloc(1, sizeof *client);
    if (!client) {
        signer->release(signer->context);
        return fault_set(fault, ENOMEM, "out of memory");
    }
    int r = 0;
    if (!tcp_address_is_host_port(address) || strlen(address) >= CLIENT_PLACE_SIZE)
        r = fault_set(fault, EINVAL, "%.300s: not a host and a port such as ctl1:7491", address);
    client->is_remote = true;
    client->signer = *signer;
    if (r == 0)
        strcpy(client->place, address);
    return finish_open(client, r, fault, ret_client);
}

void client_close(struct client *client)
{
    if (!client)
        return;
    curl_easy_cleanup(client->curl);
    if (client->is_remote)
        client->signer.release(client->signer.context);
    free(client);
}

const char *client_socket(const struct client *client)
{
    return client->place;
}

bool client_is_unserved(const struct client *client)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = client->is_remote ? -1 : socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return false;
    strcpy(address.sun_path, client->place);
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
    struct reply *reply = context;
    struct client_log *log = &reply->log;
    char value[32];
    int64_t number;
    size_t n = size * count;
    if (header_value(line, n, ANSWER_CODE_HEADER, reply->code, sizeof reply->code))
        return n;
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

/* How long the answer to a request may take to come, in seconds. */
static int patience_s(const char *path)
{
    return answer_time_max_s(path) + ANSWER_LATE_S;
}

static int report_unreachable(const struct client *client, const char *path, CURLcode code,
    const char *detail, struct fault *fault)
{
    const char *reason = detail[0] ? detail : curl_easy_strerror(code);
    if (client->is_remote)
        return fault_set(fault, code == CURLE_COULDNT_CONNECT ? ECONNREFUSED : EIO,
            "cannot reach colloc-slurm at %s: %s: is it running, with the setting login-listen?",
            client->place, reason);
    if (code == CURLE_COULDNT_CONNECT)
        return fault_set(fault, ECONNREFUSED,
            "cannot reach collocd at %s: is it running? start it with `colloc serve`",
            client->place);
    if (code == CURLE_OPERATION_TIMEDOUT)
        return fault_set(fault, ETIMEDOUT,
            "collocd at %s does not answer: waited %d s, and it takes at most %d; what was asked "
            "for may still happen",
            client->place, patience_s(path), answer_time_max_s(path));
    return fault_set(
        fault, EIO, "the connection to collocd at %s was closed: %s", client->place, reason);
}

/* Tells libcurl where the request goes. */
static int set_place(const struct client *client, const char *path, struct fault *fault)
{
    char url[2048 + CLIENT_PLACE_SIZE];
    const char *host = client->is_remote ? client->place : "colloc";
    if (snprintf(url, sizeof url, "http://%s%s", host, path) >= (int)sizeof url)
        return fault_set(fault, ENAMETOOLONG, "request path of %zu bytes", strlen(path));
    curl_easy_setopt(client->curl, CURLOPT_URL, url);
    if (!client->is_remote) {
        curl_easy_setopt(client->curl, CURLOPT_UNIX_SOCKET_PATH, client->place);
        return 0;
    }
    curl_easy_setopt(client->curl, CURLOPT_PATH_AS_IS, 1L); /* the path is signed */
    curl_easy_setopt(client->curl, CURLOPT_FORBID_REUSE, 1L);
    curl_easy_setopt(client->curl, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_MAX_S);
    return 0;
}

static void set_receiver(CURL *curl, const char *path, struct reply *reply, char *detail)
{
    curl_easy_setopt(curl, CURLOPT_PROXY, "");
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)patience_s(path));
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, detail);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, reply);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, reply);
}

static int add_credential(const struct client *client, const char *method, const char *path,
    const char *body, struct fault *fault, struct curl_slist **headers,
    uint8_t ret_key[static SHA256_SIZE])
{
    char *credential, *line;
    int r = client->signer.sign(
        client->signer.context, method, path, body, strlen(body), fault, &credential, ret_key);
    if (r < 0)
        return r;
    if (asprintf(&line, "Authorization: Munge %s", credential) < 0)
        line = NULL;
    free(credential);
    if (line)
        *headers = curl_slist_append(*headers, line);
    free(line);
    return line ? 0 : fault_set(fault, ENOMEM, "out of memory");
}

/* Only a refusal may lack a code: a server that does not know the user has no key to sign it
 * with. */
static int check_answer(const struct client *client, const struct reply *reply,
    const uint8_t key[static SHA256_SIZE], struct fault *fault)
{
    char code[SHA256_HEX_SIZE];
    answer_code_make(key, reply->status, reply->data, reply->size, code);
    if (strcmp(code, reply->code) == 0 || (!*reply->code && reply->status >= 400))
        return 0;
    return fault_set(fault, EPROTO,
        "%s: the answer is not signed by colloc-slurm, or was altered on its way", client->place);
}

static int transfer_request(struct client *client, const char *method, const char *path,
    const char *body, struct fault *fault, struct reply *reply)
{
    char detail[CURL_ERROR_SIZE] = "";
    uint8_t key[SHA256_SIZE];
    CURL *curl = client->curl;
    curl_easy_reset(curl); /* keeps the connection */
    struct curl_slist *headers = curl_slist_append(NULL, "Expect:");
    headers = curl_slist_append(headers, "Content-Type: application/json");
    int r = set_place(client, path, fault);
    if (r == 0 && client->is_remote)
        r = add_credential(client, method, path, body ? body : "", fault, &headers, key);
    if (r < 0) {
        curl_slist_free_all(headers);
        return r;
    }
    set_receiver(curl, path, reply, detail);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    if (strcmp(method, "GET") != 0) {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)(body ? strlen(body) : 0));
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body ? body : "");
        curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method);
    }
    CURLcode code = curl_easy_perform(curl);
    curl_slist_free_all(headers);
    if (code != CURLE_OK)
        return report_unreachable(client, path, code, detail, fault);
    long status = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    reply->status = (int)status;
    client->was_answered = true;
    return client->is_remote ? check_answer(client, reply, key, fault) : 0;
}

static int parse_reply(
    const struct client *client, const struct reply *reply, struct fault *fault, json_t **ret)
{
    json_error_t error;
    json_t *json = json_loadb(reply->data ? reply->data : "", reply->size, 0, &error);
    if (!json)
        return fault_set(fault, EPROTO, "%s: the answer is not collocd's (HTTP status %d): %s",
            client->place, reply->status, error.text);
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
