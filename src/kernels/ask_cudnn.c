/* SPDX-License-Identifier: Apache-2.0 */
/*
 * colloc-cudnn: asks cuDNN how much scratch memory its kernels take for convolutions of given
 * shapes. It makes plans and runs none, so all that it needs of the GPU's memory is a CUDA context
 * without the stacks of its threads.
 *
 *     colloc-cudnn [OPTION ...] LIBRARY < QUESTIONS
 *
 *     --all                  all kernels, not the first alone
 *     --device=FILE          without a GPU: FILE describes one
 *     --write-device=FILE    writes such a description
 *     --user=USER            takes its rights away before it loads the library, and becomes that
 *                            user where it is root (confine.h); so collocd starts it
 *
 * LIBRARY is a libcudnn.so, which is loaded at run time: a build needs none. A question is a line
 * (conv_question.h). The first line of output is the library's version; then there is one for each
 * question: bytes of the kernel that PyTorch takes without `cudnn.benchmark`, the most bytes of a
 * kernel that it tries with it, and how many there are (with --all; else the first kernel alone is
 * asked for); or `unknown`, where there is no kernel.
 *
 *     cudnn 91900
 *     answer 67239936 4831838208 14
 *
 * Where it cannot ask, the only line is `error` and the reason.
 *
 * PyTorch's choice (aten/src/ATen/native/cudnn/Conv_v8.cpp): the first plan of the heuristics' list
 * that can be made, of the fallbacks' if there is none. It leaves out kernels that round inputs to
 * TF32 or less in 32 bit. With `benchmark` it makes all plans of both lists, and allocates the
 * largest workspace once.
 *
 * With --device no GPU is needed: FILE has the properties of one, which --write-device wrote where
 * it is (cuDNN 9.8 and newer).
 */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "kernels/confine.h"
#include "kernels/conv_question.h"
#include "kernels/cudnn_abi.h"

enum { CONFIGS_MAX = 256, DEVICE_MAX_BYTES = 1 << 20 }; /* chosen: more than there are */
enum { ALIGNMENT = 16 }; /* bytes: as PyTorch says of a tensor of its allocator */

enum tensor_role { INPUT, WEIGHT, OUTPUT, ROLES };

static const int64_t data_types[CONV_TYPES] = {[CONV_FLOAT32] = CUDNN_ABI_FLOAT,
    [CONV_FLOAT64] = CUDNN_ABI_DOUBLE,
    [CONV_FLOAT16] = CUDNN_ABI_HALF,
    [CONV_BFLOAT16] = CUDNN_ABI_BFLOAT16};
static const enum cudnn_abi_kind pass_kinds[] = {[CONV_ASK_FORWARD] = CUDNN_ABI_FORWARD,
    [CONV_ASK_INPUT] = CUDNN_ABI_BACKWARD_DATA,
    [CONV_ASK_WEIGHT] = CUDNN_ABI_BACKWARD_FILTER};

struct asker {
    struct cudnn_abi cudnn;
    void *handle;                /* NULL with --device */
    cudnn_abi_descriptor device; /* NULL without it */
};

struct answer {
    int64_t first, most, count; /* first: -1 until there is one */
};

/* ---- descriptors ---- */

static cudnn_abi_descriptor make_descriptor(struct asker *asker, enum cudnn_abi_kind kind)
{
    cudnn_abi_descriptor made = NULL;
    return asker->cudnn.create_descriptor(kind, &made) == 0 ? made : NULL;
}

static void set_numbers(struct asker *asker, cudnn_abi_descriptor to,
    enum cudnn_abi_attribute attribute, const int32_t *numbers, int64_t count)
{
    int64_t wide[CONV_RANK_MAX];
    for (int64_t i = 0; i < count; i++)
        wide[i] = numbers[i];
    asker->cudnn.set(to, attribute, CUDNN_ABI_TYPE_INT64, count, wide);
}

static void set_number(
    struct asker *asker, cudnn_abi_descriptor to, enum cudnn_abi_attribute attribute, int64_t value)
{
    asker->cudnn.set(to, attribute, CUDNN_ABI_TYPE_INT64, 1, &value);
}

static void set_choice(struct asker *asker, cudnn_abi_descriptor to,
    enum cudnn_abi_attribute attribute, enum cudnn_abi_type type, int64_t value)
{
    int choice = (int)value; /* an enumeration of C */
    asker->cudnn.set(to, attribute, type, 1, &choice);
}

