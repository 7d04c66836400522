/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of a task's values. A row is a value: the member of the TASK object (docs/protocol.md)
 * that has it, and then its names with the form in which each program writes it:
 *
 *     exec_s   colloc history   run                  1:35
 *              squeue           %M, -O TimeUsed      1:35
 *              sacct            Elapsed, ElapsedRaw  00:01:35, 95
 *
 * Values of Slurm that have no meaning here (licences, sockets) have rows without a function: they
 * are what Slurm 22.05 prints of a job without them; tests/unit/cli/test_slurm_names.py has its
 * lines. So is the word for an unknown value, which differs between Slurm's programs.
 */
#include "cli/task_fields.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "base/text.h"
#include "cli/slurm_states.h"
#include "cli/table.h"

/* Forms of the table below. */
#define ALWAYS(text)                                                                               \
    {                                                                                              \
        NULL, NULL, text                                                                           \
    }
#define AS(format, otherwise)                                                                      \
    {                                                                                              \
        format, NULL, otherwise                                                                    \
    }
#define BY(write, otherwise)                                                                       \
    {                                                                                              \
        NULL, write, otherwise                                                                     \
    }

#define UNLIMITED "UNLIMITED"
#define NULL_TEXT "(null)" /* Slurm's word */
#define CLUSTER   "colloc" /* there is one cluster, with one partition */

