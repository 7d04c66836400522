/* SPDX-License-Identifier: Apache-2.0 */
/* The exporter's clock, replayed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "estimator/estimator.h"
#include "estimator/physics/allocator_replay.h"
#include "estimator/physics/compiled_replay.h"
#include "estimator/physics/known_kernels.h"
#include "estimator/physics/quantile.h"
#include "estimator/physics/tried_kernels.h"
#include "model/export_question.h"

static const struct gpu_traits bare = {.match = ""};
static const struct export_replay once = {.batch = 1};

/* 64 MiB that stay, then 32 MiB per sample twice: together, and one after the other. */
static struct export_tensor together[] = {
    {{64 << 20, 0}, 0, -1}, {{0, 32 << 20}, 1, 3}, {{0, 32 << 20}, 2, 4}, {{0, 0}, 5, -1}};
static struct export_tensor in_turn[] = {
    {{64 << 20, 0}, 0, -1}, {{0, 32 << 20}, 1, 2}, {{0, 32 << 20}, 3, 4}};

static struct footprint play(
    struct export_tensor *tensors, size_t n, double batch, struct export_conv *conv)
{
    struct export export = {
        .every_batch = true, .tensors = tensors, .n_tensors = n, .ticks = 6, .convs = conv};
    struct footprint footprint;
    struct fault fault = {""};
    export.n_convs = conv != NULL;
    struct export_replay how = {.batch = batch};
    assert_int_equal(allocator_replay_export(&export, &how, &bare, &fault, &footprint), 0);
    return footprint;
}

static void test_lives(void **state)
{
    assert_true(play(together, 4, 1, NULL).reserved == 128.0 * MIB);
    assert_true(play(together, 4, 2, NULL).reserved == 192.0 * MIB);
    assert_true(play(together, 4, 2, NULL).live == 192.0 * MIB);
    assert_true(play(in_turn, 3, 1, NULL).reserved == 96.0 * MIB);
    assert_true(play(in_turn, 3, 2, NULL).reserved == 128.0 * MIB);
}

/* A workspace is taken, but a task that is short of memory can do without. */
static void test_workspace(void **state)
{
    struct export_conv conv = {
        .tick = 1, .input = {0, 24 << 20}, .output = {0, 40 << 20}, .weight = 4 << 20};
    struct footprint with = play(in_turn, 3, 1, &conv), without = play(in_turn, 3, 1, NULL);
    assert_true(with.reserved > without.reserved);
    assert_true(with.live == without.live);
}

/* What a GPU's library said holds for its batch and its kind of GPU, and only if it said all; else
 * the rule does. */
static void test_kernels(void **state)
{
    struct export_conv convs[2] = {{.tick = 1,
                                       .input = {0, 24 << 20},
                                       .output = {0, 40 << 20},
                                       .weight = 4 << 20,
                                       .workspace = {200 << 20, true}},
        {.tick = 2, .workspace = {0, true}}};
    struct export export = {.every_batch = true,
        .tensors = in_turn,
        .n_tensors = 3,
        .ticks = 6,
        .convs = convs,
        .n_convs = 2,
        .measured = {.batch = 1, .gpu = "NVIDIA H200"}};
    struct footprint footprint;
    struct fault fault = {""};
    struct export_replay measured = {.batch = 1, .use_measured = true}, by_rule = {.batch = 1};
    assert_int_equal(allocator_replay_export(&export, &measured, &bare, &fault, &footprint), 0);
    assert_true(footprint.largest_workspace == 200.0 * MIB);
    assert_int_equal(allocator_replay_export(&export, &by_rule, &bare, &fault, &footprint), 0);
    assert_true(footprint.largest_workspace == 68.0 * MIB);
    assert_true(allocator_replay_knows_kernels(&export, 1, "NVIDIA H200"));
    assert_false(allocator_replay_knows_kernels(&export, 2, "NVIDIA H200"));
    assert_false(allocator_replay_knows_kernels(&export, 1, "NVIDIA H200 NVL"));
    assert_false(allocator_replay_knows_kernels(&export, 1, NULL));
    convs[0].workspace.known = false;
    assert_false(allocator_replay_knows_kernels(&export, 1, "NVIDIA H200"));
    convs[0].workspace = (struct count){200 << 20, true};
    export.n_convs = 0;
    assert_false(allocator_replay_knows_kernels(&export, 1, "NVIDIA H200"));
}

