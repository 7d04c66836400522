/* SPDX-License-Identifier: Apache-2.0 */
/* The interference model that predictions use: the settings' one, corrected by measured speeds. */
#ifndef COLLOC_CORE_STATE_LEARNED_MODEL_H
#define COLLOC_CORE_STATE_LEARNED_MODEL_H

#include "core/state/state.h"

/* Returns the constants of the settings: calibrated ones, or the built-in ones. */
const struct interference_constants *core_base_constants(const struct core *core);

/* Sets the constants that predictions use, from those of the settings and from what was learned. To
 * be called when either changes, or the first or second user comes. */
void core_correct_model(struct core *core);

#endif
