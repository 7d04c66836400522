/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From the body of POST /v1/tasks to a submission. (submission_queue.c queues it.)
 *
 * The members of task options are read by the option table into `options`; set_request fills the
 * fields that the core decides by, make_detail those that the event log stores beside the core's
 * event.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/text.h"
#include "base/units.h"
#include "core/stop_spec.h"
#include "daemon/dependencies.h"
#include "daemon/gpus/gpus_query.h"
#include "daemon/http/memory_requirement.h"
#include "daemon/http/request_fields.h"
#include "daemon/http/routes.h"
#include "daemon/http/submission.h"
#include "daemon/service_port.h"
#include "message/message_address.h"
#include "policy/policies.h"
#include "taskfile/metric_pattern.h"
#include "taskfile/metric_source.h"
#include "taskfile/signal_spec.h"
#include "taskfile/track_places.h"

#define COMMAND_MAX 1024 /* bytes; chosen: enough to recognise a command, for thousands of tasks */

/* ---- the parts of a submission ---- */

static bool is_task_option(const char *key)
{
    for (size_t i = 0; i < task_option_count; i++)
        if (strcmp(task_options[i].field, key) == 0)
            return true;
    return false;
}

static int check_keys(const json_t *body, struct fault *fault)
{
    static const char *const others[] = {
        "script", "arguments", "command", "cwd", "environment", "umask", "slurm_output"};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)body, key, value) {
        if (!is_task_option(key) && span_place(span_of(key), others, ARRAY_SIZE(others)) < 0)
            return fault_set(
                fault, EINVAL, "%.40s: there is no such key (docs/protocol.md lists them)", key);
    }
    return 0;
}

/* All task options but the summary, which is no text but an object (memory_requirement.c). */
static int read_options(const json_t *body, struct submission *submission, struct fault *fault)
{
    int r = 0;
    for (size_t i = 0; i < task_option_count && r == 0; i++)
        if (i != TASK_SUMMARY)
            r = field_option(body, &task_options[i], fault, &submission->options[i]);
    return r;
}

/* Root, the user that collocd runs as, and operators. */
static bool may_have_priority(const struct http *http, const struct submission *submission)
{
    uid_t uid = api_request_peer(submission->request).uid;
    return uid == 0 || uid == geteuid() || config_is_operator(http->parts.config, submission->user);
}

/* The tasks of an array, which get their ids with it. */
static int set_array(struct submission *submission, struct fault *fault)
{
    const struct option_value *value = &submission->options[TASK_ARRAY];
    struct array_spec *array = &submission->array;
    int r = value->set ? array_spec_parse(value->text, fault, array) : 0;
    if (r < 0 || !value->set)
        return r;
    submission->elements = calloc((size_t)array->count, sizeof *submission->elements);
    if (!submission->elements)
        return fault_set(fault, ENOMEM, "out of memory");
    for (int i = 0; i < array->count; i++)
        submission->elements[i].index = array->indices[i];
    submission->event.submit.elements = submission->elements;
    submission->event.submit.n_elements = array->count;
    submission->event.submit.array_limit = array->limit;
    return 0;
}

/* By which rule tasks of the array are stopped. */
static int set_stop_rule(struct submission *submission, struct fault *fault)
{
    const struct option_value *value = &submission->options[TASK_STOP];
    if (!value->set)
        return 0;
    if (!submission->options[TASK_ARRAY].set)
        return fault_set(fault, EINVAL, "stop: only an array can have it: give array, too");
    return stop_spec_parse(value->text, fault, &submission->event.submit.stop);
}

static int check_metric_source(const struct submission *submission, struct fault *fault)
{
    const struct option_value *source = &submission->options[TASK_METRIC_FROM];
    if (!source->set)
        return 0;
    if (!submission->options[TASK_STOP].set)
        return fault_set(fault, EINVAL, "metric-from: nothing reads the metric: give stop, too");
    return metric_source_check(source->text, fault);
}

static int check_step_pattern(const struct submission *submission, struct fault *fault)
{
    const struct option_value *pattern = &submission->options[TASK_STEP_PATTERN];
    return pattern->set ? step_pattern_check(pattern->text, fault) : 0;
}

static int set_dependencies(
    const struct http *http, struct submission *submission, struct fault *fault)
{
    struct task_request *request = &submission->event.submit.request;
    struct dependency_term terms[DEPENDENCIES_MAX];
    const struct option_value *after = &submission->options[TASK_AFTER];
    int n = after->set ? dependency_parse(after->text, fault, terms) : 0;
    if (n <= 0)
        return n;
    request->after = submission->after;
    return dependencies_resolve(http->parts.core, http->parts.store, terms, n, submission->elements,
        submission->array.count, submission->after, &request->n_after, fault);
}

