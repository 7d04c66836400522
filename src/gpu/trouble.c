/* SPDX-License-Identifier: Apache-2.0 */
/* Queries a card's memory errors and clocks, and describes faults for the user. */
#include "gpu/trouble.h"

#include <stdio.h>

#include "base/clock.h"
#include "gpu/query_cost.h"
#include "gpu/xid.h"

/* How long an Xid that a program caused is reported. Chosen. */
#define XID_REPORTED_US (600 * SECOND_US)

/* Hardware throttles clocks for an instant now and then: only longer times are reported. Chosen. */
#define THROTTLED_LEAST_US (3 * SECOND_US)
#define MEMORY_LEAST_US    SECOND_US

void trouble_add_xid(struct trouble *trouble, unsigned xid, int64_t now_us)
{
    if (!trouble->xid_of_gpu && xid_find(xid).blame == XID_OF_GPU)
        trouble->xid_of_gpu = xid;
    trouble->xid_last = xid;
    trouble->xid_last_us = now_us;
}

static void query_memory_errors(
    struct trouble *trouble, const struct nvml *nvml, nvml_device card, int64_t now_us)
{
    unsigned corrected, uncorrected, pending, failed;
    unsigned long long errors;
    int retired;
    int64_t began_us = clock_thread_us();
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
    trouble->next_query_us = now_us +
                             query_cost_pause_us(clock_thread_us() - began_us, MEMORY_LEAST_US);
}

static void query_throttling(
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
    trouble->clocks_next_query_us = now_us + SLOW_INTERVAL_US;
}

void trouble_update(
    struct trouble *trouble, const struct nvml *nvml, nvml_device card, int64_t now_us)
{
    if (now_us >= trouble->clocks_next_query_us)
        query_throttling(trouble, nvml, card, now_us);
    if (now_us >= trouble->next_query_us)
        query_memory_errors(trouble, nvml, card, now_us);
}

static const char *throttled_by(unsigned long long reasons)
{
    if (reasons & NVML_HELD_DOWN_HARDWARE_HEAT)
        return "heat";
    return reasons & NVML_HELD_DOWN_POWER_BRAKE ? "the power brake" : "the hardware";
}

void trouble_report(const struct trouble *trouble, struct gpu_sample *sample)
{
    char *text = sample->trouble.text;
    size_t size = sizeof sample->trouble.text;
    struct xid xid = xid_find(trouble->xid_of_gpu ? trouble->xid_of_gpu : trouble->xid_last);
    bool is_recent = trouble->xid_last && sample->at_us - trouble->xid_last_us < XID_REPORTED_US;
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
        snprintf(text, size, "faulty memory has to be remapped: reset it");
    else if (trouble->held_down &&
             sample->at_us - trouble->held_down_since_us >= THROTTLED_LEAST_US)
        snprintf(text, size, "its clocks are throttled by %s", throttled_by(trouble->held_down));
    else
        sample->trouble.is_serious = false;
    if (!sample->trouble.is_serious && is_recent)
        snprintf(text, size, "Xid %u (%s)%s", xid.number, xid.words,
            xid.blame == XID_OF_APPLICATION ? ", as faulty programs cause it" : "");
}
