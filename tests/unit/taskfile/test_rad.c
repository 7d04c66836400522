/* SPDX-License-Identifier: Apache-2.0 */
/* The two forms of .rad files. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../assert_has.h"
#include "base/units.h"
#include "taskfile/taskfile.h"

static struct task_description task;
static struct fault fault;

static int clear(void **state)
{
    task_description_fini(&task);
    return 0;
}

static int parse(const char *text)
{
    clear(NULL);
    fault = (struct fault){0};
    return taskfile_parse("a.rad", text, strlen(text), &fault, &task);
}

static int read_file(const char *folder, const char *name)
{
    char path[2048];
    clear(NULL);
    fault = (struct fault){0};
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return taskfile_read(path, &fault, &task);
}

static void assert_number(enum task_option option, int64_t want)
{
    assert_true(task.values[option].set);
    assert_int_equal(task.values[option].number, want);
}

static void test_keys(void **state)
{
    assert_int_equal(read_file(getenv("TEST_DATA"), "keys.rad"), 0);
    assert_string_equal(task.values[TASK_NAME].text, "keys.rad");
    assert_has(task.values[TASK_SUMMARY].text, "/tiny.txt");
    assert_number(TASK_BATCH, 64);
    assert_number(TASK_GPUS, 2);
    assert_false(task.values[TASK_EXCLUSIVE].set);
    assert_false(task.values[TASK_POLICY].set);
    assert_has(task.script, "\nconda activate torch # the environment of the course\n");
    assert_has(task.script, "\npython train.py --b 64 --text 'a; b' # command to execute\n");
    assert_null(strstr(task.script, "batch_size"));
}

static void test_lines(void **state)
{
    assert_int_equal(read_file(getenv("TEST_DATA"), "lines.rad"), 0);
    assert_has(task.values[TASK_SUMMARY].text, "/tiny.txt");
    assert_number(TASK_BATCH, 16);
    assert_number(TASK_GPUS, 2);
    assert_number(TASK_EXCLUSIVE, 1);
    assert_number(TASK_MEMORY, 4711 * MIB);
    assert_has(task.script, "\npython train.py --epochs 3\n");
    assert_null(strstr(task.script, "tiny.txt"));
}

static void test_keys_in_any_order(void **state)
{
    assert_int_equal(
        parse("Batch-Size : 8\npolicy: magm\nmemory: 2G\n\npython x.py\nmodel:\tm.txt#1\n"), 0);
    assert_number(TASK_BATCH, 8);
    assert_number(TASK_MEMORY, 2 * GIB);
    assert_string_equal(task.values[TASK_POLICY].text, "magm");
    assert_string_equal(task.values[TASK_SUMMARY].text, "m.txt#1");
}

static void test_policies(void **state)
{
    assert_int_equal(parse("true\npolicy: exclusive # alone\n"), 0);
    assert_number(TASK_EXCLUSIVE, 1);
    assert_int_equal(parse("true\npolicy: collocation\n"), 0);
    assert_false(task.values[TASK_EXCLUSIVE].set || task.values[TASK_POLICY].set);
}

static void test_no_estimate(void **state)
{
    assert_int_equal(parse("#\n\ntrue\nm\nd\n1\nexclusive\n1\n40000\n40000\n40000\n40000"), 0);
    assert_false(task.values[TASK_MEMORY].set);
    assert_int_equal(parse("#\n\ntrue\nm\nd\n1\nexclusive\n1"), 0);
}

static void assert_refused(const char *text, const char *message)
{
    assert_true(parse(text) < 0);
    assert_has(fault.text, message);
}

static void test_faults(void **state)
{
    assert_refused(
        "true\nmodle: x\nbatch: 1\n", "a.rad:2: modle: no such key; did you mean model?");
    assert_refused("true\nbatch_size: 0 # none\n", "a.rad:2: batch-size=0: must be from 1");
    assert_refused("true\nbatch_size: many\n", "a.rad:2: batch-size=many: not a whole number");
    assert_refused("true\ngpus: 65536\n", "a.rad:2: gpus=65536: must be from 0 to 1024");
    assert_refused("true\nmodel: # later\n", "a.rad:2: model: needs a value");
    assert_refused("# only\nmodel: x.txt\n", "a.rad: has no command line to run");
    assert_refused("python train.py\n", "a.rad: is not a .rad file");
    assert_refused("#\n\ntrue\nm\nd\n-5\nexclusive\n1\n", "a.rad:6: batch size=-5: must be from 1");
    assert_refused("#\n\ntrue\nm\nd\n1\nexclusive\nall\n", "a.rad:8: GPUs=all: not a whole number");
    assert_refused(
        "#\n\ntrue\nm\nd\n1\nexclusive\n1\nmuch\n", "a.rad:9: measured memory: not a number");
    assert_refused(
        "#\n\ntrue\nm\nd\n1\nexclusive\n1\n1\n1\nx\n", "a.rad:11: estimate: not a number");
    assert_refused(
        "#\n\n# no command\nm\nd\n1\nexclusive\n1\n", "a.rad: has no command line to run");
    assert_refused("#\n\ntrue\n\nd\n1\nexclusive\n1\n", "a.rad:4: summary: needs a value");
}

static void test_here_document_is_no_rad(void **state)
{
    const char *text = "cat > c.yaml <<EOF\nmodel: resnet\nbatch_size: 0\nEOF\n";
    clear(NULL);
    assert_int_equal(taskfile_parse("a.sh", text, strlen(text), &fault, &task), 0);
    assert_string_equal(task.script, text);
}

/* Runs the script of `task` with a pretend conda that prints `hook` when asked for its hook. */
static int run_script(const char *hook, char *ret_output, size_t size)
{
    char command[512];
    snprintf(command, sizeof command, "CONDA_EXE=%s bash -s 2>&1 <<'SCRIPT'\n%s\nSCRIPT\n", hook,
        task.script);
    FILE *pipe = popen(command, "r");
    assert_non_null(pipe);
    size_t n = fread(ret_output, 1, size - 1, pipe);
    ret_output[n] = '\0';
    return WEXITSTATUS(pclose(pipe));
}

