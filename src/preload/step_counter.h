/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the steps of a training by its calls of the driver (docs/steps.md). Pure: it has no clock
 * and allocates nothing. All zero is a valid state, that of a process which has called nothing yet.
 */
#ifndef COLLOC_PRELOAD_STEP_COUNTER_H
#define COLLOC_PRELOAD_STEP_COUNTER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum step_call {
    STEP_COPY,   /* from the host to the GPU */
    STEP_SYNC,   /* of a stream or a context */
    STEP_LAUNCH, /* of a kernel, by its function */
    STEP_GRAPH,  /* of a graph, by its handle */
};

enum {
    STEP_WINDOW_MAX = 65536, /* calls: six steps of 10,000 calls each */
    STEP_NAMES_MAX = 1024,   /* different calls; a PyTorch training has 50 to 400 */
    STEP_TABLE_SIZE = 4 * STEP_NAMES_MAX,
    STEP_MARKS_MAX = 3,
    STEP_PARTS_MAX = 8, /* seconds that are examined together */
};

/* What one pass over the window finds out of each different call (step_period.c). */
struct step_name {
    uint32_t symbol;
    uint32_t count;        /* in what is examined of the window */
    uint32_t seen;         /* intervals that have it */
    uint32_t once;         /* of these, how many have it once */
    uint32_t alike;        /* of these, how many have it as often as the interval before */
    uint32_t runs;         /* of intervals in a row that have it */
    uint32_t evenly;       /* how often it came again after `apart` intervals */
    uint32_t last, apart;  /* interval of its last occurrence; distance of the first two */
    uint32_t here, before; /* occurrences in that interval and the one before */
    uint32_t all;          /* occurrences in the intervals before that one */
    int32_t lead_min;      /* how many more there were so far than intervals: at least, */
    int32_t lead_max;      /* and at most */
    uint32_t offset;       /* of its first occurrence in that interval, in calls */
};

struct step_window {
    uint32_t used;                   /* of `calls` */
    uint32_t from;                   /* of these, the first one that is examined */
    uint32_t names;                  /* of `name` */
    uint16_t slots[STEP_TABLE_SIZE]; /* a hash table: index into `name` + 1; 0: empty */
    struct step_name name[STEP_NAMES_MAX];
    uint16_t calls[STEP_WINDOW_MAX]; /* indices into `name`, the oldest first */
};

/* The calls by which steps are counted, in their order in a step. */
struct step_marks {
    int n; /* 0: no period is known */
    uint32_t symbol[STEP_MARKS_MAX];
    uint32_t intervals; /* between them in the window that they were found in */
    uint32_t from, to;  /* of that window, what these cover: calls */
    uint32_t counted;   /* intervals that they count there */
    uint32_t of_a_step; /* how many intervals are a step */
    double calls;       /* of an interval, in the mean */
};

/* Where a sequence is between its marks. */
struct step_walk {
    int last;      /* index of the last mark that came; before the first: -1 */
    unsigned seen; /* marks of the present interval, a bit each */
    uint64_t at;   /* the call that it began with */
};

struct step_counter {
    /* Read with every call, without a lock. */
    _Atomic uint64_t calls;             /* so far; threads may lose some */
    _Atomic uint64_t due;               /* a call from this one on is noted in full */
    _Atomic unsigned char watched[256]; /* not 0: a call of such a symbol is, too */

    uint64_t steps;    /* counted with the present marks and earlier ones */
    int64_t timed_us;  /* what they took, without breaks */
    int64_t at_us;     /* when the last one was counted; 0: never with these marks */
    uint32_t unit;     /* changes with the marks, since another thing may be a step then */
    uint64_t reported; /* steps that the program reported itself; not 0: no call is watched */

