/* SPDX-License-Identifier: Apache-2.0 */
/* Task files: detection of the form, options in scripts. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "../assert_has.h"
#include "base/clock.h"
#include "base/units.h"
#include "taskfile/taskfile.h"

static struct task_description task;
static struct fault fault;

static int clear(void **state)
{
    task_description_fini(&task);
    return 0;
}

static int parse(const char *name, const char *text)
{
    clear(NULL);
    fault = (struct fault){0};
    return taskfile_parse(name, text, strlen(text), &fault, &task);
}

static int read_sample(const char *name)
{
    char path[1024];
    clear(NULL);
    snprintf(path, sizeof path, "%s/%s", getenv("TEST_DATA"), name);
    return taskfile_read(path, &fault, &task);
}

static void test_directives(void **state)
{
    assert_int_equal(read_sample("train.sh"), 0);
    assert_string_equal(task.values[TASK_NAME].text, "tiny model");
    assert_int_equal(task.values[TASK_GPUS].number, 2);
    assert_int_equal(task.values[TASK_BATCH].number, 64);
    assert_int_equal(task.values[TASK_TIME].number, 5400 * SECOND_US);
    assert_int_equal(task.values[TASK_MEMORY].number, 6 * GIB);
    assert_string_equal(task.values[TASK_SHARING].text, "mps");
    assert_int_equal(task.values[TASK_EXCLUSIVE].number, 1);
    assert_has(task.script, "#COLLOC --memory 6G");
    assert_has(task.script, "\npython train.py\n");
}

static void test_summary_beside_the_script(void **state)
{
    assert_int_equal(read_sample("train.sh"), 0);
    assert_int_equal(taskfile_read_summary(&task, &fault), 0);
    assert_has(task.summary, "in_features=8");
}

static void test_missing_summary_is_named(void **state)
{
    assert_int_equal(parse("a.sh", "#COLLOC --summary=nowhere.txt\ntrue\n"), 0);
    assert_int_equal(taskfile_read_summary(&task, &fault), -ENOENT);
    assert_has(fault.text, "model summary: nowhere.txt: No such file");
}

static void test_without_directives(void **state)
{
    assert_int_equal(parse("a.sh", "echo hello"), 0);
    assert_string_equal(task.script, "echo hello");
    for (size_t i = 0; i < task_option_count; i++)
        assert_false(task.values[i].set);
}

static void test_what_is_no_directive(void **state)
{
    assert_int_equal(
        parse("a.sh", "# COLLOC --gpus=2\n#COLLOCATE --gpus=2\n #COLLOC --gpus=2\ntrue\n"), 0);
    assert_false(task.values[TASK_GPUS].set);
}

static void test_windows_line_ends(void **state)
{
    assert_true(parse("a.sh", "#!/bin/sh\r\n#COLLOC --gpus=2\r\ntrue\r\n") < 0);
    assert_has(fault.text, "a.sh:1: has Windows line ends");
    assert_int_equal(parse("a.sh", "#!/bin/sh\n#COLLOC --gpus=2\nprintf 'GET /\r\n'\n"), 0);
}

static void assert_refused(const char *text, const char *message)
{
    assert_true(parse("a.sh", text) < 0);
    assert_has(fault.text, message);
}

static void test_faults_name_file_and_line(void **state)
{
    assert_refused(
        "#!/bin/sh\n\n#COLLOC --gpsu=1\n", "a.sh:3: --gpsu: no such option; did you mean --gpus?");
    assert_refused("#COLLOC --batch=0\n", "a.sh:1: --batch=0: must be from 1");
    assert_refused("#COLLOC --name='x\n", "a.sh:1: the quote ' is not closed");
    assert_refused("#COLLOC gpus=1\n", "a.sh:1: 'gpus=1' is not an option; write --name=value");
    assert_refused("#COLLOC -- --gpus=1\n", "a.sh:1: '--' is not an option");
    assert_refused(
        "true\n#COLLOC --gpus=4\n", "a.sh:2: #COLLOC lines must stand before the first command");
    assert_refused(" \n\n", "a.sh: is empty");
    assert_refused("echo ok\necho \xff\n", "a.sh:2: is not UTF-8 text (byte 0xff)");
}

static void test_binary_is_refused(void **state)
{
    static const char nul[] = "#!/bin/sh\necho a\0b\n";
    assert_int_equal(taskfile_parse("a.sh", nul, sizeof nul - 1, &fault, &task), -EILSEQ);
    assert_has(fault.text, "a.sh:2: has a NUL byte");
    static const char elf[] = "\x7f"
                              "ELF\2\1\1\0\0";
    assert_int_equal(taskfile_parse("a.out", elf, sizeof elf - 1, &fault, &task), -EILSEQ);
    assert_has(fault.text, "colloc submit -- a.out");
}

static void test_enormous_line(void **state)
{
    size_t size = 1 << 17;
    char *text = malloc(size + 1);
    memset(text, 'x', size);
    memcpy(text, "#COLLOC --name=", 15);
    text[size] = '\0';
    assert_refused(text, "a.sh:1: line of 131072 bytes");
    free(text);
}

static void test_too_large_a_file(void **state)
{
    char path[] = "/tmp/colloc-test-XXXXXX";
    int fd = mkstemp(path);
    assert_int_equal(ftruncate(fd, TASKFILE_MAX_BYTES + 1), 0);
    close(fd);
    assert_int_equal(taskfile_read(path, &fault, &task), -EFBIG);
    assert_has(fault.text, path);
    unlink(path);
    assert_int_equal(taskfile_read(path, &fault, &task), -ENOENT);
    assert_int_equal(taskfile_read("/tmp", &fault, &task), -EISDIR);
}

static void test_command_without_a_file(void **state)
{
    assert_int_equal(
        taskfile_of_command(
            (const char *const[]){"/usr/bin/python3", "-u", "train.py", NULL}, &fault, &task),
        0);
    assert_string_equal(task.values[TASK_NAME].text, "train.py");
    assert_string_equal(task.script, "#!/bin/sh\nexec \"$@\"\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_directives, clear),
        cmocka_unit_test_teardown(test_summary_beside_the_script, clear),
        cmocka_unit_test_teardown(test_missing_summary_is_named, clear),
        cmocka_unit_test_teardown(test_without_directives, clear),
        cmocka_unit_test_teardown(test_what_is_no_directive, clear),
        cmocka_unit_test_teardown(test_windows_line_ends, clear),
        cmocka_unit_test_teardown(test_faults_name_file_and_line, clear),
        cmocka_unit_test_teardown(test_binary_is_refused, clear),
        cmocka_unit_test_teardown(test_enormous_line, clear),
        cmocka_unit_test_teardown(test_too_large_a_file, clear),
        cmocka_unit_test_teardown(test_command_without_a_file, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
