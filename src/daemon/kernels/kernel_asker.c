/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests wait in a list; the first one has the process. What goes between the two:
 *
 *     colloc-cudnn    cudnn 91900                        whose answers they are: then the questions
 *     daemon          forward float32 nchw 1 0 ...       that are not kept go out, all at once
 *     colloc-cudnn    answer 67239936 67239936 1         one line for each, in their order
 *
 * A request has two ends. Its owner is answered when all is known, after KERNELS_BOUND_US, or when
 * it failed. It leaves the list when its process is done, which may be later.
 */
#include "daemon/kernels/kernel_asker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/environment.h"
#include "base/log.h"
#include "child/line_process.h"
#include "daemon/gpus/gpus_query.h"
#include "daemon/kernels/asking_budget.h"
#include "daemon/kernels/asking_rule.h"
#include "daemon/kernels/kernel_store.h"

enum { LINE_MAX_BYTES = 4096, KERNELS_RESTS_MAX = 32 }; /* the latter: users; chosen */

/* Of the daemon's variables the process gets those that it needs to find libraries, and those of
 * emulated GPUs and sanitizers. */
static const char *const needed[] = {"PATH=", "LD_LIBRARY_PATH=", "LANG=", "LC_", "COLLOC_",
    "CUDA_HOME=", "ASAN_OPTIONS=", "UBSAN_OPTIONS=", "LSAN_OPTIONS=", NULL};

/* It is no client of MPS, whatever servers there are; it loads only what it calls, and neither
 * reads nor writes compiled kernels in files. */
static char no_mps[] = "CUDA_MPS_PIPE_DIRECTORY=/nonexistent",
            is_lazy[] = "CUDA_MODULE_LOADING=LAZY", no_cache[] = "CUDA_CACHE_DISABLE=1";

struct request {
    struct request *next;
    struct kernel_asker *asker;
    uid_t uid;
    char gpu_kind[96];
    struct conv_question *questions;
    size_t n;
    void *context;
    void (*on_done)(void *context, const char *why); /* NULL: it was called */
    uv_timer_t bound;
};

/* After a failure nothing is asked for a while, of all users or of one. */
struct rest {
    uid_t uid;
    int64_t until_us; /* on the monotonic clock; 0: none yet */
    char why[KERNELS_WHY_SIZE];
};

struct kernel_asker {
    struct kernel_asker_options parts;
    struct kernel_store *store;
    struct request *first, *last; /* the first has the process, if there is one */
    size_t n_requests;

    struct line_processes processes;
    struct line_process *process; /* that asks; NULL: none */
    uv_timer_t limit;             /* of it */
    uv_idle_t soon;               /* starts the next request */
    char gpu_uuid[96];            /* where it runs */
    struct kept_kernels *kept;    /* its answers; NULL: it has not said its version yet */
    size_t answered;              /* of the first request's questions */
    int64_t started_us;           /* the process, of the monotonic clock */

    struct rest all, users[KERNELS_RESTS_MAX];
    struct asking_budget budget;
    bool is_closed;
};

/* ---- requests ---- */

static void answer_owner(struct request *request, const char *why)
{
    void (*on_done)(void *, const char *) = request->on_done;
    request->on_done = NULL;
    uv_timer_stop(&request->bound);
    if (on_done)
        on_done(request->context, why);
}

static void on_request_closed(uv_handle_t *handle)
{
    struct request *request = handle->data;
    free(request->questions);
    free(request);
}

/* Takes the first request out of the list. */
static struct request *take_first(struct kernel_asker *asker)
{
    struct request *request = asker->first;
    asker->first = request->next;
    if (!asker->first)
        asker->last = NULL;
    asker->n_requests--;
    return request;
}

static void on_soon(uv_idle_t *soon);

/* The first request is done. */
static void finish_first(struct kernel_asker *asker, const char *why)
{
    struct request *request = take_first(asker);
    if (!asker->is_closed)
        uv_idle_start(&asker->soon, on_soon);
    answer_owner(request, why);
    uv_close((uv_handle_t *)&request->bound, on_request_closed);
}

static void on_bound(uv_timer_t *bound)
{
    answer_owner(bound->data, "cuDNN took longer than 2 s: the next estimate has its answers");
}

/* ---- the process ---- */

static void stop_process(struct kernel_asker *asker)
{
    if (asker->kept)
        kept_kernels_save(asker->store, asker->kept);
    if (asker->process) {
        int64_t now_us = clock_monotonic_us();
        asking_budget_note(
            &asker->budget, asker->first->uid, asker->answered, now_us - asker->started_us, now_us);
        line_process_drop(asker->process);
    }
    asker->process = NULL;
    asker->kept = NULL;
    uv_timer_stop(&asker->limit);
}

