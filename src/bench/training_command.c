/* SPDX-License-Identifier: Apache-2.0 */
/* Builds argv arrays for colloc's train.py and for the scripts of a radT table. Arrays instead of a
 * command line: no text of a table reaches a shell. */
#include "bench/training_command.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define BLANKS " \t\r\n" /* a quoted field may contain line breaks */

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

static size_t count_words(const char *text)
{
    size_t n = 0;
    for (text += strspn(text, BLANKS); *text; text += strspn(text, BLANKS), n++)
        text += strcspn(text, BLANKS);
    return n;
}

char **training_command_split(const char *first, const char *second, const char *text)
{
    char **argv = calloc(count_words(text) + 3, sizeof *argv);
    size_t n = 0;
    if (!argv)
        return NULL;
    argv[n++] = strdup(first);
    argv[n++] = strdup(second);
    bool is_complete = argv[0] && argv[1];
    for (text += strspn(text, BLANKS); is_complete && *text; text += strspn(text, BLANKS)) {
        size_t size = strcspn(text, BLANKS);
        is_complete = (argv[n++] = strndup(text, size)) != NULL;
        text += size;
    }
    if (is_complete)
        return argv;
    training_command_free(argv);
    return NULL;
}
