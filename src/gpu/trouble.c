/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/trouble.h"

#include <stdio.h>

#include "base/clock.h"
#include "gpu/cost.h"
#include "gpu/xid.h"

/* A program's Xid is told for so long. */
#define XID_TOLD_US (600 * SECOND_US)

/* The hardware holds clocks down for an instant now and then: only what lasts counts. */
#define HELD_DOWN_LEAST_US (3 * SECOND_US)
#define MEMORY_LEAST_US    SECOND_US

void trouble_note_xid(struct trouble *trouble, unsigned xid, int64_t now_us)
{
    if (!trouble->xid_of_gpu && xid_find(xid).blame == XID_OF_GPU)
        trouble->xid_of_gpu = xid;
    trouble->xid_last = xid;
    trouble->xid_last_us = now_us;
}

/* A question that is not answered leaves what was known: no answer is no cure. */
static void look_at_memory(
    struct trouble *trouble, const struct nvml *nvml, nvml_device card, int64_t now_us)
{
    unsigned corrected, uncorrected, pending, failed;
    unsigned long long errors;
    int retired;
    int64_t began_us = cost_processor_us();

    if (nvml_call(nvml, ecc_errors, card, NVML_UNCORRECTED, NVML_SINCE_DRIVER_LOAD, &errors) ==
        NVML_OK)
        trouble->ecc_uncorrected = errors;
    if (nvml_call(nvml, remapped_rows, card, &corrected, &uncorrected, &pending, &failed) ==
        NVML_OK) {
        trouble->remap_pending = pending;
        trouble->remap_failed = failed;
    }
    if (nvml_call(nvml, retirement_pending, card, &retired) == NVML_OK)
        trouble->retirement_pending = retired;
    trouble->ask_again_us = now_us + cost_rest_us(cost_processor_us() - began_us, MEMORY_LEAST_US);
}

static void look_at_clocks(
    struct trouble *trouble, const struct nvml *nvml, nvml_device card, int64_t now_us)
{
    const unsigned long long count = NVML_HELD_DOWN_HARDWARE | NVML_HELD_DOWN_HARDWARE_HEAT |
                                     NVML_HELD_DOWN_POWER_BRAKE;
    unsigned long long reasons = 0;

    if (nvml_call(nvml, clock_reasons, card, &reasons) != NVML_OK)
        reasons = 0;
    if (reasons & count && !trouble->held_down)
        trouble->held_down_since_us = now_us;
    trouble->held_down = reasons & count;
    trouble->held_down_ask_again_us = now_us + SLOW_LEAST_US;
}

void trouble_look(
    struct trouble *trouble, const struct nvml *nvml, nvml_device card, int64_t now_us)
{
    if (now_us >= trouble->held_down_ask_again_us)
        look_at_clocks(trouble, nvml, card, now_us);
    if (now_us >= trouble->ask_again_us)
        look_at_memory(trouble, nvml, card, now_us);
}

static const char *held_down_words(unsigned long long reasons)
{
    if (reasons & NVML_HELD_DOWN_HARDWARE_HEAT)
        return "heat";
    return reasons & NVML_HELD_DOWN_POWER_BRAKE ? "the power brake" : "the hardware";
}

void trouble_tell(const struct trouble *trouble, struct gpu_sample *sample)
{
    char *text = sample->trouble.text;
    size_t size = sizeof(sample->trouble.text);
    struct xid xid = xid_find(trouble->xid_of_gpu ? trouble->xid_of_gpu : trouble->xid_last);
    bool was_lately = trouble->xid_last && sample->at_us - trouble->xid_last_us < XID_TOLD_US;

    sample->trouble.is_serious = true;
    if (trouble->xid_of_gpu)
        snprintf(text, size, "Xid %u (%s): reset or replace it, then colloc gpus --clear",
            xid.number, xid.words);
    else if (trouble->remap_failed)
        snprintf(text, size, "faulty memory that cannot be remapped: replace it");
    else if (trouble->ecc_uncorrected)
        snprintf(text, size, "%llu uncorrectable ECC error%s since the driver was loaded: reset it",
            trouble->ecc_uncorrected, trouble->ecc_uncorrected == 1 ? "" : "s");
    else if (trouble->remap_pending || trouble->retirement_pending)
        snprintf(text, size, "faulty memory is to be remapped: reset it");
    else if (trouble->held_down &&
             sample->at_us - trouble->held_down_since_us >= HELD_DOWN_LEAST_US)
        snprintf(text, size, "its clocks are held down by %s", held_down_words(trouble->held_down));
    else
        sample->trouble.is_serious = false;
    if (!sample->trouble.is_serious && was_lately)
        snprintf(text, size, "Xid %u (%s)%s", xid.number, xid.words,
            xid.blame == XID_OF_APPLICATION ? ", as faulty programs cause it" : "");
}
