/* SPDX-License-Identifier: Apache-2.0 */
/* Parses --profile=torch, "torch:step=100,steps=5": key and value pairs behind a name. */
#include "taskfile/torch_steps.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "base/units.h"

#define NAME "torch"

/* Chosen: the first steps of a training choose algorithms and allocate; later ones are alike. */
enum { FIRST_STEP = 10, STEPS = 5 };

static_assert(TORCH_STEPS_MAX == 1000, "the text below");

static const struct key {
    const char *name; /* with '=' */
    int64_t max;
    size_t member; /* of struct torch_steps */
    const char *wrong;
} keys[] = {
    {"step=", INT32_MAX, offsetof(struct torch_steps, step),
        "step has to be a number from 1 to 2147483647 (the first step)"},
    {"steps=", TORCH_STEPS_MAX, offsetof(struct torch_steps, steps),
        "steps has to be a number from 1 to 1000 (how many)"},
};

/* Returns what is wrong with the pair, or NULL. */
static const char *parse_pair(struct span pair, struct torch_steps *steps)
{
    char text[32];
    bool fits = span_copy(pair, text, sizeof text);
    for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
        const char *name = keys[i].name;
        int64_t *number = (int64_t *)((char *)steps + keys[i].member);
        if (!span_starts(pair, name))
            continue;
        bool is_good = fits && parse_int64(text + strlen(name), 1, keys[i].max, number) == 0;
        return is_good ? NULL : keys[i].wrong;
    }
    return "torch takes step=N and steps=M, separated by one comma, such as torch:step=100,steps=5";
}

/* The pairs behind "torch:". Returns what is wrong with the first wrong one, or NULL. */
static const char *parse_pairs(const char *at, struct torch_steps *ret_steps)
{
    *ret_steps = (struct torch_steps){FIRST_STEP, STEPS};
    for (;;) {
        struct span pair = {at, strcspn(at, ",")};
        const char *wrong = parse_pair(pair, ret_steps);
        at += pair.size;
        if (wrong || !*at)
            return wrong;
        at++;
    }
}

int torch_steps_parse(const char *text, struct torch_steps *ret_steps)
{
    size_t size = strlen(NAME);
    *ret_steps = (struct torch_steps){0};
    if (strcmp(text, NAME) == 0)
        return 0;
    bool has_pairs = strncmp(text, NAME ":", size + 1) == 0;
    return has_pairs && !parse_pairs(text + size + 1, ret_steps) ? 0 : -EINVAL;
}

const char *torch_steps_canonical(const char *text)
{
    struct torch_steps steps;
    return torch_steps_parse(text, &steps) == 0 ? text : NULL;
}

const char *torch_steps_wrong_part(const char *text)
{
    struct torch_steps steps;
    size_t size = strlen(NAME ":");
    return strncmp(text, NAME ":", size) == 0 ? parse_pairs(text + size, &steps) : NULL;
}
