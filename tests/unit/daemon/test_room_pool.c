/* SPDX-License-Identifier: Apache-2.0 */
/* Rooms of processes whose pages say anything at any time, and of users who want all places. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"
#include "base/units.h"
#include "daemon/rooms/room_pool.h"

/* Places as of room_pool_state.h. */
enum { LIES = 20 * 1000 * 1000, PLACES = 256, POLL_US = 4 * 1000 * 1000 };

static struct config config = {.carrier = true, .carrier_pool = GIB, .core.can_suspend = true};
static struct preload_page page;
static uv_loop_t loop;
static atomic_bool is_over;
static int64_t now_us = SECOND_US;

/* ---- this machine, with time and memory enough ---- */

int64_t __wrap_clock_monotonic_us(void);
struct reading __wrap_host_memory_available(void);
struct reading __wrap_cgroup_memory_left_of(pid_t pid, const char *except);

int64_t __wrap_clock_monotonic_us(void)
{
    return now_us;
}

struct reading __wrap_host_memory_available(void)
{
    return reading_of(64.0 * GIB);
}

struct reading __wrap_cgroup_memory_left_of(pid_t pid, const char *except)
{
    return reading_of(64.0 * GIB);
}

bool __wrap_preload_give_room(struct preload_process *process, enum preload_place place,
    uint64_t bytes, uint64_t offset, int fd);

bool __wrap_preload_give_room(struct preload_process *process, enum preload_place place,
    uint64_t bytes, uint64_t offset, int fd)
{
    return true;
}

/* ---- a process ---- */

static struct preload_process process_of(uint64_t task, uid_t uid)
{
    struct process_stat stat;
    assert_int_equal(process_read_stat(getpid(), &stat), 0);
    return (struct preload_process){
        .peer = {.pid = getpid(), .born = stat.start_ticks, .task = task, .uid = uid},
        .page = &page};
}

static void begin_page(void)
{
    page = (struct preload_page){.carry_state = PRELOAD_CARRY_IS_HERE,
        .carry_places = 1U << PRELOAD_PLACE_POOL,
        .carry_bytes = MIB};
}

