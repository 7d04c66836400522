/* SPDX-License-Identifier: Apache-2.0 */
/* The derivatives, tensor by tensor, against differences of the loss; and training against what
 * estimators run. */
#include "step_bench.h"

#include "estimator/gpumemnet/gpumemnet_net.h"
#include "memnet/layers.h"

/* Along one random direction within the tensor; the smaller step takes over where a ReLU bends in
 * between. */
static void check_tensor(struct bench *bench, const struct tensor *tensor, const float *exact)
{
    const double share = 0.02, least = 2e-4;
    double direction[256], along = 0, slope = 0, error = 1;
    assert_true(tensor->n <= 256);
    for (size_t j = 0; j < tensor->n; j++) {
        direction[j] = seeded_random_normal(&bench->random);
        along += direction[j] * (double)exact[tensor->at + j];
    }
    for (double step = 1e-2; step > 5e-4 && error > share * fabs(along) + least; step /= 4) {
        double loss[2];
        for (int side = 0; side < 2; side++) {
            memcpy(bench->other, bench->weights, bench->layout.size * sizeof(float));
            for (size_t j = 0; j < tensor->n; j++)
                bench->other[tensor->at + j] += (float)((side ? step : -step) * direction[j]);
            loss[side] = loss_at(bench, bench->other);
        }
        slope = (loss[1] - loss[0]) / (2 * step);
        error = fabs(slope - along);
    }
    if (error > share * fabs(along) + least)
        fail_msg("%s at %zu: derivative %g, difference %g", tensor->what, tensor->at, along, slope);
}

/* So far that hardly any ReLU is near its bend, where differences mislead. */
static void lift(struct bench *bench, const struct block_layout *block)
{
    for (int c = 0; c < block->norm.width; c++)
        bench->weights[block->norm.shift + (size_t)c] += 4;
}

static void lift_all(struct bench *bench)
{
    const struct gpumemnet_layout *layout = &bench->layout;
    for (int e = 0; e < layout->n_encoders; e++) {
        lift(bench, &layout->encoder[e].embedding[0]);
        lift(bench, &layout->encoder[e].embedding[1]);
    }
    for (int m = 0; m < layout->n_members; m++)
        for (int i = 0; i < layout->member[m].n_blocks; i++)
            lift(bench, &layout->member[m].block[i]);
}

static void check_gradients(enum gpumemnet_family family, enum gpumemnet_method method)
{
    struct bench *bench = bench_create(family, method);
    float *exact = calloc(bench->layout.size, sizeof(float));
    double largest = 0;
    assert_non_null(exact);
    lift_all(bench);
    loss_at(bench, bench->weights);
    memcpy(exact, bench->gradients, bench->layout.size * sizeof(float));
    for (size_t i = 0; i < bench->n_tensors; i++) {
        check_tensor(bench, &bench->tensor[i], exact);
        for (size_t j = 0; j < bench->tensor[i].n; j++)
            largest = fmax(largest, fabs((double)exact[bench->tensor[i].at + j]));
    }
    assert_true(largest > 0.01);
    free(exact);
    bench_destroy(bench);
}

static void test_gradients_of_the_ensembles(void **state)
{
    (void)state;
    check_gradients(GPUMEMNET_MLP, GPUMEMNET_ENSEMBLE);
    check_gradients(GPUMEMNET_CNN, GPUMEMNET_ENSEMBLE);
}

static void test_gradients_of_the_encoders(void **state)
{
    (void)state;
    check_gradients(GPUMEMNET_TRANSFORMER, GPUMEMNET_ENCODER);
}

static void test_relu(void **state)
{
    (void)state;
    float y[] = {-1, 0, 2, 3}, dy[] = {5, 6, 7, 8};
    relu_forward(y, 4);
    relu_backward(y, dy, 4);
    for (int i = 0; i < 4; i++)
        assert_true(y[i] == (i < 2 ? 0 : (float)i) && dy[i] == (i < 2 ? 0 : (float)i + 5));
}

static void test_every_number_is_in_a_tensor_or_runs_along(void **state)
{
    (void)state;
    struct bench *bench = bench_create(GPUMEMNET_CNN, GPUMEMNET_ENCODER);
    size_t n = 0, running = 0;
    for (size_t i = 0; i < bench->n_tensors; i++)
        n += bench->tensor[i].n;
    for (int m = 0; m < bench->layout.n_members; m++)
        for (int i = 0; i < bench->layout.member[m].n_blocks; i++)
            running += 2 * (size_t)bench->layout.member[m].block[i].norm.width;
    for (int e = 0; e < bench->layout.n_encoders; e++)
        running += 4 * (size_t)bench->layout.encoder[e].width;
    assert_int_equal(bench->layout.size, n + running);
    bench_destroy(bench);
}

/* With the batch's moments in the place of the running ones both must say the same. */
static void check_agreement(enum gpumemnet_family family, enum gpumemnet_method method)
{
    struct bench *bench = bench_create(family, method);
    double loss = 0, sum = 0, bias = (ROWS - 1.0) / ROWS;
    size_t tokens = 0;
    for (int i = 0; i < 300; i++)
        loss = loss_at(bench, bench->weights);
    for (int i = 0; i < ROWS; i++)
        tokens += bench->rows[i].n_tokens;
    for (int m = 0; m < bench->layout.n_members; m++)
        for (int i = 0; i < bench->layout.member[m].n_blocks; i++)
            for (int c = 0; c < bench->layout.member[m].block[i].norm.width; c++)
                bench->weights[bench->layout.member[m].block[i].norm.variance + (size_t)c] *=
                    (float)bias;
    for (int e = 0; e < bench->layout.n_encoders; e++)
        for (int i = 0; i < 2; i++)
            for (int c = 0; c < bench->layout.encoder[e].width; c++)
                bench->weights[bench->layout.encoder[e].embedding[i].norm.variance + (size_t)c] *=
                    (float)((double)(tokens - 1) / (double)tokens);
    struct gpumemnet_net net = {.family = family,
        .method = method,
        .n_classes = CLASSES,
        .layout = bench->layout,
        .weights = bench->weights,
        .longest = 100};
    for (int i = 0; i < ROWS; i++) {
        float logits[GPUMEMNET_CLASSES_MAX];
        double powers = 0;
        assert_int_equal(gpumemnet_net_logits(&net, bench->rows[i].values, bench->rows[i].tokens,
                             bench->rows[i].n_tokens, logits),
            0);
        for (int k = 0; k < CLASSES; k++)
            powers += exp((double)logits[k]);
        sum += log(powers) - (double)logits[bench->rows[i].class];
    }
    assert_true(fabs(sum / ROWS - loss) < 1e-4);
    bench_destroy(bench);
}

static void test_training_and_estimating_agree(void **state)
{
    (void)state;
    check_agreement(GPUMEMNET_CNN, GPUMEMNET_ENSEMBLE);
    check_agreement(GPUMEMNET_TRANSFORMER, GPUMEMNET_ENCODER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gradients_of_the_ensembles),
        cmocka_unit_test(test_gradients_of_the_encoders),
        cmocka_unit_test(test_relu),
        cmocka_unit_test(test_every_number_is_in_a_tensor_or_runs_along),
        cmocka_unit_test(test_training_and_estimating_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
