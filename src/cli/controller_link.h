/* SPDX-License-Identifier: Apache-2.0 */
/* The controller of a Slurm cluster on another machine: where it is, and requests to it that munge
 * signs. */
#ifndef COLLOC_CLI_CONTROLLER_LINK_H
#define COLLOC_CLI_CONTROLLER_LINK_H

#include "api/client.h"
#include "slurmconf/login_conf.h"

/* The folder of slurm.conf: that of SLURM_CONF, or /etc/slurm. Returns `buffer`. */
const char *slurm_conf_folder(char *buffer, size_t size);

/*
 * Reads colloc.conf in the folder of slurm.conf, where there is one.
 *
 * given: --controller; NULL or "": COLLOC_CONTROLLER, otherwise what the file says
 *
 * Returns 0; -ENOENT: nothing names a controller; or another -errno with a fault.
 */
int controller_find(const char *given, struct fault *fault, struct login_conf *ret_conf);

/* As client_open_remote. -ENOSYS: this program was built without libmunge. */
int controller_open(const struct login_conf *conf, struct fault *fault, struct client **ret_client);

#endif
