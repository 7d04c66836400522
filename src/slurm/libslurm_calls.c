/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts libslurm's records to ours, and our changes to its requests. This was tested with Slurm
 * 22.05 and 24.11 (docs/slurm-controller.md):
 *
 *   - A pin is one request: node, shards, partition and note together, so that Slurm never sees
 *     half of it. A job that is in the run partition already gets the priority INFINITE, which ends
 *     a hold and lets Slurm compute its priority again.
 *   - The number of nodes is part of the pin: otherwise Slurm gives a pinned job with `-N 1-3` more
 *     nodes, and also a job with `-n 4` whose node has too few free CPUs.
 *   - "gres:shard:i2:12" is written; "gres/shard:..." is refused by 22.05 with slurmdbd.
 *   - A task of an array is named "12_3": the request splits it off.
 *   - Until 23.02.5 another GRES request is merged with the former one.
 *
 * slurm_load_jobs answers "unchanged" cheaply; then the last records stay.
 */
#include "slurm/libslurm_calls.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/units.h"
#include "slurm/licence_table.h"
#include "slurm/partition_check.h"
#include "spank/libslurm_versions.h"

/* Messages of slurmctld, and the records that point into them. */
struct loaded {
    job_info_msg_t *jobs;
    node_info_msg_t *nodes;
    license_info_msg_t *licences; /* NULL: no job wants any */
    struct slurm_job *job_list;
    struct slurm_node *node_list;
    struct slurm_licence *licence_list;
    void **owned; /* lists of nodes without brackets, and of CPUs */
    size_t n_owned, owned_capacity;
};

struct libslurm {
    const char *intake, *run;
    struct loaded now, before; /* before: the controller may still read it */
    bool is_known;             /* the version and what follows from it */
    unsigned loads;
    bool counts_memory, can_change_gres, hides_jobs;
    char trouble[SLURM_TEXT_MAX];
};

static void free_licences(struct loaded *loaded)
{
    free(loaded->licence_list);
    if (loaded->licences)
        slurm_free_license_info_msg(loaded->licences);
    loaded->licence_list = NULL;
    loaded->licences = NULL;
}

static void loaded_fini(struct loaded *loaded)
{
    for (size_t i = 0; i < loaded->n_owned; i++)
        free(loaded->owned[i]);
    free(loaded->owned);
    free(loaded->job_list);
    free(loaded->node_list);
    free_licences(loaded);
    if (loaded->jobs)
        slurm_free_job_info_msg(loaded->jobs);
    if (loaded->nodes)
        slurm_free_node_info_msg(loaded->nodes);
    *loaded = (struct loaded){0};
}

/* Returns a negative errno for the last error of libslurm. */
static int slurm_fault(struct fault *fault, const char *what)
{
    int error = libslurm_error();
    fault_set(fault, EIO, "%s: %s", what, slurm_strerror(error));
    switch (error) {
    case ESLURM_INVALID_JOB_ID:
    case ESLURM_ALREADY_DONE:
    case ESLURM_JOB_FINISHED:
        return -ENOENT;
    case ESLURM_ACCESS_DENIED:
    case ESLURM_USER_ID_MISSING:
        return -EACCES;
    case ESLURM_INVALID_GRES:
    case ESLURM_REQUESTED_NODE_CONFIG_UNAVAILABLE:
    case ESLURM_INVALID_TRES:
        return -EINVAL;
    case EAGAIN:
    case SLURMCTLD_COMMUNICATIONS_CONNECTION_ERROR:
    case SLURM_COMMUNICATIONS_CONNECTION_ERROR:
        return -EAGAIN;
    default:
        return -EIO;
    }
}

/* ---- records ---- */

/* Returns the allocation, to be released with `loaded`; NULL when memory is out. */
static void *own_memory(struct loaded *loaded, void *memory)
{
    if (memory && ARRAY_APPEND(loaded->owned, loaded->n_owned, loaded->owned_capacity, memory) == 0)
        return memory;
    free(memory);
    return NULL;
}

