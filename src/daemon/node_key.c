/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the key that a cluster without munge shares. A line of text is easier to copy to all nodes
 * than bytes are; a short one could be guessed. */
#include "daemon/node_key.h"

#include <errno.h>
#include <string.h>

#include "daemon/secret_file.h"

enum { LINE_MIN = 32, LINE_MAX_SIZE = 501 };

int node_key_read(const char *path, struct fault *fault, uint8_t ret_key[static SHA256_SIZE])
{
    char line[LINE_MAX_SIZE];
    struct sha256 hash;
    if (!*path)
        return 0;
    int r = secret_file_read("node-key-file", path, fault, line, sizeof line);
    if (r >= 0 && r < LINE_MIN)
        r = fault_set(fault, EINVAL,
            "node-key-file: %s: its first line must have at least %d characters: make one with "
            "`openssl rand -hex 32`",
            path, (int)LINE_MIN);
    if (r < 0)
        return r;
    sha256_begin(&hash);
    sha256_add(&hash, line, (size_t)r);
    sha256_end(&hash, ret_key);
    explicit_bzero(line, sizeof line);
    return 1;
}
