/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts steps by marks: calls that come once in each (step_period.c).
 *
 *     collect windows ──> found: count by the marks ──> they stay away: collect again
 *            ^                      │ after 256, 4096, ... intervals
 *            │                      └──> compare them with a new window
 *            └── none: pause
 *
 * The first windows are short, so that a training of few calls is known soon; each is as long as
 * all before it. Two have to agree. Until one is full (65,536 calls), marks are forgotten if a
 * longer one has no period and they do not count all over it: nothing is known then.
 *
 * A compiler makes many calls before a training makes its first one. A long window that began with
 * these takes a training of few calls half a minute to fill. So where no marks are known, the calls
 * of the last second are examined, too; after each second one the last two, after each fourth one
 * four, after each eighth one eight: a slow training makes no six steps in less.
 *
 *     second    1   2   3   4   5   6   7   8
 *     examined  .   ..  .   ....    ..  .   ........
 *
 * Of those that find a period two have to agree, or one and a window. Their marks are used, and a
 * window of the same length begins: it judges them without what was before.
 *
 * Two of the three marks make a step, which ends when one comes that is not behind the last one:
 *
 *     A  B  C | A     C | A  B  C | A  A  A  A  A  A  B  C | A
 *             1         2         3                        4
 *
 * So a mark that is missing, since the library chose another kernel, costs nothing; and an
 * evaluation, which has forward marks only, counts nothing: one of them, or two and less than half
 * of the calls of a step. It is a break in a step. How long that step took matters: an evaluation
 * often follows a print of the loss, which waits for all steps that were launched before.
 *
 *     A  B  C  wait | A     A     A     A  B  C | A      from the last refused interval on
 *     A  B  wait    . . . . . . . .  C | A               until its calls were made, by their number
 *
 * It is no longer than the longest of the last steps, since a break may begin with a wait for the
 * disk. A break by its time only, as a suspension, counts as a step of the mean length.
 *
 * With other marks the unit of a step may be another one. They are replaced only if they have
 * stayed away for two minutes in which there was another period; or if a check finds marks that
 * count more or fewer steps, and all of the period that they were chosen for. Both are counted
 * where that period is. A JAX training that begins to share its GPU makes other calls beside its
 * own: a window with both parts has no period, or one of the other calls. So marks that count all
 * over a window stay, unless the intervals found have a fixed number of theirs: layers, batches.
 * So do marks that stay away once in it, in an evaluation, and not in each step.
 *
 * Marks of a short window may be calls that come in nearly all of its steps, by chance, or that
 * threads mostly launch in one order. Where a longer window has marks that count more steps all
 * over it, here and there, these are better marks of the same step: the count goes on with them.
 */
#include "preload/step_counter.h"

/* Of the first window, in calls. Those after it are as long as all before, up to a full one. */
enum { WINDOW_FIRST = 1024 };

/* Chosen. */
enum {
    REST_CALLS = 64, /* until the clock is read */
    RESTS_MAX = 3,
    PART_CALLS_MIN = 256, /* of a second, that are examined */
    PART_CALLS_MAX = 8192,
    ASTRAY_STEPS = 8, /* after the calls of 8 steps without one, the marks have stayed away */
    CHECK_FIRST = 256,
    CHECK_FACTOR = 16,
};
static const int64_t REPLACE_AFTER_US = 120 * INT64_C(1000000);
static const int64_t REST_US = 2 * INT64_C(1000000); /* after one full window; then twice that */
static const int64_t PART_US = INT64_C(1000000);

/* Of a collection that found nothing. Where its calls come at random, which costs most, each took
 * up to 200 ns, and those of a second 2 ms more: together 0.3 % of the time at most. */
enum { REST_US_PER_CALL = 256 };

/* Chosen: a longer interval is a break, by its calls or by its time. Launches return at once while
 * the GPU is behind, and every so often a call waits for all of them: of ten steps, nine took 0.1
 * ms and one 20 ms on an H200. So a short time is no break, however much longer it is. */
