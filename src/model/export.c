/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads what `python3 -m colloc_export` wrote: JSON with the layers and with every storage that
 * one iteration allocates, by ticks of a clock. Sizes are linear in the batch. Every index and
 * size is checked, since a file may come from anywhere.
 */
#include "model/export.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_member.h"
#include "base/json_text.h"
#include "model/format.h"

void export_destroy(struct export *export)
{
    if (!export)
        return;
    model_destroy(export->model);
    free(export->tensors);
    free(export->holds);
    free(export->convs);
    free(export->shapes);
    compiled_step_fini(&export->compiled);
    step_work_fini(&export->work);
    free(export);
}

bool export_detect(const char *text, size_t size)
{
    struct span s = span_trim((struct span){text, size});
    return s.size > 0 && s.at[0] == '{';
}

/* Chosen: no host starts more processes, and no picture is larger. */
enum { LOADER_WORKERS_MAX = 100000, LOADER_PIXELS_MAX = 2000000000 };

static int report_member(struct fault *fault, const char *member, const char *form)
{
    return fault_set(fault, EINVAL, "%s: must be %s", member, form);
}

/* ---- members ---- */

static bool whole_number(const json_t *value, int64_t max, int64_t *ret)
{
    *ret = json_integer_value(value);
    return json_is_integer(value) && *ret >= 0 && *ret <= max;
}

static bool size_pair(const json_t *value, struct linear_size *ret)
{
    return json_array_size(value) >= 2 &&
           whole_number(json_array_get(value, 0), EXPORT_BYTES_MAX, &ret->fixed) &&
           whole_number(json_array_get(value, 1), EXPORT_BYTES_MAX, &ret->per_sample);
}

static void copy_text(const json_t *value, char *buffer, size_t size)
{
    const char *text = json_string_value(value);
    span_copy(span_of(text ? text : ""), buffer, size);
}

/* The figure of --with-fake: the peak of PyTorch's fake tensors, for one batch size only. */
static int read_fake_peak(const json_t *root, struct export *export, struct fault *fault)
{
    const json_t *figure = json_object_get(root, "faketensor");
    const char *method = json_string_value(json_object_get(figure, "method"));
    struct fake_peak *peak = &export->fake_peak;
    if (!figure || json_is_null(figure))
        return 0;
    if (!whole_number(json_object_get(figure, "batch"), EXPORT_BYTES_MAX, &peak->batch) ||
        peak->batch == 0 ||
        !whole_number(json_object_get(figure, "peak_bytes"), EXPORT_BYTES_MAX, &peak->bytes) ||
        peak->bytes == 0)
        return report_member(
            fault, "faketensor", "an object with batch and peak_bytes, positive whole numbers");
    peak->computed = method && strcmp(method, "fake") != 0;
    return 0;
}

/* Releases before it choose kernels by cuDNN's older interface, which answers otherwise. */
enum { PYTORCH_MAJOR = 2, PYTORCH_MINOR = 1 };

/* Does PyTorch of this version ("2.6.0+cu124"; NULL: not known) ask cuDNN as colloc does? */
static bool asks_by_graph(const char *version)
{
    char *end;
    long major = version ? strtol(version, &end, 10) : 0, minor = 0;
    if (version && *end == '.')
        minor = strtol(end + 1, NULL, 10);
    return !version || major > PYTORCH_MAJOR || (major == PYTORCH_MAJOR && minor >= PYTORCH_MINOR);
}

/* Its flags, where the training has set them; else PyTorch's defaults. */
static struct export_cudnn read_cudnn(const json_t *root, const json_t *flags)
{
    const json_t *framework = json_object_get(root, "framework");
    return (struct export_cudnn){
        .is_known = asks_by_graph(member_text(framework, "version", NULL)) &&
                    !json_is_false(json_object_get(flags, "cudnn_enabled")),
        .tf32 = !json_is_false(json_object_get(flags, "cudnn_allow_tf32")),
        .deterministic = json_is_true(json_object_get(flags, "cudnn_deterministic"))};
}

