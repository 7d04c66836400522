/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cut of a training's ranks: cases by hand, and a model check. Its pretend ranks run a random
 * program of collectives, of groups of sends and receives, and of calls that make communicators,
 * over random communicators; one step of one rank, or one reading or writing of one page by the
 * daemon, is chosen at random until the cut is reached. A rank waits inside a call, or later for
 * all that it has launched, until its peers have come: as NCCL's do.
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
    return (struct cut_rank){
        .n = 1, .of = {{.communicator = communicator, .n_ranks = n_ranks, .launched = launched}}};
}

/* The page, and what lies behind it. */
union whole_page {
    struct preload_page page;
    char bytes[PRELOAD_PAGE_SIZE];
};

/* Two ranks of communicator 1, of which the first has sent. */
static void make_pair(struct cut_rank *ranks)
{
    for (uint32_t i = 0; i < 2; i++) {
        ranks[i] = rank_of(1, 2, 0);
        ranks[i].of[0].place = i + 1;
        ranks[i].calls = 40 + i;
    }
    ranks[0].n_channels = 1;
    ranks[0].channels[0] = (struct cut_channel){1, 3, message_ends(0, 1)};
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

static void test_a_send_lets_its_receiver_in_by_one_call(void **state)
{
    struct cut_rank ranks[2];
    make_pair(ranks);
    assert_int_equal(collective_cut(ranks, 2), CUT_NOT_YET);
    assert_int_equal(ranks[0].calls_allowed, 0);
    assert_int_equal(ranks[1].calls_allowed, 42);
    ranks[1].n_channels = 1;
    ranks[1].channels[0] = (struct cut_channel){1, 2, message_ends(0, 1)};
    assert_int_equal(collective_cut(ranks, 2), CUT_NOT_YET);
    assert_int_equal(ranks[1].calls_allowed, 42);
    ranks[1].channels[0].launched = 3;
    ranks[1].calls = 42;
    assert_int_equal(collective_cut(ranks, 2), CUT_REACHED);
    assert_int_equal(ranks[1].calls_allowed, 0);
}

/* A rank makes a communicator with another one, which is held before a collective with a third. */
static void test_all_go_on_while_one_joins(void **state)
{
    struct cut_rank ranks[] = {rank_of(1, 2, 7), rank_of(1, 2, 7), {.calls = 5}};
    ranks[0].calls = 40;
    ranks[2].is_under_way = ranks[2].is_joining = true;
    assert_int_equal(collective_cut(ranks, 3), CUT_NOT_YET);
    assert_int_equal(ranks[0].calls_allowed, 41);
    assert_int_equal(ranks[1].calls_allowed, 1);
    ranks[2].is_under_way = ranks[2].is_joining = false;
    assert_int_equal(collective_cut(ranks, 3), CUT_NOT_YET); /* those calls may still come */
    assert_int_equal(ranks[0].calls_allowed, 0);
    assert_int_equal(collective_cut(ranks, 3), CUT_REACHED);
}

static void test_the_other_way_is_another_channel(void **state)
{
    struct cut_rank ranks[2];
    make_pair(ranks);
    ranks[1].n_channels = 1;
    ranks[1].channels[0] = (struct cut_channel){1, 3, message_ends(1, 0)};
    assert_int_equal(collective_cut(ranks, 2), CUT_NOT_YET);
    assert_int_equal(ranks[0].calls_allowed, 41);
    assert_int_equal(ranks[1].calls_allowed, 42);
}

/* The communicator is gone in the rank that was waited for. */
static void test_a_call_that_may_still_come_is_taken_back_first(void **state)
{
    struct cut_rank ranks[2];
    make_pair(ranks);
    assert_int_equal(collective_cut(ranks, 2), CUT_NOT_YET);
    ranks[0].n_channels = 0;
    assert_int_equal(collective_cut(ranks, 2), CUT_NOT_YET);
    assert_int_equal(ranks[1].calls_allowed, 0);
    assert_int_equal(collective_cut(ranks, 2), CUT_REACHED);
}

static void test_a_channel_to_elsewhere(void **state)
{
    struct cut_rank ranks[2];
    make_pair(ranks);
    ranks[0].channels[0].ends = message_ends(0, 2);
    assert_int_equal(collective_cut(ranks, 2), CUT_INCOMPLETE);
    make_pair(ranks);
    ranks[0].of[0].place = 0; /* not known */
    assert_int_equal(collective_cut(ranks, 2), CUT_INCOMPLETE);
    make_pair(ranks);
    ranks[0].channels[0].ends = message_ends(1, 2); /* not its own */
    assert_int_equal(collective_cut(ranks, 2), CUT_INCOMPLETE);
    make_pair(ranks);
    ranks[0].channels[0].communicator = 9;
    assert_int_equal(collective_cut(ranks, 2), CUT_INCOMPLETE);
}

/* A page may say anything: the same communicator twice, numbers of any size. */
static void test_a_page_is_read_as_it_is(void **state)
{
    static union whole_page whole;
    struct preload_page *page = &whole.page;
    struct cut_rank rank;
    memset(&whole, 0xff, sizeof whole);
    cut_rank_read(page, &rank);
    assert_true(rank.is_under_way);
    assert_int_equal(rank.n, 1);
    assert_int_equal(rank.n_channels, PRELOAD_CHANNELS_MAX);
    assert_int_equal(collective_cut(&rank, 1), CUT_INCOMPLETE);
    memset(&whole, 0, sizeof whole);
    page->communicators[3].id = 9;
    page->communicators[3].launched = 4;
    page->communicators[3].n_ranks = 2;
    cut_rank_read(page, &rank);
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

/* One call of each rank that takes part: a collective, or a group of sends and receives. All ranks
 * meet them in the same order, so that the program does not deadlock by itself. */
struct item {
    int communicator;
    bool sends[RANKS][RANKS]; /* from, to; none: it is a collective */
    bool is_messages;
    bool is_joining;  /* launches nothing, and is not held */
    bool is_blocking; /* the call itself waits for the peers */
    bool is_awaited;  /* the program then waits for all that it has launched */
};

enum place { BEFORE, UNDER_WAY, LET_IN, COUNTED, INSIDE, AFTER };

struct model {
    bool is_member[COMMUNICATORS][RANKS];
    struct item program[LENGTH];
    struct pretend_rank {
        union whole_page whole;
        uint64_t calls; /* that were let in, but those that make communicators */
        int next;       /* of the program */
        int counted;    /* peers whose messages of this call are counted */
        enum place place;
    } ranks[RANKS];
    struct cut_rank read[RANKS]; /* by the daemon */
    int daemon_at;               /* it holds rank 0, ...; reads rank 0, ...; writes rank 0, ... */
    bool has_calls;              /* of the rank that it reads */
    enum { HOLDS, READS, WRITES, IS_DONE } daemon_does;
    bool joins;               /* the program makes communicators */
    bool has_joined;          /* in this hold: then there is no bound */
    int bound[COMMUNICATORS]; /* what may ever be launched of each in this hold */
    int message_bound[COMMUNICATORS][RANKS][RANKS];
};

static bool takes_part(const struct model *m, int rank, int at)
{
    const struct item *item = &m->program[at];
    bool takes = !item->is_messages && m->is_member[item->communicator][rank];
    for (int peer = 0; peer < RANKS; peer++)
        takes |= item->sends[rank][peer] || item->sends[peer][rank];
    return takes;
}

static void make_item(struct model *m, struct item *item)
{
    bool joins = m->joins && chance(6) == 0;
    *item = (struct item){.communicator = (int)chance(COMMUNICATORS),
        .is_messages = !joins && chance(2) == 0,
        .is_joining = joins,
        .is_blocking = joins || chance(3) == 0,
        .is_awaited = chance(3) == 0};
    const bool *is_member = m->is_member[item->communicator];
    unsigned one_in = 1 + chance(4); /* all to all, some, or one or none */
    for (int from = 0; from < RANKS && item->is_messages; from++)
        for (int to = 0; to < RANKS; to++)
            item->sends[from][to] = from != to && is_member[from] && is_member[to] &&
                                    chance(one_in) == 0;
}

static void make_program(struct model *m)
{
    memset(m, 0, sizeof *m);
    m->joins = chance(2) == 0;
    int n_ranks = 2 + (int)chance(RANKS - 1); /* the others take part in nothing */
    for (int c = 0; c < COMMUNICATORS; c++) {
        int n = 0;
        for (int r = 0; r < n_ranks; r++)
            n += m->is_member[c][r] = c == 0 || chance(2);
        for (int r = 0; r < RANKS; r++) {
            struct preload_communicator *communicator = &m->ranks[r].whole.page.communicators[c];
            communicator->id = m->is_member[c][r] ? (uint64_t)c + 100 : 0;
            communicator->n_ranks = m->is_member[c][r] ? (uint32_t)n : 0;
            communicator->place = (uint32_t)r + 1; /* the peers' names in the channels, too */
        }
    }
    for (int i = 0; i < LENGTH; i++)
        make_item(m, &m->program[i]);
}

/* What the rank's part waits for has been launched: of a collective all, of messages their other
 * ends. */
static bool is_launched_by_peers(const struct model *m, int rank, int at)
{
    const struct item *item = &m->program[at];
    for (int r = 0; r < RANKS; r++) {
        const struct pretend_rank *peer = &m->ranks[r];
        bool has_launched = peer->next > at || (peer->next == at && peer->place >= INSIDE);
        bool is_awaited = item->is_messages ? item->sends[rank][r] || item->sends[r][rank]
                                            : takes_part(m, r, at);
        if (is_awaited && !has_launched)
            return false;
    }
    return true;
}

static bool is_idle(const struct model *m, int rank, int before)
{
    for (int i = 0; i < before; i++)
        if (takes_part(m, rank, i) && !is_launched_by_peers(m, rank, i))
            return false;
    return true;
}

static uint64_t message_launched(const struct pretend_rank *rank, int communicator, uint32_t ends)
{
    const struct preload_calls *calls = preload_page_calls(&rank->whole.page);
    for (int i = 0; i < PRELOAD_CHANNELS_MAX; i++)
        if (calls->channels[i].communicator == (uint64_t)communicator + 100 &&
            calls->channels[i].ends == ends)
            return calls->channels[i].launched;
    return 0;
}

static void count_message(struct pretend_rank *rank, int communicator, uint32_t ends)
{
    struct preload_channel *channel = preload_page_calls(&rank->whole.page)->channels;
    uint64_t id = (uint64_t)communicator + 100;
    while (channel->communicator && (channel->communicator != id || channel->ends != ends))
        channel++;
    channel->ends = ends;
    channel->communicator = id;
    channel->launched++;
}

/* Counts what this rank sends to its next peer and receives from it. Returns whether all is. */
static bool count_some(struct model *m, int r)
{
    struct pretend_rank *rank = &m->ranks[r];
    const struct item *item = &m->program[rank->next];
    if (!item->is_messages) {
        rank->whole.page.communicators[item->communicator].launched++;
        return true;
    }
    int peer = rank->counted++;
    if (item->sends[r][peer])
        count_message(rank, item->communicator, message_ends((uint32_t)r, (uint32_t)peer));
    if (item->sends[peer][r])
        count_message(rank, item->communicator, message_ends((uint32_t)peer, (uint32_t)r));
    return rank->counted == RANKS;
}

/* One step of a rank, as collectives.c and NCCL make them. */
static void step_rank(struct model *m, int r)
{
    struct pretend_rank *rank = &m->ranks[r];
    struct preload_page *page = &rank->whole.page;
    while (rank->next < LENGTH && !takes_part(m, r, rank->next))
        rank->next++;
    if (rank->next == LENGTH)
        return;
    const struct item *item = &m->program[rank->next];
    switch (rank->place) {
    case BEFORE:
        preload_page_calls(page)->joining = item->is_joining;
        page->collectives_under_way = 1;
        rank->place = UNDER_WAY;
        break;
    case UNDER_WAY:
        if (item->is_joining) {
            rank->place = INSIDE;
        } else if (page->collectives_held && !cut_is_behind(page, rank->calls)) {
            page->collectives_under_way = 0;
            rank->place = BEFORE;
        } else {
            rank->calls++;
            rank->counted = 0;
            rank->place = LET_IN;
        }
        break;
    case LET_IN:
        if (count_some(m, r))
            rank->place = COUNTED;
        break;
    case COUNTED:
        preload_page_calls(page)->counted++;
        rank->place = INSIDE;
        break;
    case INSIDE:
        if (!item->is_blocking || is_launched_by_peers(m, r, rank->next)) {
            preload_page_calls(page)->joining = 0;
            page->collectives_under_way = 0;
            rank->place = AFTER;
        }
        break;
    case AFTER:
        if (!item->is_awaited || is_idle(m, r, rank->next + 1)) {
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
        const struct item *item = &m->program[i];
        for (int r = 0; r < RANKS; r++) {
            const struct pretend_rank *rank = &m->ranks[r];
            bool is_begun = rank->next > i || (rank->next == i && rank->place >= UNDER_WAY);
            is_in[i] |= takes_part(m, r, i) && is_begun;
            for (int k = i + 1; k < LENGTH; k++)
                is_in[i] |= takes_part(m, r, i) && takes_part(m, r, k) && is_in[k];
        }
        m->bound[item->communicator] += is_in[i] && !item->is_messages && !item->is_joining;
        for (int from = 0; from < RANKS; from++)
            for (int to = 0; to < RANKS; to++)
                m->message_bound[item->communicator][from][to] += is_in[i] && item->sends[from][to];
    }
}

/* The number of calls is read some time before the rest. */
static void read_page(struct model *m)
{
    struct cut_rank *read = &m->read[m->daemon_at];
    uint64_t calls = read->calls;
    cut_rank_read(&m->ranks[m->daemon_at].whole.page, read);
    if (m->has_calls)
        read->calls = calls;
    m->has_joined |= read->is_joining;
    m->has_calls = !m->has_calls;
}

static void write_page(struct model *m)
{
    const struct cut_rank *answer = &m->read[m->daemon_at];
    struct preload_page *page = &m->ranks[m->daemon_at].whole.page;
    for (size_t i = 0; i < answer->n; i++)
        page->communicators[answer->of[i].communicator - 100].allowed = answer->of[i].allowed;
    preload_page_calls(page)->allowed = answer->calls_allowed;
}

static void step_daemon(struct model *m)
{
    if (m->daemon_does == HOLDS)
        m->ranks[m->daemon_at].whole.page.collectives_held = 1;
    if (m->daemon_does == READS)
        read_page(m);
    if (m->daemon_does == WRITES)
        write_page(m);
    if (m->has_calls || ++m->daemon_at < RANKS)
        return;
    m->daemon_at = 0;
    if (m->daemon_does == HOLDS)
        note_bound(m);
    if (m->daemon_does == READS && collective_cut(m->read, RANKS) == CUT_REACHED)
        m->daemon_does = IS_DONE;
    else
        m->daemon_does = m->daemon_does == READS ? WRITES : READS;
}

/* A call that launches nothing may be under way. */
static void forget_calls(struct pretend_rank *rank)
{
    rank->whole.page.collectives_under_way = 0;
    preload_page_calls(&rank->whole.page)->joining = 0;
}

static void check_kept(struct model *m)
{
    static struct pretend_rank before[RANKS];
    memcpy(before, m->ranks, sizeof before);
    for (int i = 0; i < 200; i++) {
        step_rank(m, (int)chance(RANKS));
        for (int r = 0; r < RANKS; r++) {
            assert_true(is_idle(m, r, m->ranks[r].next));
            assert_int_equal(m->ranks[r].calls, before[r].calls);
        }
    }
    for (int r = 0; r < RANKS; r++) {
        forget_calls(&m->ranks[r]);
        forget_calls(&before[r]);
        assert_memory_equal(&m->ranks[r].whole, &before[r].whole, sizeof before[r].whole);
        if (m->ranks[r].place == UNDER_WAY)
            m->ranks[r].place = BEFORE;
    }
}

static void check_bound(const struct model *m)
{
    for (int r = 0; r < RANKS; r++)
        for (int c = 0; c < COMMUNICATORS; c++) {
            const struct pretend_rank *rank = &m->ranks[r];
            assert_true(rank->whole.page.communicators[c].launched <= (uint64_t)m->bound[c]);
            for (int from = 0; from < RANKS; from++)
                for (int to = 0; to < RANKS; to++)
                    assert_true(
                        message_launched(rank, c, message_ends((uint32_t)from, (uint32_t)to)) <=
                        (uint64_t)m->message_bound[c][from][to]);
        }
}

/* Runs to the end once the hold is over: nothing was lost. */
static void check_end(struct model *m)
{
    for (int r = 0; r < RANKS; r++)
        m->ranks[r].whole.page.collectives_held = 0;
    for (int i = 0; i < 200 * RANKS * LENGTH; i++)
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
        unsigned of_daemon = 2 + chance(9), limit = 4000 * RANKS * LENGTH;
        for (unsigned before = chance(8 * RANKS * LENGTH); before > 0; before--)
            step_rank(&m, (int)chance(RANKS));
        while (m.daemon_does != IS_DONE) {
            assert_true(limit-- > 0); /* else a deadlock */
            if (chance(of_daemon) == 0)
                step_daemon(&m);
            else
                step_rank(&m, (int)chance(RANKS));
        }
        if (!m.has_joined)
            check_bound(&m);
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
        cmocka_unit_test(test_a_send_lets_its_receiver_in_by_one_call),
        cmocka_unit_test(test_all_go_on_while_one_joins),
        cmocka_unit_test(test_the_other_way_is_another_channel),
        cmocka_unit_test(test_a_call_that_may_still_come_is_taken_back_first),
        cmocka_unit_test(test_a_channel_to_elsewhere),
        cmocka_unit_test(test_a_page_is_read_as_it_is),
        cmocka_unit_test(test_random_programs_and_interleavings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