/* An estimate takes the answers that were kept if all are there, and says whose they are. */
static void test_kept_answers(void **state)
{
    struct layer layer = {.kind = LAYER_CONV};
    struct model model = {.layers = &layer, .n_layers = 1, .format = SUMMARY_EXPORT};
    struct export_conv convs[2] = {{.tick = 1, .input = {0, 24 << 20}, .output = {0, 40 << 20}},
        {.tick = 2, .shape = 1, .pass = EXPORT_WEIGHT_GRADIENT}};
    struct conv_shape shapes[2];
    for (int i = 0; i < 2; i++)
        shapes[i] = (struct conv_shape){.batch = {0, 1},
            .groups = 1,
            .rank = 4,
            .input = {0, 8 + i, 16, 16},
            .weight = {32, 8 + i, 3, 3},
            .output = {0, 32, 16, 16},
            .stride = {1, 1},
            .padding = {1, 1},
            .dilation = {1, 1}};
    struct export export = {.model = &model,
        .every_batch = true,
        .tensors = in_turn,
        .n_tensors = 3,
        .ticks = 6,
        .convs = convs,
        .n_convs = 2,
        .n_step_convs = 2,
        .shapes = shapes,
        .cudnn = {true, true, false},
        .last_iteration = -1};
    struct kernel_answers answers = {.origin = {"NVIDIA H200", "580.1", 91900}};
    struct estimate_request request = {.model = &model,
        .export = &export,
        .batch = 4,
        .gpu_kind = "NVIDIA H200",
        .kernels = &answers};
    struct estimate estimate;
    struct fault fault = {""};
    struct conv_question missing[4];
    assert_int_equal(known_kernels_missing(&request, 4, missing), 2);
    assert_int_equal(kernel_answers_put(&answers, &missing[0], 1 << 20), 0);
    assert_int_equal(estimate_run("graph", &request, &fault, &estimate), 0);
    assert_int_equal(estimate.evidence, EVIDENCE_EXPORT);
    assert_string_equal(estimate.kernels, "by rules");
    double by_rules = estimate.bytes.value;
    assert_int_equal(kernel_answers_put(&answers, &missing[1], (int64_t)4 << 30), 0);
    assert_int_equal(known_kernels_missing(&request, 4, missing), 0);
    assert_int_equal(estimate_run("graph", &request, &fault, &estimate), 0);
    assert_int_equal(estimate.evidence, EVIDENCE_KERNELS);
    assert_string_equal(estimate.kernels, "cuDNN 9.19.0 on NVIDIA H200, driver 580.1");
    assert_true(estimate.bytes.value > by_rules + 3.0 * GIB);
    /* The library has no kernel for it: then it is not known which one runs. */
    struct conv_question none;
    assert_int_equal(export_question(&export, &convs[1], 4, &none), KERNEL_OF_CUDNN);
    assert_int_equal(kernel_answers_put(&answers, &none, KERNEL_NONE), 0);
    assert_int_equal(known_kernels_missing(&request, 4, missing), 0);
    assert_int_equal(estimate_run("graph", &request, &fault, &estimate), 0);
    assert_true(estimate.bytes.value == by_rules);
    /* cudnn.benchmark tries others. */
    assert_int_equal(kernel_answers_put(&answers, &none, 0), 0);
    export.tries_kernels = true;
    assert_int_equal(known_kernels_missing(&request, 4, missing), 0);
    assert_int_equal(estimate_run("graph", &request, &fault, &estimate), 0);
    assert_int_equal(estimate.evidence, EVIDENCE_EXPORT);
    kernel_answers_clear(&answers);
    /* A process that was asked for these says it: the code of what was tried is in it, beyond a
     * context of 630 MiB. */
    convs[0].workspace = convs[1].workspace = (struct count){1 << 20, true};
    export.measured = (struct export_measured){.batch = 4, .gpu = "NVIDIA H200", .tries = true};
    assert_int_equal(estimate_run("graph", &request, &fault, &estimate), 0);
    assert_int_equal(estimate.evidence, EVIDENCE_KERNELS);
    double without_code = estimate.bytes.value;
    export.measured.process = (struct count){(int64_t)1016 << 20, true};
    assert_int_equal(estimate_run("graph", &request, &fault, &estimate), 0);
    assert_true(estimate.bytes.value == without_code + (1016 - 630) * (double)MIB);
    export.measured.process.value = 624 << 20;
    assert_int_equal(estimate_run("graph", &request, &fault, &estimate), 0);
    assert_true(estimate.bytes.value == without_code);
    export.measured.process.value = (int64_t)1016 << 20;
    export.measured.batch = 8; /* of another batch */
    assert_int_equal(estimate_run("graph", &request, &fault, &estimate), 0);
    export.measured.process.known = false;
    double with_process = estimate.bytes.value;
    assert_int_equal(estimate_run("graph", &request, &fault, &estimate), 0);
    assert_true(estimate.bytes.value == with_process);
}

