/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part messages with pretend parts below, a pretend log and pretend helper processes: each
 * test reads which messages are handed to a helper, and says how that ended.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <errno.h>

#include "base/clock.h"
#include "daemon/http/http_answers.h"
#include "daemon/job.h"
#include "daemon/messages/messages.h"
#include "service/user_helper.h"

enum { ADA = 1000, BOB = 1001, EVENTS_MAX = 100, EVENTS_OF_A_TURN = 20, GAVE_UP = 1 };

static struct {
    uv_loop_t loop;
    struct config config;
    struct messages *messages;
    char folder[32];
    struct event log[EVENTS_MAX]; /* event 1 first */
    int n_events;
    const char *wishes[8];              /* "notify" of each task; NULL: none */
    struct user_helper *helpers[8];     /* under way */
    struct user_helper_order orders[8]; /* of these */
    int n_helpers, n_begun;
    int n_details;   /* how often a task's wish was read */
    bool shares_one; /* all users are unlisted */
} seen;

/* ---- the pretend log ---- */

static char store;

int64_t store_last_event(const struct store *of)
{
    return seen.n_events;
}

int store_events_after(struct store *of, int64_t seq, int64_t limit, store_find_policy *find_policy,
    store_on_event *on_event, void *context, struct fault *fault, int64_t *ret_seq)
{
    for (*ret_seq = seq; *ret_seq < seen.n_events && *ret_seq - seq < limit;) {
        ++*ret_seq;
        assert_int_equal(on_event(context, &seen.log[*ret_seq - 1], 0, NULL), 0);
    }
    return 0;
}

int job_read_detail(struct store *of, uint64_t task, struct fault *fault, json_t **ret_detail)
{
    seen.n_details++;
    *ret_detail = json_pack("{s:s, s:s, s:i, s:s*}", "user", "ada", "notify_to",
        "http://127.0.0.1:9/hook", "gid", 100, "notify", seen.wishes[task]);
    return 0;
}

/* ---- what the part calls ---- */

int http_read_record(struct http *http, uint64_t id, struct fault *fault, json_t **ret_record)
{
    *ret_record = json_pack("{s:I, s:s, s:s, s:i}", "id", (json_int_t)id, "name", "train", "state",
        "COMPLETED", "uid", id < 5 ? ADA : BOB);
    return 0;
}

const struct cluster_view *__wrap_core_view(const struct core *core);
const struct cluster_view *__wrap_core_view(const struct core *core)
{
    static struct gpu_view gpu = {.id.label = "0"};
    static const struct cluster_view view = {.gpus = &gpu, .n_gpus = 1};
    return &view;
}

const struct name *names_of_uid(struct names *names, uid_t uid)
{
    return NULL;
}

bool names_is_unlisted(const struct names *names, uid_t uid)
{
    return seen.shares_one;
}

/* ---- the pretend helpers ---- */

int user_helper_begin(struct user_helper *helper, uv_loop_t *loop,
    const struct user_helper_order *order, struct fault *fault)
{
    seen.orders[seen.n_helpers] = *order;
    seen.helpers[seen.n_helpers++] = helper;
    seen.n_begun++;
    return 0;
}

int user_helper_become(const struct user_helper_order *order)
{
    return 0;
}

void user_helper_end(struct user_helper *helper, const struct user_helper_report *report)
{
    abort(); /* no child was begun */
}

void user_helper_leave(struct user_helper *helper)
{
}

/* The first helper under way reports that. */
static void end_helper(int answer)
{
    static const struct fault why = {.text = "the webhook answered 503"};
    struct user_helper *helper = seen.helpers[0];
    memmove(seen.helpers, seen.helpers + 1, sizeof seen.helpers - sizeof *seen.helpers);
    memmove(seen.orders, seen.orders + 1, sizeof seen.orders - sizeof *seen.orders);
    seen.n_helpers--;
    helper->on_done(helper, answer, &why);
}

/* ---- the part ---- */

static void create_part(void)
{
    struct fault fault;
    const struct messages_options options = {
        .loop = &seen.loop, .config = &seen.config, .store = (struct store *)(void *)&store};
    seen.messages = messages_create(&options, &fault);
    assert_non_null(seen.messages);
    messages_start(seen.messages);
}

