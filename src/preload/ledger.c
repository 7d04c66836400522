/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counts the GPU memory of the process in a hash table of its allocations. The table is at most
 * half full, so that a search is short; an entry that goes is filled by those after it, so that no
 * marks of deletion are needed.
 */
#include "preload/ledger.h"

#include <sys/mman.h>

enum entry_kind { ENTRY_NONE, ENTRY_BLOCK, ENTRY_HANDLE, ENTRY_MAPPING };

struct ledger_entry {
    uint64_t key; /* an address or a handle */
    uint64_t bytes;
    uint64_t owner; /* of a mapping: its handle; of a block: its context, or 0 */
    uint32_t references;
    uint8_t kind;
    uint8_t device;
    bool is_nccl;
};

enum { CAPACITY_FIRST = 1024 };

/* Where a mapping may begin, at the least: the granularity of every GPU so far. */
#define MAPPING_GRAIN UINT64_C(0x10000)

static size_t place_of(const struct ledger *ledger, enum entry_kind kind, uint64_t key)
{
    uint64_t hash = (key ^ (uint64_t)kind << 61) * UINT64_C(0x9e3779b97f4a7c15);
    return (size_t)(hash >> 20) & (ledger->capacity - 1);
}

static struct ledger_entry *find_entry(struct ledger *ledger, enum entry_kind kind, uint64_t key)
{
    if (!ledger->capacity)
        return NULL;
    for (size_t i = place_of(ledger, kind, key);; i = (i + 1) & (ledger->capacity - 1)) {
        struct ledger_entry *entry = &ledger->entries[i];
        if (entry->kind == ENTRY_NONE)
            return NULL;
        if (entry->kind == kind && entry->key == key)
            return entry;
    }
}

static void put_entry(struct ledger *ledger, const struct ledger_entry *entry)
{
    size_t i = place_of(ledger, entry->kind, entry->key);
    while (ledger->entries[i].kind != ENTRY_NONE)
        i = (i + 1) & (ledger->capacity - 1);
    ledger->entries[i] = *entry;
}

static bool grow_table(struct ledger *ledger)
{
    struct ledger old = *ledger;
    size_t capacity = old.capacity ? old.capacity * 2 : CAPACITY_FIRST;
    void *room = mmap(NULL, capacity * sizeof(struct ledger_entry), PROT_READ | PROT_WRITE,
        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED)
        return false;
    ledger->entries = room;
    ledger->capacity = capacity;
    for (size_t i = 0; i < old.capacity; i++)
        if (old.entries[i].kind != ENTRY_NONE)
            put_entry(ledger, &old.entries[i]);
    if (old.capacity)
        munmap(old.entries, old.capacity * sizeof(struct ledger_entry));
    return true;
}

static bool add_entry(struct ledger *ledger, struct ledger_entry entry)
{
    if (ledger->count * 2 >= ledger->capacity && !grow_table(ledger)) {
        ledger->incomplete = true;
        return false;
    }
    put_entry(ledger, &entry);
    ledger->count++;
    return true;
}

static void erase_entry(struct ledger *ledger, struct ledger_entry *entry)
{
    size_t mask = ledger->capacity - 1, hole = (size_t)(entry - ledger->entries);
    ledger->count--;
    for (size_t i = (hole + 1) & mask; ledger->entries[i].kind != ENTRY_NONE; i = (i + 1) & mask) {
        size_t home = place_of(ledger, ledger->entries[i].kind, ledger->entries[i].key);
        if (((i - home) & mask) < ((i - hole) & mask))
            continue; /* it would move before its home */
        ledger->entries[hole] = ledger->entries[i];
        hole = i;
    }
    ledger->entries[hole].kind = ENTRY_NONE;
}

static void add_held_bytes(struct ledger *ledger, int device, uint64_t bytes)
{
    struct ledger_device *sums = &ledger->devices[device];
    sums->held_bytes += bytes;
    if (sums->held_bytes > sums->peak_bytes)
        sums->peak_bytes = sums->held_bytes;
}

static bool knows_device(struct ledger *ledger, int device)
{
    if (device >= 0 && device < PRELOAD_DEVICES_MAX)
        return true;
    ledger->incomplete = true;
    return false;
}

/* Forgets the memory of a block or handle, whichever the entry is. */
static uint64_t forget_memory(struct ledger *ledger, struct ledger_entry *entry, int *ret_device)
{
    uint64_t bytes = entry->bytes;
    ledger->devices[entry->device].held_bytes -= bytes;
    if (entry->is_nccl)
        ledger->devices[entry->device].nccl_bytes -= bytes;
    if (ret_device)
        *ret_device = entry->device;
    erase_entry(ledger, entry);
    return bytes;
}

