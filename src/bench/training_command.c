/* SPDX-License-Identifier: Apache-2.0 */
/* Builds argv arrays for colloc's train.py and for the scripts of a radT table. Arrays instead of a
 * command line: no text of a table reaches a shell. */
#include "bench/training_command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

enum { ARGUMENTS_MAX = 256 }; /* chosen: more than any table has; further words are dropped */

void training_command_free(char **argv)
{
    for (char **argument = argv; argument && *argument; argument++)
        free(*argument);
    free(argv);
}

static char **copy_argv(const char *const *argv, size_t n)
{
    char **copy = calloc(n + 1, sizeof *copy);
    for (size_t i = 0; copy && i < n; i++)
        if (!(copy[i] = strdup(argv[i]))) {
            training_command_free(copy);
            return NULL;
        }
    return copy;
}

char **training_command_make(const struct experiment_defaults *defaults, const char *name,
    const struct training_options *options)
{
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {{"--epochs", options->epochs}, {"--steps", options->steps},
        {"--batch", options->batch}, {"--side", options->side}, {"--classes", options->classes}};
    char script[4096], text[5][24];
    const char *argv[16] = {defaults->python, script, name};
    size_t n = 3;
    snprintf(script, sizeof script, "%s/train.py", defaults->workloads);
    for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
        if (!numbers[i].value)
            continue;
        snprintf(text[i], sizeof text[i], "%lld", (long long)numbers[i].value);
        argv[n++] = numbers[i].name;
        argv[n++] = text[i];
    }
    return copy_argv(argv, n);
}

char **training_command_split(const char *first, const char *second, const char *text)
{
    const char *argv[ARGUMENTS_MAX] = {first, second};
    char *copy = strdup(text), *rest = NULL;
    size_t n = 2;
    for (char *word = copy ? strtok_r(copy, " \t", &rest) : NULL; word && n < ARGUMENTS_MAX;
         word = strtok_r(NULL, " \t", &rest))
        argv[n++] = word;
    char **result = copy ? copy_argv(argv, n) : NULL;
    free(copy);
    return result;
}
