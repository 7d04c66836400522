/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes and checks the text that munge signs for a request to the controller. The body is in it by
 * its digest, so that a credential stays small. "for" keeps a credential that root made for another
 * purpose from being taken for a request.
 */
#include "nodelink/signed_request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "base/units.h"
#include "nodelink/json_field.h"

enum { REQUEST_VERSION = 1, TEXT_MAX = 2 * SIGNED_PATH_SIZE + 1024, PURPOSE_SIZE = 32 };

static const char purpose[] = "colloc-slurm";

int signed_request_make(const char *controller, const char *method, const char *path,
    const char *body, size_t size, struct fault *fault, struct signed_request *ret_request)
{
    if (strlen(controller) >= SIGNED_PLACE_SIZE)
        return fault_set(fault, ENAMETOOLONG, "controller's name of %zu bytes", strlen(controller));
    if (strlen(method) >= SIGNED_METHOD_SIZE || strlen(path) >= SIGNED_PATH_SIZE)
        return fault_set(fault, ENAMETOOLONG, "request path of %zu bytes", strlen(path));
    *ret_request = (struct signed_request){0};
    if (getrandom(ret_request->key, SHA256_SIZE, GRND_NONBLOCK) != SHA256_SIZE)
        return fault_set(fault, EAGAIN, "the kernel has no random numbers yet");
    strcpy(ret_request->controller, controller);
    strcpy(ret_request->method, method);
    strcpy(ret_request->path, path);
    sha256_hex(body, size, ret_request->body_digest);
    return 0;
}

int signed_request_encode(const struct signed_request *request, char **ret_text)
{
    char key[SHA256_HEX_SIZE];
    sha256_format(request->key, key);
    json_t *object = json_pack("{s:i, s:s, s:s, s:s, s:s, s:s, s:s}", "v", REQUEST_VERSION, "for",
        purpose, "to", request->controller, "method", request->method, "path", request->path,
        "body", request->body_digest, "key", key);
    *ret_text = object ? json_dumps(object, JSON_COMPACT) : NULL;
    json_decref(object);
    return *ret_text ? 0 : -ENOMEM;
}

static int read_members(const json_t *object, struct fault *fault, void *ret_value)
{
    struct signed_request *request = ret_value;
    char key[SHA256_HEX_SIZE], meant_for[PURPOSE_SIZE];
    int r = json_field_text(object, "for", fault, meant_for, sizeof meant_for);
    if (r == 0 && strcmp(meant_for, purpose) != 0)
        r = fault_set(fault, EINVAL, "not made for colloc-slurm");
    if (r == 0)
        r = json_field_text(object, "to", fault, request->controller, sizeof request->controller);
    if (r == 0)
        r = json_field_text(object, "method", fault, request->method, sizeof request->method);
    if (r == 0)
        r = json_field_text(object, "path", fault, request->path, sizeof request->path);
    if (r == 0)
        r = json_field_text(
            object, "body", fault, request->body_digest, sizeof request->body_digest);
    if (r == 0)
        r = json_field_text(object, "key", fault, key, sizeof key);
    if (r == 0 && !sha256_parse(key, request->key))
        r = fault_set(fault, EINVAL, "key: not %d hexadecimal digits", 2 * SHA256_SIZE);
    return r;
}

int signed_request_decode(
    const char *text, size_t size, struct fault *fault, struct signed_request *ret_request)
{
    static const struct json_format format = {TEXT_MAX, REQUEST_VERSION, read_members};
    *ret_request = (struct signed_request){0};
    return json_field_decode(&format, text, size, fault, ret_request);
}

bool signed_request_is_for(const struct signed_request *request, const char *name, int port)
{
    const char *colon = strrchr(request->controller, ':');
    int64_t meant;
    if (strcmp(name, "none") != 0)
        return strcasecmp(request->controller, name) == 0;
    return colon && parse_int64(colon + 1, 1, 65535, &meant) == 0 && meant == port;
}

bool signed_request_matches(const struct signed_request *request, const char *method,
    const char *path, const char *body, size_t size)
{
    char digest[SHA256_HEX_SIZE];
    sha256_hex(body, size, digest);
    return strcmp(request->method, method) == 0 && strcmp(request->path, path) == 0 &&
           strcmp(request->body_digest, digest) == 0;
}
