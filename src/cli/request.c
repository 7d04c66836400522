/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON of POST /v1/tasks from a task description; the option table names each member.
 *
 *     --memory=12GiB          "memory_mib": 12288.0
 *     --time=2h               "time_limit_s": 7200.0
 *     train.sh --lr 0.1       "script": "#!/bin/bash ...", "arguments": ["--lr", "0.1"]
 *
 * The request has the text of the script, not its path: a later edit does not change a waiting
 * task. It also has the current folder, the umask and the environment, as with sbatch. A script
 * with #SBATCH lines also gets the variables that Slurm would set.
 */
#include "cli/request.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/print.h"
#include "cli/session.h"
#include "taskfile/command_line.h"
#include "taskfile/output_pattern.h"

/* Sizes become MiB and times seconds: those are the units of docs/protocol.md. */
static json_t *value_json(const struct option_spec *spec, const struct option_value *value)
{
    switch (spec->kind) {
    case OPTION_FLAG:
        return json_boolean(value->number);
    case OPTION_INTEGER:
        return json_integer(value->number);
    case OPTION_SIZE:
        return json_real((double)value->number / (double)MIB);
    case OPTION_SHARE:
    case OPTION_TIMES:
        return json_real((double)value->number / MILLION);
    case OPTION_DURATION:
    case OPTION_MOMENT:
        return json_real((double)value->number / (double)SECOND_US);
    default:
        return json_string(value->text);
    }
}

void request_add_options(json_t *request, const struct option_value *values)
{
    for (size_t i = 0; i < task_option_count; i++)
        if (values[i].set && i != TASK_SUMMARY)
            json_object_set_new(
                request, task_options[i].field, value_json(&task_options[i], &values[i]));
}

/* A large one stays in its file, which the daemon opens as its user. */
static int add_summary(json_t *request, const struct task_description *task, struct fault *fault)
{
    const char *file = task->values[TASK_SUMMARY].text, *key = "text", *value = task->summary;
    char path[PATH_MAX];
    if (strlen(task->summary) > REQUEST_SUMMARY_MAX) {
        if (!realpath(file, path))
            return fault_set(fault, errno, "%s: %s", file, strerror(errno));
        key = "path";
        value = path;
    }
    json_t *summary = json_pack("{ss,ss}", "name", path_name(file), key, value);
    if (!summary)
        return fault_set(fault, EILSEQ, "%s: its name is not UTF-8 text", file);
    json_object_set_new(request, task_options[TASK_SUMMARY].field, summary);
    return 0;
}

