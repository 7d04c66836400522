/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges the dependencies of a submission on tasks that the core no longer knows. The core forgets
 * a task when its end is durable, and judges dependencies before that. A task that a user names at
 * submit may have ended long ago: its record in the event log says how.
 *
 * Between the check of a submission and its SUBMIT, a task that it depends on may end. So once the
 * core has the task, its dependencies are compared with the log again; and so they are at the
 * start, for a daemon that was killed in between.
 */
#include "daemon/dependencies.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "daemon/array_tasks.h"

/* ---- what became of tasks ---- */

struct ends {
    int64_t n_live, n_failed, n_completed;
    enum task_state state; /* of one that has failed, else of one that has completed */
};

static bool is_live(const struct task *task)
{
    return task && !task_state_is_done(task->state);
}

/* The core has the live tasks, the log the ended ones. */
static int count_ends(const struct core *core, struct store *store,
    const struct dependency *dependency, struct fault *fault, struct ends *ret_ends)
{
    int64_t counts[TASK_STATES];
    int r = store_count_ended(store, dependency->first, dependency->last, fault, counts);
    *ret_ends = (struct ends){0};
    if (r < 0)
        return r;
    for (int i = TASK_COMPLETED; i < TASK_STATES; i++) {
        *(task_state_is_success((enum task_state)i) ? &ret_ends->n_completed
                                                    : &ret_ends->n_failed) += counts[i];
        ret_ends->state = counts[i] > 0 ? (enum task_state)i : ret_ends->state;
    }
    const struct task *task = core_next_task(core, dependency->first - 1);
    for (; task && task->id <= dependency->last; task = core_next_task(core, task->id))
        ret_ends->n_live += is_live(task);
    return 0;
}

/* ---- at submit ---- */

static const char *term_text(const struct dependency_term *term, char *text, size_t size)
{
    int used = snprintf(text, size, "%s:%llu",
        term->each ? "each" : dependency_kind_name((int)term->kind), (unsigned long long)term->id);
    if (term->index >= 0)
        snprintf(text + used, size - (size_t)used, "_%d", term->index);
    return text;
}

static int refuse_unknown(const char *text, struct fault *fault)
{
    return fault_set(fault, EINVAL, "after=%s: there is no task %s", text, strchr(text, ':') + 1);
}

/* Both arrays have to have the same indices. `other`: as of array_tasks_read. */
static int check_each(struct store *store, const struct dependency_term *term,
    const struct array_element *array, int n_array, const char *text, struct array_tasks *other,
    struct fault *fault)
{
    int r = array_tasks_read(store, term->id, fault, other);
    if (r < 0)
        return r;
    bool is_same = r == 0 && other->n == n_array;
    for (int i = 0; i < n_array && is_same; i++)
        is_same = other->elements[i].index == array[i].index;
    return is_same ? 0
                   : fault_set(fault, EINVAL,
                         "after=%s: both have to be arrays with the same indices", text);
}

/* Which tasks the term names. `array`: as of array_tasks_read. Returns 0 or a fault. */
static int find_tasks(const struct core *core, struct store *store,
    const struct dependency_term *term, const char *text, struct array_tasks *array,
    struct fault *fault, struct dependency *ret_dependency)
{
    uint64_t id = term->id;
    *ret_dependency = (struct dependency){term->kind, id, id, term->each};
    if (term->index >= 0) {
        id = array_tasks_find(core, store, id, term->index, array);
        ret_dependency->first = ret_dependency->last = id;
        return id ? 0 : refuse_unknown(text, fault);
    }
    int r = store_get_array(store, id, fault, &ret_dependency->first, &ret_dependency->last);
    return r < 0 ? r : 0;
}

/* Returns DEPENDENCY_WAITS or _HOLDS, or a fault. */
static int judge_term(const struct core *core, struct store *store, const char *text,
    const struct dependency *dependency, struct fault *fault)
{
    struct ends ends;
    int r = count_ends(core, store, dependency, fault, &ends);
    if (r < 0 || dependency->each)
        return r < 0 ? r : DEPENDENCY_WAITS;
    if (ends.n_live + ends.n_failed + ends.n_completed == 0)
        return refuse_unknown(text, fault);
    enum dependency_answer answer = dependency_judge(dependency->kind, ends.n_live, ends.n_failed);
    if (answer == DEPENDENCY_NEVER)
        return fault_set(fault, EINVAL,
            "after=%s: task %s has ended %s: the task could never start", text,
            strchr(text, ':') + 1, task_state_word(ends.state));
    return (int)answer;
}

int dependencies_resolve(const struct core *core, struct store *store,
    const struct dependency_term *terms, int n_terms, const struct array_element *array,
    int n_array, struct dependency *ret_list, int *ret_n, struct fault *fault)
{
    struct array_tasks named = {0};
    char text[64];
    int r = 0;
    *ret_n = 0;
    for (int i = 0; i < n_terms && r >= 0; i++) {
        struct dependency *next = &ret_list[*ret_n];
        term_text(&terms[i], text, sizeof text);
        r = terms[i].each ? check_each(store, &terms[i], array, n_array, text, &named, fault) : 0;
        if (r == 0)
            r = find_tasks(core, store, &terms[i], text, &named, fault, next);
        if (r == 0)
            r = judge_term(core, store, text, next, fault);
        *ret_n += r == DEPENDENCY_WAITS;
    }
    array_tasks_fini(&named);
    return r < 0 ? r : 0;
}

/* ---- after it ---- */

/* The result for a dependency: tasks of an array have the same ones. */
struct finding {
    struct dependency dependency;
    enum dependency_answer answer; /* WAITS also where the core knows all of its tasks */
};

static struct finding find_answer(
    const struct core *core, struct store *store, const struct dependency *dependency)
{
    struct finding finding = {.dependency = *dependency};
    struct fault fault = {0};
    struct ends ends;
    int64_t size = (int64_t)(dependency->last - dependency->first) + 1;
    if (count_ends(core, store, dependency, &fault, &ends) < 0) {
        log_error("a dependency on task %llu cannot be judged: %s",
            (unsigned long long)dependency->first, fault.text);
        ends = (struct ends){.n_failed = 1};
    }
    bool is_unknown = ends.n_live + ends.n_failed + ends.n_completed == 0;
    if (ends.n_live < size)
        finding.answer = dependency_judge(
            dependency->kind, ends.n_live, is_unknown ? 1 : ends.n_failed);
    return finding;
}

/* Finds a dependency of the task that the log decides. `last`: what was found before. */
static bool find_missed(
    const struct core *core, struct store *store, uint64_t id, struct finding *last)
{
    const struct task *task = core_task(core, id);
    for (int i = 0; task && i < task->n_after; i++) {
        if (!dependency_is_same(&task->after[i], &last->dependency))
            *last = find_answer(core, store, &task->after[i]);
        if (last->answer != DEPENDENCY_WAITS)
            return true;
    }
    return false;
}

void dependencies_catch_up(const struct core *core, struct store *store, struct driver *driver,
    uint64_t first, uint64_t last)
{
    struct finding finding = {.answer = DEPENDENCY_WAITS};
    uint64_t id = first - 1;
    for (const struct task *task; (task = core_next_task(core, id)) && task->id <= last;) {
        id = task->id;
        int r = 0;
        while (r == 0 && find_missed(core, store, id, &finding)) {
            struct event event = driver_event(driver, EVENT_DEPENDENCY, id);
            event.dependency = (struct dependency_end){
                finding.dependency, finding.answer == DEPENDENCY_HOLDS, finding.dependency.first};
            r = driver_feed(driver, &event, NULL);
        }
    }
}