/* What it loads, as the script was seen to. Numbers that make no sense are of no loader. */
static struct export_loader read_loader(const json_t *value)
{
    struct export_loader loader = {.data = LOADER_UNKNOWN};
    const char *data = json_string_value(json_object_get(value, "data"));
    double pixels = json_number_value(json_object_get(value, "pixels"));
    loader.is_seen = whole_number(
        json_object_get(value, "workers"), LOADER_WORKERS_MAX, &loader.workers);
    if (!loader.is_seen)
        return (struct export_loader){0};
    if (data && strcmp(data, "tensors") == 0)
        loader.data = LOADER_TENSORS;
    if (data && strcmp(data, "jpeg") == 0 && pixels >= 1 && pixels <= LOADER_PIXELS_MAX)
        loader = (struct export_loader){true, LOADER_JPEG, loader.workers, pixels};
    return loader;
}

/* What a script's loop did, of which only these members matter here. */
static void read_seen(const json_t *seen, struct export *export)
{
    if (!whole_number(json_object_get(seen, "ddp"), INT32_MAX, &export->ddp))
        export->ddp = 0;
    if (!whole_number(json_object_get(seen, "accumulation"), INT32_MAX, &export->accumulation) ||
        export->accumulation == 0)
        export->accumulation = 1;
}

/* What holds for the whole export: version, batch, optimizer, precision. `every_batch` false means
 * that its sizes hold for this batch alone. */
static int read_head(const json_t *root, struct export *export, struct fault *fault)
{
    const json_t *version = json_object_get(root, "colloc_export");
    if (json_object_get(root, "colloc_faketensor"))
        return fault_set(fault, EINVAL,
            "made with --fake, which is one figure and no layers: make it with --with-fake");
    if (!json_is_integer(version))
        return fault_set(fault, EINVAL,
            "not a file of the exporter: it has no member colloc_export with its version");
    if (json_integer_value(version) != EXPORT_VERSION)
        return fault_set(fault, EPROTO,
            "version %" PRId64 " of the exporter's format; this colloc reads version %d",
            (int64_t)json_integer_value(version), EXPORT_VERSION);
    if (!whole_number(json_object_get(root, "batch"), INT64_MAX, &export->model->batch.value) ||
        export->model->batch.value == 0)
        return report_member(fault, "batch", "a positive whole number");
    export->model->batch.known = true;
    export->every_batch = !json_is_false(json_object_get(root, "every_batch"));
    if (!whole_number(
            json_object_get(root, "sequence_length"), INT32_MAX, &export->sequence_length))
        export->sequence_length = 0;
    export->optimizer = optimizer_parse(
        json_string_value(json_object_get(json_object_get(root, "optimizer"), "name")));
    int r = precision_parse("precision", json_string_value(json_object_get(root, "precision")),
        fault, &export->precision);
    if (r < 0)
        return r;
    copy_text(json_object_get(root, "method"), export->method, sizeof export->method);
    if (!size_pair(json_object_get(root, "multiply_adds"), &export->macs))
        export->macs = (struct linear_size){0};
    const json_t *flags = json_object_get(root, "flags");
    export->releases_output = json_is_false(json_object_get(root, "keeps_output"));
    export->not_modelled = json_is_true(json_object_get(flags, "checkpointing")) ||
                           json_is_true(json_object_get(flags, "compiled"));
    export->tries_kernels = json_is_true(json_object_get(flags, "cudnn_benchmark"));
    export->cudnn = read_cudnn(root, flags);
    if (!whole_number(json_object_get(flags, "nccl_processes"), INT32_MAX, &export->processes))
        export->processes = 0;
    export->loader = read_loader(json_object_get(root, "loader"));
    if (!whole_number(json_object_get(flags, "frozen"), INT64_MAX, &export->frozen))
        export->frozen = 0;
    read_seen(json_object_get(root, "seen"), export);
    return read_fake_peak(root, export, fault);
}

/* ---- tensors ---- */

/*
 * [fixed, per sample, first, last, class]: bytes, and the ticks between which the tensor lives.
 *
 *     [4096, 602112, 12, 310, 3]      4096 + 602112 per sample, from tick 12 to tick 310
 *     [94371840, 0, 0, -1, 0]         a weight: to the end
 */
static int read_tensor(const json_t *row, size_t i, struct export *export, struct fault *fault)
{
    struct export_tensor *tensor = &export->tensors[i];
    const json_t *last = json_array_get(row, 3);
    tensor->last = json_integer_value(last);
    if (!size_pair(row, &tensor->bytes) ||
        !whole_number(json_array_get(row, 2), export->ticks - 1, &tensor->first) ||
        !json_is_integer(last))
        return fault_set(fault, EINVAL,
            "tensors[%zu]: must be [fixed, per sample, first, last, class], whole numbers, the sizes at "
            "most 2^52 bytes",
            i);
    if (tensor->last != -1 && (tensor->last <= tensor->first || tensor->last >= export->ticks))
        return fault_set(fault, EINVAL,
            "tensors[%zu]: goes at tick %" PRId64 " and comes at %" PRId64 " of %" PRId64, i,
            tensor->last, tensor->first, export->ticks);
    return 0;
}