static void set_descriptor(struct asker *asker, cudnn_abi_descriptor to,
    enum cudnn_abi_attribute attribute, cudnn_abi_descriptor value)
{
    asker->cudnn.set(to, attribute, CUDNN_ABI_TYPE_DESCRIPTOR, 1, &value);
}

/* Strides in elements of a dense tensor, channels last or not. A product beyond 64 bits is of no
 * tensor: cuDNN refuses the wrapped number. */
static void set_strides(struct asker *asker, cudnn_abi_descriptor to, const int32_t *shape,
    int64_t rank, bool channels_last)
{
    int64_t strides[CONV_RANK_MAX];
    uint64_t step = 1;
    if (channels_last) {
        strides[1] = 1;
        step = (uint64_t)shape[1];
    }
    for (int64_t i = rank - 1; i >= 0; i--) {
        if (channels_last && i == 1)
            continue;
        strides[i] = (int64_t)step;
        step *= (uint64_t)shape[i];
    }
    asker->cudnn.set(to, CUDNN_ABI_TENSOR_STRIDES, CUDNN_ABI_TYPE_INT64, rank, strides);
}

static cudnn_abi_descriptor make_tensor(
    struct asker *asker, const struct conv_question *question, enum tensor_role role)
{
    static const int64_t id[ROLES] = {[INPUT] = 'x', [WEIGHT] = 'w', [OUTPUT] = 'y'};
    const int32_t *const shapes[ROLES] = {question->input, question->weight, question->output};
    cudnn_abi_descriptor tensor = make_descriptor(asker, CUDNN_ABI_TENSOR);
    set_choice(
        asker, tensor, CUDNN_ABI_TENSOR_TYPE, CUDNN_ABI_TYPE_DATA_TYPE, data_types[question->type]);
    set_numbers(asker, tensor, CUDNN_ABI_TENSOR_DIMENSIONS, shapes[role], question->rank);
    set_strides(asker, tensor, shapes[role], question->rank, question->channels_last);
    set_number(asker, tensor, CUDNN_ABI_TENSOR_ID, id[role]);
    set_number(asker, tensor, CUDNN_ABI_TENSOR_ALIGNMENT, ALIGNMENT);
    asker->cudnn.finalize(tensor);
    return tensor;
}

static cudnn_abi_descriptor make_convolution(
    struct asker *asker, const struct conv_question *question)
{
    cudnn_abi_descriptor made = make_descriptor(asker, CUDNN_ABI_CONVOLUTION);
    int64_t type = question->type == CONV_FLOAT64 ? CUDNN_ABI_DOUBLE : CUDNN_ABI_FLOAT;
    int64_t dimensions = question->rank - 2;
    set_choice(asker, made, CUDNN_ABI_CONVOLUTION_COMPUTE, CUDNN_ABI_TYPE_DATA_TYPE, type);
    set_choice(asker, made, CUDNN_ABI_CONVOLUTION_MODE, CUDNN_ABI_TYPE_CONVOLUTION_MODE,
        CUDNN_ABI_CROSS_CORRELATION);
    set_number(asker, made, CUDNN_ABI_CONVOLUTION_DIMENSIONS, dimensions);
    set_numbers(asker, made, CUDNN_ABI_CONVOLUTION_STRIDES, question->stride, dimensions);
    set_numbers(asker, made, CUDNN_ABI_CONVOLUTION_PRE_PADDINGS, question->padding, dimensions);
    set_numbers(asker, made, CUDNN_ABI_CONVOLUTION_POST_PADDINGS, question->padding, dimensions);
    set_numbers(asker, made, CUDNN_ABI_CONVOLUTION_DILATIONS, question->dilation, dimensions);
    asker->cudnn.finalize(made);
    return made;
}

/* The attributes of each pass stand in one order, from its alpha on. */
static int first_attribute(enum cudnn_abi_kind pass)
{
    return pass == CUDNN_ABI_FORWARD         ? CUDNN_ABI_FORWARD_ALPHA
           : pass == CUDNN_ABI_BACKWARD_DATA ? CUDNN_ABI_DATA_ALPHA
                                             : CUDNN_ABI_FILTER_ALPHA;
}

