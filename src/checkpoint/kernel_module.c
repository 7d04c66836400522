/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides whether processes may be suspended under this driver. The open kernel module of driver
 * 595.71 hung the whole host, 4 times of 4, when a process was ended that had been restored and was
 * running; a process that was suspended again before could be ended (NVIDIA/cuda-checkpoint, issue
 * 53, June 2026; open). On H200s with the open module of 580.159 restored processes were ended over
 * ten times without harm (docs/measured/checkpoint.md). Later drivers have not been seen, so they
 * count as 595. The file's first line is
 *
 *     NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  595.71.05  Release Build  (...)
 */
#include "checkpoint/kernel_module.h"

#include <stdlib.h>
#include <string.h>

#define HANGS_SINCE 595 /* the driver's branch */

/* The branch: the number before the first dot of a word of digits and dots; 0: there is none. */
static int find_branch(const char *line)
{
    for (const char *at = line; (at = strpbrk(at, "0123456789")); at += strspn(at, "0123456789")) {
        size_t digits = strspn(at, "0123456789");
        bool is_word = at > line && at[-1] == ' ' && at[digits] == '.';
        if (is_word && digits <= 4)
            return atoi(at);
    }
    return 0;
}

bool kernel_module_may_hang(struct span text)
{
    char line[256];
    struct span first;
    if (!span_next_line(&text, &first) || !span_copy(first, line, sizeof line))
        return false;
    return strstr(line, "Open Kernel Module") && find_branch(line) >= HANGS_SINCE;
}