/* The clock ticks at each allocation and each free, so it has at most two ticks for each tensor. */
static int read_tensors(const json_t *root, struct export *export, struct fault *fault)
{
    const json_t *rows = json_object_get(root, "tensors");
    size_t n = json_array_size(rows);
    if (!whole_number(json_object_get(root, "ticks"), 2 * EXPORT_TENSORS_MAX, &export->ticks))
        return report_member(fault, "ticks", "the length of the clock");
    if (n == 0)
        return report_member(fault, "tensors", "a list that is not empty");
    if (n > EXPORT_TENSORS_MAX)
        return fault_set(fault, EFBIG, "tensors: more than %d", EXPORT_TENSORS_MAX);
    export->tensors = calloc(n, sizeof *export->tensors);
    if (!export->tensors)
        return fault_set(fault, ENOMEM, "out of memory");
    export->n_tensors = n;
    int r = 0;
    for (size_t i = 0; r == 0 && i < n; i++)
        r = read_tensor(json_array_get(rows, i), i, export, fault);
    return r;
}

/* ---- tensors that the training loop holds by a name ---- */

static int64_t class_of(const json_t *root, const char *name)
{
    const json_t *names = json_object_get(root, "classes");
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *at = json_string_value(json_array_get(names, i));
        if (at && strcmp(at, name) == 0)
            return (int64_t)i;
    }
    return -1;
}

/* The tick at which a phase of iteration `i` begins. */
static bool phase_begin(
    const json_t *phases, size_t i, const char *phase, int64_t ticks, int64_t *ret)
{
    return whole_number(json_object_get(json_array_get(phases, i), phase), ticks, ret);
}

static bool has_class(const json_t *rows, size_t i, int64_t class)
{
    int64_t own;
    return whole_number(json_array_get(json_array_get(rows, i), 4), INT32_MAX, &own) &&
           own == class;
}

/* Returns the next tensor of the class, from index `i` on, that is allocated at tick `from` or
 * later; n_tensors: there is none. */
static size_t next_of_class(
    const json_t *rows, const struct export *export, size_t i, int64_t class, int64_t from)
{
    while (
        i < export->n_tensors && !(has_class(rows, i, class) && export->tensors[i].first >= from))
        i++;
    return i;
}

/* Sets the end of the life of the tensors of iteration `i` - 1: they live until tick `until`, which
 * is in iteration `i`. */
static void hold_class(const json_t *rows, int64_t class, int64_t begin, int64_t end, int64_t until,
    struct export *export)
{
    size_t heir = 0;
    for (size_t k = next_of_class(rows, export, 0, class, begin);
         k < export->n_tensors && export->tensors[k].first < end;
         k = next_of_class(rows, export, k + 1, class, begin)) {
        heir = next_of_class(rows, export, heir, class, end);
        export->holds[export->n_holds++] = (struct export_hold){
            k, until, heir < export->n_tensors ? (int64_t)heir : -1};
        heir++;
    }
}

enum { ITERATIONS_MOST = 16 }; /* an exporter writes two */

/* Reads [tensor, until, heir]. */
static bool read_hold(const json_t *row, struct export *export)
{
    int64_t tensor, until, heir, most = (int64_t) export->n_tensors - 1;
    if (!whole_number(json_array_get(row, 0), most, &tensor) ||
        !whole_number(json_array_get(row, 1), export->ticks - 1, &until) ||
        !whole_number(json_array_get(row, 2), most, &heir) ||
        export->tensors[tensor].first >= until || export->tensors[tensor].last != until)
        return false;
    export->holds[export->n_holds++] = (struct export_hold){(size_t)tensor, until, heir};
    return true;
}

static int by_until(const void *a, const void *b)
{
    const struct export_hold *left = a, *right = b;
    return left->until < right->until ? -1 : left->until > right->until;
}

