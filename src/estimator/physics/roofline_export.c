/* SPDX-License-Identifier: Apache-2.0 */
/* The roofline of an export: its convolutions and products by shape, and its other operators by
 * what they read and write. */
#include <math.h>

#include "estimator/physics/step_load.h"

static enum kernel_kind kind_of_conv(const struct export_conv *conv)
{
    if (conv->groups > 1)
        return conv->groups == conv->inputs ? KERNEL_DEPTHWISE : KERNEL_GROUPED;
    return conv->taps == 1 && conv->in_positions == conv->out_positions ? KERNEL_POINTWISE
                                                                        : KERNEL_CONV;
}

/* The sizes of a convolution, as a product sees them: per sample, and in elements. */
struct conv_sizes {
    double samples, groups, weights;
    double in, out;                           /* channels */
    double in_positions, out_positions, work; /* work: positions at which the weight is applied */
};

/* The product of a map: positions and channels. That of each sample is one product where there is
 * no change of the layout. */
static void multiply_map(struct kernel *kernel, const struct conv_sizes *sizes, bool forward)
{
    double positions = forward ? sizes->out_positions : sizes->in_positions,
           channels = forward ? sizes->out : sizes->in;
    bool each = kernel->kind == KERNEL_POINTWISE;
    kernel->count = each ? sizes->samples : sizes->groups;
    kernel->m = positions * (each ? 1 : sizes->samples);
    kernel->n = channels / sizes->groups;
    kernel->k = sizes->weights / channels * sizes->work / positions;
    kernel->macs = sizes->samples * positions * sizes->weights; /* of a depthwise convolution */
}

/* The gradient of a weight: a sum over positions. */
static void multiply_gradient(struct kernel *kernel, const struct conv_sizes *sizes)
{
    kernel->count = sizes->groups;
    kernel->m = sizes->out / sizes->groups;
    kernel->n = sizes->weights / sizes->out;
    kernel->k = sizes->samples * sizes->work;
    kernel->macs = sizes->samples * sizes->work * sizes->weights;
}

static struct kernel kernel_of_conv(const struct export_conv *conv, double batch)
{
    double element = conv->half ? STEP_HALF_BYTES : STEP_FP32_BYTES,
           input = linear_size_at(conv->input, batch), output = linear_size_at(conv->output, batch);
    struct conv_sizes sizes = {.groups = (double)conv->groups,
        .weights = (double)conv->weight / element,
        .in = (double)conv->inputs,
        .out = (double)conv->outputs,
        .in_positions = (double)conv->in_positions,
        .out_positions = (double)conv->out_positions};
    sizes.samples = input / element / (sizes.in * sizes.in_positions);
    sizes.work = fmin(sizes.in_positions, sizes.out_positions);
    enum kernel_kind kind = kind_of_conv(conv);
    struct kernel kernel = {.kind = kind,
        .half = conv->half,
        .gradient = conv->pass == EXPORT_WEIGHT_GRADIENT ||
                    (kind == KERNEL_DEPTHWISE && conv->pass == EXPORT_INPUT_GRADIENT),
        .unaligned = kernel_is_unaligned(sizes.in / sizes.groups, conv->half) ||
                     kernel_is_unaligned(sizes.out / sizes.groups, conv->half),
        .bytes = input + output + (double)conv->weight};
    double made = conv->pass == EXPORT_FORWARD          ? output
                  : conv->pass == EXPORT_INPUT_GRADIENT ? input
                                                        : (double)conv->weight;
    kernel.outputs = made / element;
    if (conv->pass == EXPORT_WEIGHT_GRADIENT)
        multiply_gradient(&kernel, &sizes);
    else
        multiply_map(&kernel, &sizes, conv->pass == EXPORT_FORWARD);
    return kernel;
}

/* False for a shape that a faulty file gives, or an empty batch. */
static bool has_elements(const struct export_conv *conv)
{
    return conv->inputs > 0 && conv->outputs > 0 && conv->groups > 0 && conv->in_positions > 0 &&
           conv->out_positions > 0;
}

