/* SPDX-License-Identifier: Apache-2.0 */
/* Forms of summaries that colloc does not read, so that it can name them. */
#ifndef COLLOC_MODEL_FOREIGN_FORM_H
#define COLLOC_MODEL_FOREIGN_FORM_H

#include "base/text.h"

/* Returns what printed this cleaned text, with what it lacks, as the end of "this is ...", or NULL
 * for a text that no known printer made. */
const char *foreign_form_name(struct span text);

#endif