/* The rest of the user, or the one that is over first. */
static struct rest *find_rest(struct kernel_asker *asker, uid_t uid)
{
    struct rest *found = &asker->users[0];
    for (size_t i = 0; i < KERNELS_RESTS_MAX; i++) {
        if (asker->users[i].uid == uid && asker->users[i].until_us)
            return &asker->users[i];
        if (asker->users[i].until_us < found->until_us)
            found = &asker->users[i];
    }
    return found;
}

/* The next request would most likely fail, too. Once cuDNN has said its version, a question may be
 * the reason: then only its user must wait. Returns the reason, as it is kept. */
static const char *rest_asking(struct kernel_asker *asker, const char *why)
{
    uid_t uid = asker->first->uid;
    struct rest *rest = asker->kept ? find_rest(asker, uid) : &asker->all;
    char of_user[40] = "";
    *rest = (struct rest){.uid = uid, .until_us = clock_monotonic_us() + KERNELS_REST_US};
    snprintf(rest->why, sizeof rest->why, "%s", why);
    if (asker->kept)
        snprintf(of_user, sizeof of_user, " of user %u", (unsigned)uid);
    log_warning("cuDNN is not asked for kernels%s for %d min: %s", of_user,
        (int)(KERNELS_REST_US / MINUTE_US), rest->why);
    return rest->why;
}

static void fail_asking(struct kernel_asker *asker, const char *why)
{
    const char *kept = rest_asking(asker, why);
    stop_process(asker);
    finish_first(asker, kept);
}

static void on_process_end(void *context)
{
    fail_asking(context, "colloc-cudnn ended before it had answered");
}

/* What was answered before is kept, and the network is asked again with its next estimate. */
static void on_limit(uv_timer_t *limit)
{
    struct kernel_asker *asker = limit->data;
    bool is_slow = asker->answered > 0;
    if (!is_slow)
        rest_asking(asker, "cuDNN did not answer for 20 s");
    stop_process(asker);
    finish_first(asker, "cuDNN took longer than 20 s");
}

/* ---- lines ---- */

/* Returns what follows the word and a blank; NULL: the line begins otherwise. */
static const char *text_after(const char *line, const char *word)
{
    size_t size = strlen(word);
    return strncmp(line, word, size) == 0 && line[size] == ' ' ? line + size + 1 : NULL;
}

static bool parse_number(const char *text, int64_t *ret_number)
{
    char *end;
    errno = 0;
    *ret_number = strtoll(text, &end, 10);
    return end != text && errno == 0 && *ret_number >= 0 && (*end == ' ' || *end == '\0');
}

/* Keeps the questions that have no answer at the front of the request's. */
static void drop_answered(struct kernel_asker *asker, struct request *request)
{
    const struct kernel_answers *answers = kept_kernels_answers(asker->kept);
    size_t left = 0;
    for (size_t i = 0; i < request->n; i++) {
        int64_t bytes;
        if (!kernel_answers_find(answers, &request->questions[i], &bytes))
            request->questions[left++] = request->questions[i];
    }
    request->n = left;
}

static int send_questions(struct kernel_asker *asker, const struct request *request)
{
    char *text = malloc(request->n * CONV_QUESTION_LINE_SIZE + 1);
    size_t used = 0;
    for (size_t i = 0; text && i < request->n; i++) {
        conv_question_write(&request->questions[i], text + used);
        used += strlen(text + used);
        text[used++] = '\n';
    }
    return text ? line_process_write(asker->process, text, used) : -ENOMEM;
}

static void finish_if_all_answered(struct kernel_asker *asker)
{
    if (asker->answered < asker->first->n)
        return;
    stop_process(asker);
    finish_first(asker, NULL);
}

static void take_version(struct kernel_asker *asker, int64_t version)
{
    struct request *request = asker->first;
    struct kernel_origin origin = {.cudnn = version};
    snprintf(origin.gpu, sizeof origin.gpu, "%s", request->gpu_kind);
    snprintf(origin.driver, sizeof origin.driver, "%s", gpus_driver_version(asker->parts.gpus));
    asker->kept = kernel_store_use(asker->store, &origin);
    if (!asker->kept) {
        fail_asking(asker, "out of memory");
        return;
    }
    drop_answered(asker, request);
    const char *why = asking_budget_check(
        &asker->budget, request->uid, request->n, clock_monotonic_us());
    if (request->n > 0 && why) {
        stop_process(asker);
        finish_first(asker, why);
    } else if (request->n > 0 && send_questions(asker, request) < 0) {
        fail_asking(asker, "colloc-cudnn cannot be reached");
    } else {
        finish_if_all_answered(asker);
    }
}

