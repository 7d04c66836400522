/* SPDX-License-Identifier: Apache-2.0 */
/* #SBATCH lines: what they set, what is ignored with a warning, what is refused with its line. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/units.h"
#include "taskfile/slurm_options.h"
#include "taskfile/taskfile.h"

static struct task_description task;
static struct fault fault;

/* Reads a script with these lines before its command. */
static int read_script(const char *lines)
{
    char text[4096];
    task_description_fini(&task);
    fault = (struct fault){0};
    int n = snprintf(text, sizeof text, "#!/bin/bash\n%s\npython train.py\n", lines);
    return taskfile_parse("job.sh", text, (size_t)n, &fault, &task);
}

static int release(void **state)
{
    task_description_fini(&task);
    return 0;
}

static void a_script_is_read_as_it_is(void **state)
{
    assert_int_equal(read_script("#SBATCH --job-name=resnet -t 1-02:00:00\n"
                                 "#SBATCH --gres=gpu:2 --mem=32G # a comment\n"
                                 "#\n"
                                 "#SBATCH -o logs/%x-%A_%a.out --error logs/%j.err\n"
                                 "#SBATCH --array=0-9%2 --dependency=afterok:12:13,afterany:7\n"
                                 "#SBATCH --no-requeue --nice --hold -D /tmp --exclusive\n"
                                 "#SBATCH -N1 -n 1 --cpus-per-task=8 --export=ALL,A=1,B=x"),
        0);
    assert_string_equal(task.values[TASK_NAME].text, "resnet");
    assert_int_equal(task.values[TASK_TIME].number, 26 * HOUR_US);
    assert_int_equal(task.values[TASK_GPUS].number, 2);
    assert_int_equal(task.values[TASK_HOST_MEMORY].number, 32 * GIB);
    assert_string_equal(task.values[TASK_OUTPUT].text, "logs/%x-%A_%a.out");
    assert_string_equal(task.values[TASK_ERROR].text, "logs/%j.err");
    assert_string_equal(task.values[TASK_ARRAY].text, "0-9%2");
    assert_string_equal(task.values[TASK_AFTER].text, "afterok:12:13,afterany:7");
    assert_true(task.values[TASK_REQUEUE].set && task.values[TASK_REQUEUE].number == 0);
    assert_string_equal(task.values[TASK_PRIORITY].text, "low");
    assert_int_equal(task.values[TASK_HOLD].number, 1);
    assert_int_equal(task.values[TASK_EXCLUSIVE].number, 1);
    assert_true(task.slurm.is_slurm);
    assert_string_equal(task.slurm.folder, "/tmp");
    assert_string_equal(task.slurm.exported, "A=1,B=x");
    assert_int_equal(task.values[TASK_CPUS].number, 8);
    assert_null(task.slurm.warnings);
}

/* Slurm's units are powers of two, with a B and without: sbatch 22.05 makes 32G of --mem=32GB. */
static void sizes_are_slurms(void **state)
{
    static const struct {
        const char *value;
        int64_t bytes;
    } table[] = {{"32GB", 32 * GIB}, {"220Gb", 220 * GIB}, {"100MB", 100 * MIB},
        {"1TB", 1024 * GIB}, {"2048KB", 2 * MIB}, {"32g", 32 * GIB}, {"1000", 1000 * MIB},
        {"1.5G", 1536 * MIB}, {"0GB", 0}, {"0", 0}, {"0M", 0}, {"1K", MIB}};
    char line[64];
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        snprintf(line, sizeof line, "#SBATCH --mem=%s", table[i].value);
        assert_int_equal(read_script(line), 0);
        assert_int_equal(task.values[TASK_HOST_MEMORY].set, table[i].bytes > 0);
        assert_int_equal(task.values[TASK_HOST_MEMORY].number, table[i].bytes);
    }
    assert_int_equal(read_script("#SBATCH --mem-per-gpu=10GB --gpus=2"), 0);
    assert_int_equal(task.values[TASK_HOST_MEMORY].number, 20 * GIB);
    assert_int_equal(read_script("#SBATCH --mem-per-cpu=1G -c 4\n#SBATCH --mem=3G"), 0);
    assert_int_equal(task.values[TASK_HOST_MEMORY].number, 3 * GIB);
}

