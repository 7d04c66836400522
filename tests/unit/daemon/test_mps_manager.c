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

#include "base/file.h"
#include "daemon/mps/mps_by_hand.h"
#include "daemon/mps/mps_manager.h"
#include "gpu/mps.h"
#include "service/user_helper.h"

enum { ADA = 1000, BOB = 1001 };

static const char INSTANCE[] = "MIG-9d4e6a11-0c1e-5a7f-8f8d-2b1f0a6f7c3e";

static struct {
    struct user_helper *helper; /* the one under way */
    char what[32];              /* it does */
    pid_t control_daemon;       /* 0: there is none */
    char pipe_dir[64];          /* where the last one was searched for */
    bool is_gone;               /* the instance */
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
    snprintf(seen.pipe_dir, sizeof seen.pipe_dir, "%s", path);
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

static int count_clients(const void *context, uid_t uid, uint64_t instance)
{
    return 0;
}

static size_t list_gpus(const void *context, const char **uuids, size_t max)
{
    return 0;
}

static bool find_instance(const void *context, uint64_t number, struct mps_instance *ret_instance)
{
    bool is_known = number == mps_instance_number(INSTANCE);
    if (is_known)
        *ret_instance = (struct mps_instance){INSTANCE, "0:1", seen.is_gone};
    return is_known;
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
        .source = {NULL, count_clients, list_gpus, find_instance},
        .hooks = {fixture, on_ready, on_answered},
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
    int r = mps_prepare(fixture->mps, uid, getgid(), "", &pipe_dir, fault);
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
    assert_int_equal(mps_stop_by_hand(fixture->mps, ADA, "", asker, &fault), -ESRCH);
    assert_int_equal(mps_start_by_hand(fixture->mps, ADA, getgid(), asker, &fault), 0);
    assert_int_equal(mps_start_by_hand(fixture->mps, ADA, getgid(), asker, &fault), -EBUSY);
    assert_int_equal(seen.status, 0);
    finish(0, 4711, NULL);
    assert_int_equal(seen.status, 200);
    assert_int_equal(seen.answered, 1);
    assert_int_equal(mps_stop_by_hand(fixture->mps, ADA, "", asker, &fault), 0);
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

static int prepare_instance(struct fixture *fixture, struct fault *fault)
{
    const char *pipe_dir;
    return mps_prepare(fixture->mps, ADA, getgid(), INSTANCE, &pipe_dir, fault);
}

static void test_an_instance_has_its_own(void **state)
{
    struct fixture *fixture = *state;
    struct fault fault = {0};
    char whole[600], instance[600];
    prepare(*state, ADA, &fault);
    finish(0, 4711, NULL);
    seen.control_daemon = 0;
    assert_int_equal(prepare_instance(*state, &fault), MPS_WAIT);
    assert_string_equal(seen.what, "start MPS");
    finish(0, 4712, NULL);
    assert_int_equal(prepare_instance(*state, &fault), 0);
    mps_pipe_dir(fixture->mps, ADA, "", whole, sizeof whole);
    mps_pipe_dir(fixture->mps, ADA, INSTANCE, instance, sizeof instance);
    assert_non_null(strstr(whole, "/mps/1000/pipe"));
    assert_non_null(strstr(instance, "/mps/1000-"));
    assert_non_null(strstr(instance, seen.pipe_dir)); /* found below the folder of root */
    json_t *list = mps_list(fixture->mps);
    const json_t *on_instance = json_array_get(list, 0), *on_gpus = json_array_get(list, 1);
    assert_string_equal(json_string_value(json_object_get(on_instance, "gpu_uuid")), INSTANCE);
    assert_string_equal(json_string_value(json_object_get(on_instance, "gpu")), "0:1");
    assert_true(json_is_null(json_object_get(on_gpus, "gpu_uuid")));
    assert_true(json_is_null(json_object_get(on_gpus, "gpu")));
    json_decref(list);
}

/* `colloc mps stop` is about whole GPUs, `colloc mig` about its instance, without a task. */
static void test_that_of_an_instance_is_stopped_by_its_name(void **state)
{
    struct fixture *fixture = *state;
    struct fault fault = {0};
    struct api_request *asker = (struct api_request *)(void *)&fault;
    prepare_instance(*state, &fault);
    finish(0, 4712, NULL);
    assert_int_equal(mps_stop_by_hand(fixture->mps, ADA, "", asker, &fault), -ESRCH);
    assert_int_equal(mps_stop_by_hand(fixture->mps, ADA, "MIG-none", asker, &fault), -ESRCH);
    assert_int_equal(mps_stop_by_hand(fixture->mps, BOB, INSTANCE, asker, &fault), -ESRCH);
    assert_int_equal(mps_stop_by_hand(fixture->mps, ADA, INSTANCE, asker, &fault), 0);
    assert_string_equal(seen.what, "stop MPS");
    finish(0, 0, NULL);
    assert_int_equal(seen.status, 200);
}

static const char *after_the_loop(struct fixture *fixture)
{
    seen.what[0] = '\0';
    usleep(2000);
    uv_run(&fixture->loop, UV_RUN_NOWAIT);
    return seen.what;
}

static void test_without_its_instance_it_is_stopped_at_once(void **state)
{
    struct fixture *fixture = *state;
    struct fault fault = {0};
    prepare_instance(*state, &fault);
    finish(0, 4712, NULL);
    mps_task_ended(fixture->mps, ADA, INSTANCE);
    assert_string_equal(after_the_loop(fixture), "");
    seen.is_gone = true;
    mps_review(fixture->mps);
    assert_string_equal(after_the_loop(fixture), "stop MPS");
    finish(0, 0, NULL);
}

static void make_folder(const struct fixture *fixture, const char *name)
{
    char path[sizeof fixture->config.state_dir + 80];
    snprintf(path, sizeof path, "%s/mps/%s", fixture->config.state_dir, name);
    assert_int_equal(file_make_folders(path, 0755), 0);
}

static void test_those_of_an_earlier_collocd_are_taken_over(void **state)
{
    struct fixture *fixture = *state;
    char name[64];
    snprintf(name, sizeof name, "1000-%016llx", (unsigned long long)mps_instance_number(INSTANCE));
    make_folder(fixture, name);
    make_folder(fixture, "1001");
    make_folder(fixture, "1001-0123456789abcdef"); /* of an instance that the log has forgotten */
    make_folder(fixture, "1001-12");
    make_folder(fixture, "1001x");
    make_folder(fixture, "-1");
    mps_adopt(fixture->mps);
    json_t *list = mps_list(fixture->mps);
    int n_whole = 0, n_known = 0, n_unknown = 0;
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *gpu = json_string_value(json_object_get(json_array_get(list, i), "gpu"));
        n_whole += gpu == NULL;
        n_known += gpu && strcmp(gpu, "0:1") == 0;
        n_unknown += gpu && strcmp(gpu, "?") == 0;
    }
    assert_int_equal(json_array_size(list), 3);
    assert_int_equal(n_whole, 1);
    assert_int_equal(n_known, 1);
    assert_int_equal(n_unknown, 1);
    json_decref(list);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_task_waits_for_the_start, begin, end),
        cmocka_unit_test_setup_teardown(test_a_failed_start_is_not_repeated_at_once, begin, end),
        cmocka_unit_test_setup_teardown(test_a_request_is_answered_when_it_is_done, begin, end),
        cmocka_unit_test_setup_teardown(test_the_list_shows_users_and_their_groups, begin, end),
        cmocka_unit_test_setup_teardown(test_an_instance_has_its_own, begin, end),
        cmocka_unit_test_setup_teardown(
            test_that_of_an_instance_is_stopped_by_its_name, begin, end),
        cmocka_unit_test_setup_teardown(
            test_without_its_instance_it_is_stopped_at_once, begin, end),
        cmocka_unit_test_setup_teardown(
            test_those_of_an_earlier_collocd_are_taken_over, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