static void take_answer(struct kernel_asker *asker, int64_t bytes)
{
    struct request *request = asker->first;
    if (kept_kernels_put(asker->kept, &request->questions[asker->answered++], bytes) < 0)
        fail_asking(asker, "out of memory");
    else
        finish_if_all_answered(asker);
}

/* In a process that was killed or replaced anything may come: it is not trusted. */
static void on_process_line(void *context, const char *bytes, size_t size, size_t left)
{
    struct kernel_asker *asker = context;
    char line[KERNELS_WHY_SIZE];
    const char *text;
    int64_t number;
    snprintf(line, sizeof line, "%.*s", (int)size, bytes);
    if ((text = text_after(line, "error")))
        fail_asking(asker, text);
    else if (!asker->kept && (text = text_after(line, "cudnn")) && parse_number(text, &number))
        take_version(asker, number);
    else if (asker->kept && (text = text_after(line, "answer")) && parse_number(text, &number))
        take_answer(asker, number);
    else if (asker->kept && strcmp(line, "unknown") == 0)
        take_answer(asker, KERNEL_NONE);
    else
        fail_asking(asker, "colloc-cudnn answered with nonsense");
}

/* ---- the start of a request ---- */

static int choose_gpu(const struct kernel_asker *asker, const char *kind, const char **ret_why)
{
    const struct core_settings *settings = core_get_settings(asker->parts.core);
    return asking_choose(core_view(asker->parts.core), kind, &settings->conditions,
        asker->parts.config->kernels_memory, driver_now_us(asker->parts.driver), ret_why);
}

static const char *why_not(struct kernel_asker *asker, uid_t uid, const char *kind)
{
    const char *why = NULL;
    const struct rest *rest = find_rest(asker, uid);
    int64_t now_us = clock_monotonic_us();
    if (asker->is_closed)
        return "collocd is going down";
    if (asker->all.until_us > now_us)
        return asker->all.why;
    if (rest->uid == uid && rest->until_us > now_us)
        return rest->why;
    why = asking_budget_check(&asker->budget, uid, 1, now_us);
    if (why)
        return why;
    return choose_gpu(asker, kind, &why) < 0 ? why : NULL;
}

/* The GPU is the only one that it can use. */
static int spawn_process(struct kernel_asker *asker)
{
    const struct config *config = asker->parts.config;
    char visible[128], *added[] = {no_mps, is_lazy, no_cache, visible, NULL};
    char user[sizeof config->cudnn_user + 8];
    char *arguments[] = {(char *)config->cudnn_program, user, (char *)config->cudnn_library, NULL};
    snprintf(user, sizeof user, "--user=%s", config->cudnn_user);
    snprintf(visible, sizeof visible, "CUDA_VISIBLE_DEVICES=%s", asker->gpu_uuid);
    char **environment = environment_make(needed, true, added);
    const struct line_process_order order = {.loop = asker->parts.loop,
        .arguments = arguments,
        .environment = environment,
        .line_max = LINE_MAX_BYTES,
        .context = asker,
        .on_line = on_process_line,
        .on_end = on_process_end};
    int r = environment ? line_process_start(&asker->processes, &order, &asker->process) : -ENOMEM;
    free(environment);
    return r;
}

static int start_process(struct kernel_asker *asker)
{
    const char *why;
    int gpu = choose_gpu(asker, asker->first->gpu_kind, &why);
    if (gpu < 0)
        return -EAGAIN;
    snprintf(asker->gpu_uuid, sizeof asker->gpu_uuid, "%s",
        core_view(asker->parts.core)->gpus[gpu].id.uuid);
    asker->answered = 0;
    asker->started_us = clock_monotonic_us();
    int r = spawn_process(asker);
    if (r == 0)
        uv_timer_start(&asker->limit, on_limit, (uint64_t)(KERNELS_LIMIT_US / MS_US), 0);
    return r;
}

/* Starts the first request that can be. Its owner may have its answer: then it is asked for the
 * next estimate. */
static void on_soon(uv_idle_t *soon)
{
    struct kernel_asker *asker = soon->data;
    uv_idle_stop(soon);
    if (asker->process || !asker->first)
        return;
    const char *why = why_not(asker, asker->first->uid, asker->first->gpu_kind);
    int r = why ? -EAGAIN : start_process(asker);
    if (why)
        finish_first(asker, why);
    else if (r < 0)
        fail_asking(asker, r == -ENOENT ? "colloc-cudnn is not installed" : strerror(-r));
}

static const char *find_refusal(struct kernel_asker *asker, const struct kernel_request *wanted)
{
    int of_user = 0;
    for (const struct request *request = asker->first; request; request = request->next)
        of_user += request->uid == wanted->uid;
    if (of_user >= KERNELS_PER_USER || asker->n_requests >= KERNELS_REQUESTS_MAX)
        return "other networks are being asked";
    return why_not(asker, wanted->uid, wanted->gpu_kind);
}

