/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verdict on a failed job, in a true helper process, with a pretend scontrol on PATH. Each call
 * of it runs the next step of the test, a line of shell, and its arguments are noted.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "daemon/node/crash_verdict.h"

#define SHOW        "--oneliner show job 12\n"
#define REQUEUE     "requeuehold 12\n"
#define UNREACHABLE "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1"
#define UNKNOWN     "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1"
#define FAILS       "exit 1"
#define SUCCEEDS    "exit 0"
#define SHOWS(state, restarts)                                                                     \
    "echo \"JobId=12 JobState=" state " Requeue=1 Restarts=" restarts " BatchFlag=1 "              \
    "StdErr=$PWD/err StdIn=/dev/null StdOut=$PWD/out Power=\""

static struct {
    char folder[64], path[128];
    struct config config;
    struct node node;
    struct user_helper_report *report; /* shared with the helper process */
} seen;

/* ---- what the verdict calls ---- */

int user_helper_begin(struct user_helper *helper, uv_loop_t *loop,
    const struct user_helper_order *order, struct fault *fault)
{
    pid_t pid = fork();
    if (pid == 0)
        return USER_HELPER_CHILD;
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    return 0;
}

int user_helper_become(const struct user_helper_order *order)
{
    return 0;
}

_Noreturn void user_helper_end(struct user_helper *helper, const struct user_helper_report *report)
{
    *seen.report = *report;
    _exit(0);
}

void node_crash_note(struct node *node, const struct node_crash *crash)
{
}

/* ---- the pretend scontrol ---- */

static const char *in_folder(const char *name)
{
    snprintf(seen.path, sizeof seen.path, "%s/%s", seen.folder, name);
    return seen.path;
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(in_folder(name), "w");
    assert_non_null(file);
    fputs(text, file);
    assert_int_equal(fclose(file), 0);
}

static void write_scontrol(void)
{
    char text[256];
    snprintf(text, sizeof text,
        "#!/bin/sh\ncd %s\necho \"$*\" >>calls\n. ./step-$(($(wc -l <calls)))\n", seen.folder);
    write_file("scontrol", text);
    assert_int_equal(chmod(in_folder("scontrol"), 0755), 0);
}

/* Judges a job. Returns the helper's answer. */
static int judge(const char *const *steps, size_t n_steps)
{
    const struct node_step step = {
        .job = 12, .uid = geteuid(), .gid = getegid(), .was_shared = true};
    char name[16];
    for (size_t i = 0; i < n_steps; i++) {
        snprintf(name, sizeof name, "step-%zu", i + 1);
        write_file(name, steps[i]);
    }
    write_file("calls", "");
    free(crash_verdict_begin(&seen.node, &step, 1 << 8, NULL, NULL));
    return seen.report->answer;
}

static void expect_verdict(
    const char *const *steps, size_t n_steps, int answer, const char *expected_calls)
{
    struct fault fault = {0};
    char *calls;
    size_t size;
    assert_int_equal(judge(steps, n_steps), answer);
    assert_int_equal(file_read(in_folder("calls"), 4096, &fault, &calls, &size), 0);
    assert_string_equal(calls, expected_calls);
    free(calls);
}

#define expect(answer, calls, ...)                                                                 \
    do {                                                                                           \
        static const char *const steps[] = {__VA_ARGS__};                                          \
        expect_verdict(steps, sizeof steps / sizeof *steps, answer, calls);                        \
    } while (0)

