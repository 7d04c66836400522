/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slurm's records of jobs as events of the core.
 *
 *     pending in the intake partition        WAITING   (the window submits it to the core)
 *       the core places it                   PLACED    its pin is asked for
 *     pending in the run partition, pinned   PLACED    also when a new controller finds it so
 *     running                                RUNNING   STARTED
 *     ended                                  DONE      EXITED
 *     failed on shared GPUs                  EXAMINED  its error and output files are read:
 *                                               out of GPU memory: EXITED, and the core decides;
 *                                               Slurm requeues it, and it is pinned anew, alone
 *     pending again, by a user or because    WAITING   returned into the intake: its old pin would
 *     its node failed                                  start it where other jobs are now
 *
 * Where a note and Slurm's own fields differ, an administrator has changed the job by hand, and
 * Slurm's fields count: what a job has is what tres_per_node and its nodes say.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "slurm/controller_state.h"

/* Chosen: a job that failed this long before the controller started is not examined any more.
 * Slurm forgets jobs after as long (MinJobAge). */
#define EXAMINED_AFTER_S 300

/* Chosen: slurmctld asks all nodes for their jobs as soon as it has started again. */
#define FORGOTTEN_US (10 * SECOND_US)

static bool is_partition(const struct slurm_job *record, const char *name)
{
    const char *partition = record->partition;
    return partition && *partition == *name && strcmp(partition, name) == 0; /* often called */
}

static struct tracked_job *find_tracked(
    const struct slurm_controller *controller, uint32_t base, uint32_t index)
{
    return id_map_get(&controller->jobs, (uint64_t)base << 32 | index);
}

/* ---- tasks of the core ---- */

static enum task_state task_state_of(
    const struct slurm_controller *controller, const struct tracked_job *job)
{
    const struct task *task = core_task(controller->core, job->task);
    return task ? task->state : TASK_CANCELLED;
}

/* The core counts from the placement, which is earlier than Slurm's start, or later where the
 * controller was created meanwhile, and does not know of Slurm's suspensions. So the limit of a job
 * that runs is the time from then to the end that Slurm expects; 1 us where that is past. Returns
 * 0: unlimited, or not known. */
static int64_t find_time_limit_us(const struct tracked_job *job)
{
    const struct slurm_job *record = job->record;
    if (job->phase != JOB_RUNNING || record->time_limit_s == 0)
        return record->time_limit_s * SECOND_US;
    if (record->end_s <= record->start_s)
        return 0;
    return record->end_s > job->placed_s ? (record->end_s - job->placed_s) * SECOND_US : 1;
}

/* The limit was changed, or the job has started. */
static void follow_time_limit(struct slurm_controller *controller, struct tracked_job *job)
{
    int64_t limit_us = find_time_limit_us(job);
    if (!job->task || limit_us == job->time_limit_us)
        return;
    struct event event = {.kind = EVENT_UPDATE, .task = job->task}; /* not small: only if needed */
    job->time_limit_us = limit_us;
    event.update.sets_time_limit = event.update.may_raise = true;
    event.update.time_limit_us = limit_us;
    controller_apply(controller, event);
}

void controller_submit_task(struct slurm_controller *controller, struct tracked_job *job)
{
    struct event event = {.kind = EVENT_SUBMIT, .task = controller->next_task++};
    event.submit.uid = job->uid;
    event.submit.request = job->request;
    event.submit.request.once = !job->record->may_requeue;
    event.submit.request.time_limit_us = job->time_limit_us = find_time_limit_us(job);
    job->task = event.task;
    controller_apply(controller, event);
    if (id_map_set(&controller->by_task, job->task, job) < 0)
        controller->is_broken = true;
}

static void exit_task(
    struct slurm_controller *controller, const struct tracked_job *job, enum failure_class failure)
{
    struct event event = {.kind = EVENT_EXITED, .task = job->task};
    event.exited = (struct task_exit){.failure = failure, .code = failure ? 1 : 0};
    controller_apply(controller, event);
}

void controller_forget_task(struct slurm_controller *controller, struct tracked_job *job)
{
    core_forget(controller->core, job->task);
    id_map_remove(&controller->by_task, job->task);
    id_map_remove(&controller->by_id, job->slurm_id);
    job->task = 0;
}

