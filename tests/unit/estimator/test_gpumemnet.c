/* SPDX-License-Identifier: Apache-2.0 */
/* The networks of GPUMemNet: inputs, weights as text, answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/hash.h"
#include "base/units.h"
#include "estimator/gpumemnet/gpumemnet_attention.h"
#include "estimator/gpumemnet/gpumemnet_built_in.h"
#include "estimator/gpumemnet/gpumemnet_net.h"
#include "estimator/gpumemnet/softmax.h"

static const char mlp[] = "Linear-1 [-1, 64] 4,160\nBatchNorm1d-2 [-1, 64] 128\nTanh-3 [-1, 64] 0\n"
                          "Dropout-4 [-1, 64] 0\nLinear-5 [-1, 10] 650\n";
static const char cnn[] =
    "Conv2d-1 [-1, 16, 8, 8] 448\nReLU-2 [-1, 16, 8, 8] 0\nMaxPool2d-3 [-1, 16, 4, 4] 0\n"
    "Linear-4 [-1, 10] 2,570\n";
static const char transformer[] =
    "Embedding-1 [-1, 128, 64] 640,000\nLinear-2 [-1, 128, 64] 4,160\n"
    "Linear-3 [-1, 128, 64] 4,160\nLayerNorm-4 [-1, 128, 64] 128\nLinear-5 [-1, 10] 650\n";
static const char norm_without_places[] =
    "Linear-1 [-1, 64] 4,160\nLayerNorm-2 [-1, 64] 128\nLinear-3 [-1, 10] 650\n";
static const char recurrent[] =
    "Embedding-1 [-1, 128, 64] 640,000\nLSTM-2 [-1, 128, 64] 33,280\nLinear-3 [-1, 10] 650\n";

static struct model *parse(const char *text)
{
    struct model *model = NULL;
    struct fault fault = {""};
    if (model_parse(text, strlen(text), &fault, &model) < 0)
        fail_msg("%s", fault.text);
    return model;
}

/* ---- features ---- */

static int features_of(
    const char *text, const char *optimizer, const char *precision, struct gpumemnet_features *ret)
{
    struct model *model = parse(text);
    const char *why;
    struct estimate_request request = {
        .model = model, .batch = 32, .optimizer = optimizer_parse(optimizer)};
    assert_int_equal(precision_parse("precision", precision, NULL, &request.precision), 0);
    int r = gpumemnet_features_init(&request, ret, &why);
    model_destroy(model);
    return r;
}

static void test_features(void **state)
{
    (void)state;
    struct gpumemnet_features f;
    assert_int_equal(features_of(mlp, NULL, NULL, &f), 0);
    static const double counts[] = {[VALUE_DEPTH] = 5,
        [VALUE_LINEARS] = 2,
        [VALUE_CONVS] = 0,
        [VALUE_NORMS] = 1,
        [VALUE_DROPOUTS] = 1,
        [VALUE_BATCH] = 32,
        [VALUE_PARAMETERS] = 4938,
        [VALUE_ACTIVATIONS] = 266,
        [VALUE_BATCH_ACTIVATIONS] = 32 * 266};
    for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
        assert_float_equal(f.value[i], log1p(counts[i]), 1e-5);
    assert_float_equal(f.value[VALUE_STATES], 2, 0);
    assert_float_equal(f.value[VALUE_HALF], 0, 0);
    assert_float_equal(f.value[VALUE_FUNCTION_SIN], 0, 1e-6); /* Tanh is half way round */
    assert_float_equal(f.value[VALUE_FUNCTION_COS], -1, 1e-6);
    assert_int_equal(f.n_tokens, 5);
    assert_float_equal(f.tokens[0][TOKEN_TYPE], 1, 0);
    assert_float_equal(f.tokens[2][TOKEN_TYPE], 4, 0);
    assert_float_equal(f.tokens[0][TOKEN_PARAMETERS], log1p(4160), 1e-5);
    gpumemnet_features_fini(&f);
    assert_int_equal(features_of(mlp, "sgd", "amp", &f), 0);
    assert_float_equal(f.value[VALUE_STATES], 0, 0);
    assert_float_equal(f.value[VALUE_HALF], 1, 0);
    gpumemnet_features_fini(&f);
}

