/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the step in a sequence of driver calls. Each letter stands for a kernel:
 *
 *     a bb c e ddd f | a bb c e ddd f | a bb c e ddd f       fixed: every period is alike
 *     a bbbb c e f   | a b c e f      | a bbb c e f          sequences of several lengths
 *     a b c a b c a b c a b c o | a b c a b c ...            gradients of four batches, then "o"
 *
 * The idea: divide the sequence at each occurrence of one call, the divider, and see what the
 * intervals have in common. Three shares of all calls say how good a divider is:
 *
 *     presence    the share of intervals in which a call occurs
 *     constancy   of those in which it occurs as often as in the interval before
 *     patchiness  calls that are in many intervals in a row, then in none of many; or in a few
 *                 intervals that are much longer than the others
 *
 * A call of every layer divides a step into its layers. The presence is low, and patchy: the
 * intervals of the forward pass have no backward kernels. The call "a" of a step has a presence of
 * nearly 1. So has whatever happens every 50th step, as a print of the loss: the longer an interval
 * is, the more it contains. Therefore the most frequent divider is the step, unless a rarer one has
 * clearly more presence, and is also more constant or less patchy. It is not if inputs of several
 * lengths make the libraries choose other kernels from step to step: a longer interval has more of
 * them, but they are spread at random.
 *
 * A window that is shorter than seven steps shows layers, embedding tables or parameters only. What
 * gives them away is that a pass is unlike the next one: they are patchy. A short window may be all
 * in one pass; so there each interval has to have what a step has and a layer has not, a batch from
 * the host, a wait for the GPU or a graph, and all intervals the same calls. Where nothing is like
 * a step, nothing is found.
 *
 * An optimizer without fusion may make most of the calls: the same few for each parameter. Its
 * intervals are steady and not patchy, but the window has more different calls that come in few
 * intervals, evenly apart, than calls that come in most. A print has few.
 *
 * A loss that is read in each step, and again for a print, divides some steps in two. No other call
 * comes once in each interval then; so a little rarer divider is taken for which one does, unless
 * the first one has a twin.
 *
 * Threads that call at the same time change the order from step to step. A thread is a few steps
 * ahead of another one at most, so two calls of a step have come about equally often at any place
 * of the window: they are twins. Calls that are as frequent by chance drift apart.
 *
 *     copy     1 2 3   4 5     6 7 8        ahead of the graph by 1 to 3 all over the window
 *     graph        1 2   3 4 5     6 7
 *     others     .   . .     .   .   .      in most steps: they are behind after some
 *
 * Where one of the twins is a call of the host, they are a step: also in a short window, though
 * their intervals are unlike each other, and though kernels that come in most steps, or the prints,
 * have intervals that are more alike.
 *
 * A fused optimizer is one call in hundreds and changes neither share. So a call that comes in
 * exactly every r-th interval, r from 2 to 8, makes these r intervals one step: gradients are
 * accumulated, or a GAN trains its generator once for r batches. What comes less often than every
 * 8th step is taken for a print or an evaluation.
 */
#include "preload/step_counter.h"

#include <math.h>
#include <string.h>

/* Chosen: fewer intervals are no period; the passes over the window take 5 ms at most. */
enum {
    INTERVALS_MIN = 6,
    DIVIDERS_MAX = 48,
    DIVIDERS_OF_A_COUNT = 2,
    DIVIDERS_ALIKE = 8, /* of those that come about as often: threads lose some calls */
    APART_MAX = 8,
    MULTIPLES_MIN = 3
};

/* Chosen, with the sequences of tests/unit/preload/test_step_counter.c. */
static const double PRESENCE_MIN = 0.5, MORE = 0.1, PATCHES_MIN = 4, EVEN_FACTOR = 4;

/* Layers, tables and parameters in the calls of sixteen networks (four are in tests/data/steps) had
 * a patchiness of 0.24 and more in full windows; steps of 0.17 at most, with evaluations, and a
 * presence of 1 where each makes the same calls. Chosen: between them. */
static const double PRESENCE_OF_STEPS = 0.9, PATCHINESS_OF_STEPS = 0.2;

/* Of calls that come at random, none comes once in each interval. Chosen. */
static const double CONSTANCY_OF_ONE_MARK = 0.5;

/* Chosen: a rarer divider than that is no step with some extra calls. */
static const double LITTLE_RARER = 2 / 3.;

/* Chosen: a thread is a few steps ahead of another one at most, and one of 500 calls may be lost.
 * Of 128 calls at random one kind is further ahead of another one; so is the read of a loss that
 * comes once more in each tenth step. */
