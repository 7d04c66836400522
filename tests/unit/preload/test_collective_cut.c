/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cut of a training's ranks: cases by hand, and a model check. Its pretend ranks run a random
 * program of collectives over random communicators; one step of one rank, or one reading or writing
 * of one page by the daemon, is chosen at random until the cut is reached. A rank waits inside a
 * call, or later for all that it has launched, until its peers have come: as NCCL's do.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "preload/collective_cut.h"

enum { RANKS = 5, COMMUNICATORS = 6, LENGTH = 60, PROGRAMS = 2000 };

/* ---- cases by hand ---- */

static struct cut_rank rank_of(uint64_t communicator, uint32_t n_ranks, uint64_t launched)
{
    return (struct cut_rank){.n = 1, .of = {{communicator, n_ranks, launched, 0}}};
}

static void test_one_that_is_behind_may_follow(void **state)
{
    struct cut_rank ranks[] = {rank_of(1, 2, 7), rank_of(1, 2, 6)};
    assert_int_equal(collective_cut(ranks, 2), CUT_NOT_YET);
    assert_int_equal(ranks[0].of[0].allowed, 7);
    assert_int_equal(ranks[1].of[0].allowed, 7);
    ranks[1].of[0].launched = 7;
    assert_int_equal(collective_cut(ranks, 2), CUT_REACHED);
}

static void test_a_call_under_way_is_awaited(void **state)
{
    struct cut_rank ranks[] = {rank_of(1, 2, 7), rank_of(1, 2, 7)};
    ranks[1].is_under_way = true;
    assert_int_equal(collective_cut(ranks, 2), CUT_NOT_YET);
}

static void test_ranks_elsewhere(void **state)
{
    struct cut_rank ranks[] = {rank_of(1, 3, 7), rank_of(1, 3, 7)};
    assert_int_equal(collective_cut(ranks, 2), CUT_INCOMPLETE);
    ranks[0] = rank_of(1, 2, 7); /* one of them has more processes than ranks are known */
    ranks[1] = rank_of(2, 2, 0); /* never used: it may be in the making */
    assert_int_equal(collective_cut(ranks, 2), CUT_INCOMPLETE);
    ranks[0].of[0].launched = 0;
    assert_int_equal(collective_cut(ranks, 2), CUT_REACHED);
    ranks[0] = ranks[1] = rank_of(1, 0, 1); /* how many there are is not known */
    assert_int_equal(collective_cut(ranks, 2), CUT_INCOMPLETE);
}

static void test_none_at_all(void **state)
{
    struct cut_rank none = {0};
    assert_int_equal(collective_cut(&none, 0), CUT_REACHED);
    assert_int_equal(collective_cut(&none, 1), CUT_REACHED);
}

/* A page may say anything: the same communicator twice, numbers of any size. */
static void test_a_page_is_read_as_it_is(void **state)
{
    static struct preload_page page;
    struct cut_rank rank;
    memset(&page, 0xff, sizeof page);
    cut_rank_read(&page, &rank);
    assert_true(rank.is_under_way);
    assert_int_equal(rank.n, 1);
    memset(&page, 0, sizeof page);
    page.communicators[3].id = 9;
    page.communicators[3].launched = 4;
    page.communicators[3].n_ranks = 2;
    cut_rank_read(&page, &rank);
    assert_false(rank.is_under_way);
    assert_int_equal(rank.n, 1);
    assert_int_equal(rank.of[0].communicator, 9);
    assert_int_equal(rank.of[0].launched, 4);
    assert_int_equal(rank.of[0].n_ranks, 2);
}

/* ---- the model ---- */

static uint64_t seed;

static unsigned chance(unsigned n)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(seed >> 33) % n;
}

/* A collective of the program. All ranks meet those of a communicator in the same order, so that
 * the program does not deadlock by itself. */
struct collective {
    int communicator;
    bool is_blocking; /* the call itself waits for the peers */
    bool is_awaited;  /* the program then waits for all that it has launched */
};