static void test_families(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum gpumemnet_family family;
    } cases[] = {{mlp, GPUMEMNET_MLP}, {cnn, GPUMEMNET_CNN}, {transformer, GPUMEMNET_TRANSFORMER},
        {norm_without_places, GPUMEMNET_MLP}};
    struct gpumemnet_features f;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        assert_int_equal(features_of(cases[i].text, NULL, NULL, &f), 0);
        assert_int_equal(f.family, cases[i].family);
        gpumemnet_features_fini(&f);
    }
    assert_int_equal(features_of(recurrent, NULL, NULL, &f), ESTIMATE_UNKNOWN);
}

/* ---- numbers ---- */

static void test_exponential(void **state)
{
    (void)state;
    for (double x = 0; x > -87; x -= 0.0137)
        assert_true(fabs((double)exp_negative((float)x) / exp((double)(float)x) - 1) < 4e-7);
    assert_true(exp_negative(-1e9f) >= 0 && exp_negative(-1e9f) < 1e-37f);
}

static void test_softmax(void **state)
{
    (void)state;
    float x[] = {1000, 1001, 999};
    softmax_in_place(x, 3);
    assert_float_equal(x[0] + x[1] + x[2], 1, 1e-6);
    assert_float_equal(x[1] / x[0], exp(1), 1e-5);
}

static void test_edge_and_quantiles(void **state)
{
    (void)state;
    const struct gpumemnet_net net = {.bin_mib = 1024, .n_classes = 3};
    const float probability[] = {0.25f, 0.5f, 0.25f};
    assert_float_equal(gpumemnet_edge_bytes(&net, probability), 2.0 * GIB, 1);
    assert_float_equal(gpumemnet_quantile_bytes(&net, probability, 0.5), 1.5 * GIB, 1);
    assert_float_equal(gpumemnet_quantile_bytes(&net, probability, 0.25), 1.0 * GIB, 1);
    assert_float_equal(gpumemnet_quantile_bytes(&net, probability, 0.9), 2.6 * GIB, 1);
    const float sure[] = {0, 1, 0};
    assert_float_equal(gpumemnet_quantile_bytes(&net, sure, 0.99), 1.99 * GIB, 1);
}

enum { PLACES_MOST = 37 };

/* What place `t` takes from all others, said as plainly as can be. */
static void attend_plainly(const float *q, const float *k, const float *v, size_t n, size_t rows,
    int width, size_t t, double *ret_mixed)
{
    double score[PLACES_MOST], sum = 0;
    for (size_t i = 0; i < n; i++) {
        double product = 0;
        for (size_t c = 0; c < (size_t)width; c++)
            product += (double)q[c * rows + t] * (double)k[c * rows + i];
        sum += score[i] = exp(product / sqrt(width));
    }
    for (size_t c = 0; c < (size_t)width; c++) {
        ret_mixed[c] = 0;
        for (size_t i = 0; i < n; i++)
            ret_mixed[c] += score[i] / sum * (double)v[c * rows + i];
    }
}

static void check_attention(size_t n, int width)
{
    float q[3 * GPUMEMNET_WIDTH_MAX * (PLACES_MOST + LANES)], scores[PLACES_MOST * LANES];
    float mixed[GPUMEMNET_WIDTH_MAX * LANES];
    double plain[GPUMEMNET_WIDTH_MAX];
    size_t rows = (n + LANES - 1) / LANES * LANES, part = (size_t)width * rows;
    for (size_t i = 0; i < 3 * part; i++)
        q[i] = 3 * sinf((float)i * 1.3f);
    const struct attention attention = {.n = n,
        .rows = rows,
        .width = width,
        .q = q,
        .k = q + part,
        .v = q + 2 * part,
        .scores = scores};
    for (size_t t = 0; t < n; t++) {
        if (t % LANES == 0)
            attention_take(&attention, t, mixed);
        attend_plainly(q, q + part, q + 2 * part, n, rows, width, t, plain);
        for (size_t c = 0; c < (size_t)width; c++)
            assert_float_equal(mixed[c * LANES + t % LANES], plain[c], 2e-5);
    }
}

