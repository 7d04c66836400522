/* SPDX-License-Identifier: Apache-2.0 */
/* What runs of a command say of the next run, and which submissions are of one command. */
#include "daemon/command_history.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MIB (1 << 20)

static void take(struct command_history *history, int uid, uint64_t key, const char *state,
    double peak_mib, double smact)
{
    json_t *subject = json_object();
    command_history_keep_key(subject, key);
    json_t *record = json_pack("{s:s, s:f, s:i, s:i, s:f, s:o}", "state", state, "mem_peak_mib",
        peak_mib, "gpus_requested", 2, "uid", uid, "smact_mean", smact, "subject", subject);
    command_history_take(history, record);
    json_decref(record);
}

static int64_t peak_of(const struct command_history *history, uid_t uid, uint64_t key)
{
    const struct command_runs *runs = command_history_find(history, uid, key);
    return runs ? command_runs_bytes(runs) / MIB : 0;
}

static void the_highest_peak_counts(void **state)
{
    (void)state;
    struct command_history history = {0};
    assert_int_equal(peak_of(&history, 7, 1), 0);
    take(&history, 7, 1, "FAILED", 9000, 0.5);
    assert_int_equal(peak_of(&history, 7, 1), 0);
    take(&history, 7, 1, "COMPLETED", 3000, 0.5);
    take(&history, 7, 1, "COMPLETED", 2000, 0.6);
    assert_int_equal(peak_of(&history, 7, 1), 1500); /* of each GPU */
    assert_float_equal(command_history_find(&history, 7, 1)->smact, 0.6, 1e-9);
    assert_int_equal(peak_of(&history, 8, 1), 0); /* another user's */
    assert_int_equal(peak_of(&history, 7, 2), 0);
    command_history_fini(&history);
}

static void take_speed(struct command_history *history, const char *state, double per_s)
{
    json_t *subject = json_object();
    command_history_keep_key(subject, 1);
    json_t *record = json_pack("{s:s, s:f, s:i, s:i, s:f, s:o}", "state", state, "mem_peak_mib",
        1000.0, "gpus_requested", 1, "uid", 7, "steps_per_s_alone", per_s, "subject", subject);
    command_history_take(history, record);
    json_decref(record);
}

static void the_lowest_speed_alone_counts(void **state)
{
    (void)state;
    struct command_history history = {0};
    take(&history, 7, 1, "COMPLETED", 1000, 0.5); /* never alone */
    assert_float_equal(command_history_find(&history, 7, 1)->alone_per_s, 0, 1e-9);
    take_speed(&history, "COMPLETED", 9);
    take_speed(&history, "COMPLETED", 8);
    take_speed(&history, "COMPLETED", 10);
    take_speed(&history, "FAILED", 1);
    take_speed(&history, "COMPLETED", -1);
    assert_float_equal(command_history_find(&history, 7, 1)->alone_per_s, 8, 1e-9);
    command_history_fini(&history);
}

/* A training that has made its second step, and its end. */
static void a_running_training_is_known_early(void **state)
{
    (void)state;
    struct command_history history = {0};
    assert_true(command_history_take_early(&history, 7, 1, INT64_C(1000) * MIB));
    assert_int_equal(peak_of(&history, 7, 1), 1000);
    assert_int_equal(peak_of(&history, 8, 1), 0);
    assert_true(command_history_find(&history, 7, 1)->smact < 0);
    assert_false(command_history_take_early(&history, 7, 1, INT64_C(1010) * MIB));
    assert_true(command_history_take_early(&history, 7, 1, INT64_C(1500) * MIB));
    take(&history, 7, 1, "COMPLETED", 3200, 0.5);
    assert_int_equal(peak_of(&history, 7, 1), 1600);
    assert_false(command_history_take_early(&history, 7, 1, INT64_C(1600) * MIB));
    take(&history, 7, 1, "OUT_OF_MEMORY", 4000, 0.5);
    assert_int_equal(peak_of(&history, 7, 1), 0);
    command_history_fini(&history);
}

static double smact_of(const struct command_history *history)
{
    const struct command_runs *runs = command_history_find(history, 7, 1);
    return runs ? reading_or(command_runs_smact(runs), -1) : -1;
}