/* The holds of a script's export, which saw what its loop keeps. */
static int read_seen_holds(
    const json_t *rows, const json_t *phases, struct export *export, struct fault *fault)
{
    size_t n = json_array_size(rows), iterations = json_array_size(phases);
    if (!json_is_array(rows) || n > export->n_tensors)
        return report_member(fault, "holds", "a list of [tensor, tick, tensor]");
    for (size_t i = 0; i < n; i++)
        if (!read_hold(json_array_get(rows, i), export))
            return fault_set(fault, EINVAL,
                "holds[%zu]: must be [tensor, its last tick, the tensor that takes its place]", i);
    qsort(export->holds, export->n_holds, sizeof *export->holds, by_until);
    if (iterations > 1)
        (void)phase_begin(phases, iterations - 1, "input", export->ticks, &export->last_iteration);
    return 0;
}

/* Which tensors the script still names after they were used. An export that saw it says so;
 * otherwise a usual training loop is assumed: `output` is held to its loss, `input` to the next
 * batch. */
static int read_holds(const json_t *root, struct export *export, struct fault *fault)
{
    const json_t *rows = json_object_get(root, "tensors"),
                 *phases = json_object_get(root, "phases");
    int64_t input = class_of(root, "input"), output = class_of(root, "output"), begin = 0, end,
            forward, loss;
    export->last_iteration = -1;
    export->holds = calloc(2 * export->n_tensors, sizeof *export->holds);
    if (!export->holds)
        return fault_set(fault, ENOMEM, "out of memory");
    const json_t *seen = json_object_get(root, "holds");
    if (seen)
        return read_seen_holds(seen, phases, export, fault);
    for (size_t i = 1; i < json_array_size(phases) && i < ITERATIONS_MOST; i++, begin = end) {
        if (!phase_begin(phases, i, "input", export->ticks, &end) ||
            !phase_begin(phases, i, "forward", export->ticks, &forward) ||
            !phase_begin(phases, i, "loss", export->ticks, &loss) || end < begin || forward < end ||
            loss < forward)
            return 0;
        hold_class(rows, input, begin, end, forward, export);
        hold_class(rows, output, begin, end, loss, export);
        export->last_iteration = end;
    }
    return 0;
}

/* ---- kernels of other iterations ---- */

/* The file lists the kernels of the last iteration. Every iteration allocates the same tensors in
 * the same order, but for the optimizer's states, which only the first one allocates. The ticks of
 * these allocations tell when a kernel of the last iteration runs in another one. Distances in
 * ticks do not: an iteration also releases what the one before it left, and the first has nothing
 * to release. */
struct allocations {
    const json_t *phases;
    int64_t *ticks; /* in order */
    size_t n;
};

static int read_allocations(
    const json_t *root, const struct export *export, struct allocations *ret_allocations)
{
    const json_t *rows = json_object_get(root, "tensors");
    int64_t state = class_of(root, "state");
    *ret_allocations = (struct allocations){.phases = json_object_get(root, "phases"),
        .ticks = calloc(export->n_tensors, sizeof *ret_allocations->ticks)};
    for (size_t i = 0; ret_allocations->ticks && i < export->n_tensors; i++)
        if (!has_class(rows, i, state))
            ret_allocations->ticks[ret_allocations->n++] = export->tensors[i].first;
    return ret_allocations->ticks ? 0 : -ENOMEM;
}

