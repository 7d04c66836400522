/* SPDX-License-Identifier: Apache-2.0 */
/* From the body of POST /v1/tasks to a submission. (submission_queue.c queues it.) */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "daemon/http/request_fields.h"
#include "daemon/http/submission.h"
#include "policy/policies.h"
#include "taskfile/option.h"

#define GRACE_DEFAULT 30.0
#define COMMAND_MAX   1024 /* bytes; chosen: enough to recognise a command, for thousands of tasks */
#define SECONDS_MAX   (10 * 365 * 86400.0)

void submission_free(struct submission *submission)
{
    if (!submission)
        return;
    json_decref(submission->detail);
    json_decref(submission->warnings);
    free(submission->environment);
    free(submission);
}

void submission_warn(struct submission *submission, const char *format, ...)
{
    char text[SUBMISSION_TEXT_MAX + 256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    json_t *line = json_string(text);
    if (line)
        json_array_append_new(submission->warnings, line);
}

/* ---- the parts of a submission ---- */

static int check_keys(const json_t *body, struct fault *fault)
{
    static const char *const known[] = {
        "script",
        "arguments",
        "command",
        "name",
        "cwd",
        "environment",
        "umask",
        "gpus",
        "policy",
        "exclusive",
        "sharing",
        "time_limit_s",
        "memory_mib",
        "host_memory_mib",
        "estimator",
        "summary",
        "batch",
        "optimizer",
        "precision",
        "seq",
        "hold",
        "output",
        "error",
        "grace_s",
        "smact",
        "expected_s",
        "thread_percentage",
    };
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)body, key, value) {
        bool found = false;
        for (size_t i = 0; i < sizeof known / sizeof *known && !found; i++)
            found = strcmp(known[i], key) == 0;
        if (!found)
            return fault_set(
                fault, EINVAL, "%.40s: there is no such key (docs/protocol.md lists them)", key);
    }
    return 0;
}

static int unknown_policy(const char *name, struct fault *fault)
{
    char all[OPTION_HELP_MAX];
    option_help_text("{choices}", policy_name_at, all, sizeof all);
    return fault_set(fault, EINVAL, "policy=%.40s: must be one of %s", name, all);
}

static int read_expectation(const json_t *body, struct fault *fault, struct expectation *ret_expect)
{
    bool given;
    double smact, expected_s;
    int r = field_number(body, "smact", 0, 1, fault, &given, &smact);
    if (r == 0 && given)
        ret_expect->smact = reading_of(smact);
    if (r == 0)
        r = field_number(body, "expected_s", 0.001, SECONDS_MAX, fault, &given, &expected_s);
    if (r == 0 && given)
        ret_expect->time_us = (int64_t)(expected_s * 1e6);
    return r;
}