enum place { BEFORE, UNDER_WAY, LET_IN, INSIDE, AFTER };

struct model {
    bool is_member[COMMUNICATORS][RANKS];
    struct collective program[LENGTH];
    struct pretend_rank {
        struct preload_page page;
        int next; /* of the program */
        enum place place;
    } ranks[RANKS];
    struct cut_rank read[RANKS]; /* by the daemon */
    int daemon_at;               /* it holds rank 0, ...; reads rank 0, ...; writes rank 0, ... */
    enum { HOLDS, READS, WRITES, IS_DONE } daemon_does;
    int bound[COMMUNICATORS]; /* what may ever be launched of each in this hold */
};

static bool takes_part(const struct model *m, int rank, int at)
{
    return m->is_member[m->program[at].communicator][rank];
}

static void make_program(struct model *m)
{
    memset(m, 0, sizeof *m);
    int n_ranks = 2 + (int)chance(RANKS - 1); /* the others take part in nothing */
    for (int c = 0; c < COMMUNICATORS; c++) {
        int n = 0;
        for (int r = 0; r < n_ranks; r++)
            n += m->is_member[c][r] = c == 0 || chance(2);
        for (int r = 0; r < RANKS; r++) {
            struct preload_communicator *communicator = &m->ranks[r].page.communicators[c];
            communicator->id = m->is_member[c][r] ? (uint64_t)c + 100 : 0;
            communicator->n_ranks = m->is_member[c][r] ? (uint32_t)n : 0;
        }
    }
    for (int i = 0; i < LENGTH; i++)
        m->program[i] = (struct collective){
            (int)chance(COMMUNICATORS), chance(3) == 0, chance(3) == 0};
}

/* The rank's part of the collective has been launched by all that take part in it. */
static bool is_launched_by_all(const struct model *m, int at)
{
    for (int r = 0; r < RANKS; r++) {
        const struct pretend_rank *rank = &m->ranks[r];
        bool has_launched = rank->next > at || (rank->next == at && rank->place >= INSIDE);
        if (takes_part(m, r, at) && !has_launched)
            return false;
    }
    return true;
}

static bool is_idle(const struct model *m, int rank, int before)
{
    for (int i = 0; i < before; i++)
        if (takes_part(m, rank, i) && !is_launched_by_all(m, i))
            return false;
    return true;
}

/* One step of a rank, as collectives.c and NCCL make them. */
static void step_rank(struct model *m, int r)
{
    struct pretend_rank *rank = &m->ranks[r];
    struct preload_page *page = &rank->page;
    while (rank->next < LENGTH && !takes_part(m, r, rank->next))
        rank->next++;
    if (rank->next == LENGTH)
        return;
    const struct collective *collective = &m->program[rank->next];
    switch (rank->place) {
    case BEFORE:
        page->collectives_under_way = 1;
        rank->place = UNDER_WAY;
        break;
    case UNDER_WAY:
        if (page->collectives_held && !cut_is_behind(page)) {
            page->collectives_under_way = 0;
            rank->place = BEFORE;
        } else {
            rank->place = LET_IN;
        }
        break;
    case LET_IN:
        page->communicators[collective->communicator].launched++;
        rank->place = INSIDE;
        break;
    case INSIDE:
        if (!collective->is_blocking || is_launched_by_all(m, rank->next)) {
            page->collectives_under_way = 0;
            rank->place = AFTER;
        }
        break;
    case AFTER:
        if (!collective->is_awaited || is_idle(m, r, rank->next + 1)) {
            rank->next++;
            rank->place = BEFORE;
        }
        break;
    }
}

