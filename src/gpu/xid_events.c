/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One NVML event set for all cards. An event names its card by handle or, after a reset, by UUID.
 */
#include "gpu/xid_events.h"

#include <stdatomic.h>
#include <string.h>

#include "base/clock.h"
#include "gpu/source.h"

/* All GPUs are sampled one after the other: one read serves them all. Chosen. */
#define ROUND_US (20 * MS_US)

static bool register_card(const struct gpu_source *source, size_t i)
{
    unsigned long long types = 0;
    nvml_device card = source->device[i].handle;
    if (!card || source->info[i].is_mig)
        return false;
    return nvml_call(&source->nvml, device_event_types, card, &types) == NVML_OK &&
           types & NVML_EVENT_XID &&
           nvml_call(&source->nvml, device_register_events, card, NVML_EVENT_XID, source->events) ==
               NVML_OK;
}

void xid_events_open(struct gpu_source *source)
{
    bool any = false;
    if (nvml_call(&source->nvml, event_set_create, &source->events) != NVML_OK) {
        source->events = NULL;
        return;
    }
    for (size_t i = 0; i < source->set.count; i++)
        any |= register_card(source, i);
    if (!any)
        xid_events_close(source);
}

/* NULL: the card is not in the set. */
static struct trouble *trouble_of(struct gpu_source *source, nvml_device card)
{
    char uuid[NVML_UUID_SIZE];
    if (source->nvml.device_uuid(card, uuid, sizeof uuid) != NVML_OK)
        uuid[0] = '\0';
    for (size_t i = 0; i < source->set.count; i++)
        if (source->device[i].handle == card || strcmp(source->info[i].uuid, uuid) == 0)
            return &source->device[i].trouble;
    return NULL;
}

void xid_events_read(struct gpu_source *source, int64_t now_us)
{
    const int most = 64; /* chosen: a card that reports without end must not block the sample */
    struct nvml_event event = {0};
    if (now_us - source->events_read_us < ROUND_US)
        return;
    if (atomic_exchange(&source->events_are_read, true))
        return;
    source->events_read_us = now_us;
    for (int i = 0; source->events && i < most; i++) {
        if (nvml_call(&source->nvml, event_set_wait, source->events, &event, 0) != NVML_OK)
            break;
        struct trouble *trouble = event.type == NVML_EVENT_XID ? trouble_of(source, event.device)
                                                               : NULL;
        if (trouble)
            trouble_add_xid(trouble, (unsigned)event.data, now_us);
    }
    atomic_store(&source->events_are_read, false);
}

void xid_events_close(struct gpu_source *source)
{
    if (source->events)
        nvml_call(&source->nvml, event_set_free, source->events);
    source->events = NULL;
}