static int read_request(const struct daemon *daemon, const json_t *body,
    struct submission *submission, struct fault *fault)
{
    struct task_request *request = &submission->event.submit.request;
    const char *policy = NULL, *sharing = NULL;
    bool given;
    int64_t gpus = 1, percent = 0;
    double limit_s;
    request->sharing = daemon->config.sharing;
    int r = field_integer(body, "gpus", INT32_MIN, INT32_MAX, fault, &given, &gpus);
    if (r == 0)
        r = field_text(body, "policy", 64, fault, &policy);
    if (r == 0)
        r = field_text(body, "sharing", 64, fault, &sharing);
    if (r == 0)
        r = field_bool(body, "exclusive", fault, &request->exclusive);
    if (r == 0)
        r = field_bool(body, "hold", fault, &submission->event.submit.held);
    if (r == 0)
        r = read_expectation(body, fault, &request->expect);
    if (r == 0)
        r = field_integer(body, "thread_percentage", 1, 100, fault, &given, &percent);
    request->thread_percent = (int)percent;
    if (r == 0)
        r = field_number(body, "time_limit_s", 0.001, SECONDS_MAX, fault, &given, &limit_s);
    if (r < 0)
        return r;
    if (given)
        request->time_limit_us = (int64_t)(limit_s * 1e6);
    request->gpus = (int)gpus;
    if (policy && !(request->policy = policy_find(policy)))
        return unknown_policy(policy, fault);
    if (sharing && strcmp(sharing, "default") != 0 && sharing_parse(sharing, &request->sharing) < 0)
        return fault_set(fault, EINVAL, "sharing=%.40s: streams, mps, auto or default", sharing);
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

/* NULL: the environment does not say it. */
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

/* Recorded, and said to be no limit. */
static int read_host_memory(const json_t *body, struct submission *submission, struct fault *fault)
{
    char size[32];
    double mib;
    bool given;
    int r = field_number(body, "host_memory_mib", 1, 1e9, fault, &given, &mib);
    if (r == 0 && given)
        submission_warn(submission,
            "host memory of %s is recorded, not enforced: colloc does not limit host memory yet",
            format_size((int64_t)(mib * (double)MIB), size, sizeof size));
    return r;
}

/* What the log keeps of it beside the core's event. */
static int make_detail(const json_t *body, struct submission *submission, struct fault *fault)
{
    const char *name = "task", *cwd = NULL, *output = NULL, *error = NULL, *command = NULL;
    double grace_s = GRACE_DEFAULT;
    int64_t mask = 022;
    bool given;
    int r = field_text(body, "name", 255, fault, &name);
    if (r == 0)
        r = field_text(body, "cwd", SUBMISSION_TEXT_MAX, fault, &cwd);
    if (r == 0)
        r = field_text(body, "output", SUBMISSION_TEXT_MAX, fault, &output);
    if (r == 0)
        r = field_text(body, "error", SUBMISSION_TEXT_MAX, fault, &error);
    if (r == 0)
        r = field_text(body, "command", COMMAND_MAX, fault, &command);
    if (r == 0)
        r = field_number(body, "grace_s", 0, 86400, fault, &given, &grace_s);
    if (r == 0)
        r = field_integer(body, "umask", 0, 0777, fault, &given, &mask);
    if (r == 0)
        r = read_host_memory(body, submission, fault);
    if (r < 0)
        return r;
    if (!cwd || cwd[0] != '/')
        return fault_set(fault, EINVAL, "cwd: has to be an absolute path; it is required");

    struct api_peer peer = api_request_peer(submission->request);
    json_t *detail = json_pack("{s:s, s:s, s:i, s:s, s:i, s:I}", "name", *name ? name : "task",
        "user", submission->user, "gid", (int)peer.gid, "cwd", cwd, "umask", (int)mask, "grace_us",
        (json_int_t)(grace_s * 1e6));
    if (!detail)
        return fault_set(fault, ENOMEM, "out of memory");
    submission->detail = detail;
    static const char *const kept[] = {
        "arguments", "batch", "optimizer", "precision", "seq", "host_memory_mib"};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (json_object_get(body, kept[i]))
            json_object_set(detail, kept[i], json_object_get(body, kept[i]));
    json_t *preallocation = preallocation_json(json_object_get(body, "environment"));
    if (preallocation)
        json_object_set_new(detail, "preallocation", preallocation);
    json_object_set_new(detail, "output", json_string(output ? output : SUBMISSION_OUTPUT));
    json_object_set_new(detail, "output_is_default", json_boolean(!output));
    if (command && *command)
        json_object_set_new(detail, "command", json_string(command));
    if (error)
        json_object_set_new(detail, "error", json_string(error));
    return 0;
}

/* Can it ever be met here? */
static int check_request(
    const struct daemon *daemon, const struct task_request *request, struct fault *fault)
{
    if (*daemon->gpus_why)
        return fault_set(fault, EINVAL, "no task can run here: %s", daemon->gpus_why);
    return core_check_request(daemon->core, request, fault);
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

/* What the log will keep of its texts; the daemon counts it for the user. */
static int count_texts(const json_t *body, struct submission *submission)
{
    const json_t *summary = json_object_get(json_object_get(body, "summary"), "text");
    submission->script_size = strlen(submission->script);
    submission->text_bytes = (int64_t)(submission->script_size + submission->environment_size +
                                       json_string_length(summary));
    return json_object_set_new(
        submission->detail, "text_bytes", json_integer(submission->text_bytes));
}

int submission_read(const struct daemon *daemon, struct submission *submission, struct fault *fault)
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
        r = read_request(daemon, body, submission, fault);
    if (r == 0)
        r = make_detail(body, submission, fault);
    if (r == 0)
        r = submission_estimate_need(daemon, body, submission, fault);
    if (r == 0)
        r = check_request(daemon, &submission->event.submit.request, fault);
    if (r == 0 && count_texts(body, submission) < 0)
        r = fault_set(fault, ENOMEM, "out of memory");
    return r;
}