/* The whole script has the CPUs of all its tasks. */
static void tasks_are_counted_as_cpus(void **state)
{
    static const struct {
        const char *lines;
        int tasks, cpus, gpus;
    } table[] = {{"#SBATCH --ntasks=5", 5, 5, 1}, {"#SBATCH -n 4 -c 2", 4, 8, 1},
        {"#SBATCH --tasks-per-node=1", 1, 0, 1}, {"#SBATCH --tasks=2", 2, 2, 1},
        {"#SBATCH -N 1-4 --ntasks-per-node=4 --gres=gpu:4 --cpus-per-gpu=3", 4, 12, 4},
        {"#SBATCH --gpus-per-task=1 -n 4", 4, 4, 4},
        {"#SBATCH --gpus-per-task=a100:2 -n 2 --gpus-per-node=1", 2, 2, 1},
        {"#SBATCH --ntasks-per-gpu=2 -G 3 -c 2", 6, 12, 3}, {"#SBATCH -n 1", 1, 0, 1}};
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        if (read_script(table[i].lines) != 0)
            fail_msg("%s: %s", table[i].lines, fault.text);
        assert_int_equal(task.slurm.tasks, table[i].tasks);
        assert_int_equal(task.values[TASK_CPUS].number, table[i].cpus);
        assert_int_equal(option_number_or(&task.values[TASK_GPUS], 1), table[i].gpus);
        assert_int_equal(task.slurm.warnings != NULL, table[i].tasks > 1);
    }
    assert_int_equal(read_script("#SBATCH -n 4 --mem-per-cpu=1GB"), 0);
    assert_int_equal(task.values[TASK_HOST_MEMORY].number, 4 * GIB);
}

/* As getopt_long reads them for sbatch. */
static void unique_beginnings_are_names(void **state)
{
    static const char *const good[] = {"--depend=afterok:1", "--job=x", "--out=x", "--part=x",
        "--mail-t=END", "--nodel=x", "--wait-all=1", "--no-k", "--cpus-per-t=2", "--min=1"};
    static const char *const ambiguous[] = {
        "--gpu=1", "--node=1", "--tim=5", "--cpus=1", "--par", "--excl", "--mail=END", "--n=1"};
    char line[64];
    for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
        snprintf(line, sizeof line, "#SBATCH %s", good[i]);
        if (read_script(line) != 0)
            fail_msg("%s: %s", good[i], fault.text);
    }
    for (size_t i = 0; i < ARRAY_SIZE(ambiguous); i++) {
        snprintf(line, sizeof line, "#SBATCH %s", ambiguous[i]);
        assert_true(read_script(line) < 0);
        assert_non_null(strstr(fault.text, "write the whole name; so begin --"));
    }
}

static void an_environment_can_be_left_out(void **state)
{
    static const struct {
        const char *value, *exported;
        bool is_only;
    } table[] = {{"ALL", "", false}, {"all,A=1,B", "A=1,B", false}, {"NONE", "", true},
        {"none", "", true}, {"NIL", "", true}, {"PATH,A=1", "PATH,A=1", true}};
    char line[64];
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        snprintf(line, sizeof line, "#SBATCH --export=%s", table[i].value);
        assert_int_equal(read_script(line), 0);
        assert_string_equal(task.slurm.exported, table[i].exported);
        assert_int_equal(task.slurm.is_export_only, table[i].is_only);
    }
}

static void constraints_are_kinds(void **state)
{
    static const struct {
        const char *line, *kinds;
    } table[] = {{"-C a100", "a100"}, {"--constraint=[a100|h100]", "a100,h100"},
        {"-C a100&80gb", "a100-80gb"}, {"--gres=gpu:a100:1 -C 80gb|40gb", "80gb-a100,40gb-a100"}};
    char line[80];
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        snprintf(line, sizeof line, "#SBATCH %s", table[i].line);
        assert_int_equal(read_script(line), 0);
        assert_string_equal(task.values[TASK_GPU_KIND].text, table[i].kinds);
    }
}

/* A feature of all nodes with GPUs is no kind of GPU. */
static void a_feature_of_all_gpus_is_no_kind(void **state)
{
    static const struct {
        const char *line, *kinds;
    } table[] = {{"-C gpu", NULL}, {"--constraint=GPU&nvidia", NULL}, {"-C gpu&a100", "a100"},
        {"-C a100&gpu&80gb", "a100-80gb"}, {"-C [gpu&a100|h100&cuda]", "a100,h100"},
        {"-C a100|gpu", NULL}, {"--gres=gpu:a100:1 -C gpu", "a100"}, {"-C gpux", "gpux"}};
    char line[80];
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        snprintf(line, sizeof line, "#SBATCH %s", table[i].line);
        assert_int_equal(read_script(line), 0);
        if (table[i].kinds)
            assert_string_equal(task.values[TASK_GPU_KIND].text, table[i].kinds);
        else if (task.values[TASK_GPU_KIND].line || task.values[TASK_GPU_KIND].text)
            fail_msg("%s: %s", table[i].line, task.values[TASK_GPU_KIND].text);
    }
}

