/* SPDX-License-Identifier: Apache-2.0 */
/* MPS through a control program that stands in for NVIDIA's; PATH_WITH_MPS is the folder it is in.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/file.h"
#include "gpu/mps.h"
#include "gpu/program.h"

static const char *const uuids[] = {"GPU-a", "GPU-b"};

struct place {
    char root[64], pipe_dir[96], log_dir[96];
    struct fault fault;
};

static int setup(void **state)
{
    struct place *p = calloc(1, sizeof(*p));

    strcpy(p->root, "/tmp/colloc-mps-XXXXXX");
    assert_non_null(mkdtemp(p->root));
    snprintf(p->pipe_dir, sizeof(p->pipe_dir), "%s/run/pipe", p->root);
    snprintf(p->log_dir, sizeof(p->log_dir), "%s/log", p->root);
    setenv("PATH", getenv("PATH_WITH_MPS"), 1);
    unsetenv("FAKE_MPS");
    *state = p;
    return 0;
}

static void in_pipe_dir(const struct place *p, const char *name, char path[128])
{
    snprintf(path, 128, "%s/%s", p->pipe_dir, name);
}

static pid_t daemon_pid(const struct place *p)
{
    char path[128], *text;
    size_t size;

    in_pipe_dir(p, "nvidia-cuda-mps-control.pid", path);
    if (file_read(path, 64, NULL, &text, &size) < 0)
        return 0;
    pid_t pid = atoi(text);
    free(text);
    return pid;
}

static void remove_in(const char *folder, const char *name)
{
    char path[160];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    unlink(path);
}

static int teardown(void **state)
{
    struct place *p = *state;
    static const char *const left[] = {"control", "keep.txt", "log", "nvidia-cuda-mps-control.pid"};

    if (mps_find(p->pipe_dir, geteuid()))
        kill(daemon_pid(p), SIGKILL);
    for (size_t i = 0; i < 4; i++)
        remove_in(p->pipe_dir, left[i]);
    remove_in(p->log_dir, "settings");
    rmdir(p->pipe_dir);
    rmdir(p->log_dir);
    remove_in(p->root, "link");
    char run[96];
    snprintf(run, sizeof(run), "%s/run", p->root);
    rmdir(run);
    int r = rmdir(p->root);
    free(p);
    return r;
}

static int start(struct place *p)
{
    return mps_start(p->pipe_dir, p->log_dir, uuids, 2, &p->fault);
}

/* The pipe directory from the folder above it, and what a link there leads to. */
static void test_found_below_a_folder_but_not_behind_a_link(void **state)
{
    struct place *p = *state;
    char link[96];
    int folder = open(p->root, O_PATH | O_DIRECTORY);
    const char *pipe_dir = p->pipe_dir + strlen(p->root) + 1;

    assert_int_equal(start(p), 0);
    assert_true(mps_find_below(folder, pipe_dir, geteuid()));
    snprintf(link, sizeof(link), "%s/link", p->root);
    assert_int_equal(symlink(p->pipe_dir, link), 0);
    assert_true(mps_find(link, geteuid()));
    assert_false(mps_find_below(folder, "link", geteuid()));
    close(folder);
    assert_int_equal(mps_stop(p->pipe_dir, &p->fault), 0);
}

static void test_start_and_stop(void **state)
{
    struct place *p = *state;
    char path[128], *text;
    size_t size;
    struct stat status;

    assert_false(mps_find(p->pipe_dir, geteuid()));
    assert_int_equal(start(p), 0);
    assert_true(mps_find(p->pipe_dir, geteuid()));

    snprintf(path, sizeof(path), "%s/settings", p->log_dir);
    assert_int_equal(file_read(path, 512, NULL, &text, &size), 0);
    assert_string_equal(text, "GPU-a,GPU-b");
    free(text);
    assert_int_equal(stat(p->pipe_dir, &status), 0);
    assert_int_equal(status.st_mode & 07777, 01777);

    assert_int_equal(mps_stop(p->pipe_dir, &p->fault), 0);
    assert_false(mps_find(p->pipe_dir, geteuid()));
    assert_int_equal(mps_stop(p->pipe_dir, &p->fault), 0);
}

static void test_a_living_one_is_used_again(void **state)
{
    struct place *p = *state;

    assert_int_equal(start(p), 0);
    pid_t first = daemon_pid(p);
    assert_int_equal(start(p), MPS_ALREADY_ALIVE);
    assert_int_equal(daemon_pid(p), first);
    assert_int_equal(mps_stop(p->pipe_dir, &p->fault), 0);
}