static void destroy_part(void)
{
    messages_close(seen.messages);
    uv_run(&seen.loop, UV_RUN_DEFAULT);
    messages_destroy(seen.messages);
}

static int set_up(void **state)
{
    memset(&seen, 0, sizeof seen);
    strcpy(seen.folder, "/tmp/messages-XXXXXX");
    if (!mkdtemp(seen.folder))
        return -1;
    strcpy(seen.config.state_dir, seen.folder);
    seen.config.message_retry_us = HOUR_US;
    uv_loop_init(&seen.loop);
    create_part();
    return 0;
}

static int tear_down(void **state)
{
    static const char *const leaves[] = {"", "-wal", "-shm"};
    char path[64];
    destroy_part();
    for (size_t i = 0; i < sizeof leaves / sizeof *leaves; i++) {
        snprintf(path, sizeof path, "%s/messages.db%s", seen.folder, leaves[i]);
        unlink(path);
    }
    return uv_loop_close(&seen.loop) | rmdir(seen.folder);
}

/* ---- what happens ---- */

static void log_event(enum event_kind kind, uint64_t task)
{
    struct event event = {.kind = kind, .task = task};
    if (kind == EVENT_END)
        event.end = TASK_COMPLETED;
    seen.log[seen.n_events++] = event;
    messages_note(seen.messages, &event);
}

/* Runs the loop until that many helpers have been begun in all, for a minute at most. */
static void wait_begun(int n)
{
    for (int64_t end_us = clock_monotonic_us() + 60 * SECOND_US; seen.n_begun < n;) {
        assert_true(clock_monotonic_us() < end_us);
        uv_run(&seen.loop, UV_RUN_ONCE);
    }
    assert_int_equal(seen.n_begun, n);
}

/* The next message is one about this later event: none is left of those before it. */
static void expect_no_more(int n)
{
    seen.wishes[7] = "end";
    log_event(EVENT_END, 7);
    wait_begun(n + 1);
    assert_int_equal(seen.n_helpers, 1);
    assert_int_equal(seen.orders[0].uid, BOB);
    end_helper(0);
}

/* ---- tests ---- */

static void a_user_gets_the_wanted_messages(void **state)
{
    seen.wishes[1] = "start,end";
    log_event(EVENT_PLACE, 1);
    wait_begun(1);
    assert_int_equal(seen.orders[0].uid, ADA);
    assert_int_equal(seen.orders[0].gid, 100);
    end_helper(0);
    log_event(EVENT_RECOVER, 1); /* not wanted */
    log_event(EVENT_PLACE, 2);   /* of a task without messages */
    log_event(EVENT_END, 1);
    wait_begun(2);
    end_helper(0);
    expect_no_more(2);
}

/* An array that ends at once keeps the loop from nothing else. */
static void many_events_are_taken_in_turns(void **state)
{
    seen.wishes[5] = "end";
    for (int i = 0; i < EVENTS_MAX; i++)
        log_event(EVENT_END, 5);
    for (int before = 0; seen.n_details < EVENTS_MAX; before = seen.n_details) {
        uv_run(&seen.loop, UV_RUN_NOWAIT); /* UV_RUN_ONCE may run timers twice */
        assert_in_range(seen.n_details - before, 0, EVENTS_OF_A_TURN);
        uv_sleep(1);
    }
    wait_begun(1);
    assert_int_equal(seen.n_details, EVENTS_MAX);
    end_helper(0);
}

/* The next message of a user waits until the one before has gone; another user's does not. */
static void a_user_has_one_helper_at_a_time(void **state)
{
    seen.wishes[1] = seen.wishes[2] = seen.wishes[5] = "end";
    log_event(EVENT_END, 1);
    log_event(EVENT_END, 2);
    log_event(EVENT_END, 5);
    wait_begun(2);
    assert_int_equal(seen.orders[0].uid, ADA);
    assert_int_equal(seen.orders[1].uid, BOB);
    end_helper(0);
    wait_begun(3);
    assert_int_equal(seen.orders[1].uid, ADA);
    end_helper(0);
    end_helper(0);
    expect_no_more(3);
}

