/* SPDX-License-Identifier: Apache-2.0 */
/* Exports: what is read, and which mistakes are refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "model/export_question.h"
#include "model/network.h"

#define HEAD    "{\"colloc_export\":1,\"batch\":8,"
#define TENSORS "\"ticks\":4,\"tensors\":[[4096,0,0,-1,0],[0,1024,1,3,1]],"
#define CONV                                                                                       \
    "\"convs\":[{\"tick\":1,\"phase\":\"forward\",\"batch\":[0,1],\"input\":[3,8,8],"              \
    "\"weight\":[16,3,3,3],\"output\":[16,8,8],\"groups\":1,\"dtype\":\"float32\"}],"
#define LAYERS                                                                                     \
    "\"layers\":[{\"type\":\"Linear\",\"depth\":0,\"leaf\":true,\"parameters\":1024,\"shape\":[256],\"calls\":1}]}"

static int parse(const char *text, struct fault *fault, struct network *ret)
{
    return network_parse(text, strlen(text), fault, ret);
}

static void test_reads_all(void **state)
{
    struct fault fault = {""};
    struct network network;
    const char *text = HEAD
        "\"every_batch\":true,\"sequence_length\":null,\"optimizer\":{\"name\":\"adam\"},"
        "\"precision\":\"amp\",\"multiply_adds\":[7,1024],\"flags\":{\"compiled\":true,\"cudnn_benchmark\":true,\"x\":1}," TENSORS
        "\"convs\":[{\"tick\":1,\"phase\":\"backward\",\"batch\":[0,1],\"input\":[3,8,8],"
        "\"weight\":[16,3,3,3],\"output\":[16,8,8],\"groups\":1,\"dtype\":\"bfloat16\"}]," LAYERS;
    if (parse(text, &fault, &network) < 0)
        fail_msg("%s", fault.text);
    const struct export *export = network.export;
    assert_ptr_equal(network.model, export->model);
    assert_int_equal(network.model->format, SUMMARY_EXPORT);
    assert_int_equal(network.model->parameters, 1024);
    assert_int_equal(network.model->activations.value, 256);
    assert_int_equal(network.model->layers[0].kind, LAYER_LINEAR);
    assert_int_equal(network.model->batch.value, 8);
    assert_int_equal(export->optimizer, OPTIMIZER_ADAM);
    assert_int_equal(export->precision, PRECISION_AMP);
    assert_true(export->every_batch && export->not_modelled && export->tries_kernels);
    assert_int_equal(export->macs.per_sample, 1024);
    assert_int_equal(export->n_tensors, 2);
    assert_int_equal(export->tensors[1].bytes.per_sample, 1024);
    assert_int_equal(export->tensors[0].last, -1);
    assert_int_equal(export->n_convs, 1);
    assert_int_equal(export->convs[0].input.per_sample, 3 * 8 * 8 * 2);
    assert_true(export->convs[0].groups == 1 && export->convs[0].half);
    assert_int_equal(export->convs[0].taps, 9);
    assert_int_equal(export->convs[0].in_positions, 64);
    assert_int_equal(export->convs[0].outputs, 16);
    assert_int_equal(export->convs[0].pass, EXPORT_WEIGHT_GRADIENT);
    assert_int_equal(export->n_holds, 0);
    network_fini(&network);
}

#define OPERATOR(phase, name, tensors, writes)                                                     \
    "{\"phase\":\"" phase "\",\"name\":\"" name "\",\"calls\":3,\"tensors\":" tensors              \
    ",\"reads\":[4,8],\"writes\":" writes ",\"multiply_adds\":[0,2]}"

static void test_work_of_a_step(void **state)
{
    static const enum step_operator_kind kinds[] = {
        STEP_KERNEL, STEP_VIEW, STEP_NORM, STEP_ATTENTION, STEP_RECURRENT, STEP_LISTS, STEP_NORM};
    struct fault fault = {""};
    struct network network;
    const char *text = HEAD TENSORS "\"operators\":[" OPERATOR("forward", "relu_", "1",
        "[4,8]") "," OPERATOR("loss", "view", "0", "[0,0]") "," OPERATOR("backward",
        "native_batch_norm_backward", "3", "[4,8]") "," OPERATOR("backward", "attention", "1",
        "[0,8]") "," OPERATOR("forward", "recurrent", "32", "[0,8]") "," OPERATOR("optimizer",
        "_foreach_add_", "9", "[400,0]") "," OPERATOR("loss", "_log_softmax", "1",
        "[0,8]") "],\"matmuls\":[{\"phase\":\"backward\",\"tick\":1},"
                 "{\"phase\":\"backward\",\"m\":[0,1],\"n\":[10,0],\"k\":[8,0],\"count\":[1,0],"
                 "\"dtype\":\"bfloat16\"}]," LAYERS;
    if (parse(text, &fault, &network) < 0)
        fail_msg("%s", fault.text);
    const struct step_work *work = &network.export->work;
    assert_int_equal(work->n_operators, ARRAY_SIZE(kinds));
    for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
        assert_int_equal(work->operators[i].kind, kinds[i]);
    assert_int_equal(work->operators[1].phase, STEP_FORWARD);
    assert_int_equal(work->operators[2].phase, STEP_BACKWARD);
    assert_int_equal(work->operators[5].phase, STEP_UPDATE);
    assert_int_equal(work->operators[5].tensors, 9);
    assert_int_equal(work->operators[5].writes.fixed, 400);
    assert_int_equal(work->operators[0].calls, 3);
    assert_int_equal(work->operators[0].macs.per_sample, 2);
    assert_int_equal(work->n_products, 1); /* that of an early exporter has no shape */
    assert_int_equal(work->products[0].phase, STEP_BACKWARD);
    assert_true(work->products[0].half && work->products[0].m.per_sample == 1);
    network_fini(&network);
}

