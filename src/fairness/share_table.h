/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Projects, their users and the shares of both, and the file in which an administrator writes them:
 *
 *     # shares
 *     project vision 3
 *     project speech 1
 *     user ada vision 2
 *     user bob vision max-slowdown=1.5
 *
 * Shares are whole numbers, relative to those of the other projects, or of the other users of the
 * project; 1 where none are given. A user that the file does not name is in the project "default"
 * with 1 share. Without a file every user has 1 share, so all are equal.
 *
 * A promise of speed (docs/promise.md) is the default of the tasks of a user, or of a project's
 * users without one.
 */
#ifndef COLLOC_FAIRNESS_SHARE_TABLE_H
#define COLLOC_FAIRNESS_SHARE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"
#include "base/reading.h"

enum {
    PROJECTS_MAX = 64,         /* chosen */
    SHARE_USERS_MAX = 1024,    /* named in the file; chosen */
    PROJECT_NAME_BYTES = 32,   /* with the NUL; chosen */
    USER_SHARES_MAX = 1000000, /* chosen */
    SHARE_PROMISE_MAX = 100,   /* as of the option max-slowdown */
};

/* The default of a promise of speed. */
struct share_promise {
    double slowdown_max; /* times as long as alone; 0: none */
    bool is_set;         /* by the line; otherwise a project's holds */
};

struct share_table {
    int n_projects; /* the first is "default" */
    struct share_project {
        char name[PROJECT_NAME_BYTES];
        int shares;
        struct share_promise promise;
    } projects[PROJECTS_MAX];
    int n_users;
    struct user_shares {
        uint32_t uid;
        int project; /* index into `projects` */
        int shares;
        struct share_promise promise;
    } users[SHARE_USERS_MAX]; /* by rising uid */
};

/* Sets the table in which all users are equal. */
void share_table_init(struct share_table *table);

/* Finds a user by name or number. Returns 0, or -errno: there is none (-ENOENT), or it is not
 * known whether there is. */
typedef int share_find_user(void *context, const char *name, uint32_t *ret_uid);

/*
 * Reads a file's text.
 *
 * text, size:         any bytes
 * path:               for messages
 * find_user, context: called for each user's line
 * ret_table:          set in each case; incomplete after a fault
 *
 * Returns 0, or a fault with file and line: -EINVAL for a line that is wrong, -ENOENT for an
 * unknown user, or another error of find_user.
 */
int share_table_parse(const char *text, size_t size, const char *path, share_find_user *find_user,
    void *context, struct fault *fault, struct share_table *ret_table);

/* Returns the project and the shares of the user. */
struct user_shares share_table_find(const struct share_table *table, uint32_t uid);

/* Returns the default promise of the user's tasks: the user's, or else the project's; not valid:
 * there is none. */
struct reading share_table_promise(const struct share_table *table, uint32_t uid);

/* Do the tables give all users the same shares and promises? */
bool share_table_equal(const struct share_table *a, const struct share_table *b);

#endif