/* Of a command whose memory is known. What a completed run did counts more. */
static void the_activity_of_a_running_training_is_known_early(void **state)
{
    (void)state;
    struct command_history history = {0};
    assert_false(command_history_take_activity(&history, 7, 1, 0.3));
    assert_true(command_history_take_early(&history, 7, 1, INT64_C(1000) * MIB));
    assert_float_equal(smact_of(&history), -1, 1e-9);
    assert_true(command_history_take_activity(&history, 7, 1, 0.3));
    assert_false(command_history_take_activity(&history, 7, 1, 0.4));
    assert_false(command_history_take_activity(&history, 8, 1, 0.4)); /* another user's */
    assert_float_equal(smact_of(&history), 0.3, 1e-9);
    take(&history, 7, 1, "COMPLETED", 3200, 0.2);
    assert_float_equal(smact_of(&history), 0.2, 1e-9);
    assert_false(command_history_take_activity(&history, 7, 1, 0.4));
    take(&history, 7, 1, "OUT_OF_MEMORY", 4000, 0.5);
    assert_false(command_history_take_activity(&history, 7, 1, 0.4));
    command_history_fini(&history);
}

/* In any order, since the log lists the newest first. */
static void a_crash_makes_it_unknown(void **state)
{
    (void)state;
    for (int order = 0; order < 2; order++) {
        struct command_history history = {0};
        take(&history, 7, 1, order ? "OUT_OF_MEMORY" : "COMPLETED", order ? 4000 : 3000, 0.5);
        take(&history, 7, 1, order ? "COMPLETED" : "OUT_OF_MEMORY", order ? 3000 : 4000, 0.5);
        assert_int_equal(peak_of(&history, 7, 1), 0);
        take(&history, 7, 1, "COMPLETED", 5000, 0.5);
        assert_int_equal(peak_of(&history, 7, 1), 2500);
        command_history_fini(&history);
    }
}

static void the_oldest_command_goes_first(void **state)
{
    (void)state;
    struct command_history history = {0};
    for (uint64_t key = 1; key <= COMMAND_HISTORY_MAX + 1; key++)
        take(&history, 7, key, "COMPLETED", 3000, 0.5);
    assert_int_equal(history.n, COMMAND_HISTORY_MAX);
    assert_int_equal(peak_of(&history, 7, 1), 0);
    assert_int_equal(peak_of(&history, 7, 2), 1500);
    assert_int_equal(peak_of(&history, 7, COMMAND_HISTORY_MAX + 1), 1500);
    command_history_fini(&history);
}

/* Keys that differ by the number of buckets stand in one; so may the keys of other users. */
static void commands_of_one_bucket_are_kept_apart(void **state)
{
    (void)state;
    struct command_history history = {0};
    enum { COMMANDS = 3 };
    for (uint64_t i = 0; i < COMMANDS; i++)
        take(&history, 7, 5 + i * COMMAND_HISTORY_BUCKETS, "COMPLETED", 2000 + 2 * (double)i, 0.5);
    for (uint64_t key = 1; key <= COMMAND_HISTORY_MAX - COMMANDS + 2; key++)
        take(&history, 8, key * COMMAND_HISTORY_BUCKETS, "COMPLETED", 3000, 0.5);
    for (uint64_t i = 0; i < COMMANDS; i++)
        assert_int_equal(peak_of(&history, 7, 5 + i * COMMAND_HISTORY_BUCKETS), 1000 + i);
    assert_int_equal(peak_of(&history, 8, 1 * COMMAND_HISTORY_BUCKETS), 0);
    assert_int_equal(peak_of(&history, 8, 2 * COMMAND_HISTORY_BUCKETS), 0);
    assert_int_equal(peak_of(&history, 8, 3 * COMMAND_HISTORY_BUCKETS), 1500);
    command_history_fini(&history);
}

/* bob's commands fill the table twice. ada's stay, the older ones of bob's go. */
static void no_user_drives_out_what_others_ran(void **state)
{
    (void)state;
    enum { ADA = 7, BOB = 8, COMMANDS = 20 };
    struct command_history history = {0};
    for (uint64_t key = 1; key <= COMMANDS; key++)
        take(&history, ADA, key, "COMPLETED", 3000, 0.5);
    for (uint64_t key = 1; key <= 2 * COMMAND_HISTORY_MAX; key++)
        take(&history, BOB, key, "COMPLETED", 2000, 0.5);
    assert_int_equal(history.n, COMMAND_HISTORY_MAX);
    for (uint64_t key = 1; key <= COMMANDS; key++)
        assert_int_equal(peak_of(&history, ADA, key), 1500);
    const uint64_t first = COMMAND_HISTORY_MAX + COMMANDS; /* of bob's that is left, less 1 */
    assert_int_equal(peak_of(&history, BOB, first), 0);
    assert_int_equal(peak_of(&history, BOB, first + 1), 1000);
    /* ada's next ones replace bob's. */
    take(&history, ADA, COMMANDS + 1, "COMPLETED", 3000, 0.5);
    assert_int_equal(peak_of(&history, ADA, 1), 1500);
    assert_int_equal(peak_of(&history, BOB, first + 1), 0);
    command_history_fini(&history);
}