/* "n[0-2]" as "n0,n1,n2". Returns NULL without memory. */
static const char *expand_list(struct loaded *loaded, const char *list)
{
    char *text = NULL, *name;
    size_t size = 0;
    if (!list || !strchr(list, '['))
        return list;
    FILE *out = open_memstream(&text, &size);
    libslurm_hostlist names = out ? slurm_hostlist_create(list) : NULL;
    while (names && (name = slurm_hostlist_shift(names))) {
        fprintf(out, "%s%s", ftell(out) > 0 ? "," : "", name);
        free(name);
    }
    if (names)
        slurm_hostlist_destroy(names);
    if (out)
        fclose(out);
    return own_memory(loaded, text);
}

/* Slurm gives the first of several nodes all CPUs that are free there, and each other one at least
 * what a task needs. Returns NULL for a job of one node, and where they are unknown: the CPUs are
 * listed by the position among all nodes of the job, and a completing job lists only the nodes that
 * it has not left. */
static const int *node_cpus_of(struct loaded *loaded, const job_info_t *job)
{
    if (job->num_nodes < 2 || job->job_state & JOB_COMPLETING || libslurm_node_cpus(job, 0) < 0)
        return NULL;
    int *cpus = own_memory(loaded, calloc(job->num_nodes, sizeof *cpus));
    for (uint32_t i = 0; cpus && i < job->num_nodes; i++)
        cpus[i] = libslurm_node_cpus(job, i);
    return cpus;
}

static enum slurm_state state_of(uint32_t state)
{
    switch (state & JOB_STATE_BASE) {
    case JOB_PENDING:
        return SLURM_STATE_PENDING;
    case JOB_RUNNING:
        return SLURM_STATE_RUNNING;
    case JOB_SUSPENDED:
        return SLURM_STATE_SUSPENDED;
    case JOB_COMPLETE:
        return SLURM_STATE_COMPLETED;
    case JOB_CANCELLED:
        return SLURM_STATE_CANCELLED;
    case JOB_FAILED:
        return SLURM_STATE_FAILED;
    case JOB_TIMEOUT:
        return SLURM_STATE_TIMEOUT;
    case JOB_NODE_FAIL:
        return SLURM_STATE_NODE_FAIL;
    case JOB_OOM:
        return SLURM_STATE_OUT_OF_MEMORY;
    default:
        return SLURM_STATE_OTHER_END;
    }
}

/* In MiB, for each node or for each CPU. */
static int64_t memory_of(const job_info_t *job)
{
    uint64_t mib = job->pn_min_memory & ~MEM_PER_CPU;
    uint64_t nodes = job->num_nodes ? job->num_nodes : 1;
    if (job->pn_min_memory & MEM_PER_CPU)
        mib *= (job->num_cpus + nodes - 1) / nodes;
    return mib < (uint64_t)INT64_MAX / MIB ? (int64_t)mib * MIB : 0;
}

/* For a job that requests none, slurmctld returns its partition's. */
static int64_t time_limit_of(const job_info_t *job)
{
    bool is_known = job->time_limit != INFINITE && job->time_limit != NO_VAL;
    return is_known ? (int64_t)job->time_limit * 60 : 0;
}

static const char *other_gres_of(const job_info_t *job)
{
    const char *const texts[] = {job->tres_per_job, job->tres_per_socket, job->tres_per_task};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
        if (texts[i] && *texts[i])
            return texts[i];
    return NULL;
}

/* Slurm's words have underscores in some versions. */
static bool is_requeue_hold(const char *description)
{
    static const char words[] = "job requeued in held state";
    size_t i = 0;
    while (description && words[i] &&
           (description[i] == words[i] || (words[i] == ' ' && description[i] == '_')))
        i++;
    return i == sizeof words - 1;
}