enum { LEAD_MAX = 6, TWINS_MIN = 128 };
static const double LOST = 1 / 500.;

/* Of the intervals that have to be alike for a mark, or a multiple of the step. Chosen: steps that
 * lack a mark are counted by the two others, unless these are missing, too. */
static const double RELIABLE = 0.97;

/* Chosen: a mark that one of a hundred intervals lacks is as good as one a tenth of a step away. */
static const double LACKING_WEIGHT = 10;

/* Chosen: with more intervals than that which its marks do not count, two are tried. */
static const double MISFIT_MAX = 0.01;

/* Chosen: rarer calls are no more of those that come about as often. */
static const double ALIKE = 0.95;

/* ---- the window ---- */

static bool is_work(uint32_t symbol)
{
    return symbol & STEP_IS_WORK;
}

void step_window_clear(struct step_window *window)
{
    memset(window->slots, 0, sizeof window->slots);
    window->used = window->names = window->from = 0;
}

static double examined_calls(const struct step_window *window)
{
    return window->used - window->from;
}

bool step_window_add(struct step_window *window, uint32_t symbol)
{
    uint32_t slot = symbol / 4 % STEP_TABLE_SIZE;
    while (window->slots[slot] && window->name[window->slots[slot] - 1].symbol != symbol)
        slot = (slot + 1) % STEP_TABLE_SIZE;
    if (!window->slots[slot]) {
        if (window->names == STEP_NAMES_MAX)
            return false;
        window->name[window->names] = (struct step_name){.symbol = symbol};
        window->slots[slot] = (uint16_t)++window->names;
    }
    uint16_t name = (uint16_t)(window->slots[slot] - 1);
    window->calls[window->used++] = name;
    return true;
}

/* ---- marks in a sequence ---- */

/* Chosen: a forward pass alone is a third of the calls of a step, with few layers up to 45 %. */
static const double WHOLE = 0.5;

/* All marks make an interval; so do two of three, unless it has hardly any other calls: a forward
 * pass may have two of them. */
static bool is_whole(const struct step_walk *walk, const struct step_marks *marks, uint64_t at)
{
    int seen = 0;
    for (int i = 0; i < marks->n; i++)
        seen += walk->seen >> i & 1;
    bool is_long = (double)(at - walk->at) >= WHOLE * marks->calls;
    return seen == marks->n || (seen >= 2 && is_long);
}

bool step_walk_on(
    struct step_walk *walk, const struct step_marks *marks, uint32_t symbol, uint64_t at)
{
    int mark = 0;
    while (mark < marks->n && marks->symbol[mark] != symbol)
        mark++;
    if (mark == marks->n)
        return false;
    bool ends = mark <= walk->last, is_step = ends && is_whole(walk, marks, at);
    walk->seen = (ends ? 0 : walk->seen) | 1u << mark;
    walk->at = ends ? at : walk->at;
    walk->last = mark;
    return is_step;
}

uint32_t step_window_count(
    const struct step_window *window, const struct step_marks *marks, uint32_t from, uint32_t to)
{
    struct step_walk walk = {.last = -1};
    uint32_t n = 0;
    for (uint32_t i = from; i < to; i++)
        n += step_walk_on(&walk, marks, window->name[window->calls[i]].symbol, i);
    return n;
}

/* ---- one divider ---- */

struct division {
    uint16_t divider;
    uint32_t intervals;
    uint32_t calls;      /* in all intervals */
    uint32_t from, to;   /* the first call of the first interval, and the one behind the last */
    uint32_t long_calls; /* of these, in intervals of several times the mean length */
    double presence, constancy, patchiness; /* the last is at most 2 */
    bool has_host_call; /* each interval: a batch from the host, a wait for the GPU, a graph */
    bool is_part;       /* each interval: of a step */
    bool has_mark;      /* each interval: a call, beside the divider, once */
    bool has_twin;      /* a call comes once for each divider, in whatever order */
    bool has_host_twin; /* one of these two is what steps make, and layers do not */
};

/* The interval that the call was last in has ended. */
static void end_interval(struct step_name *name)
{
    name->once += name->here == 1;
    name->alike += name->before != 0 && name->here == name->before;
    name->all += name->here;
    int32_t lead = (int32_t)name->all - (int32_t)name->last;
    name->lead_max = lead > name->lead_max ? lead : name->lead_max;
}

