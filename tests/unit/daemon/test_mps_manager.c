/* SPDX-License-Identifier: Apache-2.0 */
/* The MPS part with pretend hooks, helper processes and control daemons. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "daemon/mps/mps_by_hand.h"
#include "daemon/mps/mps_manager.h"
#include "daemon/user_helper.h"
#include "gpu/mps.h"

enum { ADA = 1000, BOB = 1001 };

static struct {
    struct user_helper *helper; /* the one under way */
    char what[32];              /* it does */
    pid_t control_daemon;       /* 0: there is none */
    int ready, answered, status;
    uid_t ready_uid;
} seen;

/* ---- helper processes ---- */

int user_helper_begin(struct user_helper *helper, uv_loop_t *loop,
    const struct user_helper_order *order, struct fault *fault)
{
    assert_null(seen.helper);
    helper->handles = (struct user_helper_handles *)(void *)&seen;
    snprintf(seen.what, sizeof seen.what, "%s", order->what);
    seen.helper = helper;
    return 0;
}

int user_helper_become(const struct user_helper_order *order)
{
    fail();
    return -1;
}

void user_helper_end(struct user_helper *helper, const struct user_helper_report *report)
{
    abort();
}

void user_helper_leave(struct user_helper *helper)
{
    helper->handles = NULL;
}

static void finish(int answer, pid_t control_daemon, const char *why)
{
    struct user_helper *helper = seen.helper;
    struct fault fault = {0};
    assert_non_null(helper);
    if (answer < 0)
        fault_set(&fault, -answer, "%s", why);
    seen.control_daemon = control_daemon;
    seen.helper = NULL;
    helper->handles = NULL;
    helper->on_done(helper, answer, &fault);
}

/* ---- control daemons, names, requests ---- */

pid_t mps_find_below(int folder, const char *path, uid_t uid)
{
    return seen.control_daemon;
}

int mps_start(const char *pipe_dir, const char *log_dir, const char *const *uuids, size_t n,
    struct fault *fault)
{
    fail();
    return 0;
}

int mps_stop(const char *pipe_dir, struct fault *fault)
{
    fail();
    return 0;
}

int mps_list_clients(
    const char *pipe_dir, struct mps_client *clients, size_t room, struct fault *fault)
{
    fail();
    return 0;
}

const struct name *names_of_uid(struct names *names, uid_t uid)
{
    static const struct name name = {.name = "ada"};
    return &name;
}

void api_reply(struct api_request *request, int status, json_t *body)
{
    seen.status = status;
    json_decref(body);
}

void api_reply_error(struct api_request *request, int status, const char *format, ...)
{
    seen.status = status;
}

/* ---- the hooks ---- */

static void on_ready(void *context, uid_t uid)
{
    seen.ready++;
    seen.ready_uid = uid;
}

static void on_answered(void *context)
{
    seen.answered++;
}

static int count_clients(void *context, uid_t uid)
{
    return 0;
}

static size_t list_gpus(void *context, const char **uuids, size_t max)
{
    return 0;
}

/* ---- */

struct fixture {
    uv_loop_t loop;
    struct config config;
    struct mps *mps;
};

static int begin(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);
    char folder[] = "/tmp/colloc-mps-XXXXXX";
    memset(&seen, 0, sizeof seen);
    uv_loop_init(&fixture->loop);
    assert_non_null(mkdtemp(folder));
    snprintf(fixture->config.state_dir, sizeof fixture->config.state_dir, "%s", folder);
    fixture->config.mps_linger_us = 60 * SECOND_US;
    const struct mps_options options = {
        .loop = &fixture->loop,
        .config = &fixture->config,
        .hooks = {fixture, on_ready, on_answered, count_clients, list_gpus},
    };
    fixture->mps = mps_create(&options);
    *state = fixture;
    return 0;
}

static int end(void **state)
{
    struct fixture *fixture = *state;
    char command[64 + sizeof fixture->config.state_dir];
    seen.control_daemon = 0;
    mps_close(fixture->mps);
    uv_run(&fixture->loop, UV_RUN_DEFAULT);
    mps_destroy(fixture->mps);
    assert_int_equal(uv_loop_close(&fixture->loop), 0);
    snprintf(command, sizeof command, "rm -r '%s'", fixture->config.state_dir);
    free(fixture);
    return system(command);
}