static void unlisted_users_have_one_helper(void **state)
{
    seen.wishes[1] = seen.wishes[5] = "end";
    seen.shares_one = true;
    log_event(EVENT_END, 1);
    log_event(EVENT_END, 5);
    wait_begun(1);
    for (int i = 0; i < 3; i++)
        uv_run(&seen.loop, UV_RUN_NOWAIT);
    assert_int_equal(seen.n_begun, 1);
    assert_int_equal(seen.orders[0].uid, ADA);
    end_helper(0);
    wait_begun(2);
    assert_int_equal(seen.orders[0].uid, BOB);
    end_helper(0);
}

/* The database turns out to lack a user while its message is delivered: it is delivered once. */
static void a_user_that_becomes_unlisted_gets_it_once(void **state)
{
    seen.wishes[1] = seen.wishes[5] = "end";
    log_event(EVENT_END, 1);
    wait_begun(1);
    seen.shares_one = true;
    log_event(EVENT_END, 5);
    for (int64_t end_us = clock_monotonic_us() + 50 * MS_US; clock_monotonic_us() < end_us;)
        uv_run(&seen.loop, UV_RUN_NOWAIT);
    assert_int_equal(seen.n_begun, 1);
    end_helper(0);
    wait_begun(2);
    assert_int_equal(seen.orders[0].uid, BOB);
    end_helper(0);
}

static void a_process_outside_of_tasks_makes_messages(void **state)
{
    const struct outside_use use = {ADA, 100, "ada", "python (pid 4711)", "0"};
    strcpy(seen.config.mail_server, "none");
    messages_note_outside(seen.messages, &use);
    wait_begun(1);
    assert_int_equal(seen.orders[0].uid, ADA);
    end_helper(0);
    strcpy(seen.config.mail_server, "smtp://127.0.0.1:9");
    messages_note_outside(seen.messages, &use);
    wait_begun(2);
    end_helper(0);
    wait_begun(3); /* by mail, too */
    end_helper(0);
    expect_no_more(3);
}

static void what_is_refused_is_given_up(void **state)
{
    seen.wishes[1] = "end";
    log_event(EVENT_END, 1);
    wait_begun(1);
    end_helper(GAVE_UP);
    expect_no_more(1);
}

/* With its number of attempts, also by another daemon. */
static void what_failed_is_tried_again_later(void **state)
{
    seen.wishes[1] = "end";
    seen.config.message_retry_us = 1000;
    log_event(EVENT_END, 1);
    for (int i = 1; i <= 3; i++) {
        wait_begun(i);
        end_helper(-EAGAIN);
    }
    destroy_part();
    create_part();
    for (int i = 4; i < MESSAGE_ATTEMPTS_MAX; i++) {
        wait_begun(i);
        end_helper(-EAGAIN);
    }
    wait_begun(MESSAGE_ATTEMPTS_MAX);
    end_helper(-EAGAIN); /* the last attempt */
    expect_no_more(MESSAGE_ATTEMPTS_MAX);
}

/* A message that was being delivered when the daemon was killed is delivered again; events of which
 * messages were made make none again. */
static void a_restart_loses_and_repeats_nothing(void **state)
{
    seen.wishes[1] = seen.wishes[2] = "end";
    log_event(EVENT_END, 1);
    wait_begun(1);
    destroy_part();
    seen.n_helpers = 0;
    seen.log[seen.n_events++] = (struct event){
        .kind = EVENT_END, .task = 2, .end = TASK_COMPLETED}; /* meanwhile */
    create_part();
    wait_begun(2);
    end_helper(0);
    wait_begun(3);
    end_helper(0);
    expect_no_more(3);
}

/* It has to last for ten minutes. */
static void a_suspension_is_no_message_at_once(void **state)
{
    seen.wishes[1] = "suspend";
    log_event(EVENT_SUSPENDED, 1);
    expect_no_more(0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_user_gets_the_wanted_messages),
        TEST(many_events_are_taken_in_turns),
        TEST(a_user_has_one_helper_at_a_time),
        TEST(unlisted_users_have_one_helper),
        TEST(a_user_that_becomes_unlisted_gets_it_once),
        TEST(a_process_outside_of_tasks_makes_messages),
        TEST(what_is_refused_is_given_up),
        TEST(what_failed_is_tried_again_later),
        TEST(a_restart_loses_and_repeats_nothing),
        TEST(a_suspension_is_no_message_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