static bool has_limits(const struct use_limits *limits)
{
    return limits->tasks || limits->gpus || limits->memory_bytes || limits->usage_us;
}

static bool has_user_limits(const struct core_settings *settings)
{
    return has_limits(&settings->user_limits) || has_limits(&settings->project_limits);
}

/* Refuses a task that alone is more than its user, or project, may have. */
static int check_user_limits(
    const struct http *http, const struct event *event, struct fault *fault)
{
    const struct config *config = http->parts.config;
    const struct task_request *request = &event->submit.request;
    int of_user = config->core.user_limits.gpus, of_project = config->core.project_limits.gpus;
    bool in_project = share_table_find(&config->share_table, event->submit.uid).project > 0;
    if (request->limited && of_user && request->gpus > of_user)
        return fault_set(fault, EINVAL,
            "gpus=%d: a user may have at most %d at a time here (gpus-per-user)", request->gpus,
            of_user);
    if (request->limited && in_project && of_project && request->gpus > of_project)
        return fault_set(fault, EINVAL,
            "gpus=%d: a project may have at most %d at a time here (gpus-per-project)",
            request->gpus, of_project);
    return 0;
}

/* Are its allocations to wait? As the task says, else as the setting does. */
static bool wants_library(const struct http *http, const char *text)
{
    const struct config *config = http->parts.config;
    bool by_default = !text || strcmp(text, "default") == 0;
    return config->memory_wait_us > 0 && (by_default ? config->preload : strcmp(text, "yes") == 0);
}

/* When it may start, and before which tasks. */
static int set_order(const struct http *http, struct submission *submission, struct fault *fault)
{
    const struct option_value *options = submission->options;
    struct task_request *request = &submission->event.submit.request;
    int64_t now_us = driver_now_us(http->parts.driver);
    int64_t begin_us = options[TASK_BEGIN].number - driver_wall_us(http->parts.driver, now_us);
    if (options[TASK_BEGIN].set && begin_us > 0)
        request->begin_us = now_us + begin_us;
    request->once = !options[TASK_REQUEUE].number;
    request->without_library = !wants_library(http, options[TASK_PRELOAD].text);
    request->limited = api_request_peer(submission->request).uid != 0 &&
                       has_user_limits(&http->parts.config->core);
    priority_parse(options[TASK_PRIORITY].text, &request->priority);
    if (request->priority > PRIORITY_NORMAL && !may_have_priority(http, submission))
        return fault_set(fault, EPERM,
            "priority=%s: only root and operators may have a priority above normal (the setting "
            "operators names them)",
            options[TASK_PRIORITY].text);
    return set_dependencies(http, submission, fault);
}

/* Printable ASCII without blanks: it goes into a request unchanged. */
static bool is_probe_path(const char *path)
{
    for (const char *at = path; *at; at++)
        if (*at <= ' ' || *at > '~')
            return false;
    return path[0] == '/';
}

/* What only a service may have; and that it may be one. */
static int set_service(const struct http *http, struct submission *submission, struct fault *fault)
{
    static const int others[] = {TASK_P99, TASK_PORT, TASK_PROBE};
    const struct option_value *options = submission->options;
    struct task_request *request = &submission->event.submit.request;
    bool is_service = options[TASK_SERVICE].number;
    const char *path = options[TASK_PROBE].text;
    for (size_t i = 0; i < ARRAY_SIZE(others) && !is_service; i++)
        if (options[others[i]].set)
            return fault_set(fault, EINVAL, "%s: only a service may have it: give service, too",
                task_options[others[i]].field);
    if (!is_service)
        return 0;
    if (!http->parts.config->services_for_all && !may_have_priority(http, submission))
        return fault_set(fault, EPERM,
            "service: only root and operators may submit services here (settings operators and "
            "services-for-all)");
    if (options[TASK_ARRAY].set)
        return fault_set(fault, EINVAL, "array: a service cannot be an array");
    if (path && !options[TASK_PORT].set)
        return fault_set(fault, EINVAL, "probe: give port, too: colloc has to know where to ask");
    if (path && !is_probe_path(path))
        return fault_set(
            fault, EINVAL, "probe: '%s' is no path: it begins with / and has no blanks", path);
    request->service = (struct service_request){true, options[TASK_P99].number};
    if (!options[TASK_PRIORITY].set)
        request->priority = PRIORITY_HIGH;
    return 0;
}

