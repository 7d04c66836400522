/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Draws with the block characters U+2580 to U+258F, or with ASCII where a terminal lacks them.
 *
 *     bar of 0.53 in 10 columns      [████▎   ]     [####    ]
 *     history 0, 0.2, 0.6, 1         ▁▂▅█           _.=#
 *
 * A block is divided into eight parts: eight times the resolution of ASCII. An unknown value (NAN)
 * is a dot or "?" in a history; its bar is empty, and the figure beside it is "-".
 */
#include "cli/text_graph.h"

#include <math.h>
#include <string.h>

static const char *const parts[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
static const char *const levels[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
static const char *const ascii_levels[] = {"_", ".", ":", "-", "=", "+", "*", "#"};

static void append_text(char *text, const char *more, int times)
{
    size_t used = strlen(text), size = strlen(more);
    for (; times > 0 && used + size < TEXT_GRAPH_SIZE; times--) {
        memcpy(text + used, more, size + 1);
        used += size;
    }
}

static double clamp_fraction(double fraction)
{
    return fmin(fmax(fraction, 0), 1);
}

const char *text_graph_bar(double fraction, int width, bool blocks, char text[TEXT_GRAPH_SIZE])
{
    int inside = width - 2;
    int eighths = isnan(fraction) ? 0 : (int)lround(clamp_fraction(fraction) * inside * 8);
    int full = blocks ? eighths / 8 : (eighths + 4) / 8;
    const char *part = blocks ? parts[eighths % 8] : "";

    strcpy(text, "[");
    append_text(text, blocks ? "█" : "#", full);
    append_text(text, part, 1);
    append_text(text, " ", inside - full - (*part != '\0'));
    append_text(text, "]", 1);
    return text;
}

void history_add(struct history *history, double fraction)
{
    history->value[history->next] = (float)fraction;
    history->next = (history->next + 1) % TEXT_GRAPH_WIDTH_MAX;
    history->count += history->count < TEXT_GRAPH_WIDTH_MAX;
}

/* The newest value is at the right end; where there are fewer than columns, the left is blank. */
const char *text_graph_history(
    const struct history *history, int width, bool blocks, char text[TEXT_GRAPH_SIZE])
{
    size_t shown = history->count < (size_t)width ? history->count : (size_t)width;

    text[0] = '\0';
    append_text(text, " ", width - (int)shown);
    for (size_t i = shown; i > 0; i--) {
        double value =
            history->value[(history->next + TEXT_GRAPH_WIDTH_MAX - i) % TEXT_GRAPH_WIDTH_MAX];
        if (isnan(value))
            append_text(text, blocks ? "·" : "?", 1);
        else
            append_text(
                text, (blocks ? levels : ascii_levels)[(int)lround(clamp_fraction(value) * 7)], 1);
    }
    return text;
}