static struct slurm_job job_of(struct loaded *loaded, const job_info_t *job)
{
    bool is_array = job->array_job_id != 0;
    return (struct slurm_job){
        .id = job->job_id,
        .array_id = job->array_job_id,
        .array_index = is_array && job->array_task_id != NO_VAL ? job->array_task_id
                                                                : SLURM_NO_INDEX,
        .array_indices = is_array && job->array_task_id == NO_VAL ? job->array_task_str : NULL,
        .uid = job->user_id,
        .gid = job->group_id,
        .state = state_of(job->job_state),
        .is_completing = job->job_state & JOB_COMPLETING,
        .is_held = job->priority == 0,
        .is_requeue_held = job->priority == 0 && is_requeue_hold(job->state_desc),
        .may_requeue = job->requeue && job->batch_flag,
        .submit_s = job->submit_time,
        .begin_s = job->eligible_time,
        .start_s = job->start_time,
        .end_s = job->end_time,
        .time_limit_s = time_limit_of(job),
        .restarts = job->restart_cnt,
        .priority = job->priority,
        .nice = (int)((int64_t)job->nice - NICE_OFFSET),
        .cpus = (int)job->num_cpus,
        .nodes = (int)job->num_nodes,
        .node_cpus = node_cpus_of(loaded, job),
        .memory_bytes = memory_of(job),
        .name = job->name,
        .partition = job->partition,
        .node_list = expand_list(loaded, job->nodes),
        .required_nodes = expand_list(loaded, job->req_nodes),
        .excluded_nodes = expand_list(loaded, job->exc_nodes),
        .features = job->features,
        .gres = job->tres_per_node,
        .other_gres = other_gres_of(job),
        .licences = job->licenses && *job->licenses ? job->licenses : NULL,
        .dependency = job->dependency,
        .admin_comment = job->admin_comment,
        .comment = job->comment,
        .work_dir = job->work_dir,
    };
}

static struct slurm_node node_of(const node_info_t *node)
{
    uint32_t base = node->node_state & NODE_STATE_BASE;
    uint32_t gone = NODE_STATE_NO_RESPOND | NODE_STATE_POWERED_DOWN | NODE_STATE_POWERING_DOWN;
    return (struct slurm_node){
        .name = node->name ? node->name : "",
        .is_down = base == NODE_STATE_DOWN || base == NODE_STATE_UNKNOWN ||
                   base == NODE_STATE_FUTURE || node->node_state & gone,
        .is_drained = node->node_state & (NODE_STATE_DRAIN | NODE_STATE_FAIL | NODE_STATE_MAINT),
        .cpus = node->cpus_efctv ? node->cpus_efctv : node->cpus,
        .memory_bytes = (int64_t)(node->real_memory - node->mem_spec_limit) * MIB,
        .gres = node->gres,
        .features = node->features_act ? node->features_act : node->features,
    };
}

/* ---- reading ---- */

enum { CONFIG_LOADS = 16 }; /* chosen: loads of jobs after which the configuration is read again */

/* Which of 22.05's restrictions hold, and what SelectTypeParameters counts. */
static int read_version(struct libslurm *slurm, struct fault *fault)
{
    slurm_conf_t *conf = NULL;
    unsigned major = 0, minor = 0, micro = 0;
    bool is_due = slurm->loads++ % CONFIG_LOADS == 0; /* it may have been reconfigured */
    if (slurm->is_known && !is_due)
        return 0;
    if (slurm_load_ctl_conf(0, &conf) != SLURM_SUCCESS)
        return slurm_fault(fault, "slurmctld's configuration cannot be read");
    sscanf(conf->version ? conf->version : "", "%u.%u.%u", &major, &minor, &micro);
    slurm->can_change_gres = SLURM_VERSION_NUM(major, minor, micro) >= SLURM_VERSION_NUM(23, 2, 6);
    slurm->hides_jobs = conf->private_data & PRIVATE_DATA_JOBS;
    slurm->counts_memory = libslurm_counts_memory(conf);
    slurm->is_known = true;
    libslurm_free_conf(conf);
    return 0;
}

/* Reads the licences again, if a job requests some. If slurmctld lists none, only Slurm decides.
 * When they cannot be read, the former ones stay: without any, all jobs that wait for one would be
 * pinned. */
