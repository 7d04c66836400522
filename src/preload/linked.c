/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the symbols that the loaded objects import. In an object with DT_GNU_HASH these come before
 * the first one in that table; an object that has only DT_HASH has few, and all are read.
 */
#include "preload/linked.h"

#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "preload/hook_table.h"

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

static const void *address_in(const struct dl_phdr_info *object, ElfW(Addr) address)
{
    return (const void *)(address < object->dlpi_addr ? address + object->dlpi_addr : address);
}

struct imports {
    const ElfW(Sym) * symbol;
    const char *names;
    uint32_t count;
};

static struct imports read_imports(const struct dl_phdr_info *object)
{
    struct imports imports = {NULL, NULL, 0};
    const ElfW(Dyn) *dynamic = NULL;
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_DYNAMIC)
            dynamic = (const void *)(object->dlpi_addr + object->dlpi_phdr[i].p_vaddr);
    for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++) {
        if (dynamic->d_tag == DT_SYMTAB)
            imports.symbol = address_in(object, dynamic->d_un.d_ptr);
        else if (dynamic->d_tag == DT_STRTAB)
            imports.names = address_in(object, dynamic->d_un.d_ptr);
        else if (dynamic->d_tag == DT_GNU_HASH || (dynamic->d_tag == DT_HASH && !imports.count))
            imports.count = ((const uint32_t *)address_in(object, dynamic->d_un.d_ptr))[1];
    }
    return imports;
}

static bool is_nvidias(const char *path)
{
    static const char *const files[] = {"libcuda.so", "libnvidia-", "libcudadebugger"};
    const char *slash = strrchr(path, '/');
    const char *file = slash ? slash + 1 : path;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        if (strncmp(file, files[i], strlen(files[i])) == 0)
            return true;
    return false;
}

static int look_into(struct dl_phdr_info *object, size_t size, void *unused)
{
    struct imports imports = read_imports(object);
    if (!imports.symbol || !imports.names || is_nvidias(object->dlpi_name))
        return 0;
    for (uint32_t i = 1; i < imports.count; i++) {
        const char *name = imports.names + imports.symbol[i].st_name;
        if (imports.symbol[i].st_shndx == SHN_UNDEF && is_drivers_name(name) &&
            !is_harmless(name) && hook_find(name) < 0 && driver_function(name))
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
    if (changes != known_changes)
        answer = dl_iterate_phdr(look_into, NULL);
    known_changes = changes;
    return answer;
}
