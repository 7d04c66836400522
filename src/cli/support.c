/* SPDX-License-Identifier: Apache-2.0 */
/* The places where a folder can be; base/beside.h searches them. */
#include "cli/support.h"

#include "base/array.h"
#include "base/beside.h"

int support_find(const char *name, char *path, size_t size)
{
    static const char *const places[] = {".", "../share/colloc", "../../.."};
    return beside_find(places, ARRAY_SIZE(places), name, path, size);
}
