/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The states of a resident's memory (core/residence.h): the drawing's moves, and random readings
 * against the five booleans that the states replaced. Old logs replay only while the two agree.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/units.h"
#include "core/state/resident_memory.h"

static const struct core_settings settings = {
    .settle_us = 10 * SECOND_US, .settle_max_us = 60 * SECOND_US};

static void follow(struct resident *resident, int64_t at_s, struct reading used)
{
    resident->mem_used_bytes = used;
    resident_follow_memory(&settings, resident, at_s * SECOND_US);
}

static struct reading gib(double value)
{
    return reading_of(value * (double)GIB);
}

static void a_task_rises_and_settles(void **state)
{
    struct resident resident = {0};
    follow(&resident, 1, READING_NONE);
    assert_int_equal(resident.residence, RESIDENCE_PLACED);
    follow(&resident, 2, gib(0.4));
    assert_int_equal(resident.residence, RESIDENCE_CONTEXT);
    follow(&resident, 3, gib(4));
    assert_int_equal(resident.residence, RESIDENCE_RISING);
    follow(&resident, 12, gib(4));
    assert_int_equal(resident.residence, RESIDENCE_RISING);
    follow(&resident, 13, gib(4));
    assert_int_equal(resident.residence, RESIDENCE_SETTLED);
}

static void a_late_task_holds_others_off_anew(void **state)
{
    struct resident late = {0}, hidden = {0};
    follow(&late, 1, reading_of(0));
    follow(&late, 60, reading_of(0));
    follow(&hidden, 60, READING_NONE);
    assert_int_equal(late.residence, RESIDENCE_ABSENT_SETTLED);
    assert_int_equal(hidden.residence, RESIDENCE_PLACED_SETTLED);
    follow(&late, 70, gib(0.4));
    follow(&hidden, 70, gib(0.4));
    assert_int_equal(late.residence, RESIDENCE_CONTEXT);
    assert_int_equal(late.held_us, 70 * SECOND_US);
    assert_int_equal(hidden.residence, RESIDENCE_CONTEXT_SETTLED);
    assert_int_equal(hidden.held_us, 0);
    follow(&late, 130, gib(0.4));
    assert_int_equal(late.residence, RESIDENCE_CONTEXT_SETTLED);
}

static void half_of_a_known_requirement_holds_others_off_anew(void **state)
{
    struct resident resident = {.need_bytes = gib(8)};
    follow(&resident, 1, gib(0.4));
    follow(&resident, 61, gib(3.9));
    assert_int_equal(resident.residence, RESIDENCE_CONTEXT_SETTLED);
    follow(&resident, 90, gib(4));
    assert_int_equal(resident.residence, RESIDENCE_RISING);
    follow(&resident, 100, gib(4));
    assert_int_equal(resident.residence, RESIDENCE_SETTLED);
}

/* What a resident was before it had states. */
struct booleans {
    bool absent, shown, risen, settled;
    double level_bytes;
    int64_t grew_us, held_us, need_bytes;
};

static bool follow_booleans(struct booleans *now, struct reading used, int64_t now_us)
{
    double enough = now->need_bytes ? 0.5 * (double)now->need_bytes : 768.0 * (double)MIB;
    bool rises = false;
    now->absent |= used.valid && used.value <= 0;
    if (!now->shown && used.valid && used.value > 0) {
        now->shown = true;
        now->held_us = now->absent ? now_us : now->held_us;
        now->settled &= !now->absent;
    }
    if (now->settled && now->shown && !now->risen && now->need_bytes && used.valid &&
        used.value >= enough) {
        now->risen = true;
        now->settled = false;
        now->level_bytes = used.value;
        now->held_us = now->grew_us = now_us;
        return true;
    }
    if (now->settled)
        return false;
    if (used.valid && used.value > now->level_bytes * 1.02 + 64.0 * (double)MIB) {
        now->level_bytes = used.value;
        now->grew_us = now_us;
    }
    if (!now->risen && used.valid && used.value >= enough)
        now->risen = rises = true;
    now->settled = (now->risen && now_us - now->grew_us >= settings.settle_us) ||
                   now_us - now->held_us >= settings.settle_max_us;
    return rises;
}

static struct reading any_reading(void)
{
    static const double used_gib[] = {0, 0, 0.4, 0.5, 0.74, 0.76, 2, 2.01, 4, 8};
    int i = rand() % 14;
    return i < 10 ? gib(used_gib[i]) : READING_NONE;
}

static void assert_agrees(const struct resident *resident, const struct booleans *old)
{
    assert_int_equal(residence_has_appeared(resident->residence), old->shown);
    assert_int_equal(residence_has_risen(resident->residence), old->risen);
    assert_int_equal(residence_has_settled(resident->residence), old->settled);
    assert_int_equal(resident->held_us, old->held_us);
    assert_int_equal(resident->grew_us, old->grew_us);
    assert_true(
        !(resident->level_bytes < old->level_bytes) && !(resident->level_bytes > old->level_bytes));
}

static void random_lives_agree_with_the_booleans(void **state)
{
    srand(14);
    for (int life = 0; life < 20000; life++) {
        int64_t need = rand() % 3 ? 0 : (int64_t)(rand() % 6) * GIB, now_us = 0;
        struct resident resident = {.need_bytes = need ? reading_of((double)need) : READING_NONE};
        struct booleans old = {.need_bytes = need};
        for (int step = 0; step < 30; step++) {
            struct reading used = any_reading();
            now_us += (1 + rand() % 12) * SECOND_US;
            resident.mem_used_bytes = used;
            bool rises = resident_follow_memory(&settings, &resident, now_us);
            assert_int_equal(rises, follow_booleans(&old, used, now_us));
            assert_agrees(&resident, &old);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_rises_and_settles),
        cmocka_unit_test(a_late_task_holds_others_off_anew),
        cmocka_unit_test(half_of_a_known_requirement_holds_others_off_anew),
        cmocka_unit_test(random_lives_agree_with_the_booleans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
