/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the types in gres.conf name the right GPUs. */
#ifndef COLLOC_SLURMCONF_GRES_CHECK_H
#define COLLOC_SLURMCONF_GRES_CHECK_H

#include <stdint.h>

#include "base/fault.h"
#include "base/text.h"

/*
 * Has each type iK in the text of gres.conf the number of its device file? An earlier version of
 * colloc counted the lines.
 *
 * node:        only the lines of this node; NULL: all
 * ret_numbers: a bit for each number K of the types found; may be NULL
 *
 * Returns 0; -EINVAL with the first that has not in the fault; or -ENOMEM.
 */
int gres_check_numbers(
    struct span text, const char *node, struct fault *fault, uint64_t *ret_numbers);

#endif
