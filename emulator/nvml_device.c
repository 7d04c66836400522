/* SPDX-License-Identifier: Apache-2.0 */
/* The list of GPUs, and the constant facts of each: name, UUID, PCI address, limits. A lost GPU
 * stays in the list: its handle is returned together with NVML_ERROR_GPU_IS_LOST, as by a real
 * driver, so that a client can tell which GPU is lost. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "emulator/nvml_view.h"

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count)
{
    if (!session_world())
        return NVML_ERROR_UNINITIALIZED;
    if (!count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = (unsigned)session_world()->gpu_count;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount(unsigned *count)
{
    return nvmlDeviceGetCount_v2(count);
}

static nvmlReturn_t give_handle(struct seat seat, nvmlDevice_t *device)
{
    *device = device_handle(seat);
    return session_world()->gpus[seat.gpu].trouble & TROUBLE_LOST ? NVML_ERROR_GPU_IS_LOST
                                                                  : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device)
{
    if (!session_world())
        return NVML_ERROR_UNINITIALIZED;
    if (!device || index >= (unsigned)session_world()->gpu_count)
        return NVML_ERROR_INVALID_ARGUMENT;
    return give_handle((struct seat){(int)index, 0}, device);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device)
{
    struct world *world = session_world();

    if (!world)
        return NVML_ERROR_UNINITIALIZED;
    if (!uuid || !device)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (int g = 0; g < world->gpu_count; g++)
        for (int u = 0; u < world->gpus[g].unit_count; u++)
            if (world->gpus[g].units[u].state == UNIT_READY &&
                strcmp(world->gpus[g].units[u].uuid, uuid) == 0)
                return give_handle((struct seat){g, u}, device);
    return NVML_ERROR_NOT_FOUND;
}

/* GPUs sit on every second bus from 1 on. */
static unsigned bus_of(int gpu)
{
    return 1 + 2 * (unsigned)gpu;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvmlDevice_t *device)
{
    unsigned domain, bus, slot;

    if (!session_world())
        return NVML_ERROR_UNINITIALIZED;
    if (!bus_id || !device)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (sscanf(bus_id, "%x:%x:%x", &domain, &bus, &slot) != 3)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (int g = 0; g < session_world()->gpu_count; g++)
        if (domain == 0 && bus == bus_of(g) && slot == 0)
            return give_handle((struct seat){g, 0}, device);
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetHandleByPciBusId(const char *bus_id, nvmlDevice_t *device)
{
    return nvmlDeviceGetHandleByPciBusId_v2(bus_id, device);
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned length)
{
    struct view v;
    char text[112], profile[UNIT_NAME_SIZE];

    nvmlReturn_t r = view_open(device, name, 0, &v);
    if (r != NVML_SUCCESS)
        return r;
    if (v.seat.unit == 0)
        snprintf(text, sizeof(text), "%s", v.kind->nvml.product);
    else
        snprintf(text, sizeof(text), "%s MIG %s", v.kind->nvml.product,
            unit_name(v.gpu, v.unit, profile));
    view_close(&v);
    return give_text(text, name, length);
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned length)
{
    struct view v;

    nvmlReturn_t r = view_open(device, uuid, 0, &v);
    if (r != NVML_SUCCESS)
        return r;
    r = give_text(v.unit->uuid, uuid, length);
    view_close(&v);
    return r;
}

static unsigned index_of(const struct view *v, unsigned index)
{
    return (unsigned)v->seat.gpu;
}

static unsigned brand_of(const struct view *v, unsigned index)
{
    return NVML_BRAND_NVIDIA;
}

static unsigned architecture_of(const struct view *v, unsigned index)
{
    return v->kind->nvml.architecture;
}

/* 64 FP32 lanes per SM in GA100, 128 in Hopper. */
static unsigned cores_of(const struct view *v, unsigned index)
{
    return (unsigned)v->kind->sms * (v->kind->nvml.cuda_major == 8 ? 64 : 128);
}

static unsigned compute_mode(const struct view *v, unsigned index)
{
    return v->gpu->trouble & TROUBLE_ONE_PROCESS ? 3 : 0;
}

static unsigned is_enabled(const struct view *v, unsigned index)
{
    return NVML_FEATURE_ENABLED;
}

static unsigned tdp_mw(const struct view *v, unsigned index)
{
    return (unsigned)(v->kind->limit_w * 1000);
}

static unsigned pcie_generation(const struct view *v, unsigned index)
{
    return v->kind->nvml.pcie_generation;
}

static unsigned pcie_width(const struct view *v, unsigned index)
{
    return 16;
}

nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned *index)
{
    return give_number(view_open_gpu, device, 0, index, index_of);
}

nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned *minor)
{
    return give_number(view_open_gpu, device, 0, minor, index_of);
}

nvmlReturn_t nvmlDeviceGetBrand(nvmlDevice_t device, unsigned *brand)
{
    return give_number(view_open_gpu, device, 0, brand, brand_of);
}

nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t device, unsigned *architecture)
{
    return give_number(view_open_gpu, device, 0, architecture, architecture_of);
}

nvmlReturn_t nvmlDeviceGetNumGpuCores(nvmlDevice_t device, unsigned *cores)
{
    return give_number(view_open_gpu, device, 0, cores, cores_of);
}

nvmlReturn_t nvmlDeviceGetComputeMode(nvmlDevice_t device, unsigned *mode)
{
    return give_number(view_open_gpu, device, 0, mode, compute_mode);
}

nvmlReturn_t nvmlDeviceGetPersistenceMode(nvmlDevice_t device, unsigned *mode)
{
    return give_number(view_open_gpu, device, 0, mode, is_enabled);
}

nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t device, unsigned *milliwatts)
{
    return give_number(view_open_gpu, device, 0, milliwatts, tdp_mw);
}

nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned *milliwatts)
{
    return give_number(view_open_gpu, device, 0, milliwatts, tdp_mw);
}

nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t device, unsigned *generation)
{
    return give_number(view_open_gpu, device, 0, generation, pcie_generation);
}

nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t device, unsigned *generation)
{
    return give_number(view_open_gpu, device, 0, generation, pcie_generation);
}

nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t device, unsigned *width)
{
    return give_number(view_open_gpu, device, 0, width, pcie_width);
}

nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t device, unsigned *width)
{
    return give_number(view_open_gpu, device, 0, width, pcie_width);
}

nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major, int *minor)
{
    struct view v;

    nvmlReturn_t r = view_open(device, major && minor ? major : NULL, 0, &v);
    if (r != NVML_SUCCESS)
        return r;
    *major = v.kind->nvml.cuda_major;
    *minor = v.kind->nvml.cuda_minor;
    view_close(&v);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_v3_t *pci)
{
    struct view v;

    nvmlReturn_t r = view_open_gpu(device, pci, 0, &v);
    if (r != NVML_SUCCESS)
        return r;
    *pci = (nvmlPciInfo_v3_t){.bus = bus_of(v.seat.gpu),
        .pciDeviceId = v.kind->nvml.pci_device_id,
        .pciSubSystemId = 0x146310DE};
    snprintf(pci->busIdLegacy, sizeof(pci->busIdLegacy), "%04X:%02X:00.0", 0u, pci->bus);
    snprintf(pci->busId, sizeof(pci->busId), "%08X:%02X:00.0", 0u, pci->bus);
    view_close(&v);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_v2_t *pci)
{
    nvmlPciInfo_v3_t new;
    nvmlReturn_t r = nvmlDeviceGetPciInfo_v3(device, pci ? &new : NULL);

    if (r != NVML_SUCCESS)
        return r;
    *pci = (nvmlPciInfo_v2_t){
        .bus = new.bus, .pciDeviceId = new.pciDeviceId, .pciSubSystemId = new.pciSubSystemId};
    memcpy(pci->busId, new.busIdLegacy, sizeof(pci->busId));
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_v1_t *pci)
{
    nvmlPciInfo_v3_t new;
    nvmlReturn_t r = nvmlDeviceGetPciInfo_v3(device, pci ? &new : NULL);

    if (r != NVML_SUCCESS)
        return r;
    *pci = (nvmlPciInfo_v1_t){.bus = new.bus, .pciDeviceId = new.pciDeviceId};
    memcpy(pci->busId, new.busIdLegacy, sizeof(pci->busId));
    return NVML_SUCCESS;
}
