/* SPDX-License-Identifier: Apache-2.0 */
/*
 * .rad files with keys (thesis, listing 6.1): `key: value` lines are options of colloc, all other
 * lines are the commands of the script.
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "taskfile/forms.h"
#include "taskfile/option_words.h"
#include "taskfile/rad_script.h"

enum { KEY_SIZE = 32 };

/* Keys of .rad files that colloc ignores. */
static const char *const ignored[] = {
    "dataset", "epochs", "horus", "faketensor", "gpumemnet", NULL};

struct rad_line {
    char key[KEY_SIZE]; /* as an option's name: lower case, dashes */
    struct span value;
};

static bool is_ignored(const char *key)
{
    for (const char *const *name = ignored; *name; name++)
        if (strcmp(*name, key) == 0)
            return true;
    return false;
}

static bool is_known(const char *key)
{
    return is_ignored(key) || option_find(task_options, task_option_count, key);
}

/* Returns the value without a comment: a # after a blank. */
static struct span without_comment(struct span value)
{
    for (size_t i = 0; i < value.size; i++)
        if (value.at[i] == '#' && (i == 0 || isblank((unsigned char)value.at[i - 1])))
            value.size = i;
    return span_trim(value);
}

/* Splits "key: value". Blanks before the colon are accepted for known keys only, since `time : x`
 * is a command, too. */
static bool split_key(struct span line, struct rad_line *ret)
{
    size_t n = 0;
    line = span_trim(line);
    for (; n < line.size && n < KEY_SIZE - 1 &&
           (isalnum((unsigned char)line.at[n]) || strchr("_-", line.at[n]));
         n++)
        ret->key[n] = line.at[n] == '_' ? '-' : (char)tolower((unsigned char)line.at[n]);
    ret->key[n] = '\0';
    size_t colon = n;
    while (colon < line.size && isblank((unsigned char)line.at[colon]))
        colon++;
    if (n == 0 || colon == line.size || line.at[colon] != ':' || (colon > n && !is_known(ret->key)))
        return false;
    if (colon + 1 < line.size && !isblank((unsigned char)line.at[colon + 1]))
        return false;
    ret->value = without_comment((struct span){line.at + colon + 1, line.size - colon - 1});
    return true;
}

bool rad_keys_detect(struct span text)
{
    struct rad_line rad;
    struct span line;
    bool found = false;
    while (span_next_line(&text, &line)) {
        /* Keys inside a here-document belong to a command. */
        if (line.size && memmem(line.at, line.size, "<<", 2))
            return false;
        found |= split_key(line, &rad) && is_known(rad.key);
    }
    return found;
}

static int unknown_key(const char *key, struct fault *fault)
{
    const struct option_set set = {task_options, task_option_count, NULL};
    const char *near = option_find_near(&set, 1, key);
    if (near)
        return fault_set(fault, EINVAL, "%s: no such key; did you mean %s?", key, near);
    return fault_set(fault, EINVAL, "%s: no such key", key);
}

static int read_key(const struct rad_line *rad, size_t number, struct task_description *description,
    struct fault *fault)
{
    if (is_ignored(rad->key))
        return 0;
    const struct option_spec *spec = option_find(task_options, task_option_count, rad->key);
    if (!spec)
        return unknown_key(rad->key, fault);
    enum task_option option = (enum task_option)(spec - task_options);
    int r = option == TASK_POLICY ? rad_set_policy(description, rad->key, rad->value, fault)
                                  : rad_set(description, option, rad->key, rad->value, fault);
    description->values[option].line = (int)number;
    return r;
}

int rad_keys_parse(
    const char *name, struct span text, struct task_description *description, struct fault *fault)
{
    struct rad_script script;
    int r = rad_script_begin(&script, fault);
    if (r < 0)
        return fault_prefix(fault, r, "%s", name);
    struct rad_line rad;
    struct span line;
    int bad = 0;
    for (size_t number = 1; bad == 0 && span_next_line(&text, &line); number++) {
        if (line.size > LINE_MAX_BYTES)
            bad = fault_set(
                fault, E2BIG, "line of %zu bytes; at most %d", line.size, LINE_MAX_BYTES);
        else if (split_key(line, &rad))
            bad = read_key(&rad, number, description, fault);
        else
            rad_script_line(&script, line);
        fault_prefix(bad < 0 ? fault : NULL, bad, "%s:%zu", name, number);
    }
    r = rad_script_end(&script, description, bad < 0 ? NULL : fault);
    return bad < 0 ? bad : fault_prefix(r < 0 ? fault : NULL, r, "%s", name);
}
