/* SPDX-License-Identifier: Apache-2.0 */
/* What the agent of a Slurm node reads: requests of steps, scontrol's output, cgroups and
 * environments. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "daemon/node/job_of_process.h"
#include "daemon/node/slurm_client.h"
#include "daemon/node/step_request.h"
#include "exec/environ_read.h"
#include "exec/limited_visit.h"

static int parse(const char *text, struct step_request *request)
{
    char packet[STEP_REQUEST_MAX];
    struct fault fault = {0};
    snprintf(packet, sizeof packet, "%s", text);
    int r = step_request_parse(packet, &fault, request);
    assert_int_equal(r < 0, *fault.text != '\0');
    return r;
}

/* What an agent leaves for the next one. */
static void test_a_record_of_a_step(void **state)
{
    const struct step_request written = {.kind = STEP_STARTS,
        .job = UINT32_MAX,
        .array_job = 7,
        .array_task = 4294967293,
        .step = -5,
        .uid = 1000,
        .gid = UINT32_MAX - 1,
        .gpus = UINT64_C(1) << 63 | 9,
        .sharing = STEP_SHARING_MPS,
        .is_pinned = true};
    struct step_request found;
    char text[STEP_REQUEST_MAX];
    assert_int_equal(step_request_write(&written, text, sizeof text), 0);
    assert_int_equal(text[strlen(text) - 1], '\n');
    text[strlen(text) - 1] = '\0';
    assert_int_equal(parse(text, &found), 0);
    assert_int_equal(found.kind, STEP_STARTS);
    assert_true(found.job == written.job && found.step == written.step);
    assert_true(found.array_job == 7 && found.array_task == written.array_task);
    assert_true(found.uid == written.uid && found.gid == written.gid);
    assert_true(found.gpus == written.gpus && found.is_pinned);
    assert_int_equal(found.sharing, STEP_SHARING_MPS);
    const struct step_request all = {.job = 1, .gpus = UINT64_MAX};
    assert_int_equal(step_request_write(&all, text, sizeof text), 0);
    text[strlen(text) - 1] = '\0';
    assert_int_equal(parse(text, &found), 0);
    assert_true(found.gpus == UINT64_MAX && !found.is_pinned && !found.array_job);
    assert_int_equal(step_request_write(&all, text, 100), -ENOSPC);
}

static void test_requests(void **state)
{
    struct step_request request;
    assert_int_equal(
        parse("start job=4294967295 step=-5 uid=1000 gid=100 gpus=0,3,63 sharing=mps new=1",
            &request),
        0);
    assert_int_equal(request.kind, STEP_STARTS);
    assert_true(request.job == UINT32_MAX && request.step == -5);
    assert_true(request.uid == 1000 && request.gid == 100);
    assert_true(request.gpus == (UINT64_C(1) << 63 | 9));
    assert_int_equal(request.sharing, STEP_SHARING_MPS);
    assert_int_equal(parse("end job=7 step=-5 status=256", &request), 0);
    assert_int_equal(request.kind, STEP_ENDS);
    assert_int_equal(request.status, 256);
    assert_int_equal(request.array_job, 0);
    assert_int_equal(parse("end job=9 array=7 task=4294967293 status=1", &request), 0);
    assert_true(request.job == 9 && request.array_job == 7 && request.array_task == 4294967293);
    assert_int_equal(parse("start job=7 sharing=auto", &request), 0);
    assert_int_equal(request.sharing, STEP_SHARING_ANY);
    static const char *wrong[] = {"", " ", "begin job=7", "start", "start job=0", "start job=x",
        "start job=4294967296", "start job=7 gpus=64", "start job=7 gpus=GPU-1", "start job",
        "start job=7 uid=-1", "start job=7 array=0", "start job=7 task=-1", "start step=1"};
    for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
        assert_int_equal(parse(wrong[i], &request), -EINVAL);
}

static void test_fields(void **state)
{
    static const char job[] =
        "JobId=3 JobName=a UserId=ada(1000) XRequeue=7 Requeue=1 Restarts=0 "
        "StdErr=/home/ada/a b.err StdIn=/dev/null StdOut=/home/ada/c Power=\n";
    static const char config[] =
        "SlurmdTimeoutX          = 9 sec\nSlurmdTimeout           = 6 sec\n";
    char value[32];
    assert_true(slurm_client_field(job, "JobId", NULL, value, sizeof value));
    assert_string_equal(value, "3");
    assert_true(slurm_client_field(job, "Requeue", NULL, value, sizeof value));
    assert_string_equal(value, "1");
    assert_true(slurm_client_field(job, "StdErr", " StdIn=", value, sizeof value));
    assert_string_equal(value, "/home/ada/a b.err");
    assert_true(slurm_client_field(job, "Power", NULL, value, sizeof value));
    assert_string_equal(value, "");
    assert_false(slurm_client_field(job, "Comment", NULL, value, sizeof value));
    assert_false(slurm_client_field(job, "StdErr", " StdIn=", value, 4));
    assert_true(slurm_client_field(config, "SlurmdTimeout", NULL, value, sizeof value));
    assert_string_equal(value, "6");
}

