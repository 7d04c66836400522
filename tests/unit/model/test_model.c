/* SPDX-License-Identifier: Apache-2.0 */
/* What holds for every form: cleaning, bounds, what stands around a summary. */
#include "base/array.h"
#include "unit.h"

#include <errno.h>

static const char row[] = "Linear-1 [-1, 5] 30\n";

static void test_what_terminals_add_is_skipped(void **state)
{
    struct model *model = parse_text("\xef\xbb\xbf\x1b[1m 50%|#####     | 5/10\rready\r\n"
                                     "\x1b[32mLinear-1\x1b[0m\t[-1, 5]\t30\r\n"
                                     " 10%|#  | 1/10\rLinear-2 [-1, 5] 30\r\n"
                                     "\x1b]0;title\x07Linear-3 [-1, 5] 3\xc2\xa0\n");
    assert_int_equal(model->n_layers, 3);
    assert_int_equal(model->parameters, 63);
    assert_int_equal(model->layers[1].line, 3);
    model_destroy(model);
}

static void test_text_around_a_summary(void **state)
{
    struct model *model = parse_text(
        "loading weights\nTraceback (most recent call last):\n\nLinear-1 [-1, 5] 30\n"
        "Total params: 30\n-----\na note by hand\nand another\n");
    assert_int_equal(model->n_layers, 1);
    assert_int_equal(model->layers[0].line, 4);
    assert_int_equal(model->n_warnings, 1);
    assert_warning(model, "line 7: 2 lines after the summary ignored");
    model_destroy(model);
}

static void test_stray_line_in_the_table(void **state)
{
    struct model *model = parse_text(
        "Linear-1 [-1, 5] 30\nUserWarning: beware\nLinear-2 [-1, 5] 30\n");
    assert_int_equal(model->n_layers, 2);
    assert_warning(model, "line 2: not a row of the table");
    model_destroy(model);
}

static void test_two_summaries_in_one_file(void **state)
{
    struct model *model = parse_text(
        "Linear-1 [-1, 5] 30\nTotal params: 30\n\nLinear-1 [-1, 7] 50\nTotal params: 50\n");
    assert_int_equal(model->parameters, 30);
    assert_int_equal(model->parameters_printed.value, 30);
    assert_warning(model, "line 4: a second summary begins");
    model_destroy(model);
}

static const char head[] = "Layer (type)  Output Shape  Param #\n=====\n";

static void test_cut_off(void **state)
{
    char text[256];
    snprintf(text, sizeof text, "%sLinear-1 [-1, 5] 30\nLinear-2 [-1, ", head);
    struct model *model = parse_text(text);
    assert_true(model->is_suspect);
    assert_warning(model, "cut off: there are no totals behind its layers");
    model_destroy(model);
    snprintf(text, sizeof text, "%sLinear-1 [-1, 5] 30\nTotal params: 30\n", head);
    model = parse_text(text);
    assert_false(model->is_suspect);
    model_destroy(model);
}

/* One that was cut off with a whole one behind it is not one of both. */
static void test_cut_and_another(void **state)
{
    char text[256];
    snprintf(text, sizeof text, "%sLinear-1 [-1, 5] 30\n%sLinear-1 [-1, 7] 50\nTotal params: 50\n",
        head, head);
    struct model *model = parse_text(text);
    assert_int_equal(model->n_layers, 1);
    assert_true(model->is_suspect);
    assert_warning(model, "line 4: a second summary begins");
    model_destroy(model);
}

static void check_batches(const char *text, bool is_suspect, const char *words)
{
    struct model *model = parse_text(text);
    assert_int_equal(model->is_suspect, is_suspect);
    if (words)
        assert_warning(model, words);
    model_destroy(model);
}

