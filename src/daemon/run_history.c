/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A list of the last runs of networks that are known by their fingerprint (estimator/past_run.h).
 * What a record says about the memory requirement:
 *
 *     COMPLETED, peak 11.2 GiB        the run took 11.2 GiB
 *     OUT_OF_MEMORY, peak 38 GiB      it takes more than 38 GiB
 *     any other end                   nothing: it may have ended before its peak
 *     peak perhaps preallocated       nothing (preallocation.h)
 */
#include "daemon/run_history.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json_member.h"
#include "base/units.h"

json_t *run_history_subject(
    const struct estimate_request *request, uint64_t fingerprint, int64_t batch)
{
    char text[17];
    snprintf(text, sizeof text, "%016" PRIx64, fingerprint);
    return json_pack("{s:s, s:I, s:I, s:s, s:s}", "fingerprint", text, "batch", (json_int_t)batch,
        "seq", (json_int_t)request->sequence_length, "optimizer",
        optimizer_name(request->optimizer), "precision", precision_name(request->precision));
}

/* Returns false when the record says nothing of the memory requirement. */
static bool read_outcome(const json_t *record, struct past_run *run)
{
    const char *state = json_string_value(json_object_get(record, "state"));
    const json_t *peak = json_object_get(record, "mem_peak_mib");
    json_int_t gpus = json_integer_value(json_object_get(record, "gpus_requested"));
    bool preallocated = json_is_true(json_object_get(record, "preallocated"));
    if (!state || !json_is_number(peak) || gpus < 1 || preallocated)
        return false;
    run->gpus = gpus <= INT_MAX ? (int)gpus : 0;
    run->lower_bound = strcmp(state, "OUT_OF_MEMORY") == 0;
    run->peak_bytes = (int64_t)(json_number_value(peak) * (double)MIB / (double)gpus);
    return run->peak_bytes > 0 && (run->lower_bound || strcmp(state, "COMPLETED") == 0);
}

static bool read_run(const json_t *record, struct past_run *run)
{
    const json_t *subject = json_object_get(record, "subject");
    const char *fingerprint = json_string_value(json_object_get(subject, "fingerprint"));
    const json_t *uid = json_object_get(record, "uid");
    *run = (struct past_run){.uid = PAST_RUN_NO_UID,
        .batch = json_integer_value(json_object_get(subject, "batch")),
        .sequence_length = json_integer_value(json_object_get(subject, "seq"))};
    if (!fingerprint || run->batch < 1)
        return false;
    if (json_is_integer(uid))
        run->uid = (uint32_t)json_integer_value(uid);
    run->fingerprint = strtoull(fingerprint, NULL, 16);
    run->optimizer = optimizer_parse(json_string_value(json_object_get(subject, "optimizer")));
    if (precision_parse("precision", json_string_value(json_object_get(subject, "precision")), NULL,
            &run->precision) < 0)
        return false;
    snprintf(run->gpu_kind, sizeof run->gpu_kind, "%s", member_text(record, "gpu_kind", ""));
    return read_outcome(record, run);
}

/* Takes the oldest run of the user that has the most out of the list. */
static void drop_run(struct run_history *history)
{
    uint32_t uid = user_counts_most(&history->users);
    size_t i = 0;
    while (history->runs[i].uid != uid)
        i++;
    history->n--;
    memmove(&history->runs[i], &history->runs[i + 1], (history->n - i) * sizeof *history->runs);
    user_counts_add(&history->users, uid, -1);
}

static void add_run(struct run_history *history, const struct past_run *run)
{
    if (user_counts_add(&history->users, run->uid, 0) < 0) /* it is known from now on */
        return;
    if (history->n == RUN_HISTORY_MAX)
        drop_run(history);
    if (ARRAY_APPEND(history->runs, history->n, history->capacity, *run) == 0)
        user_counts_add(&history->users, run->uid, 1);
}

void run_history_take(struct run_history *history, const json_t *record)
{
    struct past_run run;
    if (read_run(record, &run))
        add_run(history, &run);
    command_history_take(&history->commands, record);
}

static int on_ended(void *context, uint64_t task, const json_t *record)
{
    if (record)
        run_history_take(context, record);
    return 0;
}

/* The log lists the newest first; here the oldest comes first. */
static void reverse_runs(struct run_history *history)
{
    command_history_reverse(&history->commands);
    for (size_t i = 0; i < history->n / 2; i++) {
        struct past_run early = history->runs[i];
        history->runs[i] = history->runs[history->n - 1 - i];
        history->runs[history->n - 1 - i] = early;
    }
}

static int on_user(void *context, uint32_t uid, int64_t tasks)
{
    return user_counts_add(context, uid, tasks);
}

int run_history_load(struct run_history *history, struct store *store, struct fault *fault)
{
    struct user_counts ended = {0};
    int r = store_list_ended_users(store, on_user, &ended, fault);
    struct store_ended_filter filter = {
        .of_uid = true, .limit = user_counts_share(&ended, RUN_HISTORY_MAX)};
    for (size_t i = 0; r == 0 && i < ended.n; i++) {
        filter.uid = ended.users[i].uid;
        r = store_list_ended(store, &filter, on_ended, history, fault);
    }
    if (r == -ENOMEM)
        fault_set(fault, ENOMEM, "no memory for what ended tasks took");
    user_counts_fini(&ended);
    reverse_runs(history);
    return r;
}

void run_history_fini(struct run_history *history)
{
    command_history_fini(&history->commands);
    user_counts_fini(&history->users);
    free(history->runs);
    *history = (struct run_history){0};
}
