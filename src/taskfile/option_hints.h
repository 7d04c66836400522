/* SPDX-License-Identifier: Apache-2.0 */
/* What people type who know another tool, and the option here. */
#ifndef COLLOC_TASKFILE_OPTION_HINTS_H
#define COLLOC_TASKFILE_OPTION_HINTS_H

#include "taskfile/option.h"

/*
 * Finds what an option of another tool is here.
 *
 * name: without dashes
 * sets: of the command: an option that it has not is no hint
 *
 * Returns a text to follow "no such option: ", or NULL.
 */
const char *option_hint(const struct option_set *sets, size_t n_sets, const char *name);

#endif