static void test_programs(void **state)
{
    static const char *const print[] = {"sh", "-c", "echo word; echo why >&2", NULL};
    static const char *const fail[] = {"sh", "-c", "echo word; echo why >&2; exit 3", NULL};
    static const char *const much[] = {"sh", "-c", "yes | head -c 300000", NULL};
    static const char *const missing[] = {"/nonexistent/program", NULL};
    char text[64];
    assert_int_equal(slurm_client_run(print, text, sizeof text), 0);
    assert_string_equal(text, "word\n");
    assert_int_equal(slurm_client_run(fail, text, sizeof text), 3);
    assert_string_equal(text, "word\nwhy\n");
    assert_int_equal(slurm_client_run(much, text, sizeof text), 0);
    assert_int_equal(strlen(text), sizeof text - 1);
    assert_int_equal(slurm_client_run(missing, text, sizeof text), -ENOENT);
    assert_string_equal(text, "");
}

static void test_cgroups(void **state)
{
    enum { NONE = -1, ANOTHER = 0 };
    static const struct {
        const char *text;
        int64_t job;
    } cases[] = {
        {"0::/system.slice/slurmstepd.scope/job_12/step_batch/user/task_0\n", 12},
        {"9:pids:/\n4:devices:/slurm_n1/uid_1000/job_7/step_0/task_0\n", 7},
        {"4:devices:/slurm/uid_1000/job_7/step_0/task_0\n", 7},
        {"0::/system.slice/n1_slurmstepd.scope/job_7/step_0\n", 7},
        {"4:devices:/slurm_n9/uid_1000/job_7/step_0/task_0\n", ANOTHER},
        {"4:devices:/slurm_n11/uid_1000/job_7/step_0/task_0\n", ANOTHER},
        {"0::/system.slice/n9_slurmstepd.scope/job_7/step_0\n", ANOTHER},
        {"0::/slurm/job_4294967295/step_0\n", UINT32_MAX},
        {"0::/slurm/job_4294967296/step_0\n", NONE},
        {"0::/slurm/job_/step_0\n", NONE},
        {"0::/slurm/job_3x/step_0\n", NONE},
        {"0::/user.slice/job_12/step_0\n", NONE}, /* not Slurm's */
        {"0::/user.slice\n", NONE},
        {"0::/user.slice/slurmstepd.scope/job_12/step_0\n", NONE}, /* any user can make these */
        {"0::/user.slice/slurm/job_12/step_0\n", NONE},
        {"0::/system.slice/x.service/slurmstepd.scope/job_12\n", NONE},
        {"0::/system.slice/notslurmstepd.scope/job_12\n", NONE},
        {"0::/system.slice/job_12\n", NONE},
        {"0::/job_12\n", NONE},
        {"1:name=a:/slurm:/slurm/job_3\n", 3},
        {"", NONE},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint32_t job = 99;
        assert_int_equal(job_in_cgroup(cases[i].text, "n1", &job), cases[i].job != NONE);
        if (cases[i].job != NONE)
            assert_int_equal(job, cases[i].job);
    }
}

static void test_environments(void **state)
{
    static const char ours[] = "HOME=/\0SLURM_JOB_ID=12\0SLURMD_NODENAME=n1";
    static const char bad[] = "SLURM_JOB_ID=12x\0";
    assert_int_equal(job_in_environment(ours, sizeof ours, "n1"), 12);
    assert_int_equal(job_in_environment(ours, sizeof ours, NULL), 12);
    assert_int_equal(job_in_environment(ours, sizeof ours, "n2"), 0);
    assert_int_equal(job_in_environment(bad, sizeof bad, "n1"), 0);
    assert_int_equal(job_in_environment("", 0, "n1"), 0);
}

