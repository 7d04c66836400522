/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slurm's names of states, long and short.
 *
 * A job is SUSPENDED for Slurm when a user has asked for that: submitit then takes it for ended
 * without a result, and batchspawner for gone (findings/suspended-is-ended.sh). So a task that only
 * gives way to others for a while is RUNNING here, as on a node whose agent suspends a job of
 * Slurm. STOPPED is CANCELLED: Slurm's STOPPED is a job that SIGSTOP has halted.
 */
#include "cli/slurm_states.h"

#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/json_member.h"

static const struct {
    const char *name, *letters;
} states[] = {
    {"PENDING", "PD"},
    {"RUNNING", "R"},
    {"SUSPENDED", "S"},
    {"COMPLETING", "CG"},
    {"COMPLETED", "CD"},
    {"FAILED", "F"},
    {"CANCELLED", "CA"},
    {"TIMEOUT", "TO"},
    {"OUT_OF_MEMORY", "OOM"},
    /* states that no task has */
    {"BOOT_FAIL", "BF"},
    {"CONFIGURING", "CF"},
    {"DEADLINE", "DL"},
    {"NODE_FAIL", "NF"},
    {"PREEMPTED", "PR"},
    {"REQUEUED", "RQ"},
    {"RESIZING", "RS"},
    {"REVOKED", "RV"},
    {"SPECIAL_EXIT", "SE"},
    {"STOPPED", "ST"},
};

static bool is_by_user(const json_t *task)
{
    return strcmp(member_text(task, "reason", ""), "SuspendedByUser") == 0;
}

const char *slurm_state_long(const json_t *task)
{
    const char *state = member_text(task, "state", "");
    if (strcmp(state, "STOPPED") == 0)
        return "CANCELLED";
    if (strcmp(state, "SUSPENDED") == 0 || strcmp(state, "PAUSED") == 0)
        return is_by_user(task) ? "SUSPENDED" : "RUNNING";
    return state;
}

/* Slurm's accounting takes the flag COMPLETING off a state before it stores it, and sacct's manual
 * does not have the word: a tool that reads sacct may not know it. Of a task that is to run again
 * the end is not known. */
const char *slurm_state_account(const json_t *task)
{
    static const struct {
        const char *reason, *state;
    } ends[] = {{"Cancelled", "CANCELLED"}, {"Stopped", "CANCELLED"}, {"TimeLimit", "TIMEOUT"}};
    const char *state = slurm_state_long(task), *reason = member_text(task, "reason", "");
    if (strcmp(state, "COMPLETING") != 0)
        return state;
    for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
        if (strcmp(ends[i].reason, reason) == 0)
            return ends[i].state;
    return "RUNNING";
}

bool slurm_has_started(const json_t *task)
{
    return strcmp(slurm_state_long(task), "PENDING") != 0 &&
           json_is_number(json_object_get(task, "started_at"));
}

const char *slurm_state_short(const json_t *task)
{
    const char *name = slurm_state_long(task);
    for (size_t i = 0; i < ARRAY_SIZE(states); i++)
        if (strcmp(states[i].name, name) == 0)
            return states[i].letters;
    return name;
}

const char *slurm_state_parse(const char *text, size_t size)
{
    for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
        const char *const names[] = {states[i].name, states[i].letters};
        for (size_t k = 0; k < ARRAY_SIZE(names); k++)
            if (strlen(names[k]) == size && strncasecmp(names[k], text, size) == 0)
                return states[i].name;
    }
    return strncasecmp(text, "CANCELED", 8) == 0 && size == 8 ? "CANCELLED" : NULL;
}
