/* SPDX-License-Identifier: Apache-2.0 */
/* Each communicator is compared in all ranks. A task has few of both. */
#include "preload/collective_cut.h"

static struct cut_count *find_count(struct cut_rank *rank, uint64_t communicator)
{
    for (size_t i = 0; i < rank->n; i++)
        if (rank->of[i].communicator == communicator)
            return &rank->of[i];
    return NULL;
}

/* The state of one communicator, over all processes. */
struct sums {
    uint64_t most, least;
    uint32_t n_ranks, n_found;
};

static struct sums compare_ranks(struct cut_rank *ranks, size_t n, uint64_t communicator)
{
    struct sums sums = {.least = UINT64_MAX};
    for (size_t i = 0; i < n; i++) {
        const struct cut_count *count = find_count(&ranks[i], communicator);
        if (!count)
            continue;
        sums.n_found++;
        sums.n_ranks = count->n_ranks > sums.n_ranks ? count->n_ranks : sums.n_ranks;
        sums.most = count->launched > sums.most ? count->launched : sums.most;
        sums.least = count->launched < sums.least ? count->launched : sums.least;
    }
    return sums;
}

/* A communicator that was never used may still be in the making. */
static enum cut_answer judge_counts(const struct sums *sums)
{
    if (sums->most && sums->n_found != sums->n_ranks)
        return CUT_INCOMPLETE;
    return sums->most == sums->least ? CUT_REACHED : CUT_NOT_YET;
}

enum cut_answer collective_cut(struct cut_rank *ranks, size_t n)
{
    enum cut_answer worst = CUT_REACHED;
    for (size_t i = 0; i < n; i++) {
        if (ranks[i].is_under_way && worst == CUT_REACHED)
            worst = CUT_NOT_YET;
        for (size_t k = 0; k < ranks[i].n; k++) {
            struct cut_count *count = &ranks[i].of[k];
            struct sums sums = compare_ranks(ranks, n, count->communicator);
            enum cut_answer answer = judge_counts(&sums);
            count->allowed = sums.most;
            worst = answer > worst ? answer : worst;
        }
    }
    return worst;
}

/* `is_under_way` is read first: what was launched until then is in the page by then. */
void cut_rank_read(const struct preload_page *page, struct cut_rank *ret_rank)
{
    *ret_rank = (struct cut_rank){.is_under_way = atomic_load(&page->collectives_under_way) != 0};
    for (int i = 0; i < PRELOAD_COMMUNICATORS_MAX; i++) {
        const struct preload_communicator *communicator = &page->communicators[i];
        uint64_t id = atomic_load(&communicator->id);
        if (!id || find_count(ret_rank, id))
            continue;
        ret_rank->of[ret_rank->n++] = (struct cut_count){.communicator = id,
            .n_ranks = atomic_load(&communicator->n_ranks),
            .launched = atomic_load(&communicator->launched)};
    }
}
