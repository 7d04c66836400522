/* SPDX-License-Identifier: Apache-2.0 */
/* What DCGM knows of emulated GPUs and MIG instances, for the emulated dcgmi and libdcgm. */
#ifndef COLLOC_EMULATOR_DCGM_FIELDS_H
#define COLLOC_EMULATOR_DCGM_FIELDS_H

#include "emulator/world.h"

/* What one GPU or instance does now, and its means since the sample before. */
struct gpu_sample {
    struct activity sum, mean, rate;
    double at_s;
    unsigned trouble;
};

/* A field of DCGM (dcgm_fields.h) and how dmon prints it; without digits it is an integer. Fields
 * below 1000 are readings of this moment or counters; the profiling fields, from 1001 on, are means
 * since the sample before. */
struct field {
    unsigned id;
    const char *name;
    int digits, width;
    double (*value)(const struct gpu_sample *);
    unsigned trouble;     /* the one that makes it N/A */
    bool is_of_instances; /* else N/A for them */
};

/* Returns NULL when the emulator does not have it. */
const struct field *dcgm_field_find(unsigned id);

/* A GPU, or one of its GPU instances: 0: the whole GPU. */
struct entity {
    int gpu, instance;
};

/* DCGM numbers instances apart from GPUs, and compute instances apart from both. */
int dcgm_instance_number(struct entity entity);

bool dcgm_is_instance(struct world *world, struct entity entity);

/* The means of a first sample are those since the machine was made. Real ones are over no time: a
 * client has to ignore them in either case. */
void dcgm_sample_take(struct gpu_sample *sample, struct world *world, struct entity entity);

/* A sensor that the GPU lacks is "N/A" in its column, and so is every one of a lost GPU. */
bool dcgm_is_known(
    const struct field *field, const struct gpu_sample *sample, struct entity entity);

#endif
