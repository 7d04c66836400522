/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of output against patterns: the numbers found, lines that do not match, and the time that
 * bad patterns take. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/array.h"
#include "taskfile/metric_pattern.h"
#include "taskfile/metric_source.h"

/* A step of -1: the line has none; -2: it does not match. */
static void test_lines(void **state)
{
    static const struct {
        const char *pattern, *line;
        int64_t step;
        double value;
    } rows[] = {
        {"epoch {step}: val_loss={value}", "epoch 3: val_loss=0.41", 3, 0.41},
        {"epoch {step}: val_loss={value}", "[12:01] epoch   3: val_loss=-4.1e-2, best", 3, -0.041},
        {"epoch {step}: val_loss={value}", "epoch 3: loss=0.41", -2, 0},
        {"epoch {step}: *loss={value}", "epoch 3: acc=0.9 loss: no, loss=0.41", 3, 0.41},
        /* Keras 3, PyTorch Lightning's and Hugging Face's lines */
        {"val_loss: {value}", "10/10 - 2s - loss: 0.6931 - val_loss: 0.6902", -1, 0.6902},
        {"Epoch {step}:*val_loss={value}]", "Epoch 2: 100%|##| 9/9 [0.1s/it, v_num=0, val_loss=1]",
            2, 1},
        {"'eval_loss': {value},*'epoch': {step}", "{'eval_loss': 0.35, 'x': 1, 'epoch': 4.0}", 4,
            0.35},
        {"{value} s", "x12 s took 3.5 s", -1, 3.5},
        {"loss {value}", "loss nan", -1, NAN},
        {"loss {value}", "loss \t inf", -1, INFINITY},
        {"loss{value}", "loss 1", -2, 0},
        {"step {step} {value}", "step -1 2", -2, 0},
        {"step {step} {value}", "step 99999999999999999999 2", -2, 0},
        {"*{value}*", "", -2, 0},
        {"{value}", "", -2, 0},
        {"a*b*{value}", "a a b c b 7", -1, 7},
        {"v={value}", "v=x v=0x10", -1, 16},
    };
    struct metric_report report;
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        bool matches = metric_pattern_match(rows[i].pattern, span_of(rows[i].line), &report);
        print_message("%s | %s\n", rows[i].pattern, rows[i].line);
        assert_int_equal(matches, rows[i].step != -2);
        if (!matches)
            continue;
        assert_int_equal(report.has_step ? report.step : -1, rows[i].step);
        assert_true(report.value == rows[i].value || (isnan(report.value) && isnan(rows[i].value)));
    }
}

/* A pattern of many stars and a long line without a match end at once: no backtracking. */
static void test_long_lines(void **state)
{
    char line[2 * METRIC_LINE_MAX];
    struct metric_report report;
    (void)state;
    memset(line, 'a', sizeof line);
    const struct span span = {line, sizeof line};
    assert_false(metric_pattern_match("*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*{value}", span, &report));
    memcpy(line + 100, " v=3 ", 5);
    assert_true(metric_pattern_match("*a*a*a*a*a v={value}", span, &report));
    assert_true(report.value == 3);
}

static int64_t count_line(struct step_count *count, const char *pattern, const char *line)
{
    return step_count_line(count, pattern, (struct span){line, strlen(line)});
}

static void test_steps(void **state)
{
    static const struct {
        const char *line;
        int64_t steps;
    } lines[] = {{"step 50: loss 3", 0}, {"step 100: loss 2", 50}, {"evaluation", 0},
        {"step 101: loss 2", 1}, {"step 0: the next epoch", 0}, {"step 50: loss 1", 50},
        {"step 99999999999: a lie", 0}, {"step 99999999999999999999: no number", 0}};
    struct step_count count = {false, 0};
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
        assert_int_equal(count_line(&count, "step {step}:", lines[i].line), lines[i].steps);
    assert_int_equal(count_line(&count, "loss={value}", "x loss=0.3"), 1);
    assert_int_equal(count_line(&count, "loss={value}", "x loss"), 0);
}

static void test_step_patterns(void **state)
{
    static const char *const good[] = {"step", "step {step}:", "it {step} loss {value}", "*x*"};
    static const char *const bad[] = {"", "*", " * ", "{step} {step}", "{value} a {value}"};
    struct fault fault;
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(good); i++)
        assert_int_equal(step_pattern_check(good[i], &fault), 0);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_true(step_pattern_check(bad[i], &fault) < 0);
}

static void test_sources(void **state)
{
    static const char *const good[] = {"tensorboard:runs/%a", "tensorboard:/d/%4j/x", "mlflow:m",
        "output:{value}", "output:a {step} b:{value}"};
    static const char *const bad[] = {"", "tensorboard", "tensorboard:", "tensorboard:runs",
        "tensorboard:runs/%x", "output:", "output:loss", "output:{value} {value}",
        "output:{step} {step} {value}", "wandb:x", "/runs/%a"};
    struct fault fault;
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(good); i++)
        assert_int_equal(metric_source_check(good[i], &fault), 0);
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
        assert_true(metric_source_check(bad[i], &fault) < 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_long_lines),
        cmocka_unit_test(test_steps),
        cmocka_unit_test(test_step_patterns),
        cmocka_unit_test(test_sources),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
