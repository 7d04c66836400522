/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of each sample of a GPU that is recorded over time: the GPU's own metrics, and each
 * task's part as it was attributed (daemon/gpus/usage.c).
 *
 * Occupancy, bandwidth and PCIe traffic are reported for the whole GPU. They belong to a task only
 * while it is alone there; with co-residents they are unknown.
 */
#include "base/clock.h"
#include "base/units.h"
#include "daemon/metrics/metric_recorder.h"

static struct reading in_mib(struct reading bytes)
{
    return bytes.valid ? reading_of(bytes.value / (double)MIB) : READING_NONE;
}

static struct reading external_memory(const struct gpu_report *gpu)
{
    struct reading sum = reading_of(0);
    for (size_t i = 0; i < gpu->n_external; i++) {
        sum.valid &= gpu->external[i].used_bytes.valid;
        sum.value += gpu->external[i].used_bytes.value;
    }
    return gpu->sample->processes.valid ? sum : READING_NONE;
}

static void take_gpu(struct metric_recorder *recorder, const struct gpu_report *gpu,
    const struct gpu_view *view, const struct metric_key *key, int64_t at_ms)
{
    const struct gpu_sample *seen = gpu->sample;
    const struct reading values[GPU_METRICS] = {
        [GPU_METRIC_MEM_USED_MIB] = in_mib(seen->mem_used_bytes),
        [GPU_METRIC_EXTERNAL_MEM_MIB] = in_mib(external_memory(gpu)),
        [GPU_METRIC_UTILISATION] = seen->utilisation,
        [GPU_METRIC_SMACT] = seen->smact,
        [GPU_METRIC_SMOCC] = seen->smocc,
        [GPU_METRIC_DRAM_ACTIVE] = seen->dram_active,
        [GPU_METRIC_POWER_W] = seen->power_w,
        [GPU_METRIC_TEMPERATURE_C] = seen->temperature_c,
        [GPU_METRIC_PCIE_TX_MIB_S] = in_mib(seen->pcie_tx_bytes_per_s),
        [GPU_METRIC_PCIE_RX_MIB_S] = in_mib(seen->pcie_rx_bytes_per_s),
        [GPU_METRIC_GRACT] = seen->gract,
        [GPU_METRIC_SM_CLOCK_MHZ] = seen->sm_clock_mhz,
        [GPU_METRIC_TASKS] = reading_of(view->n_residents),
        [GPU_METRIC_FOREIGN] = seen->processes.valid ? reading_of((double)gpu->n_external)
                                                     : READING_NONE,
    };
    metric_recorder_add(recorder, key, NULL, at_ms, values);
}

static const struct share *share_of(const struct gpu_report *gpu, uint64_t task)
{
    for (size_t i = 0; i < gpu->n_shares; i++)
        if (gpu->shares[i].task == task)
            return &gpu->shares[i];
    return NULL;
}

static struct reading reading_if(bool is_alone, struct reading reading)
{
    return is_alone ? reading : READING_NONE;
}

static void take_task(struct metric_recorder *recorder, const struct core *core,
    const struct gpu_report *gpu, const struct resident *resident, struct metric_key *key,
    int64_t at_ms)
{
    const struct gpu_sample *seen = gpu->sample;
    const struct share *share = share_of(gpu, resident->task);
    bool is_alone = share && gpu->n_shares == 1 && seen->processes.valid;
    const struct reading values[TASK_METRICS] = {
        [TASK_METRIC_MEM_USED_MIB] = in_mib(resident->mem_used_bytes),
        [TASK_METRIC_SMACT] = share ? share->smact : READING_NONE,
        [TASK_METRIC_SMOCC] = reading_if(is_alone, seen->smocc),
        [TASK_METRIC_DRAM_ACTIVE] = reading_if(is_alone, seen->dram_active),
        [TASK_METRIC_POWER_W] = share ? share->power_w : READING_NONE,
        [TASK_METRIC_PCIE_TX_MIB_S] = reading_if(is_alone, in_mib(seen->pcie_tx_bytes_per_s)),
        [TASK_METRIC_PCIE_RX_MIB_S] = reading_if(is_alone, in_mib(seen->pcie_rx_bytes_per_s)),
    };
    const struct task *task = core_task(core, resident->task);
    key->task = resident->task;
    metric_recorder_add(recorder, key, task ? task_label(task).text : NULL, at_ms, values);
}

void metric_recorder_take(
    struct metric_recorder *recorder, const struct core *core, const struct gpu_report *gpu)
{
    struct metric_key key = {.task = 0};
    int64_t at_ms = clock_wall_us() / 1000;
    if (!recorder || gpu->view < 0 || gpu->sample->health != GPU_HEALTH_OK)
        return;
    snprintf(key.gpu, sizeof key.gpu, "%.95s", gpu->info->uuid);
    const struct gpu_view *view = &core_view(core)->gpus[gpu->view];
    take_gpu(recorder, gpu, view, &key, at_ms);
    for (int k = 0; k < view->n_residents; k++)
        take_task(recorder, core, gpu, &view->residents[k], &key, at_ms);
}