static int load_licences(struct loaded *loaded, struct fault *fault)
{
    license_info_msg_t *from = NULL;
    if (!licences_are_wanted(loaded->job_list, loaded->jobs->record_count)) {
        free_licences(loaded);
        return 0;
    }
    if (slurm_load_licenses(0, &from, SHOW_ALL) != SLURM_SUCCESS)
        return slurm_fault(fault, "slurmctld's licences cannot be read");
    struct slurm_licence *list = calloc(from->num_lic + 1, sizeof *list);
    if (!list) {
        slurm_free_license_info_msg(from);
        return fault_set(fault, ENOMEM, "out of memory");
    }
    for (uint32_t i = 0; i < from->num_lic; i++)
        list[i] = (struct slurm_licence){
            from->lic_array[i].name, from->lic_array[i].total, from->lic_array[i].available};
    free_licences(loaded);
    loaded->licences = from;
    loaded->licence_list = list;
    return 0;
}

/* Makes the lists anew. The messages of `from` become those of slurm->now. */
static int take_messages(
    struct libslurm *slurm, job_info_msg_t *jobs, node_info_msg_t *nodes, struct fault *fault)
{
    struct loaded loaded = {.jobs = jobs, .nodes = nodes};
    loaded.job_list = calloc(jobs->record_count + 1, sizeof *loaded.job_list);
    loaded.node_list = calloc(nodes->record_count + 1, sizeof *loaded.node_list);
    for (uint32_t i = 0; i < jobs->record_count && loaded.job_list; i++)
        loaded.job_list[i] = job_of(&loaded, &jobs->job_array[i]);
    int r = loaded.job_list && loaded.node_list ? load_licences(&loaded, fault)
                                                : fault_set(fault, ENOMEM, "out of memory");
    if (r < 0) {
        loaded_fini(&loaded);
        return r;
    }
    for (uint32_t i = 0; i < nodes->record_count; i++)
        loaded.node_list[i] = node_of(&nodes->node_array[i]);
    loaded_fini(&slurm->before);
    slurm->before = slurm->now;
    slurm->now = loaded;
    return 0;
}

static int load_all(struct libslurm *slurm, struct fault *fault)
{
    job_info_msg_t *jobs = NULL;
    node_info_msg_t *nodes = NULL;
    time_t since = slurm->now.jobs ? slurm->now.jobs->last_update : 0;
    time_t nodes_since = slurm->now.nodes ? slurm->now.nodes->last_update : 0;
    if (slurm_load_node(nodes_since, &nodes, SHOW_ALL) != SLURM_SUCCESS) {
        if (libslurm_error() != SLURM_NO_CHANGE_IN_DATA)
            return slurm_fault(fault, "slurmctld's nodes cannot be read");
        nodes_since = 0;
    }
    int r = slurm_load_jobs(nodes ? 0 : since, &jobs, SHOW_ALL);
    if (r != SLURM_SUCCESS && libslurm_error() == SLURM_NO_CHANGE_IN_DATA)
        return load_licences(&slurm->now, fault);
    if (r != SLURM_SUCCESS) {
        if (nodes)
            slurm_free_node_info_msg(nodes);
        return slurm_fault(fault, "slurmctld's jobs cannot be read");
    }
    if (!nodes && slurm_load_node(0, &nodes, SHOW_ALL) != SLURM_SUCCESS) {
        slurm_free_job_info_msg(jobs);
        return slurm_fault(fault, "slurmctld's nodes cannot be read");
    }
    return take_messages(slurm, jobs, nodes, fault);
}