static cudnn_abi_descriptor make_operation(struct asker *asker,
    const struct conv_question *question, cudnn_abi_descriptor parts[ROLES + 1])
{
    enum { ALPHA, BETA, CONVOLUTION, FIRST_TENSOR };
    static const enum tensor_role order[] = {WEIGHT, INPUT, OUTPUT};
    cudnn_abi_descriptor operation = make_descriptor(asker, pass_kinds[question->pass]);
    int from = first_attribute(pass_kinds[question->pass]);
    float one = 1, zero = 0;
    asker->cudnn.set(
        operation, (enum cudnn_abi_attribute)(from + ALPHA), CUDNN_ABI_TYPE_FLOAT, 1, &one);
    asker->cudnn.set(
        operation, (enum cudnn_abi_attribute)(from + BETA), CUDNN_ABI_TYPE_FLOAT, 1, &zero);
    set_descriptor(asker, operation, (enum cudnn_abi_attribute)(from + CONVOLUTION), parts[ROLES]);
    for (int i = 0; i < ROLES; i++)
        set_descriptor(
            asker, operation, (enum cudnn_abi_attribute)(from + FIRST_TENSOR + i), parts[order[i]]);
    asker->cudnn.finalize(operation);
    return operation;
}

/* ---- plans ---- */

static bool has_note(const int *notes, int64_t count, int note)
{
    for (int64_t i = 0; i < count; i++)
        if (notes[i] == note)
            return true;
    return false;
}

/* Whether PyTorch leaves the kernel out (filterEngineConfigs). */
static bool is_left_out(
    struct asker *asker, const struct conv_question *question, cudnn_abi_descriptor config)
{
    cudnn_abi_descriptor engine = make_descriptor(asker, CUDNN_ABI_ENGINE);
    int notes[CUDNN_ABI_NOTES_MAX];
    int64_t count = 0;
    asker->cudnn.get(
        config, CUDNN_ABI_CONFIG_ENGINE, CUDNN_ABI_TYPE_DESCRIPTOR, 1, &count, &engine);
    count = 0;
    asker->cudnn.get(engine, CUDNN_ABI_ENGINE_NUMERICAL_NOTE, CUDNN_ABI_TYPE_NUMERICAL_NOTE,
        CUDNN_ABI_NOTES_MAX, &count, notes);
    count = count < CUDNN_ABI_NOTES_MAX ? count : CUDNN_ABI_NOTES_MAX;
    asker->cudnn.destroy_descriptor(engine);
    bool exact = question->type == CONV_FLOAT32 || !question->tf32;
    return (question->deterministic && has_note(notes, count, CUDNN_ABI_NOTE_NONDETERMINISTIC)) ||
           (exact && has_note(notes, count, CUDNN_ABI_NOTE_DOWN_CONVERT_INPUTS)) ||
           (!question->tf32 && has_note(notes, count, CUDNN_ABI_NOTE_TENSOR_CORE));
}

/* Returns the bytes of the kernel's workspace, or -1 where it cannot run. */
static int64_t workspace_of_config(struct asker *asker, cudnn_abi_descriptor config)
{
    cudnn_abi_descriptor plan = make_descriptor(asker, CUDNN_ABI_PLAN);
    int64_t bytes = -1, count = 0;
    if (asker->handle)
        asker->cudnn.set(plan, CUDNN_ABI_PLAN_HANDLE, CUDNN_ABI_TYPE_HANDLE, 1, &asker->handle);
    else
        set_descriptor(asker, plan, CUDNN_ABI_PLAN_DEVICE, asker->device);
    set_descriptor(asker, plan, CUDNN_ABI_PLAN_CONFIG, config);
    if (asker->cudnn.finalize(plan) != 0 || asker->cudnn.get(plan, CUDNN_ABI_PLAN_WORKSPACE,
                                                CUDNN_ABI_TYPE_INT64, 1, &count, &bytes) != 0)
        bytes = -1;
    asker->cudnn.destroy_descriptor(plan);
    return bytes;
}