/* In a task that submits another one: what describes the first is not the second's. */
static bool is_of_this_task(const char *entry)
{
    static const char *const prefixes[] = {"SLURM_", "SLURMD_NODENAME=", "COLLOC_ARRAY_"};
    if (strncmp(entry, "COLLOC_SLURM_", 13) == 0)
        return true;
    for (size_t i = 0; i < ARRAY_SIZE(prefixes) && getenv("COLLOC_TASK_ID"); i++)
        if (strncmp(entry, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

/* JSON has no place for other bytes than UTF-8: such a variable is left out, with a warning. */
static void add_entry(json_t *object, const char *entry)
{
    const char *equals = strchr(entry, '=');
    if (!equals || equals == entry || is_of_this_task(entry))
        return;
    json_t *value = json_string(equals + 1), *key = json_stringn(entry, (size_t)(equals - entry));
    if (value && key)
        json_object_set(object, json_string_value(key), value);
    else
        print_error(
            "warning: environment variable %.*s is not UTF-8 text: the task does not get it",
            (int)(key ? equals - entry : 0), entry);
    json_decref(value);
    json_decref(key);
}

/* With --export=NONE: what a login sets, and colloc's own variables. */
static bool is_basic(const char *entry)
{
    static const char *const names[] = {"HOME", "USER", "LOGNAME", "SHELL"};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        if (strncmp(entry, names[i], strlen(names[i])) == 0 && entry[strlen(names[i])] == '=')
            return true;
    return strncmp(entry, "COLLOC_", 7) == 0 || strncmp(entry, "SLURM_", 6) == 0;
}

static json_t *environment_json(const struct slurm_facts *slurm)
{
    json_t *object = json_object();
    if (slurm->is_export_only)
        add_entry(object, "PATH=/usr/local/bin:/usr/bin:/bin");
    for (char **entry = environ; *entry; entry++)
        if (!slurm->is_export_only || is_basic(*entry))
            add_entry(object, *entry);
    return object;
}

static json_t *arguments_json(const char *const *arguments, struct fault *fault)
{
    json_t *array = json_array();
    for (size_t i = 0; arguments && arguments[i]; i++)
        if (json_array_append_new(array, json_string(arguments[i])) < 0) {
            fault_set(fault, EILSEQ, "argument %zu of the task is not UTF-8 text", i + 1);
            json_decref(array);
            return NULL;
        }
    return array;
}

static mode_t current_umask(void)
{
    mode_t mask = umask(0);
    umask(mask);
    return mask;
}

void request_name_command(json_t *request, const char *const *words)
{
    char *text = command_line_text(words);
    if (text)
        json_object_set_new(request, "command", json_string(text));
    free(text);
}

/* The current folder, or the one that the task is to run in instead. */
static int find_folder(const char *folder, char path[PATH_MAX], struct fault *fault)
{
    if (!folder && getcwd(path, PATH_MAX))
        return 0;
    if (folder && realpath(folder, path))
        return 0;
    return fault_set(fault, errno, "cannot find the path of %s: %s",
        folder ? folder : "the current folder", strerror(errno));
}

static void set_variable(json_t *environment, const char *name, const char *value)
{
    json_t *text = json_string(value);
    if (text)
        json_object_set_new(environment, name, text);
}

/* "A=1,B": B has the value that it has here. */
static void add_exported(json_t *environment, const char *exported)
{
    for (const char *at = exported; at && *at; at += strcspn(at, ","), at += *at == ',') {
        size_t name = strcspn(at, "=,"), size = strcspn(at, ",");
        char *key = strndup(at, name);
        const char *here = key && name == size ? getenv(key) : NULL;
        json_t *value = name < size ? json_stringn(at + name + 1, size - name - 1)
                        : here      ? json_string(here)
                                    : NULL;
        if (key && value)
            json_object_set(environment, key, value);
        json_decref(value);
        free(key);
    }
}

static void set_number(json_t *environment, const char *name, int64_t number)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, number);
    set_variable(environment, name, text);
}

/* The batch script is the first of its processes, as with Slurm. */
static void add_process_variables(json_t *environment, const struct slurm_facts *slurm)
{
    static const char *const zeros[] = {
        "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_GTIDS"};
    int tasks = slurm->tasks ? slurm->tasks : 1;
    static const char *const totals[] = {"SLURM_NTASKS", "SLURM_NPROCS", "SLURM_TASKS_PER_NODE"};
    for (size_t i = 0; i < ARRAY_SIZE(zeros); i++)
        set_number(environment, zeros[i], 0);
    for (size_t i = 0; i < ARRAY_SIZE(totals); i++)
        set_number(environment, totals[i], tasks);
    if (slurm->tasks_per_node)
        set_number(environment, "SLURM_NTASKS_PER_NODE", slurm->tasks_per_node);
    if (slurm->gpus_per_task)
        set_number(environment, "SLURM_GPUS_PER_TASK", slurm->gpus_per_task);
    if (slurm->cpus_per_task)
        set_number(environment, "SLURM_CPUS_PER_TASK", slurm->cpus_per_task);
}

static void add_place_variables(json_t *environment, const struct slurm_facts *slurm)
{
    char text[PATH_MAX], user[LOGIN_NAME_MAX];
    const char *partition = slurm->partition ? slurm->partition : "colloc";
    set_number(environment, "SLURM_JOB_NUM_NODES", 1);
    set_number(environment, "SLURM_NNODES", 1);
    set_number(environment, "SLURM_JOB_UID", (int64_t)geteuid());
    set_variable(environment, "SLURM_JOB_USER", own_user_name(user, sizeof user));
    set_variable(environment, "SLURM_JOB_PARTITION", partition);
    if (slurm->account)
        set_variable(environment, "SLURM_JOB_ACCOUNT", slurm->account);
    if (slurm->qos)
        set_variable(environment, "SLURM_JOB_QOS", slurm->qos);
    if (getcwd(text, sizeof text))
        set_variable(environment, "SLURM_SUBMIT_DIR", text);
    if (gethostname(text, sizeof text) != 0)
        return;
    static const char *const of_the_server[] = {"SLURM_SUBMIT_HOST", "SLURMD_NODENAME",
        "SLURM_JOB_NODELIST", "SLURM_NODELIST", "SLURM_CLUSTER_NAME"};
    for (size_t i = 0; i < ARRAY_SIZE(of_the_server); i++)
        set_variable(environment, of_the_server[i], text);
}

/* The variables of sbatch that are known here. The first one makes the daemon add the others. */
static void add_slurm_variables(json_t *environment, const struct task_description *task)
{
    const struct option_value *name = &task->values[TASK_NAME];
    set_variable(environment, "COLLOC_SLURM_SCRIPT", "1");
    set_variable(environment, "SLURM_JOB_NAME", name->set ? name->text : "task");
    add_process_variables(environment, &task->slurm);
    add_place_variables(environment, &task->slurm);
    if (task->values[TASK_HOST_MEMORY].set)
        set_number(environment, "SLURM_MEM_PER_NODE", task->values[TASK_HOST_MEMORY].number / MIB);
    add_exported(environment, task->slurm.exported);
}

/* Fills in the patterns of file names that are known now. */
static int add_outputs(json_t *request, const struct task_description *task, struct fault *fault)
{
    static const enum task_option outputs[] = {TASK_OUTPUT, TASK_ERROR};
    char host[256] = "localhost", user[LOGIN_NAME_MAX];
    gethostname(host, sizeof host - 1);
    for (size_t i = 0; i < ARRAY_SIZE(outputs); i++) {
        const struct option_value *value = &task->values[outputs[i]];
        if (!value->set)
            continue;
        char *path = output_pattern_fill(value->text, own_user_name(user, sizeof user), host, 0);
        if (!path)
            return fault_set(fault, ENOMEM, "out of memory");
        json_object_set_new(request, task_options[outputs[i]].field, json_string(path));
        free(path);
    }
    return 0;
}

/* The user's settings for all tasks are in the environment. An address alone requests no
 * messages. */
static void add_notify_default(json_t *request)
{
    static const char *const defaults[][2] = {
        {"notify", "COLLOC_NOTIFY"}, {"notify_to", "COLLOC_NOTIFY_TO"}};
    for (size_t i = 0; i < 2; i++) {
        const char *value = getenv(defaults[i][1]);
        bool is_wanted = i == 0 || json_object_get(request, "notify");
        if (value && *value && is_wanted && !json_object_get(request, defaults[i][0]))
            json_object_set_new(request, defaults[i][0], json_string(value));
    }
}

/* Everything that the task takes from where it was submitted is in the request: folder,
 * environment, umask. The daemon looks nothing up. */
int request_create(const struct task_description *task, const char *const *arguments,
    struct fault *fault, json_t **ret_request)
{
    char cwd[PATH_MAX];
    int r = find_folder(task->slurm.folder, cwd, fault);
    if (r < 0)
        return r;
    json_t *cwd_json = json_string(cwd), *words = arguments_json(arguments, fault);
    if (!cwd_json || !words) {
        json_decref(cwd_json);
        json_decref(words);
        return cwd_json ? -EILSEQ
                        : fault_set(fault, EILSEQ, "the current folder's name is not UTF-8 text");
    }
    json_t *request = json_object();
    json_object_set_new(request, "script", json_string(task->script));
    json_object_set_new(request, "arguments", words);
    json_object_set_new(request, "cwd", cwd_json);
    json_object_set_new(request, "environment", environment_json(&task->slurm));
    if (task->slurm.is_slurm)
        add_slurm_variables(json_object_get(request, "environment"), task);
    json_object_set_new(request, "umask", json_integer(current_umask()));
    request_add_options(request, task->values);
    r = add_outputs(request, task, fault);
    if (r == 0 && task->values[TASK_SUMMARY].set)
        r = add_summary(request, task, fault);
    if (r < 0) {
        json_decref(request);
        return r;
    }
    add_notify_default(request);
    *ret_request = request;
    return 0;
}
