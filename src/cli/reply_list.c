/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a list that the daemon answers with: one table row for each element. */
#include "cli/reply_list.h"

#include <stdio.h>
#include <string.h>

#include "base/json_member.h"
#include "cli/print.h"
#include "cli/session_once.h"

void reply_list_print(const struct reply_list *list, const json_t *reply)
{
    struct table *table = table_create(list->columns, list->n_columns);
    size_t i;
    json_t *element;
    json_array_foreach(json_object_get(reply, list->member), i, element) {
        list->add_row(table, element);
    }
    const char *why_none = member_text(reply, "why_none", NULL);
    char none[640];
    snprintf(none, sizeof none, "%.*s: %s.", (int)strcspn(list->none, "."), list->none,
        why_none ? why_none : "");
    table_print(table, why_none ? none : list->none);
    table_destroy(table);
}

int reply_list_show(const struct invocation *invocation, const struct reply_list *list)
{
    json_t *reply;
    int code = session_get(invocation, list->path, &reply);
    if (code != EXIT_OK)
        return code;
    if (invocation->common[COMMON_JSON].number)
        print_json(reply);
    else
        reply_list_print(list, reply);
    json_decref(reply);
    return EXIT_OK;
}
