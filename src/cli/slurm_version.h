/* SPDX-License-Identifier: Apache-2.0 */
/* The version of Slurm whose forms are printed under its names. */
#ifndef COLLOC_CLI_SLURM_VERSION_H
#define COLLOC_CLI_SLURM_VERSION_H

#define SLURM_VERSION "22.05.8"

#endif
