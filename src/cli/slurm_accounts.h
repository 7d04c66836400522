/* SPDX-License-Identifier: Apache-2.0 */
/* `sacctmgr` as programs call it before they submit. */
#ifndef COLLOC_CLI_SLURM_ACCOUNTS_H
#define COLLOC_CLI_SLURM_ACCOUNTS_H

/* Runs sacctmgr with these words. Returns its exit code. */
int slurm_accounts_run(const char *const *words, int count);

#endif