static const double BREAK_CALLS = 4, BREAK_TIMES = 16;
#define BREAK_LEAST_US INT64_C(1000000)

/* Of the calls of a step, after which it has been made. Chosen: a print has few calls. */
static const double MADE_CALLS = 1.1;

static const double MEAN_WEIGHT = 1 / 16.;     /* of a new step in the mean */
static const double LONGEST_WEIGHT = 1 / 256.; /* of a shorter step in the longest; both chosen */
static const double SAME_COUNT = 0.1;          /* windows differ by parts of a step */
static const double SAME_STEPS = 0.005;        /* of marks that need no better ones; chosen */

/* A few evaluations in a window that checks the marks look like steps there; gradients of two
 * batches double the count. Chosen: between the two. */
static const double SAME_UNIT = 1 / 3.;

/* Better marks of the same step are all over the window; those that they replace count some of what
 * they do. Chosen: gradients are accumulated of ten batches at most. */
static const double ALL_OVER = 0.9, ANOTHER_UNIT = 0.1;

/* An interval is a gap if it is GAP_TIMES as long as the one before, and GAP_OF_MEAN as the mean:
 * layers that were taken for steps end with the pass. With gaps of more than GAPS_MAX of a window's
 * calls marks are not all over it. All are chosen. */
static const double GAP_TIMES = 4, GAP_OF_MEAN = 2, GAPS_MAX = 0.2;

/* ---- what is watched ---- */

static void watch_marks(struct step_counter *counter)
{
    for (int i = 0; i < 256; i++)
        atomic_store_explicit(&counter->watched[i], 0, memory_order_relaxed);
    for (int i = 0; i < counter->marks.n; i++)
        atomic_store_explicit(
            &counter->watched[counter->marks.symbol[i] >> 24], 1, memory_order_relaxed);
}

static void set_due(struct step_counter *counter, uint64_t calls)
{
    uint64_t now = atomic_load_explicit(&counter->calls, memory_order_relaxed);
    atomic_store_explicit(&counter->due, now + calls, memory_order_relaxed);
}

/* Returns the calls of a step, in the mean. */
static double step_calls(const struct step_counter *counter)
{
    return counter->marks.of_a_step * counter->marks.calls;
}

static uint64_t astray_calls(const struct step_counter *counter)
{
    double calls = ASTRAY_STEPS * step_calls(counter);
    return calls < WINDOW_FIRST ? WINDOW_FIRST : (uint64_t)calls;
}

/* Returns after how many calls the program has made the present step, or does something else. */
static uint64_t made_calls(const struct step_counter *counter)
{
    return 1 + (uint64_t)(MADE_CALLS * step_calls(counter));
}

/* ---- windows ---- */

static void begin_part(struct step_counter *counter, int64_t now_us)
{
    counter->part[counter->parts % STEP_PARTS_MAX] = counter->window.used;
    counter->part_us = now_us;
}

static void begin_window(struct step_counter *counter, int64_t now_us)
{
    step_window_clear(&counter->window);
    counter->parts = 0;
    begin_part(counter, now_us);
}

static void begin_collecting(struct step_counter *counter, int64_t now_us)
{
    begin_window(counter, now_us);
    counter->collects_us = now_us;
    counter->is_collecting = true;
    counter->candidate.n = 0;
    counter->collected = 0;
    counter->goal = counter->is_settled ? STEP_WINDOW_MAX : WINDOW_FIRST;
    set_due(counter, 0);
}

static void stop_collecting(struct step_counter *counter, uint64_t calls)
{
    counter->is_collecting = false;
    watch_marks(counter);
    set_due(counter, calls);
}

/* The longer, the more often nothing was found; but few calls, or slow ones, cost little of the
 * time since the first of them. */