static int load_snapshot(void *context, struct fault *fault, struct slurm_snapshot *ret_snapshot)
{
    struct libslurm *slurm = context;
    int r = read_version(slurm, fault);
    if (r == 0)
        r = load_all(slurm, fault);
    if (r < 0) {
        slurm->is_known = false; /* another version may return it */
        return r;
    }
    partition_check(slurm->intake, slurm->run, slurm->trouble, sizeof slurm->trouble);
    *ret_snapshot = (struct slurm_snapshot){.jobs = slurm->now.job_list,
        .n_jobs = slurm->now.jobs->record_count,
        .nodes = slurm->now.node_list,
        .n_nodes = slurm->now.nodes->record_count,
        .licences = slurm->now.licence_list,
        .n_licences = slurm->now.licence_list ? slurm->now.licences->num_lic : 0,
        .counts_memory = slurm->counts_memory,
        .hides_jobs = slurm->hides_jobs,
        .can_change_gres = slurm->can_change_gres,
        .trouble = slurm->trouble};
    return 0;
}

static int read_script(void *context, uint32_t job, struct fault *fault, char **ret_script)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    int r = out ? slurm_job_batch_script(out, libslurm_job_id(job)) : SLURM_ERROR;
    if (out)
        fclose(out);
    if (r == SLURM_SUCCESS && text) {
        *ret_script = text;
        return 0;
    }
    free(text);
    int error = libslurm_error();
    if (error == ESLURM_JOB_SCRIPT_MISSING)
        return -ENOENT;
    return slurm_fault(fault, "its script cannot be read");
}

static int find_output_files(
    void *context, uint32_t job, char *error_path, char *output_path, size_t size)
{
    job_info_msg_t *found = NULL;
    if (slurm_load_job(&found, libslurm_job_id(job), SHOW_ALL) != SLURM_SUCCESS)
        return slurm_fault(NULL, "the job cannot be read");
    if (found->record_count == 0) {
        slurm_free_job_info_msg(found);
        return -ENOENT;
    }
    slurm_get_job_stderr(error_path, (int)size, &found->job_array[0]);
    slurm_get_job_stdout(output_path, (int)size, &found->job_array[0]);
    if (!*error_path) /* with 26.05, where the output file gets both */
        memcpy(error_path, output_path, size);
    slurm_free_job_info_msg(found);
    return 0;
}

/* ---- changing ---- */

static int update_once(job_desc_msg_t *update)
{
    job_array_resp_msg_t *answers = NULL;
    int r = slurm_update_job2(update, &answers);
    for (uint32_t i = 0; answers && r == SLURM_SUCCESS && i < answers->job_array_count; i++) {
        if (answers->error_code[i] != SLURM_SUCCESS) {
            libslurm_set_error(answers->error_code[i]);
            r = SLURM_ERROR;
        }
    }
    if (answers)
        slurm_free_job_array_resp(answers);
    return r;
}

/* Without slurmdbd a job has no association. Then slurmctld answers a change of its partition with
 * the errno of an earlier call in the same thread (_update_job in its job_mgr.c, 22.05 to 25.05).
 * With 24.11 this was EAGAIN for 5 of 7 requests of a test. Nothing has changed after such an
 * answer, and another thread may have no errno. */
enum { UPDATE_TRIES = 12, UPDATE_PAUSE_US = 5000 }; /* chosen: 60 ms, of this thread of the pool */

static int update_job(job_desc_msg_t *update, struct fault *fault)
{
    int r = update_once(update);
    for (int i = 1; i < UPDATE_TRIES && r != SLURM_SUCCESS && libslurm_error() == EAGAIN; i++) {
        usleep(UPDATE_PAUSE_US);
        r = update_once(update);
    }
    return r == SLURM_SUCCESS ? 0 : slurm_fault(fault, "slurmctld refuses the change");
}

static int requeue_job(char *id, struct fault *fault)
{
    job_array_resp_msg_t *answers = NULL;
    int r = slurm_requeue2(id, JOB_REQUEUE_HOLD, &answers);
    if (answers)
        slurm_free_job_array_resp(answers);
    return r == SLURM_SUCCESS ? 0 : slurm_fault(fault, "slurmctld does not requeue it");
}

static char *text_for_slurm(const char *text)
{
    return *text ? (char *)(uintptr_t)text : NULL;
}

/* Before it is moved to the intake, so that it is not held there if slurmctld crashes in between;
 * its start is delayed. */
