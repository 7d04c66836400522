/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records the software that a bench ran with. Asks the interpreter for its packages (the lines are
 * those of `pip freeze`, but pip need not be installed), conda for its list, and NVML for the
 * driver. A program that is not there, or fails, is left out.
 */
#include "bench/environment_record.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/units.h"
#include "bench/program_output.h"

enum { FILES_MAX = 1000 };

static const char LIST_PACKAGES[] =
    "import sys\n"
    "from importlib.metadata import distributions\n"
    "print('python==' + sys.version.split()[0])\n"
    "print('\\n'.join(sorted({f\"{d.metadata['Name']}=={d.version}\" for d in distributions()},"
    " key=str.lower)))";

static bool is_same(const char *path, const char *text)
{
    char *old;
    size_t size;
    if (file_read(path, PROGRAM_OUTPUT_MAX + 1, NULL, &old, &size) < 0)
        return false;
    bool same = size == strlen(text) && memcmp(old, text, size) == 0;
    free(old);
    return same;
}

/* Writes FOLDER/environment/NAME.txt, or the next free NAME-N.txt. */
static int write_once(const char *folder, const char *name, const char *text, struct fault *fault)
{
    char path[PATH_MAX];
    for (int n = 1; n <= FILES_MAX; n++) {
        if (n == 1)
            snprintf(path, sizeof path, "%s/environment/%s.txt", folder, name);
        else
            snprintf(path, sizeof path, "%s/environment/%s-%d.txt", folder, name, n);
        if (is_same(path, text))
            return 0;
        if (access(path, F_OK) != 0)
            break;
    }
    int r = file_write_atomic(path, text, strlen(text), 0644);
    return r < 0 ? fault_set(fault, -r, "%s: %s", path, strerror(-r)) : 0;
}

/* Stores the output of a program, if it succeeds. */
static int record_output(
    const char *folder, const char *name, const char *const *argv, struct fault *fault)
{
    char *text;
    int status, r = program_output_read(argv, NULL, &text, &status);
    if (r == -ENOMEM)
        return fault_set(fault, ENOMEM, "out of memory");
    r = r == 0 && status == 0 && *text ? write_once(folder, name, text, fault) : 0;
    free(text);
    return r;
}

static int record_driver(const char *folder, const struct gpu_set *set, struct fault *fault)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return fault_set(fault, ENOMEM, "out of memory");
    fprintf(out, "driver==%s\n", set->driver_version);
    for (size_t i = 0; i < set->count; i++) {
        const struct gpu_info *gpu = &set->gpu[i];
        fprintf(out, "GPU %s: %s%s%s (%s)", gpu->index, gpu->name, gpu->is_mig ? " MIG " : "",
            gpu->profile, gpu->uuid);
        if (gpu->mem_total_bytes.valid)
            fprintf(out, ", %.0f MiB", gpu->mem_total_bytes.value / (double)MIB);
        fputc('\n', out);
    }
    int r = fclose(out) == 0 ? write_once(folder, "driver", text, fault)
                             : fault_set(fault, ENOMEM, "out of memory");
    free(text);
    return r;
}

int environment_record(
    const char *folder, const char *python, const struct gpu_set *set, struct fault *fault)
{
    const char *const packages[] = {python, "-c", LIST_PACKAGES, NULL};
    const char *const conda[] = {"conda", "list", NULL};
    char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/environment", folder);
    int r = file_make_folders(path, 0755);
    if (r < 0)
        return fault_set(fault, -r, "%s: %s", path, strerror(-r));
    r = record_output(folder, "pip", packages, fault);
    if (r == 0)
        r = record_output(folder, "conda", conda, fault);
    return r == 0 && set ? record_driver(folder, set, fault) : r;
}