/* Returns how many allocations there are before `tick`. */
static size_t allocations_before(const struct allocations *allocations, int64_t tick)
{
    size_t low = 0, high = allocations->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (allocations->ticks[middle] < tick)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Returns the tick in iteration `i` of what happens in this phase of the last iteration at `tick`;
 * -1: not known. */
static int64_t tick_in_iteration(
    const struct allocations *allocations, size_t i, const char *phase, int64_t tick, int64_t ticks)
{
    const json_t *phases = allocations->phases;
    int64_t here, there;
    if (json_array_size(phases) == 0 || !phase_begin(phases, i, phase, ticks, &here) ||
        !phase_begin(phases, json_array_size(phases) - 1, phase, ticks, &there) || tick < there)
        return -1;
    size_t next = allocations_before(allocations, here) + allocations_before(allocations, tick) -
                  allocations_before(allocations, there);
    return next < allocations->n ? allocations->ticks[next] : -1;
}

/* ---- products ---- */

/* cuBLAS allocates its workspace at a thread's first matrix product. */
static void read_products(
    const json_t *root, const struct allocations *allocations, struct export *export)
{
    const json_t *rows = json_object_get(root, "matmuls");
    static const char *const names[2] = {"forward", "backward"};
    export->multiplies = json_array_size(rows) > 0;
    for (size_t p = 0; p < 2; p++) {
        int64_t tick;
        export->multiplies_from[p] = -1;
        for (size_t i = 0; export->multiplies_from[p] < 0 && i < json_array_size(rows); i++) {
            const char *phase = json_string_value(
                json_object_get(json_array_get(rows, i), "phase"));
            if (phase && strcmp(phase, names[p]) == 0 &&
                whole_number(
                    json_object_get(json_array_get(rows, i), "tick"), export->ticks, &tick))
                export->multiplies_from[p] = tick_in_iteration(
                    allocations, 0, phase, tick, export->ticks);
        }
    }
}

/* ---- convolutions ---- */

static bool product_of(const json_t *dims, int64_t *ret)
{
    int64_t dim;
    *ret = 1;
    for (size_t i = 0; i < json_array_size(dims); i++)
        if (!whole_number(json_array_get(dims, i), EXPORT_BYTES_MAX, &dim) ||
            __builtin_mul_overflow(*ret, dim, ret) || *ret > EXPORT_BYTES_MAX)
            return false;
    return json_array_size(dims) > 0;
}

static bool scale_size(struct linear_size batch, int64_t bytes, struct linear_size *ret)
{
    return !__builtin_mul_overflow(batch.fixed, bytes, &ret->fixed) &&
           !__builtin_mul_overflow(batch.per_sample, bytes, &ret->per_sample) &&
           ret->fixed <= EXPORT_BYTES_MAX && ret->per_sample <= EXPORT_BYTES_MAX;
}

/* A convolution that may take a workspace: sizes by batch, and what cuDNN chooses its algorithm
 * by. */
static int read_conv(const json_t *row, size_t i, const struct export *export, struct fault *fault,
    struct export_conv *ret)
{
    const char *type = json_string_value(json_object_get(row, "dtype"));
    const char *phase = json_string_value(json_object_get(row, "phase"));
    const json_t *weight = json_object_get(row, "weight");
    int64_t element = type && strstr(type, "16") ? 2 : 4, input, output, groups, taps = 1, dim;
    struct linear_size batch;
    if (!whole_number(json_object_get(row, "tick"), export->ticks, &ret->tick) ||
        !size_pair(json_object_get(row, "batch"), &batch) ||
        !product_of(json_object_get(row, "input"), &input) ||
        !product_of(json_object_get(row, "output"), &output) || !product_of(weight, &ret->weight) ||
        !scale_size(batch, input * element, &ret->input) ||
        !scale_size(batch, output * element, &ret->output))
        return fault_set(fault, EINVAL,
            "convs[%zu]: tick, batch, input, output and weight must be there and in range", i);
    for (size_t k = 2; k < json_array_size(weight); k++)
        if (!whole_number(json_array_get(weight, k), EXPORT_BYTES_MAX, &dim) ||
            __builtin_mul_overflow(taps, dim, &taps))
            return report_member(fault, "convs", "weights of at most 2^52 elements");
    ret->weight *= element;
    ret->groups = whole_number(json_object_get(row, "groups"), INT64_MAX, &groups) ? groups : 1;
    ret->taps = taps;
    ret->half = element == 2;
    ret->pass = phase && strcmp(phase, "backward") == 0 ? EXPORT_WEIGHT_GRADIENT : EXPORT_FORWARD;
    if (!whole_number(json_array_get(json_object_get(row, "input"), 0), INT64_MAX, &ret->inputs) ||
        !whole_number(json_array_get(json_object_get(row, "output"), 0), INT64_MAX, &ret->outputs))
        return report_member(fault, "convs", "shapes with channels in front");
    ret->in_positions = ret->inputs > 0 ? input / ret->inputs : 0;
    ret->out_positions = ret->outputs > 0 ? output / ret->outputs : 0;
    return 0;
}

static int by_first(const void *key, const void *tensor)
{
    int64_t tick = *(const int64_t *)key, first = ((const struct export_tensor *)tensor)->first;
    return tick < first ? -1 : tick > first;
}

/* Backward computes the gradient of the input, where it is needed, before that of the weight, with
 * another kernel. */
static size_t split_backward(
    const struct export *export, struct export_conv *conv, struct export_conv *ret_input)
{
    const struct export_tensor *made = bsearch(
        &conv->tick, export->tensors, export->n_tensors, sizeof *made, by_first);
    bool has_input = conv->pass != EXPORT_FORWARD && made &&
                     made->bytes.fixed == conv->input.fixed &&
                     made->bytes.per_sample == conv->input.per_sample;
    if (!has_input)
        return 0;
    *ret_input = *conv;
    ret_input->pass = EXPORT_INPUT_GRADIENT;
    conv->tick++;
    return 1;
}

static void copy_to_iteration(
    const struct allocations *allocations, size_t i, size_t n, struct export *export)
{
    for (size_t k = 0; k < n; k++) {
        struct export_conv *conv = &export->convs[export->n_convs++];
        *conv = export->convs[k];
        const char *phase = conv->pass == EXPORT_FORWARD ? "forward" : "backward";
        int64_t tick = tick_in_iteration(allocations, i, phase, conv->tick, export->ticks);
        conv->tick = tick < 0 ? conv->tick : tick;
    }
}

static int by_tick(const void *a, const void *b)
{
    const struct export_conv *left = a, *right = b;
    return left->tick < right->tick ? -1 : left->tick > right->tick;
}

static struct count workspace_at(const json_t *of_conv, size_t i)
{
    struct count bytes = {0};
    bytes.known = whole_number(json_array_get(of_conv, i), EXPORT_BYTES_MAX, &bytes.value);
    return bytes;
}

/* What the library reported: a list for each of `convs`, with one number for forward and two for
 * backward (gradients of the input and of the weight). NULL: nothing. */
struct reported {
    const json_t *workspaces, *tried;
};

static void set_reported(
    struct export_conv *conv, const struct reported *reported, size_t i, size_t pass)
{
    conv->workspace = workspace_at(json_array_get(reported->workspaces, i), pass);
    conv->tried = workspace_at(json_array_get(reported->tried, i), pass);
}

/* Adds the kernels of the last iteration at the front of the list. */
static int read_kernels(
    const json_t *rows, const struct reported *reported, struct export *export, struct fault *fault)
{
    int r = 0;
    for (size_t i = 0; r == 0 && i < json_array_size(rows); i++) {
        struct export_conv *conv = &export->convs[export->n_convs];
        r = read_conv(json_array_get(rows, i), i, export, fault, conv);
        if (r < 0)
            break;
        conv->shape = i;
        conv_shape_read(json_array_get(rows, i), &export->shapes[i]);
        set_reported(conv, reported, i, conv->pass == EXPORT_FORWARD ? 0 : 1);
        if (split_backward(export, conv, conv + 1)) {
            set_reported(conv + 1, reported, i, 0);
            export->n_convs++;
        }
        export->n_convs++;
    }
    return r;
}

/* Reads the workspaces that the exporter queried from a GPU's library: one list for each of
 * `convs`. */
static int read_measured(const json_t *root, size_t n, struct export *export, struct fault *fault,
    struct reported *ret_reported)
{
    const json_t *kernels = json_object_get(root, "kernels");
    *ret_reported = (struct reported){0};
    if (!json_is_object(kernels))
        return 0;
    const json_t *workspaces = json_object_get(kernels, "scratch"),
                 *tried = json_object_get(kernels, "tried"), *gpu = json_object_get(kernels, "gpu"),
                 *process = json_object_get(kernels, "process");
    if (!whole_number(
            json_object_get(kernels, "batch"), EXPORT_BYTES_MAX, &export->measured.batch) ||
        export->measured.batch == 0 || json_array_size(workspaces) != n ||
        (json_is_array(tried) && json_array_size(tried) != n) || json_string_length(gpu) == 0 ||
        json_string_length(gpu) >= sizeof export->measured.gpu)
        return report_member(fault, "kernels",
            "an object with a batch, the name of a gpu, and scratch for each of convs");
    copy_text(gpu, export->measured.gpu, sizeof export->measured.gpu);
    export->measured.tries = json_is_array(tried);
    export->measured.process.known = process != NULL;
    if (process && !whole_number(process, EXPORT_BYTES_MAX, &export->measured.process.value))
        return report_member(fault, "kernels.process", "bytes of the process that was asked");
    *ret_reported = (struct reported){workspaces, tried};
    return 0;
}

/* The export has the convolutions of one iteration. They are repeated for each iteration that it
 * has ticks of, and sorted by time. */
static int read_convs(const json_t *root, const struct allocations *allocations,
    struct export *export, struct fault *fault)
{
    const json_t *rows = json_object_get(root, "convs");
    size_t n = json_array_size(rows), phases = json_array_size(allocations->phases),
           iterations = phases ? phases : 1;
    struct reported reported;
    int r = read_measured(root, n, export, fault, &reported);
    if (r < 0 || n == 0)
        return r;
    if (n > EXPORT_TENSORS_MAX || iterations > EXPORT_TENSORS_MAX / n)
        return fault_set(fault, EFBIG, "convs: more than %d", EXPORT_TENSORS_MAX);
    export->convs = calloc(2 * n * iterations, sizeof *export->convs);
    export->shapes = calloc(n, sizeof *export->shapes);
    if (!export->convs || !export->shapes)
        return fault_set(fault, ENOMEM, "out of memory");
    r = read_kernels(rows, &reported, export, fault);
    size_t kernels = export->n_step_convs = export->n_convs;
    for (size_t i = 0; r == 0 && i + 1 < iterations; i++)
        copy_to_iteration(allocations, i, kernels, export);
    if (r == 0)
        qsort(export->convs, export->n_convs, sizeof *export->convs, by_tick);
    return r;
}

static int read_repeated(const json_t *root, struct export *export, struct fault *fault)
{
    struct allocations allocations;
    int r = read_allocations(root, export, &allocations);
    if (r < 0)
        return fault_set(fault, ENOMEM, "out of memory");
    read_products(root, &allocations, export);
    r = read_convs(root, &allocations, export, fault);
    free(allocations.ticks);
    return r;
}

/* ---- layers ---- */

/* Appends a copy of a member's text to the texts of the model, whose memory was allocated for all
 * of them. */
static struct span keep_text(struct model *model, size_t *used, const json_t *value)
{
    struct span text = {model->text + *used, json_string_length(value)};
    memcpy(model->text + *used, text.size ? json_string_value(value) : "", text.size);
    *used += text.size;
    return text;
}

/* A shape that cannot be read leaves the layer without one: not every layer has a tensor as
 * output. */
static void read_shape(const json_t *row, struct layer *layer)
{
    const json_t *dims = json_object_get(row, "shape");
    struct linear_size activations;
    int64_t product;
    size_t rank = json_array_size(dims);
    if (rank == 0 || rank > MODEL_RANK_MAX || !product_of(dims, &product) || product == 0)
        return;
    layer->rank = (int)rank;
    for (size_t i = 0; i < rank; i++)
        layer->shape[i] = json_integer_value(json_array_get(dims, i));
    layer->activations = (struct count){product, true};
    if (size_pair(json_object_get(row, "activations"), &activations) && activations.per_sample > 0)
        layer->activations.value = activations.per_sample;
}

/* Only layers that run and have no layers in them are leaves: their outputs are what a step
 * allocates. */
static int read_layer(
    const json_t *row, size_t i, struct model *model, size_t *used, struct fault *fault)
{
    struct layer *layer = &model->layers[i];
    const json_t *calls = json_object_get(row, "calls");
    int64_t depth;
    if (!json_is_object(row) || !json_is_string(json_object_get(row, "type")) ||
        !whole_number(json_object_get(row, "depth"), MODEL_DEPTH_MAX - 1, &depth) ||
        !whole_number(json_object_get(row, "parameters"), EXPORT_BYTES_MAX, &layer->parameters))
        return fault_set(
            fault, EINVAL, "layers[%zu]: type, depth and parameters must be there and in range", i);
    layer->type = keep_text(model, used, json_object_get(row, "type"));
    layer->name = keep_text(model, used, json_object_get(row, "name"));
    layer->args = keep_text(model, used, json_object_get(row, "args"));
    layer->kind = layer_kind_of(layer->type);
    layer->depth = (int)depth;
    layer->line = (int)i + 1;
    bool runs = !calls || json_integer_value(calls) > 0;
    layer->leaf = runs && json_is_true(json_object_get(row, "leaf")) &&
                  layer->kind != LAYER_CONTAINER;
    layer->in_place = json_is_true(json_object_get(row, "in_place")) ? TRISTATE_YES : TRISTATE_NO;
    read_shape(row, layer);
    return 0;
}

static size_t text_size(const json_t *rows)
{
    size_t size = 1;
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        size += json_string_length(json_object_get(row, "type")) +
                json_string_length(json_object_get(row, "name")) +
                json_string_length(json_object_get(row, "args"));
    }
    return size;
}

