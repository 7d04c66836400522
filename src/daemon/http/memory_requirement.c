/* SPDX-License-Identifier: Apache-2.0 */
/* The memory requirement of a submission: declared, or estimated from its model summary. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "core/kind_match.h"
#include "daemon/http/request_fields.h"
#include "daemon/http/submission.h"
#include "estimator/estimator.h"
#include "model/network.h"

#define SUMMARY_MAX (4u << 20) /* bytes; chosen: far above any printed network */

static int set_estimate_request(
    const struct option_value *options, struct estimate_request *request, struct fault *fault)
{
    const struct option_value *batch = &options[TASK_BATCH];
    request->batch = batch->set ? batch->number : ESTIMATE_NOT_GIVEN;
    request->sequence_length = options[TASK_SEQ].number;
    request->optimizer_text = options[TASK_OPTIMIZER].text;
    request->optimizer = optimizer_parse(request->optimizer_text);
    request->gpus = options[TASK_GPUS].set ? (int)options[TASK_GPUS].number : 1;
    request->parallel = parallel_parse(options[TASK_PARALLEL].text);
    request->declared_bytes = options[TASK_MEMORY].number;
    return precision_parse("precision", options[TASK_PRECISION].text, fault, &request->precision);
}

static int parse_summary(const json_t *body, struct submission *submission, struct fault *fault,
    struct network *ret_network)
{
    const json_t *summary = json_object_get(body, "summary");
    const char *name = "summary", *text = NULL;
    if (!summary || json_is_null(summary))
        return 0;
    if (!json_is_object(summary))
        return field_wrong(fault, "summary", "an object with name and text");
    int r = field_text(summary, "name", SUBMISSION_TEXT_MAX, fault, &name);
    if (r == 0)
        r = field_text(summary, "text", SUMMARY_MAX, fault, &text);
    if (r < 0 || !text)
        return r < 0 ? r : field_wrong(fault, "summary", "an object with name and text");
    json_object_set_new(submission->detail, "summary_name", json_string(name));
    r = network_parse(text, strlen(text), fault, ret_network);
    if (r < 0)
        return fault_prefix(fault, r, "%s", name);
    const struct model *model = ret_network->model;
    for (size_t i = 0; i < model_warnings(model); i++)
        submission_warn(submission, "%s: %s", name, model->warnings[i]);
    return 0;
}

/* Returns the kind of all GPUs that the task may have; NULL when they differ: then an estimate for
 * one kind would not hold for another. */
static const char *gpu_kind(const struct http *http, const struct task_request *task)
{
    struct gpu_report gpu;
    const char *name = NULL;
    for (size_t i = 0; http_report_gpu(http, i, &gpu); i++) {
        if (!kind_match_any(task->gpu_kind, gpu.info->name))
            continue;
        if (name && strcmp(gpu.info->name, name) != 0)
            return NULL;
        name = gpu.info->name;
    }
    return name;
}

static int set_need(
    const char *estimator, struct reading bytes, struct submission *submission, struct fault *fault)
{
    struct need *need = &submission->event.submit.request.need;
    if (!(bytes.value >= 0 && bytes.value <= (double)EVENT_NUMBER_MAX))
        return fault_set(fault, ERANGE,
            "%s estimates %.3g bytes: the batch or the summary cannot be right", estimator,
            bytes.value);
    need->kind = strcmp(estimator, "declared") == 0 ? NEED_DECLARED : NEED_ESTIMATED;
    need->bytes = (int64_t)bytes.value;
    json_object_set_new(submission->detail, "estimator", json_string(estimator));
    json_object_set_new(submission->detail, "estimate_bytes", json_integer(need->bytes));
    return 0;
}

/* Keeps the estimate itself, whatever is reserved: it is compared with the peak later. */
static void keep_prediction(const struct estimate *estimate, struct submission *submission)
{
    if (submission->event.submit.request.need.kind != NEED_ESTIMATED)
        return;
    json_object_set_new(
        submission->detail, "predicted_bytes", json_integer((json_int_t)estimate->bytes.value));
    if (estimate->p99_bytes.valid && estimate->p99_bytes.value <= (double)EVENT_NUMBER_MAX)
        json_object_set_new(
            submission->detail, "p99_bytes", json_integer((json_int_t)estimate->p99_bytes.value));
}

static int estimate_requirement(const struct http *http, struct submission *submission,
    const struct network *network, struct fault *fault)
{
    struct estimate_request request = {.model = network->model,
        .export = network->export,
        .gpu_kind = gpu_kind(http, &submission->event.submit.request),
        .history = http->parts.run_history->runs,
        .n_history = http->parts.run_history->n};
    struct estimate estimate = {0};
    const char *named = submission->options[TASK_ESTIMATOR].text;
    int r = set_estimate_request(submission->options, &request, fault);
    if (r < 0)
        return r;
    json_t *subject = run_history_subject(&request);
    if (subject)
        json_object_set_new(submission->detail, "subject", subject);
    const char *name = estimator_choose(named, &request, http->parts.config->estimator);
    r = estimate_run(name, &request, fault, &estimate);
    if (r < 0)
        return r;
    if (*estimate.note && strcmp(name, "none") != 0)
        submission_warn(submission, "%s", estimate.note);
    struct reading *smact = &submission->event.submit.request.expect.smact;
    *smact = smact->valid ? *smact : estimate.smact;
    if (r > 0)
        return 0; /* the requirement stays unknown, which is not zero */
    r = set_need(name, estimate_reserved(&estimate, http->parts.config->reserve_quantile),
        submission, fault);
    if (r == 0)
        keep_prediction(&estimate, submission);
    return r;
}

int submission_estimate_need(
    const struct http *http, const json_t *body, struct submission *submission, struct fault *fault)
{
    struct network network = {0};
    int r = parse_summary(body, submission, fault, &network);
    if (r == 0)
        r = estimate_requirement(http, submission, &network, fault);
    network_fini(&network);
    return r;
}
