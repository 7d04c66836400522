/* SPDX-License-Identifier: Apache-2.0 */
/* Makes log lines safe to show in a terminal, in JSON and in a table. */
#ifndef COLLOC_EXEC_LOG_LINE_H
#define COLLOC_EXEC_LOG_LINE_H

#include <stddef.h>

#include "base/text.h"
#include "exec/failure.h"

/*
 * Copies a line without escape sequences and NULs, and with blanks for tabs. Other bytes are copied
 * unchanged.
 *
 * size: of `buffer`; a longer line is cut.
 *
 * Returns the length of the copy.
 */
size_t log_line_strip(struct span line, char *buffer, size_t size);

/* Copies a line in the same way, as valid UTF-8 without control characters. A longer line is cut
 * after a word, with " ..."; if it has no blank, between characters. */
void log_line_clean(struct span line, char evidence[EVIDENCE_MAX]);

#endif
