/* SPDX-License-Identifier: Apache-2.0 */
/* The key that colloc-slurm and the agents of all nodes share where there is no munge. */
#ifndef COLLOC_DAEMON_NODE_KEY_H
#define COLLOC_DAEMON_NODE_KEY_H

#include "base/fault.h"
#include "base/sha256.h"

/*
 * Reads the file of the setting node-key-file: one line that only its owner can read, of 32 to 500
 * printable characters. The key is the digest of the line.
 *
 * path: "": none
 *
 * Returns 1 with the key; 0: there is none; or -errno with a fault.
 */
int node_key_read(const char *path, struct fault *fault, uint8_t ret_key[static SHA256_SIZE]);

#endif