void controller_drop_task(struct slurm_controller *controller, struct tracked_job *job)
{
    if (!job->task)
        return;
    enum task_state state = task_state_of(controller, job);
    struct event end = {.kind = EVENT_END, .task = job->task, .end = TASK_CANCELLED};
    if (task_state_has_attempt(state))
        exit_task(controller, job, FAILURE_CANCELLED);
    else if (!task_state_is_done(state) && state != TASK_EXITED)
        controller_apply(controller, (struct event){.kind = EVENT_CANCEL, .task = job->task});
    if (!task_state_is_done(state))
        controller_apply(controller, end);
    controller_forget_task(controller, job);
}

static void start_task(struct slurm_controller *controller, struct tracked_job *job)
{
    controller_apply(controller, (struct event){.kind = EVENT_STARTED, .task = job->task});
}

static void place_task(struct slurm_controller *controller, struct tracked_job *job,
    const int *gpus, int n, bool is_running)
{
    struct event event = {.kind = EVENT_PLACE, .task = job->task};
    event.place.gpus = gpus;
    event.place.n = n;
    job->placed_s = controller->wall_s;
    controller_apply(controller, event);
    if (is_running)
        start_task(controller, job);
}

/* ---- where a job is ---- */

void controller_clear_place(struct tracked_job *job)
{
    free(job->node_list);
    job->node_list = NULL;
    job->node = -1;
    job->indices = 0;
}

void controller_set_place(
    struct slurm_controller *controller, struct tracked_job *job, const int *gpus, int n)
{
    const struct node_table *nodes = &controller->nodes;
    char list[SLURM_NODES_MAX] = "";
    size_t used = 0;
    controller_clear_place(job);
    for (int i = 0, node = -1; i < n; i++) {
        const struct cluster_gpu *gpu = &nodes->gpus[gpus[i]];
        job->indices |= UINT64_C(1) << gpu->index;
        if (gpu->node != node && used < sizeof list)
            used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", used ? "," : "",
                nodes->nodes[gpu->node]->name);
        node = gpu->node;
    }
    job->node = nodes->gpus[gpus[0]].node;
    if (strchr(list, ',') && !(job->node_list = strdup(list)))
        controller->is_broken = true;
}

const char *controller_nodes_of(
    const struct slurm_controller *controller, const struct tracked_job *job)
{
    if (job->node_list)
        return job->node_list;
    return job->node >= 0 ? controller->nodes.nodes[job->node]->name : "";
}

/* Lists the GPUs of these indices on each node of the list, node by node. Returns the scratch list;
 * `ret_n` 0: a node is not known, or has not all of them. */
static const int *list_gpus(
    struct slurm_controller *controller, const char *list, uint64_t indices, int *ret_n)
{
    struct node_table *nodes = &controller->nodes;
    struct span rest = span_of_optional(list), name;
    *ret_n = 0;
    if (ARRAY_RESERVE(controller->found_gpus, controller->found_capacity, nodes->n_gpus + 1) < 0) {
        controller->is_broken = true;
        return NULL;
    }
    for (size_t n = 0; node_list_next(&rest, &name); *ret_n = (int)n) {
        int number = node_table_find(nodes, name);
        for (int i = 0; i < GRES_INDEX_MAX; i++) {
            if (!(indices >> i & 1))
                continue;
            if (number < 0 || nodes->nodes[number]->gpus[i] < 0 || n == nodes->n_gpus) {
                *ret_n = 0;
                return NULL;
            }
            controller->found_gpus[n++] = nodes->nodes[number]->gpus[i];
        }
    }
    return controller->found_gpus;
}

/* The GPUs that the record names, node by node: a scratch list. `ret_shards`: of each. Returns NULL
 * when it names none, or nodes or GPUs that are not known. */
static const int *find_gpus(struct slurm_controller *controller, const struct slurm_job *record,
    bool is_running, int *ret_n, int64_t *ret_shards)
{
    int64_t shards[GRES_INDEX_MAX];
    uint64_t indices = 0;
    gres_counts_by_index(span_of_optional(record->gres), "shard", shards);
    for (int i = 0; i < GRES_INDEX_MAX; i++) {
        if (shards[i] == 0)
            continue;
        indices |= UINT64_C(1) << i;
        *ret_shards = shards[i];
    }
    const char *list = is_running ? record->node_list : record->required_nodes;
    const int *gpus = list_gpus(controller, list, indices, ret_n);
    return *ret_n > 0 ? gpus : NULL;
}

