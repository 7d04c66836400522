/* SPDX-License-Identifier: Apache-2.0 */
/* Log lines made fit to be shown: in a terminal, in JSON, in a table. */
#ifndef COLLOC_EXEC_LOG_LINE_H
#define COLLOC_EXEC_LOG_LINE_H

#include <stddef.h>

#include "base/text.h"
#include "exec/failure.h"

/*
 * Copies a line without escape sequences and NULs, tabs as blanks. Other bytes stay as they are; at
 * most size - 1 fit. Returns the length.
 */
size_t log_line_strip(struct span line, char *buffer, size_t size);

/* The same, and made valid UTF-8 without any control character, cut behind a word,
 * with " ..." behind it, or between characters where there is none. */
void log_line_clean(struct span line, char evidence[EVIDENCE_MAX]);

#endif
