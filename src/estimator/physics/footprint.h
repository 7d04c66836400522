/* SPDX-License-Identifier: Apache-2.0 */
/* What a replay through the allocator finds. */
#ifndef COLLOC_PHYSICS_FOOTPRINT_H
#define COLLOC_PHYSICS_FOOTPRINT_H

/* Bytes. The parts do not add up to the peak, since they do not all live at the same time. */
struct footprint {
    double reserved; /* peak of the memory taken from a device with enough free memory */
    double active;   /* peak of the memory in use at one time, workspaces included */
    double live;     /* the same without workspaces: the training cannot run with less */
    double weights, gradients, states, saved, largest_workspace, largest_map, loss;
    double next_region; /* what the pool of a compiled step grows by if it must once more; 0: not
                         * known */
};

#endif
