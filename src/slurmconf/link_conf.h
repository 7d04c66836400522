/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings by which the nodes' agents and colloc-slurm prove their identity to each other, in
 * the files of the two programs (docs/slurm-node.md). Each has a line, as in all of colloc's files:
 *
 *     node-auth: tls
 *     node-key-file: /etc/colloc/node.key
 */
#ifndef COLLOC_SLURMCONF_LINK_CONF_H
#define COLLOC_SLURMCONF_LINK_CONF_H

#include <stdbool.h>

#include "slurmconf/marked_text.h"

enum { LINK_PATH_SIZE = 512 };

struct link_conf {
    char node_auth[32]; /* "": no line has it, which is munge */
    char key_file[LINK_PATH_SIZE];
    char listen[64]; /* of colloc-slurm; "": no line has it, which is none */
    char socket[LINK_PATH_SIZE], wake_file[LINK_PATH_SIZE];
};

/* Reads the settings from the text of a file; of several lines the last counts. A value that is too
 * long for its member is ignored. */
struct link_conf link_conf_read(struct span text);

bool link_conf_is_tls(const struct link_conf *conf);

/*
 * Plans the edits after which the file says `is_tls`; none if it does already. A line that says
 * otherwise is replaced in its place. A file that then says munge loses its line of the key file,
 * since the programs refuse a key file that is not used.
 *
 * key_file: for a file that has none; NULL: the programs' default
 *
 * Returns 0 or -ENOMEM; text_edits_fini must follow in both cases.
 */
int link_conf_plan(
    struct span text, bool is_tls, const char *key_file, struct text_edits *ret_edits);

#endif
