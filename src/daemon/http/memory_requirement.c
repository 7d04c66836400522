/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An estimate has three inputs: the options and the kinds of GPUs, which the loop knows, and the
 * summary, which may be large. So it is made in two steps, of which the first may run in a helper
 * process that is a fork of this one:
 *
 *     estimate_summary    text of the summary ──► struct requirement_answer, plain data
 *     apply_answer        that ──► the submission's event, detail and warnings, in the loop
 *
 * Of an export the helper also returns the convolutions that cuDNN was never asked about. Then the
 * loop has it asked (kernels/kernel_asker.h), and a second helper estimates with its answers:
 *
 *     estimate_summary ──► missing kernels ──► kernel_asker_ask ──► estimate_summary
 */
#include "daemon/http/memory_requirement.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/answer_time.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "core/kind_match.h"
#include "daemon/gpus/gpus_query.h"
#include "daemon/http/request_fields.h"
#include "daemon/http/submission.h"
#include "daemon/kernels/kernel_asker.h"
#include "estimator/physics/known_kernels.h"
#include "model/network.h"
#include "service/estimate_helpers.h"
#include "taskfile/estimate_options.h"

/* An estimate is made again with cuDNN's answers only if it did not take longer; chosen: the
 * largest export takes 3 s on an idle CPU. */
#define ASKED_AFTER_MAX_S 25

_Static_assert(
    (int)ESTIMATE_ANSWER_MAX_MS / 1000 + ASKED_AFTER_MAX_S + KERNELS_BOUND_US / SECOND_US <=
        (int)ANSWER_MAX_S,
    "the client of a submission waits as long as both estimates take");

/* Returns the kind of all GPUs that the task may have; NULL when they differ: then an estimate for
 * one kind would not hold for another. */
