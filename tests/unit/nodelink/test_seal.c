/* SPDX-License-Identifier: Apache-2.0 */
/* Lines sealed by a shared key: what is opened, and what is refused. (munge's are in test_link.) */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "nodelink/munge_seal.h"
#include "nodelink/seal.h"

int64_t __real_clock_wall_us(void);
int64_t __wrap_clock_wall_us(void);

static int64_t step_us; /* by which the wall clock was set */

int64_t __wrap_clock_wall_us(void)
{
    return __real_clock_wall_us() + step_us;
}

static const uint8_t key[SHA256_SIZE] = "a key of the nodes", other_key[SHA256_SIZE] = "another";

static struct seal *create(enum seal_end end, const uint8_t *of)
{
    struct seal *seal = seal_create(&(struct seal_options){.end = end, .key = of});
    assert_non_null(seal);
    return seal;
}

/* Opens the line by a new seal. Returns its answer. */
static int open_line(enum seal_end end, const uint8_t *of, const char *line, struct fault *fault)
{
    struct seal *seal = create(end, of);
    char *text;
    size_t size;
    int r = seal_decode(seal, line, fault, &text, &size);
    assert_true((r == 0) == (text != NULL));
    free(text);
    seal_destroy(seal);
    return r;
}

static char *seal_text(enum seal_end end, const uint8_t *of, const char *text)
{
    struct seal *seal = create(end, of);
    char *line;
    assert_int_equal(seal_encode(seal, text, strlen(text), NULL, &line), 0);
    seal_destroy(seal);
    return line;
}

/* As an agent would seal it at that time. */
static char *sealed_at(const char *front, int64_t time_us)
{
    char rest[128], hex[SHA256_HEX_SIZE], *line;
    uint8_t code[SHA256_SIZE];
    snprintf(rest, sizeof rest, "%s:%" PRId64 ":{}", front, time_us);
    sha256_hmac(key, rest, strlen(rest), code);
    sha256_format(code, hex);
    assert_true(asprintf(&line, "KEY:%s:%s", hex, rest) > 0);
    return line;
}

static void the_other_end_opens(void **state)
{
    struct seal *agent = create(SEAL_AGENT, key), *controller = create(SEAL_CONTROLLER, key);
    char *line, *text;
    size_t size;
    assert_int_equal(seal_encode(agent, "{\"a\": 1}", 8, NULL, &line), 0);
    assert_int_equal(seal_decode(controller, line, NULL, &text, &size), 0);
    assert_int_equal(size, 8);
    assert_string_equal(text, "{\"a\": 1}");
    free(text);
    assert_int_equal(seal_decode(agent, line, NULL, &text, &size), SEAL_WRONG_USER);
    free(line);
    seal_destroy(agent);
    seal_destroy(controller);
}

static void another_key_is_refused(void **state)
{
    struct fault fault = {""};
    char *line = seal_text(SEAL_AGENT, other_key, "{}");
    assert_int_equal(open_line(SEAL_CONTROLLER, key, line, &fault), SEAL_INVALID);
    assert_non_null(strstr(fault.text, "node-key-file"));
    free(line);
}

static void what_is_altered_is_refused(void **state)
{
    char *line = seal_text(SEAL_AGENT, key, "{\"sequence\": 1}");
    struct seal *controller = create(SEAL_CONTROLLER, key);
    for (size_t i = 0; line[i]; i++) {
        char *text, was = line[i];
        size_t size;
        line[i] ^= 1;
        assert_int_equal(seal_decode(controller, line, NULL, &text, &size), SEAL_INVALID);
        line[i] = '\0'; /* and what is cut */
        assert_int_equal(seal_decode(controller, line, NULL, &text, &size), SEAL_INVALID);
        line[i] = was;
    }
    seal_destroy(controller);
    free(line);
}

static void expect_of_time(int64_t time_us, int answer, const char *said)
{
    struct fault fault = {""};
    char *line = sealed_at("a", time_us);
    assert_int_equal(open_line(SEAL_CONTROLLER, key, line, &fault), answer);
    assert_non_null(strstr(fault.text, said));
    free(line);
}

static void the_time_counts(void **state)
{
    int64_t now_us = clock_wall_us();
    expect_of_time(now_us + 30 * SECOND_US, 0, "");
    expect_of_time(now_us + 90 * SECOND_US, SEAL_REWOUND, "in the future: do the clocks");
    expect_of_time(now_us - 90 * SECOND_US, SEAL_EXPIRED, "do the clocks");
    expect_of_time(now_us - SECOND_US, SEAL_EXPIRED, "before this program was started");
}

/* An end that was there before the clock was set opens what is sealed since, and nothing that is
 * from before it began. */
static void a_clock_that_is_set_stops_no_line(void **state)
{
    static const int64_t steps_us[] = {-3600 * SECOND_US, 3600 * SECOND_US};
    for (size_t i = 0; i < ARRAY_SIZE(steps_us); i++) {
        struct seal *agent = create(SEAL_AGENT, key), *controller = create(SEAL_CONTROLLER, key);
        char *line, *text;
        size_t size;
        step_us = steps_us[i];
        assert_int_equal(seal_encode(agent, "{}", 2, NULL, &line), 0);
        assert_int_equal(seal_decode(controller, line, NULL, &text, &size), 0);
        free(text);
        free(line);
        line = sealed_at("a", clock_wall_us() - 30 * SECOND_US);
        assert_int_equal(seal_decode(controller, line, NULL, &text, &size), SEAL_EXPIRED);
        free(line);
        seal_destroy(agent);
        seal_destroy(controller);
        step_us = 0;
    }
}

static void other_forms_are_refused(void **state)
{
    static const char *const fronts[] = {"", "a", "ax:1", "a:1x", "a:-1", "x"};
    for (size_t i = 0; i < sizeof fronts / sizeof *fronts; i++) {
        char *line = sealed_at(fronts[i], clock_wall_us() + SECOND_US);
        struct fault fault = {""};
        int r = open_line(SEAL_CONTROLLER, key, line, &fault);
        assert_true(r > 0 || i == 1);
        free(line);
    }
    assert_int_equal(open_line(SEAL_CONTROLLER, key, "", NULL), SEAL_INVALID);
    assert_int_equal(open_line(SEAL_CONTROLLER, key, "MUNGE:AwQD:", NULL), SEAL_INVALID);
}

static void both_ends_derive_the_same_key(void **state)
{
    struct seal *agent = create(SEAL_AGENT, key), *controller = create(SEAL_CONTROLLER, key),
                *other = create(SEAL_AGENT, other_key);
    uint8_t a[SHA256_SIZE] = {1}, b[SHA256_SIZE] = {1}, c[SHA256_SIZE] = {1},
            was[SHA256_SIZE] = {1};
    seal_derive_key(agent, a);
    seal_derive_key(controller, b);
    seal_derive_key(other, c);
    assert_memory_equal(a, b, SHA256_SIZE);
    assert_memory_not_equal(a, c, SHA256_SIZE);
    assert_memory_not_equal(a, was, SHA256_SIZE);
    seal_destroy(agent);
    seal_destroy(controller);
    seal_destroy(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_other_end_opens),
        cmocka_unit_test(another_key_is_refused),
        cmocka_unit_test(what_is_altered_is_refused),
        cmocka_unit_test(the_time_counts),
        cmocka_unit_test(a_clock_that_is_set_stops_no_line),
        cmocka_unit_test(other_forms_are_refused),
        cmocka_unit_test(both_ends_derive_the_same_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