/* A call comes for the first time in interval `k`, from 1. */
static void enter_interval(struct step_name *name, uint32_t k, uint32_t offset)
{
    uint32_t apart = k - name->last;
    if (name->last) {
        end_interval(name);
        if (!name->apart)
            name->apart = apart;
        name->evenly += apart == name->apart;
    }
    int32_t lead = (int32_t)name->all - (int32_t)k; /* before its calls here */
    name->lead_min = !name->last || lead < name->lead_min ? lead : name->lead_min;
    name->lead_max = name->last ? name->lead_max : lead;
    name->runs += !name->last || apart > 1;
    name->before = name->last && apart == 1 ? name->here : 0;
    name->here = 0;
    name->last = k;
    name->offset = offset;
    name->seen++;
}

static void clear_names(struct step_window *window)
{
    for (uint32_t i = 0; i < window->names; i++) {
        struct step_name *name = &window->name[i];
        *name = (struct step_name){.symbol = name->symbol, .count = name->count};
    }
}

/* Fills in what the names of the window have in common in its intervals, which begin with the
 * divider. What is before the first and after the last divider is of no interval. */
static struct division divide_window(struct step_window *window, uint16_t divider)
{
    struct division division = {.divider = divider};
    uint32_t left = window->name[divider].count, k = 0, start = 0;
    clear_names(window);
    for (uint32_t at = window->from; at < window->used; at++) {
        uint16_t call = window->calls[at];
        struct step_name *name = &window->name[call];
        if (call == divider) {
            bool is_long = k > 0 && (at - start) * (double)window->name[divider].count >
                                        EVEN_FACTOR * examined_calls(window);
            division.long_calls += is_long ? at - start : 0;
            division.from = k == 0 ? at : division.from;
            division.to = start = at;
            k++;
            if (--left == 0)
                break;
        }
        if (k == 0)
            continue;
        if (name->last != k)
            enter_interval(name, k, at - start);
        name->here++;
        division.calls++;
    }
    division.intervals = k - 1;
    return division;
}

/* Does the name come in fewer runs than half of what it would by chance? */
static bool is_patchy(const struct step_name *name, double intervals)
{
    double by_chance = name->seen * (1 - name->seen / intervals);
    return by_chance > PATCHES_MIN && name->runs < by_chance / 2;
}

/* Does the name come in few intervals, evenly apart? */
static bool is_rare(const struct step_name *name, double intervals)
{
    return name->seen >= INTERVALS_MIN && name->seen * APART_MAX < intervals &&
           name->evenly >= (name->seen - 1) / 2;
}

/* Does the name come once in nearly every interval? */
static bool is_mark(const struct step_name *name, const struct division *division)
{
    return name->once >= RELIABLE * (division->intervals - 1);
}

/* Does the call come once for each divider, though before or after others? */
static bool is_twin(const struct step_name *name, uint32_t intervals)
{
    double lead_max = LEAD_MAX + LOST * intervals;
    return intervals >= TWINS_MIN && name->lead_max - name->lead_min <= lead_max &&
           name->all + name->here + lead_max >= intervals;
}

static void judge_division(const struct step_window *window, struct division *division)
{
    double n = division->intervals, present = 0, constant = 0, patchy = 0;
    uint32_t rare = 0, usual = 0, marks = 0, divider = window->name[division->divider].symbol;
    for (uint32_t i = 0; i < window->names; i++) {
        const struct step_name *name = &window->name[i];
        present += name->count * (name->seen / n);
        constant += name->count * (name->alike / (n - 2));
        patchy += is_patchy(name, n) && !is_twin(name, division->intervals) ? name->count : 0;
        rare += is_rare(name, n);
        usual += name->seen >= PRESENCE_MIN * n;
        marks += i != division->divider && is_mark(name, division);
        bool has_twin = i != division->divider && is_twin(name, division->intervals);
        division->has_twin |= has_twin;
        division->has_host_twin |= has_twin && (name->symbol | divider) & STEP_IS_HOST;
        division->has_host_call |= name->symbol & STEP_IS_HOST && is_mark(name, division);
    }
    division->presence = present / examined_calls(window);
    division->constancy = constant / examined_calls(window);
    division->patchiness = (patchy + division->long_calls) / examined_calls(window);
    division->is_part = !division->has_host_call && rare > usual;
    division->has_mark = marks > 0;
}

/* ---- the best divider ---- */

static void count_names(struct step_window *window)
{
    for (uint32_t i = 0; i < window->names; i++)
        window->name[i].count = 0;
    for (uint32_t at = window->from; at < window->used; at++)
        window->name[window->calls[at]].count++;
}

/* Fills `even`: how many of the distances of a name are near their mean. */
static void count_even_distances(struct step_window *window)
{
    clear_names(window);
    for (uint32_t at = window->from; at < window->used; at++) {
        struct step_name *name = &window->name[window->calls[at]];
        double mean = examined_calls(window) / name->count, distance = at - name->last;
        name->evenly += name->seen && distance > mean / EVEN_FACTOR &&
                        distance < mean * EVEN_FACTOR;
        name->seen = 1;
        name->last = at;
    }
}

