/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measured mixes: which trainings share a GPU, by streams or MPS, and how fast each was, what the
 * GPU did, or that one crashed. A long trace visits few distinct mixes, so each can be measured for
 * seconds, and a simulation composes the trace from them. Where a mix was not measured the
 * interference model (sharing/interference.h) answers, and the mix is listed with its time.
 *
 * A mix is a multiset: the order of its trainings does not matter.
 */
#ifndef COLLOC_SIM_MIXES_H
#define COLLOC_SIM_MIXES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/fault.h"
#include "sim/cluster.h"

/* Trainings of a mix, and bytes of their names joined (chosen: MPS has 48 clients a GPU). */
enum { MIX_TRAININGS_MAX = 64, MIX_NAMES_SIZE = 4096 };

struct mix {
    char *trainings; /* their names, sorted, joined by " + " */
    bool mps;
    double *speeds; /* of each, in that order; 1: as alone. NULL: the mix crashed */
    int n;
    double smact;   /* of the GPU, 0 to 1; NAN: not measured */
    double power_w; /* of the GPU; NAN: not measured */
};

struct mixes {
    struct mix *list; /* sorted by name and sharing */
    size_t n, capacity;
    char *gpu, *driver; /* on which all of them were measured; driver: NULL: not said */
};

/* What a simulation took from measured mixes, summed over GPUs in which two tasks or more were. */
struct mix_use {
    double measured_s, modelled_s;
    struct missing_mix {
        char *trainings; /* as in struct mix */
        bool mps;
        bool crashed;   /* it was measured, and one of its trainings crashed */
        double first_s; /* when the trace visits it first */
        double simulated_s;
    } * missing;
    size_t n, capacity;
};

/*
 * Reads a table with the columns gpu, driver, sharing (streams or mps), trainings and speeds (both
 * joined by " + "), smact, power_w and crashed (1 or nothing; then no speeds).
 *
 * Returns 0, or -errno with a fault that names the line; mixes_fini must follow in both cases.
 */
int mixes_read(const char *path, struct fault *fault, struct mixes *ret_mixes);
void mixes_fini(struct mixes *mixes);

/* Were the mixes measured on the kind of all GPUs of the cluster? Returns 0, or -EINVAL with a
 * fault. */
int mixes_check_gpus(const struct mixes *mixes, const struct cluster *cluster, struct fault *fault);

/*
 * Joins sorted names as struct mix has them.
 *
 * Returns false if they are longer than MIX_NAMES_SIZE.
 */
bool mix_join(const char *const *sorted, int n, char *ret_trainings);

/* Returns the mix, or NULL: it was not measured. */
const struct mix *mixes_find(const struct mixes *mixes, const char *trainings, bool mps);

/* Notes a mix that is missing now, or finds it. Returns its index in `missing`, or -ENOMEM. */
int mix_use_note_missing(
    struct mix_use *use, const char *trainings, bool mps, bool crashed, double now_s);
void mix_use_fini(struct mix_use *use);

/* Writes the missing mixes in the form that mixes_read reads, without figures, with the columns
 * simulated_s and first_s, the longest first. Those that crashed are left out: measuring them
 * again would not help. */
void mix_use_print_missing(struct mix_use *use, const char *gpu, FILE *out);

#endif
