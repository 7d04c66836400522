/* SPDX-License-Identifier: Apache-2.0 */
/* Changes to a configuration file that can be taken out again byte for byte. */
#ifndef COLLOC_SLURMCONF_MARKED_TEXT_H
#define COLLOC_SLURMCONF_MARKED_TEXT_H

#include <stddef.h>

#include "base/text.h"

/* New lines in the place of old ones. Edits come in the order of the file and do not overlap. */
struct text_edit {
    struct span old; /* whole lines of the text; size 0 at its end: lines are added there */
    char *lines;     /* each ends with "\n" */
};

struct text_edits {
    struct text_edit *edits;
    size_t count, capacity;
};

/* Adds an edit that owns `lines` (also on failure). Returns 0 or -ENOMEM; NULL lines are that. */
int text_edits_add(struct text_edits *edits, struct span old, char *lines);
void text_edits_fini(struct text_edits *edits);

/*
 * Makes the edits, each between markers. The old lines stay there as comments.
 *
 * comment: what begins a comment of the file: "#" or "--"
 *
 * Returns the new text on the heap, or NULL when memory is out.
 */
char *marked_text_apply(struct span text, const struct text_edits *edits, const char *comment);

/*
 * Takes all marked blocks out: what marked_text_apply was given, byte for byte.
 *
 * ret_blocks: how many there were; a block whose end is missing is left as it is; may be NULL
 *
 * Returns the text on the heap, or NULL when memory is out.
 */
char *marked_text_remove(struct span text, const char *comment, size_t *ret_blocks);

#endif