static void rest_a_while(struct step_counter *counter, int64_t now_us)
{
    int64_t calls = (int64_t)counter->collected + counter->window.used;
    int64_t longest_us = now_us + (REST_US << counter->rests);
    int64_t paid_us = counter->collects_us + calls * REST_US_PER_CALL;
    counter->is_settled = counter->marks.n > 0; /* a training may begin after a compilation */
    counter->rests_until_us = paid_us < longest_us ? paid_us : longest_us;
    stop_collecting(counter, REST_CALLS);
    if (counter->rests < RESTS_MAX)
        counter->rests++;
}

static void use_marks(struct step_counter *counter, const struct step_marks *marks)
{
    counter->marks = *marks;
    counter->unit++;
    counter->at_us = 0;
    counter->made_us = 0;
    counter->restart_us = 0;
    counter->mean_us = 0;
    counter->longest_us = 0;
    counter->walk = (struct step_walk){.last = -1};
    counter->intervals = 0;
    counter->all_intervals = 0;
    counter->next_check = CHECK_FIRST;
}

struct gaps {
    uint32_t n, calls;
};

static struct gaps find_gaps(const struct step_window *window, const struct step_marks *marks)
{
    struct step_walk walk = {.last = -1};
    uint32_t end = 0, before = (uint32_t)marks->calls;
    struct gaps gaps = {0};
    for (uint32_t i = 0; i <= window->used; i++) {
        if (i < window->used &&
            !step_walk_on(&walk, marks, window->name[window->calls[i]].symbol, i))
            continue;
        bool is_gap = i - end > GAP_TIMES * before && i - end > GAP_OF_MEAN * marks->calls;
        gaps.n += is_gap;
        gaps.calls += is_gap ? i - end : 0;
        before = i - end;
        end = i;
    }
    return gaps;
}

/* Are there intervals all over the window? */
static bool go_on(const struct step_window *window, const struct step_marks *marks)
{
    return find_gaps(window, marks).calls < GAPS_MAX * window->used;
}

/* Is there a gap in each of the steps that were found, but for a few? So it is with layers. An
 * evaluation is one gap, of many intervals. */
static bool have_gaps(const struct step_window *window, const struct step_marks *marks,
    const struct step_marks *found)
{
    return !go_on(window, marks) &&
           find_gaps(window, marks).n * found->of_a_step * 2 > found->intervals;
}

/* Is a number of steps another one than that of the steps that were found? */
static bool steps_differ(double steps, const struct step_marks *found, double tolerance)
{
    double expected = (double)found->intervals / found->of_a_step;
    double off = steps > expected ? steps - expected : expected - steps;
    return off > 1 + tolerance * expected;
}

/* Do the marks divide the calls into other steps than those that were found in them? Of the rest of
 * the window, where the program does something else, the period that was found says nothing. */
static bool marks_differ(const struct step_counter *counter, const struct step_marks *marks,
    const struct step_marks *found, double tolerance)
{
    uint32_t counted = step_window_count(&counter->window, marks, found->from, found->to);
    return steps_differ((double)counted / marks->of_a_step, found, tolerance);
}

/* Do the marks that were found count the period that they were chosen for? */
static bool is_counted(const struct step_marks *found)
{
    return !steps_differ((double)found->counted / found->of_a_step, found, SAME_COUNT);
}

/* Has nearly every interval of the outer marks the mean number of intervals of the inner ones?
 * Where the period is that was found. */
static bool divide_evenly(const struct step_window *window, const struct step_marks *inner,
    const struct step_marks *outer, const struct step_marks *found, double mean)
{
    struct step_walk in = {.last = -1}, out = {.last = -1};
    uint32_t here = 0, alike = 0, n = 0;
    for (uint32_t i = found->from; i < found->to; i++) {
        uint32_t symbol = window->name[window->calls[i]].symbol;
        here += step_walk_on(&in, inner, symbol, i);
        if (!step_walk_on(&out, outer, symbol, i))
            continue;
        double off = here > mean ? here - mean : mean - here;
        alike += off <= SAME_COUNT * mean;
        n++;
        here = 0;
    }
    return alike >= (1 - SAME_COUNT) * n;
}

