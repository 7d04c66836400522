/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Adds up the kernels of a step, and what the host takes to launch them.
 *
 * Example: a step of 400 operators of 20 us each takes the host 8 ms, even where its kernels are
 * done in 3 ms. SMs are active for the 3 ms, where the kernels fill all of them: 38 %.
 */
#include "estimator/physics/step_load.h"

#include <math.h>

/* What one kernel of a foreach operator takes at most: tensors, blocks, and elements of a block
 * (ATen/native/cuda/MultiTensorApply.cuh). */
enum { LIST_TENSORS = 64, LIST_BLOCKS = 320, LIST_BLOCK_ELEMENTS = 65536 };

const struct activity_rates activity_rates =
#include "estimator/physics/activity_rates.inc"
    ;

struct step_load step_load_begin(const struct gpu_traits *gpu, const struct activity_rates *rates)
{
    struct step_load load = {.gpu = gpu, .rates = rates};
    for (int i = 0; i < STEP_PHASES; i++)
        load.host_us[i] = rates->phase_us;
    return load;
}

void step_load_kernel(struct step_load *load, const struct kernel *kernel, double calls)
{
    struct kernel_time t = kernel_time_of(kernel, load->gpu, load->rates);
    load->gpu_us += calls * t.us;
    load->resident_us += calls * (t.us - t.idle_us) * t.fill * load->rates->active_share;
    load->bytes += calls * kernel->bytes;
}

void step_load_lists(
    struct step_load *load, double calls, double tensors, double bytes, double elements)
{
    double blocks = ceil(elements / LIST_BLOCK_ELEMENTS),
           launches = fmax(1, fmax(ceil(tensors / LIST_TENSORS), ceil(blocks / LIST_BLOCKS)));
    struct kernel kernel = {
        .kind = KERNEL_SIMPLE, .bytes = bytes / launches, .outputs = elements / launches};
    step_load_kernel(load, &kernel, calls * launches);
    load->host_us[STEP_UPDATE] += calls * tensors * load->rates->tensor_us;
}

struct activity step_load_activity(const struct step_load *load)
{
    struct activity activity = {.gpu_us = load->gpu_us};
    for (int i = 0; i < STEP_PHASES; i++) {
        activity.phase_us[i] = load->host_us[i];
        activity.host_us += load->host_us[i];
    }
    activity.step_us = fmax(activity.gpu_us, activity.host_us);
    activity.smact = load->resident_us / activity.step_us;
    activity.dram = fmin(1, load->bytes / (load->gpu->bytes_per_s * activity.step_us / 1e6));
    return activity;
}
