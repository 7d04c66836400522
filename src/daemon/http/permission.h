/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may do what to a task:
 *
 *                        see it   see its command, log, environment   change it
 *     any user           yes      no                                  no
 *     an operator        yes      no                                  yes, unless it is root's
 *     its owner, root    yes      yes                                 yes
 *
 * The setting operators has names of users, and a request has a uid: routes that change tasks run
 * after the user database has answered for that uid (with_name).
 */
#ifndef COLLOC_DAEMON_HTTP_PERMISSION_H
#define COLLOC_DAEMON_HTTP_PERMISSION_H

#include "daemon/http/http_state.h"

/* Returns whether the request is of the owner or root, which may see a task's command and its
 * output, and speak for the task. */
bool may_touch(const struct api_request *request, uint32_t owner);

/* Returns whether the user may change the tasks of `owner`. */
bool may_change(const struct http *http, uid_t uid, uint32_t owner);

/* Returns whether the user may raise priorities and limits, and reserve GPUs: root, the user that
 * collocd runs as, and operators. */
bool may_administrate(const struct http *http, uid_t uid);

/*
 * Returns the detail of an event that a user caused, which the caller releases: "by_uid", and of an
 * operator its name as "by". NULL when memory is out.
 */
json_t *author_detail(const struct http *http, uid_t uid);

/* Says that the user may not change a task. `what`: "task" or "array". */
void set_not_yours(struct fault *fault, const char *what, uint64_t id);

/*
 * Runs a route once it is known whether the user of its request is an operator: at once where there
 * are no operators, for root, and for a user that was looked up before; otherwise when the user
 * database has answered, or has not within NAMES_LIMIT_MS.
 */
void with_name(struct http *http, struct api_request *request,
    void (*route)(void *context, struct api_request *request));

#endif