static const struct task_field fields[] = {
    /* of colloc, in the order in which they are listed */
    {.key = "id",
        .order = order_of_id,
        .columns = {{"id", "ID", TABLE_RIGHT, {scalar_text, write_task_id, "-"}}},
        .queue = {{'i', "JOBID", "jobarrayid", BY(write_task_id, "")}},
        .account = {{"JobID", -12, BY(write_task_id, ""), false}}},
    {.key = "name",
        .columns = {{"name", "NAME", TABLE_CUT, AS(scalar_text, "-")}},
        .queue = {{'j', "NAME", "name", AS(slurm_text, "")}},
        .account = {{"JobName", 10, AS(slurm_text, ""), false}}},
    {.key = "user",
        .columns = {{"user", "USER", 0, AS(scalar_text, "-")}},
        .queue = {{'u', "USER", "username", AS(slurm_text, "")}},
        .account = {{"User", 9, AS(slurm_text, ""), true}}},
    {.key = "state",
        .columns = {{"state", "STATE", 0, AS(scalar_text, "-")}},
        .queue = {{'T', "STATE", "state", BY(write_state, "")},
            {'t', "ST", "statecompact", BY(write_state_letters, "")}},
        .account = {{"State", 10, BY(write_account_state, ""), false}}},
    {.key = "submitted_at",
        .columns = {{"submitted", "SUBMITTED", TABLE_WIDEST, AS(short_moment_text, "-")}},
        .queue = {{'V', "SUBMIT_TIME", "submittime", AS(slurm_moment_text, "Unknown")}},
        .account = {{"Submit", 19, AS(slurm_moment_text, "Unknown"), false},
            {"Eligible", 19, AS(slurm_moment_text, "Unknown"), false}}},
    {.key = "started_at",
        .needs_start = true,
        .columns = {{"started", "STARTED", TABLE_WIDEST, AS(short_moment_text, "-")}},
        .queue = {{'S', "START_TIME", "starttime", AS(slurm_moment_text, "N/A")}},
        .account = {{"Start", 19, AS(slurm_moment_text, "Unknown"), false}}},
    {.key = "ended_at",
        .columns = {{"ended", "ENDED", 0, AS(short_moment_text, "-")}},
        .queue = {{'e', "END_TIME", "endtime", AS(slurm_moment_text, "N/A")}},
        .account = {{"End", 19, AS(slurm_moment_text, "Unknown"), false}}},
    {.columns = {{"time", "TIME", TABLE_RIGHT, BY(write_time, "-")}}},
    {.key = "wait_s",
        .columns = {{"wait", "WAIT", TABLE_RIGHT | TABLE_WIDE, AS(seconds_text, "-")}}},
    {.key = "exec_s",
        .needs_start = true,
        .order = order_of_run,
        .columns = {{"run", "RUN", TABLE_RIGHT, AS(seconds_text, "-")}},
        .queue = {{'M', "TIME", "timeused", AS(slurm_time_text, "0:00")}},
        .account = {{"Elapsed", 10, AS(slurm_elapsed_text, "00:00:00"), false},
            {"ElapsedRaw", 10, AS(slurm_number_text, "0"), false}}},
    {.key = "jct_s", .columns = {{"total", "TOTAL", TABLE_RIGHT, AS(seconds_text, "-")}}},
    {.key = "gpus_requested",
        .columns = {{"gpus", "GPUS", TABLE_RIGHT, AS(scalar_text, "-")}},
        .queue = {{'b', "TRES_PER_NODE", "tres-per-node", BY(write_gres, "N/A")}}},
    {.columns = {{"gpu", "GPU", 0, BY(write_gpus, "-")}}},
    {.columns = {{"place", "GPU(REASON)", TABLE_BELOW, BY(write_long_place, "-")},
         {"short-place", "GPU(REASON)", 0, BY(write_place, "-")}},
        .queue = {{'R', "NODELIST(REASON)", "reasonlist", BY(write_host_or_reason, "")}}},
    {.columns = {{"start", "START", 0, BY(write_start, "-")}}},
    {.key = "attempt_count",
        .columns = {{"attempts", "ATTEMPTS", TABLE_RIGHT, AS(scalar_text, "-")}}},
    {.key = "oom_count", .columns = {{"oom", "OOM", TABLE_RIGHT, AS(scalar_text, "-")}}},
    {.key = "need_mib", .columns = {{"memory", "MEMORY", TABLE_RIGHT, AS(mib_text, "-")}}},
    {.key = "mem_peak_mib",
        .columns = {{"peak", "PEAK", TABLE_RIGHT | TABLE_WIDE, AS(mib_text, "-")}}},
    {.key = "smact_mean",
        .columns = {{"smact", "SMACT", TABLE_RIGHT | TABLE_WIDEST, AS(fraction_text, "-")}}},
    {.key = "steps_per_s_mean",
        .columns = {{"steps", "STEPS/S", TABLE_RIGHT | TABLE_WIDEST, AS(rate_text, "-")}}},
    {.key = "energy_j",
        .columns = {{"energy", "ENERGY", TABLE_RIGHT | TABLE_WIDEST, AS(joules_text, "-")}}},
    {.key = "policy", .columns = {{"policy", "POLICY", 0, AS(scalar_text, "-")}}},
    {.key = "sharing", .columns = {{"sharing", "SHARING", 0, AS(scalar_text, "-")}}},
    {.key = "estimator", .columns = {{"estimator", "ESTIMATOR", 0, AS(scalar_text, "-")}}},
    {.columns = {{"exit", "EXIT", TABLE_WIDE, BY(write_exit, "-")}},
        .account = {{"ExitCode", 8, BY(write_exit, "0:0"), false}}},
    {.key = "reason",
        .columns = {{"reason", "REASON", TABLE_REST, BY(write_reason, "-")}},
        .queue = {{'r', "REASON", "reason", AS(slurm_text, "None")}},
        .account = {{"Reason", 22, AS(slurm_text, "None"), true}}},
    {.key = "command",
        .columns = {{"command", "COMMAND", TABLE_REST, AS(scalar_text, "-")}},
        .queue = {{'o', "COMMAND", "command", AS(slurm_text, NULL_TEXT)}}},

    /* of Slurm only */
    {.key = "id",
        .order = order_of_id,
        .queue = {{'A', "JOBID", "jobid", BY(write_raw_id, "")}},
        .account = {{"JobIDRaw", -12, BY(write_raw_id, ""), false}}},
    {.queue = {{'F', "ARRAY_JOB_ID", "arrayjobid", BY(write_array_id, "")}}},
    {.key = "array_index",
        .queue = {{'K', "ARRAY_TASK_ID", "arraytaskid", AS(slurm_number_text, "N/A")}}},
    {.key = "uid",
        .queue = {{'U', "UID", "userid", AS(slurm_number_text, "0")}},
        .account = {{"UID", 6, AS(slurm_number_text, "0"), true}}},
    {.queue = {{'g', "GROUP", "groupname", BY(write_group, "")}},
        .account = {{"Group", 9, BY(write_group, ""), true}}},
    {.queue = {{'G', "GROUP", "groupid", BY(write_gid, "")}},
        .account = {{"GID", 6, BY(write_gid, ""), true}}},
    {.key = "time_limit_s",
        .order = order_of_limit,
        .queue = {{'l', "TIME_LIMIT", "timelimit", AS(slurm_time_text, UNLIMITED)}},
        .account = {{"Timelimit", 10, AS(slurm_elapsed_text, UNLIMITED), true},
            {"TimelimitRaw", 12, AS(slurm_minutes_text, UNLIMITED), true}}},
    {.order = order_of_time_left,
        .queue = {{'L', "TIME_LEFT", "timeleft", BY(write_time_left, UNLIMITED)}}},
    {.needs_start = true,
        .queue = {{'N', "NODELIST", "nodelist", BY(write_host, "")},
            {'B', "EXEC_HOST", "batchhost", BY(write_host, "n/a")}},
        .account = {{"NodeList", 15, BY(write_host, "None assigned"), false}}},
    {.key = "cpus",
        .queue = {{'C', "CPUS", "numcpus maxcpus", AS(slurm_number_text, "1")}},
        .account = {{"NCPUS", 10, AS(slurm_number_text, "1"), false},
            {"AllocCPUS", 10, AS(slurm_number_text, "1"), false},
            {"ReqCPUS", 8, AS(slurm_number_text, "1"), false}}},
    {.queue = {{0, "TRES_ALLOC", "tres-alloc", BY(write_resources, "")}},
        .account = {{"AllocTRES", 10, BY(write_resources, ""), false},
            {"ReqTRES", 10, BY(write_resources, ""), true}}},
    {.key = "processes", .account = {{"NTasks", 8, AS(slurm_number_text, ""), false}}},
    {.key = "waits_for",
        .queue = {{'E', "DEPENDENCY", "dependency", AS(slurm_list_text, NULL_TEXT)}}},
    {.key = "cwd",
        .queue = {{'Z', "WORK_DIR", "workdir", AS(slurm_text, NULL_TEXT)}},
        .account = {{"WorkDir", 20, AS(slurm_text, NULL_TEXT), true}}},
    {.key = "priority",
        .queue = {{'Q', "PRIORITY", "priority prioritylong", AS(slurm_priority_text, "2")}},
        .account = {{"Priority", 10, AS(slurm_priority_text, "2"), true}}},

    /* the same of all tasks */
    {.queue = {{'D', "NODES", "nodes numnodes", ALWAYS("1")}},
        .account = {{"NNodes", 8, ALWAYS("1"), false}, {"AllocNodes", 10, ALWAYS("1"), false},
            {"ReqNodes", 8, ALWAYS("1"), false}}},
    {.queue = {{'P', "PARTITION", "partition", ALWAYS(CLUSTER)}},
        .account = {{"Partition", 10, ALWAYS(CLUSTER), true}}},
    {.account = {{"Cluster", 10, ALWAYS(CLUSTER), false}}},
    {.queue = {{'a', "ACCOUNT", "account", ALWAYS(NULL_TEXT)}},
        .account = {{"Account", 10, ALWAYS(""), false}}},
    {.queue = {{'k', "COMMENT", "comment", ALWAYS(NULL_TEXT)}},
        .account = {{"Comment", 14, ALWAYS(""), false}}},
    {.queue = {{'q', "QOS", "qos", ALWAYS(NULL_TEXT)}}, .account = {{"QOS", 10, ALWAYS(""), true}}},
    {.queue = {{'v', "RESERVATION", "reservation", ALWAYS(NULL_TEXT)}},
        .account = {{"Reservation", 20, ALWAYS(""), true}}},
    {.queue = {{'w', "WCKEY", "wckey", ALWAYS(NULL_TEXT)}},
        .account = {{"WCKey", 10, ALWAYS(""), true}}},
    {.queue = {{'c', "MIN_CPUS", "mincpus", ALWAYS("1")}}},
    {.queue = {{'d', "MIN_TMP_DISK", "mintmpdisk", ALWAYS("0")}}},
    {.queue = {{'f', "FEATURES", "feature", ALWAYS(NULL_TEXT)}}},
    {.queue = {{'h', "OVER_SUBSCRIBE", "oversubscribe", ALWAYS("OK")}}},
    {.queue = {{'H', "SOCKETS_PER_NODE", "sockets", ALWAYS("*")}}},
    {.queue = {{'I', "CORES_PER_SOCKET", "cores", ALWAYS("*")}}},
    {.queue = {{'J', "THREADS_PER_CORE", "threads", ALWAYS("*")}}},
    {.queue = {{'m', "MIN_MEMORY", "minmemory", ALWAYS("0")}}},
    {.queue = {{'n', "REQ_NODES", "reqnodes", ALWAYS("")}}},
    {.queue = {{'O', "CONTIGUOUS", "contiguous", ALWAYS("0")}}},
    {.queue = {{'W', "LICENSES", "licenses", ALWAYS(NULL_TEXT)}}},
    /* squeue 22.05 has no name of 'x'; "excnodes", which Open OnDemand sends, is that of later ones */
    {.queue = {{'x', "EXC_NODES", "excnodes", ALWAYS("")}}},
    {.queue = {{'X', "CORE_SPEC", "corespec", ALWAYS("N/A")}}},
    {.queue = {{'y', "NICE", "nice", ALWAYS("0")}}},
    {.queue = {{'Y', "SCHEDNODES", "schednodes", ALWAYS(NULL_TEXT)}}},
    {.queue = {{'z', "S:C:T", "sct", ALWAYS("*:*:*")}}},
    {.account = {{"DerivedExitCode", 15, ALWAYS("0:0"), false}}},
    {.account = {{"ReqMem", 10, ALWAYS("0"), false}}},
    {.account = {{"MaxRSS", 10, ALWAYS(""), false}}},
    {.account = {{"MaxVMSize", 10, ALWAYS(""), false}}},
    {.account = {{"AveRSS", 10, ALWAYS(""), false}}},
    {.account = {{"TotalCPU", 10, ALWAYS("00:00:00"), false}}},
};

