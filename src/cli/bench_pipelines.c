/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts the Python program that runs pipelines, whose threads mostly wait for the processes of
 * stages. This process becomes that program: signals and the exit status are its own. MIG instances
 * are looked up here, since CUDA's names of them come from NVML.
 */
#include "cli/bench_pipelines.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cli/python.h"
#include "gpu/gpu.h"

/* The command line of the program. */
struct words {
    char **list;
    size_t n, capacity;
    bool is_cut; /* there was no memory for a word */
};

static void words_fini(struct words *words)
{
    for (size_t i = 0; i < words->n; i++)
        free(words->list[i]);
    free(words->list);
}

/* Appends the word, which is from malloc and is the list's from then on; NULL: there was no memory
 * for it. */
static void append_word(struct words *words, char *word)
{
    if (word && ARRAY_APPEND(words->list, words->n, words->capacity, word) == 0)
        return;
    words->is_cut = true;
    free(word);
}

__attribute__((format(printf, 2, 3))) static void add_word(
    struct words *words, const char *format, ...)
{
    va_list arguments;
    char *word;
    va_start(arguments, format);
    if (vasprintf(&word, format, arguments) < 0)
        word = NULL;
    va_end(arguments);
    append_word(words, word);
}

static void add_option(struct words *words, const char *name, const char *value)
{
    if (value)
        add_word(words, "%s=%s", name, value);
}

static void add_number(struct words *words, const char *name, double value)
{
    if (value > 0)
        add_word(words, "%s=%.10g", name, value);
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

static void add_instances_of(struct words *words, const struct gpu_set *set)
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
    append_word(words, word);
}

/* Adds the MIG instances where `sharing` names a profile: of its values only these have a digit.
 * Without NVML it adds nothing, and the program says that they are unknown. */
static void add_instances(struct words *words, const char *sharing)
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

static void add_words(struct words *words, const struct pipeline_bench *bench)
{
    add_word(words, "colloc_pipeline");
    add_option(words, "--output", bench->output);
    add_option(words, "--sharing", bench->sharing);
    add_option(words, "--gpu", bench->gpu);
    add_instances(words, bench->sharing);
    add_number(words, "--repeat", (double)bench->repeats);
    add_number(words, "--requests", (double)bench->requests);
    add_number(words, "--rate", (double)bench->rate);
    add_number(words, "--matrix", (double)bench->matrix_us / (double)SECOND_US);
    add_number(words, "--limit", (double)bench->limit_us / (double)SECOND_US);
    if (bench->pretend)
        add_word(words, "--pretend");
    if (!bench->has_report)
        add_word(words, "--no-report");
    add_word(words, "--");
    for (size_t i = 0; i < bench->n_files; i++)
        add_word(words, "%s", bench->files[i]);
    if (ARRAY_APPEND(words->list, words->n, words->capacity, NULL) < 0)
        words->is_cut = true;
}

int bench_run_pipelines(const struct pipeline_bench *bench)
{
    struct words words = {0};
    struct fault fault = {0};
    add_words(&words, bench);
    if (words.is_cut) {
        fault_set(&fault, ENOMEM, "no memory for a command of %zu files", bench->n_files);
    } else {
        name_this_program();
        python_become(bench->python, (const char *const *)words.list, &fault);
    }
    words_fini(&words);
    print_error("%s", fault.text);
    return EXIT_REFUSED;
}
