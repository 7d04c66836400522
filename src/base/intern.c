/* SPDX-License-Identifier: Apache-2.0 */
/* Gives equal texts the same number, by an array of the numbers in the order of their texts,
 * searched by bisection: tables are read once, and have few texts. */
#include "base/intern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

const char *intern_get(const struct intern *intern, int number)
{
    return number > 0 ? intern->texts[number - 1] : "";
}

/* The position in by_text of the first text that is not before this one. */
static int lower_bound(const struct intern *intern, const char *text)
{
    int low = 0, high = intern->n;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (strcmp(intern_get(intern, intern->by_text[middle]), text) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int intern_text(struct intern *intern, const char *text)
{
    int at = lower_bound(intern, text);
    if (!*text)
        return 0;
    if (at < intern->n && strcmp(intern_get(intern, intern->by_text[at]), text) == 0)
        return intern->by_text[at];
    char *copy = strdup(text);
    if (!copy || ARRAY_RESERVE(intern->texts, intern->texts_capacity, intern->n + 1) < 0 ||
        ARRAY_RESERVE(intern->by_text, intern->by_text_capacity, intern->n + 1) < 0) {
        free(copy);
        return -ENOMEM;
    }
    memmove(&intern->by_text[at + 1], &intern->by_text[at],
        (size_t)(intern->n - at) * sizeof *intern->by_text);
    intern->texts[intern->n++] = copy;
    return intern->by_text[at] = intern->n;
}

void intern_fini(struct intern *intern)
{
    for (int i = 0; i < intern->n; i++)
        free(intern->texts[i]);
    free(intern->texts);
    free(intern->by_text);
    *intern = (struct intern){0};
}
