/* SPDX-License-Identifier: Apache-2.0 */
/* Reads which symbols the loaded objects import, and looks them up in the driver's own table. */
#include "preload/linked.h"

#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "preload/hook_table.h"
#include "preload/symbol_table.h"

/* They use no memory of the GPU, or only tell something. */
static bool is_harmless(const char *name)
{
    static const char *const beginnings[] = {"cuCtxGet", "cuCtxSet", "cuCtxPush", "cuCtxPop",
        "cuDevice", "cuDriverGet", "cuGetError", "cuGetProcAddress", "cuInit", "cuLink",
        "cuTensorMap", "cuModule", "cuLibrary", "cuKernel", "cuFunc", "cuOccupancy", "cuStreamGet",
        "cuStreamIs", "cuCheckpoint"};
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; i++)
        if (strncmp(name, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return false;
}

/* Other libraries of NVIDIA have such names, too (cuFileRead): the driver is asked in the end. */
static bool is_drivers_name(const char *name)
{
    return name[0] == 'c' && name[1] == 'u' && name[2] >= 'A' && name[2] <= 'Z';
}

static bool is_nvidias(const struct dl_phdr_info *object)
{
    static const char *const files[] = {"libcuda.so", "libnvidia-", "libcudadebugger"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (symbol_table_is_of(object, files[i]))
            return true;
    return false;
}

static int find_driver(struct dl_phdr_info *object, size_t size, void *ret_driver)
{
    return symbol_table_is_of(object, "libcuda.so") && symbol_table_read(object, ret_driver);
}

static int look_into(struct dl_phdr_info *object, size_t size, void *driver)
{
    struct symbol_table table;
    if (is_nvidias(object) || !symbol_table_read(object, &table))
        return 0;
    for (uint32_t i = 1; i < symbol_table_imports_end(&table); i++) {
        const char *name = table.names + table.symbol[i].st_name;
        if (table.symbol[i].st_shndx == SHN_UNDEF && is_drivers_name(name) && !is_harmless(name) &&
            hook_find(name) < 0 && symbol_table_find(driver, name))
            return 1;
    }
    return 0;
}

/* How often objects were loaded and unloaded. Returns 1: the first object knows. */
static int read_changes(struct dl_phdr_info *object, size_t size, void *ret_changes)
{
    *(uint64_t *)ret_changes = (uint64_t)object->dlpi_adds + (uint64_t)object->dlpi_subs;
    return 1;
}

/* Asked each second by the carrier's thread: the objects are read when others have been loaded. */
bool linked_with_driver(void)
{
    static uint64_t known_changes;
    static bool answer;
    uint64_t changes = 0;
    dl_iterate_phdr(read_changes, &changes);
    struct symbol_table driver; /* it is never unloaded */
    if (changes != known_changes)
        answer = dl_iterate_phdr(find_driver, &driver) && dl_iterate_phdr(look_into, &driver);
    known_changes = changes;
    return answer;
}
