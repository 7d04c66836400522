/* SPDX-License-Identifier: Apache-2.0 */
/* The limit on the output file in a user's folder: nothing newer than the limit is lost. */
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
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/units.h"
#include "exec/output_writer.h"

enum { MAX_BYTES = 64 * KIB, LINES = 60000, TEXT_SIZE = 2 * MAX_BYTES };

static char folder[64], path[96], older[100];

static int make_folder(void **state)
{
    snprintf(folder, sizeof folder, "/tmp/colloc-output-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/colloc-12.out", folder);
    snprintf(older, sizeof older, "%s.1", path);
    return 0;
}

static int remove_folder(void **state)
{
    unlink(path);
    unlink(older);
    return rmdir(folder);
}

static struct output_writer open_file(void)
{
    int fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    return (struct output_writer){.fd = fd, .path = path, .max_bytes = MAX_BYTES};
}

static char text[TEXT_SIZE], first[TEXT_SIZE]; /* of the file and the older one */

static void read_files(void)
{
    assert_true(file_read_start(path, text, sizeof text) >= 0);
    file_read_start(older, first, sizeof first);
}

static void write_numbers(struct output_writer *writer, int begin, int end)
{
    char line[16];
    for (int i = begin; i < end; i++)
        output_writer_append(writer, line, (size_t)snprintf(line, sizeof line, "%d\n", i));
}

/* Checks that the text has consecutive numbers up to before `end`. Returns the first. */
static int check_numbers(const char *lines, int end)
{
    int begin = atoi(lines), next = begin;
    for (const char *at = lines; *at; at = strchr(at, '\n') + 1)
        assert_int_equal(atoi(at), next++);
    assert_int_equal(next, end);
    return begin;
}

static void below_half_of_the_limit_it_is_one_file(void **state)
{
    struct output_writer writer = open_file();
    write_numbers(&writer, 10000, 14000);
    read_files();
    assert_int_equal(check_numbers(text, 14000), 10000);
    assert_int_equal(access(older, F_OK), -1);
    close(writer.fd);
}

static void the_older_output_goes_to_the_other_file(void **state)
{
    struct output_writer writer = open_file();
    struct stat before, after;
    fstat(writer.fd, &before);
    write_numbers(&writer, 10000, 16000);
    read_files();
    char *line_end = strchr(text, '\n');
    *line_end = '\0';
    assert_string_equal(
        text, "colloc: the output before this is in colloc-12.out.1 (setting output-max)");
    int begin = check_numbers(line_end + 1, 16000);
    assert_int_equal(check_numbers(first, begin), 10000);
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(after.st_ino, before.st_ino);
    close(writer.fd);
}

static void what_is_dropped_is_counted(void **state)
{
    struct output_writer writer = open_file();
    write_numbers(&writer, 10000, 10000 + LINES);
    read_files();
    char *line_end = strchr(text, '\n');
    assert_true(strlen(text) <= MAX_BYTES / 2 && strlen(first) <= MAX_BYTES / 2);
    assert_non_null(strstr(text, "colloc: the output before this is in colloc-12.out.1, and "));
    assert_non_null(strstr(text, " before that were dropped (setting output-max)\n"));
    int begin = check_numbers(line_end + 1, 10000 + LINES);
    check_numbers(strchr(first, '\n') + 1, begin);
    assert_true(writer.dropped > 0 && writer.dropped == writer.reported);
    close(writer.fd);
}

/* A folder that has the name of the older file, as another user may have made it. */
static void without_an_older_file_the_output_is_dropped(void **state)
{
    struct output_writer writer = open_file();
    assert_int_equal(mkdir(older, 0700), 0);
    write_numbers(&writer, 10000, 16000);
    read_files();
    assert_true(strncmp(text, "colloc: 0.0 MiB of the output before this were dropped\n", 55) == 0);
    int begin = check_numbers(strchr(text, '\n') + 1, 16000);
    assert_int_equal(writer.dropped, 6 * (begin - 10000));
    assert_int_equal(rmdir(older), 0);
    close(writer.fd);
}