static int release_job(char *id, int64_t begin_s, struct fault *fault)
{
    job_desc_msg_t update;
    slurm_init_job_desc_msg(&update);
    update.job_id_str = id;
    update.priority = INFINITE;
    update.begin_time = begin_s;
    return update_job(&update, fault);
}

/* Chosen: for longer than slurmctld or the controller takes to start again. */
enum { RENEWAL_DELAY_S = 300 };

/* In a partition that is DOWN, slurmctld does not judge a dependency again that it has declared as
 * never satisfied (22.05). So such a job is in the run partition while its dependency is set, and
 * waits there for a job that has not ended. If it cannot be moved back here, it is moved later,
 * like every job without a pin. Its start is delayed, so that it does not start without a GPU until
 * then. */
static int renew_dependency(
    const struct libslurm *slurm, char *id, const struct slurm_change *change, struct fault *fault)
{
    job_desc_msg_t update;
    time_t now = time(NULL), delayed = now + RENEWAL_DELAY_S;
    slurm_init_job_desc_msg(&update);
    update.job_id_str = id;
    update.dependency = text_for_slurm(change->dependency);
    if (!change->moves)
        return update_job(&update, fault);
    update.partition = text_for_slurm(slurm->run);
    update.begin_time = change->begin_s > delayed ? change->begin_s : delayed;
    int r = update_job(&update, fault);
    if (r < 0)
        return r;
    update.dependency = NULL;
    update.partition = text_for_slurm(slurm->intake);
    update.begin_time = change->begin_s > now ? change->begin_s : now;
    return update_job(&update, fault);
}

static int change_job(void *context, const struct slurm_change *change, struct fault *fault)
{
    const struct libslurm *slurm = context;
    job_desc_msg_t update;
    char id[32];
    if (change->index == SLURM_NO_INDEX)
        snprintf(id, sizeof id, "%" PRIu32, change->job);
    else
        snprintf(id, sizeof id, "%" PRIu32 "_%" PRIu32, change->job, change->index);
    slurm_init_job_desc_msg(&update);
    update.job_id_str = id;
    update.admin_comment = text_for_slurm(change->note);
    update.comment = text_for_slurm(change->comment);
    if (change->begin_s)
        update.begin_time = change->begin_s;
    if (change->kind == SLURM_PIN) {
        update.req_nodes = text_for_slurm(change->nodes);
        update.min_nodes = update.max_nodes = (uint32_t)change->n_nodes;
        update.tres_per_node = text_for_slurm(change->gres);
        if (change->moves)
            update.partition = text_for_slurm(slurm->run);
        else
            update.priority = INFINITE;
    } else if (change->kind == SLURM_RETURN) {
        int r = change->releases ? release_job(id, change->begin_s, fault) : 0;
        if (r < 0)
            return r;
        update.partition = text_for_slurm(slurm->intake);
    } else if (change->kind == SLURM_REQUEUE) {
        int r = requeue_job(id, fault);
        if (r < 0)
            return r;
    } else if (change->kind == SLURM_DEPEND) {
        return renew_dependency(slurm, id, change, fault);
    }
    return update_job(&update, fault);
}

int libslurm_calls_init(
    const char *intake_partition, const char *run_partition, struct slurm_calls *ret_calls)
{
    struct libslurm *slurm = calloc(1, sizeof *slurm);
    if (!slurm)
        return -ENOMEM;
    *slurm = (struct libslurm){.intake = intake_partition, .run = run_partition};
    setenv(
        "SLURM_BITSTR_LEN", "0", 1); /* otherwise libslurm cuts lists of array tasks at 64 bytes */
    slurm_init(NULL);
    *ret_calls = (struct slurm_calls){.context = slurm,
        .load = load_snapshot,
        .change = change_job,
        .read_script = read_script,
        .find_output_files = find_output_files};
    return 0;
}

void libslurm_calls_fini(struct slurm_calls *calls)
{
    struct libslurm *slurm = calls->context;
    if (!slurm)
        return;
    loaded_fini(&slurm->now);
    loaded_fini(&slurm->before);
    free(slurm);
    slurm_fini();
}
