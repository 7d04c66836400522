/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A ring of the last runs of networks that are known by their fingerprint (estimator/past_run.h).
 * What a record says about the memory requirement:
 *
 *     COMPLETED, peak 11.2 GiB        the run took 11.2 GiB
 *     OUT_OF_MEMORY, peak 38 GiB      it takes more than 38 GiB
 *     any other end                   nothing: it may have ended before its peak
 *     peak perhaps preallocated       nothing (preallocation.h)
 */
#include "daemon/run_history.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Returns the place of one more run, perhaps the oldest one's; NULL when memory is out. */
static struct past_run *place_run(struct run_history *history)
{
    if (history->n == history->capacity && history->capacity < RUN_HISTORY_MAX) {
        size_t capacity = history->capacity ? 2 * history->capacity : 64;
        capacity = capacity < RUN_HISTORY_MAX ? capacity : RUN_HISTORY_MAX;
        struct past_run *runs = reallocarray(history->runs, capacity, sizeof *runs);
        if (!runs)
            return NULL;
        history->runs = runs;
        history->capacity = capacity;
    }
    if (history->n < history->capacity)
        return &history->runs[history->n++];
    struct past_run *oldest = &history->runs[history->next];
    history->next = (history->next + 1) % history->capacity;
    return oldest;
}

void run_history_take(struct run_history *history, const json_t *record)
{
    struct past_run run;
    struct past_run *at = read_run(record, &run) ? place_run(history) : NULL;
    if (at)
        *at = run;
    command_history_take(&history->commands, record);
}

static int on_ended(void *context, uint64_t task, const json_t *record)
{
    if (record)
        run_history_take(context, record);
    return 0;
}

/* The log lists the newest first; here the oldest is overwritten first. */
static void reverse_runs(struct run_history *history)
{
    for (size_t i = 0; i < history->n / 2; i++) {
        struct past_run early = history->runs[i];
        history->runs[i] = history->runs[history->n - 1 - i];
        history->runs[history->n - 1 - i] = early;
    }
}

int run_history_load(struct run_history *history, struct store *store, struct fault *fault)
{
    struct store_ended_filter filter = {.limit = RUN_HISTORY_MAX};
    int r = store_list_ended(store, &filter, on_ended, history, fault);
    reverse_runs(history);
    return r;
}

void run_history_fini(struct run_history *history)
{
    command_history_fini(&history->commands);
    free(history->runs);
    *history = (struct run_history){0};
}
