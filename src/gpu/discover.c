/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Discovery: which cards and MIG instances there are, what each is (name, UUID, memory, SMs, MIG
 * profile), and whether a task can be placed on it. A card that the driver lists but cannot open is
 * listed too, with the driver's reason why no task can be placed on it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mig_slices.h"
#include "gpu/source.h"
#include "gpu/topology.h"
#include "gpu/xid_events.h"

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

static struct reading count_sms(const struct nvml *nvml, nvml_device device)
{
    int major = 0, minor = 0;
    unsigned cores = 0;
    if (nvml_call(nvml, device_compute_capability, device, &major, &minor) != NVML_OK ||
        nvml_call(nvml, device_cores, device, &cores) != NVML_OK)
        return READING_NONE;
    unsigned per_sm = cores_per_sm(major, minor), sms = per_sm ? cores / per_sm : 0;
    return per_sm ? reading_of(sms) : READING_NONE;
}

static struct reading memory_total(const struct nvml *nvml, nvml_device device)
{
    struct nvml_memory memory = {0};
    if (nvml_call(nvml, memory, device, &memory) != NVML_OK || memory.total == 0)
        return READING_NONE;
    return reading_of((double)memory.total);
}

static struct reading memory_reserved(const struct nvml *nvml, nvml_device device)
{
    struct nvml_memory_v2 memory = {.version = NVML_MEMORY_V2_VERSION};
    if (nvml_call(nvml, memory_v2, device, &memory) != NVML_OK || memory.total == 0)
        return READING_NONE;
    return reading_of((double)memory.reserved);
}

static void read_identity(const struct nvml *nvml, nvml_device device, struct gpu_info *info)
{
    if (nvml->device_uuid(device, info->uuid, sizeof info->uuid) != NVML_OK)
        info->uuid[0] = '\0';
    if (nvml_call(nvml, device_name, device, info->name, sizeof info->name) != NVML_OK)
        info->name[0] = '\0';
    info->mem_total_bytes = memory_total(nvml, device);
    info->mem_reserved_bytes = memory_reserved(nvml, device);
    unsigned milliwatt;
    bool has_limit = nvml_call(nvml, power_limit, device, &milliwatt) == NVML_OK;
    info->power_limit_w = has_limit ? reading_of(milliwatt / 1e3) : READING_NONE;
}

static void set_place(struct gpu_info *info)
{
    const char *why = "";
    if (info->uuid[0] == '\0')
        why = "the driver reports no UUID";
    else if (info->compute_mode == GPU_COMPUTE_PROHIBITED)
        why = "its compute mode is Prohibited (nvidia-smi -c 0 allows compute)";
    else if (info->mig_mode == GPU_MIG_ON && !info->is_mig)
        why = "MIG is on: only its instances take tasks";
    info->is_place = why[0] == '\0';
    snprintf(info->why_not, sizeof info->why_not, "%s", why);
}

/*
 * "NVIDIA A100-SXM4-40GB MIG 1c.3g.20gb" contains the profile; otherwise it is made of the slices.
 */
static void name_profile(struct gpu_info *info, const struct nvml_attributes *attributes)
{
    const char *in_name = strstr(info->name, " MIG ");
    if (in_name) {
        snprintf(info->profile, sizeof info->profile, "%.31s", in_name + strlen(" MIG "));
    } else if (info->gpu_slices.valid) {
        size_t at = 0;
        if (info->compute_slices.value < info->gpu_slices.value)
            at = (size_t)snprintf(
                info->profile, sizeof info->profile, "%.0fc.", info->compute_slices.value);
        unsigned gib = (unsigned)((attributes->memory_mib + 1023) / 1024);
        snprintf(info->profile + at, sizeof info->profile - at, "%.0fg.%ugb",
            info->gpu_slices.value, gib);
    }
}

