/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Why no further task starts on a GPU now, whichever it is, as text for all users. What holds one
 * place of a memory domain holds all of them.
 */
#include "core/explain/verdict_text.h"
#include "core/memory_domain.h"
#include "core/questions.h"

/* The place of the memory domain that is drained, or that a task has to itself; else the GPU. */
static const struct gpu_view *find_closed(const struct gpu_view *gpu)
{
    const struct gpu_view *at = gpu;
    do {
        if (at->claims[CLAIM_DRAIN] || at->claims[CLAIM_EXCLUSIVE])
            return at;
        at = memory_domain_next(at);
    } while (at != gpu);
    return gpu;
}

static struct verdict find_hold(const struct gpu_view *gpu)
{
    const struct resident *newest = gpu_view_unsettled(gpu);
    const struct gpu_view *closed = find_closed(gpu);
    if (closed->claims[CLAIM_DRAIN])
        return (struct verdict){VERDICT_DRAINED, closed->claims[CLAIM_DRAIN], 0, 0};
    if (closed->claims[CLAIM_EXCLUSIVE])
        return (struct verdict){VERDICT_EXCLUSIVE, closed->claims[CLAIM_EXCLUSIVE], 0, 0};
    if (newest)
        return (struct verdict){VERDICT_HOLD_OFF, newest->task, 0, 0};
    return (struct verdict){VERDICT_FITS, 0, 0, 0};
}

const char *core_explain_hold(
    const struct core *core, const struct gpu_view *gpu, char *buffer, size_t size)
{
    struct text_line line = {buffer, size, 0};
    const struct verdict hold = find_hold(gpu);
    buffer[0] = '\0';
    if (hold.kind == VERDICT_FITS)
        return NULL;
    verdict_text_add(&line, core, &hold);
    return buffer;
}
