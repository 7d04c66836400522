/* SPDX-License-Identifier: Apache-2.0 */
/* The readings of a GPU: memory, utilisation, power, clocks and temperature at this moment, and the
 * energy since the start. `colloc-emulator set` can take each of them away (world.h, enum trouble):
 * then the call is not supported, as on GPUs without that sensor. */
#include <math.h>

#include "emulator/memory.h"
#include "emulator/nvml_view.h"

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    struct view v;
    unsigned version = (unsigned)sizeof(*memory) | 2u << 24;

    if (memory && memory->version != version)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    nvmlReturn_t r = view_open(device, memory, TROUBLE_NO_MEMORY, &v);
    if (r != NVML_SUCCESS)
        return r;
    *memory = (nvmlMemory_v2_t){.version = version,
        .total = (unsigned long long)v.unit->total_bytes,
        .reserved = (unsigned long long)v.unit->reserved_bytes,
        .free = (unsigned long long)memory_free(v.world, v.seat),
        .used = (unsigned long long)memory_used(v.world, v.seat)};
    view_close(&v);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    nvmlMemory_v2_t new = {.version = (unsigned)sizeof(new) | 2u << 24};
    nvmlReturn_t r = memory ? nvmlDeviceGetMemoryInfo_v2(device, &new)
                            : NVML_ERROR_INVALID_ARGUMENT;

    if (r == NVML_SUCCESS)
        *memory = (nvmlMemory_t){
            .total = new.total, .free = new.free, .used = new.total - new.free};
    return r;
}

/* A MIG-enabled GPU and its instances do not report utilisation. */
nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *utilization)
{
    struct view v;

    nvmlReturn_t r = view_open_gpu(device, utilization, TROUBLE_NO_UTILIZATION, &v);
    if (r != NVML_SUCCESS)
        return r;
    if (v.gpu->mig)
        r = NVML_ERROR_NOT_SUPPORTED;
    else
        *utilization = (nvmlUtilization_t){.gpu = (unsigned)lround(100 * v.unit->rate.gract),
            .memory = (unsigned)lround(100 * v.unit->rate.dram)};
    view_close(&v);
    return r;
}

/* Encoder and decoder are never used; their sample period is that of an A100. */
static nvmlReturn_t idle_engine(nvmlDevice_t device, unsigned *utilization, unsigned *period_us)
{
    struct view v;

    nvmlReturn_t r = view_open_gpu(device, period_us ? utilization : NULL, 0, &v);
    if (r != NVML_SUCCESS)
        return r;
    *utilization = 0;
    *period_us = 167000;
    view_close(&v);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetEncoderUtilization(
    nvmlDevice_t device, unsigned *utilization, unsigned *period_us)
{
    return idle_engine(device, utilization, period_us);
}

nvmlReturn_t nvmlDeviceGetDecoderUtilization(
    nvmlDevice_t device, unsigned *utilization, unsigned *period_us)
{
    return idle_engine(device, utilization, period_us);
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned *milliwatts)
{
    struct view v;

    nvmlReturn_t r = view_open_gpu(device, milliwatts, TROUBLE_NO_POWER, &v);
    if (r != NVML_SUCCESS)
        return r;
    *milliwatts = (unsigned)lround(1000 * v.unit->rate.power_w);
    view_close(&v);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(
    nvmlDevice_t device, unsigned long long *millijoules)
{
    struct view v;

    nvmlReturn_t r = view_open_gpu(device, millijoules, TROUBLE_NO_ENERGY, &v);
    if (r != NVML_SUCCESS)
        return r;
    *millijoules = (unsigned long long)(1000 * world_sum(v.world, v.seat)->power_w);
    view_close(&v);
    return NVML_SUCCESS;
}

/* Assumed: 30 degrees idle, 75 at full power, without thermal inertia. */
nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, unsigned sensor, unsigned *celsius)
{
    struct view v;

    nvmlReturn_t r = view_open_gpu(
        device, sensor == 0 ? celsius : NULL, TROUBLE_NO_TEMPERATURE, &v);
    if (r != NVML_SUCCESS)
        return r;
    *celsius = (unsigned)(30 + 45 * (v.unit->rate.power_w - v.kind->idle_w) /
                                   (v.kind->limit_w - v.kind->idle_w));
    view_close(&v);
    return NVML_SUCCESS;
}

/* Shutdown at 92, slowdown at 89 degrees, as an A100 reports. */
nvmlReturn_t nvmlDeviceGetTemperatureThreshold(
    nvmlDevice_t device, unsigned threshold, unsigned *celsius)
{
    struct view v;

    nvmlReturn_t r = view_open_gpu(device, celsius, TROUBLE_NO_TEMPERATURE, &v);
    if (r != NVML_SUCCESS)
        return r;
    if (threshold > 1)
        r = NVML_ERROR_NOT_SUPPORTED;
    else
        *celsius = threshold == 0 ? 92 : 89;
    view_close(&v);
    return r;
}

/* Passively cooled, as all these boards are. */
nvmlReturn_t nvmlDeviceGetFanSpeed(nvmlDevice_t device, unsigned *percent)
{
    struct view v;

    nvmlReturn_t r = view_open(device, percent, 0, &v);
    if (r != NVML_SUCCESS)
        return r;
    view_close(&v);
    return NVML_ERROR_NOT_SUPPORTED;
}

static unsigned clock_mhz(const struct view *v, unsigned type, bool busy)
{
    if (type == NVML_CLOCK_MEM)
        return v->kind->nvml.memory_mhz;
    return busy ? v->kind->nvml.sm_mhz : 210;
}

/* A GPU that computes has its highest clocks, an idle one its lowest. */
static nvmlReturn_t give_clock(nvmlDevice_t device, unsigned type, bool max, unsigned *mhz)
{
    struct view v;

    nvmlReturn_t r = view_open_gpu(device, type <= NVML_CLOCK_VIDEO ? mhz : NULL, 0, &v);
    if (r != NVML_SUCCESS)
        return r;
    *mhz = clock_mhz(&v, type, max || v.unit->rate.gract > 0);
    view_close(&v);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, unsigned type, unsigned *mhz)
{
    return give_clock(device, type, false, mhz);
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, unsigned type, unsigned *mhz)
{
    return give_clock(device, type, true, mhz);
}

/* Counter 0 counts sent bytes, 1 received ones; gradients and logs are sent at a tenth of the rate
 * of the data.
 */
nvmlReturn_t nvmlDeviceGetPcieThroughput(nvmlDevice_t device, unsigned counter, unsigned *kib_per_s)
{
    struct view v;

    nvmlReturn_t r = view_open_gpu(device, counter <= 1 ? kib_per_s : NULL, 0, &v);
    if (r != NVML_SUCCESS)
        return r;
    *kib_per_s = (unsigned)(1024 * v.unit->rate.pcie_rx_mib * (counter == 1 ? 1 : 0.1));
    view_close(&v);
    return NVML_SUCCESS;
}
