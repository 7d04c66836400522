/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What of a running Slurm cluster fits colloc, and what to do about the rest: `colloc slurm check`.
 * The checks read texts that the caller has got from scontrol and from files.
 */
#ifndef COLLOC_SLURMCONF_SLURM_CHECK_H
#define COLLOC_SLURMCONF_SLURM_CHECK_H

#include <stdint.h>

#include "doctor/doctor.h"

/* What one of colloc's programs has here for the link between colloc-slurm and the agents. */
struct link_side {
    bool is_there;       /* its file of settings is on this machine */
    char path[512];      /* of the file */
    bool is_tls;         /* node-auth; else munge */
    char key_digest[9];  /* of the key, to compare it by; "": it cannot be read */
    char key_fault[512]; /* why not */
};

/* Which agents report, as colloc-slurm says; a node counts when it has GPUs and is not down. */
struct agents_seen {
    bool is_known;  /* colloc-slurm answers on this machine */
    bool is_wanted; /* its setting `listen` is set */
    int nodes, silent;
    char first_silent[64];
};

struct slurm_facts_read {
    const char *ping;       /* of `scontrol ping`; each of the four may be "" */
    const char *config;     /* of `scontrol show config` */
    const char *nodes;      /* of `scontrol --oneliner show node` */
    const char *partitions; /* of `scontrol --oneliner show partition` */
    const char *gres;       /* gres.conf; NULL: it is not on this machine */
    bool munge_works;       /* slurmctld took a credential, or `munge -n` made one */
    const char *intake, *run;
    const char *guard,
        *guard_wanted; /* job_submit.lua, NULL: missing; the part that setup writes */
    int64_t now_s;     /* this machine's clock */
    struct link_side controller, agent; /* colloc-slurm, and the agent of this machine */
    struct agents_seen agents;
    const char *wake_file, *wake_wanted; /* that colloc-slurm watches, and that Slurm writes */
};

enum { SLURM_CHECKS_MAX = 14 };

/*
 * Makes the checks. Without slurmctld's answers only the first two are made.
 *
 * ret_checks: SLURM_CHECKS_MAX entries
 *
 * Returns how many there are.
 */
size_t slurm_check_run(const struct slurm_facts_read *facts, struct doctor_check *ret_checks);

#endif