/* What is known of a job that another controller has placed: its shards, and its note. */
static void restore_request(
    const struct slurm_controller *controller, struct tracked_job *job, int gpu)
{
    struct job_note note;
    job_note_parse(job->record->admin_comment, &note);
    if (job->request.need.kind < NEED_ESTIMATED)
        job->request.need = (struct need){
            NEED_ESTIMATED, job->shards * node_table_shard_bytes(&controller->nodes, gpu)};
    if (!job->request.expect.smact.valid && note.smact_percent >= 0)
        job->request.expect.smact = reading_of(note.smact_percent / 100.0);
}

/* Finds again where a job is pinned or runs. Returns false when the record does not say it. */
static bool restore_placed(
    struct slurm_controller *controller, struct tracked_job *job, bool is_running)
{
    int n;
    int64_t shards;
    const int *gpus = find_gpus(controller, job->record, is_running, &n, &shards);
    if (!gpus)
        return false;
    controller_drop_task(controller, job);
    controller_set_place(controller, job, gpus, n);
    job->shards = shards;
    job->request.gpus = n;
    job->request.nodes = n / __builtin_popcountll(job->indices);
    restore_request(controller, job, gpus[0]);
    controller_submit_task(controller, job);
    place_task(controller, job, gpus, n, is_running);
    if (is_running && job->shards < controller->nodes.gpus[gpus[0]].shards) /* perhaps not alone */
        controller_apply(
            controller, (struct event){.kind = EVENT_EXTERNAL_SEEN, .task = job->task});
    job->phase = is_running ? JOB_RUNNING : JOB_PLACED;
    return true;
}

/* The GPUs on which it ran out of memory; any others, if they are not known any more. */
static const int *former_gpus(struct slurm_controller *controller, const struct tracked_job *job)
{
    int n, wanted = job->request.gpus;
    const char *list = controller_nodes_of(controller, job);
    const int *gpus = list_gpus(controller, list, job->indices, &n);
    if (n == wanted && n > 0)
        return gpus;
    for (n = 0; n < wanted && n < (int)controller->nodes.n_gpus && controller->found_gpus; n++)
        controller->found_gpus[n] = n;
    return n > 0 && n == wanted ? controller->found_gpus : NULL;
}

void controller_restore_recovering(struct slurm_controller *controller, struct tracked_job *job)
{
    controller_drop_task(controller, job);
    const int *gpus = former_gpus(controller, job);
    if (!gpus)
        return;
    controller_submit_task(controller, job);
    for (int i = 0; i < job->ooms; i++) {
        place_task(controller, job, gpus, job->request.gpus, true);
        exit_task(controller, job, FAILURE_GPU_OOM);
        controller_apply(controller, (struct event){.kind = EVENT_RECOVER, .task = job->task});
    }
}

/* ---- a new record of a known job ---- */

/* Slurm counts the restart of a job that is requeued at once, and sets its time of submission anew
 * when it has left its node, some time later. A job that got an id that is used again has not been
 * restarted. */
static bool is_same_run(const struct tracked_job *job, const struct slurm_job *record)
{
    bool is_requeue_complete = record->restarts > 0 && record->submit_s > job->submit_s;
    return job->restarts == record->restarts &&
           (job->submit_s == record->submit_s || is_requeue_complete);
}

static void forget_request(struct tracked_job *job)
{
    job->request_state = REQUEST_UNKNOWN;
    job->script_request = 0;
    job->request = (struct task_request){0};
    job->attempt = job->ooms = job->failed_tries = 0;
    controller_clear_place(job);
}

/* The job was requeued; or its id was used again, for another job. */
static void begin_new_run(
    struct slurm_controller *controller, struct tracked_job *job, const struct slurm_job *record)
{
    bool is_requeued = record->restarts > job->restarts;
    bool is_expected = job->awaits_requeue && record->state == SLURM_STATE_PENDING;
    job->awaits_requeue = job->is_pinned = job->is_held_by_agent = false;
    job->submit_s = record->submit_s;
    job->restarts = record->restarts;
    if (is_expected)
        return;
    controller_drop_task(controller, job);
    job->phase = JOB_WAITING;
    job->shards = 0;
    if (!is_requeued)
        forget_request(job);
}

/* ---- what its user asks for of the node ---- */

static void set_rule(struct slurm_controller *controller, char **rule, const char *text)
{
    text = text ? text : "";
    if (*rule ? strcmp(*rule, text) == 0 : !*text)
        return;
    free(*rule);
    *rule = *text ? strdup(text) : NULL;
    controller->is_broken |= *text && !*rule;
}

