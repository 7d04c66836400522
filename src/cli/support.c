/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the folders that belong to colloc, such as its Python modules, in an installation and in a
 * build folder. base/beside.h searches the places that are listed here. */
#include "cli/support.h"

#include "base/array.h"
#include "base/beside.h"

int support_find(const char *name, char *path, size_t size)
{
    static const char *const places[] = {".", "../share/colloc", "../../.."};
    return beside_find(places, ARRAY_SIZE(places), name, path, size);
}