static void test_attention(void **state)
{
    (void)state;
    for (int width = 1; width <= GPUMEMNET_WIDTH_MAX; width++)
        for (size_t n = 1; n <= PLACES_MOST; n++)
            check_attention(n, width);
}

/* ---- weights ---- */

static struct gpumemnet_net make_net(enum gpumemnet_family family, enum gpumemnet_method method)
{
    struct gpumemnet_net net = {
        .family = family, .method = method, .bin_mib = 8192, .n_classes = 4, .longest = 30};
    gpumemnet_layout_init(family, method, net.n_classes, &net.layout);
    net.weights = calloc(net.layout.size, sizeof *net.weights);
    assert_non_null(net.weights);
    for (size_t i = 0; i < net.layout.size; i++)
        net.weights[i] = sinf((float)i) * sinf((float)i);
    for (int i = 0; i < GPUMEMNET_VALUES; i++)
        net.scaling.factor[i] = 0.1f * (float)(i + 1);
    return net;
}

/* The text of a network, as python/colloc_memnet/weights.py writes it. */
enum { PER_LINE = 12, SCALING_NUMBERS = 2 * (GPUMEMNET_VALUES + TOKEN_SIZE), HEAD_SIZE = 512 };

static size_t format_head(const struct gpumemnet_net *net, char *text)
{
    return (size_t)snprintf(text, HEAD_SIZE,
        "colloc-gpumemnet %d\nfamily %s\nmethod %s\nbin_mib %" PRId64
        "\nclasses %d\nlongest %" PRId64 "\nseed %" PRId64 "\nnumbers %zu\n",
        GPUMEMNET_VERSION, gpumemnet_family_name(net->family), gpumemnet_method_name(net->method),
        net->bin_mib, net->n_classes, net->longest, net->seed, SCALING_NUMBERS + net->layout.size);
}

static size_t format_number(float number, bool ends_line, char *text)
{
    uint32_t bits;
    memcpy(&bits, &number, sizeof bits);
    return (size_t)sprintf(text, "%08" PRIx32 "%c", bits, ends_line ? '\n' : ' ');
}

static char *format_net(const struct gpumemnet_net *net)
{
    const float *scaling = (const float *)&net->scaling;
    size_t n = SCALING_NUMBERS + net->layout.size;
    char *text = malloc(HEAD_SIZE + 64 + 9 * n + 2), *body = text ? malloc(9 * n + 2) : NULL;
    if (!body) {
        free(text);
        return NULL;
    }
    size_t size = 0, head = format_head(net, text);
    for (size_t i = 0; i < n; i++)
        size += format_number(i < SCALING_NUMBERS ? scaling[i] : net->weights[i - SCALING_NUMBERS],
            i % PER_LINE == PER_LINE - 1 || i == n - 1, body + size);
    head += (size_t)sprintf(
        text + head, "checksum %016" PRIx64 "\n", hash_bytes(HASH_START, body, size));
    memcpy(text + head, body, size);
    text[head + size] = '\0';
    free(body);
    return text;
}

static void test_text_keeps_every_bit(void **state)
{
    (void)state;
    for (int method = 0; method < GPUMEMNET_METHODS; method++) {
        struct gpumemnet_net net = make_net(GPUMEMNET_CNN, (enum gpumemnet_method)method), again;
        struct fault fault = {""};
        char *text = format_net(&net);
        assert_non_null(text);
        if (gpumemnet_net_parse(text, strlen(text), &fault, &again) < 0)
            fail_msg("%s", fault.text);
        assert_memory_equal(&again.scaling, &net.scaling, sizeof net.scaling);
        assert_memory_equal(again.weights, net.weights, net.layout.size * sizeof *net.weights);
        assert_true(again.bin_mib == 8192 && again.longest == 30 && again.n_classes == 4);
        free(text);
        gpumemnet_net_fini(&net);
        gpumemnet_net_fini(&again);
    }
}

