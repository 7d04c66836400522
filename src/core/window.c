#include "core/window.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

void window_fini(struct window *window)
{
    free(window->ring);
    *window = (struct window){0};
}

static struct window_entry *entry_at(const struct window *window, int i)
{
    return &window->ring[(window->first + i) & (window->size - 1)]; /* a power of two: see grow */
}

static int grow(struct window *window)
{
    int size = window->size ? window->size * 2 : 32;
    struct window_entry *ring = calloc((size_t)size, sizeof *ring);
    if (!ring)
        return -ENOMEM;
    for (int i = 0; i < window->count; i++)
        ring[i] = *entry_at(window, i);
    free(window->ring);
    window->ring = ring;
    window->size = size;
    window->first = 0;
    return 0;
}

int window_add(struct window *window, int64_t time_us, int64_t length_us, struct reading value)
{
    while (window->count && entry_at(window, 0)->time_us <= time_us - length_us) {
        window->first = (window->first + 1) % window->size;
        window->count--;
    }
    if (window->count == window->size && grow(window) < 0)
        return -ENOMEM;
    *entry_at(window, window->count++) =
        (struct window_entry){.time_us = time_us, .value = value.valid ? value.value : NAN};
    return 0;
}

struct reading window_mean_since(const struct window *window, int64_t since_us, int enough)
{
    double sum = 0;
    int n = 0;
    for (int i = 0; i < window->count; i++) {
        const struct window_entry *entry = entry_at(window, i);
        if (isnan(entry->value) || entry->time_us < since_us)
            continue;
        sum += entry->value;
        n++;
    }
    return n > 0 && n >= enough ? reading_of(sum / n) : READING_NONE;
}

struct reading window_mean(const struct window *window, int64_t since_us, int enough)
{
    if (window->count == 0 || isnan(entry_at(window, window->count - 1)->value))
        return READING_NONE;
    struct reading recent = window_mean_since(window, since_us, enough);
    return recent.valid ? recent : window_mean_since(window, INT64_MIN, 1);
}