static bool may_divide(const struct step_name *name)
{
    return name->count > INTERVALS_MIN && name->evenly >= (name->count - 1) / 2;
}

/* Of the names that may divide, the largest count below another one; 0: there is none. */
static uint32_t next_count(const struct step_window *window, uint32_t below)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < window->names; i++)
        if (may_divide(&window->name[i]) && window->name[i].count < below &&
            window->name[i].count > count)
            count = window->name[i].count;
    return count;
}

/* Returns how many names that may divide have this count, at most `n_max`. */
static int list_names(
    const struct step_window *window, uint32_t count, uint16_t *ret_names, int n_max)
{
    int n = 0;
    for (uint32_t i = 0; i < window->names && n < n_max; i++)
        if (may_divide(&window->name[i]) && window->name[i].count == count)
            ret_names[n++] = (uint16_t)i;
    return n;
}

/* The names that may divide, the most frequent first. Of those with one count, and of those that
 * come about as often, only a few, since they are likely to divide alike. */
static int list_dividers(struct step_window *window, uint16_t dividers[DIVIDERS_MAX])
{
    int n = 0, before = 0;
    double most = UINT32_MAX;
    count_even_distances(window);
    for (uint32_t count = next_count(window, UINT32_MAX); count > 0;
         count = next_count(window, count)) {
        if (count < ALIKE * most) {
            most = count;
            before = n;
        }
        int alike_end = before + DIVIDERS_ALIKE;
        int end = alike_end < DIVIDERS_MAX ? alike_end : DIVIDERS_MAX;
        n += list_names(window, count, &dividers[n],
            end - n < DIVIDERS_OF_A_COUNT ? end - n : DIVIDERS_OF_A_COUNT);
    }
    return n;
}

/* Does the rarer one divide by calls beside the steps: by some that most steps have, or by those of
 * a print? Of batches and layers more than eight are no step either, but layers have no host call.
 */
static bool is_no_step(const struct division *rarer, const struct division *division)
{
    bool is_little_rarer = rarer->intervals >= LITTLE_RARER * division->intervals;
    bool is_much_rarer = rarer->intervals * APART_MAX < division->intervals;
    return (division->has_host_twin && is_little_rarer) ||
           ((division->has_host_call || division->has_host_twin) && is_much_rarer);
}

/* With few intervals some calls come equally often in two of them by chance. */
static bool is_better(const struct division *rarer, const struct division *division)
{
    double by_chance = 1.0 / rarer->intervals;
    bool is_steadier = rarer->constancy > division->constancy + MORE / 2 + by_chance;
    return rarer->presence > division->presence + MORE &&
           ((is_steadier && !is_no_step(rarer, division)) ||
               rarer->patchiness < division->patchiness - MORE);
}

/* The most frequent one than which no rarer one is better; NULL: there is none. Where no other call
 * comes once in each of its intervals, nor as often, but one does in those of a little rarer one,
 * that is taken: the divider of the first comes in a step, and now and then another time. */
static const struct division *choose_division(const struct division *tried, int n)
{
    const struct division *first = NULL;
    for (int i = 0; i < n && (!first || tried[i].intervals >= LITTLE_RARER * first->intervals);
         i++) {
        bool is_best = tried[i].presence >= PRESENCE_MIN && !tried[i].is_part;
        for (int k = i + 1; k < n && is_best; k++)
            is_best = !is_better(&tried[k], &tried[i]);
        if (is_best && (tried[i].has_mark || (!first && tried[i].has_twin)))
            return &tried[i];
        if (is_best && !first)
            first = &tried[i];
    }
    return first;
}

/* Returns whether there is one. The names of the window are those of its intervals then. */
static bool find_division(struct step_window *window, struct division *ret_division)
{
    struct division tried[DIVIDERS_MAX];
    uint16_t dividers[DIVIDERS_MAX];
    int n = list_dividers(window, dividers);
    for (int i = 0; i < n; i++) {
        tried[i] = divide_window(window, dividers[i]);
        judge_division(window, &tried[i]);
    }
    const struct division *chosen = choose_division(tried, n);
    if (!chosen)
        return false;
    *ret_division = *chosen;
    divide_window(window, chosen->divider);
    return true;
}