/* Shared weights make the sum of the layers larger than the model, never smaller. */
static int read_layers(const json_t *root, struct export *export, struct fault *fault)
{
    struct model *model = export->model;
    const json_t *rows = json_object_get(root, "layers");
    size_t n = json_array_size(rows), used = 0;
    int64_t printed;
    if (n == 0)
        return report_member(fault, "layers", "a list that is not empty");
    if (n > MODEL_LAYERS_MAX)
        return fault_set(fault, EFBIG, "layers: more than %d", MODEL_LAYERS_MAX);
    model->layers = calloc(n, sizeof *model->layers);
    model->text = malloc(text_size(rows));
    if (!model->layers || !model->text)
        return fault_set(fault, ENOMEM, "out of memory");
    model->n_layers = n;
    int r = 0;
    for (size_t i = 0; r == 0 && i < n; i++)
        r = read_layer(json_array_get(rows, i), i, model, &used, fault);
    if (r == 0)
        r = model_sum_up(model, fault);
    if (r == 0 && whole_number(json_object_get(root, "parameters"), INT64_MAX, &printed) &&
        printed < model->parameters)
        r = fault_set(fault, EINVAL,
            "its layers have %" PRId64 " parameters, more than the %" PRId64 " of the model",
            model->parameters, printed);
    return r;
}

