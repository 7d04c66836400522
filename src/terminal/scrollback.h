/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The last output of a terminal: a ring of SCROLLBACK_SIZE bytes. A reader has a position, counted
 * from the first byte ever written; one that is too far behind continues with the oldest byte kept.
 */
#ifndef COLLOC_TERMINAL_SCROLLBACK_H
#define COLLOC_TERMINAL_SCROLLBACK_H

#include <stddef.h>
#include <stdint.h>

enum { SCROLLBACK_SIZE = 1 << 16 }; /* chosen: a few screens */

/* All zero is empty. */
struct scrollback {
    uint64_t written; /* bytes in all */
    char bytes[SCROLLBACK_SIZE];
};

/* Appends output; the oldest is dropped when the buffer is full. */
void scrollback_add(struct scrollback *scrollback, const char *bytes, size_t size);

/* The position of the oldest byte that is kept. */
uint64_t scrollback_oldest(const struct scrollback *scrollback);

/*
 * The bytes from a position on that lie together in the ring; there may be more behind them.
 *
 * position:  of the reader; moved to the oldest byte when it is before that
 * ret_bytes: valid until the next scrollback_add
 *
 * Returns how many bytes; 0 when the reader has read all.
 */
size_t scrollback_peek(
    const struct scrollback *scrollback, uint64_t *position, const char **ret_bytes);

#endif
