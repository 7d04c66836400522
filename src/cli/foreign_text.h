/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that other people's programs have written. */
#ifndef COLLOC_CLI_FOREIGN_TEXT_H
#define COLLOC_CLI_FOREIGN_TEXT_H

#include <stddef.h>

/* Copies what fits, as valid UTF-8 on one line: what controls a terminal becomes '?'. */
void foreign_text_copy(const char *text, char *ret_text, size_t size);

#endif