static double us_of_operator(const struct activity_rates *rates, enum step_phase phase)
{
    return phase == STEP_BACKWARD ? rates->backward_us : rates->forward_us;
}

/* The convolutions of the last iteration are the last ones. */
static void add_convs(struct step_load *load, const struct export *export, double batch)
{
    for (size_t i = export->n_convs - export->n_step_convs; i < export->n_convs; i++) {
        const struct export_conv *conv = &export->convs[i];
        if (!has_elements(conv))
            continue;
        struct kernel kernel = kernel_of_conv(conv, batch);
        step_load_kernel(load, &kernel, 1);
        enum step_phase phase = conv->pass == EXPORT_FORWARD ? STEP_FORWARD : STEP_BACKWARD;
        load->host_us[phase] += load->rates->conv_us;
        if (conv->pass != EXPORT_INPUT_GRADIENT) /* one operator with the gradient of the weight */
            load->host_us[phase] += us_of_operator(load->rates, phase);
    }
}

static void add_products(struct step_load *load, const struct step_work *work, double batch)
{
    for (size_t i = 0; i < work->n_products; i++) {
        const struct step_product *product = &work->products[i];
        double m = linear_size_at(product->m, batch), n = linear_size_at(product->n, batch),
               k = linear_size_at(product->k, batch), count = linear_size_at(product->count, batch),
               outputs = count * m * n;
        struct kernel kernel = {.kind = KERNEL_PRODUCT,
            .half = product->half,
            .m = m,
            .n = n,
            .k = k,
            .count = count,
            .outputs = outputs,
            .bytes = (outputs + count * k * (m + n)) *
                     (product->half ? STEP_HALF_BYTES : STEP_FP32_BYTES)};
        step_load_kernel(load, &kernel, 1);
        load->host_us[product->phase] += us_of_operator(load->rates, product->phase);
    }
}

/* A normalisation writes two sums for each channel, whatever the batch is, where it sums over the
 * batch: mean and variance, or the gradients of weight and bias. */
enum { SUM_BYTES = 2 * STEP_FP32_BYTES };

static void add_operator(
    struct step_load *load, const struct step_operator *operator, double batch, bool half)
{
    static const enum kernel_kind kinds[] = {[STEP_KERNEL] = KERNEL_SIMPLE,
        [STEP_NORM] = KERNEL_NORM,
        [STEP_ATTENTION] = KERNEL_ATTENTION,
        [STEP_RECURRENT] = KERNEL_RECURRENT};
    double calls = (double)operator->calls, writes = linear_size_at(operator->writes, batch),
           bytes = writes + linear_size_at(operator->reads, batch);
    if (operator->kind == STEP_VIEW) {
        load->host_us[operator->phase] += calls * load->rates->view_us;
        return;
    }
    if (operator->kind == STEP_LISTS) {
        step_load_lists(load, calls, (double)operator->tensors, bytes, writes / STEP_FP32_BYTES);
        return;
    }
    struct kernel kernel = {.kind = kinds[operator->kind],
        .half = half,
        .count = (double)operator->tensors,
        .macs = linear_size_at(operator->macs, batch),
        .bytes = bytes,
        .outputs = writes / (half ? STEP_HALF_BYTES : STEP_FP32_BYTES)};
    if (operator->kind == STEP_NORM)
        kernel.parts = (double)operator->writes.fixed / SUM_BYTES;
    step_load_kernel(load, &kernel, calls);
    load->host_us[operator->phase] += calls * us_of_operator(load->rates, operator->phase);
}

struct activity activity_of_export(const struct export *export, double batch,
    const struct gpu_traits *gpu, const struct activity_rates *rates)
{
    const struct step_work *work = &export->work;
    struct step_load load = step_load_begin(gpu, rates);
    load.host_us[STEP_FORWARD] += rates->module_us * (double)export->model->n_layers;
    add_convs(&load, export, batch);
    add_products(&load, work, batch);
    for (size_t i = 0; i < work->n_operators; i++)
        add_operator(&load, &work->operators[i], batch, precision_is_autocast(export->precision));
    return step_load_activity(&load);
}
