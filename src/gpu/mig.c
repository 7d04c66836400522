/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MIG instances through NVML. To apply a plan (mig_plan.h), all instances are destroyed and those
 * of the plan are created: NVML cannot change an existing one.
 */
#include "gpu/mig.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"
#include "gpu/source.h"

static nvml_device card_of(const struct mig_gpu *gpu)
{
    return gpu->set->source->device[gpu->gpu].handle;
}

static const struct nvml *nvml_of(const struct mig_gpu *gpu)
{
    return &gpu->set->source->nvml;
}

static int report_failure(
    const struct mig_gpu *gpu, const char *what, int result, struct fault *fault)
{
    int errnum = result == NVML_NO_PERMISSION ? EPERM : EIO;
    return fault_set(fault, errnum, "GPU %s: %s: %s", gpu->set->gpu[gpu->gpu].index, what,
        nvml_error_text(nvml_of(gpu), result));
}

/* ---- querying ---- */

static int find_card(struct gpu_set *set, const char *index, struct fault *fault, size_t *ret_card)
{
    for (size_t i = 0; i < set->count; i++) {
        if (set->gpu[i].is_mig || strcmp(set->gpu[i].index, index) != 0)
            continue;
        *ret_card = i;
        if (set->gpu[i].mig_mode == GPU_MIG_ON)
            return 0;
        if (set->gpu[i].mig_mode == GPU_MIG_UNSUPPORTED)
            return fault_set(fault, ENOTSUP, "GPU %s has no MIG", index);
        return fault_set(fault, ENOTSUP,
            "MIG is off on GPU %s; `nvidia-smi -i %s -mig 1` turns it on (the GPU must be idle; "
            "some machines need a reset)",
            index, index);
    }
    return fault_set(fault, ENODEV, "this machine has no GPU %s", index);
}

static int read_profile(const struct mig_gpu *gpu, unsigned number, struct mig_profile *profile)
{
    struct nvml_gpu_profile info = {.version = NVML_GPU_PROFILE_VERSION};
    struct nvml_placement placements[MIG_PLACEMENTS_MAX];
    unsigned count = MIG_PLACEMENTS_MAX;
    int result = nvml_call(nvml_of(gpu), gpu_profile, card_of(gpu), number, &info);
    if (result == NVML_OK)
        result = nvml_call(nvml_of(gpu), gpu_placements, card_of(gpu), info.id, placements, &count);
    if (result != NVML_OK)
        return result;
    const char *name = strncmp(info.name, "MIG ", 4) == 0 ? info.name + 4 : info.name;
    *profile = (struct mig_profile){
        .id = info.id, .slices = (int)info.slices, .n_placements = count};
    profile->mem_bytes = (int64_t)info.memory_mib * MIB;
    snprintf(profile->name, sizeof profile->name, "%.31s", name);
    for (unsigned i = 0; i < count; i++)
        profile->placements[i] = (struct mig_placement){placements[i].start, placements[i].size};
    return NVML_OK;
}

/* Profile numbers that this GPU does not have are skipped. */
static int read_profiles(struct mig_gpu *gpu, struct fault *fault)
{
    int result = NVML_OK;
    for (unsigned i = 0; i < NVML_GPU_PROFILES && gpu->n_profiles < MIG_PROFILES_MAX; i++) {
        int r = read_profile(gpu, i, &gpu->profiles[gpu->n_profiles]);
        gpu->n_profiles += r == NVML_OK;
        if (r != NVML_OK && r != NVML_NOT_SUPPORTED && r != NVML_INVALID_ARGUMENT)
            result = r;
    }
    if (gpu->n_profiles == 0)
        return report_failure(gpu, "cannot list MIG profiles",
            result == NVML_OK ? NVML_NOT_SUPPORTED : result, fault);
    return 0;
}

/* Lists the compute instances of the profile with this number. Returns how many there are; none
 * where the GPU instance has no such profile. */
static unsigned list_computes(const struct mig_gpu *gpu, nvml_gpu_instance instance,
    unsigned number, struct nvml_compute_profile *ret_profile, nvml_compute_instance *ret_list)
{
    const struct nvml *nvml = nvml_of(gpu);
    unsigned count = MIG_INSTANCES_MAX;
    if (nvml_call(nvml, compute_profile, instance, number, NVML_COMPUTE_ENGINES_SHARED,
            ret_profile) != NVML_OK ||
        nvml_call(nvml, compute_instances, instance, ret_profile->id, ret_list, &count) != NVML_OK)
        return 0;
    return count;
}

static unsigned instances_of(const struct mig_gpu *gpu, unsigned profile, nvml_gpu_instance *list)
{
    unsigned count = MIG_INSTANCES_MAX;
    if (nvml_call(nvml_of(gpu), gpu_instances, card_of(gpu), profile, list, &count) != NVML_OK)
        return 0;
    return count;
}

/* Lists the compute instances of a GPU instance by their slices. */
static void read_computes(
    const struct mig_gpu *gpu, nvml_gpu_instance handle, struct mig_instance *instance)
{
    for (unsigned number = 0; number < NVML_COMPUTE_PROFILES; number++) {
        struct nvml_compute_profile profile;
        nvml_compute_instance list[MIG_INSTANCES_MAX];
        unsigned count = list_computes(gpu, handle, number, &profile, list);
        for (unsigned i = 0; i < count && instance->n_computes < MIG_COMPUTES_MAX; i++)
            instance->computes[instance->n_computes++] = (int)profile.slices;
    }
}