/* Are the intervals of the marks in use parts of those found, or the other way round? So are
 * layers, or gradients of four batches. Calls that come in some steps only are not. */
static bool are_nested(const struct step_counter *counter, const struct step_marks *found)
{
    const struct step_window *window = &counter->window;
    const struct step_marks *marks = &counter->marks;
    double ours = step_window_count(window, marks, found->from, found->to), theirs = found->counted;
    return ours > theirs ? divide_evenly(window, marks, found, found, ours / theirs)
                         : divide_evenly(window, found, marks, found, theirs / ours);
}

/* Have the marks in use stayed away for long, or do they count something else? Marks that do not
 * count the period that they were chosen for say nothing of them. Those in use stay where they
 * count all over the window, and what was found has no fixed number of their intervals. */
static bool are_wrong(
    const struct step_counter *counter, const struct step_marks *found, int64_t now_us)
{
    uint64_t calls = atomic_load_explicit(&counter->calls, memory_order_relaxed);
    if (calls - counter->calls_at_step > astray_calls(counter))
        return now_us - counter->at_us > REPLACE_AFTER_US;
    return is_counted(found) && marks_differ(counter, &counter->marks, found, SAME_UNIT) &&
           (have_gaps(&counter->window, &counter->marks, found) || are_nested(counter, found));
}

/* The first marks are used once two windows agree about them. */
static bool are_good(const struct step_counter *counter, const struct step_marks *found)
{
    bool is_full = counter->window.used == STEP_WINDOW_MAX;
    return is_full || (counter->candidate.n > 0 &&
                          !marks_differ(counter, &counter->candidate, found, SAME_COUNT));
}

/* Is there no period where the marks should have one? A part of a step was taken for a step. */
static bool are_refuted(const struct step_counter *counter)
{
    return !counter->is_settled && !go_on(&counter->window, &counter->marks);
}

/* Do the marks lack intervals that others find, here and there? In an evaluation they lack some in
 * a row, or one after each n-th step. */
static bool miss_some(const struct step_window *window, const struct step_marks *marks,
    const struct step_marks *found)
{
    struct step_walk in = {.last = -1}, out = {.last = -1};
    uint32_t here = 0, n = 0, missed = 0, runs = 0, last = 0, apart = 0, evenly = 0;
    for (uint32_t i = found->from; i < found->to; i++) {
        uint32_t symbol = window->name[window->calls[i]].symbol;
        here += step_walk_on(&in, marks, symbol, i);
        if (!step_walk_on(&out, found, symbol, i))
            continue;
        n++;
        if (here == 0) {
            missed++;
            runs += n > last + 1;
            evenly += apart > 1 && n - last == apart;
            apart = n - last;
            last = n;
        }
        here = 0;
    }
    return runs >= missed * (1 - (double)missed / n) / 2 && evenly < missed / 2;
}

/* Are the marks that were found better ones of the same step? They count more all over the window,
 * but not another unit. */
static bool are_better(const struct step_counter *counter, const struct step_marks *found)
{
    const struct step_window *window = &counter->window;
    if (found->of_a_step != counter->marks.of_a_step || !is_counted(found) ||
        found->to - found->from < ALL_OVER * window->used)
        return false;
    double ours = step_window_count(window, &counter->marks, found->from, found->to);
    return found->counted > 1 + ours * (1 + SAME_STEPS) && ours > ANOTHER_UNIT * found->counted &&
           miss_some(window, &counter->marks, found);
}

/* Other marks of the same step: what was counted, and its mean, stay. */
static void refine_marks(struct step_counter *counter, const struct step_marks *marks)
{
    counter->marks = *marks;
    counter->walk = (struct step_walk){.last = -1};
    counter->intervals = 0;
}

