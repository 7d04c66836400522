/* SPDX-License-Identifier: Apache-2.0 */
/* The summaries of jobs: a real helper process reads and estimates them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/units.h"
#include "fake_controller.h"
#include "slurm/job_files.h"

/* Replaced by the linker, to see in which process it is called. */
int __wrap_job_script_estimate(const struct job_script *script,
    const struct job_script_settings *settings, const char *summary, size_t size,
    struct fault *fault, struct job_estimate *ret_estimate);
int __real_job_script_estimate(const struct job_script *script,
    const struct job_script_settings *settings, const char *summary, size_t size,
    struct fault *fault, struct job_estimate *ret_estimate);

enum { LARGE = 8 << 20 }; /* bytes of a summary */

static const char summary[] = "----------------------------------------------------------------\n"
                              "        Layer (type)               Output Shape         Param #\n"
                              "================================================================\n"
                              "            Linear-1                 [-1, 4096]       4,198,400\n"
                              "              ReLU-2                 [-1, 4096]               0\n"
                              "            Linear-3                 [-1, 1000]       4,097,000\n"
                              "================================================================\n"
                              "Total params: 8,295,400\n";

static uv_loop_t loop;
static uv_timer_t other; /* so that the loop has something to wait for */
static struct fake_slurm fake;
static struct slurm_controller *controller;
static struct fake_job *job;
static int64_t now_us;
static int n_estimates; /* in this process */
static bool is_answered;
static bool is_killed; /* each helper, before it answers */

int __wrap_job_script_estimate(const struct job_script *script,
    const struct job_script_settings *settings, const char *text, size_t size, struct fault *fault,
    struct job_estimate *ret_estimate)
{
    n_estimates++;
    if (is_killed)
        raise(SIGKILL);
    return __real_job_script_estimate(script, settings, text, size, fault, ret_estimate);
}

static void on_answer(void *context)
{
    is_answered = true;
}

static void on_time(uv_timer_t *timer)
{
}

static bool update_once(struct slurm_job_key *ret_key)
{
    now_us += SECOND_US;
    fake.now_s++;
    assert_true(fake_controller_update(controller, &fake, now_us) >= 0);
    return slurm_controller_wanted_script(controller, ret_key);
}

static void begin_cluster(void)
{
    const struct core_settings settings = fake_controller_settings();
    fake_slurm_init(&fake, 1, 1);
    now_us = 1000 * SECOND_US;
    controller = fake_controller_create(&settings, 80 * GIB);
    job = fake_slurm_submit(&fake, 5);
    job->job.uid = getuid();
    job->job.gid = getgid();
    n_estimates = 0;
    is_answered = is_killed = false;
}

static void count_handle(uv_handle_t *handle, void *count)
{
    *(int *)count += handle != (uv_handle_t *)&other;
}

/* A helper that was killed is reaped later: the loop has a handle for it until then. */
static void wait_for_helpers(void)
{
    int count;
    do {
        uv_run(&loop, UV_RUN_ONCE);
        count = 0;
        uv_walk(&loop, count_handle, &count);
    } while (count > 0);
}

/* The job's comment, once its script is answered. Helpers are killed in the first tries. */
static const char *comment_after(const char *script, int killed_tries)
{
    static const struct job_script_settings settings = {
        "graph", ESTIMATE_RESERVED_QUANTILE, SHARING_STREAMS};
    struct slurm_job_key key;
    uv_loop_init(&loop);
    uv_timer_init(&loop, &other);
    uv_timer_start(&other, on_time, 10, 10);
    struct job_files *files = job_files_create(&loop, controller, &settings, on_answer, NULL);
    assert_non_null(files);
    int64_t end_us = clock_monotonic_us() + 60 * SECOND_US;
    assert_true(update_once(&key));
    for (bool is_wanted = true; !is_answered && clock_monotonic_us() < end_us;) {
        is_killed = killed_tries > 0;
        killed_tries -= is_wanted;
        if (is_wanted)
            job_files_estimate(files, &key, strdup(script));
        uv_run(&loop, UV_RUN_ONCE);
        is_wanted = slurm_controller_wanted_script(controller, &key);
    }
    assert_true(is_answered);
    for (int i = 0; i < 3; i++)
        update_once(&key);
    job_files_close(files);
    wait_for_helpers();
    uv_close((uv_handle_t *)&other, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    job_files_destroy(files);
    assert_int_equal(uv_loop_close(&loop), 0);
    return job->comment;
}

static void end_cluster(void)
{
    slurm_controller_destroy(controller);
    fake_slurm_fini(&fake);
}

/* The summary, and behind it nothing up to `size`. */
static void write_summary(char *path, size_t size)
{
    int fd = mkstemp(path);
    char *text = malloc(size);
    assert_true(fd >= 0 && text);
    memset(text, '\n', size);
    memcpy(text, summary, strlen(summary));
    assert_int_equal(file_write_fd(fd, text, size), 0);
    free(text);
    close(fd);
}

static void a_large_summary_is_estimated_by_a_helper(void **state)
{
    char path[] = "/tmp/colloc-summary-XXXXXX", script[128];
    write_summary(path, LARGE);
    snprintf(script, sizeof script, "#!/bin/sh\n#COLLOC --summary=%s --batch=32\ntrue\n", path);
    begin_cluster();
    const char *comment = comment_after(script, 0);
    assert_non_null(strstr(comment, "shards; GPU memory"));
    assert_int_equal(n_estimates, 0);
    end_cluster();
    unlink(path);
}

static void a_summary_that_is_not_there_refuses_the_job(void **state)
{
    begin_cluster();
    job->job.work_dir = "/nowhere";
    const char *comment = comment_after(
        "#!/bin/sh\n#COLLOC --summary=net.txt --batch=32\ntrue\n", 0);
    assert_non_null(strstr(comment, "/nowhere/net.txt: "));
    end_cluster();
}

static void without_a_summary_no_helper_is_needed(void **state)
{
    begin_cluster();
    const char *comment = comment_after("#!/bin/sh\n#COLLOC --memory=10GiB\ntrue\n", 0);
    assert_non_null(strstr(comment, "GPU memory 10.0 GiB"));
    assert_int_equal(n_estimates, 1);
    end_cluster();
}

/* By the kernel, or an administrator: that is not the job's fault. */
static void a_killed_helper_is_tried_again(void **state)
{
    char path[] = "/tmp/colloc-summary-XXXXXX", script[128];
    write_summary(path, sizeof summary);
    snprintf(script, sizeof script, "#!/bin/sh\n#COLLOC --summary=%s --batch=32\ntrue\n", path);
    begin_cluster();
    assert_non_null(strstr(comment_after(script, 2), "shards; GPU memory"));
    end_cluster();
    begin_cluster();
    assert_non_null(strstr(comment_after(script, 3), "could not estimate from the summary"));
    end_cluster();
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_large_summary_is_estimated_by_a_helper),
        cmocka_unit_test(a_killed_helper_is_tried_again),
        cmocka_unit_test(a_summary_that_is_not_there_refuses_the_job),
        cmocka_unit_test(without_a_summary_no_helper_is_needed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
