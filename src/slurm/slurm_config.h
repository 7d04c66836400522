/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of colloc-slurm: defaults, then /etc/colloc/slurm.yaml, then the command line. */
#ifndef COLLOC_SLURM_SLURM_CONFIG_H
#define COLLOC_SLURM_SLURM_CONFIG_H

#include <stdio.h>

#include "base/fault.h"
#include "core/core.h"
#include "estimator/estimator.h"
#include "nodelink/node_key.h"

struct slurm_config {
    char intake_partition[64], run_partition[64];
    char wake_file[512];      /* "none": only polls */
    char state_dir[512];      /* holds the lock */
    char listen[64];          /* "none" or an address with its port */
    char login_listen[64];    /* "none" or the address for requests of other machines */
    char login_name[300];     /* "none" or the host and port by which other machines name it */
    char socket[512];         /* "none" or the path of the API's Unix socket */
    char web[64];             /* "none", "on-demand" or an address */
    enum node_auth node_auth; /* how the agents authenticate */
    char node_key_file[512];  /* "": with TLS the usual one */
    char munge_socket[512];   /* "": libmunge's own */
    char estimator[32];
    enum quantile reserve_quantile;
    enum sharing sharing;
    int shards_per_gpu;
    int64_t gpu_memory_bytes; /* 0: a GiB for each shard */
    int64_t poll_us;
    struct core_settings core;
    int log_level;
};

/*
 * Reads the command line, and before it the file that --config names, or the usual one.
 *
 * Returns 0; SLURM_CONFIG_HELP, _VERSION or _CHECK; or -errno with a fault.
 */
enum { SLURM_CONFIG_HELP = 1, SLURM_CONFIG_VERSION = 2, SLURM_CONFIG_CHECK = 3 };
int slurm_config_read(struct slurm_config *config, int argc, char **argv, struct fault *fault);

/* Prints the settings with their defaults. */
void slurm_config_print(FILE *out);

#endif
