/* SPDX-License-Identifier: Apache-2.0 */
/*
 * By what the agents of the nodes and colloc-slurm prove to each other who they are: munge, or TLS
 * by a key that all of them have in a file (the settings node-auth and node-key-file of both
 * programs).
 */
#ifndef COLLOC_NODELINK_NODE_KEY_H
#define COLLOC_NODELINK_NODE_KEY_H

#include "base/fault.h"
#include "base/sha256.h"

#define NODE_KEY_USUAL "/etc/colloc/node.key"

enum node_auth { NODE_AUTH_MUNGE, NODE_AUTH_TLS };

/*
 * Reads what the two settings say: of the file, one line of 32 to 500 printable characters, in a
 * file of root or of the user of this process that no other user can read. The key is the digest of
 * the line.
 *
 * path: "": the usual one, NODE_KEY_USUAL
 *
 * Returns 1 with the key: TLS; 0: munge; or -errno with a fault.
 */
int node_key_read(enum node_auth auth, const char *path, struct fault *fault,
    uint8_t ret_key[static SHA256_SIZE]);

#endif