/* The text with the first `from` made `to`, of the same length unless it is in the head. */
static void refuse(const char *from, const char *to, int error, const char *words)
{
    struct gpumemnet_net net = make_net(GPUMEMNET_MLP, GPUMEMNET_ENSEMBLE), again;
    struct fault fault = {""};
    char *text = format_net(&net), *changed = malloc(strlen(text) + strlen(to) + 1);
    assert_non_null(changed);
    char *at = strstr(text, from);
    assert_non_null(at);
    sprintf(changed, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
    assert_int_equal(gpumemnet_net_parse(changed, strlen(changed), &fault, &again), error);
    if (!strstr(fault.text, words))
        fail_msg("\"%s\" does not say \"%s\"", fault.text, words);
    assert_null(again.weights);
    free(text);
    free(changed);
    gpumemnet_net_fini(&net);
}

static void test_weights_that_do_not_match(void **state)
{
    (void)state;
    refuse("colloc-gpumemnet 1", "colloc-gpumemnet 2", -EPROTO,
        "version 2; this colloc reads version 1");
    refuse("colloc-gpumemnet", "something", -EINVAL, "not a file of colloc's memory networks");
    refuse("family mlp", "family rnn", -EINVAL, "there is no family \"rnn\"");
    refuse("family mlp", "family cnn", -EINVAL, "numbers; the cnn mlp with 4 classes has");
    refuse("classes 4", "classes 5", -EINVAL, "with 5 classes has");
    refuse("classes 4", "classes 65", -EINVAL, "must be a whole number from 1 to 64");
    refuse("bin_mib 8192\n", "", -EINVAL, "\"bin_mib ...\" is not where it should be");
    refuse("00000000", "00000001", -EINVAL, "damaged or cut off: the checksum is");
    refuse("checksum ", "checksum 0", -EINVAL, "damaged");
}

static void test_cut_weights(void **state)
{
    (void)state;
    struct gpumemnet_net net = make_net(GPUMEMNET_MLP, GPUMEMNET_ENSEMBLE), again;
    char *text = format_net(&net);
    assert_non_null(text);
    for (size_t size = 0; size < strlen(text); size += size < 300 ? 1 : 997)
        assert_true(gpumemnet_net_parse(text, size, NULL, &again) < 0);
    free(text);
    gpumemnet_net_fini(&net);
}

/* What is part of the program has no checksum that would show it. */
static void test_a_number_with_another_character(void **state)
{
    (void)state;
    static const char others[] = "/:`gA\xff";
    const struct gpumemnet_built_in *built_in = gpumemnet_built_in_at(0);
    for (size_t i = 0; i + 1 < sizeof others; i++) {
        struct gpumemnet_net net;
        struct fault fault = {""};
        char *text = malloc(built_in->size);
        assert_non_null(text);
        memcpy(text, built_in->text, built_in->size);
        text[built_in->size - 2 - i] = others[i]; /* in the last number */
        assert_int_equal(gpumemnet_net_parse_built_in(text, built_in->size, &fault, &net), -EINVAL);
        assert_non_null(strstr(fault.text, " is none"));
        free(text);
    }
}

static void test_positions(void **state)
{
    (void)state;
    static const double steps[] = {1, 0.01};
    struct gpumemnet_waves waves;
    gpumemnet_waves_init(4, &waves);
    for (size_t place = 0; place < 500; place += 7) {
        float channels[4] = {1, 2, 3, 4};
        gpumemnet_position(&waves, place, channels);
        for (size_t i = 0; i < 2; i++) {
            double angle = (double)place * steps[i];
            assert_float_equal(channels[2 * i], 1 + 2 * (double)i + sin(angle), 1e-5);
            assert_float_equal(channels[2 * i + 1], 2 + 2 * (double)i + cos(angle), 1e-5);
        }
    }
}

static void test_built_in_weights(void **state)
{
    (void)state;
    const struct gpumemnet_built_in *built_in;
    size_t n = 0;
    for (; (built_in = gpumemnet_built_in_at(n)) != NULL; n++) {
        struct gpumemnet_net net;
        struct fault fault = {""};
        if (gpumemnet_net_parse(built_in->text, built_in->size, &fault, &net) < 0)
            fail_msg("%s: %s", built_in->name, fault.text);
        assert_true(net.family == built_in->family && net.method == built_in->method);
        assert_true(net.n_classes > 1);
        assert_ptr_equal(gpumemnet_built_in_find(built_in->name), built_in);
        gpumemnet_net_fini(&net);
    }
    assert_int_equal(n, 8);
    assert_null(gpumemnet_built_in_find("oracle"));
}

/* ---- the estimators ---- */

static int ask(const char *estimator, const char *text, int64_t batch, struct estimate *ret)
{
    struct model *model = text ? parse(text) : NULL;
    struct estimate_request request = {.model = model, .batch = batch};
    struct fault fault = {""};
    int r = estimate_run(estimator, &request, &fault, ret);
    if (r < 0)
        fail_msg("%s", fault.text);
    model_destroy(model);
    return r;
}

static void test_answers(void **state)
{
    (void)state;
    static const char *const estimators[] = {"gpumemnet-mlp", "gpumemnet-transformer"};
    static const struct {
        const char *text;
        int64_t bin;
    } cases[] = {{mlp, GIB}, {cnn, 8 * GIB}, {transformer, 8 * GIB}};
    for (size_t e = 0; e < 2; e++)
        for (size_t i = 0; i < 3; i++) {
            struct estimate answer;
            assert_int_equal(ask(estimators[e], cases[i].text, 32, &answer), 0);
            assert_true(answer.bytes.valid && answer.bytes.value > 0);
            assert_int_equal((int64_t)answer.bytes.value % cases[i].bin, 0);
            assert_true(answer.p50_bytes.value <= answer.p90_bytes.value);
            assert_true(answer.p90_bytes.value <= answer.p99_bytes.value);
            assert_int_equal(answer.evidence, EVIDENCE_SUMMARY);
        }
}

static void unknown(const char *text, int64_t batch, const char *words)
{
    struct estimate answer;
    assert_int_equal(ask("gpumemnet-mlp", text, batch, &answer), ESTIMATE_UNKNOWN);
    assert_non_null(strstr(answer.note, words));
    assert_false(answer.bytes.valid);
}

static void test_what_is_not_in_the_summary(void **state)
{
    (void)state;
    unknown(NULL, 32, "needs a model summary");
    unknown(mlp, ESTIMATE_NOT_GIVEN, "says the batch size");
    unknown("Net(\n  (fc): Linear(in_features=8, out_features=4, bias=True)\n)\n", 32,
        "no output shapes");
    unknown(recurrent, 32, "no MLP, CNN or Transformer");
}

/* Longer than anything in training: the answer says so. */
static void test_long_sequence(void **state)
{
    (void)state;
    enum { LAYERS = 3000 };
    char *text = malloc(LAYERS * 40);
    struct estimate answer;
    size_t n = 0;
    assert_non_null(text);
    for (int i = 0; i < LAYERS; i++)
        n += (size_t)sprintf(text + n, "Linear-%d [-1, 8] 72\n", i + 1);
    assert_int_equal(ask("gpumemnet-transformer", text, 32, &answer), 0);
    assert_non_null(strstr(answer.note, "of 3000 layers were used"));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_features),
        cmocka_unit_test(test_families),
        cmocka_unit_test(test_exponential),
        cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_edge_and_quantiles),
        cmocka_unit_test(test_attention),
        cmocka_unit_test(test_text_keeps_every_bit),
        cmocka_unit_test(test_weights_that_do_not_match),
        cmocka_unit_test(test_cut_weights),
        cmocka_unit_test(test_a_number_with_another_character),
        cmocka_unit_test(test_positions),
        cmocka_unit_test(test_built_in_weights),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_what_is_not_in_the_summary),
        cmocka_unit_test(test_long_sequence),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
