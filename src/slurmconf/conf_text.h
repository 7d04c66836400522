/* SPDX-License-Identifier: Apache-2.0 */
/* The text of slurm.conf and its relatives: logical lines, and the Key=Value pairs in them. */
#ifndef COLLOC_SLURMCONF_CONF_TEXT_H
#define COLLOC_SLURMCONF_CONF_TEXT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/text.h"

/* A logical line: one or, with continuations, several lines of the file. */
struct conf_line {
    struct span bytes; /* in the file, with its line ends */
    char *text;        /* without comments and continuations; "" when nothing is left */
};

struct conf_text {
    struct conf_line *lines;
    size_t count, capacity;
};

/*
 * Splits the text of a file into logical lines as Slurm does: "#" begins a comment unless "\"
 * precedes it, and a "\" at the end of what is left joins the next line.
 *
 * text:     any bytes, borrowed until conf_text_fini
 * ret_conf: for conf_text_fini, also on failure
 *
 * Returns 0 or -ENOMEM.
 */
int conf_text_parse(struct span text, struct conf_text *ret_conf);

/* Releases the lines; also after a fault of conf_text_parse. */
void conf_text_fini(struct conf_text *conf);

/*
 * Takes the next Key=Value from the front of `rest`; blanks around "=" and quotes around the value
 * are left out, words without "=" are skipped.
 *
 * Returns false at the end.
 */
bool conf_next_pair(struct span *rest, struct span *ret_key, struct span *ret_value);

/*
 * Finds the value of a key in a logical line. Slurm's keys have no case.
 *
 * Returns false when the line has no such key; `ret_value` then keeps its value.
 */
bool conf_find(const char *line, const char *key, struct span *ret_value);

/* Is this the first key of the line, such as NodeName? If not, `ret_value` keeps its value. */
bool conf_begins_with(const char *line, const char *key, struct span *ret_value);

/* The file that an "Include FILE" line names, or false: then `ret_file` keeps its value. */
bool conf_included(const char *line, struct span *ret_file);

#endif