/* A signal before a time limit that is nearer would come before the program handles it. */
static int check_signal(struct submission *submission, struct fault *fault)
{
    const struct option_value *options = submission->options;
    const char *text = options[TASK_SIGNAL].text;
    struct signal_spec spec;
    if (!options[TASK_SIGNAL].set)
        return 0;
    int r = signal_spec_parse(text, fault, &spec);
    if (r == 0 && options[TASK_TIME].set && spec.before_us >= options[TASK_TIME].number)
        r = fault_set(fault, EINVAL,
            "signal=%s: the time limit is nearer than that: the task would get the signal at its "
            "start",
            text);
    if (r == 0 && !options[TASK_TIME].set)
        submission_warn(submission,
            "signal %s comes before an eviction only: the task has no time limit", text);
    return r;
}

/* "yes", "no", or "default": the daemon's setting. */
static bool is_yes(const char *text, bool by_default)
{
    return strcmp(text, "default") == 0 ? by_default : strcmp(text, "yes") == 0;
}

/* Its CPUs and main memory; by default the settings' part for each GPU. */
static struct host_resources host_of(
    const struct host_resources *per_gpu, const struct option_value *options, int gpus)
{
    const struct option_value *cpus = &options[TASK_CPUS], *memory = &options[TASK_HOST_MEMORY];
    return (struct host_resources){.cpus = cpus->set ? (int)cpus->number : per_gpu->cpus * gpus,
        .memory_bytes = memory->set ? memory->number : per_gpu->memory_bytes * gpus};
}

/* "0,GPU-8d3c" as the list of UUIDs that the core takes (core/kind_match.h). Returns their number. */
static int read_gpu_ids(
    const struct http *http, const char *text, struct submission *submission, struct fault *fault)
{
    const struct cluster_view *view = core_view(http->parts.core);
    size_t size;
    int n = 0;
    FILE *out = open_memstream(&submission->gpu_ids, &size);
    if (!out)
        return fault_set(fault, ENOMEM, "out of memory");
    for (const char *at = text, *end; at && n >= 0; at = *end ? end + 1 : NULL) {
        end = at + strcspn(at, ",");
        int gpu = cluster_view_find(view, at, (size_t)(end - at));
        if (gpu >= 0)
            n += fprintf(out, "%s@%s", n ? "," : "", view->gpus[gpu].id.uuid) > 0;
        else
            n = fault_set(fault, EINVAL,
                "gpu_ids=%.200s: there is no GPU '%.*s' here: give indices or UUIDs that `colloc "
                "gpus` shows",
                text, (int)(end - at < 100 ? end - at : 100), at);
    }
    fclose(out);
    return n >= 0 && size >= TASK_GPU_LIST_SIZE ? fault_set(fault, EINVAL, "gpu_ids: too many") : n;
}

/* The GPUs that it names, of which it takes all unless a number is given. */
static int set_gpu_ids(const struct http *http, struct submission *submission, struct fault *fault)
{
    const struct option_value *options = submission->options;
    struct task_request *request = &submission->event.submit.request;
    const char *ids = option_text_or(&options[TASK_GPU_IDS], "");
    if (!*ids)
        return 0;
    if (request->gpu_kind)
        return fault_set(fault, EINVAL, "gpu_ids: GPUs that are named need no gpu_kinds");
    int n = read_gpu_ids(http, ids, submission, fault);
    if (n < 0)
        return n;
    request->gpu_kind = submission->gpu_ids;
    request->gpus = options[TASK_GPUS].set ? request->gpus : n;
    return 0;
}