/* Kernels of the first convolution of a kind are tried, and PyTorch empties its cache then: 32 MiB
 * that were free go back to the driver before 40 are taken. The next of that kind empties
 * nothing. */
static void test_tries_empty_the_cache(void **state)
{
    static struct export_tensor tensors[] = {
        {{0, 32 << 20}, 0, 1}, {{0, 40 << 20}, 3, 4}, {{0, 48 << 20}, 6, 7}};
    struct model model = {.format = SUMMARY_EXPORT};
    struct export_conv convs[3] = {{.tick = 2}, {.tick = 5, .shape = 1}, {.tick = 8}};
    struct conv_shape shapes[2];
    for (int i = 0; i < 2; i++)
        shapes[i] = (struct conv_shape){.batch = {0, 1},
            .groups = 1,
            .rank = 4,
            .input = {0, 8, 16, 16},
            .weight = {32, 8, 3, 3},
            .output = {0, 32, 16, 16},
            .stride = {1, 1},
            .padding = {1, 1},
            .dilation = {1, 1}};
    struct export export = {.model = &model,
        .every_batch = true,
        .tensors = tensors,
        .n_tensors = 3,
        .ticks = 9,
        .convs = convs,
        .n_convs = 3,
        .n_step_convs = 3,
        .shapes = shapes,
        .cudnn = {true, true, false},
        .last_iteration = -1};
    struct estimate_request request = {.model = &model, .export = &export, .batch = 1};
    struct export_replay how = {.batch = 1};
    struct footprint footprint;
    struct fault fault = {""};
    bool *tries;
    assert_int_equal(tried_kernels_find(&request, &fault, &tries), 0);
    assert_null(tries);
    assert_int_equal(allocator_replay_export(&export, &how, &bare, &fault, &footprint), 0);
    assert_true(footprint.reserved == (32 + 40 + 48) * (double)MIB);
    export.tries_kernels = true;
    assert_int_equal(tried_kernels_find(&request, &fault, &tries), 0);
    assert_true(tries[0] && !tries[1] && !tries[2]); /* the same shape in another place */
    how.tries = tries;
    assert_int_equal(allocator_replay_export(&export, &how, &bare, &fault, &footprint), 0);
    assert_true(footprint.reserved == (40 + 48) * (double)MIB);
    free(tries);
    shapes[1].stride[0] = 2;
    assert_int_equal(tried_kernels_find(&request, &fault, &tries), 0);
    assert_true(tries[0] && tries[1] && !tries[2]);
    how.tries = tries;
    assert_int_equal(allocator_replay_export(&export, &how, &bare, &fault, &footprint), 0);
    assert_true(footprint.reserved == 48.0 * MIB);
    free(tries);
    /* The gradient of the second's input is the question of a transposed one, but in the thread of
     * the backward pass. The third asks in that thread, too. */
    shapes[0] = shapes[1];
    memcpy(shapes[0].input, shapes[1].output, sizeof shapes[0].input);
    memcpy(shapes[0].output, shapes[1].input, sizeof shapes[0].output);
    shapes[0].transposed = true;
    convs[1].pass = convs[2].pass = EXPORT_INPUT_GRADIENT;
    convs[2].shape = 1;
    assert_int_equal(tried_kernels_find(&request, &fault, &tries), 0);
    assert_true(tries[0] && tries[1] && !tries[2]);
    free(tries);
}

/* What the largest kernel takes while it is tried: the transforms of maps and weights. P99 is with
 * it, where trainings were seen to take it. */
