/* SPDX-License-Identifier: Apache-2.0 */
/* Parses --profile=torch, "torch:step=100,steps=5": key and value pairs behind a name. */
#include "taskfile/torch_steps.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"

#define NAME "torch"

/* Chosen: the first steps of a training choose algorithms and allocate; later ones are alike. */
enum { FIRST_STEP = 10, STEPS = 5 };

static int parse_pair(struct span pair, struct torch_steps *steps)
{
    char text[32];
    if (!span_copy(pair, text, sizeof text))
        return -EINVAL;
    if (strncmp(text, "step=", 5) == 0)
        return parse_int64(text + 5, 1, INT32_MAX, &steps->step);
    if (strncmp(text, "steps=", 6) == 0)
        return parse_int64(text + 6, 1, TORCH_STEPS_MAX, &steps->steps);
    return -EINVAL;
}

int torch_steps_parse(const char *text, struct torch_steps *ret_steps)
{
    size_t size = strlen(NAME);
    *ret_steps = (struct torch_steps){0};
    if (strncmp(text, NAME, size) != 0 || (text[size] && text[size] != ':'))
        return -EINVAL;
    if (!text[size])
        return 0;
    *ret_steps = (struct torch_steps){FIRST_STEP, STEPS};
    const char *at = text + size + 1;
    int r = 0;
    do {
        struct span pair = {at, strcspn(at, ",")};
        r = parse_pair(pair, ret_steps);
        at += pair.size + (at[pair.size] == ',');
    } while (r == 0 && *at);
    bool ends_in_comma = text[strlen(text) - 1] == ',';
    return r == 0 && !ends_in_comma ? 0 : -EINVAL;
}

const char *torch_steps_canonical(const char *text)
{
    struct torch_steps steps;
    return torch_steps_parse(text, &steps) == 0 ? text : NULL;
}
