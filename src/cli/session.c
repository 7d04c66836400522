/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A connection to the daemon with messages and exit codes: one place decides what an unreachable
 * daemon, a refusal or a restart of the daemon means for a command.
 */
#include "cli/session.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "cli/controller_link.h"
#include "cli/print.h"

enum { AWAY_MAX_S = 60 }; /* chosen: a restart of the daemon with a large log takes some seconds */

/*
 * A named address is used, the option before the variable; otherwise a daemon on this machine comes
 * before the controller of colloc.conf.
 */
static int open_client(
    const struct invocation *invocation, struct fault *fault, struct client **ret_client)
{
    const char *socket = invocation->common[COMMON_SOCKET].text;
    const char *controller = invocation->common[COMMON_CONTROLLER].text;
    struct login_conf conf;
    struct fault why;
    bool is_named = socket || (!controller && getenv("COLLOC_SOCKET"));
    bool is_remote = !is_named && (controller || getenv("COLLOC_CONTROLLER"));
    int r = is_remote ? -ECONNREFUSED : client_open(socket, fault, ret_client);
    if (r != -ECONNREFUSED || is_named)
        return r;
    int found = controller_find(controller, &why, &conf);
    if (found == 0)
        return controller_open(&conf, fault, ret_client);
    if (found == -ENOENT)
        return r; /* with what client_open has said */
    *fault = why;
    return found;
}

static const char *unreachable_line; /* NULL: none */

void session_set_unreachable_line(const char *line)
{
    unreachable_line = line;
}

static void print_unreachable(const struct fault *fault)
{
    if (unreachable_line)
        fprintf(stderr, "%s\n", unreachable_line);
    print_error("%s", fault->text);
}

int session_open(const struct invocation *invocation, struct client **ret_client)
{
    struct fault fault = {0};
    if (open_client(invocation, &fault, ret_client) == 0)
        return EXIT_OK;
    print_unreachable(&fault);
    return EXIT_UNREACHABLE;
}

int session_exit_code(int r, int status, struct fault *fault, json_t **reply)
{
    if (r == 0 && status / 100 == 2)
        return EXIT_OK;
    if (r == 0)
        client_error(status, *reply, fault);
    if (r < 0 || status == HTTP_UNAVAILABLE)
        print_unreachable(fault);
    else
        print_error("%s", fault->text);
    json_decref(*reply);
    *reply = NULL;
    return r < 0 ? EXIT_UNREACHABLE : EXIT_REFUSED;
}

int session_call(struct client *client, const char *method, const char *path, const json_t *body,
    json_t **ret_reply)
{
    struct fault fault = {0};
    int status = 0;
    *ret_reply = NULL;
    int r = client_request(client, method, path, body, &fault, &status, ret_reply);
    return session_exit_code(r, status, &fault, ret_reply);
}

int session_get_task(struct client *client, int64_t id, json_t **ret_reply)
{
    char path[64];
    snprintf(path, sizeof path, "/v1/tasks/%" PRId64, id);
    return session_call(client, "GET", path, NULL, ret_reply);
}

bool session_may_come_back(const struct client *client, int64_t *give_up_us)
{
    if (!client_was_answered(client) || (*give_up_us && clock_monotonic_us() > *give_up_us))
        return false;
    if (!*give_up_us) {
        print_error("collocd does not answer: waiting up to %d s for its restart", AWAY_MAX_S);
        *give_up_us = clock_monotonic_us() + AWAY_MAX_S * SECOND_US;
    }
    nanosleep(&(struct timespec){.tv_nsec = 200 * MS_US * 1000}, NULL);
    return true;
}

/* A request that may have arrived is sent again, so `method` must change nothing: a GET. */
int session_call_patiently(
    struct client *client, const char *method, const char *path, json_t **ret_reply)
{
    struct fault fault = {0};
    int64_t give_up_us = 0;
    int r, status;
    for (;;) {
        status = 0;
        *ret_reply = NULL;
        r = client_request(client, method, path, NULL, &fault, &status, ret_reply);
        bool is_away = r < 0 || status == HTTP_UNAVAILABLE;
        if (!is_away || !session_may_come_back(client, &give_up_us))
            return session_exit_code(r, status, &fault, ret_reply);
        json_decref(*ret_reply);
    }
}

int parse_task_id(const char *text, int64_t *ret_id)
{
    if (parse_int64(text, 1, INT64_MAX, ret_id) == 0)
        return EXIT_OK;
    print_error("%.80s: not a task id: `colloc queue` lists the ids", text);
    return EXIT_USAGE;
}

int find_user(const char *text, int64_t *ret_uid)
{
    const struct passwd *user = getpwnam(text);
    if (user)
        *ret_uid = user->pw_uid;
    return user || parse_int64(text, 0, UINT32_MAX - 1, ret_uid) == 0 ? 0 : -ENOENT;
}

void warn_of_unknown_user(const char *text)
{
    int64_t uid;
    if (find_user(text, &uid) < 0)
        print_error("warning: there is no user '%.80s' on this machine", text);
}

const char *own_user_name(char *name, size_t size)
{
    const struct passwd *user = getpwuid(geteuid());
    if (user)
        snprintf(name, size, "%s", user->pw_name);
    else
        snprintf(name, size, "%u", (unsigned)geteuid());
    return name;
}

void query_add(char *path, size_t size, const char *name, const char *value)
{
    size_t used = strlen(path);
    used += (size_t)snprintf(
        path + used, size - used, "%c%s=", strchr(path, '?') ? '&' : '?', name);
    for (; *value && used + 4 < size; value++)
        used += (size_t)snprintf(path + used, size - used,
            isalnum((unsigned char)*value) ? "%c" : "%%%02X", (unsigned)(unsigned char)*value);
}