static void read_present(struct mig_gpu *gpu)
{
    for (size_t p = 0; p < gpu->n_profiles; p++) {
        nvml_gpu_instance list[MIG_INSTANCES_MAX];
        unsigned count = instances_of(gpu, gpu->profiles[p].id, list);
        for (unsigned i = 0; i < count && gpu->present.count < MIG_INSTANCES_MAX; i++) {
            struct nvml_gpu_instance_info info = {0};
            struct mig_instance *instance = &gpu->present.instances[gpu->present.count];
            if (nvml_call(nvml_of(gpu), gpu_instance_info, list[i], &info) != NVML_OK)
                continue;
            *instance = (struct mig_instance){
                .profile = p, .at = {info.placement.start, info.placement.size}};
            read_computes(gpu, list[i], instance);
            gpu->present.count++;
        }
    }
    mig_plan_sort(&gpu->present);
}

int mig_query(struct gpu_set *set, const char *index, struct fault *fault, struct mig_gpu *ret_gpu)
{
    *ret_gpu = (struct mig_gpu){.set = set};
    int r = find_card(set, index, fault, &ret_gpu->gpu);
    if (r == 0)
        r = read_profiles(ret_gpu, fault);
    if (r == 0)
        read_present(ret_gpu);
    return r;
}

/* An MPS server without clients stays until its control daemon ends: that of collocd soon does. */
static int refuse_process(
    const struct gpu_process *process, const struct gpu_info *gpu, struct fault *fault)
{
    if (process->is_mps_server)
        return fault_set(fault, EBUSY,
            "the MPS server %d uses GPU %s: collocd stops its own when no task has used it for the "
            "time of the setting mps-linger; end another by hand",
            (int)process->pid, gpu->index);
    return fault_set(
        fault, EBUSY, "process %d uses GPU %s: end it first", (int)process->pid, gpu->index);
}

int mig_check_idle(const struct mig_gpu *gpu, struct fault *fault)
{
    struct gpu_sample sample = {0};
    int r = 0;
    for (size_t i = 0; i < gpu->set->count && r == 0; i++) {
        const struct gpu_info *info = &gpu->set->gpu[i];
        if (!info->is_mig || info->parent != gpu->gpu)
            continue;
        gpu_set_sample(gpu->set, i, &sample);
        if (!sample.processes.valid)
            r = fault_set(
                fault, EBUSY, "the driver does not report the processes on GPU %s", info->index);
        else if (sample.processes.count > 0)
            r = refuse_process(&sample.processes.item[0], info, fault);
    }
    gpu_sample_fini(&sample);
    return r;
}

/* ---- changing ---- */

static int destroy_computes(const struct mig_gpu *gpu, nvml_gpu_instance instance)
{
    for (unsigned number = 0; number < NVML_COMPUTE_PROFILES; number++) {
        struct nvml_compute_profile profile;
        nvml_compute_instance list[MIG_INSTANCES_MAX];
        unsigned count = list_computes(gpu, instance, number, &profile, list);
        for (unsigned i = 0; i < count; i++) {
            int result = nvml_call(nvml_of(gpu), compute_instance_destroy, list[i]);
            if (result != NVML_OK)
                return result;
        }
    }
    return NVML_OK;
}

static int destroy_all(const struct mig_gpu *gpu, struct fault *fault)
{
    for (size_t p = 0; p < gpu->n_profiles; p++) {
        nvml_gpu_instance list[MIG_INSTANCES_MAX];
        unsigned count = instances_of(gpu, gpu->profiles[p].id, list);
        for (unsigned i = 0; i < count; i++) {
            int result = destroy_computes(gpu, list[i]);
            if (result == NVML_OK)
                result = nvml_call(nvml_of(gpu), gpu_instance_destroy, list[i]);
            if (result != NVML_OK)
                return report_failure(gpu, "cannot destroy an instance", result, fault);
        }
    }
    return 0;
}

/* Creates a compute instance with this number of slices. */
static int create_compute(const struct mig_gpu *gpu, nvml_gpu_instance instance, int slices)
{
    for (unsigned number = 0; number < NVML_COMPUTE_PROFILES; number++) {
        struct nvml_compute_profile profile;
        nvml_compute_instance compute;
        int result = nvml_call(
            nvml_of(gpu), compute_profile, instance, number, NVML_COMPUTE_ENGINES_SHARED, &profile);
        if (result == NVML_OK && (int)profile.slices == slices)
            return nvml_call(nvml_of(gpu), compute_instance_create, instance, profile.id, &compute);
    }
    return NVML_NOT_SUPPORTED;
}

static int create_instance(
    const struct mig_gpu *gpu, const struct mig_instance *wanted, struct fault *fault)
{
    const struct mig_profile *profile = &gpu->profiles[wanted->profile];
    const struct nvml_placement at = {wanted->at.start, wanted->at.size};
    nvml_gpu_instance instance;
    char what[128], name[MIG_NAME_SIZE];
    snprintf(name, sizeof name, "%s", profile->name);
    int result = nvml_call(
        nvml_of(gpu), gpu_instance_create, card_of(gpu), profile->id, &at, &instance);
    for (size_t i = 0; i < wanted->n_computes && result == NVML_OK; i++) {
        mig_plan_name(profile, wanted->computes[i], name);
        result = create_compute(gpu, instance, wanted->computes[i]);
    }
    if (result == NVML_OK)
        return 0;
    snprintf(what, sizeof what, "cannot create %s at slice %u (those before it exist now)", name,
        at.start);
    return report_failure(gpu, what, result, fault);
}

int mig_apply(const struct mig_gpu *gpu, const struct mig_plan *plan, struct fault *fault)
{
    int r = destroy_all(gpu, fault);
    for (size_t i = 0; plan && r == 0 && i < plan->count; i++)
        r = create_instance(gpu, &plan->instances[i], fault);
    return r;
}
