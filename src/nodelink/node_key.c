/* SPDX-License-Identifier: Apache-2.0 */
/* The key that a cluster without munge shares. A line of text is easier to copy to all nodes than
 * bytes are; a short one could be guessed. */
#include "nodelink/node_key.h"

#include <errno.h>
#include <string.h>

#include "base/secret_file.h"

enum { LINE_MIN = 32, LINE_MAX_SIZE = 501 };

static int read_line(const char *path, struct fault *fault, char line[static LINE_MAX_SIZE])
{
    int r = secret_file_read(
        "node-key-file", path, SECRET_OF_ROOT, fault, line, (size_t)LINE_MAX_SIZE);
    if (r == -ENOENT)
        return fault_set(fault, ENOENT,
            "node-key-file: there is no %s: make one with `(umask 277; openssl rand -hex 32 >%s)`, "
            "and copy it to the machines of colloc-slurm and of all agents",
            path, path);
    if (r >= 0 && r < LINE_MIN)
        return fault_set(fault, EINVAL,
            "node-key-file: %s: its first line must have at least %d characters: make one with "
            "`openssl rand -hex 32`",
            path, (int)LINE_MIN);
    return r;
}

int node_key_read(
    enum node_auth auth, const char *path, struct fault *fault, uint8_t ret_key[static SHA256_SIZE])
{
    char line[LINE_MAX_SIZE];
    struct sha256 hash;
    if (auth == NODE_AUTH_MUNGE && *path)
        return fault_set(fault, EINVAL,
            "node-key-file: %s has no use: node-auth is munge; set node-auth to tls, or remove "
            "node-key-file",
            path);
    if (auth == NODE_AUTH_MUNGE)
        return 0;
    int r = read_line(*path ? path : NODE_KEY_USUAL, fault, line);
    if (r >= 0) {
        sha256_begin(&hash);
        sha256_add(&hash, line, (size_t)r);
        sha256_end(&hash, ret_key);
    }
    explicit_bzero(line, sizeof line); /* also one that is too short */
    explicit_bzero(&hash, sizeof hash);
    return r < 0 ? r : 1;
}
