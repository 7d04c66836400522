/* SPDX-License-Identifier: Apache-2.0 */
/* The file of the setting `shares`: projects, users and their shares (fairness/share_table.h). */
#ifndef COLLOC_DAEMON_SHARE_FILE_H
#define COLLOC_DAEMON_SHARE_FILE_H

#include "fairness/share_table.h"
#include "service/user_names.h"

/*
 * Reads the file at the start: waits for the user database.
 *
 * path: "" for none: all users are equal
 *
 * Returns 0, or a fault with file and line.
 */
int share_file_read(const char *path, struct fault *fault, struct share_table *ret_table);

/* Called once. `table`: the new shares, valid during the call; NULL: `fault` has the mistake. */
typedef void share_file_on_read(
    void *context, const struct share_table *table, const struct fault *fault);

/* Reads the file while the loop runs: its users are looked up by `names`, in the background. May
 * call `on_read` at once. */
void share_file_read_again(
    const char *path, struct names *names, share_file_on_read *on_read, void *context);

#endif
