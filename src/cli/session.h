/* SPDX-License-Identifier: Apache-2.0 */
/* One run's talk with the daemon. Each function has told the user what went wrong when it returns
 * another code than EXIT_OK. */
#ifndef COLLOC_CLI_SESSION_H
#define COLLOC_CLI_SESSION_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "api/client.h"
#include "cli/command.h"

enum { HTTP_UNAVAILABLE = 503 };

/* EXIT_OK or EXIT_UNREACHABLE. The caller closes the client. */
int session_open(const struct invocation *invocation, struct client **ret_client);

/* One request that must succeed. EXIT_OK with the reply (caller releases), EXIT_REFUSED or
 * EXIT_UNREACHABLE. */
int session_call(struct client *client, const char *method, const char *path, const json_t *body,
    json_t **ret_reply);

/*
 * The same for requests that are made over hours: a daemon that answered before and is away or
 * starting now is given a minute to come back.
 */
int session_call_patiently(
    struct client *client, const char *method, const char *path, json_t **ret_reply);

/*
 * After a request that found the daemon away: true, after a pause, when it should be asked again,
 * since it answered before and its minute is not over. *give_up_us is 0 before the first time,
 * which is said to the user.
 */
bool session_may_come_back(const struct client *client, int64_t *give_up_us);

/* session_open, one GET (of all pages of a list of tasks) and close. */
int session_get(const struct invocation *invocation, const char *path, json_t **ret_reply);

/* A task id as people write it. EXIT_OK or EXIT_USAGE. */
int parse_task_id(const char *text, int64_t *ret_id);

/* Appends "&name=value" (or "?" for the first) with the value encoded for a URL. */
void query_add(char *path, size_t size, const char *name, const char *value);

#endif