static void test_environments_of_the_node(void **state)
{
    static const struct {
        const char environment[96];
        const char *cluster;
        bool is_of_node;
    } cases[] = {
        {"SLURM_JOB_ID=12\0SLURMD_NODENAME=n1\0SLURM_CLUSTER_NAME=a", "A", true},
        {"SLURM_JOB_ID=12\0SLURMD_NODENAME=n1\0SLURM_CLUSTER_NAME=a", "", true},
        {"SLURM_JOB_ID=12\0SLURMD_NODENAME=n1", "a", true},
        {"SLURM_JOB_ID=12\0SLURMD_NODENAME=n1\0SLURM_CLUSTER_NAME=b", "a", false},
        {"SLURM_JOB_ID=12\0SLURMD_NODENAME=n2\0SLURM_CLUSTER_NAME=a", "a", false},
        {"SLURM_JOB_ID=12\0XSLURMD_NODENAME=n1\0SLURM_CLUSTER_NAME=a", "a", false}, /* salloc's */
        {"SLURMD_NODENAME=n1\0SLURM_CLUSTER_NAME=a", "a", false},
        {"", "a", false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const struct slurm_identity identity = {.node = "n1", .cluster = cases[i].cluster};
        assert_int_equal(
            environment_is_of_node(cases[i].environment, sizeof cases[i].environment, &identity),
            cases[i].is_of_node);
    }
}

/* ---- processes; their environments are pretended ---- */

static struct {
    const char *text;
    size_t size;
    int result;   /* or -errno */
    int takes_us; /* until there is a result */
    int n_read;
} environment;

int environ_read(pid_t pid, char **ret_text, size_t *ret_size)
{
    environment.n_read++;
    usleep((useconds_t)environment.takes_us);
    *ret_text = NULL;
    if (environment.result < 0)
        return environment.result;
    *ret_text = malloc(environment.size + 1);
    memcpy(*ret_text, environment.text, environment.size + 1);
    *ret_size = environment.size;
    return 0;
}

/* A process that names a job in its environment only claims to be of it, as its user. */
static void test_a_job_in_an_environment_is_a_claim(void **state)
{
    static const char claim[] = "SLURM_JOB_ID=12";
    struct job_cache *cache = job_cache_create();
    environment.text = claim;
    environment.size = strlen(claim);
    environment.result = environment.takes_us = environment.n_read = 0;
    for (int i = 0; i < 2; i++) {
        struct process_job found = job_cache_find(cache, getpid(), "n1");
        assert_true(found.is_known && found.job == 12);
        assert_true(found.is_claimed && found.uid == getuid());
    }
    assert_int_equal(environment.n_read, 1);
    job_cache_destroy(cache);
}

/* Nor is a process without a job asked twice. */
static void test_a_process_of_no_job_is_known(void **state)
{
    struct job_cache *cache = job_cache_create();
    environment.text = "";
    environment.size = 0;
    environment.result = environment.takes_us = environment.n_read = 0;
    for (int i = 0; i < 2; i++) {
        struct process_job found = job_cache_find(cache, getpid(), "n1");
        assert_true(found.is_known && found.job == 0);
    }
    assert_int_equal(environment.n_read, 1);
    job_cache_destroy(cache);
}

/* What cannot be read is not known, and is not read again at once. */
static void test_what_cannot_be_read_is_not_known(void **state)
{
    static const int results[] = {-ETIMEDOUT, -EACCES, -ESRCH};
    environment.takes_us = 0;
    for (size_t i = 0; i < ARRAY_SIZE(results); i++) {
        struct job_cache *cache = job_cache_create();
        environment.result = results[i];
        environment.n_read = 0;
        assert_false(job_cache_find(cache, getpid(), "n1").is_known);
        assert_false(job_cache_find(cache, getpid(), "n1").is_known);
        assert_int_equal(environment.n_read, 1);
        assert_false(job_cache_find(cache, getppid(), "n1").is_known); /* another is read */
        assert_int_equal(environment.n_read, 2);
        assert_false(job_cache_find(cache, INT32_MAX, "n1").is_known); /* there is none */
        job_cache_destroy(cache);
    }
}

/* After one that did not answer, the others are not read for a while. */
static void test_many_that_hang_do_not_take_up_the_time(void **state)
{
    struct job_cache *cache = job_cache_create();
    environment.result = -ETIMEDOUT;
    environment.takes_us = VISIT_READ_MS * 1000;
    environment.n_read = 0;
    assert_false(job_cache_find(cache, getpid(), "n1").is_known);
    assert_false(job_cache_find(cache, getppid(), "n1").is_known);
    assert_int_equal(environment.n_read, 1);
    job_cache_destroy(cache);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_a_record_of_a_step),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_programs),
        cmocka_unit_test(test_cgroups),
        cmocka_unit_test(test_environments),
        cmocka_unit_test(test_environments_of_the_node),
        cmocka_unit_test(test_a_job_in_an_environment_is_a_claim),
        cmocka_unit_test(test_a_process_of_no_job_is_known),
        cmocka_unit_test(test_what_cannot_be_read_is_not_known),
        cmocka_unit_test(test_many_that_hang_do_not_take_up_the_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
