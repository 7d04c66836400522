/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gpu/source.h"

/* Cores of one SM by compute capability: CUDA C++ Programming Guide, arithmetic throughput (FP32).
 * 0: not known. */
static unsigned cores_per_sm(int major, int minor)
{
    switch (major) {
    case 6:
    case 8:
        return minor == 0 ? 64 : 128;
    case 7:
        return 64;
    case 5:
    case 9:
    case 10:
    case 12:
        return 128;
    default:
        return 0;
    }
}

static int count_sms(const struct nvml *nvml, nvml_device device)
{
    int major = 0, minor = 0;
    unsigned cores = 0;

    if (nvml_call(nvml, device_compute_capability, device, &major, &minor) != NVML_OK ||
        nvml_call(nvml, device_cores, device, &cores) != NVML_OK)
        return 0;
    unsigned per_sm = cores_per_sm(major, minor);
    return per_sm ? (int)(cores / per_sm) : 0;
}

static struct reading memory_total(const struct nvml *nvml, nvml_device device)
{
    struct nvml_memory memory = {0};

    if (nvml_call(nvml, memory, device, &memory) != NVML_OK || memory.total == 0)
        return READING_NONE;
    return reading_of((double)memory.total);
}

static void read_identity(const struct nvml *nvml, nvml_device device, struct gpu_info *info)
{
    if (nvml->device_uuid(device, info->uuid, sizeof(info->uuid)) != NVML_OK)
        info->uuid[0] = '\0';
    if (nvml_call(nvml, device_name, device, info->name, sizeof(info->name)) != NVML_OK)
        info->name[0] = '\0';
    info->mem_total_bytes = memory_total(nvml, device);
}

static enum gpu_compute_mode compute_mode(const struct nvml *nvml, nvml_device device)
{
    int mode;

    if (nvml_call(nvml, device_compute_mode, device, &mode) != NVML_OK)
        return GPU_COMPUTE_UNKNOWN;
    return (enum gpu_compute_mode)mode;
}

static bool has_no_such(int result)
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
    roster->instances_known = result == NVML_OK || has_no_such(result);
}

static unsigned most_instances(const struct nvml *nvml, nvml_device card, struct roster *roster)
{
    unsigned most = 0;

    if (nvml_call(nvml, device_max_mig, card, &most) != NVML_OK)
        roster->instances_known = false;
    return most < INSTANCES_MAX ? most : INSTANCES_MAX;
}

/* A number that has no instance is an answer, too. */
static void read_instance(
    const struct nvml *nvml, nvml_device card, unsigned number, struct roster *roster)
{
    struct roster_instance *next = &roster->instance[roster->count];
    int result = nvml_call(nvml, device_mig_by_index, card, number, &next->handle);

    if (result == NVML_OK)
        result = nvml->device_uuid(next->handle, next->uuid, sizeof(next->uuid));
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
    unsigned most = ret_roster->mig_mode == GPU_MIG_ON ? most_instances(nvml, card, ret_roster) : 0;
    for (unsigned i = 0; i < most; i++)
        read_instance(nvml, card, i, ret_roster);
}

static void judge_place(struct gpu_info *info)
{
    const char *why = "";

    if (info->uuid[0] == '\0')
        why = "the driver tells no UUID";
    else if (info->compute_mode == GPU_COMPUTE_PROHIBITED)
        why = "its compute mode is Prohibited (nvidia-smi -c 0 allows compute)";
    else if (info->mig_mode == GPU_MIG_ON && !info->is_mig)
        why = "MIG is on: only its instances take tasks";
    info->is_place = why[0] == '\0';
    snprintf(info->why_not, sizeof(info->why_not), "%s", why);
}

/* "NVIDIA A100-SXM4-40GB MIG 1c.3g.20gb" names the profile; a driver that does not say gets it from
 * the slices. */
static void name_profile(struct gpu_info *info, const struct nvml_attributes *attributes)
{
    const char *in_name = strstr(info->name, " MIG ");

    if (in_name) {
        snprintf(info->profile, sizeof(info->profile), "%.31s", in_name + strlen(" MIG "));
    } else if (info->gpu_slices > 0) {
        size_t at = 0;
        if (info->compute_slices < info->gpu_slices)
            at = (size_t)snprintf(
                info->profile, sizeof(info->profile), "%dc.", info->compute_slices);
        unsigned gib = (unsigned)((attributes->memory_mib + 1023) / 1024);
        snprintf(info->profile + at, sizeof(info->profile) - at, "%dg.%ugb", info->gpu_slices, gib);
    }
}

