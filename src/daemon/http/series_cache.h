/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recent answers about the metrics of GPUs. Open pages request the same lanes at about the same
 * time: one reading of the database serves them all for SERIES_CACHE_MS.
 */
#ifndef COLLOC_DAEMON_HTTP_SERIES_CACHE_H
#define COLLOC_DAEMON_HTTP_SERIES_CACHE_H

#include <stddef.h>
#include <stdint.h>

enum {
    SERIES_CACHE_MS = 5000,          /* chosen: metrics are stored every 5 s */
    SERIES_CACHE_ENTRIES = 8,        /* chosen: the spans that the page offers, and some */
    SERIES_CACHE_TEXT_MAX = 4 << 20, /* bytes; longer answers are not kept */
    SERIES_CACHE_KEY_SIZE = 400
};

struct series_cache {
    struct {
        char key[SERIES_CACHE_KEY_SIZE]; /* "": unused */
        char *text;
        int64_t made_us;
    } entries[SERIES_CACHE_ENTRIES];
};

/* Returns the answer for a key, borrowed until the next call; NULL: there is none of late.
 * now_us: clock_monotonic_us. */
const char *series_cache_find(const struct series_cache *cache, const char *key, int64_t now_us);

/* Keeps a copy of an answer instead of the oldest, if it is not too long and there is memory. */
void series_cache_keep(
    struct series_cache *cache, const char *key, const char *text, int64_t now_us);

/* Releases all answers. */
void series_cache_fini(struct series_cache *cache);

#endif