static void test_what_tries_take(void **state)
{
    static struct export_tensor tensors[] = {{{0, 32 << 20}, 0, 9}};
    struct model model = {.format = SUMMARY_EXPORT};
    struct export_conv convs[2] = {{.tick = 2}, {.tick = 5, .shape = 1}};
    struct conv_shape shapes[2] = {{.batch = {0, 1},
                                       .groups = 1,
                                       .rank = 4,
                                       .input = {0, 1024, 7, 7},
                                       .weight = {2048, 1024, 1, 1},
                                       .output = {0, 2048, 7, 7},
                                       .stride = {1, 1},
                                       .dilation = {1, 1}},
        {.batch = {0, 1},
            .groups = 1,
            .rank = 4,
            .input = {0, 64, 31, 31},
            .weight = {64, 64, 3, 3},
            .output = {0, 64, 31, 31},
            .stride = {1, 1},
            .padding = {1, 1},
            .dilation = {1, 1}}};
    struct export export = {.model = &model,
        .every_batch = true,
        .tensors = tensors,
        .n_tensors = 1,
        .ticks = 9,
        .convs = convs,
        .n_convs = 2,
        .n_step_convs = 2,
        .shapes = shapes,
        .cudnn = {true, true, false},
        .last_iteration = -1};
    const double small = 2 * 8 * 16 * 9, large = 2 * 8 * 64 * 33, middle = 2 * 8 * 32 * 17;
    assert_true(tried_workspace_of(&export, 8).bytes.value == small * (1024 * 2048 + 8 * 3072));
    convs[0].shape = 1;
    assert_true(tried_workspace_of(&export, 8).bytes.value == large * (64 * 64 + 8 * 128));
    shapes[1].input[2] = shapes[1].output[2] = shapes[1].input[3] = shapes[1].output[3] = 3;
    assert_true(tried_workspace_of(&export, 8).bytes.value == middle * (64 * 64 + 8 * 128));
    assert_true(tried_workspace_of(&export, 8).is_seen);
    shapes[1].channels_last = true;
    assert_false(tried_workspace_of(&export, 8).is_seen);
    shapes[1].dilation[1] = 2;
    assert_true(tried_workspace_of(&export, 8).bytes.value == 0);
    shapes[1].input[2] = 300;
    shapes[1].dilation[1] = 1;
    assert_true(tried_workspace_of(&export, 8).bytes.value == 0);
    shapes[1].rank = 5;
    assert_false(tried_workspace_of(&export, 8).bytes.valid);
    export.cudnn.is_known = false;
    assert_false(tried_workspace_of(&export, 8).bytes.valid);
}

/* P99 of a training that tries kernels: that of one that tries none, and the largest kernel. In 16
 * bit, where none was seen to take so much, it is never wider than that of a doubtful summary. */
static void test_quantiles_of_tries(void **state)
{
    struct physics physics = {.context_bytes = 500.0 * MIB,
        .footprint.reserved = 4000.0 * MIB,
        .conv_share = 1,
        .is_export = true,
        .convolves = true};
    struct estimate estimate = {
        .bytes = reading_of(4500.0 * MIB), .evidence = EVIDENCE_EXPORT, .estimator = "graph"};
    quantiles_set(&estimate, &physics);
    assert_false(estimate.untried_p99_bytes.valid);
    double untried = estimate.p99_bytes.value;
    physics.tries_kernels = true;
    quantiles_set(&estimate, &physics);
    double wide = estimate.p99_bytes.value, wide_p90 = estimate.p90_bytes.value;
    assert_true(estimate.untried_p99_bytes.value == untried && wide > 2 * untried);
    physics.tried = (struct tried_workspace){reading_of(1000.0 * MIB), true};
    quantiles_set(&estimate, &physics);
    assert_true(estimate.p99_bytes.value == untried + 1000.0 * MIB);
    assert_true(estimate.p90_bytes.value == fmin(wide_p90, estimate.p99_bytes.value));
    physics.tried.bytes = reading_of(1e6 * MIB);
    quantiles_set(&estimate, &physics);
    assert_true(estimate.p99_bytes.value == untried + 1e6 * MIB);
    physics.tried.is_seen = false;
    quantiles_set(&estimate, &physics);
    assert_true(estimate.p99_bytes.value == wide && estimate.p90_bytes.value == wide_p90);
}

/* A workspace just below the hole that it fits into may need its own segment if it were larger; a
 * small one changes nothing. */