/* What the command line has counts more than any line of the script. */
static void a_command_line_counts_most(void **state)
{
    static const char *const words[] = {"--gres=gpu:2", "--mail-type=FAIL", "-n", "3", "-ul"};
    struct slurm_cursor cursor = {words, ARRAY_SIZE(words), NULL};
    struct slurm_given given[8];
    size_t n = 0;
    while (slurm_option_next(SLURM_SRUN, "", &cursor, &given[n], &fault) == 1)
        n++;
    assert_int_equal(n, 5);
    assert_int_equal(cursor.count, 0);
    const char *text =
        "#!/bin/sh\n#SBATCH --gpus=1 --mail-type=END -n 9\n#COLLOC --gpus=4 --cpus=8\n";
    task_description_fini(&task);
    task.slurm_command = (struct slurm_command){true, true, given, n};
    assert_int_equal(taskfile_parse("job.sh", text, strlen(text), &fault, &task), 0);
    assert_int_equal(task.values[TASK_GPUS].number, 2);
    assert_int_equal(task.values[TASK_CPUS].number, 3);
    assert_string_equal(task.values[TASK_NOTIFY].text, "end,fail");
    assert_true(task.slurm.is_labelled);
    task.slurm_command = (struct slurm_command){0};
}

static void memory_of_parts_is_added_up(void **state)
{
    assert_int_equal(read_script("#SBATCH --mem-per-cpu=2G --cpus-per-task=4"), 0);
    assert_int_equal(task.values[TASK_HOST_MEMORY].number, 8 * GIB);
    assert_int_equal(read_script("#SBATCH --mem-per-gpu=1000\n#SBATCH --gpus=3"), 0);
    assert_int_equal(task.values[TASK_HOST_MEMORY].number, 3000 * MIB);
    assert_int_equal(read_script("#SBATCH --cpus-per-gpu=6 --gpus=2\n#SBATCH --mem-per-cpu=1G"), 0);
    assert_int_equal(task.values[TASK_CPUS].number, 12);
    assert_int_equal(task.values[TASK_HOST_MEMORY].number, 12 * GIB);
    assert_true(read_script("#SBATCH --mem-per-cpu=1000000T -c 1000000") < 0);
    assert_true(read_script("#SBATCH --mem-per-cpu=1000000T -c 10000") < 0);
    assert_true(read_script("#SBATCH --cpus-per-gpu=9999 --gpus=1000") < 0);
    assert_true(read_script("#SBATCH --cpus-per-gpu=x") < 0);
}

static void lines_of_colloc_count_more(void **state)
{
    assert_int_equal(
        read_script("#COLLOC --gpus=1\n#SBATCH --gpus=4 -J slow\n#COLLOC --name=fast"), 0);
    assert_int_equal(task.values[TASK_GPUS].number, 1);
    assert_string_equal(task.values[TASK_NAME].text, "fast");
}

static void lines_after_the_first_command_are_none(void **state)
{
    assert_int_equal(read_script("true\n#SBATCH --licenses=x\n#SBATCHED\n#SBATCH"), 0);
    assert_false(task.slurm.is_slurm);
}

static void what_changes_nothing_is_a_warning(void **state)
{
    static const char *const lines[] = {"--partition=gpu", "-p gpu", "-pgpu",
        "--mail-type=ARRAY_TASKS", "-A lab", "--qos=high", "--comment='two words'",
        "--open-mode=append", "-w node1", "--nice=-5", "--parsable", "-W"};
    char line[128];
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        snprintf(line, sizeof line, "#SBATCH %s", lines[i]);
        if (read_script(line) != 0)
            fail_msg("%s: %s", lines[i], fault.text);
        assert_non_null(task.slurm.warnings);
        assert_non_null(strstr(task.slurm.warnings, "line 2: #SBATCH --"));
    }
}

