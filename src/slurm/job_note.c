/* SPDX-License-Identifier: Apache-2.0 */
/* Writes and parses the note that colloc-slurm leaves in a job: the word "colloc" and then
 * key=value words. Unknown keys are of a later version. */
#include "slurm/job_note.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/span_parts.h"
#include "base/text.h"
#include "base/units.h"
#include "slurm/slurm_job.h"
#include "slurmconf/gres_text.h"

static const char *const state_names[] = {
    [NOTE_WAITING] = "waiting", [NOTE_PINNED] = "pinned", [NOTE_RECOVERING] = "recovering"};

static bool read_number(struct span value, int64_t max, int64_t *ret_number)
{
    char text[24];
    return span_copy(value, text, sizeof text) && parse_int64(text, 0, max, ret_number) == 0;
}

static bool read_state(struct span value, enum note_state *ret_state)
{
    for (int i = NOTE_WAITING; i <= NOTE_RECOVERING; i++) {
        if (span_is(value, state_names[i])) {
            *ret_state = (enum note_state)i;
            return true;
        }
    }
    return false;
}

static bool read_gpus(struct span list, uint64_t *ret_gpus)
{
    *ret_gpus = 0;
    while (list.size > 0) {
        int64_t index;
        if (!read_number(span_take_until(&list, ','), GRES_INDEX_MAX - 1, &index))
            return false;
        *ret_gpus |= UINT64_C(1) << index;
    }
    return true;
}

static bool read_member(struct span key, struct span value, struct job_note *note)
{
    int64_t number = 0;
    bool is_good = true;
    if (span_is(key, "state"))
        return read_state(value, &note->state);
    if (span_is(key, "node")) {
        note->nodes = value;
        return value.size < SLURM_NODES_MAX;
    }
    if (span_is(key, "gpus"))
        return read_gpus(value, &note->gpus);
    if (span_is(key, "want") && (is_good = read_number(value, INT32_MAX, &number)))
        note->want = (int)number;
    else if (span_is(key, "total") && (is_good = read_number(value, INT32_MAX, &number)))
        note->total = (int)number;
    else if (span_is(key, "attempt") && (is_good = read_number(value, INT32_MAX, &number)))
        note->attempt = (int)number;
    else if (span_is(key, "restart") && (is_good = read_number(value, UINT32_MAX - 1, &number)))
        note->restart = (uint32_t)number;
    else if (span_is(key, "ooms") && (is_good = read_number(value, INT32_MAX, &number)))
        note->ooms = (int)number;
    else if (span_is(key, "shards") && (is_good = read_number(value, INT32_MAX, &number)))
        note->shards = number;
    else if (span_is(key, "smact") && (is_good = read_number(value, 100, &number)))
        note->smact_percent = (int)number;
    else if (span_is(key, "bound") && (is_good = read_number(value, 1, &number)))
        note->is_bound = number;
    return is_good;
}

bool job_note_parse(const char *text, struct job_note *ret_note)
{
    struct span rest = span_trim(span_of_optional(text));
    const struct job_note none = {.smact_percent = -1};
    struct job_note note = none;
    bool is_note = span_is(span_take_until(&rest, ' '), "colloc");
    while (is_note && rest.size > 0) {
        struct span value = span_take_until(&rest, ' '), key = span_take_until(&value, '=');
        if (key.size > 0)
            is_note = read_member(key, value, &note);
    }
    if (note.state != NOTE_WAITING && (note.nodes.size == 0 || !note.gpus))
        is_note = false;
    *ret_note = is_note ? note : none;
    return is_note;
}

static void format_gpus(uint64_t gpus, char *text, size_t size)
{
    size_t used = 0;
    *text = '\0';
    for (int i = 0; i < GRES_INDEX_MAX && used < size; i++)
        if (gpus >> i & 1)
            used += (size_t)snprintf(text + used, size - used, used ? ",%d" : "%d", i);
}

const char *job_note_format(const struct job_note *note, char *text, size_t size)
{
    char gpus[3 * GRES_INDEX_MAX];
    format_gpus(note->gpus, gpus, sizeof gpus);
    int n = snprintf(text, size, "colloc want=%d attempt=%d restart=%" PRIu32 " ooms=%d state=%s",
        note->want, note->attempt, note->restart, note->ooms, state_names[note->state]);
    if (note->gpus && n > 0 && (size_t)n < size)
        n += snprintf(text + n, size - (size_t)n, " node=%.*s gpus=%s shards=%" PRId64,
            (int)note->nodes.size, note->nodes.at, gpus, note->shards);
    if (note->gpus && note->smact_percent >= 0 && n > 0 && (size_t)n < size)
        n += snprintf(text + n, size - (size_t)n, " smact=%d", note->smact_percent);
    if (note->gpus && note->is_bound && n > 0 && (size_t)n < size)
        snprintf(text + n, size - (size_t)n, " bound=1");
    return text;
}
