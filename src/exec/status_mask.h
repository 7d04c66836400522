/* SPDX-License-Identifier: Apache-2.0 */
/* The masks of signals in /proc/PID/status: 64 bits in hexadecimal, bit N - 1 for signal N. */
#ifndef COLLOC_EXEC_STATUS_MASK_H
#define COLLOC_EXEC_STATUS_MASK_H

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Is the signal in the mask of this line, such as "\nSigCgt:" (handled) or "\nSigIgn:"? */
static inline bool status_mask_has(const char *status, const char *key, int signal)
{
    const char *line = strstr(status, key);
    return line && strtoull(line + strlen(key), NULL, 16) >> (signal - 1) & 1;
}

#endif
