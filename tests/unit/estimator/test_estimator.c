/* SPDX-License-Identifier: Apache-2.0 */
/* The table of estimators, checks of requests, and the simple estimators. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/units.h"
#include "estimator/estimator.h"
#include "estimator/physics/gpu_traits.h"

static const char two_layers[] =
    "Conv2d-1 [-1, 16, 8, 8] 448\nMaxPool2d-2 [-1, 16, 4, 4] 0\nLinear-3 [-1, 10] 2,570\n";
static const char fixed_batch[] =
    "Conv2d-1 [32, 16, 8, 8] 448\nMaxPool2d-2 [32, 16, 4, 4] 0\nLinear-3 [32, 10] 2,570\n";

enum { TWO_LAYERS_ACTIVATIONS = 16 * 8 * 8 + 10, TWO_LAYERS_PARAMETERS = 448 + 2570 };

static struct model *parse(const char *text)
{
    struct model *model = NULL;
    struct fault fault = {""};
    if (model_parse(text, strlen(text), &fault, &model) < 0)
        fail_msg("%s", fault.text);
    return model;
}

static double horus_bytes(double batch, double a, double p)
{
    return ((batch * a + p) + batch * p) * 4 + 800.0 * MIB;
}

/* Runs `name` over a summary; the model does not outlive the call. */
static int run(
    const char *name, const char *text, int64_t batch, struct fault *fault, struct estimate *ret)
{
    struct model *model = text ? parse(text) : NULL;
    struct estimate_request request = {.model = model, .batch = batch};
    int r = estimate_run(name, &request, fault, ret);
    model_destroy(model);
    return r;
}

static void test_table_can_be_walked(void **state)
{
    size_t n = 0;
    for (const struct estimator *e; (e = estimator_at(n)) != NULL; n++) {
        assert_ptr_equal(estimator_find(e->name), e);
        assert_true(strlen(e->help) > 0);
    }
    assert_true(n >= 3);
    assert_null(estimator_find("oracle"));
}

#if HAVE_GPUMEMNET
#define LEARNED ", gpumemnet-mlp, gpumemnet-transformer"
#else
#define LEARNED ""
#endif

static void test_unknown_name_lists_the_known(void **state)
{
    struct fault fault;
    struct estimate e;
    assert_int_equal(run("oracle", NULL, 1, &fault, &e), -ENOENT);
    assert_string_equal(fault.text,
        "no estimator is called \"oracle\"; there are: none, declared, summary, horus, "
        "faketensor, graph, history" LEARNED);
}

static void test_none_knows_nothing(void **state)
{
    struct estimate e;
    assert_int_equal(run("none", two_layers, 32, NULL, &e), ESTIMATE_UNKNOWN);
    assert_false(e.bytes.valid);
    assert_string_equal(e.estimator, "none");
}

static void test_declared_is_the_users_word(void **state)
{
    struct estimate e;
    struct fault fault;
    struct estimate_request request = {.batch = ESTIMATE_NOT_GIVEN, .declared_bytes = 5 * GIB};
    assert_int_equal(estimate_run("declared", &request, NULL, &e), 0);
    assert_true(e.bytes.valid && e.bytes.value == 5.0 * GIB);
    request.declared_bytes = 0;
    assert_int_equal(estimate_run("declared", &request, NULL, &e), ESTIMATE_UNKNOWN);
    assert_false(e.bytes.valid);
    request.declared_bytes = -1;
    assert_int_equal(estimate_run("declared", &request, &fault, &e), -EINVAL);
}

static void test_horus_formula(void **state)
{
    struct estimate e;
    assert_int_equal(run("horus", two_layers, 32, NULL, &e), 0);
    assert_true(e.bytes.valid);
    assert_true(e.bytes.value == horus_bytes(32, TWO_LAYERS_ACTIVATIONS, TWO_LAYERS_PARAMETERS));
    assert_false(e.p50_bytes.valid || e.p99_bytes.valid || e.floor_bytes.valid);
    assert_string_equal(e.note, "");
}