/* ---- names ---- */

/* Visits all entries of one kind: `member` of the rows. */
#define FOR_EACH_NAME(field, entry, member)                                                        \
    for (const struct task_field *field = fields; field < fields + ARRAY_SIZE(fields); field++)    \
        for (__typeof__(&field->member[0]) entry = field->member;                                  \
             entry < field->member + ARRAY_SIZE(field->member); entry++)

static struct task_name find_column(const char *name, size_t size)
{
    FOR_EACH_NAME(field, column, columns)
    if (column->name && strlen(column->name) == size && strncmp(column->name, name, size) == 0)
        return (struct task_name){.field = field,
            .form = &column->form,
            .name = column->name,
            .header = column->header,
            .flags = column->flags};
    return (struct task_name){0};
}

static struct task_name name_in_queue(
    const struct task_field *field, const struct queue_field *entry)
{
    return (struct task_name){.field = field,
        .form = &entry->form,
        .header = entry->header,
        .needs_start = field->needs_start};
}

struct task_name task_name_of_letter(char letter)
{
    FOR_EACH_NAME(field, entry, queue)
    if (letter && entry->letter == letter)
        return name_in_queue(field, entry);
    return (struct task_name){0};
}

/* Is it one of the words? */
static bool has_word(const char *words, const char *name, size_t size)
{
    for (const char *at = words; size && at && *at; at += strcspn(at, " "), at += *at == ' ')
        if (strcspn(at, " ") == size && strncasecmp(at, name, size) == 0)
            return true;
    return false;
}

