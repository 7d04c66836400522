/* SPDX-License-Identifier: Apache-2.0 */
/* A faster parser of JSON for texts as the store writes them. */
#ifndef COLLOC_STORE_PLAIN_JSON_H
#define COLLOC_STORE_PLAIN_JSON_H

#include <jansson.h>
#include <stddef.h>

/*
 * Parses a text of plain JSON: compact, an object or an array at its top, strings of printable
 * ASCII without escapes, numbers that are integers of up to 18 digits.
 *
 * text: any bytes
 *
 * Contract: what it returns equals what json_loadb returns for the text.
 *
 * Returns a new reference; NULL: the text is not plain, or memory is out: json_loadb has to say.
 */
json_t *plain_json_load(const char *text, size_t size);

#endif