static void test_range(void **state)
{
    struct export_conv conv = {.tick = 4, .workspace = {(int64_t)32 << 20, true}};
    struct export export = {.every_batch = true,
        .tensors = in_turn,
        .n_tensors = 3,
        .ticks = 6,
        .convs = &conv,
        .n_convs = 1};
    struct export_replay how = {.batch = 1, .use_measured = true};
    struct fault fault = {""};
    double range = -1;
    assert_int_equal(allocator_replay_range(&export, &how, &bare, &fault, &range), 0);
    assert_true(range > 0.2 && range < 0.4); /* 128 MiB for 96: log(4 / 3) = 0.29 */
    conv.workspace.value = 4 << 10;
    assert_int_equal(allocator_replay_range(&export, &how, &bare, &fault, &range), 0);
    assert_true(range == 0);
}

/* The loop's names: an output makes room before backward, a batch only once the next one is there.
 */
static void test_names_hold(void **state)
{
    static struct export_tensor tensors[] = {
        {{0, 32 << 20}, 0, -1}, {{0, 32 << 20}, 1, 5}, {{0, 32 << 20}, 3, -1}};
    static struct export_hold early = {1, 2, -1}, late = {1, 4, -1};
    struct export export = {.every_batch = true,
        .tensors = tensors,
        .n_tensors = 3,
        .ticks = 6,
        .n_holds = 1,
        .last_iteration = -1};
    struct footprint footprint;
    struct fault fault = {""};
    export.holds = &early;
    assert_int_equal(allocator_replay_export(&export, &once, &bare, &fault, &footprint), 0);
    assert_true(footprint.reserved == 64.0 * MIB);
    export.holds = &late;
    assert_int_equal(allocator_replay_export(&export, &once, &bare, &fault, &footprint), 0);
    assert_true(footprint.reserved == 96.0 * MIB);
}

/* An iteration that leaves what it found: 40 MiB go where 32 were, which only the next round shows.
 */
static void test_loop_goes_on(void **state)
{
    static struct export_tensor tensors[] = {{{32 << 20, 0}, 0, -1}, {{32 << 20, 0}, 1, -1},
        {{40 << 20, 0}, 2, 3}, {{40 << 20, 0}, 4, 5}};
    static struct export_hold hold = {0, 1, 1};
    struct export export = {.every_batch = true,
        .tensors = tensors,
        .n_tensors = 4,
        .ticks = 6,
        .holds = &hold,
        .n_holds = 1,
        .last_iteration = 1};
    struct footprint footprint;
    struct fault fault = {""};
    assert_int_equal(allocator_replay_export(&export, &once, &bare, &fault, &footprint), 0);
    assert_true(footprint.reserved == (32 + 40) * MIB);
    hold.heir = -1; /* not the same loop: played once */
    assert_int_equal(allocator_replay_export(&export, &once, &bare, &fault, &footprint), 0);
    assert_true(footprint.live == (32 + 40) * (double)MIB);
}

static struct estimate ask(struct estimate_request request, int expected)
{
    struct export_tensor tensors[] = {{{64 << 20, 0}, 0, -1}, {{0, 32 << 20}, 1, 3}};
    struct model model = {.format = SUMMARY_EXPORT, .batch = {8, true}, .parameters = 16 << 20};
    struct export export = {.model = &model,
        .tensors = tensors,
        .n_tensors = 2,
        .ticks = 4,
        .optimizer = OPTIMIZER_ADAM,
        .precision = PRECISION_FP32};
    struct estimate estimate;
    struct fault fault = {""};
    request.model = &model;
    request.export = &export;
    assert_int_equal(estimate_run("graph", &request, &fault, &estimate), expected);
    return estimate;
}

/* DDP's buckets hold the gradients once more; what a divided model saves is not known. */
static void test_several_gpus(void **state)
{
    struct estimate one = ask((struct estimate_request){.batch = 8}, 0),
                    two = ask((struct estimate_request){.batch = 8, .gpus = 2}, 0),
                    divided = ask(
                        (struct estimate_request){.batch = 8, .gpus = 2, .parallel = PARALLEL_FSDP},
                        0);
    assert_true(two.bytes.value > one.bytes.value);
    assert_true(two.floor_bytes.value > one.floor_bytes.value);
    assert_non_null(strstr(two.note, "DistributedDataParallel"));
    assert_non_null(strstr(two.note, "NCCL"));
    assert_true(divided.bytes.value >= one.bytes.value + 850 * (double)MIB);
    assert_true(divided.bytes.value < one.bytes.value + 950 * (double)MIB);
    assert_non_null(strstr(divided.note, "what fsdp saves is not taken away"));
}