/* What the window says of the marks in use. */
static void judge_marks(
    struct step_counter *counter, const struct step_marks *found, int64_t now_us)
{
    bool has_marks = counter->marks.n > 0;
    if (found->n == 0 ? has_marks && are_refuted(counter)
        : has_marks   ? are_wrong(counter, found, now_us)
                      : are_good(counter, found))
        use_marks(counter, found);
    else if (has_marks && found->n > 0 && are_better(counter, found))
        refine_marks(counter, found);
}

static void examine_window(struct step_counter *counter, int64_t now_us)
{
    struct step_marks found = step_period_find(&counter->window, 0);
    judge_marks(counter, &found, now_us);
    counter->candidate = found;
    if (counter->window.used < STEP_WINDOW_MAX) {
        counter->collected += counter->window.used;
        counter->goal = counter->collected;
        begin_window(counter, now_us);
        return;
    }
    counter->is_settled = true;
    if (found.n == 0 ||
        step_window_count(&counter->window, &counter->marks, 0, STEP_WINDOW_MAX) == 0)
        rest_a_while(counter, now_us); /* an evaluation, perhaps: the marks may come back */
    else
        stop_collecting(counter, astray_calls(counter));
}

/* Is there a part to examine beside the window, which takes long to fill? */
static bool is_part_over(const struct step_counter *counter, int64_t now_us)
{
    return counter->marks.n == 0 && now_us - counter->part_us >= PART_US &&
           counter->window.used - counter->part[counter->parts % STEP_PARTS_MAX] >= PART_CALLS_MIN;
}

/* Returns the first call of the last 1, 2, 4 or 8 seconds, the last of which is over: as many as
 * divide the number of seconds. */
static uint32_t parts_from(const struct step_counter *counter)
{
    uint32_t over = counter->parts + 1, seconds = 1;
    while (seconds < STEP_PARTS_MAX && over % (2 * seconds) == 0)
        seconds *= 2;
    return counter->part[(over - seconds) % STEP_PARTS_MAX];
}

static void examine_part(struct step_counter *counter, int64_t now_us)
{
    uint32_t used = counter->window.used, calls = used - parts_from(counter);
    uint32_t examined = calls < PART_CALLS_MAX ? calls : PART_CALLS_MAX;
    struct step_marks found = step_period_find(&counter->window, used - examined);
    judge_marks(counter, &found, now_us);
    if (found.n > 0) /* too few steps, or calls of before them, say nothing of a candidate */
        counter->candidate = found;
    if (counter->marks.n > 0) {
        begin_window(counter, now_us);
        return;
    }
    counter->parts++;
    begin_part(counter, now_us);
}

static void collect_call(struct step_counter *counter, uint32_t symbol, int64_t now_us)
{
    if (!step_window_add(&counter->window, symbol))
        rest_a_while(counter, now_us);
    else if (counter->window.used == counter->goal)
        examine_window(counter, now_us);
    else if (is_part_over(counter, now_us))
        examine_part(counter, now_us);
}

static void collect_or_rest(struct step_counter *counter, int64_t now_us)
{
    if (now_us < counter->rests_until_us)
        set_due(counter, REST_CALLS);
    else
        begin_collecting(counter, now_us);
}

/* ---- steps ---- */

/* The step in which other calls came, a break, took so long: before the break, or after it. */
static double broken_step_us(const struct step_counter *counter, int64_t now_us)
{
    uint32_t n = counter->marks.of_a_step;
    if (counter->restart_us > counter->at_us)
        return (double)(now_us - counter->restart_us) * n / (n - counter->restart_intervals);
    if (counter->made_us == 0) /* no call of the step was noted, which threads may cause */
        return counter->mean_us;
    double made_us = (double)(counter->made_us - counter->at_us);
    return made_us < counter->longest_us ? made_us : counter->longest_us;
}

static void learn_step(struct step_counter *counter, double took_us)
{
    bool is_longest = took_us > counter->longest_us;
    counter->mean_us += (took_us - counter->mean_us) * (counter->mean_us > 0 ? MEAN_WEIGHT : 1);
    counter->longest_us += (took_us - counter->longest_us) * (is_longest ? 1 : LONGEST_WEIGHT);
}

