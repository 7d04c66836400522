/* SPDX-License-Identifier: Apache-2.0 */
/* Who may do what to a task. Operators are compared by name, which the user database has. */
#include "daemon/http/permission.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "daemon/http/http_answers.h"

/* NULL: the user is no operator, or the user database has not answered. */
static const char *operator_name(const struct http *http, uid_t uid)
{
    if (!*http->parts.config->operators)
        return NULL;
    const struct name *name = names_of_uid(http->parts.names, uid);
    bool is_one = name->state == NAME_KNOWN && config_is_operator(http->parts.config, name->name);
    return is_one ? name->name : NULL;
}

bool may_touch(const struct api_request *request, uint32_t owner)
{
    uid_t uid = api_request_peer(request).uid;
    return uid == 0 || uid == owner;
}

bool may_change(const struct http *http, uid_t uid, uint32_t owner)
{
    return uid == 0 || uid == owner || (owner != 0 && operator_name(http, uid));
}

bool may_administrate(const struct http *http, uid_t uid)
{
    return uid == 0 || uid == geteuid() || operator_name(http, uid);
}

json_t *author_detail(const struct http *http, uid_t uid)
{
    const char *name = uid == 0 ? NULL : operator_name(http, uid);
    return json_pack("{s:I, s:s*}", "by_uid", (json_int_t)uid, "by", name);
}

void set_not_yours(struct fault *fault, const char *what, uint64_t id)
{
    fault_set(fault, EPERM, "%s %llu is not yours", what, (unsigned long long)id);
}

/* ---- after the user database ---- */

struct named_request {
    struct api_request *request;
    void (*route)(void *context, struct api_request *request);
};

static void on_named(void *context, const struct name *name)
{
    const struct named_request named = *(struct named_request *)context;
    struct http *http = api_request_context(named.request);
    free(context);
    named.route(http, named.request);
    http_serve_soon(http);
}

void with_name(struct http *http, struct api_request *request,
    void (*route)(void *context, struct api_request *request))
{
    uid_t uid = api_request_peer(request).uid;
    if (uid == 0 || !*http->parts.config->operators ||
        names_of_uid(http->parts.names, uid)->state != NAME_ASKED) {
        route(http, request);
        return;
    }
    struct named_request *named = malloc(sizeof *named);
    if (!named) {
        api_reply(request, 500, NULL);
        return;
    }
    *named = (struct named_request){request, route};
    names_ask_uid(http->parts.names, uid, on_named, named);
}