/* The core's part of the options. */
static int set_request(const struct http *http, struct submission *submission, struct fault *fault)
{
    const struct option_value *options = submission->options;
    struct task_request *request = &submission->event.submit.request;
    const char *policy = options[TASK_POLICY].text;
    request->gpus = (int)options[TASK_GPUS].number;
    if (options[TASK_GPU_KIND].set && *options[TASK_GPU_KIND].text)
        request->gpu_kind = options[TASK_GPU_KIND].text;
    int r = set_gpu_ids(http, submission, fault);
    if (r < 0)
        return r;
    request->host = host_of(&http->parts.config->per_gpu, options, request->gpus);
    request->exclusive = options[TASK_EXCLUSIVE].number;
    request->thread_percent = (int)options[TASK_THREADS].number;
    request->time_limit_us = options[TASK_TIME].number;
    if (options[TASK_EXPECT].number > 0)
        request->expect.time_us = reading_of((double)options[TASK_EXPECT].number);
    if (options[TASK_SMACT].set)
        request->expect.smact = reading_of((double)options[TASK_SMACT].number / MILLION);
    if (options[TASK_MAX_SLOWDOWN].set)
        request->slowdown_max = reading_of((double)options[TASK_MAX_SLOWDOWN].number / MILLION);
    else
        request->slowdown_max = share_table_promise(
            &http->parts.config->share_table, submission->event.submit.uid);
    /* "default" is the daemon's setting. */
    if (sharing_parse(options[TASK_SHARING].text, &request->sharing) < 0)
        request->sharing = http->parts.config->sharing;
    request->takes_turns = is_yes(options[TASK_SLOT].text, http->parts.config->slots);
    submission->event.submit.held = options[TASK_HOLD].number;
    if (policy && !(request->policy = policy_find(policy)))
        return option_refuse_choice(&task_options[TASK_POLICY], "policy", policy, fault);
    return 0;
}

static int pack_environment(const json_t *body, struct submission *submission, struct fault *fault)
{
    const json_t *environment = json_object_get(body, "environment");
    if (!json_is_object(environment))
        return field_wrong(fault, "environment", "an object of texts; it is required");
    size_t size = 0;
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)environment, key, value) {
        const char *text = json_string_value(value);
        if (!text || strlen(text) != json_string_length(value) || !*key || strchr(key, '='))
            return fault_set(
                fault, EINVAL, "environment: '%.40s' is not a variable with a text", key);
        size += strlen(key) + strlen(text) + 2;
    }
    char *at = submission->environment = malloc(size + 1);
    if (!at)
        return fault_set(fault, ENOMEM, "out of memory");
    json_object_foreach((json_t *)(uintptr_t)environment, key, value)
        at += sprintf(at, "%s=%s", key, json_string_value(value)) + 1;
    submission->environment_size = size;
    return 0;
}

static int check_arguments(const json_t *body, struct fault *fault)
{
    const json_t *arguments = json_object_get(body, "arguments"), *value;
    size_t i;
    if (!arguments || json_is_null(arguments))
        return 0;
    if (!json_is_array(arguments))
        return field_wrong(fault, "arguments", "a list of texts");
    json_array_foreach(arguments, i, value)
        if (!json_is_string(value) || strlen(json_string_value(value)) != json_string_length(value))
            return field_wrong(fault, "arguments", "a list of texts without NUL");
    return 0;
}

/* Returns NULL when the environment does not set it. */
static json_t *preallocation_json(const json_t *environment)
{
    static const char *const names[] = {"TF_FORCE_GPU_ALLOW_GROWTH",
        "XLA_PYTHON_CLIENT_PREALLOCATE", "XLA_PYTHON_CLIENT_MEM_FRACTION"};
    const char *values[3];
    for (size_t i = 0; i < 3; i++)
        values[i] = json_string_value(json_object_get(environment, names[i]));
    const char *name = preallocation_name(preallocation_of(values[0], values[1], values[2]));
    return name ? json_string(name) : NULL;
}

/* Also where the settings decided it. */
static void keep_host(const struct host_resources *host, json_t *detail)
{
    if (host->cpus)
        json_object_set_new(detail, "cpus", json_integer(host->cpus));
    if (host->memory_bytes)
        json_object_set_new(detail, "host_memory_mib", json_integer(host->memory_bytes / MIB));
}

/* Limits that the user has named, where cgroups do not enforce them. */
static void warn_of_limits(const struct http *http, struct submission *submission)
{
    const struct cgroup_controllers enforced = attempts_enforced(http->parts.attempts);
    const bool is_free[] = {!enforced.memory && submission->options[TASK_HOST_MEMORY].set,
        !enforced.cpu && submission->options[TASK_CPUS].set};
    static const char *const names[] = {"host-memory", "cpus"};
    for (size_t i = 0; i < 2; i++)
        if (is_free[i])
            submission_warn(submission,
                "--%s is counted, but not enforced on this server: the task can use more",
                names[i]);
}

static int check_track(const struct submission *submission, struct fault *fault)
{
    const char *places = submission->options[TASK_TRACK].text;
    return places ? track_places_check(places, fault) : 0;
}

static bool is_slurm_script(const json_t *body)
{
    return json_object_get(json_object_get(body, "environment"), "COLLOC_SLURM_SCRIPT");
}

