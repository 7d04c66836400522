/* SPDX-License-Identifier: Apache-2.0 */
/* The figures by which networks are compared. */
#include "unit.h"

#include "memnet/net_metrics.h"

enum { N = 6 };

/* Classes 0 0 0 1 1 2, said to be 0 0 1 1 1 0: by hand below. */
static void make_answers(struct task_row rows[N], struct net_answer answers[N])
{
    static const int class[N] = {0, 0, 0, 1, 1, 2}, answered[N] = {0, 0, 1, 1, 1, 0};
    for (int i = 0; i < N; i++) {
        rows[i] = (struct task_row){.part = PART_TEST, .bytes = (class[i] + 0.5) * GIB};
        rows[i].optimizer = i % 2 ? OPTIMIZER_SGD : OPTIMIZER_ADAMW;
        rows[i].precision = PRECISION_FP32;
        snprintf(
            rows[i].family, sizeof rows[i].family, "%s", i < 3 ? "mlp-uniform" : "mlp-pyramid");
        answers[i] = (struct net_answer){
            .row = &rows[i],
            .class = class[i],
            .answered = answered[i],
            .edge_bytes = (answered[i] + 1.0) * GIB,
            .p50_bytes = (answered[i] + 0.5) * GIB,
            .p90_bytes = (answered[i] + 0.9) * GIB,
            .p99_bytes = 9.0 * GIB,
        };
    }
}

static const struct gpumemnet_net net = {.bin_mib = 1024, .n_classes = 3};

static void test_by_hand(void **state)
{
    (void)state;
    struct task_row rows[N];
    struct net_answer answers[N];
    struct net_metrics m;
    make_answers(rows, answers);
    assert_int_equal(net_metrics_compute(&net, answers, N, NET_METRICS_TEST, NULL, &m), 0);
    assert_int_equal(m.n, N);
    assert_float_equal(m.accuracy, 4.0 / 6, 1e-9);
    assert_float_equal(m.recall, m.accuracy, 1e-9);
    assert_float_equal(m.precision, (3 * (2.0 / 3) + 2 * (2.0 / 3) + 0) / 6, 1e-9);
    assert_float_equal(m.f1, (3 * (2.0 / 3) + 2 * 0.8 + 0) / 6, 1e-9);
    assert_float_equal(m.commonest, 0.5, 1e-9);
    assert_float_equal(m.under, 1.0 / 6, 1e-9);
    assert_float_equal(m.error_most, 3, 1e-9);
    assert_float_equal(m.over_mean, (1 + 1 + 3 + 2 * (2 / 1.5 - 1) + 0) / 6, 1e-9);
    assert_float_equal(m.covered_p50, 5.0 / 6, 1e-9);
    assert_float_equal(m.covered_p99, 1, 1e-9);
    assert_float_equal(m.p50_error_median, 0, 1e-9);
}

static void test_groups(void **state)
{
    (void)state;
    struct task_row rows[N];
    struct net_answer answers[N];
    struct net_metrics m;
    make_answers(rows, answers);
    rows[0].part = PART_TRAINING;
    rows[1].real = true;
    assert_int_equal(net_metrics_compute(&net, answers, N, NET_METRICS_TEST, NULL, &m), 0);
    assert_int_equal(m.n, 4);
    assert_int_equal(net_metrics_compute(&net, answers, N, NET_METRICS_TEST_ADAM, NULL, &m), 0);
    assert_int_equal(m.n, 2);
    assert_int_equal(net_metrics_compute(&net, answers, N, NET_METRICS_REAL, NULL, &m), 0);
    assert_int_equal(m.n, 1);
    assert_int_equal(net_metrics_compute(&net, answers, N, NET_METRICS_TEST, "mlp-uniform", &m), 0);
    assert_int_equal(m.n, 1);
    assert_int_equal(net_metrics_compute(&net, answers, N, NET_METRICS_TEST, "cnn", &m), 0);
    assert_int_equal(m.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand), cmocka_unit_test(test_groups)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
