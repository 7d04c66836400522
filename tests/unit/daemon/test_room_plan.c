/* SPDX-License-Identifier: Apache-2.0 */
/* Which room is made larger or ended next, in GiB. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/units.h"
#include "daemon/rooms/room_plan.h"
#include "daemon/rooms/room_text.h"

static struct room_limits limits;

static int reset(void **state)
{
    limits = (struct room_limits){
        .max_bytes = 40 * GIB, .idle_max_bytes = 40 * GIB, .spare_bytes = 100 * GIB};
    return 0;
}

static struct room_view room(int64_t blocks_gib, int64_t gib)
{
    return (struct room_view){
        .blocks_bytes = (uint64_t)(blocks_gib * GIB), .bytes = (uint64_t)(gib * GIB)};
}

#define EXPECT_NONE(rooms)                                                                         \
    assert_int_equal(room_plan(rooms, ARRAY_SIZE(rooms), &limits).kind, ROOM_STEP_NONE)

static void expect(const struct room_view *rooms, size_t n, int kind, size_t which)
{
    struct room_step step = room_plan(rooms, n, &limits);
    assert_int_equal(step.kind, kind);
    assert_int_equal(step.room, which);
}

static void grows_by_steps_to_a_little_more_than_the_blocks(void **state)
{
    struct room_view rooms[] = {room(3, 0)};
    uint64_t size = room_size(rooms[0].blocks_bytes);
    assert_in_range(size, 3 * GIB + 1, 3 * GIB + GIB / 4);
    for (int steps = 0; rooms[0].bytes < size; steps++) {
        struct room_step step = room_plan(rooms, 1, &limits);
        assert_int_equal(step.kind, ROOM_STEP_GROW);
        assert_true(step.bytes > rooms[0].bytes && step.bytes <= rooms[0].bytes + ROOM_STEP_BYTES);
        rooms[0].bytes = step.bytes;
        assert_true(steps < 8);
    }
    assert_int_equal(rooms[0].bytes, size);
    EXPECT_NONE(rooms);
}

static void what_does_not_fit_as_a_whole_is_left_to_the_next(void **state)
{
    struct room_view rooms[] = {room(30, 32), room(20, 0), room(4, 0)};
    expect(rooms, 3, ROOM_STEP_GROW, 2);
    rooms[2].bytes = room_size(rooms[2].blocks_bytes);
    EXPECT_NONE(rooms);
}

/* Else processes of which not all fit would take each other's in turns. */
static void none_is_ended_for_another(void **state)
{
    struct room_view rooms[] = {room(30, 32), room(30, 0)};
    rooms[0].used_us = 5;
    EXPECT_NONE(rooms);
}

static struct room_view room_of(uid_t uid, int64_t blocks_gib, int64_t gib)
{
    struct room_view view = room(blocks_gib, gib);
    view.uid = uid;
    return view;
}

/* What the first user has beyond its share makes way for the second, which is below its own. */
static void no_user_keeps_the_others_out(void **state)
{
    struct room_view rooms[] = {room_of(1, 14, 15), room_of(1, 14, 15), room_of(2, 14, 0)};
    rooms[0].used_us = 5;
    expect(rooms, 3, ROOM_STEP_END, 1);
    rooms[1].bytes = 0;
    for (uint64_t size = room_size(14 * GIB); rooms[2].bytes < size;) {
        struct room_step step = room_plan(rooms, 3, &limits);
        assert_int_equal(step.kind, ROOM_STEP_GROW);
        assert_int_equal(step.room, 2);
        rooms[2].bytes = step.bytes;
    }
    EXPECT_NONE(rooms); /* the first user's second process stays without: not in turns */
    rooms[2] = room_of(2, 0, 0);
    expect(rooms, 3, ROOM_STEP_GROW, 1); /* no other user wants it */
}

static void a_copy_stays_though_its_user_is_above_the_share(void **state)
{
    struct room_view rooms[] = {
        room_of(1, 20, 22), room_of(1, 3, 4), room_of(2, 15, 0), room_of(1, 1, 0)};
    rooms[0].is_used = true;
    expect(rooms, 4, ROOM_STEP_END, 1);
    rooms[1].bytes = 0;
    rooms[0].bytes = 30 * GIB; /* the second user waits for the copy, and the first does not grow */
    EXPECT_NONE(rooms);
    rooms[0].bytes = 0;
    expect(rooms, 4, ROOM_STEP_GROW, 1);
}

static void within_its_share_no_room_ends_for_another_user(void **state)
{
    struct room_view rooms[] = {room_of(1, 18, 20), room_of(2, 30, 0), room_of(2, 4, 0)};
    expect(rooms, 3, ROOM_STEP_GROW, 2); /* of what fits, what is within the share */
    rooms[2].bytes = room_size(4 * GIB);
    EXPECT_NONE(rooms);
}

static void what_the_process_has_had_does_not_grow(void **state)
{
    struct room_view rooms[] = {room(4, 4)};
    rooms[0].is_final = true;
    EXPECT_NONE(rooms);
    rooms[0].blocks_bytes = 5 * GIB;
    expect(rooms, 1, ROOM_STEP_END, 0);
    rooms[0].is_used = true; /* the copy in it is of when it was large enough */
    EXPECT_NONE(rooms);
}