/* Slurm has a pin's node where it has the user's -w. Of a job that was pinned to this node, it is
 * no news: what the job had asked for before still holds, if it had. */
static void follow_required_nodes(
    struct slurm_controller *controller, struct tracked_job *job, const struct slurm_job *record)
{
    const char *nodes = record->required_nodes ? record->required_nodes : "";
    struct job_note note;
    if (job->rules[0] ? strcmp(nodes, job->rules[0]) == 0 : !*nodes)
        return;
    job_note_parse(record->admin_comment, &note);
    if (note.nodes.size == 0 || !span_is(note.nodes, nodes))
        set_rule(controller, &job->rules[0], nodes);
    else if (note.is_bound && !job->rules[0])
        set_rule(controller, &job->rules[0], nodes);
}

/* While it waits, an administrator may change -w, -x and -C at any time. */
static void follow_rules(
    struct slurm_controller *controller, struct tracked_job *job, const struct slurm_job *record)
{
    follow_required_nodes(controller, job, record);
    set_rule(controller, &job->rules[1], record->excluded_nodes);
    set_rule(controller, &job->rules[2], record->features);
}

static struct tracked_job *add_job(struct slurm_controller *controller,
    const struct slurm_job *record, uint32_t base, uint32_t index)
{
    struct tracked_job *job = calloc(1, sizeof *job);
    if (!job ||
        ARRAY_RESERVE(controller->all, controller->all_capacity, controller->n_all + 1) < 0 ||
        id_map_set(&controller->jobs, (uint64_t)base << 32 | index, job) < 0) {
        free(job);
        controller->is_broken = true;
        return NULL;
    }
    controller->all[controller->n_all++] = job;
    job->base = base;
    job->index = index;
    job->submit_s = record->submit_s;
    job->restarts = record->restarts;
    job->node = -1;
    follow_rules(controller, job, record);
    return job;
}

/* How many GPUs the job wants, and of how many nodes. */
static void set_wanted(
    struct tracked_job *job, const struct slurm_job *record, const struct job_note *note)
{
    int64_t nodes = record->nodes > 1 ? record->nodes : 1;
    int64_t each = note->want ? note->want : gres_count(span_of_optional(record->gres), "gpu");
    int64_t total = note->total ? note->total
                                : gres_count(span_of_optional(record->other_gres), "gpu");
    int64_t gpus = each * nodes > total ? each * nodes : total;
    gpus = gpus > 0 ? gpus : nodes;
    job->request.gpus = gpus < INT32_MAX ? (int)gpus : INT32_MAX;
    job->request.nodes = (int)nodes;
    job->nodes_shown = record->nodes;
}

/* While a job waits, an administrator may change its number of nodes, or Slurm compute another. */
static bool has_other_nodes(const struct slurm_controller *controller,
    const struct tracked_job *job, const struct slurm_job *record)
{
    return record->state == SLURM_STATE_PENDING && !record->is_completing &&
           record->nodes != job->nodes_shown && job->phase == JOB_WAITING &&
           (!job->task || task_state_of(controller, job) == TASK_QUEUED);
}

/* ---- the states of Slurm ---- */

static void want_log(struct slurm_controller *controller, struct tracked_job *job)
{
    job->phase = JOB_EXAMINED;
    job->log_request = 0;
    job->examined = job->restarts + 1;
    controller->n_logs_wanted += !job->is_log_wanted;
    job->is_log_wanted = true;
}

/* Held in the run partition after a run: the agent of its node, or this controller before it was
 * killed, may have requeued it because it ran out of GPU memory. */
static bool may_have_crashed(const struct tracked_job *job, const struct job_note *note)
{
    return job->record->is_held && note->state == NOTE_PINNED &&
           note->restart + 1 == job->restarts && job->examined != job->restarts + 1;
}

/* The GPUs of its note; the nodes that it was on may not be known now. */
static void restore_place(
    struct slurm_controller *controller, struct tracked_job *job, const struct job_note *note)
{
    char list[SLURM_NODES_MAX];
    int n = 0;
    const int *gpus = span_copy(note->nodes, list, sizeof list)
                          ? list_gpus(controller, list, note->gpus, &n)
                          : NULL;
    if (n > 0)
        controller_set_place(controller, job, gpus, n);
    else
        controller_clear_place(job);
    job->indices = note->gpus;
}