/* Adds the kernels of one list of cuDNN's. */
static void add_plans(struct asker *asker, const struct conv_question *question,
    cudnn_abi_descriptor graph, int mode, bool all, struct answer *answer)
{
    cudnn_abi_descriptor heuristics = make_descriptor(asker, CUDNN_ABI_HEURISTICS);
    static cudnn_abi_descriptor configs[CONFIGS_MAX];
    int64_t count = 0, returned = 0;
    set_descriptor(asker, heuristics, CUDNN_ABI_HEURISTICS_GRAPH, graph);
    set_choice(asker, heuristics, CUDNN_ABI_HEURISTICS_MODE, CUDNN_ABI_TYPE_HEURISTICS_MODE, mode);
    if (asker->device)
        set_descriptor(asker, heuristics, CUDNN_ABI_HEURISTICS_DEVICE, asker->device);
    if (asker->cudnn.finalize(heuristics) == 0)
        asker->cudnn.get(
            heuristics, CUDNN_ABI_HEURISTICS_RESULTS, CUDNN_ABI_TYPE_DESCRIPTOR, 0, &count, NULL);
    count = count < CONFIGS_MAX ? count : CONFIGS_MAX;
    for (int64_t i = 0; i < count; i++)
        configs[i] = make_descriptor(asker, CUDNN_ABI_CONFIG);
    if (count > 0)
        asker->cudnn.get(heuristics, CUDNN_ABI_HEURISTICS_RESULTS, CUDNN_ABI_TYPE_DESCRIPTOR, count,
            &returned, configs);
    for (int64_t i = 0; i < returned && i < count && (all || answer->first < 0); i++) {
        int64_t bytes = is_left_out(asker, question, configs[i])
                            ? -1
                            : workspace_of_config(asker, configs[i]);
        if (bytes < 0)
            continue;
        answer->count++;
        if (answer->first < 0)
            answer->first = bytes;
        if (bytes > answer->most)
            answer->most = bytes;
    }
    for (int64_t i = 0; i < count; i++)
        asker->cudnn.destroy_descriptor(configs[i]);
    asker->cudnn.destroy_descriptor(heuristics);
}

static struct answer ask_about(struct asker *asker, const struct conv_question *question, bool all)
{
    struct answer answer = {.first = -1};
    cudnn_abi_descriptor parts[ROLES + 1];
    for (int role = 0; role < ROLES; role++)
        parts[role] = make_tensor(asker, question, (enum tensor_role)role);
    parts[ROLES] = make_convolution(asker, question);
    cudnn_abi_descriptor operation = make_operation(asker, question, parts);
    cudnn_abi_descriptor graph = make_descriptor(asker, CUDNN_ABI_GRAPH);
    set_descriptor(asker, graph, CUDNN_ABI_GRAPH_OPERATIONS, operation);
    if (asker->handle)
        asker->cudnn.set(graph, CUDNN_ABI_GRAPH_HANDLE, CUDNN_ABI_TYPE_HANDLE, 1, &asker->handle);
    if (asker->cudnn.finalize(graph) == 0) {
        add_plans(asker, question, graph, CUDNN_ABI_MODE_INSTANT, all, &answer);
        if (all || answer.first < 0)
            add_plans(asker, question, graph, CUDNN_ABI_MODE_FALLBACK, all, &answer);
    }
    asker->cudnn.destroy_descriptor(graph);
    asker->cudnn.destroy_descriptor(operation);
    for (int i = 0; i <= ROLES; i++)
        asker->cudnn.destroy_descriptor(parts[i]);
    return answer;
}

/* ---- the library ---- */

static bool load_library(const char *path, struct cudnn_abi *ret_cudnn)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    const struct {
        const char *name;
        void *place;
    } wanted[] = {
        {"cudnnGetVersion", &ret_cudnn->get_version},
        {"cudnnCreate", &ret_cudnn->create},
        {"cudnnBackendCreateDescriptor", &ret_cudnn->create_descriptor},
        {"cudnnBackendDestroyDescriptor", &ret_cudnn->destroy_descriptor},
        {"cudnnBackendFinalize", &ret_cudnn->finalize},
        {"cudnnBackendSetAttribute", &ret_cudnn->set},
        {"cudnnBackendGetAttribute", &ret_cudnn->get},
    };
    for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
        void *found = library ? dlsym(library, wanted[i].name) : NULL;
        if (!found) {
            printf("error %s\n", dlerror());
            return false;
        }
        memcpy(wanted[i].place, &found, sizeof found);
    }
    return true;
}

static bool write_device(struct asker *asker, const char *path)
{
    cudnn_abi_descriptor device = make_descriptor(asker, CUDNN_ABI_DEVICE);
    static char text[DEVICE_MAX_BYTES];
    int64_t count = 0;
    int r = asker->cudnn.set(
        device, CUDNN_ABI_DEVICE_HANDLE, CUDNN_ABI_TYPE_HANDLE, 1, &asker->handle);
    if (r == 0)
        r = asker->cudnn.finalize(device);
    if (r == 0)
        r = asker->cudnn.get(
            device, CUDNN_ABI_DEVICE_TEXT, CUDNN_ABI_TYPE_CHAR, DEVICE_MAX_BYTES - 1, &count, text);
    FILE *file = r == 0 ? fopen(path, "w") : NULL;
    if (!file) {
        fprintf(stderr, "colloc-cudnn: the device's properties cannot be written (status %d)\n", r);
        return false;
    }
    fputs(text, file);
    return fclose(file) == 0;
}

