/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a running Slurm cluster fits colloc, and what to do about the rest: `colloc slurm check`.
 * The checks read texts that the caller has got from scontrol and from files.
 */
#ifndef COLLOC_SLURMCONF_SLURM_CHECK_H
#define COLLOC_SLURMCONF_SLURM_CHECK_H

#include <stdint.h>

#include "doctor/doctor.h"

struct slurm_facts_read {
    const char *ping;       /* of `scontrol ping`; each of the four may be "" */
    const char *config;     /* of `scontrol show config` */
    const char *nodes;      /* of `scontrol --oneliner show node` */
    const char *partitions; /* of `scontrol --oneliner show partition` */
    bool munge_works;       /* slurmctld took a credential, or `munge -n` made one */
    const char *intake, *run;
    const char *guard,
        *guard_wanted; /* job_submit.lua, NULL: missing; the part that setup writes */
    int64_t now_s;     /* this machine's clock */
};

enum { SLURM_CHECKS_MAX = 12 };

/*
 * Makes the checks. Without slurmctld's answers only the first two are made.
 *
 * ret_checks: SLURM_CHECKS_MAX entries
 *
 * Returns how many there are.
 */
size_t slurm_check_run(const struct slurm_facts_read *facts, struct doctor_check *ret_checks);

#endif
