/* SPDX-License-Identifier: Apache-2.0 */
/* The summary of a bench: which epochs and samples of the GPU count, and what is unknown. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/columns.h"
#include "bench/bench_summary.h"

#define GROUPS                                                                                     \
    "group,number,repeat,mix,sharing,gpu,gpu_name,way,tasks,failed,began_unix_s,total_s,energy_j\n"
#define TASKS                                                                                      \
    "group,repeat,task,name,threads,exit_code,failure,started_unix_s,ended_unix_s,ready_unix_s,"   \
    "reserved_mib,epoch,epoch_s,epoch_from_unix_s,epoch_to_unix_s,samples\n"
#define SAMPLES                                                                                    \
    "time_s,smact,smocc,dram_active,gract,power_w,mem_used_mib,pcie_rx_mib_per_s,"                 \
    "pcie_tx_mib_per_s\n"

struct folder {
    char path[64];
    FILE *groups, *tasks;
};

static FILE *open_file(const struct folder *folder, const char *name, const char *header)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", folder->path, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(header, file);
    return file;
}

static struct folder folder_make(void)
{
    struct folder folder = {.path = "/tmp/colloc-summary-XXXXXX"};
    char looks[128];
    assert_non_null(mkdtemp(folder.path));
    snprintf(looks, sizeof looks, "%s/looks", folder.path);
    assert_int_equal(mkdir(looks, 0700), 0);
    folder.groups = open_file(&folder, "groups.csv", GROUPS);
    folder.tasks = open_file(&folder, "tasks.csv", TASKS);
    return folder;
}

static void add_epoch(struct folder *folder, int task, int epoch, double from_s, double to_s)
{
    fprintf(folder->tasks, "\"a,b mps\",1,%d,a,100,0,,1000,1100,1001,900,%d,%g,%g,%g,100\n", task,
        epoch, to_s - from_s, from_s, to_s);
}

/* A group of two trainings, and four samples of its GPU at 1, 11, 12 and 500 s. */
static void add_group_with_failures(struct folder *folder, const char *sharing, int failed)
{
    fprintf(folder->groups, "\"a,b mps\",1,1,\"a,b\",%s,0,H200,processes,2,%d,1000,60,500\n",
        sharing, failed);
    FILE *samples = open_file(folder, "looks/1-1.csv", SAMPLES);
    fputs("1,0.1,0.1,0.1,0.1,100,1000,1,1\n11,0.8,0.4,0.3,1,400,2000,9,3\n"
          "12,0.6,0.4,0.3,1,400,2048,,3\n500,0,0,0,0,70,0,0,0\n",
        samples);
    fclose(samples);
}

static void add_group(struct folder *folder, const char *sharing)
{
    add_group_with_failures(folder, sharing, 0);
}

static void add_task_without_epochs(struct folder *folder, int task, int exit_code)
{
    fprintf(folder->tasks, "\"a,b mps\",1,%d,a,100,%d,,1000,1100,,,,,,,\n", task, exit_code);
}

/* Writes the summary and checks one field of its only row. */
static void assert_summary(struct folder *folder, const char *column, const char *expected)
{
    struct fault fault = {0};
    struct columns columns;
    char path[128];
    fflush(folder->groups);
    fflush(folder->tasks);
    if (bench_summary_write(folder->path, &fault) < 0)
        fail_msg("%s", fault.text);
    snprintf(path, sizeof path, "%s/summary.csv", folder->path);
    assert_int_equal(columns_open(&columns, path, &fault), 0);
    assert_int_equal(columns_next(&columns, &fault), 1);
    const char *value = columns_get(
        &columns, columns_find(&columns, (const char *const[]){column, NULL}));
    assert_string_equal(value ? value : "", expected);
    columns_close(&columns);
}

static void folder_end(struct folder *folder)
{
    static const char *const names[] = {"groups.csv", "tasks.csv", "summary.csv", "looks/1-1.csv"};
    char path[128];
    fclose(folder->groups);
    fclose(folder->tasks);
    for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
        snprintf(path, sizeof path, "%s/%s", folder->path, names[i]);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/looks", folder->path);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rmdir(folder->path), 0);
}

static void test_the_second_epoch_is_timed(void **state)
{
    struct folder folder = folder_make();
    add_group(&folder, "mps");
    for (int task = 0; task < 2; task++) {
        add_epoch(&folder, task, 1, 1000, 1099);
        add_epoch(&folder, task, 2, 1010, 1022.5);
    }
    assert_summary(&folder, "group", "a,b mps");
    assert_summary(&folder, "epoch_s", "12.5");
    assert_summary(&folder, "samples_per_s", "16");
    assert_summary(&folder, "smact", "0.7");
    assert_summary(&folder, "pcie_rx_mib_per_s", "9");
    assert_summary(&folder, "energy_j", "500");
    assert_summary(&folder, "joule_per_sample", "25");
    folder_end(&folder);
}

static void test_throughput_is_of_the_time_in_which_all_train(void **state)
{
    struct folder folder = folder_make();
    add_group(&folder, "mps");
    add_epoch(&folder, 0, 1, 1000, 1099);
    add_epoch(&folder, 0, 2, 1010, 1020);
    add_epoch(&folder, 0, 3, 1020, 1030);
    add_epoch(&folder, 1, 2, 1015, 1035);
    assert_summary(&folder, "samples_per_s", "15"); /* 50 + 100 + 75 samples in 15 s */
    folder_end(&folder);
}