static void follow_away(
    struct slurm_controller *controller, struct tracked_job *job, const struct job_note *note)
{
    job->is_away = true;
    if (job->task && task_state_of(controller, job) == TASK_QUEUED)
        controller_drop_task(controller, job);
    if (job->task || job->phase == JOB_EXAMINED)
        return; /* it recovers, and is pinned from here */
    if (note->state == NOTE_PINNED || note->state == NOTE_RECOVERING) {
        restore_place(controller, job, note);
    }
    if (note->state == NOTE_RECOVERING && note->ooms > 0)
        controller_restore_recovering(controller, job);
    else if (may_have_crashed(job, note))
        want_log(controller, job);
}

/* slurmctld has crashed before it saved that the job started, or ended: it shows the job as it was
 * before. What still runs on the node is ended when slurmd reports it, before the job may run
 * again. */
static void follow_forgotten_start(struct slurm_controller *controller, struct tracked_job *job)
{
    controller_drop_task(controller, job);
    controller->n_logs_wanted -= job->is_log_wanted;
    job->is_log_wanted = job->awaits_requeue = false;
    job->phase = JOB_WAITING;
    job->shards = 0;
    job->retry_us = controller->now_us + FORGOTTEN_US;
}

/* Is the hold that of the requeue after it ran out of GPU memory? Also where slurmctld has crashed
 * and forgotten that it was released. A user's own hold is another one. */
static bool is_held_after_crash(const struct tracked_job *job, const struct job_note *note)
{
    bool is_noted = note->ooms > 0 && note->state != NOTE_PINNED && note->restart == job->restarts;
    return job->record->is_requeue_held && (job->crashed == job->restarts + 1 || is_noted);
}

static void follow_pending(
    struct slurm_controller *controller, struct tracked_job *job, const struct job_note *note)
{
    const struct slurm_job *record = job->record;
    bool is_in_run = is_partition(record, controller->options.run_partition);
    bool is_pinned = is_in_run && note->state == NOTE_PINNED && note->restart == record->restarts;
    job->is_eligible = !record->is_held && !slurm_job_has_dependency(record) &&
                       !record->is_completing && record->begin_s <= controller->wall_s;
    job->is_away = false;
    job->is_held_by_agent = (job->is_held_by_agent && record->is_held) ||
                            is_held_after_crash(job, note);
    job->submit_s = record->submit_s;
    if (job->phase == JOB_RUNNING || (job->phase == JOB_EXAMINED && job->task) ||
        job->awaits_requeue)
        follow_forgotten_start(controller, job);
    if (job->phase == JOB_DONE)
        job->phase = JOB_WAITING;
    if (is_pinned && job->phase != JOB_PLACED)
        is_pinned = restore_placed(controller, job, false);
    if (is_pinned && !job->is_pinned)
        job->pinned_us = controller->now_us;
    job->is_pinned = is_pinned;
    if (is_pinned)
        return;
    if (!is_in_run)
        follow_rules(controller, job, record);
    if (is_in_run) {
        follow_away(controller, job, note);
    } else if (job->task && !job->is_eligible) {
        controller_drop_task(controller, job); /* held, or it waits for another job again */
        job->phase = JOB_WAITING;
        job->shards = 0;
    }
}

/* Does it run on the GPUs where the core has placed it? Its pin may have been changed by hand. */
static bool runs_as_placed(struct slurm_controller *controller, const struct tracked_job *job)
{
    const struct task *task = core_task(controller->core, job->task);
    int n, n_same = 0;
    int64_t shards;
    const int *gpus = find_gpus(controller, job->record, true, &n, &shards);
    if (!gpus || !task || n != task->n_gpus)
        return false;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++)
            n_same += gpus[i] == task->gpus[k];
    return n_same == n;
}

