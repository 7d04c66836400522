/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/words.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS_MAX = 256 };

void words_free(char **words)
{
    for (char **word = words; word && *word; word++)
        free(*word);
    free(words);
}

/* A copy of everything. */
static char **copy_words(const char *const *words, size_t n)
{
    char **copy = calloc(n + 1, sizeof *copy);
    for (size_t i = 0; copy && i < n; i++)
        if (!(copy[i] = strdup(words[i]))) {
            words_free(copy);
            return NULL;
        }
    return copy;
}

char **words_of_training(const struct experiment_defaults *defaults, const char *name,
    const struct training_options *options)
{
    const struct {
        const char *name;
        int64_t value;
    } numbers[] = {{"--epochs", options->epochs}, {"--steps", options->steps},
        {"--batch", options->batch}, {"--side", options->side}, {"--classes", options->classes}};
    char script[4096], text[5][24];
    const char *words[16] = {defaults->python, script, name};
    size_t n = 3;
    snprintf(script, sizeof script, "%s/train.py", defaults->workloads);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (!numbers[i].value)
            continue;
        snprintf(text[i], sizeof text[i], "%lld", (long long)numbers[i].value);
        words[n++] = numbers[i].name;
        words[n++] = text[i];
    }
    return copy_words(words, n);
}

char **words_of_text(const char *first, const char *second, const char *text)
{
    const char *words[WORDS_MAX] = {first, second};
    char *copy = strdup(text), *rest = NULL;
    size_t n = 2;
    for (char *word = copy ? strtok_r(copy, " \t", &rest) : NULL; word && n < WORDS_MAX;
         word = strtok_r(NULL, " \t", &rest))
        words[n++] = word;
    char **result = copy ? copy_words(words, n) : NULL;
    free(copy);
    return result;
}

/* "3g.20gb", "1c.3g.20gb", "1g.10gb+me" */
static bool is_profile(const char *text)
{
    const char *dot = strchr(text, '.');
    return isdigit((unsigned char)*text) && dot && strstr(text, "g.") && strstr(dot, "gb") &&
           text[strspn(text, "0123456789.cgbme+")] == '\0';
}

int bench_sharing_parse(const char *text, struct bench_group *group)
{
    static const struct {
        const char *name;
        enum bench_sharing sharing;
    } known[] = {{"serial", BENCH_SERIAL}, {"streams", BENCH_STREAMS}, {"mps", BENCH_MPS},
        {"MPS", BENCH_MPS}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(text, known[i].name) == 0) {
            group->sharing = known[i].sharing;
            return 0;
        }
    if (!is_profile(text) || strlen(text) >= sizeof group->profile)
        return -EINVAL;
    group->sharing = BENCH_MIG;
    strcpy(group->profile, text);
    return 0;
}
