/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job that Slurm would hold for a licence must not be pinned: it would keep its GPUs from others
 * and run nothing. Slurm counts the licences of jobs that run. Here those of jobs that are pinned
 * and have not started are taken off, then those of each job that waits, in the order of the queue.
 *
 * An example. Of three licences of matlab one is in use. Job 7 is pinned and has not started: one
 * is left. Job 8 wants two and waits for them; job 9, behind it, wants one and gets it.
 */
#include "slurm/licence_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/units.h"

/* One name of a request, and how many. */
struct licence_item {
    struct span name;
    int64_t count;
};

/* Removes the next item from the front: "matlab:2", "ansys". */
static bool next_item(struct span *text, struct licence_item *ret_item)
{
    size_t size = 0;
    while (size < text->size && !strchr(",;|", text->at[size]))
        size++;
    struct span item = {text->at, size};
    text->at += size + (size < text->size);
    text->size -= size + (size < text->size);
    *ret_item = (struct licence_item){item, 1};
    for (size_t i = size; i-- > 0;) {
        char digits[16];
        if (!strchr(":=*", item.at[i]))
            continue;
        if (span_copy((struct span){item.at + i + 1, size - i - 1}, digits, sizeof digits) &&
            parse_int64(digits, 0, INT32_MAX, &ret_item->count) == 0)
            ret_item->name.size = i;
        break;
    }
    return size > 0;
}

/* Returns the index of the licence; -1: Slurm does not list it. */
static ssize_t find_licence(const struct licence_table *table, struct span name)
{
    for (size_t i = 0; i < table->n; i++)
        if (table->list[i].name && span_is(name, table->list[i].name))
            return (ssize_t)i;
    return -1;
}

/* Sets the shortage unless the answer is LICENCES_TAKEN. */
static enum licence_answer check_item(const struct licence_table *table,
    const struct licence_item *item, struct licence_shortage *ret_shortage)
{
    ssize_t i = find_licence(table, item->name);
    if (i < 0 || table->left[i] >= item->count)
        return LICENCES_TAKEN;
    *ret_shortage = (struct licence_shortage){item->name, item->count, table->list[i].total};
    return table->list[i].total < item->count ? LICENCES_NEVER : LICENCES_NOT_NOW;
}

static void charge_item(struct licence_table *table, const struct licence_item *item)
{
    ssize_t i = find_licence(table, item->name);
    if (i >= 0)
        table->left[i] -= item->count;
}

bool licences_are_wanted(const struct slurm_job *jobs, size_t n_jobs)
{
    for (size_t i = 0; i < n_jobs; i++)
        if (jobs[i].licences && *jobs[i].licences && !slurm_state_is_end(jobs[i].state))
            return true;
    return false;
}

int licence_table_begin(
    struct licence_table *table, const struct slurm_licence *list, size_t n_licences)
{
    if (ARRAY_RESERVE(table->left, table->capacity, n_licences + 1) < 0)
        return -ENOMEM;
    table->list = list;
    table->n = n_licences;
    for (size_t i = 0; i < n_licences; i++)
        table->left[i] = list[i].free;
    return 0;
}

/* One of several: the first existing one. Without any name nothing is missing. */
static enum licence_answer take_any(
    struct licence_table *table, struct span request, struct licence_shortage *ret_shortage)
{
    enum licence_answer least = LICENCES_NEVER;
    struct licence_shortage shortage, of_least = {0};
    struct licence_item item;
    while (next_item(&request, &item)) {
        enum licence_answer answer = check_item(table, &item, &shortage);
        if (answer == LICENCES_TAKEN) {
            charge_item(table, &item);
            return LICENCES_TAKEN;
        }
        of_least = answer <= least ? shortage : of_least;
        least = answer < least ? answer : least;
    }
    if (!of_least.name.at)
        return LICENCES_TAKEN;
    *ret_shortage = of_least;
    return least;
}

enum licence_answer licence_table_take(
    struct licence_table *table, const char *request, struct licence_shortage *ret_shortage)
{
    struct span rest = span_of_optional(request);
    struct licence_shortage shortage;
    struct licence_item item;
    enum licence_answer worst = LICENCES_TAKEN;
    if (memchr(rest.at, '|', rest.size))
        return take_any(table, rest, ret_shortage);
    while (next_item(&rest, &item)) {
        enum licence_answer answer = check_item(table, &item, &shortage);
        if (answer <= worst)
            continue;
        worst = answer;
        *ret_shortage = shortage;
    }
    if (worst == LICENCES_TAKEN)
        licence_table_charge(table, request);
    return worst;
}

void licence_table_charge(struct licence_table *table, const char *request)
{
    struct span rest = span_of_optional(request);
    struct licence_shortage shortage;
    struct licence_item item;
    if (memchr(rest.at, '|', rest.size)) {
        take_any(table, rest, &shortage);
        return;
    }
    while (next_item(&rest, &item))
        charge_item(table, &item);
}

void licence_table_fini(struct licence_table *table)
{
    free(table->left);
    *table = (struct licence_table){0};
}