/* Two iterations of two optimizers. The second forward phase begins with the release of the last
 * batch, which the first has not; and a state is allocated amid the first backward phase. */
static void test_kernels_of_the_first_iteration(void **state)
{
    struct network network = {0};
    struct fault fault = {""};
    const char *text = HEAD
        "\"classes\":[\"param\",\"input\",\"temp\",\"state\"],\"ticks\":16,"
        "\"phases\":[{\"input\":0,\"forward\":1,\"loss\":2,\"backward\":2,\"optimizer\":5},"
        "{\"input\":7,\"forward\":8,\"loss\":10,\"backward\":10,\"optimizer\":13}],"
        "\"tensors\":[[0,768,0,8,1],[0,64,1,6,2],[0,32,2,5,2],[864,0,3,-1,3],[0,128,4,-1,2],"
        "[0,768,7,-1,1],[0,64,9,14,2],[0,32,10,13,2],[0,128,12,-1,2]],"
        "\"holds\":[],"
        "\"matmuls\":[{\"tick\":9,\"phase\":\"forward\"},{\"tick\":12,\"phase\":\"backward\"}],"
        "\"convs\":[{\"tick\":9,\"phase\":\"forward\",\"batch\":[0,1],\"input\":[3,8,8],"
        "\"weight\":[16,3,3,3],\"output\":[16,8,8]},"
        "{\"tick\":12,\"phase\":\"backward\",\"batch\":[0,1],\"input\":[3,8,8],"
        "\"weight\":[16,3,3,3],\"output\":[16,8,8]}]," LAYERS;
    if (parse(text, &fault, &network) < 0)
        fail_msg("%s", fault.text);
    const struct export *export = network.export;
    assert_int_equal(export->n_convs, 4);
    assert_int_equal(export->convs[0].tick, 1); /* with its output, as at tick 9 */
    assert_int_equal(export->convs[1].tick, 4); /* not at 3, with the state */
    assert_int_equal(export->convs[2].tick, 9);
    assert_int_equal(export->convs[3].tick, 12);
    assert_true(export->multiplies_from[0] == 1 && export->multiplies_from[1] == 4);
    network_fini(&network);
}

/* Two iterations: a batch, an output, a convolution's two gradients; the output of the first lives
 * too long in the file. */
