/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses are reserved with a huge page to spare, so that the room can begin at a multiple. Only
 * there, and from a multiple in the file, can page tables have huge pages of a file. */
#include "preload/host_room.h"

#include <sys/mman.h>

#define HUGE_PAGE_BYTES ((size_t)2 << 20)

static bool reserve_room(struct host_room *room, uint64_t bytes, int protection)
{
    const int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    size_t mapping_bytes = bytes + HUGE_PAGE_BYTES;
    char *range = mmap(NULL, mapping_bytes, protection, how, -1, 0);
    if (range == MAP_FAILED)
        return false;
    *room = (struct host_room){.host = range + -(uintptr_t)range % HUGE_PAGE_BYTES,
        .bytes = bytes,
        .mapping = range,
        .mapping_bytes = mapping_bytes};
    return true;
}

static void advise_room(const struct host_room *room)
{
    madvise(room->host, room->bytes, MADV_HUGEPAGE);
    madvise(room->host, room->bytes, MADV_DONTFORK);
    madvise(room->host, room->bytes, MADV_DONTDUMP);
}

bool host_room_make(struct host_room *room, uint64_t bytes)
{
    if (!reserve_room(room, bytes, PROT_READ | PROT_WRITE))
        return false;
    advise_room(room);
    return true;
}

bool host_room_map(struct host_room *room, int fd, uint64_t offset, uint64_t bytes)
{
    if (!reserve_room(room, bytes, PROT_NONE))
        return false;
    if (mmap(room->host, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
            (off_t)offset) == MAP_FAILED) {
        host_room_drop(room);
        return false;
    }
    advise_room(room);
    return true;
}

void host_room_drop(struct host_room *room)
{
    if (room->mapping)
        munmap(room->mapping, room->mapping_bytes);
    *room = (struct host_room){0};
}
