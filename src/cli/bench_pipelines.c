/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts the Python program that runs pipelines, whose threads mostly wait for the processes of
 * stages. This process becomes that program: signals and the exit status are its own.
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

enum { WORDS_MOST = 60, TEXT_MOST = 32 };

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

int bench_run_pipelines(const struct pipeline_bench *bench)
{
    struct words words = {.list = {"colloc_pipeline"}, .n = 1};
    struct fault fault = {0};
    add_option(&words, "--output", bench->output);
    add_option(&words, "--sharing", bench->sharing);
    add_option(&words, "--gpu", bench->gpu);
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
