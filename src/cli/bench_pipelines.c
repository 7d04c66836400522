/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts the Python program that runs pipelines, whose threads mostly wait for the processes of
 * stages. This process becomes that program: signals and the exit status are its own. MIG instances
 * are looked up here, since CUDA's names of them come from NVML.
 */
#include "cli/bench_pipelines.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cli/python.h"
#include "gpu/gpu.h"

enum { WORDS_MOST = 60, TEXT_MOST = 32, INSTANCES_SIZE = 16384 };

struct words {
    const char *list[WORDS_MOST + 1];
    char texts[WORDS_MOST][TEXT_MOST];
    size_t n;
};

static void add_option(struct words *words, const char *name, const char *value)
{
    if (!value || words->n + 2 > WORDS_MOST)
        return;
    words->list[words->n++] = name;
    words->list[words->n++] = value;
}

static void add_number(struct words *words, const char *name, double value)
{
    char *text = words->texts[words->n];
    if (value <= 0)
        return;
    snprintf(text, TEXT_MOST, "%.10g", value);
    add_option(words, name, text);
}

bool bench_is_pipeline(const char *path)
{
    size_t size = strlen(path);
    return size > 5 && strcmp(path + size - 5, ".json") == 0;
}

/* The program samples the GPU with the colloc that started it. */
static void name_this_program(void)
{
    char path[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
    if (size <= 0)
        return;
    path[size] = '\0';
    setenv("COLLOC_PROGRAM", path, 1);
}

/* Lists the MIG instances that a task can use, as "GPU/PROFILE/UUID", comma-separated. */
static void list_instances(const struct gpu_set *set, char *list, size_t size)
{
    size_t used = 0;
    *list = '\0';
    for (size_t i = 0; i < set->count && used < size; i++) {
        const struct gpu_info *gpu = &set->gpu[i];
        if (gpu->is_mig && gpu->is_place)
            used += (size_t)snprintf(list + used, size - used, "%s%s/%s/%s", used ? "," : "",
                set->gpu[gpu->parent].index, gpu->profile, gpu->uuid);
    }
}

/* Adds the MIG instances where `sharing` names a profile: of its values only these have a digit.
 * Without NVML it adds nothing, and the program says that they are unknown. */
static void add_instances(struct words *words, const char *sharing, char *list, size_t size)
{
    struct fault fault = {0};
    struct gpu_set *set;
    if (!sharing || !strpbrk(sharing, "0123456789"))
        return;
    if (gpu_set_open(NULL, &fault, &set) != 0) {
        print_error("%s", fault.text);
        return;
    }
    list_instances(set, list, size);
    add_option(words, "--instances", list);
    gpu_set_close(set);
}

int bench_run_pipelines(const struct pipeline_bench *bench)
{
    struct words words = {.list = {"colloc_pipeline"}, .n = 1};
    struct fault fault = {0};
    char instances[INSTANCES_SIZE];
    add_option(&words, "--output", bench->output);
    add_option(&words, "--sharing", bench->sharing);
    add_option(&words, "--gpu", bench->gpu);
    add_instances(&words, bench->sharing, instances, sizeof instances);
    add_number(&words, "--repeat", (double)bench->repeats);
    add_number(&words, "--requests", (double)bench->requests);
    add_number(&words, "--rate", (double)bench->rate);
    add_number(&words, "--matrix", (double)bench->matrix_us / (double)SECOND_US);
    add_number(&words, "--limit", (double)bench->limit_us / (double)SECOND_US);
    if (bench->pretend)
        words.list[words.n++] = "--pretend";
    if (!bench->has_report)
        words.list[words.n++] = "--no-report";
    words.list[words.n++] = "--";
    for (size_t i = 0; i < bench->n_files && words.n < WORDS_MOST; i++)
        words.list[words.n++] = bench->files[i];
    name_this_program();
    python_become(bench->python, words.list, &fault);
    print_error("%s", fault.text);
    return EXIT_REFUSED;
}