/* Listed by the driver at a poll of the GPUs. Returns its rooms. */
static struct room_of_task poll_process(struct room_pool *pool, uint64_t task, uid_t uid)
{
    struct room_of_task rooms = {0};
    struct preload_process process = process_of(task, uid);
    now_us += POLL_US;
    room_pool_note(pool, &process, MIB, READING_NONE);
    room_pool_review(pool, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    room_pool_of_task(pool, task, &rooms);
    return rooms;
}

/* Changes the size of its blocks as fast as it can. */
static void *lie(void *argument)
{
    for (int i = 0; i < LIES; i++)
        atomic_store(&page.carry_bytes, i % 2 ? UINT64_MAX - GIB : MIB);
    atomic_store(&is_over, true);
    return NULL;
}

/* ---- tests ---- */

static void a_room_covers_no_more_than_it_has(void **state)
{
    pthread_t liar;
    uint64_t most = 0;
    struct room_pool *pool = room_pool_create(&loop, &config);
    const struct preload_process process = process_of(1, 1);
    begin_page();
    poll_process(pool, 1, 1);
    uint64_t made = poll_process(pool, 1, 1).bytes;
    assert_int_equal(room_pool_covers(pool, &process), MIB);
    assert_int_equal(pthread_create(&liar, NULL, lie, NULL), 0);
    while (!atomic_load(&is_over)) {
        uint64_t covered = room_pool_covers(pool, &process);
        most = covered > most ? covered : most;
    }
    pthread_join(liar, NULL);
    assert_true(most <= made);
    room_pool_destroy(pool);
}

static bool has_place(struct room_pool *pool, uint64_t task)
{
    struct room_of_task rooms;
    return room_pool_of_task(pool, task, &rooms);
}

static int note_processes(struct room_pool *pool, uint64_t first, int n, uid_t uid)
{
    int n_places = 0;
    for (int i = 0; i < n; i++) {
        struct preload_process process = process_of(first + (uint64_t)i, uid);
        room_pool_note(pool, &process, MIB, READING_NONE);
        n_places += has_place(pool, process.peer.task);
    }
    return n_places;
}

/* Each process that the driver lists wants a place. */
static void one_user_does_not_keep_all_places(void **state)
{
    enum { GREEDY = 1, OTHER = 2, OTHERS = 1000 };
    struct room_pool *pool = room_pool_create(&loop, &config);
    begin_page();
    assert_int_equal(note_processes(pool, 1, PLACES + 10, GREEDY), PLACES);
    assert_int_equal(note_processes(pool, OTHERS, PLACES, OTHER), PLACES / 2);
    assert_int_equal(note_processes(pool, 1, PLACES + 10, GREEDY), PLACES / 2);
    assert_true(has_place(pool, OTHERS));
    room_pool_destroy(pool);
}

/* A process has ended, and a child of it holds its connection; another one has its pid by now, and
 * GPU memory. What the page claims is backed by none of the driver's lists. */
static void a_pid_that_was_given_again(void **state)
{
    struct room_pool *pool = room_pool_create(&loop, &config);
    struct preload_process former = process_of(1, 1);
    former.peer.born--;
    begin_page();
    room_pool_note(pool, &former, MIB, READING_NONE);
    assert_false(has_place(pool, 1));
    poll_process(pool, 1, 1);
    assert_true(has_place(pool, 1));
    assert_int_equal(room_pool_covers(pool, &former), 0);
    assert_false(room_pool_lend(pool, &former));
    room_pool_destroy(pool);
}

/* Gives way, with blocks of that size. Returns the size of the pool then. */
static uint64_t size_after(struct room_pool *pool, uint64_t task, uint64_t blocks)
{
    struct preload_process process = process_of(task, 1);
    begin_page();
    page.carry_bytes = blocks;
    room_pool_note(pool, &process, blocks, READING_NONE);
    now_us += POLL_US;
    room_pool_note(pool, &process, blocks, READING_NONE);
    room_pool_lend(pool, &process);
    return room_pool_totals(pool).max_bytes;
}

static void the_default_follows_what_gives_way(void **state)
{
    struct config by_default = config;
    by_default.carrier_pool = 0;
    struct room_pool *pool = room_pool_create(&loop, &by_default);
    struct room_pool *set = room_pool_create(&loop, &config);
    uint64_t sixteenth = room_pool_totals(pool).max_bytes;
    assert_int_equal(size_after(pool, 1, sixteenth / 2), sixteenth); /* its room is being made */
    assert_int_equal(size_after(pool, 2, sixteenth * 2) / 4, sixteenth);
    assert_int_equal(size_after(pool, 3, MIB) / 4, sixteenth); /* it stays */
    assert_int_equal(size_after(set, 1, 2 * GIB), GIB);
    room_pool_destroy(pool);
    room_pool_destroy(set);
}

/* A process has 4 GiB by the driver. Its copy is in its room, by its page. */
static struct room_pool *begin_away(void)
{
    struct room_pool *pool = room_pool_create(&loop, &config);
    struct preload_process process = process_of(1, 1);
    begin_page();
    page.carry_bytes = MIB; /* the test makes no large file */
    for (int i = 0; i < 2; i++) {
        now_us += POLL_US;
        room_pool_note(pool, &process, 4 * GIB, READING_NONE);
        room_pool_review(pool, NULL);
        uv_run(&loop, UV_RUN_DEFAULT);
    }
    assert_true(room_pool_lend(pool, &process));
    page.carry_state = PRELOAD_CARRY_IS_AWAY;
    return pool;
}

/* Is a copy in the room, after polls of that time in which the driver lists so much? */
static bool is_used_after(struct room_pool *pool, int64_t us, uint64_t used_bytes)
{
    struct preload_process process = process_of(1, 1);
    for (int64_t end_us = now_us + us; now_us < end_us; now_us += POLL_US)
        room_pool_note(pool, &process, used_bytes, READING_NONE);
    return room_pool_totals(pool).used_bytes > 0;
}

static void a_page_does_not_keep_its_room_by_saying_so(void **state)
{
    struct room_pool *pool = begin_away();
    struct preload_process process = process_of(1, 1);
    assert_true(is_used_after(pool, 3600 * SECOND_US, GIB / 2)); /* a context stays on the GPU */
    assert_true(is_used_after(pool, 3600 * SECOND_US, 0));       /* not listed: not known */
    assert_true(is_used_after(pool, 60 * SECOND_US, 4 * GIB));   /* it may be copied back now */
    assert_false(is_used_after(pool, 60 * SECOND_US, 4 * GIB));
    assert_true(room_pool_lend(pool, &process));
    assert_true(is_used_after(pool, POLL_US, GIB / 2));
    room_pool_take_back(pool, &process); /* it has answered, and says something else again */
    assert_false(is_used_after(pool, POLL_US, GIB / 2));
    room_pool_destroy(pool);
}

static int begin_loop(void **state)
{
    return uv_loop_init(&loop);
}

static int end_loop(void **state)
{
    return uv_loop_close(&loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_room_covers_no_more_than_it_has),
        cmocka_unit_test(one_user_does_not_keep_all_places),
        cmocka_unit_test(a_page_does_not_keep_its_room_by_saying_so),
        cmocka_unit_test(a_pid_that_was_given_again),
        cmocka_unit_test(the_default_follows_what_gives_way),
    };
    return cmocka_run_group_tests(tests, begin_loop, end_loop);
}
