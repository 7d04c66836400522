/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list that the daemon answers with, as a table or as JSON: GPUs, MPS control daemons,
 * reservations. A command names the request, the columns and the row of one element:
 *
 *     static const struct reply_list list = {.path = "/v1/mps", .member = "daemons",
 *         REPLY_LIST_COLUMNS(columns), .add_row = add_daemon, .none = "No MPS control daemons."};
 */
#ifndef COLLOC_CLI_REPLY_LIST_H
#define COLLOC_CLI_REPLY_LIST_H

#include <jansson.h>

#include "base/array.h"
#include "cli/command.h"
#include "cli/table.h"

struct reply_list {
    const char *path;   /* of the request */
    const char *member; /* of the answer: the array of elements */
    const struct table_column *columns;
    size_t n_columns;
    void (*add_row)(struct table *table, const json_t *element);
    const char *none; /* the text where there are no elements */
};

#define REPLY_LIST_COLUMNS(list) .columns = (list), .n_columns = ARRAY_SIZE(list)

/* Prints the elements of an answer as a table. */
void reply_list_print(const struct reply_list *list, const json_t *reply);

/*
 * Sends the request and prints the answer, with --json as it came.
 *
 * Returns EXIT_OK, EXIT_REFUSED or EXIT_UNREACHABLE; then it has printed what went wrong.
 */
int reply_list_show(const struct invocation *invocation, const struct reply_list *list);

#endif
