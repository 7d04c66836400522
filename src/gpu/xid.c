/* SPDX-License-Identifier: Apache-2.0 */
/* The table of Xids: see xid.h. */
#include "gpu/xid.h"

#include <stddef.h>

#include "base/array.h"

static const struct xid xids[] = {
    {13, XID_OF_APPLICATION, "graphics engine exception"},
    {31, XID_OF_APPLICATION, "memory page fault"},
    {32, XID_OF_APPLICATION, "corrupted push buffer"},
    {43, XID_OF_APPLICATION, "GPU stopped processing"},
    {45, XID_OF_APPLICATION, "preemptive cleanup"},
    {48, XID_OF_GPU, "double-bit ECC error"},
    {62, XID_OF_GPU, "internal micro-controller halt"},
    {63, XID_TO_WATCH, "row remapping or page retirement recorded"},
    {64, XID_OF_GPU, "row remapping or page retirement failed"},
    {68, XID_OF_APPLICATION, "video processor exception"},
    {69, XID_OF_APPLICATION, "graphics engine class error"},
    {74, XID_TO_WATCH, "NVLink error"},
    {79, XID_OF_GPU, "GPU has fallen off the bus"},
    {92, XID_TO_WATCH, "high single-bit ECC error rate"},
    {94, XID_TO_WATCH, "contained ECC error"},
    {95, XID_OF_GPU, "uncontained ECC error"},
    {119, XID_OF_GPU, "GSP firmware does not answer"},
    {120, XID_OF_GPU, "GSP firmware error"},
    {140, XID_OF_GPU, "unrecovered ECC error"},
};

struct xid xid_find(unsigned number)
{
    for (size_t i = 0; i < ARRAY_SIZE(xids); i++)
        if (xids[i].number == number)
            return xids[i];
    return (struct xid){number, XID_TO_WATCH, "see NVIDIA's list of Xids"};
}
