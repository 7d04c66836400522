/* SPDX-License-Identifier: Apache-2.0 */
/* "KIND:PLACE", with a table of the kinds: tensorboard:FOLDER, mlflow:FOLDER, output:PATTERN. */
#include "taskfile/metric_source.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "taskfile/metric_pattern.h"

static const struct {
    const char *prefix;
    enum metric_source_kind kind;
} kinds[] = {
    {"tensorboard:", METRIC_TENSORBOARD}, {"mlflow:", METRIC_MLFLOW}, {"output:", METRIC_OUTPUT}};

int metric_source_parse(const char *text, struct fault *fault, struct metric_source *ret_source)
{
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
        size_t size = strlen(kinds[i].prefix);
        if (strncmp(text, kinds[i].prefix, size) != 0 || !text[size])
            continue;
        *ret_source = (struct metric_source){kinds[i].kind, text + size};
        return kinds[i].kind == METRIC_OUTPUT ? metric_pattern_check(text + size, fault) : 0;
    }
    return fault_set(fault, EINVAL,
        "metric-from=%.100s: must be tensorboard:FOLDER, mlflow:FOLDER or output:PATTERN", text);
}

/* Has the folder a placeholder, with or without a width (%4a), that differs by task? */
static bool is_of_task(const char *folder)
{
    for (const char *at = folder; (at = strchr(at, '%')); at++) {
        char letter = at[1 + strspn(at + 1, "0123456789")];
        if (letter == 'a' || letter == 'j')
            return true;
    }
    return false;
}

int metric_source_check(const char *text, struct fault *fault)
{
    struct metric_source source;
    int r = metric_source_parse(text, fault, &source);
    if (r < 0 || source.kind != METRIC_TENSORBOARD || is_of_task(source.place))
        return r;
    return fault_set(fault, EINVAL,
        "metric-from=%.100s: event files do not say which task wrote them: give each task a folder "
        "of its index, such as tensorboard:runs/%%a (in the task: runs/$COLLOC_ARRAY_INDEX)",
        text);
}