static void mails_are_messages(void **state)
{
    static const struct {
        const char *lines, *notify, *to;
    } table[] = {
        {"#SBATCH --mail-type=END", "end", NULL},
        {"#SBATCH --mail-type=begin,Fail,TIME_LIMIT", "start,fail", NULL},
        {"#SBATCH --mail-type=ALL\n#SBATCH --mail-user=ada@example.org", "start,end,fail,requeue",
            "ada@example.org"},
        {"#SBATCH --mail-user=ada\n#SBATCH --mail-type=REQUEUE", "requeue", "ada"},
        {"#SBATCH --mail-type=NONE", "none", NULL},
        {"#SBATCH --mail-user=ada", NULL, NULL},
        {"#SBATCH --mail-type=END --mail-user=ada\n#COLLOC --notify-to=bob", "end", "bob"},
        {"#SBATCH --mail-type=STAGE_OUT,END", "end", NULL},
        {"#SBATCH --mail-type=BEGIN\n#SBATCH --mail-type=FAIL\n#SBATCH --mail-type=REQUEUE",
            "start,fail,requeue", NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        assert_int_equal(read_script(table[i].lines), 0);
        const struct option_value *notify = &task.values[TASK_NOTIFY],
                                  *to = &task.values[TASK_NOTIFY_TO];
        assert_string_equal(
            notify->set ? notify->text : "-", table[i].notify ? table[i].notify : "-");
        assert_string_equal(to->set ? to->text : "-", table[i].to ? table[i].to : "-");
        assert_int_equal(task.slurm.warnings != NULL, i == 7);
    }
}

static void a_kind_of_gpu_is_read(void **state)
{
    static const struct {
        const char *line, *kind;
        int gpus;
    } table[] = {{"--gres=gpu:a100:2", "a100", 2}, {"--gpus=h100:1", "h100", 1},
        {"-G tesla", "tesla", 1}, {"--gres=gpu:3", NULL, 3}, {"--gres=gpu:0", NULL, 0},
        {"--gpus=0 --mem-per-gpu=1G --ntasks-per-gpu=2", NULL, 0}, {"--gres=none", NULL, 0}};
    char line[128];
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        snprintf(line, sizeof line, "#SBATCH %s", table[i].line);
        assert_int_equal(read_script(line), 0);
        assert_int_equal(task.values[TASK_GPUS].number, table[i].gpus);
        assert_int_equal(task.values[TASK_GPU_KIND].set, table[i].kind != NULL);
        if (table[i].kind)
            assert_string_equal(task.values[TASK_GPU_KIND].text, table[i].kind);
    }
}

static void what_changes_the_meaning_is_refused(void **state)
{
    static const char *const lines[] = {"--gres=gpu:a100:x", "--gpus=h100:1,a100:1", "--gpus=:2",
        "--gpus=a100:0", "--gres=gpu:a100:2:3", "--gres=shard:4", "-N 2", "--nodes=2-4", "-n 0",
        "--ntasks-per-node=x", "--constraint=a100*2", "-C (a|b)&c", "hetjob", "--gres=gpu:a100:0",
        "--input=x", "-L matlab", "--licenses=matlab", "--dependency=after:12", "-d singleton",
        "-d afterok:12?afterok:13", "-d afterok:1,expand:2", "--made=x", "--reboot", "--uid=0",
        "--container=x", "--export=A B", "--export=1A", "--export=ALL,=1", "-o %q.out", "-o %b.out",
        "--time=soon", "--gpus=-1", "--gpus", "--hold=yes", "--made-up", "gpus=2", "-", "--",
        "-c x", "--mem=lots", "--job-name='x", "--reservation=r", "--array"};
    char line[128];
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
        snprintf(line, sizeof line, "#COLLOC --gpus=1\n#SBATCH %s", lines[i]);
        if (read_script(line) == 0)
            fail_msg("%s was read", lines[i]);
        if (strncmp(fault.text, "job.sh:3: ", 10) != 0)
            fail_msg("%s: %s", lines[i], fault.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(a_script_is_read_as_it_is, release),
        cmocka_unit_test_teardown(sizes_are_slurms, release),
        cmocka_unit_test_teardown(tasks_are_counted_as_cpus, release),
        cmocka_unit_test_teardown(unique_beginnings_are_names, release),
        cmocka_unit_test_teardown(an_environment_can_be_left_out, release),
        cmocka_unit_test_teardown(constraints_are_kinds, release),
        cmocka_unit_test_teardown(a_feature_of_all_gpus_is_no_kind, release),
        cmocka_unit_test_teardown(a_command_line_counts_most, release),
        cmocka_unit_test_teardown(memory_of_parts_is_added_up, release),
        cmocka_unit_test_teardown(lines_of_colloc_count_more, release),
        cmocka_unit_test_teardown(mails_are_messages, release),
        cmocka_unit_test_teardown(a_kind_of_gpu_is_read, release),
        cmocka_unit_test_teardown(lines_after_the_first_command_are_none, release),
        cmocka_unit_test_teardown(what_changes_nothing_is_a_warning, release),
        cmocka_unit_test_teardown(what_changes_the_meaning_is_refused, release),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