/* As the log is read at the start. */
static void records_of_the_newest_first(void **state)
{
    (void)state;
    struct command_history history = {0};
    for (uint64_t key = COMMAND_HISTORY_MAX; key > 0; key--)
        take(&history, 7, key, "COMPLETED", 3000, 0.5);
    command_history_reverse(&history);
    take(&history, 7, COMMAND_HISTORY_MAX + 1, "COMPLETED", 3000, 0.5);
    assert_int_equal(peak_of(&history, 7, 1), 0);
    assert_int_equal(peak_of(&history, 7, 2), 1500);
    assert_int_equal(peak_of(&history, 7, COMMAND_HISTORY_MAX), 1500);
    command_history_fini(&history);
}

static void records_that_say_nothing(void **state)
{
    (void)state;
    static const char *const texts[] = {"{}", "[]", "{\"subject\": {\"command\": \"1\"}}",
        "{\"subject\": {\"command\": 1}, \"state\": \"COMPLETED\", \"mem_peak_mib\": 5, "
        "\"gpus_requested\": 1, \"uid\": 7}",
        "{\"subject\": {\"command\": \"1\"}, \"state\": \"COMPLETED\", \"mem_peak_mib\": null, "
        "\"gpus_requested\": 1, \"uid\": 7}",
        "{\"subject\": {\"command\": \"1\"}, \"state\": \"COMPLETED\", \"mem_peak_mib\": 5, "
        "\"gpus_requested\": 1, \"uid\": 7, \"preallocated\": true}",
        "{\"subject\": {\"command\": \"1\"}, \"state\": \"COMPLETED\", \"mem_peak_mib\": 5, "
        "\"gpus_requested\": 1}"};
    struct command_history history = {0};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        json_t *record = json_loads(texts[i], 0, NULL);
        command_history_take(&history, record);
        json_decref(record);
    }
    assert_int_equal(history.n, 0);
    command_history_take(&history, NULL);
    command_history_fini(&history);
}

static uint64_t key_of(const char *script, const char *arguments, const char *cwd, int gpus)
{
    json_t *list = arguments ? json_loads(arguments, 0, NULL) : NULL;
    uint64_t key = command_history_key(script, list, cwd, gpus, NULL);
    json_decref(list);
    return key;
}

static void a_subject_as_text(void **state)
{
    (void)state;
    uint64_t key;
    json_t *subject = json_pack("{s:s, s:i}", "fingerprint", "0a", "batch", 4);
    assert_false(command_history_read_key(subject, &key));
    command_history_keep_key(subject, 0xabc);
    char *text = json_dumps(subject, JSON_COMPACT);
    assert_true(command_history_read_key(subject, &key) && key == 0xabc);
    assert_true(command_history_is_of(text, 0xabc));
    assert_false(command_history_is_of(text, 0xabd) || command_history_is_of(NULL, 0xabc));
    free(text);
    json_decref(subject);
}

static void which_submissions_are_of_one_command(void **state)
{
    (void)state;
    uint64_t key = key_of("train", "[\"a\", \"b\"]", "/home/ada", 1);
    assert_true(key == key_of("train", "[\"a\", \"b\"]", "/home/ada", 1));
    assert_true(key != key_of("train", "[\"a\", \"c\"]", "/home/ada", 1));
    assert_true(key != key_of("train", "[\"ab\"]", "/home/ada", 1));
    assert_true(key != key_of("train", "[\"a\", \"b\"]", "/home/bob", 1));
    assert_true(key != key_of("train", "[\"a\", \"b\"]", "/home/ada", 2));
    assert_true(key_of("train", NULL, "/", 1) == key_of("train", "[]", "/", 1));
    assert_true(command_history_key("t", NULL, "/", 1, "H100") !=
                command_history_key("t", NULL, "/", 1, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_highest_peak_counts),
        cmocka_unit_test(the_lowest_speed_alone_counts),
        cmocka_unit_test(a_running_training_is_known_early),
        cmocka_unit_test(the_activity_of_a_running_training_is_known_early),
        cmocka_unit_test(a_crash_makes_it_unknown),
        cmocka_unit_test(the_oldest_command_goes_first),
        cmocka_unit_test(commands_of_one_bucket_are_kept_apart),
        cmocka_unit_test(no_user_drives_out_what_others_ran),
        cmocka_unit_test(records_of_the_newest_first),
        cmocka_unit_test(records_that_say_nothing),
        cmocka_unit_test(a_subject_as_text),
        cmocka_unit_test(which_submissions_are_of_one_command),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