static void test_batches_that_differ(void **state)
{
    check_batches("Linear-1 [64, 5] 30\nLinear-2 [32, 5] 30\n", true,
        "1 of 2 shapes are not of the batch of 64");
    check_batches("Linear-1 [64, 5] 30\nLinear-2 [-1, 5] 30\n", true,
        "1 of 2 shapes are not of the batch of 64");
    check_batches("Linear-1 [-1, 5] 30\nLinear-2 [32, 5] 30\n", true, "1 of 2 shapes show a batch");
    check_batches(
        "Embedding-1 [64, 9, 5] 30\nEmbedding-2 [1, 9, 5] 30\nLinear-3 [576, 5] 30\nLinear-4 [9, 64, 5] 0\n",
        false, NULL);
    check_batches("LSTM-1 [[9, -1, 5], [-1, 5]] 30\nLinear-2 [-1, 5] 30\n", false, NULL);
}

static void test_no_summary(void **state)
{
    assert_fault("", 0, EINVAL, "an empty file");
    assert_fault("\n\n", 2, EINVAL, "no model summary");
    assert_fault("import torch\nx = f(3)\n", 22, EINVAL, "no model summary");
    static const char flax[] = "| path   | module | outputs       | params          |\n"
                               "| Dense_0 | Dense | float32[1,10] | 250,890 (1.0 MB) |\n",
                      equinox[] = "MLP(\n  layers=(Linear(weight=f32[8,2], bias=f32[8]),)\n)\n";
    assert_fault(flax, sizeof flax - 1, EINVAL, "a summary of JAX");
    assert_fault(equinox, sizeof equinox - 1, EINVAL, "a summary of JAX");
    assert_fault(head, strlen(head), EINVAL, "line 1: a table without a layer that can be read");
    const char *header = "Layer (type:depth-idx)  Output Shape  Param #\n=====\nTotal params: 0\n";
    assert_fault(header, strlen(header), EINVAL, "a torchinfo summary without layers");
}

static void test_binary(void **state)
{
    assert_fault("Linear-1 [-1, 5] 30\n\x7f\x45LF\x02\x01\0", 27, EINVAL,
        "line 2: byte 0x02: this is a binary file");
    assert_fault("P\0K\0", 4, EINVAL, "line 1: byte 0x00");
}

static void test_text_need_not_end_in_nul(void **state)
{
    char *text = malloc(sizeof row - 2); /* exactly, so that a sanitizer sees a byte too far */
    memcpy(text, row, sizeof row - 2);
    struct model *model = parse_bytes(text, sizeof row - 2);
    free(text);
    assert_int_equal(model->parameters, 30);
    assert_true(span_is(model->layers[0].type, "Linear"));
    model_destroy(model);
}

static void test_too_long(void **state)
{
    size_t size = MODEL_LINE_MAX + 100;
    char *text = malloc(size + sizeof row);
    memset(text, 'x', size);
    text[size - 1] = '\n';
    memcpy(text + size, row, sizeof row);
    struct model *model = parse_bytes(text, size + sizeof row - 1);
    assert_int_equal(model->n_layers, 1);
    model_destroy(model);
    free(text);
    assert_fault(row, (size_t)MODEL_SIZE_MAX + 1, EFBIG, "larger than 16 MiB");
}

static void test_warnings_are_bounded(void **state)
{
    char text[2000] = "Linear-1 [-1, 5] 30\n";
    for (int i = 0; i < 40; i++)
        strcat(text, "beware\n");
    struct model *model = parse_text(text);
    assert_int_equal(model->n_warnings, 40);
    assert_int_equal(model_warnings(model), MODEL_WARNINGS_MAX);
    model_destroy(model);
}

static void test_decimal_totals(void **state)
{
    static const struct {
        const char *line;
        int64_t value;
    } totals[] = {
        {"Total params: 25,557,032", 25557032},
        {"Total params (M): 25.56", 25560000},
        {"Total params (Units.MEGABYTES): 25.56", 25560000},
        {"Total params: 25.56 M", 25560000},
        {"Total params: 0.77G", 770000000},
        {"Total params: 25 M", 25000000},
        {"Total params (k): 3", 3000},
        {"Total params: 1.5T", 1500000000000},
        {"Total params: 480,300 (1.83 MB)", 480300},
        {" Total params: 480,300 (1.83 MB)", 480300},
    };
    for (size_t i = 0; i < ARRAY_SIZE(totals); i++) {
        char text[200];
        snprintf(text, sizeof text, "%s%s\n", row, totals[i].line);
        struct model *model = parse_text(text);
        assert_true(model->parameters_printed.known);
        assert_int_equal(model->parameters_printed.value, totals[i].value);
        model_destroy(model);
    }
}