static void a_process_that_cannot_be_carried_gets_none(void **state)
{
    struct room_view rooms[] = {room(0, 0)};
    EXPECT_NONE(rooms);
}

static void where_the_host_is_short_the_least_useful_goes(void **state)
{
    struct room_view rooms[] = {room(4, 5), room(4, 5), room(4, 5)};
    rooms[0].is_used = true;
    rooms[1].used_us = 7;
    rooms[2].used_us = 3;
    limits.spare_bytes = -1;
    expect(rooms, 3, ROOM_STEP_END, 2);
    rooms[2].bytes = 0;
    expect(rooms, 3, ROOM_STEP_END, 1);
    rooms[1].bytes = 0;
    EXPECT_NONE(rooms);
    limits.spare_bytes = 100 * GIB;
    limits.was_short = true; /* nor is it made again at once */
    EXPECT_NONE(rooms);
    limits.was_short = false;
    expect(rooms, 3, ROOM_STEP_GROW, 1);
}

static void nothing_grows_into_the_hosts_reserve(void **state)
{
    struct room_view rooms[] = {room(4, 0)};
    limits.spare_bytes = GIB - 1;
    EXPECT_NONE(rooms);
}

/* suspend-memory-max: suspended tasks take more of it. */
static void rooms_make_way_for_suspended_tasks(void **state)
{
    struct room_view rooms[] = {room(10, 11), room(10, 11)};
    rooms[0].is_used = true;
    limits.idle_max_bytes = 11 * GIB;
    EXPECT_NONE(rooms);
    limits.idle_max_bytes = 10 * GIB;
    expect(rooms, 2, ROOM_STEP_END, 1);
}

static void the_setting_was_made_smaller(void **state)
{
    struct room_view rooms[] = {room(10, 11), room(10, 11)};
    limits.max_bytes = 11 * GIB;
    expect(rooms, 2, ROOM_STEP_END, 1);
    limits.max_bytes = 0;
    rooms[1].bytes = 0;
    expect(rooms, 2, ROOM_STEP_END, 0);
}

static void what_users_read_about_the_rooms_of_a_task(void **state)
{
    char text[192];
    struct room_of_task rooms = {.bytes = GIB, .missing_bytes = GIB, .user_bytes = 3 * GIB};
    rooms.share_bytes = 4 * GIB;
    assert_string_equal(room_text_write(&rooms, text, sizeof text),
        "1.0 GiB of 2.0 GiB are ready, so its copy would be memory of the task; its user has 3.0 GiB, and a "
        "share of 4.0 GiB");
    rooms.missing_bytes = 0;
    assert_string_equal(room_text_write(&rooms, text, sizeof text),
        "1.0 GiB are ready; its user has 3.0 GiB, and a share of 4.0 GiB");
    rooms.used_bytes = GIB;
    assert_string_equal(room_text_write(&rooms, text, sizeof text),
        "1.0 GiB have its copy; its user has 3.0 GiB, and a share of 4.0 GiB");
}

static void users_have_equal_shares_of_the_setting(void **state)
{
    struct room_view rooms[] = {room(3, 2), room(5, 0), room(0, 0)};
    rooms[1].uid = 1;
    rooms[2].uid = 2; /* its process cannot be carried: no user of the pool */
    assert_int_equal(room_share(rooms, 3, 40 * GIB), 20 * GIB);
    assert_int_equal(room_share(rooms, 0, 40 * GIB), 40 * GIB);
    assert_int_equal(room_bytes_of_user(rooms, 3, 0), 2 * GIB);
    assert_true(room_missing_bytes(&rooms[1]) > 5 * GIB);
    rooms[1].is_final = true;
    assert_int_equal(room_missing_bytes(&rooms[1]), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(grows_by_steps_to_a_little_more_than_the_blocks, reset),
        cmocka_unit_test_setup(what_does_not_fit_as_a_whole_is_left_to_the_next, reset),
        cmocka_unit_test_setup(none_is_ended_for_another, reset),
        cmocka_unit_test_setup(no_user_keeps_the_others_out, reset),
        cmocka_unit_test_setup(a_copy_stays_though_its_user_is_above_the_share, reset),
        cmocka_unit_test_setup(within_its_share_no_room_ends_for_another_user, reset),
        cmocka_unit_test_setup(what_the_process_has_had_does_not_grow, reset),
        cmocka_unit_test_setup(a_process_that_cannot_be_carried_gets_none, reset),
        cmocka_unit_test_setup(where_the_host_is_short_the_least_useful_goes, reset),
        cmocka_unit_test_setup(nothing_grows_into_the_hosts_reserve, reset),
        cmocka_unit_test_setup(rooms_make_way_for_suspended_tasks, reset),
        cmocka_unit_test_setup(the_setting_was_made_smaller, reset),
        cmocka_unit_test_setup(users_have_equal_shares_of_the_setting, reset),
        cmocka_unit_test(what_users_read_about_the_rooms_of_a_task),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
