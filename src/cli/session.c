#include "cli/session.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "cli/output.h"

int session_open(const struct invocation *invocation, struct client **ret_client)
{
    struct fault fault = {0};
    if (client_open(invocation->common[COMMON_SOCKET].text, &fault, ret_client) == 0)
        return EXIT_OK;
    complain("%s", fault.text);
    return EXIT_UNREACHABLE;
}

int session_call(struct client *client, const char *method, const char *path, const json_t *body, json_t **ret_reply)
{
    struct fault fault = {0};
    int status;
    if (client_request(client, method, path, body, &fault, &status, ret_reply) < 0) {
        complain("%s", fault.text);
        return EXIT_UNREACHABLE;
    }
    if (status / 100 == 2)
        return EXIT_OK;
    client_error(status, *ret_reply, &fault);
    complain("%s", fault.text);
    json_decref(*ret_reply);
    *ret_reply = NULL;
    return EXIT_REFUSED;
}

int session_get(const struct invocation *invocation, const char *path, json_t **ret_reply)
{
    struct client *client;
    int code = session_open(invocation, &client);
    if (code != EXIT_OK)
        return code;
    code = session_call(client, "GET", path, NULL, ret_reply);
    client_close(client);
    return code;
}

int parse_task_id(const char *text, int64_t *ret_id)
{
    if (parse_int64(text, 1, INT64_MAX, ret_id) == 0)
        return EXIT_OK;
    complain("%.80s: not a task id; `colloc queue` shows them", text);
    return EXIT_USAGE;
}

void query_add(char *path, size_t size, const char *name, const char *value)
{
    size_t used = strlen(path);
    used += (size_t)snprintf(path + used, size - used, "%c%s=", strchr(path, '?') ? '&' : '?', name);
    for (; *value && used + 4 < size; value++)
        used += (size_t)snprintf(path + used, size - used, isalnum((unsigned char)*value) ? "%c" : "%%%02X",
                                 (unsigned)(unsigned char)*value);
}