struct task_name task_name_of_queue(const char *name, size_t size)
{
    FOR_EACH_NAME(field, entry, queue)
    if (has_word(entry->names, name, size))
        return name_in_queue(field, entry);
    return (struct task_name){0};
}

struct task_name task_name_of_account(const char *name, size_t size)
{
    FOR_EACH_NAME(field, entry, account)
    if (has_word(entry->name, name, size))
        return (struct task_name){.field = field,
            .form = &entry->form,
            .name = entry->name,
            .header = entry->name,
            .width = entry->width,
            .needs_start = field->needs_start,
            .is_of_job = entry->is_of_job};
    return (struct task_name){0};
}

static int compare_texts(const void *a, const void *b)
{
    return strcasecmp(*(const char *const *)a, *(const char *const *)b);
}

void task_names_of_account(void (*on_name)(const char *name, void *context), void *context)
{
    const char *names[ARRAY_SIZE(fields) * ARRAY_SIZE(fields[0].account)];
    size_t count = 0;
    FOR_EACH_NAME(field, entry, account)
    if (entry->name)
        names[count++] = entry->name;
    qsort(names, count, sizeof *names, compare_texts);
    for (size_t i = 0; i < count; i++)
        on_name(names[i], context);
}

static int unknown_column(const char *name, size_t size, struct fault *fault)
{
    char all[400] = "";
    FOR_EACH_NAME(field, column, columns)
    if (column->name)
        snprintf(
            all + strlen(all), sizeof all - strlen(all), "%s%s", *all ? ", " : "", column->name);
    return fault_set(fault, EINVAL, "'%.*s': no such field: give some of %s",
        (int)(size < 40 ? size : 40), name, all);
}

