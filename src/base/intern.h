/* SPDX-License-Identifier: Apache-2.0 */
/* Texts as small numbers: equal texts get the same number, in the order of their first appearance.
 * The empty text is 0. */
#ifndef COLLOC_BASE_INTERN_H
#define COLLOC_BASE_INTERN_H

#include <stddef.h>

enum { INTERN_EMPTY = 0 }; /* the number of the empty text */

struct intern {
    char **texts; /* by number - 1 */
    int *by_text; /* the numbers, by rising text */
    int n;        /* texts, the empty one not counted */
    size_t texts_capacity, by_text_capacity;
};

/* Returns the number of the text, which is copied when it is new; -ENOMEM. */
int intern_text(struct intern *intern, const char *text);

/* Returns the text of a number, valid until intern_fini. */
const char *intern_get(const struct intern *intern, int number);
void intern_fini(struct intern *intern);

#endif
