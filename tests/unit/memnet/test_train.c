/* SPDX-License-Identifier: Apache-2.0 */
/* Training: what it learns, the same weights for the same seed, patience, threads. */
#include "unit.h"

#include <errno.h>

#include "memnet/net_metrics.h"
#include "memnet/training_pool.h"

static struct blas blas;

static int open_blas(void **state)
{
    struct fault fault;
    (void)state;
    return blas_open(&fault, &blas);
}

static int close_blas(void **state)
{
    (void)state;
    blas_close(&blas);
    return 0;
}

static const struct net_plan *plan_named(const char *name)
{
    const struct net_plan *plan = NULL;
    for (size_t i = 0; (plan = net_plan_at(i)) != NULL && strcmp(plan->name, name) != 0; i++)
        ;
    assert_non_null(plan);
    return plan;
}

struct seen {
    int epochs, best;
    double first_loss, last_loss;
};

static bool on_epoch(void *context, const struct train_progress *progress)
{
    struct seen *seen = context;
    seen->epochs = progress->epoch;
    seen->best = progress->best_epoch;
    if (progress->epoch == 1)
        seen->first_loss = progress->training_loss;
    seen->last_loss = progress->training_loss;
    return true;
}

static char *train(
    const struct dataset *dataset, const char *name, int64_t seed, int epochs, struct seen *seen)
{
    struct gpumemnet_net net;
    struct fault fault = {""};
    struct train_settings settings = {.blas = &blas,
        .seed = seed,
        .epochs_max = epochs,
        .on_epoch = seen ? on_epoch : NULL,
        .context = seen};
    if (memnet_train(dataset, plan_named(name), &settings, &fault, &net) < 0)
        fail_msg("%s", fault.text);
    char *text = gpumemnet_net_format(&net);
    gpumemnet_net_fini(&net);
    assert_non_null(text);
    return text;
}

static struct net_metrics count(
    const struct dataset *dataset, const char *text, enum net_metrics_group group)
{
    struct gpumemnet_net net;
    struct fault fault = {""};
    struct net_answer *answers;
    struct net_metrics metrics;
    size_t n;
    if (gpumemnet_net_parse(text, strlen(text), &fault, &net) < 0)
        fail_msg("%s", fault.text);
    assert_int_equal(net_answers_compute(&net, dataset, &answers, &n), 0);
    assert_int_equal(n, dataset->n);
    assert_int_equal(net_metrics_compute(&net, answers, n, group, NULL, &metrics), 0);
    free(answers);
    gpumemnet_net_fini(&net);
    return metrics;
}

static void learns(const char *name, size_t rows, int epochs, double accuracy)
{
    struct dataset dataset = make_dataset(rows);
    struct seen seen = {0};
    char *text = train(&dataset, name, 1, epochs, &seen);
    struct net_metrics metrics = count(&dataset, text, NET_METRICS_TEST);
    assert_true(seen.last_loss < 0.5 * seen.first_loss);
    assert_true(
        metrics.n > 0 && metrics.accuracy >= accuracy && metrics.accuracy > metrics.commonest);
    free(text);
    dataset_fini(&dataset);
}

static void test_learns_a_formula(void **state)
{
    (void)state;
    learns("mlp-mlp-1gib", 1200, 60, 0.9);
    learns("mlp-transformer-1gib", 400, 25, 0.8);
}

static void test_fits_a_tiny_set(void **state)
{
    (void)state;
    struct dataset dataset = make_dataset(60);
    struct seen seen = {0};
    for (size_t i = 0; i < dataset.n; i++)
        dataset.rows[i].bytes = (dataset.rows[i].features.value[VALUE_BATCH] > 6 ? 0.7 : 1.2) * GIB;
    char *text = train(&dataset, "mlp-mlp-1gib", 1, 0, &seen);
    assert_true(seen.last_loss < 0.1);
    free(text);
    dataset_fini(&dataset);
}

static void test_same_seed_same_weights(void **state)
{
    (void)state;
    struct dataset dataset = make_dataset(200);
    static const char *const names[] = {"mlp-mlp-1gib", "mlp-transformer-2gib"};
    for (size_t i = 0; i < 2; i++) {
        char *once = train(&dataset, names[i], 5, 4, NULL),
             *again = train(&dataset, names[i], 5, 4, NULL);
        char *other = train(&dataset, names[i], 6, 4, NULL);
        assert_string_equal(once, again);
        assert_string_not_equal(once, other);
        free(once);
        free(again);
        free(other);
    }
    dataset_fini(&dataset);
}

/* Ends long before 600 epochs, with the weights of the best one. */
static void test_patience(void **state)
{
    (void)state;
    struct dataset dataset = make_dataset(120);
    struct seeded_random random = {.state = 1};
    struct seen seen = {0};
    for (size_t i = 0; i < dataset.n; i++) /* noise: nothing carries over to other rows */
        dataset.rows[i].bytes = (seeded_random_fraction(&random) < 0.5 ? 0.5 : 1.5) * GIB;
    char *text = train(&dataset, "mlp-mlp-1gib", 1, 0, &seen);
    assert_int_equal(seen.epochs, seen.best + TRAIN_PATIENCE);
    char *best = train(&dataset, "mlp-mlp-1gib", 1, seen.best, NULL);
    assert_string_equal(text, best);
    free(text);
    free(best);
    dataset_fini(&dataset);
}

/* ---- the pool ---- */

static int on_trained(void *context, const struct net_plan *plan, int r,
    const struct gpumemnet_net *net, struct fault *fault)
{
    char **texts = context;
    (void)fault;
    if (r == -ENODATA)
        return 0;
    size_t i = 0;
    while (net_plan_at(i) != plan)
        i++;
    texts[i] = gpumemnet_net_format(net);
    return 0;
}

static void test_threads_do_not_matter(void **state)
{
    (void)state;
    struct dataset dataset = make_dataset(150);
    char *texts[2][16] = {{NULL}};
    for (int jobs = 1; jobs <= 2; jobs++) {
        const struct training_pool_settings settings = {.blas = &blas,
            .dataset = &dataset,
            .seed = 1,
            .jobs = 2 * jobs - 1,
            .epochs_max = 3,
            .on_trained = on_trained,
            .context = texts[jobs - 1]};
        struct fault fault = {""};
        assert_int_equal(training_pool_run(&settings, &fault), 0);
    }
    for (size_t i = 0; i < 16; i++) {
        assert_int_equal(texts[0][i] == NULL, texts[1][i] == NULL);
        if (texts[0][i])
            assert_string_equal(texts[0][i], texts[1][i]);
        free(texts[0][i]);
        free(texts[1][i]);
    }
    dataset_fini(&dataset);
}

static void test_too_few_rows(void **state)
{
    (void)state;
    struct dataset dataset = make_dataset(10);
    struct gpumemnet_net net;
    struct fault fault = {""};
    const struct train_settings settings = {.blas = &blas, .seed = 1};
    assert_int_equal(
        memnet_train(&dataset, plan_named("cnn-mlp-8gib"), &settings, &fault, &net), -ENODATA);
    assert_string_equal(fault.text, "0 training rows of kind cnn: at least 20 are needed");
    dataset_fini(&dataset);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_learns_a_formula),
        cmocka_unit_test(test_fits_a_tiny_set),
        cmocka_unit_test(test_same_seed_same_weights),
        cmocka_unit_test(test_patience),
        cmocka_unit_test(test_threads_do_not_matter),
        cmocka_unit_test(test_too_few_rows),
    };
    return cmocka_run_group_tests(tests, open_blas, close_blas);
}
