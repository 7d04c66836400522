/* SPDX-License-Identifier: Apache-2.0 */
/* The pretend log tells what is appended; the hooks pass starts and kills on to the part under
 * test. */
#include "pretend_driver.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "policy/policies.h"

struct pretend_driver pretend;

void tell(const char *format, ...)
{
    size_t used = strlen(pretend.story);
    va_list args;
    va_start(args, format);
    vsnprintf(pretend.story + used, sizeof pretend.story - used, format, args);
    va_end(args);
}

void expect_story(const char *expected)
{
    assert_string_equal(pretend.story, expected);
    pretend.story[0] = '\0';
}

/* ---- the log ---- */

int store_begin(struct store *store, struct fault *fault)
{
    return 0;
}

int store_append(struct store *store, const struct event *event, int64_t wall_us,
    const json_t *detail, struct fault *fault)
{
    if (event->kind == EVENT_EXITED)
        tell("EXITED %s; ", failure_name(event->exited.failure));
    else if (event->kind == EVENT_STARTED && event->started.by_streams)
        tell("STARTED without MPS; ");
    else
        tell("%s; ", event_name(event->kind));
    if (event->kind == EVENT_EXITED) {
        json_decref(pretend.exit_detail);
        pretend.exit_detail = json_incref((json_t *)(uintptr_t)detail);
    }
    return 0;
}

int store_put_ended(
    struct store *store, const struct store_ended *ended, const json_t *record, struct fault *fault)
{
    return 0;
}

int store_commit(struct store *store, struct fault *fault)
{
    return 0;
}

void store_rollback(struct store *store)
{
}

bool store_release_reserve(struct store *store)
{
    return false;
}

int store_task_events(struct store *store, uint64_t task, store_find_policy *find_policy,
    store_on_event *on_event, void *context, struct fault *fault)
{
    struct array_element elements[] = {{.task = task + 1}, {.task = task + 2, .index = 1}};
    struct event submit = {.kind = EVENT_SUBMIT, .task = task};
    if (task == pretend.array) {
        submit.submit.elements = elements;
        submit.submit.n_elements = 2;
        pretend.array_reads++;
    }
    json_t *detail = json_pack(
        "{s:s, s:s, s:s, s:i}", "script", "blob", "environment", "blob", "cwd", "/", "gid", 100);
    int r = on_event(context, &submit, 0, detail);
    json_decref(detail);
    return r;
}

/* ---- names ---- */

bool names_is_unlisted(const struct names *names, uid_t uid)
{
    return pretend.lacks_users;
}

/* ---- the driver's hooks ---- */

static void on_start(void *context, uint64_t task)
{
    if (pretend.start)
        pretend.start(task);
}

static void on_kill(void *context, uint64_t task)
{
    if (pretend.kill)
        pretend.kill(task);
}

static void on_suspend(void *context, uint64_t task)
{
    if (pretend.suspend)
        pretend.suspend(task);
}

static void on_resume(void *context, uint64_t task)
{
    if (pretend.resume)
        pretend.resume(task);
}

static void on_pause(void *context, uint64_t task)
{
    if (pretend.pause)
        pretend.pause(task);
}

static void on_continue(void *context, uint64_t task)
{
    if (pretend.unpause)
        pretend.unpause(task);
}

static void on_answer_memory(void *context, uint64_t task, bool is_granted)
{
    if (pretend.answer_memory)
        pretend.answer_memory(task, is_granted);
}

static void on_stepped(void *context, const struct event *event, int answer)
{
}

static void on_decided(void *context, const struct event *event, const json_t *detail)
{
}

static json_t *on_record_end(void *context, const struct task *task)
{
    return pretend.record_end ? pretend.record_end(task) : json_object();
}

static void on_recorded(void *context, const struct event *event, const json_t *detail)
{
}

static void on_ended(void *context, uint64_t task, const json_t *record)
{
    if (pretend.ended)
        pretend.ended(task, record);
    jobs_remove(pretend.jobs, jobs_find(pretend.jobs, task));
}

static void on_retry(void *context)
{
}

/* Charges are events, too, which would stand in each list of what happened. */
static struct core *make_core(int n_gpus)
{
    struct core *core = world_core(&policy_exclusive, n_gpus);
    struct core_settings settings = *core_get_settings(core);
    settings.usage_half_life_us = 0;
    core_configure(core, &settings);
    return core;
}

/* ---- */

void pretend_driver_begin(int n_gpus)
{
    static char store;
    memset(&pretend, 0, sizeof pretend);
    uv_loop_init(&pretend.loop);
    pretend.core = make_core(n_gpus);
    pretend.jobs = jobs_create(NULL);
    const struct driver_options options = {
        .loop = &pretend.loop,
        .core = pretend.core,
        .store = (struct store *)(void *)&store,
        .state_dir = "/nowhere",
        .hooks = {.start = on_start,
            .kill = on_kill,
            .suspend = on_suspend,
            .resume = on_resume,
            .pause = on_pause,
            .unpause = on_continue,
            .answer_memory = on_answer_memory,
            .stepped = on_stepped,
            .decided = on_decided,
            .record_end = on_record_end,
            .recorded = on_recorded,
            .ended = on_ended,
            .retry = on_retry},
    };
    pretend.driver = driver_create(&options);
    for (int i = 0; i < n_gpus; i++) {
        struct event sample = driver_event(pretend.driver, EVENT_SAMPLE, 0);
        sample.sample = (struct core_sample){.gpu = i,
            .mem_used_bytes = reading_of(0),
            .smact = reading_of(0),
            .utilisation = reading_of(0),
            .external_processes = reading_of(0)};
        assert_int_equal(driver_feed(pretend.driver, &sample, NULL), 0);
    }
    expect_story("");
}

void pretend_driver_end(void)
{
    driver_close(pretend.driver);
    uv_run(&pretend.loop, UV_RUN_DEFAULT);
    driver_destroy(pretend.driver);
    jobs_destroy(pretend.jobs);
    core_destroy(pretend.core);
    json_decref(pretend.exit_detail);
    assert_int_equal(uv_loop_close(&pretend.loop), 0);
}

int feed_request(uint64_t task, struct task_request request)
{
    struct event event = driver_event(pretend.driver, EVENT_SUBMIT, task);
    event.submit.request = request;
    assert_non_null(jobs_add(pretend.jobs, task, 0, NULL));
    return driver_feed(pretend.driver, &event, NULL);
}

int feed(enum event_kind kind, uint64_t task)
{
    if (kind == EVENT_SUBMIT)
        return feed_request(task, (struct task_request){.gpus = 1});
    struct event event = driver_event(pretend.driver, kind, task);
    return driver_feed(pretend.driver, &event, NULL);
}