static void read_warnings(const json_t *root, struct model *model)
{
    const json_t *warnings = json_object_get(root, "warnings");
    for (size_t i = 0; i < json_array_size(warnings) && i < MODEL_WARNINGS_MAX; i++)
        if (json_is_string(json_array_get(warnings, i)))
            model_warn(model, 0, "%s", json_string_value(json_array_get(warnings, i)));
}

/* The compiler shows no layers. One stands for all, so that the run history knows the program. */
static int read_program(const json_t *root, struct export *export, struct fault *fault)
{
    struct model *model = export->model;
    const json_t *program = json_object_get(root, "program");
    size_t used = 0;
    if (json_string_length(program) == 0)
        return report_member(fault, "program", "a text that is the same for the same training");
    model->layers = calloc(1, sizeof *model->layers);
    model->text = malloc(json_string_length(program));
    if (!model->layers || !model->text)
        return fault_set(fault, ENOMEM, "out of memory");
    model->layers[0] = (struct layer){
        .type = keep_text(model, &used, program), .line = 1, .leaf = true};
    model->n_layers = 1;
    return 0;
}

/* Tensors come before holds and convolutions, which are checked against their clock. */
static int read_tensors_and_layers(const json_t *root, struct export *export, struct fault *fault)
{
    int r = read_tensors(root, export, fault);
    if (r == 0)
        r = read_holds(root, export, fault);
    if (r == 0)
        r = read_repeated(root, export, fault);
    if (r == 0)
        r = step_work_read(root, fault, &export->work);
    return r == 0 ? read_layers(root, export, fault) : r;
}