static void test_contradictions_are_told(void **state)
{
    struct estimate e = ask((struct estimate_request){.batch = 8}, 0);
    assert_string_equal(e.note, "");
    assert_non_null(strstr(
        ask((struct estimate_request){.batch = 4}, ESTIMATE_UNKNOWN).note, "batch of 8 alone"));
    assert_non_null(
        strstr(ask((struct estimate_request){.batch = 8, .optimizer = OPTIMIZER_SGD}, 0).note,
            "made with adam"));
    assert_non_null(
        strstr(ask((struct estimate_request){.batch = 8, .precision = PRECISION_AMP}, 0).note,
            "made in fp32"));
}

static struct footprint replay_compiled(const struct compiled_step *step)
{
    struct footprint footprint;
    struct fault fault = {""};
    assert_int_equal(compiled_replay(step, &fault, &footprint), 0);
    return footprint;
}

/* Parameters of 48 MiB and a batch of 1 MiB; temporaries of 50 MiB; a loss. */
static void test_compiled_step(void **state)
{
    int64_t arguments[] = {48 * MIB, MIB};
    struct compiled_output outputs[] = {{4, COMPILED_NO_ARGUMENT}, {48 * MIB, 0}};
    struct compiled_step step = {.is_there = true,
        .arguments = arguments,
        .n_arguments = 2,
        .outputs = outputs,
        .n_outputs = 1,
        .temp_bytes = 50 * MIB};
    struct footprint donated = replay_compiled(&step);
    assert_true(donated.live == 99.0 * MIB + 4);
    assert_true(donated.reserved == (64 + 64) * MIB);
    step.n_outputs = 2; /* old and new parameters at once: in the region of the temporaries */
    struct footprint held = replay_compiled(&step);
    assert_true(held.live == 147.0 * MIB + 4);
    assert_true(held.reserved == (64 + 64 + 128) * MIB);
    step.argument_bytes = (struct count){60 * MIB, true}; /* padded by the compiler */
    assert_true(replay_compiled(&step).live == 158.0 * MIB + 4);
    step.argument_bytes = (struct count){MIB, true}; /* parameters that the step does not read */
    assert_true(replay_compiled(&step).live == held.live);
}

/* A pool of 2 + 4 + ... + 64 MiB after the compiler's trials, in which the steps find room. If they
 * did not, it would grow by 64 MiB. */
static void test_compiled_step_in_a_known_pool(void **state)
{
    int64_t arguments[] = {4 * MIB};
    struct compiled_output outputs[] = {{4 * MIB, 0}};
    struct compiled_step step = {.is_there = true,
        .arguments = arguments,
        .n_arguments = 1,
        .outputs = outputs,
        .n_outputs = 1,
        .temp_bytes = 20 * MIB};
    assert_true(replay_compiled(&step).next_region == 0);
    step.compiling = (struct compiled_pool){.in_use_bytes = {4 * MIB, true},
        .peak_bytes = {90 * MIB, true},
        .pool_bytes = {126 * MIB, true},
        .largest_free_bytes = {64 * MIB, true}};
    struct footprint known = replay_compiled(&step);
    assert_true(known.reserved == 126 * MIB);
    assert_true(known.next_region == 64 * MIB);
    const struct physics physics = {.footprint = known, .context_bytes = 600 * MIB};
    struct estimate estimate = {
        .evidence = EVIDENCE_COMPILED, .bytes = {.value = 726 * MIB, .valid = true}};
    quantiles_set(&estimate, &physics);
    assert_true(estimate.p50_bytes.value == 726 * MIB);
    assert_true(estimate.p90_bytes.value > 728 * MIB && estimate.p90_bytes.value < 729 * MIB);
    assert_true(estimate.p99_bytes.value == (726 + 64) * MIB);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lives),
        cmocka_unit_test(test_workspace),
        cmocka_unit_test(test_kernels),
        cmocka_unit_test(test_kept_answers),
        cmocka_unit_test(test_tries_empty_the_cache),
        cmocka_unit_test(test_what_tries_take),
        cmocka_unit_test(test_quantiles_of_tries),
        cmocka_unit_test(test_range),
        cmocka_unit_test(test_names_hold),
        cmocka_unit_test(test_loop_goes_on),
        cmocka_unit_test(test_several_gpus),
        cmocka_unit_test(test_contradictions_are_told),
        cmocka_unit_test(test_compiled_step),
        cmocka_unit_test(test_compiled_step_in_a_known_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
