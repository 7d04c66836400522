/* SPDX-License-Identifier: Apache-2.0 */
/* All communicators of all ranks are sorted by their ids, so that the ranks of one follow each
 * other. */
#include "preload/collective_cut.h"

#include <stdlib.h>

/* One communicator in one rank. */
struct member {
    struct cut_count *count;
    struct cut_rank *rank;
};

struct members {
    size_t n;
    struct member of[CUT_RANKS_MAX * PRELOAD_COMMUNICATORS_MAX];
};

static int compare_members(const void *a, const void *b)
{
    const struct cut_count *x = ((const struct member *)a)->count;
    const struct cut_count *y = ((const struct member *)b)->count;
    if (x->communicator != y->communicator)
        return x->communicator < y->communicator ? -1 : 1;
    return (x->place > y->place) - (x->place < y->place);
}

static void list_members(struct members *members, struct cut_rank *ranks, size_t n)
{
    members->n = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < ranks[i].n; k++)
            members->of[members->n++] = (struct member){&ranks[i].of[k], &ranks[i]};
    qsort(members->of, members->n, sizeof members->of[0], compare_members);
}

static struct cut_count *find_count(struct cut_rank *rank, uint64_t communicator)
{
    for (size_t i = 0; i < rank->n; i++)
        if (rank->of[i].communicator == communicator)
            return &rank->of[i];
    return NULL;
}

static void note_answer(enum cut_answer *worst, enum cut_answer answer)
{
    *worst = answer > *worst ? answer : *worst;
}

/* ---- collectives ---- */

/* A communicator that was never used may still be in the making. */
static enum cut_answer compare_counts(struct member *members, size_t n)
{
    uint64_t most = 0, least = UINT64_MAX;
    uint32_t n_ranks = 0;
    for (size_t i = 0; i < n; i++) {
        const struct cut_count *count = members[i].count;
        n_ranks = count->n_ranks > n_ranks ? count->n_ranks : n_ranks;
        most = count->launched > most ? count->launched : most;
        least = count->launched < least ? count->launched : least;
    }
    for (size_t i = 0; i < n; i++)
        members[i].count->allowed = most;
    if (most && n != n_ranks)
        return CUT_INCOMPLETE;
    return most == least ? CUT_REACHED : CUT_NOT_YET;
}

static enum cut_answer compare_collectives(struct members *members)
{
    enum cut_answer worst = CUT_REACHED;
    for (size_t first = 0, next; first < members->n; first = next) {
        uint64_t id = members->of[first].count->communicator;
        for (next = first; next < members->n && members->of[next].count->communicator == id;)
            next++;
        note_answer(&worst, compare_counts(&members->of[first], next - first));
    }
    return worst;
}

/* ---- sends and receives ---- */

/* Returns the process that is this rank of the communicator, or NULL. */
static struct cut_rank *find_place(
    const struct members *members, uint64_t communicator, uint32_t place)
{
    struct cut_count wanted = {.communicator = communicator, .place = place};
    const struct member key = {&wanted, NULL};
    const struct member *found = bsearch(
        &key, members->of, members->n, sizeof members->of[0], compare_members);
    return found ? found->rank : NULL;
}

/* The rank at the other end of a channel of this one, or NULL: it is elsewhere, or not known. */
static struct cut_rank *find_other_end(
    const struct members *members, struct cut_rank *rank, const struct cut_channel *channel)
{
    const struct cut_count *count = find_count(rank, channel->communicator);
    uint32_t from = message_from(channel->ends) + 1, to = message_to(channel->ends) + 1;
    if (!count || (count->place != from && count->place != to))
        return NULL;
    return find_place(members, channel->communicator, count->place == from ? to : from);
}

static uint64_t launched_of(const struct cut_rank *rank, const struct cut_channel *channel)
{
    for (size_t i = 0; i < rank->n_channels; i++)
        if (rank->channels[i].communicator == channel->communicator &&
            rank->channels[i].ends == channel->ends)
            return rank->channels[i].launched;
    return 0;
}

/* Sets `is_behind` of the ranks at the other ends. */
static enum cut_answer compare_channels(const struct members *members, struct cut_rank *rank,
    const struct cut_rank *ranks, bool *is_behind)
{
    enum cut_answer worst = CUT_REACHED;
    for (size_t i = 0; i < rank->n_channels; i++) {
        const struct cut_rank *other = find_other_end(members, rank, &rank->channels[i]);
        if (!other) {
            note_answer(&worst, CUT_INCOMPLETE);
        } else if (launched_of(other, &rank->channels[i]) < rank->channels[i].launched) {
            is_behind[other - ranks] = true;
            note_answer(&worst, CUT_NOT_YET);
        }
    }
    return worst;
}

/* A call that an earlier round has allowed may still come: it is taken back first. */
static enum cut_answer allow_calls(struct cut_rank *rank, bool is_behind)
{
    bool may_come = rank->calls_allowed > rank->calls;
    rank->calls_allowed = is_behind ? rank->calls + 1 : 0;
    return may_come || is_behind || rank->is_under_way ? CUT_NOT_YET : CUT_REACHED;
}

enum cut_answer collective_cut(struct cut_rank *ranks, size_t n)
{
    struct members members;
    bool is_behind[CUT_RANKS_MAX] = {false}, is_joining = false;
    list_members(&members, ranks, n);
    enum cut_answer worst = compare_collectives(&members);
    for (size_t i = 0; i < n; i++) {
        note_answer(&worst, compare_channels(&members, &ranks[i], ranks, is_behind));
        is_joining |= ranks[i].is_joining;
    }
    for (size_t i = 0; i < n; i++)
        note_answer(&worst, allow_calls(&ranks[i], is_behind[i] || is_joining));
    return worst;
}

/* ---- pages ---- */

static void read_channels(const struct preload_calls *calls, struct cut_rank *rank)
{
    for (int i = 0; i < PRELOAD_CHANNELS_MAX; i++) {
        const struct preload_channel *channel = &calls->channels[i];
        uint64_t id = atomic_load(&channel->communicator);
        if (id)
            rank->channels[rank->n_channels++] = (struct cut_channel){
                id, atomic_load(&channel->launched), atomic_load(&channel->ends)};
    }
}

/* The number of calls is read first: what they have launched is in the page by then, so that a call
 * is not allowed twice. Then `is_under_way`, for the same reason. */
void cut_rank_read(const struct preload_page *page, struct cut_rank *ret_rank)
{
    const struct preload_calls *calls = preload_page_calls(page);
    *ret_rank = (struct cut_rank){.calls = atomic_load(&calls->counted)};
    ret_rank->calls_allowed = atomic_load(&calls->allowed);
    ret_rank->is_under_way = atomic_load(&page->collectives_under_way) != 0;
    ret_rank->is_joining = atomic_load(&calls->joining) != 0;
    for (int i = 0; i < PRELOAD_COMMUNICATORS_MAX; i++) {
        const struct preload_communicator *communicator = &page->communicators[i];
        uint64_t id = atomic_load(&communicator->id);
        if (!id || find_count(ret_rank, id))
            continue;
        ret_rank->of[ret_rank->n++] = (struct cut_count){.communicator = id,
            .n_ranks = atomic_load(&communicator->n_ranks),
            .place = atomic_load(&communicator->place),
            .launched = atomic_load(&communicator->launched),
            .allowed = atomic_load(&communicator->allowed)};
    }
    read_channels(calls, ret_rank);
}