static struct request *make_request(struct kernel_asker *asker, const struct kernel_request *wanted)
{
    struct request *request = calloc(1, sizeof *request);
    struct conv_question *questions = malloc(wanted->n * sizeof *questions);
    if (!request || !questions) {
        free(request);
        free(questions);
        return NULL;
    }
    memcpy(questions, wanted->questions, wanted->n * sizeof *questions);
    *request = (struct request){.asker = asker,
        .uid = wanted->uid,
        .questions = questions,
        .n = wanted->n,
        .context = wanted->context,
        .on_done = wanted->on_done};
    snprintf(request->gpu_kind, sizeof request->gpu_kind, "%s", wanted->gpu_kind);
    uv_timer_init(asker->parts.loop, &request->bound);
    request->bound.data = request;
    return request;
}

const char *kernel_asker_ask(struct kernel_asker *asker, const struct kernel_request *wanted)
{
    const char *why = find_refusal(asker, wanted);
    if (why)
        return why;
    struct request *request = make_request(asker, wanted);
    if (!request)
        return "out of memory";
    *(asker->last ? &asker->last->next : &asker->first) = request;
    asker->last = request;
    asker->n_requests++;
    uv_timer_start(&request->bound, on_bound, (uint64_t)(KERNELS_BOUND_US / MS_US), 0);
    uv_idle_start(&asker->soon, on_soon);
    return NULL;
}

/* ---- while it runs ---- */

static bool takes_too_much(const struct kernel_asker *asker, const struct gpu_report *gpu)
{
    for (size_t i = 0; i < gpu->n_external; i++)
        if (gpu->external[i].pid == line_process_pid(asker->process) &&
            gpu->external[i].used_bytes.valid &&
            gpu->external[i].used_bytes.value > (double)asker->parts.config->kernels_memory)
            return true;
    return false;
}

/* The memory that the process takes itself is no reason to end it. */
static const char *why_end(const struct kernel_asker *asker, const struct gpu_report *gpu)
{
    const struct gpu_view *view = &core_view(asker->parts.core)->gpus[gpu->view];
    const char *why;
    bool is_allowed = asking_is_allowed(view, &core_get_settings(asker->parts.core)->conditions,
        -asker->parts.config->kernels_memory, driver_now_us(asker->parts.driver), &why);
    return is_allowed ? NULL : why;
}

void kernel_asker_review(struct kernel_asker *asker)
{
    struct gpu_report gpu;
    for (size_t i = 0; asker->process && gpus_report(asker->parts.gpus, i, &gpu); i++) {
        if (gpu.view < 0 || strcmp(gpu.info->uuid, asker->gpu_uuid) != 0)
            continue;
        const char *why = why_end(asker, &gpu);
        if (takes_too_much(asker, &gpu)) {
            fail_asking(asker, "colloc-cudnn took more GPU memory than the setting kernels-memory");
        } else if (why) {
            stop_process(asker);
            finish_first(asker, why);
        }
    }
}

/* ---- kept answers ---- */

bool kernel_asker_is_on(const struct kernel_asker *asker)
{
    return asker->parts.config->kernels_memory > 0;
}

const struct kernel_answers *kernel_asker_answers(
    const struct kernel_asker *asker, const char *gpu_kind, bool is_any)
{
    return kernel_store_find(
        asker->store, gpu_kind, is_any ? NULL : gpus_driver_version(asker->parts.gpus));
}

/* ---- life ---- */

struct kernel_asker *kernel_asker_create(const struct kernel_asker_options *options)
{
    struct kernel_asker *asker = calloc(1, sizeof *asker);
    if (asker)
        asker->store = kernel_store_open(options->config->state_dir);
    if (!asker || !asker->store) {
        free(asker);
        return NULL;
    }
    asker->parts = *options;
    asker->limit.data = asker->soon.data = asker;
    uv_timer_init(options->loop, &asker->limit);
    uv_idle_init(options->loop, &asker->soon);
    return asker;
}

void kernel_asker_close(struct kernel_asker *asker)
{
    if (!asker || asker->is_closed)
        return;
    asker->is_closed = true;
    stop_process(asker);
    while (asker->first)
        finish_first(asker, "collocd is going down");
    line_processes_leave(&asker->processes);
    uv_close((uv_handle_t *)&asker->limit, NULL);
    uv_close((uv_handle_t *)&asker->soon, NULL);
}

void kernel_asker_destroy(struct kernel_asker *asker)
{
    if (!asker)
        return;
    kernel_store_close(asker->store);
    asking_budget_fini(&asker->budget);
    free(asker);
}
