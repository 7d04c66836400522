/* SPDX-License-Identifier: Apache-2.0 */
/* Tests whether bytes are text. */
#ifndef COLLOC_TASKFILE_PLAIN_TEXT_H
#define COLLOC_TASKFILE_PLAIN_TEXT_H

#include <stdbool.h>

#include "base/fault.h"
#include "base/text.h"

/* Is it valid UTF-8 without NUL, as JSON strings need? */
bool is_plain_text(struct span text);

/* Returns 0, or -EILSEQ with the file's name and the line in the fault. */
int plain_text_check(const char *name, struct span text, struct fault *fault);

#endif
