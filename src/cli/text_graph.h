/* SPDX-License-Identifier: Apache-2.0 */
/* Fractions (0 to 1; NAN: unknown) drawn as text: a bar, and a graph of recent values. */
#ifndef COLLOC_CLI_TEXT_GRAPH_H
#define COLLOC_CLI_TEXT_GRAPH_H

#include <stdbool.h>
#include <stddef.h>

enum { TEXT_GRAPH_WIDTH_MAX = 200, TEXT_GRAPH_SIZE = 3 * TEXT_GRAPH_WIDTH_MAX + 3 };

/*
 * Draws a bar: "[███▌    ]".
 *
 * width:  columns, 3 to TEXT_GRAPH_WIDTH_MAX.
 * blocks: the terminal has block characters: eighths of a column. False: ASCII.
 *
 * Returns `text`.
 */
const char *text_graph_bar(double fraction, int width, bool blocks, char text[TEXT_GRAPH_SIZE]);

/* The most recent values. Zeroed, it is empty. */
struct history {
    float value[TEXT_GRAPH_WIDTH_MAX];
    size_t next, count;
};

/* Adds the newest value, 0 to 1 or NAN; the oldest is dropped when the graph is full. */
void history_add(struct history *history, double fraction);

/* Draws the last `width` values, the newest at the right: "▁▁▃▆█". An unknown value is "·"; before
 * the first value are blanks. Returns `text`. */
const char *text_graph_history(
    const struct history *history, int width, bool blocks, char text[TEXT_GRAPH_SIZE]);

#endif