static void test_loop(void **state)
{
    struct network network = {0};
    struct fault fault = {""};
    const char *text = HEAD
        "\"classes\":[\"param\",\"input\",\"output\",\"temp\"],\"ticks\":20,"
        "\"phases\":[{\"input\":0,\"forward\":1,\"loss\":3,\"backward\":3,\"optimizer\":8},"
        "{\"input\":9,\"forward\":11,\"loss\":13,\"backward\":13,\"optimizer\":18}],"
        "\"tensors\":[[0,768,0,9,1],[0,64,2,19,2],[0,384,4,6,3],[864,0,5,7,3],[0,768,10,-1,1],[0,64,12,-1,2],"
        "[0,384,14,16,3],[864,0,15,17,3]],"
        "\"matmuls\":[{\"tick\":14,\"phase\":\"backward\"}],"
        "\"convs\":[{\"tick\":14,\"phase\":\"backward\",\"batch\":[0,1],\"input\":[3,8,8],"
        "\"weight\":[16,3,3,3],\"output\":[16,8,8],\"groups\":1,\"dtype\":\"bfloat16\"}],"
        "\"kernels\":{\"batch\":16,\"gpu\":\"NVIDIA H200\",\"scratch\":[[100,200]],"
        "\"process\":654311424}," LAYERS;
    if (parse(text, &fault, &network) < 0)
        fail_msg("%s", fault.text);
    const struct export *export = network.export;
    assert_int_equal(export->last_iteration, 9);
    assert_int_equal(export->n_holds, 2);
    assert_int_equal(export->holds[0].tensor, 0);
    assert_int_equal(export->holds[0].until, 11); /* when the next batch is there */
    assert_int_equal(export->holds[0].heir, 4);
    assert_int_equal(export->holds[1].tensor, 1);
    assert_int_equal(export->holds[1].until, 13); /* when the next output is */
    assert_int_equal(export->holds[1].heir, 5);
    assert_int_equal(export->n_convs, 4); /* in each iteration one for each gradient */
    assert_int_equal(export->convs[0].pass, EXPORT_INPUT_GRADIENT);
    assert_int_equal(export->convs[0].tick, 4);
    assert_int_equal(export->convs[1].pass, EXPORT_WEIGHT_GRADIENT);
    assert_int_equal(export->convs[1].tick, 5);
    assert_int_equal(export->convs[3].tick, 15);
    assert_int_equal(export->measured.batch, 16);
    assert_string_equal(export->measured.gpu, "NVIDIA H200");
    assert_true(export->measured.process.known && export->measured.process.value == 624 << 20);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(export->convs[i].workspace.value, i % 2 ? 200 : 100);
    assert_true(export->multiplies_from[0] == -1 && export->multiplies_from[1] == 4);
    network_fini(&network);
}

