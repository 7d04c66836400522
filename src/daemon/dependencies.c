/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The core forgets a task when its end is durable, and judges dependencies before that. What a user
 * names at submit may have ended long ago: its record in the event log says how.
 *
 * Between the check of a submission and its SUBMIT, a task that it depends on may end. So once the
 * core has the task, its dependencies are compared with the log again; and so they are at the
 * start, for a daemon that was killed in between.
 */
#include "daemon/dependencies.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"

/* Has the task ended, and how? Returns 0 and the state's word; STORE_NONE; or a fault. */
static int find_end(struct store *store, uint64_t id, struct fault *fault, char *state, size_t size)
{
    json_t *record;
    int r = store_get_ended(store, id, fault, &record);
    if (r != 0)
        return r;
    const char *word = json_string_value(json_object_get(record, "state"));
    snprintf(state, size, "%s", word ? word : "");
    json_decref(record);
    return 0;
}

static enum dependency_answer judge(const struct dependency *dependency, const char *state)
{
    bool failed = strcmp(state, task_state_word(TASK_COMPLETED)) != 0;
    return dependency_judge(dependency->kind, 0, failed);
}

static bool is_live(const struct core *core, uint64_t id)
{
    const struct task *task = core_task(core, id);
    return task && !task_state_is_done(task->state);
}

/* Returns DEPENDENCY_WAITS or _HOLDS, or a fault. */
static int resolve(const struct core *core, struct store *store,
    const struct dependency *dependency, struct fault *fault)
{
    char state[32], text[64];
    dependency_format(dependency, text, sizeof text);
    if (is_live(core, dependency->first))
        return DEPENDENCY_WAITS;
    int r = find_end(store, dependency->first, fault, state, sizeof state);
    if (r == STORE_NONE)
        return fault_set(fault, EINVAL, "after=%s: there is no task %llu", text,
            (unsigned long long)dependency->first);
    if (r < 0)
        return r;
    if (judge(dependency, state) == DEPENDENCY_NEVER)
        return fault_set(fault, EINVAL,
            "after=%s: task %llu has ended %s: the task could never start", text,
            (unsigned long long)dependency->first, state);
    return DEPENDENCY_HOLDS;
}

int dependencies_resolve(const struct core *core, struct store *store, struct dependency *list,
    int *n, struct fault *fault)
{
    int kept = 0;
    for (int i = 0; i < *n; i++) {
        int r = resolve(core, store, &list[i], fault);
        if (r < 0)
            return r;
        if (r == DEPENDENCY_WAITS)
            list[kept++] = list[i];
    }
    *n = kept;
    return 0;
}

/* An open dependency of the task on one that the core does not know; NULL: there is none. */
static const struct dependency *find_missed(const struct core *core, uint64_t id)
{
    const struct task *task = core_task(core, id);
    for (int i = 0; task && i < task->n_after; i++)
        if (!core_task(core, task->after[i].first))
            return &task->after[i];
    return NULL;
}

void dependencies_catch_up(
    const struct core *core, struct store *store, struct driver *driver, uint64_t id)
{
    const struct dependency *missed;
    int r = 0;
    while (r == 0 && (missed = find_missed(core, id))) {
        char state[32] = "";
        struct fault fault = {0};
        if (find_end(store, missed->first, &fault, state, sizeof state) < 0)
            log_error("task %llu: its dependency on task %llu cannot be read: %s",
                (unsigned long long)id, (unsigned long long)missed->first, fault.text);
        struct event event = driver_event(driver, EVENT_DEPENDENCY, id);
        event.dependency = (struct dependency_end){
            *missed, judge(missed, state) == DEPENDENCY_HOLDS, missed->first};
        r = driver_feed(driver, &event, NULL);
    }
}

void dependencies_catch_up_all(const struct core *core, struct store *store, struct driver *driver)
{
    uint64_t id = 0;
    for (const struct task *task; (task = core_next_task(core, id));) {
        id = task->id;
        dependencies_catch_up(core, store, driver, id);
    }
}