static void follow_running(struct slurm_controller *controller, struct tracked_job *job)
{
    if (job->awaits_requeue)
        return; /* it was read before its agent requeued it; or slurmctld has forgotten that */
    bool was_running = job->phase == JOB_RUNNING;
    bool is_placed = job->phase == JOB_PLACED && job->task;
    if (is_placed && !runs_as_placed(controller, job))
        log_warning(
            "job %u was changed by hand: it runs on %s with %s, where colloc has not placed it",
            job->slurm_id, job->record->node_list,
            job->record->gres ? job->record->gres : "no GPU");
    if (is_placed && runs_as_placed(controller, job)) {
        start_task(controller, job);
        job->phase = JOB_RUNNING;
    } else if (job->phase != JOB_RUNNING && !restore_placed(controller, job, true)) {
        controller_drop_task(controller, job);
        job->phase = JOB_DONE; /* colloc has not placed it */
        node_table_add_other(&controller->nodes, job->record);
    }
    if (job->phase == JOB_RUNNING && !was_running &&
        id_map_set(&controller->by_id, job->slurm_id, job) < 0)
        controller->is_broken = true;
}

static enum failure_class failure_of(enum slurm_state state)
{
    switch (state) {
    case SLURM_STATE_COMPLETED:
        return FAILURE_NONE;
    case SLURM_STATE_FAILED:
        return FAILURE_PROGRAM;
    case SLURM_STATE_CANCELLED:
        return FAILURE_CANCELLED;
    case SLURM_STATE_TIMEOUT:
        return FAILURE_TIME_LIMIT;
    case SLURM_STATE_OUT_OF_MEMORY:
        return FAILURE_HOST_OOM;
    default:
        return FAILURE_LOST;
    }
}

static bool may_be_examined(
    const struct slurm_controller *controller, const struct slurm_job *record, int ooms)
{
    return record->state == SLURM_STATE_FAILED && record->may_requeue &&
           ooms < controller->options.settings.recoveries_max;
}

static void follow_end(struct slurm_controller *controller, struct tracked_job *job)
{
    bool has_run = job->task && (job->phase == JOB_PLACED || job->phase == JOB_RUNNING);
    if (job->phase == JOB_DONE || job->phase == JOB_EXAMINED || job->awaits_requeue) {
        if (!job->task && job->record->is_completing)
            node_table_add_other(&controller->nodes, job->record);
        return;
    }
    if (has_run && may_be_examined(controller, job->record, job->ooms)) {
        want_log(controller, job);
        return;
    }
    if (has_run) {
        exit_task(controller, job, failure_of(job->record->state));
        id_map_remove(&controller->by_id, job->slurm_id);
    } else {
        controller_drop_task(controller, job);
    }
    job->phase = JOB_DONE;
}

/* A job that failed while no controller ran: was it for GPU memory beside others? */
static bool failed_unseen(const struct slurm_controller *controller, const struct slurm_job *record)
{
    struct job_note note;
    return may_be_examined(controller, record, 0) &&
           record->end_s > controller->wall_s - EXAMINED_AFTER_S &&
           job_note_parse(record->admin_comment, &note) && note.state == NOTE_PINNED &&
           note.restart == record->restarts;
}

static void examine_unseen(struct slurm_controller *controller, struct tracked_job *job)
{
    job->phase = JOB_DONE;
    if (!restore_placed(controller, job, true))
        return;
    want_log(controller, job);
}

/* ---- one record ---- */

static void take_facts(struct slurm_controller *controller, struct tracked_job *job,
    const struct slurm_job *record, const struct job_note *note, bool is_wanted_new)
{
    job->record = record;
    controller->n_seen += job->seen != controller->update;
    job->seen = controller->update;
    job->has_comment = record->comment && *record->comment;
    job->submit_s = record->submit_s;
    job->slurm_id = record->id;
    job->priority = record->priority;
    job->uid = record->uid;
    job->gid = record->gid;
    job->cpus = node_cpus_of_job(record, "");
    job->memory_bytes = record->memory_bytes > 0 ? record->memory_bytes : -1;
    job->ooms = note->ooms > job->ooms ? note->ooms : job->ooms;
    job->attempt = note->attempt > job->attempt ? note->attempt : job->attempt;
    /* While it completes, Slurm counts only the nodes that it has not left. */
    bool is_due = is_wanted_new || note->want > 0 || note->total > 0;
    if (!job->task && is_due && !record->is_completing)
        set_wanted(job, record, note);
}

static bool needs_note(
    const struct slurm_controller *controller, const struct slurm_job *record, bool is_new)
{
    return is_new || (record->state == SLURM_STATE_PENDING &&
                         is_partition(record, controller->options.run_partition));
}