/* Takes the next free place in the set: make_room made enough for the most there can be. */
static struct gpu_device *append(
    struct gpu_source *source, nvml_device handle, struct gpu_info **ret_info)
{
    size_t i = source->set.count++;
    *ret_info = &source->info[i];
    source->device[i].handle = handle;
    return &source->device[i];
}

static void add_instance(
    struct gpu_source *source, size_t parent, const char *index, nvml_device handle)
{
    const struct nvml *nvml = &source->nvml;
    const struct gpu_info *card = &source->info[parent];
    struct nvml_attributes attributes = {0};
    struct gpu_info *info;
    struct gpu_device *device = append(source, handle, &info);

    read_identity(nvml, handle, info);
    snprintf(info->index, sizeof(info->index), "%s", index);
    memcpy(info->pci_bus_id, card->pci_bus_id, sizeof(info->pci_bus_id));
    info->compute_mode = card->compute_mode;
    info->mig_mode = GPU_MIG_ON;
    info->is_mig = true;
    info->parent = parent;
    if (nvml_call(nvml, device_attributes, handle, &attributes) == NVML_OK) {
        info->sm_count = (int)attributes.multiprocessors;
        info->gpu_slices = (int)attributes.gpu_slices;
        info->compute_slices = (int)attributes.compute_slices;
    }
    name_profile(info, &attributes);
    judge_place(info);
    if (nvml_call(nvml, device_gpu_instance, handle, &info->gpu_instance) == NVML_OK)
        gpm_init(&device->gpm, nvml, source->device[parent].handle, true, info->gpu_instance);
}

void gpu_source_add_card(
    struct gpu_source *source, unsigned index, nvml_device handle, const struct roster *roster)
{
    const struct nvml *nvml = &source->nvml;
    struct nvml_pci pci = {0};
    struct gpu_info *info;
    size_t at = source->set.count;
    struct gpu_device *device = append(source, handle, &info);

    snprintf(info->index, sizeof(info->index), "%u", index);
    read_identity(nvml, handle, info);
    if (nvml_call(nvml, device_pci, handle, &pci) == NVML_OK)
        snprintf(info->pci_bus_id, sizeof(info->pci_bus_id), "%.31s", pci.bus_id);
    info->sm_count = count_sms(nvml, handle);
    info->compute_mode = roster->compute_mode;
    info->mig_mode = roster->mig_mode;
    info->instances_known = roster->instances_known;
    judge_place(info);
    gpm_init(&device->gpm, nvml, handle, false, 0);
    for (unsigned i = 0; i < roster->count; i++) {
        char name[sizeof(info->index)];
        snprintf(name, sizeof(name), "%u:%u", index, roster->instance[i].number);
        add_instance(source, at, name, roster->instance[i].handle);
    }
}

static void add_mute_card(struct gpu_source *source, unsigned index, int result)
{
    struct gpu_info *info;
    struct gpu_device *device = append(source, NULL, &info);

    device->open_result = result;
    info->compute_mode = GPU_COMPUTE_UNKNOWN;
    snprintf(info->index, sizeof(info->index), "%u", index);
    snprintf(info->why_not, sizeof(info->why_not), "%.*s", (int)sizeof(info->why_not) - 1,
        nvml_words(&source->nvml, result));
}

int gpu_source_make_room(struct gpu_source *source, size_t cards)
{
    size_t most = cards * (1 + INSTANCES_MAX);

    source->info = calloc(most, sizeof(*source->info));
    source->device = calloc(most, sizeof(*source->device));
    source->set.gpu = source->info;
    return source->info && source->device ? 0 : -ENOMEM;
}

