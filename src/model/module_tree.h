/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about the tree of a printed network, which need no shapes. */
#ifndef COLLOC_MODEL_MODULE_TREE_H
#define COLLOC_MODEL_MODULE_TREE_H

#include "model/model.h"

/* Returns the index behind the last layer in a module; for a layer, the next index. */
size_t module_end(const struct model *model, size_t module);

/* Tests whether row `i` is a container without layers. */
bool module_is_empty(const struct model *model, size_t i);

/* Returns the channels that the first convolution of a module, or in it, reads; 0: it has none. */
int64_t module_channels_read(const struct model *model, size_t module);

/* Tests whether a module makes one factor for each channel of its input (squeeze-and-excitation),
 * from a mean over all places that a function takes. */
bool module_is_gate(const struct model *model, size_t module);

/*
 * Tests whether module `i` is a layer with an adapter: its first row is not part of an adapter, and
 * a later one is, whatever they are called.
 *
 * ret_second: the first row that reads what the first row reads; as it was where there is none
 */
bool module_is_adapted(const struct model *model, size_t module, size_t *ret_second);

#endif