/* A script for Slurm that wants mails runs as it is, also where colloc sends none. */
static int refuse_mail(const json_t *body, struct submission *submission, struct fault *fault)
{
    if (!is_slurm_script(body))
        return fault_set(fault, EINVAL,
            "notify: this daemon sends no mail (setting mail-server): send the messages to a URL "
            "(--notify-to=https://...), or leave out --notify");
    submission_warn(submission, "no mail is sent: this daemon sends none (setting mail-server)");
    json_object_del(submission->detail, task_options[TASK_NOTIFY].field);
    json_object_del(submission->detail, task_options[TASK_NOTIFY_TO].field);
    return 0;
}

/* Which messages the user wants, and where to (docs/messages.md). */
static int check_notify(
    const struct http *http, const json_t *body, struct submission *submission, struct fault *fault)
{
    const char *events = submission->options[TASK_NOTIFY].text,
               *to = submission->options[TASK_NOTIFY_TO].text;
    struct message_address address;
    unsigned kinds = 0;
    if (!events)
        return to ? fault_set(fault, EINVAL, "notify_to: give notify, too: the events") : 0;
    int r = message_kinds_parse(events, fault, &kinds);
    if (r < 0 || !kinds)
        return r;
    r = message_address_parse(to ? to : submission->user, fault, &address);
    bool is_mail = r == 0 && address.form == MESSAGE_BY_MAIL;
    if (is_mail && strcmp(http->parts.config->mail_server, "none") == 0)
        r = refuse_mail(body, submission, fault);
    return r;
}

/* The fields that the log stores as submitted. */
static void keep_as_submitted(const json_t *body, json_t *detail)
{
    json_t *arguments = json_object_get(body, "arguments");
    if (arguments)
        json_object_set(detail, "arguments", arguments);
    for (size_t i = 0; i < task_option_count; i++) {
        const struct option_spec *spec = &task_options[i];
        json_t *value = spec->shown_as ? json_object_get(body, spec->field) : NULL;
        if (value)
            json_object_set(detail, spec->field, value);
    }
}

/* What sbatch submits has the name that its users look for: slurm-12.out. */
static json_t *default_output(const json_t *body, bool is_array)
{
    return json_sprintf("%s-%s.out",
        json_is_true(json_object_get(body, "slurm_output")) ? "slurm" : "colloc",
        is_array ? "%A_%a" : "%j");
}

/* What tasks of an array get in their environment. */
static void keep_array(const struct array_spec *array, json_t *detail)
{
    if (array->count == 0)
        return;
    json_object_set_new(detail, "array_count", json_integer(array->count));
    json_object_set_new(detail, "array_min", json_integer(array->indices[0]));
    json_object_set_new(detail, "array_max", json_integer(array->indices[array->count - 1]));
}

/* The detail that the log stores beside the core's event. */
static int make_detail(const json_t *body, struct submission *submission, struct fault *fault)
{
    const struct option_value *options = submission->options;
    const char *cwd = NULL, *command = NULL, *name = options[TASK_NAME].text;
    int64_t mask = 022;
    bool given;
    int r = field_text(body, "cwd", SUBMISSION_TEXT_MAX, fault, &cwd);
    if (r == 0)
        r = field_text(body, "command", COMMAND_MAX, fault, &command);
    if (r == 0)
        r = field_integer(body, "umask", 0, 0777, fault, &given, &mask);
    const json_t *slurm_output = json_object_get(body, "slurm_output");
    if (r == 0 && slurm_output && !json_is_boolean(slurm_output))
        r = field_wrong(fault, "slurm_output", "true or false");
    if (r < 0)
        return r;
    if (!cwd || cwd[0] != '/')
        return fault_set(fault, EINVAL, "cwd: has to be an absolute path; it is required");

    struct api_peer peer = api_request_peer(submission->request);
    json_t *detail = json_pack("{s:s, s:s, s:i, s:s, s:i, s:I}", "name",
        name && *name ? name : "task", "user", submission->user, "gid", (int)peer.gid, "cwd", cwd,
        "umask", (int)mask, "grace_us", (json_int_t)options[TASK_GRACE].number);
    if (!detail)
        return fault_set(fault, ENOMEM, "out of memory");
    submission->detail = detail;
    keep_as_submitted(body, detail);
    request_keep(body, detail);
    keep_host(&submission->event.submit.request.host, detail);
    json_t *preallocation = preallocation_json(json_object_get(body, "environment"));
    if (preallocation)
        json_object_set_new(detail, "preallocation", preallocation);
    json_object_set_new(detail, "output",
        options[TASK_OUTPUT].set ? json_string(options[TASK_OUTPUT].text)
                                 : default_output(body, submission->array.count > 0));
    keep_array(&submission->array, detail);
    json_object_set_new(detail, "output_is_default", json_boolean(!options[TASK_OUTPUT].set));
    if (command && *command)
        json_object_set_new(detail, "command", json_string(command));
    if (options[TASK_ERROR].text)
        json_object_set_new(detail, "error", json_string(options[TASK_ERROR].text));
    return 0;
}

