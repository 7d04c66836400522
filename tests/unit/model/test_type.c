/* SPDX-License-Identifier: Apache-2.0 */
/* Types of layers by their names. */
#include "base/array.h"
#include "unit.h"

#include "model/format.h"

static void test_known_types(void **state)
{
    static const struct {
        const char *type;
        enum layer_kind kind;
    } types[] = {
        {"AdaptiveAvgPool1d", LAYER_POOL_GLOBAL},
        {"Conv2d", LAYER_CONV},
        {"Conv2D", LAYER_CONV},
        {"Conv1D", LAYER_LINEAR}, /* Hugging Face's */
        {"Linear", LAYER_LINEAR},
        {"Dense", LAYER_LINEAR},
        {"BatchNorm2d", LAYER_NORM},
        {"MaxPool2d", LAYER_POOL},
        {"Identity", LAYER_RESHAPE},
        {"Sequential", LAYER_CONTAINER},
        {"Embedding", LAYER_EMBEDDING},
        {"MultiheadAttention", LAYER_ATTENTION},
        {"LSTM", LAYER_RECURRENT},
        {"InputLayer", LAYER_INPUT},
        {"Add", LAYER_MERGE},
        {"StochasticDepth", LAYER_DROPOUT},
        {"ZeroPadding3D", LAYER_MERGE},
    };
    for (size_t i = 0; i < ARRAY_SIZE(types); i++)
        assert_int_equal(layer_kind_of(span_of(types[i].type)), types[i].kind);
}

static void test_families_by_their_end(void **state)
{
    assert_int_equal(layer_kind_of(span_of("NewGELUActivation")), LAYER_ACTIVATION);
    assert_int_equal(layer_kind_of(span_of("LlamaRMSNorm")), LAYER_NORM);
    assert_int_equal(layer_kind_of(span_of("T5LayerNorm")), LAYER_NORM);
    assert_int_equal(layer_kind_of(span_of("Conv2dNormActivation")), LAYER_CONTAINER);
}

static void test_others(void **state)
{
    static const char *const types[] = {
        "", "C", "Conv", "Conv2", "Conv2dd", "linear", "ResNet", "zzz", "AAA"};
    for (size_t i = 0; i < ARRAY_SIZE(types); i++)
        assert_int_equal(layer_kind_of(span_of(types[i])), LAYER_OTHER);
}

static void test_shortened(void **state)
{
    assert_int_equal(layer_kind_of(span_of("GlobalAveragePoo\xe2\x80\xa6")), LAYER_POOL_GLOBAL);
    assert_int_equal(layer_kind_of(span_of("Gl\xe2\x80\xa6")), LAYER_OTHER);
    assert_int_equal(layer_kind_of(span_of("Funny\xe2\x80\xa6")), LAYER_OTHER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_types),
        cmocka_unit_test(test_families_by_their_end),
        cmocka_unit_test(test_others),
        cmocka_unit_test(test_shortened),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
