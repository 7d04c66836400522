/* SPDX-License-Identifier: Apache-2.0 */
/* Where the parts of colloc that are no programs lie: trainings, reports. */
#ifndef COLLOC_CLI_SUPPORT_H
#define COLLOC_CLI_SUPPORT_H

#include <stddef.h>

/*
 * The path of `name` ("workloads", "python"): beside this program, where it was installed, or in
 * the source tree that it was built from. 0 or -ENOENT.
 */
int support_find(const char *name, char *path, size_t size);

#endif