static int prepare(struct fixture *fixture, uid_t uid, struct fault *fault)
{
    const char *pipe_dir = "";
    int r = mps_prepare(fixture->mps, uid, getgid(), &pipe_dir, fault);
    if (r == 0)
        assert_non_null(strstr(pipe_dir, uid == ADA ? "/mps/1000/pipe" : "/mps/1001/pipe"));
    return r;
}

static void test_a_task_waits_for_the_start(void **state)
{
    struct fault fault = {0};
    assert_int_equal(prepare(*state, ADA, &fault), MPS_WAIT);
    assert_string_equal(seen.what, "start MPS");
    assert_int_equal(prepare(*state, ADA, &fault), MPS_WAIT); /* one start, not two */
    assert_int_equal(seen.ready, 0);
    finish(0, 4711, NULL);
    assert_int_equal(seen.ready, 1);
    assert_int_equal(seen.ready_uid, ADA);
    assert_int_equal(prepare(*state, ADA, &fault), 0);
}

static void test_a_failed_start_is_not_repeated_at_once(void **state)
{
    struct fault fault = {0};
    assert_int_equal(prepare(*state, ADA, &fault), MPS_WAIT);
    finish(-EIO, 0, "the pipe is broken");
    assert_int_equal(seen.ready, 1); /* the task starts by streams */
    assert_int_equal(prepare(*state, ADA, &fault), -EAGAIN);
    assert_string_equal(fault.text, "the pipe is broken");
    assert_int_equal(prepare(*state, BOB, &fault), MPS_WAIT); /* another user is not affected */
    finish(0, 4712, NULL);
}

static void test_a_request_is_answered_when_it_is_done(void **state)
{
    struct fixture *fixture = *state;
    struct fault fault = {0};
    struct api_request *asker = (struct api_request *)(void *)&fault;
    assert_int_equal(mps_stop_by_hand(fixture->mps, ADA, asker, &fault), -ESRCH);
    assert_int_equal(mps_start_by_hand(fixture->mps, ADA, getgid(), asker, &fault), 0);
    assert_int_equal(mps_start_by_hand(fixture->mps, ADA, getgid(), asker, &fault), -EBUSY);
    assert_int_equal(seen.status, 0);
    finish(0, 4711, NULL);
    assert_int_equal(seen.status, 200);
    assert_int_equal(seen.answered, 1);
    assert_int_equal(mps_stop_by_hand(fixture->mps, ADA, asker, &fault), 0);
    assert_string_equal(seen.what, "stop MPS");
    finish(-EBUSY, 4711, "2 processes still use it");
    assert_int_equal(seen.status, 409);
    assert_int_equal(seen.answered, 2);
}

static void test_the_list_shows_users_and_their_groups(void **state)
{
    struct fixture *fixture = *state;
    struct fault fault = {0};
    gid_t gid = 0;
    assert_false(mps_find_group(fixture->mps, ADA, &gid));
    prepare(*state, ADA, &fault);
    finish(0, 4711, NULL);
    assert_true(mps_find_group(fixture->mps, ADA, &gid));
    assert_int_equal(gid, getgid());
    json_t *list = mps_list(fixture->mps);
    assert_int_equal(json_array_size(list), 1);
    const json_t *ada = json_array_get(list, 0);
    assert_string_equal(json_string_value(json_object_get(ada, "state")), "running");
    assert_int_equal(json_integer_value(json_object_get(ada, "pid")), 4711);
    json_decref(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_task_waits_for_the_start, begin, end),
        cmocka_unit_test_setup_teardown(test_a_failed_start_is_not_repeated_at_once, begin, end),
        cmocka_unit_test_setup_teardown(test_a_request_is_answered_when_it_is_done, begin, end),
        cmocka_unit_test_setup_teardown(test_the_list_shows_users_and_their_groups, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
