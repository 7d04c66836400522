/* SPDX-License-Identifier: Apache-2.0 */
/* The table of fields, and samples of the emulated GPUs. */
#include "emulator/dcgm_fields.h"

#include <math.h>

#include "base/array.h"
#include "base/units.h"
#include "emulator/pipes.h"

static double gputl(const struct gpu_sample *t)
{
    return round(100 * t->rate.gract);
}

static double mcutl(const struct gpu_sample *t)
{
    return round(100 * t->rate.dram);
}

static double power(const struct gpu_sample *t)
{
    return t->rate.power_w;
}

static double energy(const struct gpu_sample *t)
{
    return floor(1000 * t->sum.power_w);
}

static double gract(const struct gpu_sample *t)
{
    return t->mean.gract;
}

static double smact(const struct gpu_sample *t)
{
    return t->mean.smact;
}

static double smocc(const struct gpu_sample *t)
{
    return t->mean.smocc;
}

static double dram(const struct gpu_sample *t)
{
    return t->mean.dram;
}

static double tensor(const struct gpu_sample *t)
{
    return PIPE_TENSOR * t->mean.smact;
}

static double fp32(const struct gpu_sample *t)
{
    return PIPE_FP32 * t->mean.smact;
}

static double fp16(const struct gpu_sample *t)
{
    return PIPE_FP16 * t->mean.smact;
}

static double none(const struct gpu_sample *t)
{
    return 0;
}

static double pcie_rx(const struct gpu_sample *t)
{
    return floor((double)MIB * t->mean.pcie_rx_mib);
}

static double pcie_tx(const struct gpu_sample *t)
{
    return floor((double)MIB * PCIE_TX_OF_RX * t->mean.pcie_rx_mib);
}

static const struct field fields[] = {
    {155, "POWER", 3, 13, power, TROUBLE_NO_POWER, false},
    {156, "TOTEC", 0, 22, energy, TROUBLE_NO_ENERGY, false},
    {203, "GPUTL", 0, 18, gputl, TROUBLE_NO_UTILIZATION, false},
    {204, "MCUTL", 0, 18, mcutl, TROUBLE_NO_UTILIZATION, false},
    {1001, "GRACT", 3, 13, gract, 0, true},
    {1002, "SMACT", 3, 13, smact, 0, true},
    {1003, "SMOCC", 3, 13, smocc, 0, true},
    {1004, "TENSO", 3, 13, tensor, 0, true},
    {1005, "DRAMA", 3, 13, dram, 0, true},
    {1006, "FP64A", 3, 13, none, 0, true},
    {1007, "FP32A", 3, 13, fp32, 0, true},
    {1008, "FP16A", 3, 13, fp16, 0, true},
    {1009, "PCITX", 0, 22, pcie_tx, 0, false},
    {1010, "PCIRX", 0, 22, pcie_rx, 0, false},
    {1011, "NVLTX", 0, 22, none, 0, false},
    {1012, "NVLRX", 0, 22, none, 0, false},
};

const struct field *dcgm_field_find(unsigned id)
{
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        if (fields[i].id == id)
            return &fields[i];
    return NULL;
}

int dcgm_instance_number(struct entity entity)
{
    return 100 * entity.gpu + 10 * entity.instance;
}

bool dcgm_is_instance(struct world *world, struct entity entity)
{
    const struct gpu *gpu = &world->gpus[entity.gpu];
    return gpu->mig && entity.instance >= 1 && entity.instance < INSTANCES_MAX &&
           gpu->instances[entity.instance].is_made;
}

void dcgm_sample_take(struct gpu_sample *sample, struct world *world, struct entity entity)
{
    const struct seat whole = {entity.gpu, 0};
    struct activity sum = entity.instance ? world_instance_sum(world, entity.gpu, entity.instance)
                                          : *world_sum(world, whole);
    double now_s = world_now_s(world), span_s = now_s - sample->at_s;

    sample->mean = (struct activity){0};
    activity_add(&sample->mean, &sum, 1 / span_s);
    activity_add(&sample->mean, &sample->sum, -1 / span_s);
    sample->sum = sum;
    sample->at_s = now_s;
    sample->rate = world_unit(world, whole)->rate;
    sample->trouble = world->gpus[entity.gpu].trouble;
}

bool dcgm_is_known(const struct field *field, const struct gpu_sample *sample, struct entity entity)
{
    return !(sample->trouble & (field->trouble | TROUBLE_LOST)) &&
           (entity.instance == 0 || field->is_of_instances);
}
