/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts the Python program that runs pipelines, whose threads mostly wait for the processes of
 * stages. This process becomes that program: signals and the exit status are its own. MIG instances
 * are looked up here, since CUDA's names of them come from NVML.
 */
#include "cli/bench_pipelines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/bench_words.h"
#include "cli/print.h"
#include "gpu/gpu.h"

bool bench_is_pipeline(const char *path)
{
    size_t size = strlen(path);
    return size > 5 && strcmp(path + size - 5, ".json") == 0;
}

/* Writes the MIG instances that a task can use, as "GPU/PROFILE/UUID", comma-separated. */
static void write_instances(const struct gpu_set *set, FILE *out)
{
    const char *separator = "";
    for (size_t i = 0; i < set->count; i++) {
        const struct gpu_info *gpu = &set->gpu[i];
        if (!gpu->is_mig || !gpu->is_place)
            continue;
        fprintf(out, "%s%s/%s/%s", separator, set->gpu[gpu->parent].index, gpu->profile, gpu->uuid);
        separator = ",";
    }
}

static void add_instances_of(struct word_list *words, const struct gpu_set *set)
{
    char *word = NULL;
    size_t size;
    FILE *out = open_memstream(&word, &size);
    if (out) {
        fputs("--instances=", out);
        write_instances(set, out);
        if (fclose(out) != 0) {
            free(word);
            word = NULL;
        }
    }
    word_list_append(words, word);
}

/* Adds the MIG instances where `sharing` names a profile: of its values only these have a digit.
 * Without NVML it adds nothing, and the program says that they are unknown. */
static void add_instances(struct word_list *words, const char *sharing)
{
    struct fault fault = {0};
    struct gpu_set *set;
    if (!sharing || !strpbrk(sharing, "0123456789"))
        return;
    if (gpu_set_open(NULL, &fault, &set) != 0) {
        print_error("%s", fault.text);
        return;
    }
    add_instances_of(words, set);
    gpu_set_close(set);
}

static void add_words(struct word_list *words, const struct pipeline_bench *bench)
{
    word_list_add(words, "colloc_pipeline");
    bench_words_add_option(words, "--output", bench->output);
    bench_words_add_option(words, "--sharing", bench->sharing);
    bench_words_add_option(words, "--gpu", bench->gpu);
    add_instances(words, bench->sharing);
    bench_words_add_number(words, "--repeat", (double)bench->repeats);
    bench_words_add_number(words, "--requests", (double)bench->requests);
    bench_words_add_number(words, "--rate", (double)bench->rate);
    bench_words_add_number(words, "--matrix", (double)bench->matrix_us / (double)SECOND_US);
    bench_words_add_number(words, "--limit", (double)bench->limit_us / (double)SECOND_US);
    if (bench->pretend)
        word_list_add(words, "--pretend");
    if (!bench->has_report)
        word_list_add(words, "--no-report");
    word_list_add(words, "--");
    for (size_t i = 0; i < bench->n_files; i++)
        word_list_add(words, "%s", bench->files[i]);
}

int bench_run_pipelines(const struct pipeline_bench *bench)
{
    struct word_list words = {0};
    add_words(&words, bench);
    return bench_words_become(&words, bench->python);
}
