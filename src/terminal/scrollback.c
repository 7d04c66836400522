/* SPDX-License-Identifier: Apache-2.0 */
/* A ring that is addressed by the count of bytes ever written, modulo its size. */
#include "terminal/scrollback.h"

#include <string.h>

void scrollback_add(struct scrollback *scrollback, const char *bytes, size_t size)
{
    while (size > 0) {
        size_t at = scrollback->written % SCROLLBACK_SIZE;
        size_t piece = SCROLLBACK_SIZE - at < size ? SCROLLBACK_SIZE - at : size;
        memcpy(scrollback->bytes + at, bytes, piece);
        scrollback->written += piece;
        bytes += piece;
        size -= piece;
    }
}

uint64_t scrollback_oldest(const struct scrollback *scrollback)
{
    return scrollback->written > SCROLLBACK_SIZE ? scrollback->written - SCROLLBACK_SIZE : 0;
}

size_t scrollback_peek(
    const struct scrollback *scrollback, uint64_t *position, const char **ret_bytes)
{
    uint64_t oldest = scrollback_oldest(scrollback);
    if (*position < oldest)
        *position = oldest;
    if (*position >= scrollback->written)
        return 0;
    size_t at = *position % SCROLLBACK_SIZE, left = (size_t)(scrollback->written - *position);
    *ret_bytes = scrollback->bytes + at;
    return SCROLLBACK_SIZE - at < left ? SCROLLBACK_SIZE - at : left;
}