/* Refuses a request that can never be met here. */
static int check_request(
    const struct http *http, const struct task_request *request, struct fault *fault)
{
    const char *why_no_gpus = gpus_why_none(http->parts.gpus);
    if (*why_no_gpus)
        return fault_set(fault, EINVAL, "no task can run here: %s", why_no_gpus);
    return core_check_request(http->parts.core, request, fault);
}

static int check_script(const char *script, struct fault *fault)
{
    char size[32];
    if (!script || !*script)
        return fault_set(fault, EINVAL, "script: is required");
    if (strlen(script) > SUBMISSION_SCRIPT_MAX)
        return fault_set(fault, EMSGSIZE,
            "script: has %s, and 4 MiB is the most: keep data in files, and read them from there",
            format_size((int64_t)strlen(script), size, sizeof size));
    return 0;
}

/* Counts what the log will store of the submission, for the user's limit. That of an array is
 * shared: each of its tasks counts a part. */
static int count_texts(const json_t *body, struct submission *submission)
{
    const json_t *summary = json_object_get(json_object_get(body, "summary"), "text");
    submission->script_size = strlen(submission->script);
    submission->text_bytes = (int64_t)(submission->script_size + submission->environment_size +
                                       json_string_length(summary) +
                                       json_dumpb(submission->detail, NULL, 0, JSON_COMPACT));
    int64_t n = submission->array.count > 0 ? submission->array.count : 1;
    return json_object_set_new(
        submission->detail, "text_bytes", json_integer((submission->text_bytes + n - 1) / n));
}

int submission_read(const struct http *http, struct submission *submission, struct fault *fault)
{
    const json_t *body = api_request_body(submission->request);
    if (!json_is_object(body))
        return fault_set(fault, EINVAL, "the body has to be a JSON object");
    submission->event.kind = EVENT_SUBMIT;
    submission->event.submit.uid = api_request_peer(submission->request).uid;
    submission->warnings = json_array();
    int r = check_keys(body, fault);
    if (r == 0)
        r = field_text(body, "script", SIZE_MAX, fault, &submission->script);
    if (r == 0)
        r = check_script(submission->script, fault);
    if (r == 0)
        r = check_arguments(body, fault);
    if (r == 0)
        r = pack_environment(body, submission, fault);
    if (r == 0)
        r = read_options(body, submission, fault);
    if (r == 0)
        r = set_request(http, submission, fault);
    if (r == 0)
        r = check_signal(submission, fault);
    if (r == 0)
        r = set_array(submission, fault);
    if (r == 0)
        r = set_stop_rule(submission, fault);
    if (r == 0)
        r = check_metric_source(submission, fault);
    if (r == 0)
        r = check_step_pattern(submission, fault);
    if (r == 0)
        r = set_order(http, submission, fault);
    if (r == 0)
        r = set_service(http, submission, fault);
    if (r == 0 && submission->options[TASK_PORT].set)
        r = service_port_check_claims(
            http->parts.core, http->parts.jobs, (int)submission->options[TASK_PORT].number, fault);
    if (r == 0 && submission->options[TASK_PORT].set && !may_have_priority(http, submission))
        r = service_port_check_quota(
            http->parts.core, http->parts.jobs, api_request_peer(submission->request).uid, fault);
    if (r == 0)
        r = check_track(submission, fault);
    if (r == 0)
        r = make_detail(body, submission, fault);
    if (r == 0)
        r = check_notify(http, body, submission, fault);
    if (r == 0)
        r = submission_set_requirement(http, submission, fault);
    if (r == 0)
        r = check_request(http, &submission->event.submit.request, fault);
    if (r == 0)
        warn_of_limits(http, submission);
    if (r == 0)
        r = check_user_limits(http, &submission->event, fault);
    if (r == 0 && count_texts(body, submission) < 0)
        r = fault_set(fault, ENOMEM, "out of memory");
    return r;
}
