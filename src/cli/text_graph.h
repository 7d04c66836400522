/* SPDX-License-Identifier: Apache-2.0 */
/* Fractions as pictures of text: a bar, and a line of recent values. Values are 0..1; not known is
 * NAN. */
#ifndef COLLOC_CLI_TEXT_GRAPH_H
#define COLLOC_CLI_TEXT_GRAPH_H

#include <stdbool.h>
#include <stddef.h>

enum { TEXT_GRAPH_WIDTH_MAX = 200, TEXT_GRAPH_SIZE = 3 * TEXT_GRAPH_WIDTH_MAX + 3 };

/* "[███▌    ]" of `width` columns (from 3 to TEXT_GRAPH_WIDTH_MAX), in eighths of a column where there
 * are blocks. */
const char *text_graph_bar(double fraction, int width, bool blocks, char text[TEXT_GRAPH_SIZE]);

/* The last values kept; the newest is last. Start with {0}. */
struct history {
    float value[TEXT_GRAPH_WIDTH_MAX];
    size_t next, count;
};

void history_add(struct history *history, double fraction);

/* "▁▁▃▆█" of `width` columns, the newest at the right; not known is "·", before the first it is
 * blank. */
const char *text_graph_history(
    const struct history *history, int width, bool blocks, char text[TEXT_GRAPH_SIZE]);

#endif
