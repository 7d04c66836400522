/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the latest answers about metrics, which many pages request. There are a few entries,
 * searched one after the other; a new one replaces its key or the oldest. */
#include "daemon/http/series_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

const char *series_cache_find(const struct series_cache *cache, const char *key, int64_t now_us)
{
    for (size_t i = 0; i < SERIES_CACHE_ENTRIES; i++)
        if (strcmp(cache->entries[i].key, key) == 0 && cache->entries[i].text &&
            now_us - cache->entries[i].made_us < SERIES_CACHE_MS * MS_US)
            return cache->entries[i].text;
    return NULL;
}

void series_cache_keep(
    struct series_cache *cache, const char *key, const char *text, int64_t now_us)
{
    size_t place = 0;
    if (strlen(text) > SERIES_CACHE_TEXT_MAX || strlen(key) >= SERIES_CACHE_KEY_SIZE)
        return;
    for (size_t i = 0; i < SERIES_CACHE_ENTRIES; i++) {
        if (strcmp(cache->entries[i].key, key) == 0) {
            place = i;
            break;
        }
        if (cache->entries[i].made_us < cache->entries[place].made_us)
            place = i;
    }
    free(cache->entries[place].text);
    cache->entries[place].text = strdup(text);
    cache->entries[place].made_us = now_us;
    strcpy(cache->entries[place].key, key);
}

void series_cache_fini(struct series_cache *cache)
{
    for (size_t i = 0; i < SERIES_CACHE_ENTRIES; i++)
        free(cache->entries[i].text);
    *cache = (struct series_cache){0};
}
