/* SPDX-License-Identifier: Apache-2.0 */
/* Faults of a GPU that `colloc-emulator set` injects: ECC errors, faulty rows of memory, reduced
 * clocks. They are reported only: they change neither the speed of a process nor its memory. */
#include "emulator/nvml_view.h"

enum { CORRECTED, UNCORRECTED };

/* Volatile and aggregate counts are the same here. */
nvmlReturn_t nvmlDeviceGetTotalEccErrors(
    nvmlDevice_t device, unsigned type, unsigned counter, unsigned long long *count)
{
    struct view v;

    nvmlReturn_t r = view_open_gpu(
        device, type <= UNCORRECTED && counter <= 1 ? count : NULL, 0, &v);
    if (r != NVML_SUCCESS)
        return r;
    *count = type == UNCORRECTED ? (unsigned long long)v.gpu->ecc_uncorrected : 0;
    view_close(&v);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned *corrected,
    unsigned *uncorrected, unsigned *pending, unsigned *failed)
{
    struct view v;

    nvmlReturn_t r = view_open_gpu(
        device, corrected && uncorrected && pending ? failed : NULL, 0, &v);
    if (r != NVML_SUCCESS)
        return r;
    *corrected = 0;
    *pending = (v.gpu->trouble & TROUBLE_REMAP_PENDING) != 0;
    *failed = (v.gpu->trouble & TROUBLE_REMAP_FAILED) != 0;
    *uncorrected = *pending + *failed;
    view_close(&v);
    return NVML_SUCCESS;
}

/* Retired pages: a feature of older boards; these remap rows instead. */
nvmlReturn_t nvmlDeviceGetRetiredPagesPendingStatus(nvmlDevice_t device, unsigned *pending)
{
    struct view v;

    nvmlReturn_t r = view_open_gpu(device, pending, 0, &v);
    if (r != NVML_SUCCESS)
        return r;
    view_close(&v);
    return NVML_ERROR_NOT_SUPPORTED;
}

nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(
    nvmlDevice_t device, unsigned long long *reasons)
{
    struct view v;

    nvmlReturn_t r = view_open_gpu(device, reasons, 0, &v);
    if (r != NVML_SUCCESS)
        return r;
    *reasons = v.gpu->clock_reasons | (v.unit->rate.gract > 0 ? 0 : NVML_CLOCKS_IDLE);
    view_close(&v);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(
    nvmlDevice_t device, unsigned long long *reasons)
{
    return nvmlDeviceGetCurrentClocksEventReasons(device, reasons);
}
