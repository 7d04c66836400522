/* SPDX-License-Identifier: Apache-2.0 */
/* The processes on a GPU: three lists (compute, graphics, MPS), and three versions of each call,
 * whose entries differ in size. A client must use the size of the version that it calls; a wrong
 * size shows in impossible process ids. When the client's array is too small, the answer is the
 * number of processes, as NVML's is:
 *
 *     count = 0     NVML_ERROR_INSUFFICIENT_SIZE, count = 3
 *     count = 3     NVML_SUCCESS, or once more too small when a process has started meanwhile */
#include <math.h>

#include "base/clock.h"
#include "emulator/memory.h"
#include "emulator/nvml_view.h"

/* Without another number. */
enum { FOREIGN_PID = 1 };

/* nvidia-smi's types: C, which includes the MPS server, and M+C. */
enum list { LIST_COMPUTE, LIST_MPS };

static bool is_listed(const struct process *p, struct seat seat, enum list list)
{
    return p->present && memory_of(p, seat) > 0 &&
           (p->mps_server ? LIST_MPS : LIST_COMPUTE) == list;
}

/* A process uses one instance of a MIG-enabled GPU. */
static nvmlProcessInfo_v2_t describe_process(
    const struct gpu *gpu, const struct process *p, struct seat seat)
{
    int unit = seat.unit;

    for (int i = 0; i < p->seat_count; i++)
        if (p->seats[i].gpu == seat.gpu)
            unit = p->seats[i].unit;
    return (nvmlProcessInfo_v2_t){.pid = (unsigned)p->pid,
        .usedGpuMemory = (unsigned long long)memory_of(p, seat),
        .gpuInstanceId = unit ? (unsigned)gpu->units[unit].instance : NVML_NO_ID,
        .computeInstanceId = unit ? (unsigned)gpu->units[unit].number : NVML_NO_ID};
}

/* Fills `infos` up to its size. Returns how many there are. */
static unsigned collect_processes(
    const struct view *v, enum list list, unsigned room, nvmlProcessInfo_v2_t *infos)
{
    unsigned count = 0;

    if (v->gpu->trouble & TROUBLE_HIDDEN_PROCESSES)
        return 0;
    for (int i = 0; i < v->world->process_end; i++) {
        const struct process *p = &v->world->processes[i];
        if (!is_listed(p, v->seat, list))
            continue;
        if (count < room)
            infos[count] = describe_process(v->gpu, p, v->seat);
        count++;
    }
    if (list == LIST_COMPUTE && v->seat.unit == 0 && v->gpu->foreign_bytes) {
        if (count < room)
            infos[count] = (nvmlProcessInfo_v2_t){
                v->gpu->foreign_pid ? (unsigned)v->gpu->foreign_pid : FOREIGN_PID,
                (unsigned long long)v->gpu->foreign_bytes, NVML_NO_ID, NVML_NO_ID};
        count++;
    }
    return count;
}

/* The number is set also when the array is too small, so that a client can call again with a larger
 * one. */
static nvmlReturn_t list_new(
    nvmlDevice_t device, enum list list, unsigned *count, nvmlProcessInfo_v2_t *infos)
{
    struct view v;

    if (count && *count && !infos)
        return NVML_ERROR_INVALID_ARGUMENT;
    nvmlReturn_t r = view_open(device, count, TROUBLE_NO_PROCESSES, &v);
    if (r != NVML_SUCCESS)
        return r;
    unsigned room = *count;
    *count = collect_processes(&v, list, room, infos);
    view_close(&v);
    return *count > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

/* The first version's entries are smaller: a client that mixes them up reads wrong pids. */
static nvmlReturn_t list_old(
    nvmlDevice_t device, enum list list, unsigned *count, nvmlProcessInfo_v1_t *infos)
{
    nvmlProcessInfo_v2_t new[PROCESSES_MAX + 1];

    if (!count || (*count && !infos))
        return NVML_ERROR_INVALID_ARGUMENT;
    unsigned room = *count, got = room < PROCESSES_MAX + 1 ? room : PROCESSES_MAX + 1;
    nvmlReturn_t r = list_new(device, list, &got, new);
    if (r != NVML_SUCCESS && r != NVML_ERROR_INSUFFICIENT_SIZE)
        return r;
    for (unsigned i = 0; i < got && i < room; i++)
        infos[i] = (nvmlProcessInfo_v1_t){new[i].pid, new[i].usedGpuMemory};
    *count = got;
    return r;
}

/* No process uses the GPU for graphics. */
static nvmlReturn_t list_no_process(nvmlDevice_t device, unsigned *count)
{
    struct view v;

    nvmlReturn_t r = view_open(device, count, TROUBLE_NO_PROCESSES, &v);
    if (r != NVML_SUCCESS)
        return r;
    *count = 0;
    view_close(&v);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses(
    nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v1_t *infos)
{
    return list_old(device, LIST_COMPUTE, count, infos);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v2(
    nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v2_t *infos)
{
    return list_new(device, LIST_COMPUTE, count, infos);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(
    nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v2_t *infos)
{
    return list_new(device, LIST_COMPUTE, count, infos);
}

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses(
    nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v1_t *infos)
{
    return list_old(device, LIST_MPS, count, infos);
}

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v2(
    nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v2_t *infos)
{
    return list_new(device, LIST_MPS, count, infos);
}

nvmlReturn_t nvmlDeviceGetMPSComputeRunningProcesses_v3(
    nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v2_t *infos)
{
    return list_new(device, LIST_MPS, count, infos);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses(
    nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v1_t *infos)
{
    return list_no_process(device, count);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v2(
    nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v2_t *infos)
{
    return list_no_process(device, count);
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(
    nvmlDevice_t device, unsigned *count, nvmlProcessInfo_v2_t *infos)
{
    return list_no_process(device, count);
}

/* Reports one sample of this moment for each process that computes. */
nvmlReturn_t nvmlDeviceGetProcessUtilization(nvmlDevice_t device,
    nvmlProcessUtilizationSample_t *samples, unsigned *count, unsigned long long last_seen)
{
    struct view v;
    unsigned found = 0;
    unsigned long long now = (unsigned long long)clock_wall_us();

    nvmlReturn_t r = view_open_gpu(
        device, count, TROUBLE_NO_UTILIZATION | TROUBLE_NO_PROCESSES, &v);
    if (r != NVML_SUCCESS)
        return r;
    unsigned room = samples ? *count : 0;
    for (int i = 0; i < v.world->process_end; i++) {
        const struct process *p = &v.world->processes[i];
        if (!p->present || p->speed == 0 || !process_sits_on(p, v.seat))
            continue;
        if (found < room)
            samples[found] = (nvmlProcessUtilizationSample_t){.pid = (unsigned)p->pid,
                .timeStamp = now,
                .smUtil = (unsigned)lround(100 * fmin(1, p->demand.gract * p->speed)),
                .memUtil = (unsigned)lround(100 * fmin(1, p->demand.dram * p->speed))};
        found++;
    }
    view_close(&v);
    *count = found;
    if (found == 0 || now <= last_seen)
        return NVML_ERROR_NOT_FOUND;
    return found > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}
