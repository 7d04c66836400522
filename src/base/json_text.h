/* SPDX-License-Identifier: Apache-2.0 */
/* What can be said of a JSON text before it is parsed. */
#ifndef COLLOC_BASE_JSON_TEXT_H
#define COLLOC_BASE_JSON_TEXT_H

#include <stddef.h>

/* Memory that libjansson takes for each value at most: an object, its key and slot. Chosen: from
 * its structures, rounded up. */
#define JSON_BYTES_PER_VALUE 512

/*
 * Returns how many values the text has, or a few more. Each takes memory when it is parsed, and
 * libjansson does not survive a failed allocation. Any bytes are fine.
 */
size_t json_text_count_values(const char *text, size_t size);

#endif