static int begin_scontrol(void **state)
{
    char paths[256];
    memset(&seen, 0, sizeof seen);
    strcpy(seen.folder, "/tmp/colloc-verdict-XXXXXX");
    assert_non_null(mkdtemp(seen.folder));
    snprintf(paths, sizeof paths, "%s:/usr/bin:/bin", seen.folder);
    setenv("PATH", paths, 1);
    write_scontrol();
    write_file(
        "err", "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n");
    seen.config.core.recoveries_max = 3;
    seen.node.parts.config = &seen.config;
    seen.report = mmap(
        NULL, sizeof *seen.report, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(seen.report != MAP_FAILED);
    return 0;
}

static int end_scontrol(void **state)
{
    static const char *const names[] = {
        "scontrol", "err", "calls", "step-1", "step-2", "step-3", "step-4", "step-5"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(in_folder(names[i]));
    munmap(seen.report, sizeof *seen.report);
    return rmdir(seen.folder);
}

/* ---- */

static void a_job_out_of_memory_is_requeued(void **state)
{
    expect(1, SHOW REQUEUE, SHOWS("RUNNING", "0"), SUCCEEDS);
    assert_non_null(strstr(seen.report->fault.text, "CUDA out of memory"));
    expect(0, SHOW, SHOWS("RUNNING", "3")); /* the setting recoveries */
}

#define SHOWS_26_05(files)                                                                         \
    "echo \"JobId=12 JobState=RUNNING Requeue=1 Restarts=0 BatchFlag=1 " files                     \
    " TresPerNode=gres/shard:i0:20 MailUser=root MailType=NONE\""

static void what_26_05_shows_of_the_files(void **state)
{
    expect(1, SHOW REQUEUE, SHOWS_26_05("StdErr= StdIn=/dev/null StdOut=$PWD/err"), SUCCEEDS);
    expect(1, SHOW REQUEUE, SHOWS_26_05("StdErr=/none StdIn=/dev/null StdOut=$PWD/err"), SUCCEEDS);
    expect(0, SHOW, SHOWS_26_05("StdErr= StdIn=/dev/null StdOut=/none"));
}

static void slurmctld_is_asked_again_until_it_answers(void **state)
{
    expect(2, SHOW SHOW REQUEUE, UNREACHABLE, SHOWS("RUNNING", "1"), SUCCEEDS);
}

static void a_job_that_slurm_does_not_know_is_asked_for_once(void **state)
{
    expect(-ESRCH, SHOW, "echo Job 12_3 not found; exit 1");
    expect(-ESRCH, SHOW, UNKNOWN);
    assert_string_equal(seen.report->fault.text, "Slurm does not know the job");
}

static void without_scontrol_nothing_is_asked(void **state)
{
    unlink(in_folder("scontrol"));
    setenv("PATH", seen.folder, 1);
    expect(-ENOENT, "", "");
    assert_string_equal(seen.report->fault.text, "there is no scontrol on PATH");
}

static void a_job_that_was_cancelled_meanwhile_stays_cancelled(void **state)
{
    expect(0, SHOW REQUEUE SHOW SHOW, SHOWS("RUNNING", "0"), FAILS, UNREACHABLE,
        SHOWS("CANCELLED", "0"));
    expect(-ESRCH, SHOW REQUEUE SHOW, SHOWS("RUNNING", "0"), FAILS, UNKNOWN);
}

static void a_requeue_whose_answer_was_lost_is_not_repeated(void **state)
{
    expect(1, SHOW REQUEUE SHOW, SHOWS("RUNNING", "0"), FAILS, SHOWS("PENDING", "1"));
    expect(1, SHOW REQUEUE SHOW REQUEUE, SHOWS("RUNNING", "0"), FAILS, SHOWS("RUNNING", "0"),
        SUCCEEDS);
}

int main(void)
{
#define verdict_test(name) cmocka_unit_test_setup_teardown(name, begin_scontrol, end_scontrol)
    const struct CMUnitTest tests[] = {
        verdict_test(a_job_out_of_memory_is_requeued),
        verdict_test(what_26_05_shows_of_the_files),
        verdict_test(slurmctld_is_asked_again_until_it_answers),
        verdict_test(a_job_that_slurm_does_not_know_is_asked_for_once),
        verdict_test(without_scontrol_nothing_is_asked),
        verdict_test(a_job_that_was_cancelled_meanwhile_stays_cancelled),
        verdict_test(a_requeue_whose_answer_was_lost_is_not_repeated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
