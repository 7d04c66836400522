/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command lines of NVIDIA's profilers, a list of options each. "%s" stands for the output:
 *
 *     nsys profile --output=logs/3-1.0 ... python train.py
 *
 * A range of NVTX is a part of the program that it has named itself: torch.cuda.nvtx.range_push.
 */
#include "exec/profiler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPTIONS_MAX = 16 };

/* Profiling every kernel with ncu takes hours: it replays each many times. Chosen; radT's too. */
#define PROFILER_LAUNCHES "100"

#define NSYS                                                                                       \
    "nsys", "profile", "--output=%s", "--force-overwrite=true", "--trace=cuda,nvtx",               \
        "--cuda-memory-usage=true"
#define NCU "ncu", "--export", "%s", "--force-overwrite", "--target-processes", "all"

static const char *const commands[][OPTIONS_MAX] = {
    [PROFILER_NONE] = {NULL},
    [PROFILER_NSYS] = {NSYS},
    /* NVTX compares texts only if the program has registered them, unless the variable says so. */
    [PROFILER_NSYS_RANGES] = {NSYS, "--capture-range=nvtx", "--nvtx-capture=profile",
        "--capture-range-end=repeat", "--env-var=NSYS_NVTX_PROFILER_REGISTER_ONLY=0"},
    [PROFILER_NCU] = {NCU, "--launch-count", PROFILER_LAUNCHES},
    /* Ranges that are started and ended, and those that are pushed and popped. */
    [PROFILER_NCU_RANGES] = {NCU, "--nvtx", "--nvtx-include", "profile", "--nvtx-include",
        "profile/"},
};

enum profiler profiler_parse(const char *name)
{
    if (name && strcmp(name, "nsys") == 0)
        return PROFILER_NSYS;
    return name && strcmp(name, "ncu") == 0 ? PROFILER_NCU : PROFILER_NONE;
}

const char *profiler_program(enum profiler profiler)
{
    return commands[profiler][0];
}

static size_t count_words(char *const *argv)
{
    size_t n = 0;
    while (argv[n])
        n++;
    return n;
}

char **profiler_command(enum profiler profiler, const char *output, char *const *argv)
{
    const char *const *options = commands[profiler];
    size_t n_options = 0, n = count_words(argv), text_size = 0;
    for (; n_options < OPTIONS_MAX && options[n_options]; n_options++)
        text_size += strlen(options[n_options]) + strlen(output) + 1;
    size_t list_size = (n_options + n + 1) * sizeof(char *);
    char **command = malloc(list_size + text_size);
    if (!command)
        return NULL;
    char *text = (char *)command + list_size;
    for (size_t i = 0; i < n_options; i++) {
        const char *place = strstr(options[i], "%s");
        size_t before = place ? (size_t)(place - options[i]) : strlen(options[i]);
        command[i] = text;
        text += sprintf(text, "%.*s%s", (int)before, options[i], place ? output : "") + 1;
    }
    memcpy(command + n_options, argv, (n + 1) * sizeof *argv);
    return command;
}
