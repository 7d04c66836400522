/* SPDX-License-Identifier: Apache-2.0 */
/* In which order MPS clients lose their work: wrappers as users write them, one test each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/array.h"
#include "exec/drain_plan.h"

static const struct drain_process plain = {.on_sigterm = SIGTERM_KILLS};
static const struct drain_process in_background = {
    .on_sigterm = SIGTERM_KILLS, .in_background = true};
static const struct drain_process with_handler = {.on_sigterm = SIGTERM_CAUGHT};
static const struct drain_process deaf = {.on_sigterm = SIGTERM_IGNORED};
static const struct drain_process shell = {.on_sigterm = SIGTERM_KILLS, .is_shell = true};
static const struct drain_process shell_with_trap = {
    .on_sigterm = SIGTERM_CAUGHT, .is_shell = true};

static void assert_plan(
    enum drain_fate expected, size_t expected_top, const struct drain_process *chain, size_t n)
{
    size_t top = 0;
    assert_int_equal(drain_plan(chain, n, &top), expected);
    assert_int_equal(top, expected_top);
}

#define ASSERT_PLAN(FATE, TOP, ...)                                                                \
    do {                                                                                           \
        const struct drain_process chain[] = {__VA_ARGS__};                                        \
        assert_plan(FATE, TOP, chain, ARRAY_SIZE(chain));                                          \
    } while (0)

static void a_plain_training_is_dropped(void **state)
{
    ASSERT_PLAN(DRAIN_DROP, 0, plain);
    ASSERT_PLAN(DRAIN_DROP, 0, plain, shell);
    ASSERT_PLAN(DRAIN_DROP, 0, plain, plain, shell);
}

static void what_survives_the_signal_gets_it(void **state)
{
    ASSERT_PLAN(DRAIN_SIGNAL, 0, with_handler, shell);
    ASSERT_PLAN(DRAIN_SIGNAL, 0, deaf, shell_with_trap);
    ASSERT_PLAN(DRAIN_SIGNAL, 0, with_handler, shell_with_trap);
}

static void a_wrapper_that_waits_decides(void **state)
{
    ASSERT_PLAN(DRAIN_SPARE, 0, in_background, shell_with_trap);
    ASSERT_PLAN(DRAIN_SPARE, 0, plain, with_handler);
    ASSERT_PLAN(DRAIN_SPARE, 0, plain, with_handler, shell);
}

/* "time python train.py &": the signal must reach neither python nor what started it. */
static void all_between_wrapper_and_client_is_spared(void **state)
{
    ASSERT_PLAN(DRAIN_SPARE, 1, in_background, in_background, shell_with_trap);
    ASSERT_PLAN(DRAIN_SPARE, 2, plain, shell, plain, with_handler, shell);
}

static void a_shell_cannot_act_before_its_foreground_has_ended(void **state)
{
    ASSERT_PLAN(DRAIN_DROP, 0, plain, shell_with_trap);
    ASSERT_PLAN(DRAIN_DROP, 0, plain, plain, shell_with_trap);
    ASSERT_PLAN(DRAIN_DROP, 0, plain, shell_with_trap, with_handler);
}

static void what_proc_says(void **state)
{
    struct drain_process process;
    drain_describe("Name:\tpython3\nSigBlk:\tffffffffffffffff\nSigIgn:\t0000000000001006\n"
                   "SigCgt:\t0000000000004000\n",
        "python3.11", &process);
    assert_int_equal(process.on_sigterm, SIGTERM_CAUGHT);
    assert_true(process.in_background);
    assert_false(process.is_shell);
    drain_describe(
        "Name:\tscript\nSigIgn:\t0000000000004004\nSigCgt:\t0000000000010000\n", "bash", &process);
    assert_int_equal(process.on_sigterm, SIGTERM_IGNORED);
    assert_false(process.in_background);
    assert_true(process.is_shell);
    drain_describe("", "", &process); /* gone */
    assert_int_equal(process.on_sigterm, SIGTERM_KILLS);
    assert_false(process.is_shell || process.in_background);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_plain_training_is_dropped),
        cmocka_unit_test(what_survives_the_signal_gets_it),
        cmocka_unit_test(a_wrapper_that_waits_decides),
        cmocka_unit_test(all_between_wrapper_and_client_is_spared),
        cmocka_unit_test(a_shell_cannot_act_before_its_foreground_has_ended),
        cmocka_unit_test(what_proc_says),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