static void test_script_runs_as_written(void **state)
{
    char output[512];
    assert_int_equal(parse("echo \"a;  b\" '$HOME' # said\nexit 7\nbatch: 1\n"), 0);
    assert_int_equal(run_script("true", output, sizeof output), 7);
    assert_string_equal(output, "a;  b $HOME\n");
}

static void test_conda_is_hooked_or_stops_the_task(void **state)
{
    char output[512], conda[] = "/tmp/colloc-conda-XXXXXX";
    int fd = mkstemp(conda);
    dprintf(fd, "#!/bin/sh\necho 'conda() { echo \"conda $*\"; }'\n");
    assert_int_equal(fchmod(fd, 0700), 0);
    close(fd);
    assert_int_equal(parse("conda activate t # env\necho ran\nbatch: 1\n"), 0);
    assert_int_equal(run_script(conda, output, sizeof output), 0);
    assert_string_equal(output, "conda activate t\nran\n");
    assert_int_equal(run_script("/nonexistent", output, sizeof output), 1);
    assert_has(output, "conda");
    assert_null(strstr(output, "ran"));
    unlink(conda);
}

static void test_published_files(void **state)
{
    char folder[1024];
    const char *data = getenv("COLLOC_EVAL_DATA");
    if (!data)
        skip();
    snprintf(folder, sizeof folder, "%s/carma/rad", data);
    DIR *files = opendir(folder);
    assert_non_null(files);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(files));) {
        if (entry->d_name[0] == '.')
            continue;
        if (read_file(folder, entry->d_name) < 0)
            fail_msg("%s", fault.text);
        assert_true(task.values[TASK_SUMMARY].set && task.values[TASK_BATCH].set &&
                    task.values[TASK_GPUS].set);
        assert_true(task.values[TASK_EXCLUSIVE].set && task.values[TASK_MEMORY].set);
        assert_has(task.script, "\nconda activate tf\n");
        assert_has(task.script, "\npython ");
        count++;
    }
    closedir(files);
    assert_int_equal(count, 48);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_keys, clear),
        cmocka_unit_test_teardown(test_lines, clear),
        cmocka_unit_test_teardown(test_keys_in_any_order, clear),
        cmocka_unit_test_teardown(test_policies, clear),
        cmocka_unit_test_teardown(test_no_estimate, clear),
        cmocka_unit_test_teardown(test_faults, clear),
        cmocka_unit_test_teardown(test_here_document_is_no_rad, clear),
        cmocka_unit_test_teardown(test_script_runs_as_written, clear),
        cmocka_unit_test_teardown(test_conda_is_hooked_or_stops_the_task, clear),
        cmocka_unit_test_teardown(test_published_files, clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