static void test_mistakes(void **state)
{
    static const struct {
        const char *text;
        int code;
        const char *words;
    } cases[] = {
        {"{", -EINVAL, "no JSON"},
        {"{\"layers\":[]}", -EINVAL, "no member colloc_export"},
        {"{\"colloc_export\":2}", -EPROTO, "version 2"},
        {"{\"colloc_export\":1,\"batch\":0}", -EINVAL, "batch"},
        {"{\"colloc_export\":1,\"batch\":8," LAYERS, -EINVAL, "ticks"},
        {HEAD "\"ticks\":4,\"tensors\":[]," LAYERS, -EINVAL, "tensors"},
        {HEAD "\"ticks\":4,\"tensors\":[[1,2,3]]," LAYERS, -EINVAL, "tensors[0]"},
        {HEAD "\"ticks\":4,\"tensors\":[[-1,0,0,-1,0]]," LAYERS, -EINVAL, "tensors[0]"},
        {HEAD "\"ticks\":4,\"tensors\":[[1,0,4,-1,0]]," LAYERS, -EINVAL, "tensors[0]"},
        {HEAD "\"ticks\":4,\"tensors\":[[1,0,2,1,0]]," LAYERS, -EINVAL, "goes at tick 1"},
        {HEAD "\"ticks\":4,\"tensors\":[[1,0,1,1,0]]," LAYERS, -EINVAL, "goes at tick 1"},
        {HEAD "\"ticks\":4,\"tensors\":[[9000000000000000000,0,0,-1,0]]," LAYERS, -EINVAL,
            "tensors[0]"},
        {HEAD TENSORS "\"layers\":[]}", -EINVAL, "layers"},
        {HEAD TENSORS "\"layers\":[7]}", -EINVAL, "layers[0]"},
        {HEAD TENSORS "\"convs\":[{\"tick\":1}]," LAYERS, -EINVAL, "convs[0]"},
        {HEAD TENSORS "\"kernels\":{\"batch\":1,\"gpu\":\"A\",\"scratch\":[],"
                      "\"process\":-1}," LAYERS,
            -EINVAL, "kernels.process"},
        {HEAD TENSORS "\"operators\":[" OPERATOR("forward", "add", "-1", "[0,8]") "]," LAYERS,
            -EINVAL, "operators[0]"},
        {HEAD TENSORS "\"operators\":[7]," LAYERS, -EINVAL, "operators[0]"},
        {HEAD TENSORS CONV "\"kernels\":{\"batch\":8,\"gpu\":\"A\",\"scratch\":[]}," LAYERS,
            -EINVAL, "kernels"},
        {HEAD TENSORS CONV "\"kernels\":{\"batch\":8,\"scratch\":[[1]]}," LAYERS, -EINVAL,
            "kernels"},
        {HEAD TENSORS "\"kernels\":{\"batch\":8,\"gpu\":\"A\",\"scratch\":[[1]]}," LAYERS, -EINVAL,
            "kernels"},
        {HEAD TENSORS CONV "\"kernels\":{\"batch\":0,\"gpu\":\"A\",\"scratch\":[[1]]}," LAYERS,
            -EINVAL, "kernels"},
        {HEAD TENSORS "\"layers\":[{\"type\":\"A\",\"depth\":999,\"parameters\":0}]}", -EINVAL,
            "layers[0]"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct fault fault = {""};
        struct network network;
        assert_int_equal(parse(cases[i].text, &fault, &network), cases[i].code);
        if (!strstr(fault.text, cases[i].words))
            fail_msg("\"%s\" does not tell \"%s\"", fault.text, cases[i].words);
        assert_null(network.model);
    }
}

/* Who gave no answer, or one that is no number of bytes, was not asked. */
static void test_kernels_without_an_answer(void **state)
{
    static const char *const answers[] = {"[[null]]", "[[]]", "[7]", "[[-1]]", "[[1e3]]"};
    for (size_t i = 0; i < ARRAY_SIZE(answers); i++) {
        char text[2048];
        struct fault fault = {""};
        struct network network;
        snprintf(text, sizeof text,
            HEAD TENSORS CONV "\"kernels\":{\"batch\":8,\"gpu\":\"A\",\"scratch\":%s}," LAYERS,
            answers[i]);
        assert_int_equal(parse(text, &fault, &network), 0);
        assert_false(network.export->convs[0].workspace.known);
        network_fini(&network);
    }
}

static struct export_loader loader_of(const char *text)
{
    char all[2048];
    struct fault fault = {""};
    struct network network;
    snprintf(all, sizeof all, HEAD TENSORS "\"loader\":%s," LAYERS, text);
    if (parse(all, &fault, &network) < 0)
        fail_msg("%s", fault.text);
    struct export_loader loader = network.export->loader;
    network_fini(&network);
    return loader;
}

/* What makes no sense is no mistake of the file's other figures: it is not known. */
static void test_loaders(void **state)
{
    struct export_loader jpegs = loader_of("{\"workers\":8,\"data\":\"jpeg\",\"pixels\":187500.5}");
    assert_true(jpegs.is_seen && jpegs.data == LOADER_JPEG && jpegs.workers == 8);
    assert_float_equal(jpegs.pixels, 187500.5, 1e-6);
    struct export_loader tensors = loader_of("{\"workers\":0,\"data\":\"tensors\"}");
    assert_true(tensors.is_seen && tensors.data == LOADER_TENSORS && tensors.workers == 0);
    static const char *const unknown[] = {"{\"workers\":2,\"data\":null}", "{\"workers\":2}",
        "{\"workers\":2,\"data\":\"tapes\"}", "{\"workers\":2,\"data\":\"jpeg\"}",
        "{\"workers\":2,\"data\":\"jpeg\",\"pixels\":-4}",
        "{\"workers\":2,\"data\":\"jpeg\",\"pixels\":1e300}",
        "{\"workers\":2,\"data\":\"jpeg\",\"pixels\":\"many\"}"};
    for (size_t i = 0; i < ARRAY_SIZE(unknown); i++) {
        struct export_loader loader = loader_of(unknown[i]);
        assert_true(loader.is_seen && loader.data == LOADER_UNKNOWN && loader.workers == 2);
    }
    static const char *const none[] = {"null", "7", "[]", "{}", "{\"workers\":-1}",
        "{\"workers\":1.5,\"data\":\"jpeg\",\"pixels\":9}", "{\"workers\":100000000000}"};
    for (size_t i = 0; i < ARRAY_SIZE(none); i++)
        assert_false(loader_of(none[i]).is_seen);
}

/* Each empty list takes libjansson some hundred bytes: so many are refused unparsed. */
static void test_too_many_values(void **state)
{
    size_t n = EXPORT_VALUES_MAX / 2 + 1;
    char *text = malloc(3 * n + 2);
    struct fault fault = {""};
    struct export *export = NULL;
    text[0] = '{';
    for (size_t i = 0; i < n; i++)
        memcpy(&text[1 + 3 * i], "[],", 3);
    assert_int_equal(export_parse(text, 3 * n + 1, &fault, &export), -EFBIG);
    assert_non_null(strstr(fault.text, "more than 8000000 values"));
    free(text);
}

static void test_a_summary_is_a_summary(void **state)
{
    struct fault fault = {""};
    struct network network;
    assert_int_equal(parse("Linear-1 [-1, 10] 110\n", &fault, &network), 0);
    assert_null(network.export);
    assert_int_equal(network.model->format, SUMMARY_TORCHSUMMARY);
    network_fini(&network);
}

/* ---- what cuDNN is asked ---- */

static const char image_conv[] =
    "\"input\":[8,16,16],\"weight\":[32,8,3,3],\"output\":[32,8,8],\"stride\":[2,2],"
    "\"padding\":[1,1],\"dilation\":[1,1],\"groups\":1,\"transposed\":false,\"dtype\":\"float32\"";

/* An export with one convolution forward, and another one of the same shape in backward, whose
 * input's gradient is made at its tick. */
static void parse_convs(const char *conv, const char *head, struct network *ret_network)
{
    char text[4096];
    struct fault fault = {""};
    snprintf(text, sizeof text,
        "{\"colloc_export\":1,\"batch\":8,%s\"ticks\":8,"
        "\"phases\":[{\"input\":0,\"forward\":0,\"loss\":2,\"backward\":3}],"
        "\"tensors\":[[4096,0,0,-1,0],[0,8192,4,5,1]],\"convs\":["
        "{\"tick\":1,\"phase\":\"forward\",\"batch\":[0,1],%s},"
        "{\"tick\":4,\"phase\":\"backward\",\"batch\":[0,1],%s}]," LAYERS,
        head, conv, conv);
    if (parse(text, &fault, ret_network) < 0)
        fail_msg("%s: %s", fault.text, text);
}

static void assert_questions(const char *conv, const char *const expected[3])
{
    struct network network;
    parse_convs(conv, "", &network);
    assert_int_equal(network.export->n_convs, 3);
    for (size_t i = 0; i < 3; i++) {
        struct conv_question question;
        char line[CONV_QUESTION_LINE_SIZE];
        assert_int_equal(export_question(network.export, &network.export->convs[i], 8, &question),
            KERNEL_OF_CUDNN);
        assert_true(conv_question_is_sane(&question));
        conv_question_write(&question, line);
        assert_string_equal(line, expected[i]);
    }
    network_fini(&network);
}

static void test_questions(void **state)
{
    assert_questions(image_conv,
        (const char *const[]){"forward float32 nchw 1 0 8,8,16,16 32,8,3,3 8,32,8,8 2,2 1,1 1,1",
            "input float32 nchw 1 0 8,8,16,16 32,8,3,3 8,32,8,8 2,2 1,1 1,1",
            "weight float32 nchw 1 0 8,8,16,16 32,8,3,3 8,32,8,8 2,2 1,1 1,1"});
    /* A sequence is an image of one row. */
    assert_questions("\"input\":[8,256],\"weight\":[32,8,5],\"output\":[32,128],\"stride\":[2],"
                     "\"padding\":[2],\"dilation\":[3],\"dtype\":\"float32\"",
        (const char *const[]){"forward float32 nchw 1 0 8,8,1,256 32,8,1,5 8,32,1,128 1,2 0,2 1,3",
            "input float32 nchw 1 0 8,8,1,256 32,8,1,5 8,32,1,128 1,2 0,2 1,3",
            "weight float32 nchw 1 0 8,8,1,256 32,8,1,5 8,32,1,128 1,2 0,2 1,3"});
    /* A transposed convolution is the gradient of another one. */
    assert_questions("\"input\":[8,16,16],\"weight\":[8,4,2,2],\"output\":[4,32,32],"
                     "\"stride\":[2,2],\"padding\":[0,0],\"dilation\":[1,1],\"transposed\":true,"
                     "\"dtype\":\"float32\"",
        (const char *const[]){"input float32 nchw 1 0 8,4,32,32 8,4,2,2 8,8,16,16 2,2 0,0 1,1",
            "forward float32 nchw 1 0 8,4,32,32 8,4,2,2 8,8,16,16 2,2 0,0 1,1",
            "weight float32 nchw 1 0 8,4,32,32 8,4,2,2 8,8,16,16 2,2 0,0 1,1"});
}

static enum kernel_of ask_first(const char *conv, const char *head, struct conv_question *ret)
{
    struct network network;
    parse_convs(conv, head, &network);
    enum kernel_of answer = export_question(network.export, &network.export->convs[0], 8, ret);
    network_fini(&network);
    return answer;
}

static void test_how_it_is_asked(void **state)
{
    static const char last[] =
        "\"input\":[8,16,16],\"weight\":[32,8,3,3],\"output\":[32,8,8],\"stride\":[2,2],"
        "\"padding\":[1,1],\"dilation\":[1,1],\"dtype\":\"bfloat16\",\"channels_last\":true";
    struct conv_question question;
    assert_int_equal(
        ask_first(last, "\"flags\":{\"cudnn_allow_tf32\":false,\"cudnn_deterministic\":true},",
            &question),
        KERNEL_OF_CUDNN);
    assert_true(question.channels_last && !question.tf32 && question.deterministic);
    assert_int_equal(question.type, CONV_BFLOAT16);
    /* As PyTorch runs a depthwise convolution by its own kernel, where channels are not last. */
#define DEPTHWISE                                                                                  \
    "\"input\":[8,16,16],\"weight\":[16,1,3,3],\"output\":[16,16,16],\"stride\":[1,1],"            \
    "\"padding\":[1,1],\"dilation\":[1,1],\"groups\":8,\"dtype\":\"float16\""
    assert_int_equal(ask_first(DEPTHWISE, "", &question), KERNEL_OF_PYTORCH);
    assert_int_equal(
        ask_first(DEPTHWISE ",\"channels_last\":true", "", &question), KERNEL_OF_CUDNN);
}

static void test_what_cannot_be_asked(void **state)
{
    static const struct {
        const char *conv, *head;
    } cases[] = {
        {image_conv, "\"flags\":{\"cudnn_enabled\":false},"},
        {image_conv, "\"framework\":{\"name\":\"pytorch\",\"version\":\"1.13.1+cu117\"},"},
        {image_conv, "\"framework\":{\"name\":\"pytorch\",\"version\":\"2.0.1\"},"},
        {"\"input\":[8,16,16],\"weight\":[32,8,3,3],\"output\":[32,8,8],\"dtype\":\"float32\"", ""},
        {"\"input\":[8,16,16],\"weight\":[32,8,3,3],\"output\":[32,8,8],\"stride\":[2],"
         "\"padding\":[1,1],\"dilation\":[1,1],\"dtype\":\"float32\"",
            ""},
        {"\"input\":[8,16,16],\"weight\":[32,8,3,3],\"output\":[32,8,8],\"stride\":[0,2],"
         "\"padding\":[1,1],\"dilation\":[1,1],\"dtype\":\"float32\"",
            ""},
        {"\"input\":[8,16,16],\"weight\":[32,8,3,3],\"output\":[32,8,8],\"stride\":[2,2],"
         "\"padding\":[1,1],\"dilation\":[1,1],\"dtype\":\"float8_e4m3fn\"",
            ""},
    };
    struct conv_question question;
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        assert_int_equal(ask_first(cases[i].conv, cases[i].head, &question), KERNEL_NOT_KNOWN);
}

/* Each question once, and those that have no answer yet. */
static void test_missing_questions(void **state)
{
    struct network network;
    struct conv_question missing[8];
    struct kernel_answers answers = {0};
    parse_convs(image_conv, "", &network);
    assert_int_equal(export_questions_missing(network.export, 8, NULL, 8, missing), 3);
    assert_int_equal(export_questions_missing(network.export, 8, NULL, 2, missing), 2);
    assert_int_equal(kernel_answers_put(&answers, &missing[0], 0), 0);
    assert_int_equal(export_questions_missing(network.export, 8, &answers, 8, missing), 2);
    assert_int_equal(export_questions_missing(network.export, 16, &answers, 8, missing), 3);
    kernel_answers_clear(&answers);
    network_fini(&network);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_questions),
        cmocka_unit_test(test_how_it_is_asked),
        cmocka_unit_test(test_what_cannot_be_asked),
        cmocka_unit_test(test_missing_questions),
        cmocka_unit_test(test_reads_all),
        cmocka_unit_test(test_work_of_a_step),
        cmocka_unit_test(test_kernels_of_the_first_iteration),
        cmocka_unit_test(test_loop),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_kernels_without_an_answer),
        cmocka_unit_test(test_loaders),
        cmocka_unit_test(test_too_many_values),
        cmocka_unit_test(test_a_summary_is_a_summary),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