static int read_all(const json_t *root, struct export *export, struct fault *fault)
{
    int r = read_head(root, export, fault);
    if (r == 0)
        r = compiled_step_read(root, fault, &export->compiled);
    if (r == 0)
        r = (export->compiled.is_there ? read_program : read_tensors_and_layers)(
            root, export, fault);
    read_warnings(root, export->model);
    return r;
}

/* From any bytes: the file may be from a user. */
int export_parse(const char *text, size_t size, struct fault *fault, struct export **ret_export)
{
    if (size > EXPORT_SIZE_MAX)
        return fault_set(fault, EFBIG, "larger than %d MiB", EXPORT_SIZE_MAX >> 20);
    if (json_text_count_values(text, size) > EXPORT_VALUES_MAX)
        return fault_set(fault, EFBIG, "more than %d values", EXPORT_VALUES_MAX);
    json_error_t error;
    json_t *root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
    if (!root)
        return fault_set(fault, EINVAL, "line %d: no JSON: %.200s", error.line, error.text);
    struct export *export = calloc(1, sizeof *export);
    if (export)
        export->model = calloc(1, sizeof *export->model);
    int r = export && export->model ? 0 : fault_set(fault, ENOMEM, "out of memory");
    if (r == 0) {
        export->model->format = SUMMARY_EXPORT;
        r = read_all(root, export, fault);
    }
    json_decref(root);
    if (r < 0)
        export_destroy(export);
    else
        *ret_export = export;
    return r;
}