static bool read_device(struct asker *asker, const char *path)
{
    static char text[DEVICE_MAX_BYTES];
    FILE *file = fopen(path, "r");
    size_t size = file ? fread(text, 1, sizeof text - 1, file) : 0;
    if (file)
        fclose(file);
    asker->device = make_descriptor(asker, CUDNN_ABI_DEVICE);
    int r = asker->cudnn.set(
        asker->device, CUDNN_ABI_DEVICE_TEXT, CUDNN_ABI_TYPE_CHAR, (int64_t)size, text);
    if (r == 0)
        r = asker->cudnn.finalize(asker->device);
    if (size == 0 || r != 0)
        fprintf(
            stderr, "colloc-cudnn: %s describes no device to this cuDNN (status %d)\n", path, r);
    return size > 0 && r == 0;
}

static void answer_questions(struct asker *asker, bool all)
{
    char *line = NULL;
    size_t capacity = 0;
    ssize_t size;
    while ((size = getline(&line, &capacity, stdin)) > 0) {
        struct conv_question question;
        struct answer answer = {.first = -1};
        size -= line[size - 1] == '\n';
        if (conv_question_read(line, (size_t)size, &question))
            answer = ask_about(asker, &question, all);
        if (answer.first < 0)
            printf("unknown\n");
        else
            printf("answer %lld %lld %lld\n", (long long)answer.first, (long long)answer.most,
                (long long)answer.count);
        fflush(stdout);
    }
    free(line);
}

/* A context keeps a stack for each thread that its GPU can run at once: 264 of 518 MiB on an H200
 * (132 multiprocessors, 2,048 threads, 1 KiB). No kernel runs here. What fails changes nothing:
 * cuDNN uses the context as it is. */
static void drop_stacks(void)
{
    enum { STACK_SIZE = 0, LEAST_BYTES = 16 }; /* cuda.h's CU_LIMIT_STACK_SIZE; chosen */
    int (*init)(unsigned), (*retain)(void **, int), (*set_current)(void *),
        (*set_limit)(int, size_t);
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL), *context;
    const struct {
        const char *name;
        void *place;
    } wanted[] = {{"cuInit", &init}, {"cuDevicePrimaryCtxRetain", &retain},
        {"cuCtxSetCurrent", &set_current}, {"cuCtxSetLimit", &set_limit}};
    for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
        void *found = driver ? dlsym(driver, wanted[i].name) : NULL;
        if (!found)
            return;
        memcpy(wanted[i].place, &found, sizeof found);
    }
    if (init(0) == 0 && retain(&context, 0) == 0 && set_current(context) == 0)
        set_limit(STACK_SIZE, LEAST_BYTES);
}

/* Opens the GPU, or reads the description of one. */
static bool open_device(struct asker *asker, const char *described_by)
{
    if (described_by)
        return read_device(asker, described_by);
    drop_stacks();
    int r = asker->cudnn.create(&asker->handle);
    if (r != 0)
        printf("error cuDNN cannot use the GPU (status %d)\n", r);
    return r == 0;
}

static bool drop_rights(const char *user)
{
    struct fault fault;
    if (!user || confine_process(user, &fault) == 0)
        return true;
    printf("error %s\n", fault.text);
    return false;
}

int main(int argc, char **argv)
{
    struct asker asker = {0};
    const char *read_from = NULL, *write_to = NULL, *user = NULL;
    bool all = false;
    int i = 1;
    for (; i < argc && strncmp(argv[i], "--", 2) == 0; i++) {
        if (strncmp(argv[i], "--device=", 9) == 0)
            read_from = argv[i] + 9;
        else if (strncmp(argv[i], "--write-device=", 15) == 0)
            write_to = argv[i] + 15;
        else if (strncmp(argv[i], "--user=", 7) == 0)
            user = argv[i] + 7;
        else if (strcmp(argv[i], "--all") == 0)
            all = true;
        else
            break;
    }
    if (i + 1 != argc) {
        fprintf(stderr, "usage: colloc-cudnn [--all] [--device=FILE | --write-device=FILE] "
                        "[--user=USER] LIBRARY < QUESTIONS\n");
        return 2;
    }
    if (!drop_rights(user) || !load_library(argv[i], &asker.cudnn) ||
        !open_device(&asker, read_from))
        return 1;
    printf("cudnn %zu\n", asker.cudnn.get_version());
    fflush(stdout);
    if (write_to)
        write_device(&asker, write_to);
    answer_questions(&asker, all);
    return 0;
}
