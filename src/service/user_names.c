/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of users without waiting for the user database. A table of entries, by number or by name,
 * and rounds. In a round, one helper process looks up all queued entries, up to NAMES_PER_ROUND,
 * and writes the answers into shared memory one after the other. After the round's time limit the
 * rest are NAME_NO_ANSWER. There is one round at a time: a question waits for at most two, even if
 * the name service does not answer.
 */
#include "service/user_names.h"

#include <errno.h>
#include <pwd.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/units.h"
#include "service/user_helper.h"

#define FRESH_US     (600 * SECOND_US)     /* chosen, as nscd does */
#define ASK_AGAIN_US (10 * SECOND_US)      /* after NAME_NONE or NAME_NO_ANSWER; chosen */
#define ENTRY_BYTES  ((size_t)(256 * KIB)) /* of one user's entry from getpwuid_r; chosen */

struct name_waiter {
    struct name_waiter *next;
    names_on_answer *on_answer;
    void *context;
};

struct name_entry {
    bool is_used, by_name;
    struct name name;
    bool is_queued;      /* for the next round, or in this one */
    int64_t answered_us; /* on the monotonic clock; 0: never */
    struct name_waiter *waiters;
};

/* Shared with the helper. */
struct round {
    int n;
    struct question {
        bool by_name;
        atomic_bool is_answered; /* once `name` is written */
        struct name name;
    } questions[NAMES_PER_ROUND];
};

struct names {
    uv_loop_t *loop;
    void (*on_change)(void *context, const struct name *name);
    void *context;
    struct name_entry *entries; /* NAMES_KEPT of them */
    struct name unstored;       /* an answer for a full table */
    struct round
        *round; /* under way, or NULL; a new one each time, as a late helper may still write */
    struct name_entry *asked[NAMES_PER_ROUND];
    struct user_helper helper;
    bool is_closed;
};

/* ---- in the helper ---- */

/* A large buffer: entries of a directory service are longer than those of /etc/passwd. */
static void look_up(struct question *question, char *space)
{
    struct passwd entry, *found = NULL;
    struct name *name = &question->name;
    int r = question->by_name ? getpwnam_r(name->name, &entry, space, ENTRY_BYTES, &found)
                              : getpwuid_r(name->uid, &entry, space, ENTRY_BYTES, &found);
    bool fits = found && strlen(found->pw_name) < sizeof name->name;
    name->state = NAME_NO_ANSWER; /* also of a name that is too long */
    if (r == 0 && !found)
        name->state = NAME_NONE;
    if (r == 0 && fits)
        name->state = NAME_KNOWN;
    if (fits) {
        name->uid = found->pw_uid;
        name->gid = found->pw_gid;
    }
    if (fits && !question->by_name)
        strcpy(name->name, found->pw_name);
    question->is_answered = true;
}

static int look_up_all(void *context, struct fault *fault)
{
    struct round *round = ((const struct names *)context)->round;
    char *space = malloc(ENTRY_BYTES);
    for (int i = 0; space && i < round->n; i++)
        look_up(&round->questions[i], space);
    return space ? 0 : -ENOMEM;
}

/* ---- the table ---- */

static bool is_entry_of(const struct name_entry *entry, uid_t uid, const char *name)
{
    if (!entry->is_used || entry->by_name != (name != NULL))
        return false;
    return name ? strcmp(entry->name.name, name) == 0 : entry->name.uid == uid;
}

/* Returns a free entry, or the entry answered longest ago that no request waits for; NULL: requests
 * wait for all. */
static struct name_entry *find_free(struct names *names)
{
    struct name_entry *oldest = NULL;
    for (size_t i = 0; i < NAMES_KEPT; i++) {
        struct name_entry *entry = &names->entries[i];
        if (!entry->is_used)
            return entry;
        if (!entry->is_queued && !entry->waiters &&
            (!oldest || entry->answered_us < oldest->answered_us))
            oldest = entry;
    }
    return oldest;
}

/* Finds or adds an entry. Returns NULL when the table is full. */
static struct name_entry *get_entry(struct names *names, uid_t uid, const char *name)
{
    for (size_t i = 0; i < NAMES_KEPT && names->entries[i].is_used; i++)
        if (is_entry_of(&names->entries[i], uid, name))
            return &names->entries[i];
    struct name_entry *entry = find_free(names);
    if (!entry)
        return NULL;
    *entry = (struct name_entry){
        .is_used = true, .by_name = name, .name = {.state = NAME_ASKED, .uid = uid}};
    if (name)
        snprintf(entry->name.name, sizeof entry->name.name, "%s", name);
    else
        snprintf(entry->name.name, sizeof entry->name.name, "%u", (unsigned)uid);
    return entry;
}

/* ---- rounds ---- */

static void answer_waiters(struct name_entry *entry)
{
    struct name name = entry->name;
    if (name.state == NAME_ASKED)
        name.state = NAME_NO_ANSWER;
    for (struct name_waiter *waiter = entry->waiters, *next; waiter; waiter = next) {
        next = waiter->next;
        entry->waiters = next;
        waiter->on_answer(waiter->context, &name);
        free(waiter);
    }
}

