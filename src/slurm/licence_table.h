/* SPDX-License-Identifier: Apache-2.0 */
/* Which jobs Slurm has licences for (`sbatch --licenses=matlab:2`). */
#ifndef COLLOC_SLURM_LICENCE_TABLE_H
#define COLLOC_SLURM_LICENCE_TABLE_H

#include "base/text.h"
#include "slurm/slurm_job.h"

struct licence_table {
    const struct slurm_licence *list; /* borrowed: Slurm's, of the last update */
    size_t n;
    int64_t *left; /* of each: that no job before has taken; may be negative */
    size_t capacity;
};

enum licence_answer {
    LICENCES_TAKEN,
    LICENCES_NOT_NOW,
    LICENCES_NEVER, /* the cluster has fewer than the job requests */
};

/* A licence that a job lacks. */
struct licence_shortage {
    struct span name; /* in the job's request */
    int64_t wanted;
    int64_t total; /* the cluster's */
};

/* Has a waiting or running job requested licences? If none has, Slurm's need not be read. */
bool licences_are_wanted(const struct slurm_job *jobs, size_t n_jobs);

/* Begins anew with what Slurm has free. Returns 0 or -ENOMEM. */
int licence_table_begin(
    struct licence_table *table, const struct slurm_licence *list, size_t n_licences);

/*
 * Takes all licences of a job, or none.
 *
 * request:      in Slurm's form: "matlab:2,ansys", or "matlab|octave" for one of them; NULL: none
 * ret_shortage: of a missing one, points into `request`; Slurm itself decides about licences that
 *               it does not list
 *
 * Returns LICENCES_TAKEN, LICENCES_NOT_NOW or LICENCES_NEVER.
 */
enum licence_answer licence_table_take(
    struct licence_table *table, const char *request, struct licence_shortage *ret_shortage);

/* Takes the licences of a job that is about to start, even if there are too few. */
void licence_table_charge(struct licence_table *table, const char *request);

void licence_table_fini(struct licence_table *table);

#endif