/* How long each of the steps took that have ended: without a break. */
static double took_us(struct step_counter *counter, uint64_t steps, uint64_t calls, int64_t now_us)
{
    double us = (double)(now_us - counter->at_us) / (double)steps;
    double calls_max = BREAK_CALLS * step_calls(counter);
    if (counter->mean_us > 0 && calls_max > 0 &&
        (double)(calls - counter->calls_at_step) > calls_max)
        return broken_step_us(counter, now_us);
    if (counter->mean_us > 0 && now_us - counter->at_us > BREAK_LEAST_US &&
        us > BREAK_TIMES * counter->mean_us)
        return counter->mean_us;
    learn_step(counter, us);
    return us;
}

/* Steps have ended: adds the time since the last one. */
static void count_steps(struct step_counter *counter, uint64_t steps, int64_t now_us)
{
    uint64_t calls = atomic_load_explicit(&counter->calls, memory_order_relaxed);
    if (counter->at_us > 0) {
        counter->steps += steps;
        counter->timed_us += (int64_t)(took_us(counter, steps, calls, now_us) * (double)steps);
    }
    counter->at_us = now_us;
    counter->made_us = 0;
    counter->calls_at_step = calls;
    counter->rests = 0;
    counter->rests_until_us = 0;
}

/* An interval has ended. Returns whether a step has. */
static bool end_interval(struct step_counter *counter, int64_t now_us)
{
    uint64_t before = counter->steps;
    counter->all_intervals++;
    if (++counter->intervals >= counter->marks.of_a_step) {
        counter->intervals = 0;
        count_steps(counter, 1, now_us);
    }
    if (counter->is_collecting)
        return counter->steps != before;
    set_due(counter, counter->made_us ? astray_calls(counter) : made_calls(counter));
    if (counter->all_intervals >= counter->next_check) {
        counter->next_check *= CHECK_FACTOR;
        begin_collecting(counter, now_us);
    }
    return counter->steps != before;
}

/* An interval that was no whole one has ended. */
static void note_restart(struct step_counter *counter, int64_t now_us)
{
    counter->restart_us = now_us;
    counter->restart_intervals = counter->intervals;
}

/* Returns whether the calls of the present step were not made before, and are now. */
static bool note_made(struct step_counter *counter, uint64_t calls, int64_t now_us)
{
    bool is_made = counter->at_us > 0 && counter->made_us == 0 &&
                   calls - counter->calls_at_step >= made_calls(counter);
    counter->made_us = is_made ? now_us : counter->made_us;
    return is_made;
}

bool step_counter_note(struct step_counter *counter, uint32_t symbol, int64_t now_us)
{
    uint64_t calls = atomic_load_explicit(&counter->calls, memory_order_relaxed);
    uint32_t unit = counter->unit;
    bool has_ended = step_walk_on(&counter->walk, &counter->marks, symbol, calls);
    bool has_counted = has_ended && end_interval(counter, now_us);
    if (!has_ended && counter->walk.at == calls)
        note_restart(counter, now_us);
    bool is_made = note_made(counter, calls, now_us);
    if (counter->is_collecting)
        collect_call(counter, symbol, now_us);
    else if (is_made)
        set_due(counter, astray_calls(counter));
    else if (calls >= atomic_load_explicit(&counter->due, memory_order_relaxed))
        collect_or_rest(counter, now_us);
    return has_counted || counter->unit != unit;
}

void step_counter_report(struct step_counter *counter, uint64_t steps, int64_t now_us)
{
    if (!counter->reported) {
        counter->is_collecting = false;
        use_marks(counter, &(struct step_marks){.n = 0});
        watch_marks(counter);
        atomic_store_explicit(&counter->due, UINT64_MAX, memory_order_relaxed);
    }
    counter->reported += steps;
    count_steps(counter, steps, now_us);
}
