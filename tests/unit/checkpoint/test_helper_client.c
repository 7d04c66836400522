/* SPDX-License-Identifier: Apache-2.0 */
/* The client with helpers that die, hang, write nonsense or are not there: scripts made here. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "checkpoint/helper_client.h"

#define PATIENCE_US (20 * SECOND_US)

struct fixture {
    uv_loop_t loop;
    struct helper_client *client;
    char folder[64], program[128];
    struct helper_reply reply;
    int replies;
};

static void on_reply(void *context, const struct helper_reply *reply)
{
    struct fixture *f = context;
    f->reply = *reply;
    f->replies++;
    uv_stop(&f->loop);
}

static int setup(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    snprintf(f->folder, sizeof f->folder, "/tmp/colloc-helper-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    snprintf(f->program, sizeof f->program, "%s/helper", f->folder);
    uv_loop_init(&f->loop);
    f->client = helper_client_create(&f->loop, f->program);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    helper_client_close(f->client);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&f->loop), 0);
    unlink(f->program);
    rmdir(f->folder);
    free(f);
    return 0;
}

static void write_helper(const struct fixture *f, const char *script)
{
    FILE *file = fopen(f->program, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\n%s\n", script);
    fclose(file);
    chmod(f->program, 0700);
}

static int call(struct fixture *f, int64_t limit_us)
{
    const struct helper_request request = {.call = HELPER_STATE, .pid = 4711, .born = 5};
    int before = f->replies;
    assert_int_equal(helper_client_call(f->client, &request, limit_us, on_reply, f), 0);
    assert_int_equal(f->replies, before);
    assert_int_equal(helper_client_call(f->client, &request, limit_us, on_reply, f), -EBUSY);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(f->replies, before + 1);
    assert_false(helper_client_is_busy(f->client));
    return f->reply.result;
}

static void test_one_helper_serves_many_calls(void **state)
{
    struct fixture *f = *state;
    write_helper(f, "while read -r line; do echo \"0 1 running $line $$\"; done");
    assert_int_equal(call(f, PATIENCE_US), 0);
    char wanted[64];
    snprintf(wanted, sizeof wanted, "state 4711 5 %d", (int)helper_client_pid(f->client));
    assert_string_equal(f->reply.text, wanted);
    assert_int_equal(f->reply.state, PROCESS_RUNNING);
    assert_int_equal(call(f, PATIENCE_US), 0);
    assert_string_equal(f->reply.text, wanted);
}

static void test_a_call_takes_no_longer_than_its_reply(void **state)
{
    struct fixture *f = *state;
    write_helper(f, "read -r line; echo '0 9223372036854775807 suspended'; cat");
    int64_t before_us = clock_monotonic_us();
    assert_int_equal(call(f, PATIENCE_US), 0);
    assert_in_range(f->reply.took_us, 0, clock_monotonic_us() - before_us);
}

static void test_a_reply_in_pieces(void **state)
{
    struct fixture *f = *state;
    write_helper(
        f, "read -r line; printf '0 1 '; read -r x < /dev/null; printf 'locked'; echo; cat");
    assert_int_equal(call(f, PATIENCE_US), 0);
    assert_int_equal(f->reply.state, PROCESS_LOCKED);
}

static void test_a_stuck_helper_is_killed_and_replaced(void **state)
{
    struct fixture *f = *state;
    write_helper(f,
        "trap '' TERM\nif mkdir ${0%/*}/was-here 2>/dev/null; then read -r line; while :; do sleep 9; "
        "done; fi\nrmdir ${0%/*}/was-here\nread -r line; echo '0 7 locked'; cat");
    assert_int_equal(call(f, 300 * MS_US), -ETIMEDOUT);
    assert_int_equal(helper_client_pid(f->client), 0);
    assert_int_equal(call(f, PATIENCE_US), 0);
    assert_int_equal(f->reply.took_us, 7);
}

static void test_one_that_dies_in_a_call(void **state)
{
    struct fixture *f = *state;
    write_helper(f, "read -r line; kill -9 $$");
    assert_int_equal(call(f, PATIENCE_US), -EPIPE);
    write_helper(f, "exit 3");
    assert_int_equal(call(f, PATIENCE_US), -EPIPE);
}

static void test_nonsense(void **state)
{
    static const char *const nonsense[] = {"read -r line; echo hello; cat",
        "read -r line; printf '0 1 running\\n0 1 running\\n'; cat",
        "read -r line; head -c 20000 /dev/zero; cat", "read -r line; exec >&-; cat"};
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof nonsense / sizeof *nonsense; i++) {
        write_helper(f, nonsense[i]);
        assert_int_equal(call(f, PATIENCE_US), -EPIPE);
        assert_int_equal(helper_client_pid(f->client), 0);
    }
}

static void test_one_that_cannot_be_started(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(call(f, PATIENCE_US), -ENOEXEC);
    assert_non_null(strstr(f->reply.text, f->program));
    write_helper(f, "read -r line; echo '0 1 running'; cat");
    assert_int_equal(call(f, PATIENCE_US), 0);
}

static void test_no_descriptor_is_free(void **state)
{
    struct fixture *f = *state;
    struct rlimit before, none;
    write_helper(f, "while read -r line; do echo \"0 1 running\"; done");
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = (struct rlimit){3, before.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
    assert_int_equal(call(f, PATIENCE_US), -ENOEXEC);
    setrlimit(RLIMIT_NOFILE, &before);
    assert_int_equal(call(f, PATIENCE_US), 0);
}

static void test_no_hidden_variables(void **state)
{
    struct fixture *f = *state;
    setenv("CUDA_VISIBLE_DEVICES", "3", 1);
    setenv("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps", 1);
    write_helper(
        f, "read -r line; echo \"0 1 - $CUDA_VISIBLE_DEVICES$CUDA_MPS_PIPE_DIRECTORY\"; cat");
    assert_int_equal(call(f, PATIENCE_US), 0);
    assert_string_equal(f->reply.text, "/nonexistent");
    unsetenv("CUDA_VISIBLE_DEVICES");
    unsetenv("CUDA_MPS_PIPE_DIRECTORY");
}

/* The teardown closes the loop, which fails when a handle is left open. */
static void test_closed_in_mid_call(void **state)
{
    struct fixture *f = *state;
    const struct helper_request request = {.call = HELPER_STATE, .pid = 4711, .born = 5};
    write_helper(f, "while :; do sleep 9; done");
    assert_int_equal(helper_client_call(f->client, &request, PATIENCE_US, on_reply, f), 0);
    helper_client_close(f->client);
    f->client = NULL;
    uv_run(&f->loop, UV_RUN_DEFAULT);
    assert_int_equal(f->replies, 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

int main(void)
{
    signal(SIGPIPE, SIG_IGN); /* as collocd does */
    const struct CMUnitTest tests[] = {
        TEST(test_one_helper_serves_many_calls),
        TEST(test_a_call_takes_no_longer_than_its_reply),
        TEST(test_a_reply_in_pieces),
        TEST(test_a_stuck_helper_is_killed_and_replaced),
        TEST(test_one_that_dies_in_a_call),
        TEST(test_nonsense),
        TEST(test_one_that_cannot_be_started),
        TEST(test_no_descriptor_is_free),
        TEST(test_no_hidden_variables),
        TEST(test_closed_in_mid_call),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