static const char *gpu_kind(const struct http *http, const struct task_request *task)
{
    struct gpu_report gpu;
    const char *name = NULL;
    for (size_t i = 0; gpus_report(http->parts.gpus, i, &gpu); i++) {
        if (!kind_match_gpu(task->gpu_kind, gpu.info->name, gpu.info->uuid))
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
    need->kind = need_kind_of_estimator(estimator);
    need->bytes = (int64_t)bytes.value;
    json_object_set_new(submission->detail, "estimator", json_string(estimator));
    json_object_set_new(submission->detail, "estimate_bytes", json_integer(need->bytes));
    return 0;
}

/* Keeps where the workspaces of convolutions come from, and why cuDNN was not asked. */
static void keep_kernels(const char *kernels, struct submission *submission)
{
    const char *why = submission->why_not_asked;
    json_object_set_new(submission->detail, "estimate_kernels",
        *why ? json_sprintf("%s (cuDNN was not asked: %s)", kernels, why) : json_string(kernels));
}

/* Keeps the estimate itself, whatever is reserved: it is compared with the peak later. */
static void keep_prediction(const struct estimate *estimate, struct submission *submission)
{
    if (submission->event.submit.request.need.kind != NEED_ESTIMATED)
        return;
    json_object_set_new(
        submission->detail, "predicted_bytes", json_integer((json_int_t)estimate->bytes.value));
    if (estimate->evidence != EVIDENCE_NONE)
        json_object_set_new(submission->detail, "estimate_evidence",
            json_string(evidence_name(estimate->evidence)));
    if (*estimate->kernels)
        keep_kernels(estimate->kernels, submission);
    if (estimate->p99_bytes.valid && estimate->p99_bytes.value <= (double)EVENT_NUMBER_MAX)
        json_object_set_new(
            submission->detail, "p99_bytes", json_integer((json_int_t)estimate->p99_bytes.value));
}

/* ---- the estimate, perhaps in a helper ---- */

/* The summary of a request: its text, or the file that has it. */
struct summary_source {
    const char *name;
    const char *text; /* NULL: none, or in a file */
    const char *path; /* NULL: no file */
};

static int find_summary(const json_t *body, struct fault *fault, struct summary_source *ret_source)
{
    static const char wanted[] = "an object with name and text, or name and path";
    const json_t *summary = json_object_get(body, "summary");
    *ret_source = (struct summary_source){0};
    if (!summary || json_is_null(summary))
        return 0;
    if (!json_is_object(summary))
        return field_wrong(fault, "summary", wanted);
    ret_source->name = "summary";
    int r = field_text(summary, "name", SUBMISSION_TEXT_MAX, fault, &ret_source->name);
    if (r == 0)
        r = field_text(summary, "path", SUBMISSION_TEXT_MAX, fault, &ret_source->path);
    if (r == 0)
        r = field_text(summary, "text", SUMMARY_TEXT_MAX, fault, &ret_source->text);
    if (r == 0 && !ret_source->text == !ret_source->path)
        r = field_wrong(fault, "summary", wanted);
    if (r == 0 && ret_source->path && ret_source->path[0] != '/')
        r = field_wrong(fault, "summary: path", "absolute");
    return r;
}

/* Returns at most how many layers a text shows. A printed module shows equal blocks once:
 * "(0-11): 12 x Block(", and blocks may be nested. */
static double most_layers(const char *text)
{
    double lines = 1, times = 1;
    for (const char *at = text; *at; at++) {
        lines += *at == '\n';
        if (strncmp(at, ": ", 2) != 0)
            continue;
        char *end;
        double n = strtod(at + 2, &end);
        if (strncmp(end, " x ", 3) == 0 && n > 1)
            times *= n;
    }
    return lines * times;
}

/* An export is for a helper even if it is small, where cuDNN may have to be asked about it. */
static bool is_small(const struct http *http, const char *text)
{
    if (kernel_asker_is_on(http->parts.kernels) && export_detect(text, strlen(text)))
        return false;
    return strlen(text) <= SUMMARY_AT_ONCE && most_layers(text) <= LAYERS_AT_ONCE;
}

static void keep_warnings(const struct model *model, struct requirement_answer *answer)
{
    answer->n_warnings = (int)model_warnings(model);
    for (int i = 0; i < answer->n_warnings; i++)
        snprintf(answer->warnings[i], sizeof answer->warnings[i], "%s", model->warnings[i]);
}

static void keep_subject(const struct estimate_request *request, struct requirement_answer *answer)
{
    struct count batch = estimate_batch(request);
    answer->has_subject = request->model && batch.known;
    if (!answer->has_subject)
        return;
    answer->fingerprint = model_fingerprint(request->model);
    answer->batch = batch.value;
}

/* What a helper returns. */
struct helper_answer {
    struct requirement_answer requirement;
    size_t n_missing; /* questions for cuDNN */
    char gpu_kind[96];
    struct conv_question missing[KERNELS_ASKED_MAX];
};

/* Gives the request the kept answers of its kind of GPU; where some are missing, those of another
 * driver. `missing`: gets the questions of the former; NULL: nothing can be asked. */
static void choose_kernels(
    const struct http *http, struct estimate_request *request, struct helper_answer *missing)
{
    if (!request->gpu_kind || !missing)
        return;
    request->kernels = kernel_asker_answers(http->parts.kernels, request->gpu_kind, false);
    missing->n_missing = known_kernels_missing(request, KERNELS_ASKED_MAX, missing->missing);
    snprintf(missing->gpu_kind, sizeof missing->gpu_kind, "%s", request->gpu_kind);
    if (missing->n_missing > 0)
        request->kernels = kernel_asker_answers(http->parts.kernels, request->gpu_kind, true);
}

static int estimate_network(const struct http *http, const struct submission *submission,
    const struct network *network, struct requirement_answer *ret_answer,
    struct helper_answer *missing, struct fault *fault)
{
    struct estimate_request request = {.model = network->model,
        .export = network->export,
        .gpu_kind = gpu_kind(http, &submission->event.submit.request),
        .decoding = http->parts.config->decoding,
        .uid = api_request_peer(submission->request).uid,
        .history = http->parts.run_history->runs,
        .n_history = http->parts.run_history->n};
    int r = estimate_options_apply(submission->options, fault, &request);
    if (r < 0)
        return r;
    keep_subject(&request, ret_answer);
    choose_kernels(http, &request, missing);
    const char *name = estimator_choose(
        submission->options[TASK_ESTIMATOR].text, &request, http->parts.config->estimator);
    r = estimate_run(name, &request, fault, &ret_answer->estimate);
    ret_answer->is_known = r == 0;
    ret_answer->estimate.estimator = NULL;
    snprintf(ret_answer->estimator, sizeof ret_answer->estimator, "%s", name);
    return r < 0 ? r : 0;
}

/* text: of the summary; NULL: there is none. missing: as choose_kernels. */
static int estimate_text(const struct submission *submission, const char *text, size_t size,
    struct requirement_answer *ret_answer, struct helper_answer *missing, struct fault *fault)
{
    CLEANUP(network_fini) struct network network = {0};
    struct summary_source source;
    if (submission->event.submit.request.gpus == 0)
        return 0; /* it takes no GPU memory */
    int r = find_summary(api_request_body(submission->request), fault, &source);
    if (r == 0 && text)
        r = fault_prefix(fault, network_parse(text, size, fault, &network), "%s", source.name);
    if (r == 0)
        r = network_set_input(&network, submission->options[TASK_INPUT].text, fault);
    if (r == 0 && network.model)
        keep_warnings(network.model, ret_answer);
    if (r == 0)
        r = estimate_network(submission->http, submission, &network, ret_answer, missing, fault);
    return r;
}

/* In a helper. context: the submission. */
static int estimate_summary(
    void *context, const char *text, size_t size, void *ret_answer, struct fault *fault)
{
    struct helper_answer *answer = ret_answer;
    return estimate_text(context, text, size, &answer->requirement, answer, fault);
}

/* ---- what follows from it ---- */

/* By what later runs are recognised: the network, where it is known. */
static json_t *subject_json(
    const struct option_value *options, const struct requirement_answer *answer)
{
    struct estimate_request request = {0};
    struct fault unused;
    if (!answer->has_subject || estimate_options_apply(options, &unused, &request) < 0)
        return json_object();
    return run_history_subject(&request, answer->fingerprint, answer->batch);
}

static uint64_t command_key(const struct submission *submission)
{
    const struct task_request *request = &submission->event.submit.request;
    return command_history_key(submission->script, json_object_get(submission->detail, "arguments"),
        json_string_value(json_object_get(submission->detail, "cwd")), request->gpus,
        request->gpu_kind);
}

/* Does the user, or else the administrator, want no estimate? */
static bool wants_none(const struct http *http, const struct submission *submission)
{
    const char *named = submission->options[TASK_ESTIMATOR].text;
    return strcmp(named ? named : http->parts.config->estimator, "none") == 0;
}

/* NULL: they say nothing. */
static const struct command_runs *earlier_runs(
    const struct http *http, uint64_t key, const struct submission *submission)
{
    return command_history_find(
        &http->parts.run_history->commands, submission->event.submit.uid, key);
}

/* The activity of earlier runs of the command, where nothing else is known of it. */
static void apply_earlier_activity(const struct command_runs *runs, struct submission *submission)
{
    struct reading *smact = &submission->event.submit.request.expect.smact;
    if (runs && !smact->valid)
        *smact = command_runs_smact(runs);
    if (runs && runs->alone_per_s > 0)
        json_object_set_new(submission->detail, "alone_per_s", json_real(runs->alone_per_s));
}

/* What earlier runs of the command took, where nothing else is known, or the estimate is lower. */
static int apply_earlier_runs(const struct http *http, const struct command_runs *runs,
    struct submission *submission, struct fault *fault)
{
    const struct need *need = &submission->event.submit.request.need;
    bool is_less = need->kind == NEED_ESTIMATED && runs && need->bytes < command_runs_bytes(runs);
    if (!runs || wants_none(http, submission) || (need->kind != NEED_UNKNOWN && !is_less))
        return 0; /* the requirement stays unknown, which is not zero */
    int64_t bytes = command_runs_bytes(runs);
    json_object_set_new(submission->detail, "predicted_bytes", json_integer(bytes));
    json_object_del(submission->detail, "p99_bytes");
    json_object_del(submission->detail, "estimate_evidence");
    return set_need(COMMAND_HISTORY_ESTIMATOR, reading_of((double)bytes), submission, fault);
}

static void warn_of_several_kinds(const struct http *http, struct submission *submission)
{
    const struct task_request *request = &submission->event.submit.request;
    if (request->need.kind == NEED_ESTIMATED && !gpu_kind(http, request))
        submission_warn(submission,
            "the GPUs are of several kinds, and the memory is estimated for none of them in "
            "particular: --gpu-kind=KIND gives the estimate for one");
}

static int apply_answer(const struct http *http, const char *summary_name,
    const struct requirement_answer *answer, struct submission *submission, struct fault *fault)
{
    const struct estimate *estimate = &answer->estimate;
    uint64_t key = command_key(submission);
    json_t *subject = subject_json(submission->options, answer);
    if (summary_name)
        json_object_set_new(submission->detail, "summary_name", json_string(summary_name));
    command_history_keep_key(subject, key);
    json_object_set_new(submission->detail, "subject", subject);
    for (int i = 0; i < answer->n_warnings; i++)
        submission_warn(submission, "%s: %s", summary_name, answer->warnings[i]);
    if (*estimate->note && need_kind_of_estimator(answer->estimator) != NEED_UNKNOWN)
        submission_warn(submission, "%s", estimate->note);
    struct reading *smact = &submission->event.submit.request.expect.smact;
    *smact = smact->valid ? *smact : estimate->smact;
    const struct command_runs *runs = earlier_runs(http, key, submission);
    apply_earlier_activity(runs, submission);
    if (!answer->is_known)
        return apply_earlier_runs(http, runs, submission, fault);
    int r = set_need(answer->estimator,
        estimate_reserved(estimate, http->parts.config->reserve_quantile), submission, fault);
    if (r < 0)
        return r;
    keep_prediction(estimate, submission);
    warn_of_several_kinds(http, submission);
    return apply_earlier_runs(http, runs, submission, fault);
}

int submission_set_requirement(
    const struct http *http, struct submission *submission, struct fault *fault)
{
    struct requirement_answer answer = {0};
    struct summary_source source;
    int r = find_summary(api_request_body(submission->request), fault, &source);
    if (r < 0)
        return r;
    if (submission->answer)
        return apply_answer(http, source.name, submission->answer, submission, fault);
    if (source.path || (source.text && !is_small(http, source.text)))
        return REQUIREMENT_LATER;
    size_t size = source.text ? strlen(source.text) : 0;
    r = estimate_text(submission, source.text, size, &answer, NULL, fault);
    return r < 0 ? r : apply_answer(http, source.name, &answer, submission, fault);
}

/* ---- by a helper ---- */

/* The helper belongs to the user, which may control it: its output is not trusted. */
static void make_sane(struct requirement_answer *answer)
{
    struct reading *smact = &answer->estimate.smact;
    answer->estimator[sizeof answer->estimator - 1] = '\0';
    answer->estimate.note[sizeof answer->estimate.note - 1] = '\0';
    answer->estimate.kernels[sizeof answer->estimate.kernels - 1] = '\0';
    if (answer->n_warnings < 0 || answer->n_warnings > MODEL_WARNINGS_MAX)
        answer->n_warnings = 0;
    for (int i = 0; i < answer->n_warnings; i++)
        answer->warnings[i][REQUIREMENT_WARNING_SIZE - 1] = '\0';
    if ((int)answer->estimate.evidence < 0 || answer->estimate.evidence >= EVIDENCE_KINDS)
        answer->estimate.evidence = EVIDENCE_NONE;
    if (!estimator_find(answer->estimator))
        snprintf(answer->estimator, sizeof answer->estimator, "none");
    if (!(smact->value >= 0 && smact->value <= 1))
        *smact = (struct reading){0};
}

static int begin_helper(struct submission *submission);

/* Goes on with the estimate that there is, or with a new one. */
static void on_asked(void *context, const char *why)
{
    struct submission *submission = context;
    struct fault fault = {0};
    int r = 0;
    snprintf(submission->why_not_asked, sizeof submission->why_not_asked, "%s", why ? why : "");
    if (!why) {
        free(submission->answer);
        submission->answer = NULL;
        r = begin_helper(submission);
        if (r == 0)
            return;
        fault_set(&fault, ENOMEM, "out of memory");
    }
    submission->on_estimated(submission, r, &fault);
}

/* Are they questions? The helper belongs to the user. */
static bool are_sane(const struct helper_answer *answer)
{
    bool sane = answer->n_missing <= KERNELS_ASKED_MAX &&
                memchr(answer->gpu_kind, '\0', sizeof answer->gpu_kind);
    for (size_t i = 0; sane && i < answer->n_missing; i++)
        sane = conv_question_is_sane(&answer->missing[i]);
    return sane;
}

/* Has cuDNN asked about the kernels that are missing. Returns whether on_asked will be called. */
static bool ask_for_kernels(struct submission *submission, const struct helper_answer *answer)
{
    if (submission->has_asked || answer->n_missing == 0 ||
        !kernel_asker_is_on(submission->http->parts.kernels) || !are_sane(answer))
        return false;
    submission->has_asked = true;
    if (clock_monotonic_us() - submission->estimate_began_us > ASKED_AFTER_MAX_S * SECOND_US) {
        snprintf(submission->why_not_asked, sizeof submission->why_not_asked,
            "the estimate without cuDNN took longer than %d s", ASKED_AFTER_MAX_S);
        return false;
    }
    const struct kernel_request request = {.uid = api_request_peer(submission->request).uid,
        .gpu_kind = answer->gpu_kind,
        .questions = answer->missing,
        .n = answer->n_missing,
        .context = submission,
        .on_done = on_asked};
    const char *why = kernel_asker_ask(submission->http->parts.kernels, &request);
    if (why)
        snprintf(submission->why_not_asked, sizeof submission->why_not_asked, "%s", why);
    return !why;
}

static void on_estimated(void *context, int r, const void *ret_answer, const struct fault *fault)
{
    struct submission *submission = context;
    const struct helper_answer *answer = ret_answer;
    struct fault words = *fault;
    if (r == 0) {
        submission->answer = malloc(sizeof *submission->answer);
        r = submission->answer ? 0 : fault_set(&words, ENOMEM, "out of memory");
    }
    if (r == 0) {
        *submission->answer = answer->requirement;
        make_sane(submission->answer);
        if (ask_for_kernels(submission, answer))
            return;
    }
    submission->on_estimated(submission, r == ESTIMATE_BUSY ? -EBUSY : r, &words);
}

static int begin_helper(struct submission *submission)
{
    struct api_peer peer = api_request_peer(submission->request);
    struct estimate_work work = {.uid = peer.uid,
        .gid = peer.gid,
        .answer_size = sizeof(struct helper_answer),
        .context = submission,
        .estimate = estimate_summary,
        .on_done = on_estimated};
    struct summary_source source;
    find_summary(api_request_body(submission->request), NULL, &source); /* checked before */
    work.path = source.path;
    work.text = source.text;
    return estimate_helpers_begin(submission->http->estimate_helpers, &work);
}

int requirement_begin(struct http *http, struct submission *submission,
    void (*on_done)(struct submission *submission, int r, const struct fault *fault))
{
    submission->on_estimated = on_done;
    submission->estimate_began_us = clock_monotonic_us();
    return begin_helper(submission);
}
