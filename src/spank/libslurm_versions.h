/* SPDX-License-Identifier: Apache-2.0 */
/* What differs between the versions of libslurm that colloc is built with: 22.05, 23.11, 24.11,
 * 26.05. */
#ifndef COLLOC_SPANK_LIBSLURM_VERSIONS_H
#define COLLOC_SPANK_LIBSLURM_VERSIONS_H

#include <errno.h>
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <stdbool.h>

#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(23, 11, 0)
typedef hostlist_t *libslurm_hostlist;
#else
typedef hostlist_t libslurm_hostlist;
#endif

/* The error of the last call of libslurm. */
static inline int libslurm_error(void)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 5, 0)
    return errno;
#else
    return slurm_get_errno();
#endif
}

/* Makes it that error. */
static inline void libslurm_set_error(int error)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 5, 0)
    errno = error;
#else
    slurm_seterrno(error);
#endif
}

/* How many CPUs a running job has on the node of this number among its own; -1: not known, and
 * later versions do not say it. */
static inline int libslurm_node_cpus(const job_info_t *job, uint32_t node)
{
#if SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(24, 5, 0)
    return -1;
#else
    return job->job_resrcs ? slurm_job_cpus_allocated_on_node_id(job->job_resrcs, (int)node) : -1;
#endif
}

/* Does a node's memory count when Slurm places jobs? */
static inline bool libslurm_counts_memory(const slurm_conf_t *conf)
{
#ifdef CR_MEMORY
    return conf->select_type_param & CR_MEMORY;
#else
    return conf->select_type_param & SELECT_MEMORY;
#endif
}

static inline void libslurm_free_conf(slurm_conf_t *conf)
{
#ifdef CR_MEMORY
    slurm_free_ctl_conf(conf);
#else
    slurm_free_conf(conf);
#endif
}

/* How functions name a job: newer ones, of a header with slurm_load_job_sluid, by a step's id. */
#ifdef slurm_load_job_sluid
static inline slurm_step_id_t libslurm_job_id(uint32_t job)
{
    slurm_step_id_t id = SLURM_STEP_ID_INITIALIZER;
    id.job_id = job;
    return id;
}
#else
static inline uint32_t libslurm_job_id(uint32_t job)
{
    return job;
}
#endif

#endif
