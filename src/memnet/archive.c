/* SPDX-License-Identifier: Apache-2.0 */
/* Unpacks .xz files with liblzma, within limits for its memory and its output: a file from
 * elsewhere may be a decompression bomb. */
#include "memnet/archive.h"

#include <errno.h>
#include <limits.h>
#include <lzma.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"

enum { MEMORY_MAX = 1 << 28 }; /* of liblzma; chosen: `xz -9` needs a quarter */

struct unpacked {
    char *text;
    size_t used, size;
};

static int grow_text(struct unpacked *unpacked)
{
    size_t wanted = unpacked->size + 1;
    return wanted > ARCHIVE_MAX ? -EFBIG : ARRAY_RESERVE(unpacked->text, unpacked->size, wanted);
}

/* Unpacks to the end of the last stream; one byte stays free for the NUL. */
static int unpack_all(lzma_stream *stream, struct unpacked *ret)
{
    lzma_ret r = LZMA_OK;
    while (r == LZMA_OK) {
        if (ret->used + 1 >= ret->size) {
            int grown = grow_text(ret);
            if (grown < 0)
                return grown;
        }
        stream->next_out = (uint8_t *)ret->text + ret->used;
        stream->avail_out = ret->size - 1 - ret->used;
        r = lzma_code(stream, LZMA_FINISH);
        ret->used = ret->size - 1 - stream->avail_out;
    }
    return r == LZMA_STREAM_END ? 0 : r == LZMA_MEM_ERROR ? -ENOMEM : -EINVAL;
}

static int unpack_archive(const char *packed, size_t size, struct unpacked *ret)
{
    lzma_stream stream = LZMA_STREAM_INIT;
    if (lzma_stream_decoder(&stream, MEMORY_MAX, LZMA_CONCATENATED) != LZMA_OK)
        return -ENOMEM;
    stream.next_in = (const uint8_t *)packed;
    stream.avail_in = size;
    int r = unpack_all(&stream, ret);
    lzma_end(&stream);
    return r;
}

static int read_packed(const char *path, struct fault *fault, char **ret_text, size_t *ret_size)
{
    struct unpacked unpacked = {0};
    char *packed;
    size_t size;
    int r = file_read(path, ARCHIVE_MAX, fault, &packed, &size);
    if (r < 0)
        return r;
    r = unpack_archive(packed, size, &unpacked);
    free(packed);
    if (r < 0) {
        free(unpacked.text);
        return fault_set(fault, -r, "%s: %s", path,
            r == -EINVAL  ? "damaged, incomplete, or not an .xz file"
            : r == -EFBIG ? "too large when unpacked"
                          : "out of memory");
    }
    unpacked.text[unpacked.used] = '\0';
    *ret_text = unpacked.text;
    *ret_size = unpacked.used;
    return 0;
}

int archive_read(
    const char *folder, const char *name, struct fault *fault, char **ret_text, size_t *ret_size)
{
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (access(path, F_OK) == 0)
        return file_read(path, ARCHIVE_MAX, fault, ret_text, ret_size);
    snprintf(path, sizeof path, "%s/%s.xz", folder, name);
    if (access(path, F_OK) < 0)
        return fault_set(fault, ENOENT, "%s: there is neither %s nor %s.xz", folder, name, name);
    return read_packed(path, fault, ret_text, ret_size);
}