static void test_destroy_takes_null(void **state)
{
    model_destroy(NULL);
}

static void test_forms_that_are_not_read_are_named(void **state)
{
    static const struct {
        const char *text, *name;
    } forms[] = {
        {"  | Name    | Type       | Params | Mode \n------------\n0 | encoder | Sequential | 2.6 K  | train\n",
            "a ModelSummary of Lightning"},
        {"\xe2\x94\x83   \xe2\x94\x83 Name    \xe2\x94\x83 Type   \xe2\x94\x83 Params \xe2\x94\x83\n",
            "a ModelSummary of Lightning"},
        {"Net(\n  2.1 M, 100.00% Params, 9.9 GMACs, 100.00% MACs, 4 ms, 100.00% latency, 7 TFLOPS,\n  (a): "
         "Linear(2.1 M, 100.00% Params, 9.9 GMACs, 100.00% MACs, 4 ms, 100.00% latency, 7 TFLOPS, "
         "in_features=8)\n)\n",
            "a flops profile of DeepSpeed"},
        {"Net(\n  9.41 k, 0.037% Params, 118.01 MMac, 2.863% MACs,\n)\n",
            "a complexity report of ptflops"},
        {"| module | #parameters or shape | #flops |\n|:---|:---|:---|\n| model | 2.8M | 38.9G |\n",
            "a flop_count_table of fvcore"},
        {"Sequential (Input shape: 64 x 3 x 224 x 224)\n"
         "============================================================================\n"
         "Layer (type)         Output Shape         Param #    Trainable \n"
         "============================================================================\n"
         "                     64 x 64 x 112 x 112 \n"
         "Conv2d                                    9408       False     \n",
            "a summary of fastai's Learner"},
        {"trainable params: 1,024 || all params: 9,999 || trainable%: 10.2\n", "PEFT's line"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
        assert_true(model_detect(forms[i].text, strlen(forms[i].text)));
        assert_fault(forms[i].text, strlen(forms[i].text), EINVAL, forms[i].name);
    }
}

static void test_a_summary_behind_other_text_is_read(void **state)
{
    static const char *const texts[] = {
        "[2026-01-05 10:11:12,133 INFO] Net(\n  (a): Linear(in_features=3, out_features=4, bias=True)\n)\n",
        "INFO:root:net: Net(\n  (a): Linear(in_features=3, out_features=4, bias=True)\n)\n",
        "# Net(\n#   (a): Linear(in_features=3, out_features=4, bias=True)\n# )\n",
        "#Net(\n#  (a): Linear(in_features=3, out_features=4, bias=True)\n#)\n",
    };
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct model *model = NULL;
        assert_int_equal(model_parse(texts[i], strlen(texts[i]), NULL, &model), 0);
        assert_int_equal(model->parameters, 16);
        model_destroy(model);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms_that_are_not_read_are_named),
        cmocka_unit_test(test_a_summary_behind_other_text_is_read),
        cmocka_unit_test(test_what_terminals_add_is_skipped),
        cmocka_unit_test(test_text_around_a_summary),
        cmocka_unit_test(test_stray_line_in_the_table),
        cmocka_unit_test(test_two_summaries_in_one_file),
        cmocka_unit_test(test_cut_off),
        cmocka_unit_test(test_cut_and_another),
        cmocka_unit_test(test_batches_that_differ),
        cmocka_unit_test(test_no_summary),
        cmocka_unit_test(test_binary),
        cmocka_unit_test(test_text_need_not_end_in_nul),
        cmocka_unit_test(test_too_long),
        cmocka_unit_test(test_warnings_are_bounded),
        cmocka_unit_test(test_decimal_totals),
        cmocka_unit_test(test_destroy_takes_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