/* The stand-in cannot bind over the socket that its killed forerunner left. */
static void test_remains_of_a_killed_one_are_cleared(void **state)
{
    struct place *p = *state;
    char keep[128];

    assert_int_equal(start(p), 0);
    pid_t first = daemon_pid(p);
    in_pipe_dir(p, "keep.txt", keep);
    assert_int_equal(file_write_atomic(keep, "x", 1, 0600), 0);
    assert_int_equal(kill(first, SIGKILL), 0);
    assert_int_equal(process_wait_gone(first, 5 * SECOND_US), 0);
    assert_false(mps_find(p->pipe_dir, geteuid()));

    assert_int_equal(start(p), 0);
    assert_int_not_equal(daemon_pid(p), first);
    assert_int_equal(access(keep, F_OK), 0); /* not MPS's, not ours to remove */
    assert_int_equal(mps_stop(p->pipe_dir, &p->fault), 0);
}

static void test_a_pid_of_another_user_is_not_the_daemon(void **state)
{
    struct place *p = *state;
    char path[128], text[16];

    assert_int_equal(file_make_folders(p->pipe_dir, 0755), 0);
    in_pipe_dir(p, "nvidia-cuda-mps-control.pid", path);
    int n = snprintf(text, sizeof(text), "%d", (int)getpid());
    assert_int_equal(file_write_atomic(path, text, (size_t)n, 0644), 0);
    assert_false(mps_find(p->pipe_dir, geteuid()));
    assert_int_equal(file_write_atomic(path, "rubbish", 7, 0644), 0);
    assert_false(mps_find(p->pipe_dir, geteuid()));
}

static void test_not_installed_is_an_answer(void **state)
{
    struct place *p = *state;

    setenv("PATH", "/nowhere", 1);
    assert_int_equal(start(p), MPS_NOT_INSTALLED);
    assert_non_null(strstr(p->fault.text, "nvidia-cuda-mps-control"));
    unsetenv("PATH");
    assert_int_equal(start(p), MPS_NOT_INSTALLED);
}

static void test_its_own_words_come_back(void **state)
{
    struct place *p = *state;

    setenv("FAKE_MPS", "fail", 1);
    assert_int_equal(start(p), -EIO);
    assert_non_null(strstr(p->fault.text, "Cannot find MPS control daemon process"));
}

static void test_a_deaf_one_is_still_ending(void **state)
{
    struct place *p = *state;

    setenv("FAKE_MPS", "deaf", 1);
    assert_int_equal(start(p), 0);
    assert_int_equal(mps_stop(p->pipe_dir, &p->fault), MPS_STILL_ENDING);
}

static void test_a_directory_too_long_for_sockets(void **state)
{
    struct place *p = *state;
    char long_dir[200];

    memset(long_dir, 'x', sizeof(long_dir));
    memcpy(long_dir, "/tmp/", 5);
    long_dir[sizeof(long_dir) - 1] = '\0';
    assert_int_equal(mps_start(long_dir, p->log_dir, uuids, 2, &p->fault), -ENAMETOOLONG);
}

static void test_a_link_is_no_directory_of_ours(void **state)
{
    struct place *p = *state;
    char link[96];

    snprintf(link, sizeof(link), "%s/link", p->root);
    assert_int_equal(symlink("/tmp", link), 0);
    assert_int_equal(mps_start(link, p->log_dir, uuids, 2, &p->fault), -EPERM);
}

static void test_a_program_that_hangs_is_killed(void **state)
{
    char *const argv[] = {(char *)"sleep", (char *)"60", NULL};
    char *const envp[] = {NULL};
    struct program run = {.path = "/bin/sleep", .argv = argv, .envp = envp, .limit_us = 20 * MS_US};
    struct fault fault = {0};
    char output[16];
    int status = 0;

    assert_int_equal(program_run(&run, output, sizeof(output), &status, &fault), -ETIMEDOUT);
    assert_int_equal(status, 128 + SIGKILL);
    assert_non_null(strstr(fault.text, "/bin/sleep"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            test_found_below_a_folder_but_not_behind_a_link, setup, teardown),
        cmocka_unit_test_setup_teardown(test_start_and_stop, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_living_one_is_used_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_remains_of_a_killed_one_are_cleared, setup, teardown),
        cmocka_unit_test_setup_teardown(
            test_a_pid_of_another_user_is_not_the_daemon, setup, teardown),
        cmocka_unit_test_setup_teardown(test_not_installed_is_an_answer, setup, teardown),
        cmocka_unit_test_setup_teardown(test_its_own_words_come_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_deaf_one_is_still_ending, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_directory_too_long_for_sockets, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_link_is_no_directory_of_ours, setup, teardown),
        cmocka_unit_test(test_a_program_that_hangs_is_killed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
