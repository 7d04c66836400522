/* SPDX-License-Identifier: Apache-2.0 */
/* A list comes whole, however many pages the daemon divides it into (task_pages.c). */
#include "cli/session_once.h"

#include "cli/session.h"
#include "cli/task_pages.h"

int session_get(const struct invocation *invocation, const char *path, json_t **ret_reply)
{
    CLEANUP(cleanup_client_close) struct client *client = NULL;
    json_auto_t *reply = NULL;
    *ret_reply = NULL;
    int code = session_open(invocation, &client);
    if (code == EXIT_OK)
        code = session_call(client, "GET", path, NULL, &reply);
    if (code == EXIT_OK)
        code = task_pages_follow(client, path, reply);
    if (code == EXIT_OK)
        *ret_reply = TAKE(reply);
    return code;
}

int session_post(
    const struct invocation *invocation, const char *path, json_t *body, json_t **ret_reply)
{
    CLEANUP(cleanup_client_close) struct client *client = NULL;
    int code = session_open(invocation, &client);
    *ret_reply = NULL;
    if (code == EXIT_OK)
        code = session_call(client, "POST", path, body, ret_reply);
    json_decref(body);
    return code;
}
