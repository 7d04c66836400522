/* SPDX-License-Identifier: Apache-2.0 */
/* Whose a process is, remembered for a moment: who asks ten times a second must not read /proc each
 * time. */
#ifndef COLLOC_EXEC_KIN_H
#define COLLOC_EXEC_KIN_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { KIN_ENTRIES = 256 }; /* a power of two */

/* Start with {0}. */
struct kin {
    struct kin_entry {
        pid_t pid, root; /* root 0: of none of the roots */
        uint64_t roots;  /* which those were */
        int64_t asked_us;
    } entries[KIN_ENTRIES];
};

/* As tree_find_root; an answer to the same question is good for a second (monotonic clock). */
int kin_find_root(struct kin *kin, pid_t pid, const pid_t *roots, size_t count, int64_t now_us);

#endif