/* All calls that were let in by now, and what comes before them in the order of the program. */
static void note_bound(struct model *m)
{
    bool is_in[LENGTH] = {false};
    for (int i = LENGTH - 1; i >= 0; i--) {
        for (int r = 0; r < RANKS; r++) {
            const struct pretend_rank *rank = &m->ranks[r];
            bool is_begun = rank->next > i || (rank->next == i && rank->place >= UNDER_WAY);
            is_in[i] |= takes_part(m, r, i) && is_begun;
            for (int k = i + 1; k < LENGTH; k++)
                is_in[i] |= takes_part(m, r, i) && takes_part(m, r, k) && is_in[k];
        }
        m->bound[m->program[i].communicator] += is_in[i];
    }
}

static void step_daemon(struct model *m)
{
    struct preload_page *page = &m->ranks[m->daemon_at].page;
    if (m->daemon_does == HOLDS)
        page->collectives_held = 1;
    if (m->daemon_does == READS)
        cut_rank_read(page, &m->read[m->daemon_at]);
    for (size_t i = 0; m->daemon_does == WRITES && i < m->read[m->daemon_at].n; i++) {
        const struct cut_count *count = &m->read[m->daemon_at].of[i];
        page->communicators[count->communicator - 100].allowed = count->allowed;
    }
    if (++m->daemon_at < RANKS)
        return;
    m->daemon_at = 0;
    if (m->daemon_does == HOLDS)
        note_bound(m);
    if (m->daemon_does == READS && collective_cut(m->read, RANKS) == CUT_REACHED)
        m->daemon_does = IS_DONE;
    else
        m->daemon_does = m->daemon_does == READS ? WRITES : READS;
}

static void check_kept(struct model *m)
{
    uint64_t launched[COMMUNICATORS] = {0};
    for (int c = 0; c < COMMUNICATORS; c++)
        for (int r = 0; r < RANKS; r++)
            if (m->is_member[c][r])
                launched[c] = m->ranks[r].page.communicators[c].launched;
    for (int i = 0; i < 200; i++) {
        step_rank(m, (int)chance(RANKS));
        for (int r = 0; r < RANKS; r++) {
            assert_true(is_idle(m, r, m->ranks[r].next));
            for (int c = 0; c < COMMUNICATORS; c++)
                if (m->is_member[c][r])
                    assert_int_equal(m->ranks[r].page.communicators[c].launched, launched[c]);
        }
    }
}

static void check_bound(const struct model *m)
{
    for (int r = 0; r < RANKS; r++)
        for (int c = 0; c < COMMUNICATORS; c++)
            assert_true(m->ranks[r].page.communicators[c].launched <= (uint64_t)m->bound[c]);
}

/* Runs to the end once the hold is over: nothing was lost. */
static void check_end(struct model *m)
{
    for (int r = 0; r < RANKS; r++)
        m->ranks[r].page.collectives_held = 0;
    for (int i = 0; i < 100 * RANKS * LENGTH; i++)
        step_rank(m, (int)chance(RANKS));
    for (int r = 0; r < RANKS; r++)
        assert_int_equal(m->ranks[r].next, LENGTH);
}

static void test_random_programs_and_interleavings(void **state)
{
    static struct model m;
    for (unsigned i = 0; i < PROGRAMS; i++) {
        seed = i;
        make_program(&m);
        unsigned of_daemon = 2 + chance(9), limit = 2000 * RANKS * LENGTH;
        for (unsigned before = chance(4 * RANKS * LENGTH); before > 0; before--)
            step_rank(&m, (int)chance(RANKS));
        while (m.daemon_does != IS_DONE) {
            assert_true(limit-- > 0); /* else a deadlock */
            if (chance(of_daemon) == 0)
                step_daemon(&m);
            else
                step_rank(&m, (int)chance(RANKS));
            if (m.daemon_does != HOLDS)
                check_bound(&m);
        }
        check_kept(&m);
        check_end(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_that_is_behind_may_follow),
        cmocka_unit_test(test_a_call_under_way_is_awaited),
        cmocka_unit_test(test_ranks_elsewhere),
        cmocka_unit_test(test_none_at_all),
        cmocka_unit_test(test_a_page_is_read_as_it_is),
        cmocka_unit_test(test_random_programs_and_interleavings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
