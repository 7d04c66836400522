/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash table of commands by user and key: it is asked for each record of an ended task, of which
 * there are 10,000 at the start. Once it is full, the whole table is searched for the oldest one of
 * the user with the most. What the records of a command say does not depend on their order, since
 * the log lists them from the newest:
 *
 *     COMPLETED, peak 11.2 GiB       it takes at least 11.2 GiB
 *     COMPLETED, peak 11.6 GiB       11.6 GiB are reserved for the next run
 *     OUT_OF_MEMORY, peak 14 GiB     a run may take more than 14 GiB: unknown again
 *     COMPLETED, peak 15 GiB         15 GiB
 *     any other end                  nothing: it may have ended before its peak
 *     running, second step made      it takes at least what it holds: enough until a run completes
 *     running, steps throughout      its SM activity: enough until a run completes
 *     peak perhaps preallocated      nothing (preallocation.h)
 */
#include "daemon/command_history.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/units.h"

enum { SMACT_UNKNOWN = -1 };

/* ---- keys ---- */

/* With its NUL, so that texts that follow each other cannot be divided in another way. */
static uint64_t add_text(uint64_t hash, const char *text)
{
    return hash_bytes(hash, text, strlen(text) + 1);
}

uint64_t command_history_key(
    const char *script, const json_t *arguments, const char *cwd, int gpus, const char *gpu_kind)
{
    const json_t *argument;
    size_t i;
    uint64_t hash = add_text(add_text(HASH_START, script), cwd);
    json_array_foreach(arguments, i, argument)
        hash = add_text(hash, json_string_value(argument));
    hash = hash_bytes(hash, &gpus, sizeof gpus);
    return gpu_kind ? add_text(hash, gpu_kind) : hash;
}

void command_history_keep_key(json_t *subject, uint64_t key)
{
    char text[17];
    snprintf(text, sizeof text, "%016" PRIx64, key);
    json_object_set_new(subject, "command", json_string(text));
}

bool command_history_read_key(const json_t *subject, uint64_t *ret_key)
{
    const char *text = json_string_value(json_object_get(subject, "command"));
    if (text)
        *ret_key = strtoull(text, NULL, 16);
    return text;
}

bool command_history_is_of(const char *subject, uint64_t key)
{
    char member[32];
    snprintf(member, sizeof member, "\"command\":\"%016" PRIx64 "\"", key);
    return subject && strstr(subject, member);
}

/* ---- records ---- */

/* Returns false when the record says nothing of what its command takes. */
static bool read_record(const json_t *record, struct command_runs *ret)
{
    const char *state = json_string_value(json_object_get(record, "state"));
    const json_t *peak = json_object_get(record, "mem_peak_mib"),
                 *uid = json_object_get(record, "uid"),
                 *smact = json_object_get(record, "smact_mean");
    json_int_t gpus = json_integer_value(json_object_get(record, "gpus_requested"));
    *ret = (struct command_runs){.uid = (uid_t)json_integer_value(uid),
        .smact = SMACT_UNKNOWN,
        .early_smact = SMACT_UNKNOWN};
    if (!command_history_read_key(json_object_get(record, "subject"), &ret->key) || !state ||
        !json_is_integer(uid) || !json_is_number(peak) || gpus < 1 ||
        json_is_true(json_object_get(record, "preallocated")))
        return false;
    int64_t bytes = (int64_t)(json_number_value(peak) * (double)MIB / (double)gpus);
    if (strcmp(state, "COMPLETED") == 0 || strcmp(state, "STOPPED") == 0)
        ret->peak_bytes = bytes;
    else if (strcmp(state, "OUT_OF_MEMORY") == 0)
        ret->crashed_bytes = bytes;
    if (ret->peak_bytes > 0 && json_is_number(smact))
        ret->smact = json_number_value(smact);
    if (ret->peak_bytes > 0)
        ret->alone_per_s = json_number_value(json_object_get(record, "steps_per_s_alone"));
    return bytes > 0 && (ret->peak_bytes > 0 || ret->crashed_bytes > 0);
}

/* ---- the table ---- */

/* The key is a hash already. */
static uint16_t *bucket_of(const struct command_history *history, uid_t uid, uint64_t key)
{
    return &history->buckets[(key ^ uid) % COMMAND_HISTORY_BUCKETS];
}

static struct command_runs *find_command(
    const struct command_history *history, uid_t uid, uint64_t key)
{
    unsigned at = history->buckets ? *bucket_of(history, uid, key) : 0;
    for (; at; at = history->commands[at - 1].next)
        if (history->commands[at - 1].key == key && history->commands[at - 1].uid == uid)
            return &history->commands[at - 1];
    return NULL;
}