static void a_link_of_that_name_is_not_followed(void **state)
{
    char target[96];
    struct output_writer writer = open_file();
    snprintf(target, sizeof target, "%s/target", folder);
    int fd = open(target, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, "mine\n", 5), 5);
    close(fd);
    assert_int_equal(symlink(target, older), 0);
    write_numbers(&writer, 10000, 16000);
    assert_int_equal(file_read_start(target, text, sizeof text), 5);
    assert_string_equal(text, "mine\n");
    unlink(target);
    close(writer.fd);
}

/* A file system that takes nothing more: here by the limit of this process. */
static void what_cannot_be_written_is_reported_when_it_can(void **state)
{
    struct output_writer writer = open_file();
    static const char lost[512 * KIB];
    struct rlimit old, small = {.rlim_cur = 0};
    getrlimit(RLIMIT_FSIZE, &old);
    small.rlim_max = old.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    writer.max_bytes = 4 * MIB;
    output_writer_append(&writer, "first\n", 6);
    setrlimit(RLIMIT_FSIZE, &small);
    for (int i = 0; i < 2; i++)
        output_writer_append(&writer, lost, sizeof lost);
    setrlimit(RLIMIT_FSIZE, &old);
    output_writer_append(&writer, "third\n", 6);
    output_writer_append(&writer, "fourth\n", 7);
    read_files();
    assert_string_equal(
        text, "first\ncolloc: 1.0 MiB of the output before this were dropped\nthird\nfourth\n");
    close(writer.fd);
}

/* Starts a writer and, in its own session, a task that is connected with it. */
static pid_t start_task(const char *script, pid_t *ret_writer)
{
    const struct output_writer_task task = {path, MAX_BYTES, getuid(), getgid(), 077};
    int socket;
    assert_int_equal(output_writer_start(&task, ret_writer, &socket), 0);
    pid_t program = fork();
    if (program == 0) {
        struct output_writer writer = open_file();
        signal(SIGTERM, SIG_IGN);
        setsid();
        dup2(writer.fd, STDOUT_FILENO);
        dup2(writer.fd, STDERR_FILENO);
        if (output_writer_connect(socket, true) < 0)
            _exit(1);
        execl("/bin/sh", "sh", "-c", script, (char *)NULL);
        _exit(127);
    }
    close(socket);
    return program;
}

/* The program prints on both streams and ends; its orphan prints after it. */
static void a_process_beside_the_task_writes(void **state)
{
    int status, renewal = -1;
    pid_t writer, pid;
    assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    pid_t task = start_task("seq 10000 39999; seq 40000 69999 >&2; kill -TERM 0;"
                            "(sleep 0.1; echo 70000) &",
        &writer);
    assert_int_equal(waitpid(task, &status, 0), task);
    assert_int_equal(status, 0);
    while ((pid = wait(&status)) > 0) { /* the orphan is this process's now */
        assert_true(WIFEXITED(status));
        if (pid == writer)
            renewal = WEXITSTATUS(status);
    }
    assert_int_equal(errno, ECHILD);
    assert_int_equal(renewal, OUTPUT_MOVED);
    read_files();
    int begin = check_numbers(strchr(text, '\n') + 1, 70001);
    assert_true(strlen(text) <= MAX_BYTES / 2 && strlen(first) <= MAX_BYTES / 2);
    assert_true(begin > 10000);
}

/* A task that does not connect, because its output is elsewhere, ends the writer. */
static void a_writer_without_a_task_ends(void **state)
{
    const struct output_writer_task task = {path, MAX_BYTES, getuid(), getgid(), 077};
    pid_t writer;
    int socket, status;
    assert_int_equal(output_writer_start(&task, &writer, &socket), 0);
    close(socket);
    assert_int_equal(waitpid(writer, &status, 0), writer);
    assert_int_equal(status, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(below_half_of_the_limit_it_is_one_file),
        TEST(the_older_output_goes_to_the_other_file),
        TEST(what_is_dropped_is_counted),
        TEST(without_an_older_file_the_output_is_dropped),
        TEST(a_link_of_that_name_is_not_followed),
        TEST(what_cannot_be_written_is_reported_when_it_can),
        TEST(a_process_beside_the_task_writes),
        TEST(a_writer_without_a_task_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
