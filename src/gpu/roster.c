/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the roster of a card: its MIG mode, its compute mode and the MIG instances it has. When a
 * query fails in a way that does not mean "there is none", `instances_known` is false, so that
 * gpu_set_renew never takes an error for a removed instance.
 */
#include "gpu/roster.h"

static enum gpu_compute_mode compute_mode(const struct nvml *nvml, nvml_device device)
{
    int mode;
    if (nvml_call(nvml, device_compute_mode, device, &mode) != NVML_OK)
        return GPU_COMPUTE_UNKNOWN;
    return (enum gpu_compute_mode)mode;
}

static bool is_unsupported(int result)
{
    return result == NVML_NOT_SUPPORTED || result == NVML_FUNCTION_NOT_FOUND;
}

static void read_mig_mode(const struct nvml *nvml, nvml_device card, struct roster *roster)
{
    unsigned current = 0, pending = 0;
    int result = nvml_call(nvml, device_mig_mode, card, &current, &pending);
    if (result == NVML_OK)
        roster->mig_mode = current == NVML_MIG_ENABLED ? GPU_MIG_ON : GPU_MIG_OFF;
    else
        roster->mig_mode = GPU_MIG_UNSUPPORTED;
    roster->instances_known = result == NVML_OK || is_unsupported(result);
}

static unsigned count_instance_numbers(
    const struct nvml *nvml, nvml_device card, struct roster *roster)
{
    unsigned most = 0;
    if (nvml_call(nvml, device_max_mig, card, &most) != NVML_OK)
        roster->instances_known = false;
    else if (most > 0)
        roster->card_slices = reading_of(most); /* the smallest instance has one */
    return most < CARD_INSTANCES_MAX ? most : CARD_INSTANCES_MAX;
}

/* A number without an instance is a valid answer. */
static void read_instance(
    const struct nvml *nvml, nvml_device card, unsigned number, struct roster *roster)
{
    struct roster_instance *next = &roster->instance[roster->count];
    int result = nvml_call(nvml, device_mig_by_index, card, number, &next->handle);
    if (result == NVML_OK)
        result = nvml->device_uuid(next->handle, next->uuid, sizeof next->uuid);
    if (result != NVML_OK) {
        roster->instances_known &= result == NVML_NOT_FOUND || result == NVML_INVALID_ARGUMENT;
        return;
    }
    next->number = number;
    roster->count++;
}

void roster_read(const struct nvml *nvml, nvml_device card, struct roster *ret_roster)
{
    *ret_roster = (struct roster){.compute_mode = compute_mode(nvml, card)};
    read_mig_mode(nvml, card, ret_roster);
    unsigned most = ret_roster->mig_mode == GPU_MIG_ON
                        ? count_instance_numbers(nvml, card, ret_roster)
                        : 0;
    for (unsigned i = 0; i < most; i++)
        read_instance(nvml, card, i, ret_roster);
}