static void test_requested_batch_wins_over_the_printed(void **state)
{
    struct estimate e;
    assert_int_equal(run("horus", fixed_batch, 128, NULL, &e), 0);
    assert_true(e.bytes.value == horus_bytes(128, TWO_LAYERS_ACTIVATIONS, TWO_LAYERS_PARAMETERS));
    assert_int_equal(run("horus", fixed_batch, ESTIMATE_NOT_GIVEN, NULL, &e), 0);
    assert_true(e.bytes.value == horus_bytes(32, TWO_LAYERS_ACTIVATIONS, TWO_LAYERS_PARAMETERS));
    assert_int_equal(run("horus", two_layers, ESTIMATE_NOT_GIVEN, NULL, &e), ESTIMATE_UNKNOWN);
    assert_non_null(strstr(e.note, "batch size"));
}

static void test_absurd_batches(void **state)
{
    static const int64_t batches[] = {0, -5, 1000000000000000000, ESTIMATE_BATCH_MAX + 1};
    for (size_t i = 0; i < ARRAY_SIZE(batches); i++) {
        struct fault fault = {""};
        struct estimate e;
        assert_int_equal(run("horus", two_layers, batches[i], &fault, &e), -EINVAL);
        char words[64];
        snprintf(words, sizeof words, "a batch size of %lld:", (long long)batches[i]);
        assert_non_null(strstr(fault.text, words));
    }
}

static void test_sums_beyond_64_bits(void **state)
{
    struct fault fault = {""};
    struct estimate e;
    assert_int_equal(
        run("horus", "Linear-1 [-1, 9000000000000] 30\n", ESTIMATE_BATCH_MAX, &fault, &e), -ERANGE);
    assert_non_null(strstr(fault.text, "beyond 64 bits"));
}

static void test_no_shapes_is_no_zero(void **state)
{
    struct estimate e;
    assert_int_equal(
        run("horus", "Linear(in_features=10, out_features=3, bias=True)\n", 8, NULL, &e),
        ESTIMATE_UNKNOWN);
    assert_false(e.bytes.valid);
    assert_non_null(strstr(e.note, "no output shapes"));
    assert_int_equal(run("horus", NULL, 8, NULL, &e), ESTIMATE_UNKNOWN);
    assert_non_null(strstr(e.note, "needs a model summary"));
}

static void test_hidden_layers_are_not_known(void **state)
{
    struct estimate e;
    const char *text = "Layer (type:depth-idx)  Output Shape  Param #\n"
                       "├─Linear: 1-1           [4, 8]        80\n"
                       "├─Tower: 1-2            [4, 8]        800\n";
    assert_int_equal(run("horus", text, 8, NULL, &e), ESTIMATE_UNKNOWN);
    assert_non_null(strstr(e.note, "greater depth"));
}

static void test_left_out_layers_are_told(void **state)
{
    struct estimate e;
    const char *text = "Layer (type:depth-idx)  Output Shape  Param #\n"
                       "├─Linear: 1-1           [4, 8]        80\n"
                       "├─Linear: 1-2           --            80\n";
    assert_int_equal(run("horus", text, 8, NULL, &e), 0);
    assert_non_null(strstr(e.note, "1 layers have no output shape"));
}

static void test_little_memory_is_doubted(void **state)
{
    struct estimate e;
    struct estimate_request request = {.batch = ESTIMATE_NOT_GIVEN, .declared_bytes = 12 * MIB};
    assert_int_equal(estimate_run("declared", &request, NULL, &e), 0);
    assert_non_null(strstr(e.note, "12 MiB of GPU memory is less than a CUDA context takes"));
    request.declared_bytes = 300 * MIB;
    assert_int_equal(estimate_run("declared", &request, NULL, &e), 0);
    assert_string_equal(e.note, "");
}

static void test_quantiles(void **state)
{
    struct estimate e = {.bytes = reading_of(1), .p99_bytes = reading_of(3)};
    enum quantile quantile;
    assert_int_equal(quantile_parse("0.5", &quantile), 0);
    assert_int_equal(quantile, QUANTILE_P50);
    assert_int_equal(quantile_parse("P99", &quantile), 0);
    assert_int_equal(quantile_percent(quantile), 99);
    assert_int_equal(quantile_parse("0.95", &quantile), -EINVAL);
    assert_int_equal(quantile_parse("", &quantile), -EINVAL);
    assert_true(estimate_reserved(&e, QUANTILE_P99).value == 3);
    assert_true(estimate_reserved(&e, QUANTILE_P90).value == 1);
}