/* Columns are in the order in which they are named; a name may be there twice. */
int task_names_parse(
    const char *text, struct fault *fault, struct task_name ret_names[TASK_NAMES_MAX])
{
    int count = 0;
    for (const char *name = text;; name++) {
        size_t size = strcspn(name, ",");
        const struct task_name found = find_column(name, size);
        if (!found.field)
            return unknown_column(name, size, fault);
        if (count == TASK_NAMES_MAX)
            return fault_set(fault, EINVAL, "more than %d fields", TASK_NAMES_MAX);
        ret_names[count++] = found;
        name += size;
        if (*name == '\0')
            return count;
    }
}

/* ---- values ---- */

static bool write_known(const struct task_name *name, const json_t *task, FILE *out)
{
    char cell[CELL_SIZE];
    const struct task_form *form = name->form;
    if (name->needs_start && !slurm_has_started(task))
        return false;
    if (form->write)
        return form->write(task, out);
    const char *text = form->format ? form->format(json_object_get(task, name->field->key), cell)
                                    : NULL;
    if (text)
        fputs(text, out);
    return text != NULL;
}

void task_name_write(const struct task_name *name, const json_t *task, FILE *out)
{
    bool is_empty = name->is_of_job && json_object_get(task, STEP_MEMBER);
    if (!is_empty && !write_known(name, task, out))
        fputs(name->form->otherwise, out);
}

char *task_name_text(const struct task_name *name, const json_t *task)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    task_name_write(name, task, out);
    fclose(out);
    if (text)
        text_make_printable(text, '?');
    return text;
}