void ledger_add_block(struct ledger *ledger, uint64_t address, const struct ledger_block *block)
{
    if (!knows_device(ledger, block->device))
        return;
    ledger_remove_block(ledger, address, NULL);
    if (add_entry(ledger, (struct ledger_entry){.key = address,
                              .bytes = block->bytes,
                              .owner = block->context,
                              .kind = ENTRY_BLOCK,
                              .device = (uint8_t)block->device}))
        add_held_bytes(ledger, block->device, block->bytes);
}

bool ledger_remove_block(struct ledger *ledger, uint64_t address, struct ledger_block *ret_block)
{
    struct ledger_entry *entry = find_entry(ledger, ENTRY_BLOCK, address);
    if (!entry)
        return false;
    if (ret_block)
        *ret_block = (struct ledger_block){entry->bytes, entry->owner, entry->device};
    forget_memory(ledger, entry, NULL);
    return true;
}

/* The hole may be filled by a later entry, so its place is looked at again. */
void ledger_remove_blocks_of_context(struct ledger *ledger, uint64_t context)
{
    size_t i = 0;
    while (context && i < ledger->capacity) {
        struct ledger_entry *entry = &ledger->entries[i];
        if (entry->kind == ENTRY_BLOCK && entry->owner == context)
            forget_memory(ledger, entry, NULL);
        else
            i++;
    }
}

void ledger_add_handle(struct ledger *ledger, uint64_t handle, uint64_t bytes, int device)
{
    if (!knows_device(ledger, device))
        return;
    struct ledger_entry *before = find_entry(ledger, ENTRY_HANDLE, handle);
    if (before)
        forget_memory(ledger, before, NULL);
    if (add_entry(ledger, (struct ledger_entry){.key = handle,
                              .bytes = bytes,
                              .references = 1,
                              .kind = ENTRY_HANDLE,
                              .device = (uint8_t)device}))
        add_held_bytes(ledger, device, bytes);
}

void ledger_note_nccl(struct ledger *ledger, uint64_t handle)
{
    struct ledger_entry *entry = find_entry(ledger, ENTRY_HANDLE, handle);
    if (!entry || entry->is_nccl)
        return;
    entry->is_nccl = true;
    ledger->devices[entry->device].nccl_bytes += entry->bytes;
}

void ledger_retain_handle(struct ledger *ledger, uint64_t handle)
{
    struct ledger_entry *entry = find_entry(ledger, ENTRY_HANDLE, handle);
    if (entry)
        entry->references++;
}

uint64_t ledger_release_handle(struct ledger *ledger, uint64_t handle, int *ret_device)
{
    struct ledger_entry *entry = find_entry(ledger, ENTRY_HANDLE, handle);
    if (!entry || --entry->references > 0)
        return 0;
    return forget_memory(ledger, entry, ret_device);
}

void ledger_map(struct ledger *ledger, uint64_t address, uint64_t bytes, uint64_t handle)
{
    if (!find_entry(ledger, ENTRY_HANDLE, handle) || find_entry(ledger, ENTRY_MAPPING, address))
        return;
    if (add_entry(
            ledger, (struct ledger_entry){
                        .key = address, .bytes = bytes, .owner = handle, .kind = ENTRY_MAPPING}))
        ledger_retain_handle(ledger, handle);
}

/* Forgets a mapping and its reference of the handle. */
static void forget_mapping(struct ledger *ledger, struct ledger_entry *mapping)
{
    uint64_t handle = mapping->owner;
    erase_entry(ledger, mapping);
    ledger_release_handle(ledger, handle, NULL);
}

/* Searches each address of the range at which a mapping may begin. */
static size_t unmap_addresses(struct ledger *ledger, uint64_t address, uint64_t bytes)
{
    size_t n = 0;
    for (uint64_t offset = 0; offset < bytes;) {
        struct ledger_entry *mapping = find_entry(ledger, ENTRY_MAPPING, address + offset);
        offset += mapping ? mapping->bytes : MAPPING_GRAIN;
        if (!mapping)
            continue;
        forget_mapping(ledger, mapping);
        n++;
    }
    return n;
}

/* Walks the table. An entry that fills the hole of a handle may have moved to a place that was
 * passed before, so that another walk may find more. */
static size_t unmap_entries(struct ledger *ledger, uint64_t address, uint64_t bytes)
{
    size_t i = 0, n = 0;
    while (i < ledger->capacity) {
        struct ledger_entry *entry = &ledger->entries[i];
        if (entry->kind != ENTRY_MAPPING || entry->key - address >= bytes) {
            i++;
            continue;
        }
        forget_mapping(ledger, entry);
        n++;
    }
    return n;
}

/* The driver has not checked the range yet. */
size_t ledger_unmap(struct ledger *ledger, uint64_t address, uint64_t bytes)
{
    if (bytes > UINT64_MAX - address)
        bytes = UINT64_MAX - address;
    if (bytes / MAPPING_GRAIN <= ledger->capacity)
        return unmap_addresses(ledger, address, bytes);
    size_t n = 0, found;
    while ((found = unmap_entries(ledger, address, bytes)))
        n += found;
    return n;
}
