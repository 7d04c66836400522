/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs of which Slurm has put two on one GPU: one with shards, which colloc has placed, and one of
 * another partition with the whole GPU. Slurm counts both against the same device file, and starts
 * no such pair as far as we have seen; an administrator who changes jobs or gres.conf by hand can
 * make one. Nothing is ended for it: what Slurm has started is the administrator's.
 *
 *     n0 has two GPUs; job 12 of colloc has 10 shards of GPU 0; job 31 runs with gpu:2
 *
 * While it lasts, no job of colloc starts on the GPU (node_rules.c: no shards are left); the
 * agent's report has the other job's processes as external, so that job 12 runs again if it runs
 * out of memory beside them; and the log says so, once.
 */
#include "base/log.h"
#include "slurm/controller_state.h"

/* GPUs that a job of colloc has, or certainly another one. Returns how many; *ret_both: the first
 * that has both, or -1. */
static int count_taken(
    const struct slurm_controller *controller, const struct cluster_node *node, int *ret_both)
{
    const struct cluster_view *view = core_view(controller->core);
    int n = 0;
    *ret_both = -1;
    for (int i = 0; i < GRES_INDEX_MAX; i++) {
        int gpu = node->gpus[i];
        if (gpu < 0 || gpu >= view->n_gpus)
            continue;
        bool is_ours = view->gpus[gpu].n_residents > 0;
        bool is_whole = controller->nodes.gpus[gpu].is_other_whole;
        if (is_ours && is_whole && *ret_both < 0)
            *ret_both = i;
        n += is_ours || is_whole;
    }
    return n;
}

static void watch_node(const struct slurm_controller *controller, struct cluster_node *node)
{
    int both, taken = count_taken(controller, node, &both);
    bool is_overlap = both >= 0 ||
                      (node->other_gpus > 0 && taken + node->other_gpus > node->n_gpus);
    char which[16] = "";
    if (both >= 0)
        snprintf(which, sizeof which, " %d", both);
    if (is_overlap && !node->is_overlap_logged)
        log_warning("node %s: Slurm has started a job with a whole GPU%s on which a job of colloc "
                    "runs: no further job of colloc starts there while both run; their memory and "
                    "speed are not separated",
            node->name, which);
    node->is_overlap_logged = is_overlap;
}

void controller_watch_overlaps(struct slurm_controller *controller)
{
    for (size_t i = 0; i < controller->nodes.n_nodes; i++)
        watch_node(controller, controller->nodes.nodes[i]);
}