static struct tracked_job *follow_one(struct slurm_controller *controller,
    const struct slurm_job *record, struct tracked_job *job, uint32_t base, uint32_t index)
{
    struct job_note note = {.smact_percent = -1};
    bool is_end = slurm_state_is_end(record->state), is_new = !job;
    if (is_new && is_end && !failed_unseen(controller, record)) {
        if (record->is_completing)
            node_table_add_other(&controller->nodes, record);
        return NULL;
    }
    bool is_new_run = is_new || !is_same_run(job, record);
    bool is_resized = !is_new_run && has_other_nodes(controller, job, record);
    bool is_wanted_new = is_new_run || is_resized || job->request.gpus == 0;
    /* also the former run, again, where slurmctld has crashed and forgotten the requeue */
    bool is_unseen = is_end && is_new_run && (is_new || failed_unseen(controller, record));
    if (needs_note(controller, record, is_wanted_new))
        job_note_parse(record->admin_comment, &note);
    job = is_new ? add_job(controller, record, base, index) : job;
    if (!job)
        return NULL;
    if (is_new_run && !is_new)
        begin_new_run(controller, job, record);
    if (is_resized)
        controller_drop_task(controller, job);
    take_facts(controller, job, record, &note, is_wanted_new);
    if (is_unseen)
        examine_unseen(controller, job);
    else if (is_end)
        follow_end(controller, job);
    else if (record->state == SLURM_STATE_PENDING)
        follow_pending(controller, job, &note);
    else
        follow_running(controller, job);
    if (!is_end)
        follow_time_limit(controller, job);
    return job;
}

/* ---- arrays ---- */

/* Removes the next number from the front. */
static bool take_number(const char **text, int64_t *ret_number)
{
    char *end;
    if (**text < '0' || **text > '9')
        return false;
    *ret_number = strtoll(*text, &end, 10);
    *text = end;
    return *ret_number >= 0 && *ret_number < SLURM_NO_INDEX;
}

/* Is the task of an array running, or pinned so that it will run? */
static bool counts_in_array(const struct slurm_job *job)
{
    struct job_note note;
    return slurm_job_holds_node(job) ||
           (job->state == SLURM_STATE_PENDING && job_note_parse(job->admin_comment, &note) &&
               note.state == NOTE_PINNED);
}

/* How many tasks of each array are placed or running: what its limit counts. */
static void count_active(struct slurm_controller *controller)
{
    const struct slurm_snapshot *snapshot = &controller->snapshot;
    id_map_fini(&controller->array_active);
    controller->is_active_counted = true;
    for (size_t i = 0; i < snapshot->n_jobs; i++) {
        const struct slurm_job *job = &snapshot->jobs[i];
        if (!job->array_id || job->array_indices || !counts_in_array(job))
            continue;
        uintptr_t n = (uintptr_t)id_map_get(&controller->array_active, job->array_id);
        if (id_map_set(&controller->array_active, job->array_id, (void *)(n + 1)) < 0)
            controller->is_broken = true;
    }
}

/* How many more tasks of the array may be placed: "0-9%2". */
static int64_t array_left(
    struct slurm_controller *controller, const struct slurm_job *record, uint32_t base)
{
    const char *percent = strchr(record->array_indices, '%');
    int64_t limit = 0;
    const char *at = percent ? percent + 1 : "";
    if (!take_number(&at, &limit) || limit == 0)
        return WINDOW_JOBS_MAX;
    if (!controller->is_active_counted)
        count_active(controller);
    return limit - (int64_t)(uintptr_t)id_map_get(&controller->array_active, base);
}

/* Tasks that are not split off have one record; the first of them that may run are followed. */
static void follow_array(struct slurm_controller *controller, const struct slurm_job *record)
{
    uint32_t base = record->array_id ? record->array_id : record->id;
    int64_t left = array_left(controller, record, base), first, last, step;
    for (const char *at = record->array_indices; left > 0 && take_number(&at, &first);) {
        last = first;
        step = 1;
        if (*at == '-' && (at++, !take_number(&at, &last)))
            return;
        if (*at == ':' && (at++, !take_number(&at, &step) || step < 1))
            return;
        for (int64_t i = first; i <= last && left > 0; i += step, left--)
            follow_one(
                controller, record, find_tracked(controller, base, (uint32_t)i), base, (uint32_t)i);
        if (*at != ',')
            return;
        at++;
    }
}

/* The job of the record; most often the one that stood at this place of the list before. */
static struct tracked_job *find_hinted(
    const struct slurm_controller *controller, size_t place, uint32_t base, uint32_t index)
{
    struct tracked_job *hint = place < controller->n_hints ? controller->hints[place] : NULL;
    if (hint && hint->base == base && hint->index == index)
        return hint;
    return find_tracked(controller, base, index);
}