static void test_of_the_timed_epochs_where_these_saw_all_the_others(void **state)
{
    struct folder folder = folder_make();
    add_group(&folder, "mps");
    for (int task = 0; task < 2; task++) {
        add_epoch(&folder, task, 1, 1000, 1010);
        add_epoch(&folder, task, 2, 1010, 1020);
        add_epoch(&folder, task, 2, 1010, 1020); /* twice, after a crash */
        add_epoch(&folder, task, 3, 1020, 1025);
    }
    assert_summary(&folder, "samples_per_s", "20");
    folder_end(&folder);
}

static void test_trainings_that_never_met_have_no_throughput(void **state)
{
    struct folder folder = folder_make();
    add_group(&folder, "mps");
    add_epoch(&folder, 0, 2, 1030, 1040);
    add_epoch(&folder, 1, 2, 1010, 1020);
    assert_summary(&folder, "samples_per_s", "");
    assert_summary(&folder, "joule_per_sample", "");
    assert_summary(&folder, "epoch_s", "10");
    assert_summary(&folder, "smact", "0.7"); /* of the time in which any was timed */
    folder_end(&folder);
}

static void test_one_after_the_other_has_no_throughput_of_all(void **state)
{
    struct folder folder = folder_make();
    add_group(&folder, "serial");
    add_epoch(&folder, 0, 2, 1010, 1020);
    add_epoch(&folder, 1, 2, 1010, 1020);
    assert_summary(&folder, "samples_per_s", "");
    folder_end(&folder);
}

static void test_epochs_that_are_missing_are_not_zero(void **state)
{
    struct folder folder = folder_make();
    add_group_with_failures(&folder, "streams", 2);
    add_task_without_epochs(&folder, 0, 1);
    add_task_without_epochs(&folder, 1, 1);
    assert_summary(&folder, "epoch_s", "");
    assert_summary(&folder, "samples_per_s", "");
    assert_summary(&folder, "smact", "");
    assert_summary(&folder, "mem_peak_mib", "2048");
    folder_end(&folder);
}

static void test_without_epochs_the_means_are_of_the_whole_time(void **state)
{
    struct folder folder = folder_make();
    add_group_with_failures(&folder, "streams", 1);
    add_task_without_epochs(&folder, 0, 0);
    add_task_without_epochs(&folder, 1, 1);
    assert_summary(&folder, "smact", "0.5"); /* not the sample after the end */
    assert_summary(&folder, "power_w", "300");
    assert_summary(&folder, "mem_used_mib", "1682.67");
    assert_summary(&folder, "mem_peak_mib", "2048");
    assert_summary(&folder, "pcie_rx_mib_per_s", "5"); /* one of the three is not known */
    assert_summary(&folder, "epoch_s", "");
    assert_summary(&folder, "samples_per_s", "");
    assert_summary(&folder, "joule_per_sample", "");
    folder_end(&folder);
}

/* The first epoch was reported: the time of the training is known, and it was not timed. */
static void test_an_epoch_that_is_not_timed_has_no_means(void **state)
{
    struct folder folder = folder_make();
    add_group(&folder, "streams");
    add_epoch(&folder, 0, 1, 1000, 1050);
    assert_summary(&folder, "smact", "");
    assert_summary(&folder, "mem_peak_mib", "2048");
    folder_end(&folder);
}

static void test_without_samples_nothing_of_the_gpu_is_known(void **state)
{
    struct folder folder = folder_make();
    char path[128];
    add_group(&folder, "streams");
    add_task_without_epochs(&folder, 0, 0);
    snprintf(path, sizeof path, "%s/looks/1-1.csv", folder.path);
    unlink(path);
    assert_summary(&folder, "smact", "");
    assert_summary(&folder, "power_w", "");
    assert_summary(&folder, "mem_peak_mib", "");
    folder_end(&folder);
}

static void test_what_is_no_journal_is_refused(void **state)
{
    struct folder folder = folder_make();
    struct fault fault = {0};
    fputs("g,1,1,m,mps,0,H200,processes,x,0,1000,60,500\n", folder.groups);
    fflush(folder.groups);
    fflush(folder.tasks);
    assert_int_equal(bench_summary_write(folder.path, &fault), -22);
    assert_non_null(strstr(fault.text, "groups.csv:2: tasks is \"x\""));
    folder_end(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_second_epoch_is_timed),
        cmocka_unit_test(test_throughput_is_of_the_time_in_which_all_train),
        cmocka_unit_test(test_of_the_timed_epochs_where_these_saw_all_the_others),
        cmocka_unit_test(test_trainings_that_never_met_have_no_throughput),
        cmocka_unit_test(test_one_after_the_other_has_no_throughput_of_all),
        cmocka_unit_test(test_epochs_that_are_missing_are_not_zero),
        cmocka_unit_test(test_without_epochs_the_means_are_of_the_whole_time),
        cmocka_unit_test(test_an_epoch_that_is_not_timed_has_no_means),
        cmocka_unit_test(test_without_samples_nothing_of_the_gpu_is_known),
        cmocka_unit_test(test_what_is_no_journal_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