static void test_kinds_of_gpus(void **state)
{
    assert_string_equal(gpu_traits_find("NVIDIA A100-SXM4-40GB")->match, "A100");
    assert_string_equal(gpu_traits_find("h200")->match, "H200");
    assert_null(gpu_traits_find("NVIDIA RTX A1000"));
    assert_null(gpu_traits_find("NVIDIA Quadro P400"));
    assert_null(gpu_traits_find("L400"));
    assert_null(gpu_traits_find(""));
    assert_null(gpu_traits_find(NULL));
    static const char *const names[][2] = {{"NVIDIA L40S", "L40S"}, {"NVIDIA L4", "L4"},
        {"RTX3090", "RTX-3090"}, {"NVIDIA GeForce RTX 3090", "RTX-3090"}, {"rtx_4090", "RTX-4090"},
        {"NVIDIA RTX A6000", "A6000"}, {"A100-40GB", "A100"}, {"NVIDIA A100 80GB PCIe", "A100"},
        {"NVIDIA H100 80GB HBM3", "H100"}, {"Tesla V100-SXM2-16GB", "V100"}, {"Tesla T4", "T4"}};
    for (size_t i = 0; i < ARRAY_SIZE(names); i++)
        assert_string_equal(gpu_traits_find(names[i][0])->match, names[i][1]);
    assert_false(gpu_traits_find("A100")->is_derived);
    const struct gpu_traits *ampere = gpu_traits_find("RTX-3090");
    assert_true(ampere->is_derived && ampere->sms == 82 && ampere->bytes_per_s == 936e9);
    assert_true(ampere->flops_fp32 == 35.5e12 && ampere->flops_half == 71e12);
    assert_true(gpu_traits_find("T4")->flops_fp32 < 10e12); /* no TF32 before Ampere */
}

static void test_an_unknown_gpu_is_said_in_the_note(void **state)
{
    static const char *const kinds[] = {NULL, "NVIDIA A100-SXM4-40GB", "NVIDIA Quadro P400"};
    struct estimate answers[3];
    struct model *model = NULL;
    assert_int_equal(model_parse(two_layers, strlen(two_layers), NULL, &model), 0);
    for (size_t i = 0; i < 3; i++) {
        struct estimate_request request = {.model = model, .batch = 8, .gpu_kind = kinds[i]};
        assert_int_equal(estimate_run("graph", &request, NULL, &answers[i]), 0);
        assert_true(answers[i].bytes.value == answers[0].bytes.value);
    }
    assert_null(strstr(answers[0].note, "A100"));
    assert_null(strstr(answers[1].note, "A100"));
    assert_non_null(strstr(answers[2].note,
        "the GPU NVIDIA Quadro P400 is not known (known are H200, H100, A100, V100, T4, "));
    assert_non_null(strstr(answers[2].note, "B200, A100-40GB-DGX-Station), taken for an A100"));
    model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table_can_be_walked),
        cmocka_unit_test(test_unknown_name_lists_the_known),
        cmocka_unit_test(test_none_knows_nothing),
        cmocka_unit_test(test_little_memory_is_doubted),
        cmocka_unit_test(test_quantiles),
        cmocka_unit_test(test_kinds_of_gpus),
        cmocka_unit_test(test_an_unknown_gpu_is_said_in_the_note),
        cmocka_unit_test(test_declared_is_the_users_word),
        cmocka_unit_test(test_horus_formula),
        cmocka_unit_test(test_requested_batch_wins_over_the_printed),
        cmocka_unit_test(test_absurd_batches),
        cmocka_unit_test(test_sums_beyond_64_bits),
        cmocka_unit_test(test_no_shapes_is_no_zero),
        cmocka_unit_test(test_hidden_layers_are_not_known),
        cmocka_unit_test(test_left_out_layers_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