void controller_follow(
    struct slurm_controller *controller, const struct slurm_job *record, size_t place)
{
    bool is_ours = is_partition(record, controller->options.intake_partition) ||
                   is_partition(record, controller->options.run_partition);
    struct tracked_job *job = NULL;
    uint32_t base = record->array_id ? record->array_id : record->id;
    uint32_t index = record->array_id ? record->array_index : SLURM_NO_INDEX;
    if (!is_ours && slurm_job_holds_node(record))
        node_table_add_other(&controller->nodes, record);
    else if (is_ours && record->array_indices && *record->array_indices)
        follow_array(controller, record);
    else if (is_ours)
        job = follow_one(
            controller, record, find_hinted(controller, place, base, index), base, index);
    controller->hints[place] = job;
    controller_note_dependent(controller, record);
}

void controller_sweep(struct slurm_controller *controller)
{
    for (size_t i = 0; i < controller->n_all && controller->n_seen < controller->n_all; i++) {
        struct tracked_job *job = controller->all[i];
        if (job->seen == controller->update)
            continue;
        job->record = NULL;
        controller->n_logs_wanted -= job->is_log_wanted;
        job->is_log_wanted = false;
        job->phase = JOB_DONE;
        controller_drop_task(controller, job);
    }
}

/* ---- what the log, or the node's agent, says of a failure ---- */

void slurm_controller_log_examined(
    struct slurm_controller *controller, const struct slurm_job_key *key, bool is_gpu_oom)
{
    struct tracked_job *job = id_map_get(&controller->jobs, (uint64_t)key->base << 32 | key->index);
    if (!job || job->phase != JOB_EXAMINED || job->log_request != key->request || !job->record)
        return;
    bool has_ended = job->task != 0; /* else it is held in the run partition */
    job->phase = has_ended && !is_gpu_oom ? JOB_DONE : JOB_WAITING;
    job->ooms += is_gpu_oom;
    if (is_gpu_oom)
        job->crashed = job->restarts + 1 + has_ended;
    if (has_ended) {
        exit_task(controller, job, is_gpu_oom ? FAILURE_GPU_OOM : FAILURE_PROGRAM);
        id_map_remove(&controller->by_id, job->slurm_id);
        job->awaits_requeue = is_gpu_oom;
        job->shards = 0;
    } else if (is_gpu_oom) {
        job->is_held_by_agent = true; /* also if no node is known now, and it is returned */
        controller_restore_recovering(controller, job);
    }
    controller->has_news = true;
}

void slurm_controller_crashed(
    struct slurm_controller *controller, uint32_t id, uint32_t restarts, int64_t now_us)
{
    struct tracked_job *job = id_map_get(&controller->by_id, id);
    controller->now_us = now_us > controller->now_us ? now_us : controller->now_us;
    if (!job)
        job = find_tracked(controller, id, SLURM_NO_INDEX);
    if (!job || !job->record)
        return;
    bool has_run = job->task && (job->phase == JOB_RUNNING || job->phase == JOB_EXAMINED);
    bool is_again = job->restarts == restarts + 1 && !job->task && job->reported != restarts + 1;
    if (is_again || (job->restarts == restarts && has_run))
        job->crashed = restarts + 2;
    if (is_again && !job->is_away && job->record->is_held) {
        job->ooms++; /* it was returned, because its error file says nothing */
        job->is_held_by_agent = true;
        job->reported = restarts + 1;
        controller->has_news = true;
        return;
    }
    if (job->restarts == restarts && has_run) {
        controller_apply(
            controller, (struct event){.kind = EVENT_EXTERNAL_SEEN, .task = job->task});
        exit_task(controller, job, FAILURE_GPU_OOM);
        id_map_remove(&controller->by_id, job->slurm_id);
        job->awaits_requeue = true;
    } else if (is_again && job->is_away) {
        job->is_held_by_agent = true;
        job->reported = restarts + 1;
        job->ooms++;
        controller_restore_recovering(controller, job);
        job->phase = JOB_WAITING;
        controller->has_news = true;
        return;
    } else {
        return;
    }
    job->ooms++;
    job->phase = JOB_WAITING;
    job->shards = 0;
    controller->has_news = true;
}
