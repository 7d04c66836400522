/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a task's peak may be what its framework took at its start (preallocation.h has the rule).
 * Pure functions: submission_read.c applies the first to the environment, task_json.c the second to
 * the peak.
 */
#include "daemon/preallocation.h"

#include <stddef.h>
#include <string.h>
#include <strings.h>

/* JAX takes 75 % of a GPU by default, TensorFlow more (docs.jax.dev, "GPU memory allocation").
 * Chosen: 5 % less, because the driver reserves a part of the total. */
static const double share_min = 0.70;

static bool is_one_of(const char *text, const char *word, const char *digit)
{
    return text && (strcasecmp(text, word) == 0 || strcmp(text, digit) == 0);
}

enum preallocation preallocation_of(
    const char *growth, const char *preallocate, const char *fraction)
{
    bool jax_is_off = is_one_of(preallocate, "false", "0");
    if (is_one_of(growth, "false", "0") || is_one_of(preallocate, "true", "1") ||
        (fraction && !jax_is_off))
        return PREALLOCATION_ASKED;
    return is_one_of(growth, "true", "1") && jax_is_off ? PREALLOCATION_OFF : PREALLOCATION_NOT_SET;
}

bool preallocation_explains(
    enum preallocation preallocation, bool whole, double peak_bytes, struct reading total_bytes)
{
    if (preallocation == PREALLOCATION_ASKED)
        return true;
    return preallocation == PREALLOCATION_NOT_SET && whole && total_bytes.valid &&
           peak_bytes >= share_min * total_bytes.value;
}

const char *preallocation_name(enum preallocation preallocation)
{
    static const char *const names[] = {
        [PREALLOCATION_OFF] = "off", [PREALLOCATION_ASKED] = "asked"};
    return preallocation == PREALLOCATION_NOT_SET ? NULL : names[preallocation];
}

enum preallocation preallocation_parse(const char *name)
{
    if (!name)
        return PREALLOCATION_NOT_SET;
    if (strcmp(name, "off") == 0)
        return PREALLOCATION_OFF;
    return strcmp(name, "asked") == 0 ? PREALLOCATION_ASKED : PREALLOCATION_NOT_SET;
}
