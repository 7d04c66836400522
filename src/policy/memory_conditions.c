/* SPDX-License-Identifier: Apache-2.0 */
/* Free memory counts less what is kept for residents of unknown memory (starting.c). */
#include "policy/memory_conditions.h"

static bool refuse_memory(
    struct verdict *ret_verdict, enum verdict_kind kind, double have, double wanted)
{
    *ret_verdict = (struct verdict){.kind = kind, .have = have, .limit = wanted};
    return false;
}

bool conditions_has_free(
    const struct placement_query *query, const struct gpu_view *gpu, struct verdict *ret_verdict)
{
    struct reading free_bytes = gpu_view_free_bytes(gpu);
    double wanted = conditions_wanted_bytes(query);
    return !free_bytes.valid || free_bytes.value >= wanted ||
           refuse_memory(ret_verdict, VERDICT_MEMORY_SHORT, free_bytes.value, wanted);
}

struct conditions_filter conditions_filter_of(const struct placement_query *query)
{
    const double *open_bytes = query->is_unexplained ? query->view->open_bytes : NULL;
    return (struct conditions_filter){open_bytes, open_bytes ? conditions_wanted_bytes(query) : 0};
}

bool conditions_check_left(const struct placement_query *query, const struct gpu_view *gpu,
    double left, struct verdict *ret_verdict)
{
    double wanted = conditions_wanted_bytes(query);
    if (left < wanted)
        return refuse_memory(ret_verdict, VERDICT_MEMORY_SHORT, left, wanted);
    left -= starting_kept_bytes(query, gpu);
    return left >= wanted || refuse_memory(ret_verdict, VERDICT_MEMORY_KEPT, left, wanted);
}
