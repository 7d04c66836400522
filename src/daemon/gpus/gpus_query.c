/* SPDX-License-Identifier: Apache-2.0 */
/* What other parts may read of the GPUs: the set that NVML has listed, and the last samples. */
#include "daemon/gpus/gpus_query.h"

#include "daemon/gpus/gpus_state.h"

size_t gpus_count(const struct gpus *gpus)
{
    return gpus->set ? gpus->set->count : 0;
}

const char *gpus_driver_version(const struct gpus *gpus)
{
    return gpus->set ? gpus->set->driver_version : "";
}

const char *gpus_why_none(const struct gpus *gpus)
{
    return gpus->why_none;
}

bool gpus_report(const struct gpus *gpus, size_t i, struct gpu_report *ret_report)
{
    if (i >= gpus_count(gpus))
        return false;
    const struct gpu_state *state = &gpus->states[i];
    const struct gpu_info *info = &gpus->set->gpu[i];
    *ret_report = (struct gpu_report){
        .info = info,
        .parent = info->is_mig ? &gpus->set->gpu[info->parent] : NULL,
        .sample = &state->sample,
        .view = state->view,
        .external = state->external,
        .n_external = state->n_external,
        .misplaced = state->misplaced,
        .n_misplaced = state->n_misplaced,
        .left = state->left,
        .n_left = state->n_left,
        .shares = state->shares,
        .n_shares = state->n_shares,
        .shares_estimated = state->shares_estimated,
    };
    return true;
}

const char *gpus_why_gone(const struct gpus *gpus, int view)
{
    if (core_view(gpus->parts.core)->gpus[view].id.is_gone)
        return "the MIG instance is not there any more";
    for (size_t i = 0; i < gpus_count(gpus); i++) {
        const struct gpu_sample *sample = &gpus->states[i].sample;
        if (gpus->states[i].view == view && sample->health == GPU_HEALTH_LOST)
            return sample->health_reason;
    }
    return NULL;
}

/*
 * Both count cards in PCI order (CUDA_DEVICE_ORDER=PCI_BUS_ID), whichever of them this daemon
 * manages. They differ where a card is in MIG mode or lost: CUDA then counts fewer. A client of MPS
 * counts the cards of its server, which has those that the daemon manages: NVML's index holds there
 * if these are all.
 */
bool gpus_cuda_counts_as_nvml(const struct gpus *gpus, bool by_mps)
{
    const struct cluster_view *view = core_view(gpus->parts.core);
    for (size_t i = 0; i < gpus_count(gpus); i++) {
        const struct gpu_info *gpu = &gpus->set->gpu[i];
        if (gpu->is_mig || gpu->mig_mode == GPU_MIG_ON || !*gpu->uuid)
            return false;
        int place = gpus->states[i].view;
        if (place >= 0 && view->gpus[place].health == VIEW_LOST)
            return false;
        if (by_mps && (place < 0 || !gpu->is_place))
            return false;
    }
    return gpus->set != NULL;
}

struct gpu_totals gpus_totals(const struct gpus *gpus)
{
    return (struct gpu_totals){
        .energy_j = gpus->energy_j,
        .mean_smact = gpus->smact_n ? reading_of(gpus->smact_sum / (double)gpus->smact_n)
                                    : READING_NONE,
    };
}
