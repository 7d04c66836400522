/* What foresee asks of a GPU that others are on, for those who look into the future with it. */
#ifndef COLLOC_POLICY_FORESEE_H
#define COLLOC_POLICY_FORESEE_H

#include "core/policy.h"

/* May the query's task join those on the GPU of this view, as far as memory and speed are concerned? */
struct verdict foresee_check_sharing(const struct placement_query *query, const struct cluster_view *view, int gpu);

#endif