/* Takes the command out of its bucket. */
static void unlink_command(struct command_history *history, const struct command_runs *runs)
{
    uint16_t *link = bucket_of(history, runs->uid, runs->key);
    while (*link != 1 + (runs - history->commands))
        link = &history->commands[*link - 1].next;
    *link = runs->next;
}

/* The table is full. Takes the oldest command of the user that has the most out of it. */
static struct command_runs *drop_command(struct command_history *history)
{
    uid_t uid = user_counts_most(&history->users);
    struct command_runs *oldest = NULL;
    for (size_t i = 0; i < history->n; i++)
        if (history->commands[i].uid == uid &&
            (!oldest || history->commands[i].order < oldest->order))
            oldest = &history->commands[i];
    unlink_command(history, oldest);
    user_counts_add(&history->users, uid, -1);
    return oldest;
}

/* Returns the place of one more command, perhaps an old one's; NULL when memory is out. */
static struct command_runs *place_command(struct command_history *history)
{
    if (!history->buckets)
        history->buckets = calloc(COMMAND_HISTORY_BUCKETS, sizeof *history->buckets);
    if (!history->buckets)
        return NULL;
    if (history->n == COMMAND_HISTORY_MAX)
        return drop_command(history);
    return ARRAY_RESERVE(history->commands, history->capacity, history->n + 1) < 0
               ? NULL
               : &history->commands[history->n++];
}

static void add_command(struct command_history *history, const struct command_runs *run)
{
    if (user_counts_add(&history->users, run->uid, 0) < 0) /* it is known from now on */
        return;
    struct command_runs *runs = place_command(history);
    if (!runs)
        return;
    user_counts_add(&history->users, run->uid, 1);
    uint16_t *bucket = bucket_of(history, run->uid, run->key);
    *runs = *run;
    runs->order = history->next_order++;
    runs->next = *bucket;
    *bucket = (uint16_t)(1 + (runs - history->commands));
}

/* ---- runs ---- */

int64_t command_runs_bytes(const struct command_runs *runs)
{
    return runs->peak_bytes > runs->early_bytes ? runs->peak_bytes : runs->early_bytes;
}

struct reading command_runs_smact(const struct command_runs *runs)
{
    double smact = runs->smact >= 0 ? runs->smact : runs->early_smact;
    return smact >= 0 ? reading_of(smact) : READING_NONE;
}

static bool is_known(const struct command_runs *runs)
{
    return command_runs_bytes(runs) > runs->crashed_bytes;
}

static void add_run(struct command_runs *runs, const struct command_runs *run)
{
    if (runs->peak_bytes < run->peak_bytes)
        runs->peak_bytes = run->peak_bytes;
    if (runs->crashed_bytes < run->crashed_bytes)
        runs->crashed_bytes = run->crashed_bytes;
    if (runs->smact < run->smact)
        runs->smact = run->smact;
    bool is_slower = run->alone_per_s < runs->alone_per_s;
    if (run->alone_per_s > 0 && (is_slower || runs->alone_per_s <= 0))
        runs->alone_per_s = run->alone_per_s; /* the lowest: then no promise is missed by it */
}

bool command_history_take_early(
    struct command_history *history, uid_t uid, uint64_t key, int64_t bytes)
{
    const struct command_runs run = {.key = key,
        .uid = uid,
        .early_bytes = bytes,
        .smact = SMACT_UNKNOWN,
        .early_smact = SMACT_UNKNOWN};
    struct command_runs *runs = find_command(history, uid, key);
    if (!runs) {
        add_command(history, &run);
        return true;
    }
    int64_t before = command_runs_bytes(runs);
    bool is_news = bytes > before + before / 100 * EARLY_NEWS_PERCENT;
    if (is_news)
        runs->early_bytes = bytes;
    return is_news;
}

bool command_history_take_activity(
    struct command_history *history, uid_t uid, uint64_t key, double smact)
{
    struct command_runs *runs = find_command(history, uid, key);
    if (!runs || !is_known(runs) || command_runs_smact(runs).valid)
        return false;
    runs->early_smact = smact;
    return true;
}

void command_history_take(struct command_history *history, const json_t *record)
{
    struct command_runs run;
    if (!read_record(record, &run))
        return;
    struct command_runs *runs = find_command(history, run.uid, run.key);
    if (runs)
        add_run(runs, &run);
    else
        add_command(history, &run);
}

void command_history_reverse(struct command_history *history)
{
    for (size_t i = 0; i < history->n; i++)
        history->commands[i].order = history->next_order - 1 - history->commands[i].order;
}

const struct command_runs *command_history_find(
    const struct command_history *history, uid_t uid, uint64_t key)
{
    const struct command_runs *runs = find_command(history, uid, key);
    return runs && is_known(runs) ? runs : NULL;
}

void command_history_fini(struct command_history *history)
{
    free(history->commands);
    free(history->buckets);
    user_counts_fini(&history->users);
    *history = (struct command_history){0};
}
