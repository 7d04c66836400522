/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of `colloc slurm` for the folder of colloc's settings on this machine: slurm.yaml of
 * colloc-slurm, collocd.yaml of an agent, and their shared key, which proves them in place of munge
 * (docs/slurm-node.md). This folder is not Slurm's, which is copied to all nodes.
 */
#ifndef COLLOC_CLI_SLURM_LINK_H
#define COLLOC_CLI_SLURM_LINK_H

#include "cli/slurm_folder.h"
#include "slurmconf/slurm_check.h"

enum link_choice { LINK_AS_SLURM, LINK_MUNGE, LINK_TLS };

struct slurm_link {
    struct slurm_folder files;
    bool is_tls;              /* as planned */
    char key_path[4096 + 16]; /* of this machine */
    bool has_key;             /* there is such a file */
};

/* Reads the folder, which need not exist. Returns 0, or -errno with a fault; slurm_link_close must
 * follow in both cases. */
int slurm_link_open(const char *path, struct fault *fault, struct slurm_link *ret_link);
void slurm_link_close(struct slurm_link *link);

/*
 * Plans setup's changes of the files. LINK_AS_SLURM is decided by `folder`: TLS if Slurm has
 * another AuthType than munge, or if slurm.yaml already asks for it.
 *
 * Returns 0; or -errno with a fault: the existing key cannot be used.
 */
int slurm_link_plan(struct slurm_link *link, const struct slurm_folder *folder,
    enum link_choice choice, struct fault *fault);

/* Makes the key if TLS was planned and there is none, readable for `user` only. Returns 1: it was
 * made; 0: nothing to do; or -errno with a fault. */
int slurm_link_make_key(const struct slurm_link *link, const char *user, struct fault *fault);

/* Removes a key that slurm_link_make_key made. Returns 1, 0: there is none, or -errno with a
 * fault. */
int slurm_link_remove_key(const struct slurm_link *link, struct fault *fault);

/* Did slurm_link_make_key make the key? */
bool slurm_link_made_key(const struct slurm_link *link);

/* Prints the commands for the nodes. */
void slurm_link_print_nodes(const struct slurm_link *link);

/* Finds this machine's settings, for the checks. */
void slurm_link_find_sides(
    struct slurm_link *link, struct link_side *ret_controller, struct link_side *ret_agent);

/* Finds the wake file that colloc-slurm watches by its settings. */
void slurm_link_find_wake_file(struct slurm_link *link, char *ret_path, size_t size);

/* Asks colloc-slurm on this machine which agents report. */
struct agents_seen slurm_link_ask_agents(struct slurm_link *link);

#endif