static int discover(struct gpu_source *source, struct fault *fault)
{
    unsigned cards = 0;
    int result = source->nvml.device_count(&cards);

    if (result != NVML_OK)
        return fault_set(
            fault, EIO, "cannot count the GPUs: %s", nvml_words(&source->nvml, result));
    if (cards == 0) {
        fault_set(fault, ENODEV, "the NVIDIA driver sees no GPU");
        return GPU_NO_DEVICES;
    }
    if (gpu_source_make_room(source, cards) < 0)
        return fault_set(fault, ENOMEM, "no memory for %u GPUs", cards);
    for (unsigned i = 0; i < cards; i++) {
        nvml_device handle = NULL;
        struct roster roster;
        result = source->nvml.device_by_index(i, &handle);
        if (result != NVML_OK) {
            add_mute_card(source, i, result);
            continue;
        }
        roster_read(&source->nvml, handle, &roster);
        gpu_source_add_card(source, i, handle, &roster);
    }
    xid_events_open(source);
    return 0;
}

static int explain_init(const struct nvml *nvml, int result, struct fault *fault)
{
    const char *words = nvml_words(nvml, result);

    switch (result) {
    case NVML_OK:
        return 0;
    case NVML_DRIVER_NOT_LOADED:
        fault_set(fault, ENODEV, "the NVIDIA driver is not loaded (%s)", words);
        return GPU_NO_DRIVER;
    case NVML_LIB_RM_VERSION_MISMATCH:
        fault_set(fault, ENODEV,
            "the NVIDIA driver that runs is of another version than its library: reboot (%s)",
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
            "may not use the NVIDIA driver: %s; look at the modes of /dev/nvidia*", words);
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
    if (nvml_call(&source->nvml, driver_version, version, sizeof(source->set.driver_version)) !=
        NVML_OK)
        version[0] = '\0';
    return discover(source, fault);
}

int gpu_set_open(const char *library_path, struct fault *fault, struct gpu_set **ret_set)
{
    struct gpu_source *source = calloc(1, sizeof(*source));

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
        processes_told_fini(&source->device[i].processes);
    }
    xid_events_close(source);
    if (source->nvml.library)
        source->nvml.shutdown();
    nvml_unload(&source->nvml);
    dcgm_destroy(source->dcgm);
    process_room_fini(&source->room);
    process_time_room_fini(&source->time_room);
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
        bool is_index = strlen(info->index) == n && memcmp(at, info->index, n) == 0;
        bool is_uuid = strlen(info->uuid) == n && memcmp(at, info->uuid, n) == 0;
        if (is_index || is_uuid)
            return true;
        at += n + (at[n] == ',');
    }
    return false;
}

void gpu_set_ask_all(struct gpu_set *set)
{
    for (size_t i = 0; i < set->count; i++) {
        set->source->device[i].energy.ask_again_us = 0;
        gpm_compute_next(&set->source->device[i].gpm);
        set->source->device[i].slow.ask_activity_again_us = 0;
        set->source->device[i].processes.ask_again_us = 0;
        set->source->device[i].process_time.ask_again_us = 0;
    }
}

void gpu_set_forget_xids(struct gpu_set *set, size_t i)
{
    struct trouble *trouble =
        &set->source->device[set->gpu[i].is_mig ? set->gpu[i].parent : i].trouble;

    trouble->xid_of_gpu = 0;
    trouble->xid_last = 0;
    trouble->ask_again_us = 0;
}

void gpu_set_gpm_interval(struct gpu_set *set, int64_t interval_min_us)
{
    set->source->gpm_interval_us = interval_min_us;
    for (size_t i = 0; i < set->count; i++)
        set->source->device[i].gpm.interval_min_us = interval_min_us;
}

void gpu_source_share_gpm(struct gpu_source *source)
{
    for (size_t i = 0; i < source->set.count; i++)
        source->device[i].gpm.share = source->gpm_share / (double)source->set.count;
}

void gpu_set_looks_all_day(struct gpu_set *set, double share)
{
    set->source->gpm_share = share;
    gpu_source_share_gpm(set->source);
}

int gpu_set_use_dcgmi(struct gpu_set *set, const char *program, int64_t period_us)
{
    struct gpu_source *source = set->source;

    for (size_t i = 0; i < set->count && i < DCGM_GPUS_MAX; i++) {
        if (set->gpu[i].is_mig || !source->device[i].handle || source->device[i].gpm.device)
            continue;
        if (!source->dcgm)
            source->dcgm = dcgm_create(program, period_us);
        if (!source->dcgm)
            return -ENOMEM;
        dcgm_want(source->dcgm, i, set->gpu[i].uuid);
        source->device[i].in_dcgm = true;
        source->device[i].dcgm_number = i;
    }
    return 0;
}