/* Without an answer, a name that is known stays. */
static void take_answer(
    struct names *names, struct name_entry *entry, const struct question *question)
{
    bool is_new = question->is_answered && question->name.state != NAME_NO_ANSWER;
    if (is_new)
        entry->name = question->name;
    else if (entry->name.state == NAME_ASKED)
        entry->name.state = NAME_NO_ANSWER;
    entry->answered_us = clock_monotonic_us();
    entry->is_queued = false;
    if (names->on_change && !entry->by_name)
        names->on_change(names->context, &entry->name);
    answer_waiters(entry);
}

static void begin_round(struct names *names);

static void end_round(struct names *names)
{
    struct round *round = names->round;
    names->round = NULL;
    for (int i = 0; i < round->n; i++)
        take_answer(names, names->asked[i], &round->questions[i]);
    munmap(round, sizeof *round);
}

static void on_round(struct user_helper *helper, int answer, const struct fault *fault)
{
    struct names *names = helper->context;
    end_round(names);
    begin_round(names);
}

/* Returns NULL when there are none, or memory is out. */
static struct round *collect_questions(struct names *names)
{
    struct round *round = NULL;
    for (size_t i = 0; i < NAMES_KEPT && (!round || round->n < NAMES_PER_ROUND); i++) {
        struct name_entry *entry = &names->entries[i];
        if (!entry->is_queued)
            continue;
        if (!round)
            round = mmap(
                NULL, sizeof *round, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        if (round == MAP_FAILED)
            return NULL;
        names->asked[round->n] = entry;
        round->questions[round->n].by_name = entry->by_name;
        round->questions[round->n++].name = entry->name;
    }
    return round;
}

static void begin_round(struct names *names)
{
    const struct user_helper_order order = {.limit_ms = NAMES_LIMIT_MS, .what = "look up users"};
    struct fault fault;
    if (names->is_closed || names->round)
        return;
    names->round = collect_questions(names);
    if (!names->round)
        return;
    names->helper.context = names;
    names->helper.on_done = on_round;
    if (user_helper_run(&names->helper, names->loop, &order, look_up_all, &fault) < 0)
        end_round(names);
}

static bool is_due(const struct name_entry *entry)
{
    int64_t age_us = clock_monotonic_us() - entry->answered_us;
    return !entry->answered_us ||
           age_us > (entry->name.state == NAME_KNOWN ? FRESH_US : ASK_AGAIN_US);
}

/* ---- questions ---- */

static void set_unstored(struct name *name, uid_t uid)
{
    *name = (struct name){.state = NAME_NO_ANSWER, .uid = uid};
    snprintf(name->name, sizeof name->name, "%u", (unsigned)uid);
}

const struct name *names_of_uid(struct names *names, uid_t uid)
{
    struct name_entry *entry = get_entry(names, uid, NULL);
    if (!entry) {
        set_unstored(&names->unstored, uid);
        return &names->unstored;
    }
    entry->is_queued |= is_due(entry);
    begin_round(names);
    return &entry->name;
}

bool names_is_unlisted(const struct names *names, uid_t uid)
{
    for (size_t i = 0; i < NAMES_KEPT && names->entries[i].is_used; i++)
        if (is_entry_of(&names->entries[i], uid, NULL))
            return names->entries[i].name.state == NAME_NONE;
    return false;
}

static void find_or_look_up(
    struct names *names, uid_t uid, const char *name, names_on_answer *on_answer, void *context)
{
    struct name nothing;
    struct name_entry *entry = names->is_closed ? NULL : get_entry(names, uid, name);
    struct name_waiter *waiter = entry ? malloc(sizeof *waiter) : NULL;
    if (!waiter) {
        set_unstored(&nothing, uid);
        on_answer(context, &nothing);
        return;
    }
    *waiter = (struct name_waiter){entry->waiters, on_answer, context};
    entry->waiters = waiter;
    entry->is_queued |= is_due(entry);
    bool may_exist_now = entry->name.state == NAME_NONE && entry->is_queued;
    if (entry->name.state != NAME_ASKED && !may_exist_now)
        answer_waiters(entry); /* with the old answer: the new one is for the next request */
    begin_round(names);
}

void names_ask_uid(struct names *names, uid_t uid, names_on_answer *on_answer, void *context)
{
    find_or_look_up(names, uid, NULL, on_answer, context);
}

void names_ask_name(
    struct names *names, const char *name, names_on_answer *on_answer, void *context)
{
    struct name nothing = {.state = NAME_NONE};
    snprintf(nothing.name, sizeof nothing.name, "%.*s", NAME_MAX_BYTES - 1, name);
    if (strlen(name) < sizeof nothing.name)
        find_or_look_up(names, 0, name, on_answer, context);
    else
        on_answer(context, &nothing);
}

/* ---- life ---- */

struct names *names_create(
    uv_loop_t *loop, void (*on_change)(void *context, const struct name *name), void *context)
{
    struct names *names = calloc(1, sizeof *names);
    if (!names)
        return NULL;
    *names = (struct names){.loop = loop, .on_change = on_change, .context = context};
    names->entries = calloc(NAMES_KEPT, sizeof *names->entries);
    if (names->entries)
        return names;
    free(names);
    return NULL;
}

void names_close(struct names *names)
{
    if (!names)
        return;
    names->is_closed = true;
    user_helper_leave(&names->helper);
    for (size_t i = 0; i < NAMES_KEPT; i++)
        answer_waiters(&names->entries[i]);
}

void names_destroy(struct names *names)
{
    if (!names)
        return;
    if (names->round)
        munmap(names->round, sizeof *names->round);
    free(names->entries);
    free(names);
}
