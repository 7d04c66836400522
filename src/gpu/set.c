/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A set of GPUs: opening and closing NVML, and the settings of sampling. discover.c fills the set,
 * gpu_sample.c samples its GPUs, renew.c follows changes of MIG.
 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "gpu/source.h"
#include "gpu/xid_events.h"

static int explain_init(const struct nvml *nvml, int result, struct fault *fault)
{
    const char *words = nvml_error_text(nvml, result);
    switch (result) {
    case NVML_OK:
        return 0;
    case NVML_DRIVER_NOT_LOADED:
        fault_set(fault, ENODEV, "the NVIDIA driver is not loaded (%s)", words);
        return GPU_NO_DRIVER;
    case NVML_LIB_RM_VERSION_MISMATCH:
        fault_set(fault, ENODEV,
            "the NVIDIA driver in the kernel has another version than its library: reboot (%s)",
            words);
        return GPU_NO_DRIVER;
    case NVML_LIBRARY_NOT_FOUND:
        fault_set(fault, ENOENT, "NVML lacks a library of the driver (%s)", words);
        return GPU_NO_LIBRARY;
    case NVML_GPU_NOT_FOUND:
        fault_set(fault, ENODEV, "the NVIDIA driver sees no GPU (%s)", words);
        return GPU_NO_DEVICES;
    case NVML_NO_PERMISSION:
        return fault_set(fault, EACCES,
            "no permission to use the NVIDIA driver: %s; check the modes of /dev/nvidia*", words);
    default:
        return fault_set(fault, EIO, "NVML does not start: %s", words);
    }
}

static int open_source(struct gpu_source *source, const char *library_path, struct fault *fault)
{
    int r = nvml_load(&source->nvml, library_path, fault);
    if (r != 0)
        return r;
    r = explain_init(&source->nvml, source->nvml.init(), fault);
    if (r != 0) {
        nvml_unload(&source->nvml);
        return r;
    }
    char *version = source->set.driver_version;
    if (nvml_call(&source->nvml, driver_version, version, sizeof source->set.driver_version) !=
        NVML_OK)
        version[0] = '\0';
    return gpu_source_discover(source, fault);
}

int gpu_set_open(const char *library_path, struct fault *fault, struct gpu_set **ret_set)
{
    struct gpu_source *source = calloc(1, sizeof *source);
    *ret_set = NULL;
    if (!source)
        return fault_set(fault, ENOMEM, "no memory for the GPUs");
    source->set.source = source;
    int r = open_source(source, library_path, fault);
    if (r != 0)
        gpu_set_close(&source->set);
    else
        *ret_set = &source->set;
    return r;
}

void gpu_set_close(struct gpu_set *set)
{
    if (!set)
        return;
    struct gpu_source *source = set->source;
    for (size_t i = 0; i < set->count; i++) {
        gpm_fini(&source->device[i].gpm, &source->nvml);
        process_cache_fini(&source->device[i].processes);
        process_buffer_fini(&source->device[i].process_buffer);
        process_time_buffer_fini(&source->device[i].time_buffer);
    }
    xid_events_close(source);
    if (source->nvml.library)
        source->nvml.shutdown();
    nvml_unload(&source->nvml);
    dcgm_destroy(source->dcgm);
    free(source->device);
    free(source->info);
    free(source);
}

bool gpu_info_is_listed(const struct gpu_info *info, const char *list)
{
    if (!*list || strcmp(list, "all") == 0)
        return true;
    for (const char *at = list; *at;) {
        size_t n = strcspn(at, ",");
        const struct span name = span_trim((struct span){at, n});
        if (span_is(name, info->index) || span_is(name, info->uuid))
            return true;
        at += n + (at[n] == ',');
    }
    return false;
}

bool gpu_info_shares_memory(const struct gpu_info *one, const struct gpu_info *other)
{
    return one->is_mig && other->is_mig && one->parent == other->parent &&
           one->gpu_instance.valid && reading_equals(one->gpu_instance, other->gpu_instance);
}

void gpu_set_query_all_next(struct gpu_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        set->source->device[i].energy.next_query_us = 0;
        gpm_force_next(&set->source->device[i].gpm);
        set->source->device[i].slow.next_activity_query_us = 0;
        set->source->device[i].processes.next_query_us = 0;
        set->source->device[i].process_time.next_query_us = 0;
    }
}

void gpu_set_forget_xids(struct gpu_set *set, size_t i)
{
    struct trouble *trouble =
        &set->source->device[set->gpu[i].is_mig ? set->gpu[i].parent : i].trouble;
    trouble->xid_of_gpu = 0;
    trouble->xid_last = 0;
    trouble->next_query_us = 0;
}

void gpu_set_gpm_interval(struct gpu_set *set, int64_t interval_min_us)
{
    set->source->gpm_interval_us = interval_min_us;
    for (size_t i = 0; i < set->count; i++)
        set->source->device[i].gpm.interval_min_us = interval_min_us;
}

void gpu_source_divide_gpm_share(struct gpu_source *source)
{
    for (size_t i = 0; i < source->set.count; i++)
        source->device[i].gpm.share = source->gpm_share / (double)source->set.count;
}

void gpu_set_limit_overhead(struct gpu_set *set, double share)
{
    set->source->gpm_share = share;
    gpu_source_divide_gpm_share(set->source);
}

static bool needs_dcgm(const struct gpu_source *source, size_t i)
{
    const struct gpu_info *info = &source->info[i];
    return source->device[i].handle && !source->device[i].gpm.device &&
           (!info->is_mig || info->gpu_instance.valid);
}

static struct dcgm *create_dcgm(const struct gpu_source *source)
{
    char helper[PATH_MAX];
    dcgm_find_helper(helper, sizeof helper);
    return dcgm_create(helper, source->dcgmi, source->dcgm_period_us);
}

static void add_to_dcgm(struct gpu_source *source, size_t i)
{
    const struct gpu_info *info = &source->info[i];
    if (info->is_mig)
        dcgm_add_instance(
            source->dcgm, i, source->info[info->parent].uuid, (unsigned)info->gpu_instance.value);
    else
        dcgm_add_gpu(source->dcgm, i, info->uuid);
    source->device[i].in_dcgm = true;
}

int gpu_source_watch_by_dcgm(struct gpu_source *source)
{
    if (source->dcgm)
        dcgm_watch_none(source->dcgm);
    for (size_t i = 0; i < source->set.count; i++) {
        source->device[i].in_dcgm = false;
        if (!*source->dcgmi || i >= DCGM_WATCHED_MAX || !needs_dcgm(source, i))
            continue;
        if (!source->dcgm)
            source->dcgm = create_dcgm(source);
        if (!source->dcgm)
            return -ENOMEM;
        add_to_dcgm(source, i);
    }
    return 0;
}

int gpu_set_use_dcgm(struct gpu_set *set, const char *dcgmi, int64_t period_us)
{
    snprintf(set->source->dcgmi, sizeof set->source->dcgmi, "%s", dcgmi);
    set->source->dcgm_period_us = period_us;
    return gpu_source_watch_by_dcgm(set->source);
}

void gpu_set_change_dcgm_period(struct gpu_set *set, int64_t period_us)
{
    set->source->dcgm_period_us = period_us;
    if (set->source->dcgm)
        dcgm_set_period(set->source->dcgm, period_us);
}

const char *gpu_set_dcgm_source(const struct gpu_set *set)
{
    return set->source->dcgm ? dcgm_source(set->source->dcgm) : "";
}
