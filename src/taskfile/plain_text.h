/* SPDX-License-Identifier: Apache-2.0 */
/* Is it text? */
#ifndef COLLOC_TASKFILE_PLAIN_TEXT_H
#define COLLOC_TASKFILE_PLAIN_TEXT_H

#include <stdbool.h>

#include "base/fault.h"
#include "base/text.h"

/* Valid UTF-8 without NUL: what can travel in a JSON string. */
bool is_plain_text(struct span text);

/* 0, or -EILSEQ with the file's name and the line. */
int plain_text_check(const char *name, struct span text, struct fault *fault);

#endif