/* How many intervals are a step, since a kernel comes in every r-th one only; 1: there is none. */
static uint32_t find_multiple(const struct step_window *window, uint32_t intervals)
{
    uint32_t found = 1;
    for (uint32_t i = 0; i < window->names; i++) {
        const struct step_name *name = &window->name[i];
        bool is_even = name->apart >= 2 && name->apart <= APART_MAX &&
                       name->seen >= MULTIPLES_MIN && name->evenly >= RELIABLE * (name->seen - 1) &&
                       (name->seen + 1) * name->apart >= RELIABLE * intervals;
        if (is_even && is_work(name->symbol) && (found == 1 || name->apart < found))
            found = name->apart;
    }
    return found;
}

/* ---- marks ---- */

/* How far the name is from a place in the interval, in calls, and how often it is missing. */
static double weigh_mark(
    const struct step_name *name, const struct division *division, double place)
{
    double intervals = division->intervals;
    double lacking = (intervals - name->once) / intervals * division->calls / intervals;
    return fabs(name->offset - place) + LACKING_WEIGHT * lacking;
}

static bool has_symbol(const struct step_marks *marks, uint32_t symbol)
{
    bool has = false;
    for (int i = 0; i < marks->n; i++)
        has |= marks->symbol[i] == symbol;
    return has;
}

/* The best name for another mark, about this place; the divider: there is none. */
static uint16_t find_mark(const struct step_window *window, const struct division *division,
    double place, const struct step_marks *marks)
{
    uint16_t found = division->divider;
    double least_bad = INFINITY;
    for (uint32_t i = 0; i < window->names; i++) {
        const struct step_name *name = &window->name[i];
        if (!is_mark(name, division) || has_symbol(marks, name->symbol))
            continue;
        double bad = weigh_mark(name, division, place);
        if (bad < least_bad) {
            found = (uint16_t)i;
            least_bad = bad;
        }
    }
    return found;
}

/* At most `n` marks. */
static struct step_marks choose_marks(
    const struct step_window *window, const struct division *division, int n)
{
    double calls = (double)division->calls / division->intervals;
    struct step_marks marks = {.n = 1,
        .symbol = {window->name[division->divider].symbol},
        .intervals = division->intervals,
        .of_a_step = find_multiple(window, division->intervals),
        .from = division->from,
        .to = division->to,
        .calls = calls};
    uint32_t offsets[STEP_MARKS_MAX] = {0};
    for (int i = 1; i < n; i++) {
        uint16_t name = find_mark(window, division, calls * i / n, &marks);
        if (name == division->divider)
            break;
        offsets[marks.n] = window->name[name].offset;
        marks.symbol[marks.n++] = window->name[name].symbol;
    }
    if (marks.n == STEP_MARKS_MAX && offsets[2] < offsets[1]) {
        uint32_t symbol = marks.symbol[1];
        marks.symbol[1] = marks.symbol[2];
        marks.symbol[2] = symbol;
    }
    marks.counted = step_window_count(window, &marks, marks.from, marks.to);
    return marks;
}

/* How many intervals of the division the marks lack, or count too many. */
static double find_misfit(const struct step_marks *marks)
{
    return fabs((double)marks->intervals - marks->counted - 1); /* the last one has no end there */
}

/* Marks a third of a step apart: a pass without gradients, as an evaluation, has one of them at
 * most. Threads may launch two marks in one order or the other, which ends an interval too early;
 * but not the divider and one more. */
static struct step_marks choose_fitting_marks(
    const struct step_window *window, const struct division *division)
{
    struct step_marks three = choose_marks(window, division, STEP_MARKS_MAX);
    if (three.n < STEP_MARKS_MAX || find_misfit(&three) <= 1 + MISFIT_MAX * three.intervals)
        return three;
    struct step_marks two = choose_marks(window, division, STEP_MARKS_MAX - 1);
    return find_misfit(&two) < find_misfit(&three) / 2 ? two : three;
}

/* Are the intervals steps, and no parts of steps? */
static bool are_steps(const struct step_window *window, const struct division *division)
{
    bool is_full = window->used - window->from == STEP_WINDOW_MAX;
    return division->patchiness < PATCHINESS_OF_STEPS &&
           (is_full || division->has_host_twin ||
               (division->presence >= PRESENCE_OF_STEPS && division->has_host_call));
}

struct step_marks step_period_find(struct step_window *window, uint32_t from)
{
    struct division division;
    window->from = from;
    count_names(window);
    if (!find_division(window, &division))
        return (struct step_marks){.n = 0};
    if (!are_steps(window, &division))
        return (struct step_marks){.n = 0};
    struct step_marks marks = choose_fitting_marks(window, &division);
    if (marks.n == 1 && division.constancy < CONSTANCY_OF_ONE_MARK && !division.has_twin)
        marks.n = 0;
    return marks;
}