/* Returns the set's next entry: gpu_source_allocate made enough for every possible instance. */
static struct gpu_device *append_device(
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
    struct gpu_device *device = append_device(source, handle, &info);
    read_identity(nvml, handle, info);
    snprintf(info->index, sizeof info->index, "%s", index);
    memcpy(info->pci_bus_id, card->pci_bus_id, sizeof info->pci_bus_id);
    info->minor = card->minor;
    memcpy(info->near_cpus, card->near_cpus, sizeof info->near_cpus);
    info->numa_node = card->numa_node;
    info->compute_mode = card->compute_mode;
    info->mig_mode = GPU_MIG_ON;
    info->is_mig = true;
    info->parent = parent;
    if (nvml_call(nvml, device_attributes, handle, &attributes) == NVML_OK) {
        info->sm_count = reading_of(attributes.multiprocessors);
        info->gpu_slices = reading_of(attributes.gpu_slices);
        info->compute_slices = reading_of(attributes.compute_slices);
        if (card->power_limit_w.valid && card->card_slices.valid)
            info->power_limit_w = reading_of(mig_power_limit_w(
                card->power_limit_w.value, attributes.compute_slices, card->card_slices.value));
    }
    name_profile(info, &attributes);
    set_place(info);
    unsigned gpu_instance;
    if (nvml_call(nvml, device_gpu_instance, handle, &gpu_instance) == NVML_OK) {
        info->gpu_instance = reading_of(gpu_instance);
        gpm_init(&device->gpm, nvml, source->device[parent].handle, true, gpu_instance);
    }
}

void gpu_source_add_card(
    struct gpu_source *source, unsigned index, nvml_device handle, const struct roster *roster)
{
    const struct nvml *nvml = &source->nvml;
    struct nvml_pci pci = {0};
    struct gpu_info *info;
    size_t at = source->set.count;
    struct gpu_device *device = append_device(source, handle, &info);
    snprintf(info->index, sizeof info->index, "%u", index);
    read_identity(nvml, handle, info);
    if (nvml_call(nvml, device_pci, handle, &pci) == NVML_OK)
        snprintf(info->pci_bus_id, sizeof info->pci_bus_id, "%.31s", pci.bus_id);
    unsigned minor;
    if (nvml_call(nvml, device_minor, handle, &minor) == NVML_OK)
        info->minor = reading_of(minor);
    info->sm_count = count_sms(nvml, handle);
    info->compute_mode = roster->compute_mode;
    info->mig_mode = roster->mig_mode;
    info->card_slices = roster->card_slices;
    info->instances_known = roster->instances_known;
    set_place(info);
    topology_read(source, at);
    gpm_init(&device->gpm, nvml, handle, false, 0);
    for (unsigned i = 0; i < roster->count; i++) {
        char name[sizeof info->index];
        snprintf(name, sizeof name, "%u:%u", index, roster->instance[i].number);
        add_instance(source, at, name, roster->instance[i].handle);
    }
}

static void add_unopened_card(struct gpu_source *source, unsigned index, int result)
{
    struct gpu_info *info;
    struct gpu_device *device = append_device(source, NULL, &info);
    device->open_result = result;
    info->compute_mode = GPU_COMPUTE_UNKNOWN;
    snprintf(info->index, sizeof info->index, "%u", index);
    snprintf(info->why_not, sizeof info->why_not, "%.*s", (int)sizeof info->why_not - 1,
        nvml_error_text(&source->nvml, result));
}

int gpu_source_allocate(struct gpu_source *source, size_t cards)
{
    size_t most = cards * (1 + CARD_INSTANCES_MAX);
    source->info = calloc(most, sizeof *source->info);
    source->device = calloc(most, sizeof *source->device);
    source->set.gpu = source->info;
    return source->info && source->device ? 0 : -ENOMEM;
}

int gpu_source_discover(struct gpu_source *source, struct fault *fault)
{
    unsigned cards = 0;
    int result = source->nvml.device_count(&cards);
    if (result != NVML_OK)
        return fault_set(
            fault, EIO, "cannot count the GPUs: %s", nvml_error_text(&source->nvml, result));
    if (cards == 0) {
        fault_set(fault, ENODEV, "the NVIDIA driver sees no GPU");
        return GPU_NO_DEVICES;
    }
    if (gpu_source_allocate(source, cards) < 0)
        return fault_set(fault, ENOMEM, "no memory for %u GPUs", cards);
    for (unsigned i = 0; i < cards; i++) {
        nvml_device handle = NULL;
        struct roster roster;
        result = source->nvml.device_by_index(i, &handle);
        if (result != NVML_OK) {
            add_unopened_card(source, i, result);
            continue;
        }
        roster_read(&source->nvml, handle, &roster);
        gpu_source_add_card(source, i, handle, &roster);
    }
    xid_events_open(source);
    return 0;
}
