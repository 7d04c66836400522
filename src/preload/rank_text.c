/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the page as the rule of the cut does, so that the line shows what the rule saw. */
#include "preload/rank_text.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "preload/collective_cut.h"

struct line {
    char *text;
    size_t size;
};

__attribute__((format(printf, 2, 3))) static void add(
    const struct line *line, const char *format, ...)
{
    size_t length = strnlen(line->text, line->size);
    va_list values;
    va_start(values, format);
    if (length < line->size)
        vsnprintf(line->text + length, line->size - length, format, values);
    va_end(values);
}

/* A communicator's id is a hash. */
static unsigned name_of(uint64_t communicator)
{
    return (unsigned)(communicator & 0xffff);
}

static void add_calls(
    const struct line *line, const struct preload_page *page, const struct cut_rank *rank)
{
    add(line, "%llu calls of NCCL", (unsigned long long)rank->calls);
    if (rank->is_under_way)
        add(line, ", %u under way", (unsigned)atomic_load(&page->collectives_under_way));
    if (rank->is_joining)
        add(line, ", which makes or ends a communicator");
    if (rank->calls_allowed > rank->calls)
        add(line, ", let in to the next");
}

static void add_communicator(const struct line *line, const struct cut_count *count)
{
    if (count->place)
        add(line, "; rank %u of %u of %04x: ", (unsigned)(count->place - 1),
            (unsigned)count->n_ranks, name_of(count->communicator));
    else
        add(line, "; of %04x: ", name_of(count->communicator));
    add(line, "%llu", (unsigned long long)count->launched);
    if (count->allowed > count->launched)
        add(line, " of %llu", (unsigned long long)count->allowed);
    add(line, " collectives");
}

static void add_channel(const struct line *line, const struct cut_channel *channel)
{
    add(line, "; %u to %u of %04x: %llu", message_from(channel->ends), message_to(channel->ends),
        name_of(channel->communicator), (unsigned long long)channel->launched);
}

static void add_memory(const struct line *line, const struct preload_page *page)
{
    static const char *const states[] = {[PRELOAD_CARRY_NONE] = "in no block",
        [PRELOAD_CARRY_IS_HERE] = "here",
        [PRELOAD_CARRY_WAITING] = "waits for calls and the GPU",
        [PRELOAD_CARRY_COPYING] = "is copied",
        [PRELOAD_CARRY_RELEASING] = "is released",
        [PRELOAD_CARRY_IS_AWAY] = "away",
        [PRELOAD_CARRY_RETURNING] = "comes back",
        [PRELOAD_CARRY_LOST] = "lost"};
    uint32_t where = atomic_load(&page->carry_state);
    add(line, "; gate %s, %u calls within; memory %s", atomic_load(&page->gate) ? "closed" : "open",
        (unsigned)atomic_load(&page->in_flight),
        where < sizeof states / sizeof *states ? states[where] : "unknown");
}

void rank_text_write(const struct preload_page *page, char *text, size_t size)
{
    const struct line line = {text, size};
    struct cut_rank rank;
    if (size == 0)
        return;
    *text = '\0';
    cut_rank_read(page, &rank);
    add_calls(&line, page, &rank);
    add_memory(&line, page);
    for (size_t i = 0; i < rank.n; i++)
        add_communicator(&line, &rank.of[i]);
    for (size_t i = 0; i < rank.n_channels; i++)
        add_channel(&line, &rank.channels[i]);
}
