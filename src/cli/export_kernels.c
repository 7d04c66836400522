/* SPDX-License-Identifier: Apache-2.0 */
/* Hands the export to the Python of the task in a file, and reads it back with its kernels. */
#include "cli/export_kernels.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/python.h"
#include "model/export.h"

enum { WORD_SIZE = PATH_MAX + 32 };

static int write_file(
    char path[static PATH_MAX], const char *text, size_t size, struct fault *fault)
{
    const char *parent = getenv("TMPDIR");
    snprintf(path, PATH_MAX, "%s/colloc-export-XXXXXX", parent && *parent == '/' ? parent : "/tmp");
    int file = mkstemp(path);
    FILE *stream = file < 0 ? NULL : fdopen(file, "w");
    if (!stream) {
        int r = fault_set(fault, errno, "cannot make %.200s: %s", path, strerror(errno));
        if (file >= 0)
            close(file);
        return r;
    }
    size_t written = fwrite(text, 1, size, stream);
    return fclose(stream) == 0 && written == size
               ? 0
               : fault_set(fault, EIO, "cannot write %.200s", path);
}

static int ask_program(const struct kernel_source *source, const char *path, struct fault *fault,
    char **ret_text, size_t *ret_size)
{
    char file[WORD_SIZE], gpu[WORD_SIZE];
    snprintf(file, sizeof file, "--add-kernels=%s", path);
    snprintf(gpu, sizeof gpu, "--gpu=%s", source->gpu ? source->gpu : "");
    const char *words[] = {"colloc_export", file, source->gpu ? gpu : NULL, NULL};
    const struct python_program program = {.interpreter = source->interpreter,
        .words = words,
        .limit_us = source->limit_us,
        .limit_bytes = EXPORT_SIZE_MAX};
    return python_ask(&program, fault, ret_text, ret_size);
}

int export_kernels_add(
    const struct kernel_source *source, struct fault *fault, char **text, size_t *size)
{
    char path[PATH_MAX], *with_kernels = NULL;
    size_t new_size = 0;
    int r = write_file(path, *text, *size, fault);
    if (r == 0)
        r = ask_program(source, path, fault, &with_kernels, &new_size);
    unlink(path);
    if (r < 0)
        return r;
    free(*text);
    *text = with_kernels;
    *size = new_size;
    return 0;
}
