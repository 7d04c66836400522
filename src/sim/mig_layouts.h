/* SPDX-License-Identifier: Apache-2.0 */
/* All ways to divide a GPU into MIG instances. Pure. */
#ifndef COLLOC_SIM_MIG_LAYOUTS_H
#define COLLOC_SIM_MIG_LAYOUTS_H

#include "sharing/gpu_kind.h"

enum { MIG_LAYOUT_SIZE = 128, MIG_LAYOUTS_MAX = 256 };

/* Profiles with a plus between, as --gpus has them: "3g.20gb+2g.10gb+1g.5gb"; "": a whole GPU. */
struct mig_layout {
    char text[MIG_LAYOUT_SIZE];
};

/*
 * Lists the layouts of a kind that leave no place where a further instance could begin: each set of
 * profiles once.
 *
 * Returns how many there are; 0 for a kind without MIG.
 */
int mig_layouts_list(const struct gpu_kind *kind, struct mig_layout ret_layouts[MIG_LAYOUTS_MAX]);

#endif
