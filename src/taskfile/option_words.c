/* SPDX-License-Identifier: Apache-2.0 */
/* Splits words into options and their values. A name that no set has becomes a message with what it
 * is here (option_hints.c), or a near name. */
#include "taskfile/option_words.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "taskfile/option_hints.h"

const char *option_find_near(const struct option_set *sets, size_t n_sets, const char *name)
{
    struct near_name near = {0};
    for (size_t s = 0; s < n_sets; s++)
        for (size_t i = 0; i < sets[s].count; i++) {
            near_name_try(&near, name, sets[s].specs[i].name);
            if (sets[s].specs[i].alias)
                near_name_try(&near, name, sets[s].specs[i].alias);
        }
    return near.best;
}

static int unknown_option(
    const struct option_set *sets, size_t n_sets, const char *name, struct fault *fault)
{
    const char *near = option_find_near(sets, n_sets, name);
    const char *hint = option_hint(sets, n_sets, name);
    if (hint)
        return fault_set(fault, EINVAL, "--%.80s: no such option: %s", name, hint);
    if (near)
        return fault_set(fault, EINVAL, "--%.80s: no such option; did you mean --%s?", name, near);
    return fault_set(fault, EINVAL, "--%.80s: no such option", name);
}

static int find_long(const struct option_set *sets, size_t n_sets, const char *word,
    struct option_word *ret, struct fault *fault)
{
    char name[96];
    size_t n = strcspn(word + 2, "=");
    snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name - 1), word + 2);
    for (size_t s = 0; s < n_sets; s++) {
        const struct option_spec *spec = option_find(sets[s].specs, sets[s].count, name);
        if (spec) {
            *ret = (struct option_word){.spec = spec, .set = &sets[s]};
            ret->value = word[2 + n] == '=' ? word + 2 + n + 1 : NULL;
            snprintf(ret->shown, sizeof ret->shown, "--%.40s", name);
            return 0;
        }
    }
    return unknown_option(sets, n_sets, name, fault);
}

static int find_short(const struct option_set *sets, size_t n_sets, const char *word,
    struct option_word *ret, struct fault *fault)
{
    for (size_t s = 0; s < n_sets; s++)
        for (size_t i = 0; i < sets[s].count; i++)
            if (sets[s].specs[i].letter == word[1]) {
                *ret = (struct option_word){.spec = &sets[s].specs[i], .set = &sets[s]};
                ret->value = word[2] ? word + 2 : NULL;
                snprintf(ret->shown, sizeof ret->shown, "-%c", word[1]);
                return 0;
            }
    return fault_set(fault, EINVAL, "%.80s: no such option", word);
}

/* A bare number is MiB for Slurm and GB for most users, so that "12" is refused. */
static int check_unit(
    const struct option_spec *spec, const char *shown, const char *text, struct fault *fault)
{
    if (!spec->needs_unit || !*text || text[strspn(text, "0123456789.")])
        return 0;
    return fault_set(fault, EINVAL,
        "%s=%.40s: has no unit; write %s=%.40sGiB, or %.40sMiB if you mean that", shown, text,
        shown, text, text);
}

int option_next(const struct option_set *sets, size_t n_sets, const char *const *words, int count,
    struct option_word *ret_word, struct fault *fault)
{
    if (count <= 0 || words[0][0] != '-' || !words[0][1] || strcmp(words[0], "--") == 0)
        return 0;
    int r = words[0][1] == '-' ? find_long(sets, n_sets, words[0], ret_word, fault)
                               : find_short(sets, n_sets, words[0], ret_word, fault);
    if (r < 0)
        return r;
    if (!ret_word->value && ret_word->spec->kind == OPTION_FLAG)
        ret_word->value = "yes";
    if (!ret_word->value && ret_word->spec->is_optional && (count == 1 || words[1][0] == '-'))
        ret_word->value = "";
    if (ret_word->value)
        return 1;
    if (count == 1)
        return fault_set(
            fault, EINVAL, "%s: needs a value (%s)", ret_word->shown, ret_word->spec->argument);
    ret_word->value = words[1];
    return 2;
}

int option_take_one(const struct option_set *sets, size_t n_sets, const char *const *words,
    int count, struct fault *fault)
{
    struct option_word word;
    int taken = option_next(sets, n_sets, words, count, &word, fault);
    if (taken <= 0)
        return taken;
    struct option_value *target = &word.set->values[word.spec - word.set->specs];
    int r = check_unit(word.spec, word.shown, word.value, fault);
    if (r == 0)
        r = option_set_text(word.spec, word.shown, word.value, target, fault);
    return r < 0 ? r : taken;
}

int options_take(const struct option_set *sets, size_t n_sets, const char *const *words, int count,
    struct fault *fault)
{
    int i = 0, taken;
    while ((taken = option_take_one(sets, n_sets, words + i, count - i, fault)) > 0)
        i += taken;
    return taken < 0 ? taken : i;
}