    /* private */
    struct step_marks marks;
    struct step_marks candidate; /* found in the window before, or in the last seconds since */
    struct step_walk walk;
    uint32_t intervals;     /* of the present step */
    uint64_t all_intervals; /* with these marks */
    uint64_t calls_at_step;
    int64_t restart_us;         /* when the last interval ended that was no whole one */
    uint32_t restart_intervals; /* of the step before that */
    int64_t made_us;            /* when a step's calls had been made since then; 0: not yet */
    double mean_us;             /* of a step; 0: not known */
    double longest_us;          /* step, of the last hundreds */
    bool is_collecting;
    bool is_settled;               /* a window was full: shorter ones say nothing more */
    uint32_t collected;            /* calls in windows before this one */
    uint32_t goal;                 /* calls of the window when it is examined */
    int64_t collects_us;           /* when the first of all these came */
    uint32_t part[STEP_PARTS_MAX]; /* of the window: the first call of each of the last seconds */
    uint32_t parts;                /* seconds that are over; the present one is the next */
    int64_t part_us;               /* when the present one began */
    uint32_t rests;                /* how often no period was found: the pauses become longer */
    int64_t rests_until_us;        /* no window is collected before */
    uint64_t next_check; /* intervals after which the marks are compared with a new window */
    struct step_window window;
};

/* Bits of a symbol: is the call work of the GPU? Is it one that a step makes, and its layers do
 * not: a copy from the host, a wait for the GPU, a graph? */
enum { STEP_IS_WORK = 1, STEP_IS_HOST = 2 };

/* The name of a call in the sequence. `handle`: of the function or graph; of a copy, its size in
 * bytes, of which only the magnitude counts. */
static inline uint32_t step_symbol(enum step_call call, uint64_t handle)
{
    uint64_t which = call == STEP_COPY ? 64 - (unsigned)__builtin_clzll(handle | 1) : handle;
    uint64_t mixed = (which * 4 + call) * UINT64_C(0x9e3779b97f4a7c15); /* Fibonacci hashing */
    uint32_t symbol = (uint32_t)(mixed >> 32) & ~(uint32_t)(STEP_IS_WORK | STEP_IS_HOST);
    return symbol | (call == STEP_LAUNCH || call == STEP_GRAPH ? STEP_IS_WORK : 0) |
           (call != STEP_LAUNCH ? STEP_IS_HOST : 0);
}

/* Does the call have to be given to step_counter_note? Cheap, for every launch: a few instructions
 * without a lock. */
static inline bool step_counter_is_due(struct step_counter *counter, uint32_t symbol)
{
    uint64_t calls = atomic_load_explicit(&counter->calls, memory_order_relaxed) + 1;
    atomic_store_explicit(&counter->calls, calls, memory_order_relaxed);
    return calls >= atomic_load_explicit(&counter->due, memory_order_relaxed) ||
           atomic_load_explicit(&counter->watched[symbol >> 24], memory_order_relaxed);
}

/*
 * Notes a call for which step_counter_is_due was true. Not by two threads at a time.
 *
 * now_us: of a clock that never goes back; above 0
 *
 * Returns whether `steps` and `timed_us` have changed, or the marks.
 */
bool step_counter_note(struct step_counter *counter, uint32_t symbol, int64_t now_us);

/* The program itself reports steps: from now on only these count. `now_us`: as above. */
void step_counter_report(struct step_counter *counter, uint64_t steps, int64_t now_us);

/* The symbol comes next, as call number `at`. Returns whether an interval has ended with it. */
bool step_walk_on(
    struct step_walk *walk, const struct step_marks *marks, uint32_t symbol, uint64_t at);

/*
 * Finds the period of the calls in the window, from one on (step_period.c).
 *
 * Returns the marks; their `n` is 0 where there is none.
 */
struct step_marks step_period_find(struct step_window *window, uint32_t from);

/* Returns how many intervals end in the calls of the window from one on and before another one. */
uint32_t step_window_count(
    const struct step_window *window, const struct step_marks *marks, uint32_t from, uint32_t to);

/* Adds a call to the window, which is not full. Returns false where it has too many different
 * ones. */
bool step_window_add(struct step_window *window, uint32_t symbol);

/* Empties the window. */
void step_window_clear(struct step_window *window);

#endif
