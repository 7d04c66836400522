/* SPDX-License-Identifier: Apache-2.0 */
/* Loads libdcgm by a table of names. The file's number is that of the interface's version. */
#include "gpu/dcgm_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/array.h"

static const char *const files[] = {"libdcgm.so.4", "libdcgm.so.3"};

#define SYMBOL(member, name)                                                                       \
    {                                                                                              \
        offsetof(struct dcgm_library, member), name                                                \
    }

static const struct symbol {
    size_t offset; /* of the function pointer in struct dcgm_library */
    const char *name;
} symbols[] = {
    SYMBOL(error_text, "errorString"),
    SYMBOL(init, "dcgmInit"),
    SYMBOL(connect, "dcgmConnect_v2"),
    SYMBOL(start_embedded, "dcgmStartEmbedded_v2"),
    SYMBOL(all_devices, "dcgmGetAllDevices"),
    SYMBOL(hierarchy, "dcgmGetGpuInstanceHierarchy"),
    SYMBOL(group_create, "dcgmGroupCreate"),
    SYMBOL(group_add, "dcgmGroupAddEntity"),
    SYMBOL(fields_create, "dcgmFieldGroupCreate"),
    SYMBOL(watch, "dcgmWatchFields"),
    SYMBOL(latest, "dcgmEntitiesGetLatestValues"),
};

int dcgm_library_load(struct dcgm_library *library, struct fault *fault)
{
    for (size_t i = 0; i < ARRAY_SIZE(files) && !library->library; i++) {
        library->library = dlopen(files[i], RTLD_NOW | RTLD_LOCAL);
        library->name = files[i];
    }
    if (!library->library)
        return fault_set(fault, ENOENT, "neither libdcgm.so.4 nor libdcgm.so.3 can be loaded");
    for (size_t i = 0; i < ARRAY_SIZE(symbols); i++) {
        void *function = dlsym(library->library, symbols[i].name);
        if (!function)
            return fault_set(fault, ENOSYS, "%s has no %s", library->name, symbols[i].name);
        memcpy((char *)library + symbols[i].offset, &function, sizeof function);
    }
    return 0;
}
