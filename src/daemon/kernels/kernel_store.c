/* SPDX-License-Identifier: Apache-2.0 */
/*
 * New answers are appended to a file, some hundred lines at a time. A file that ends within a line
 * (the machine was switched off) or has lost its older half (there are KERNEL_ANSWERS_MAX) is
 * written anew as a whole.
 */
#include "daemon/kernels/kernel_store.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "daemon/state_dir.h"
#include "kernels/kernel_file.h"

enum {
    TABLES_MAX = 64,          /* chosen: kinds of GPUs times some updates of driver and library */
    FILE_BYTES_MAX = 64 << 20 /* chosen: several times KERNEL_ANSWERS_MAX lines */
};

struct kept_kernels {
    struct kernel_answers answers;
    char name[32]; /* of its file */
    size_t saved;  /* answers that the file has; 0: it is written as a whole */
    int64_t used;  /* when it was used last: seconds of the clock, then a count above all */
};

struct kernel_store {
    char folder[STATE_PATH_SIZE];
    struct kept_kernels *tables[TABLES_MAX];
    size_t n;
    int64_t uses;
};

/* ---- tables ---- */

const struct kernel_answers *kept_kernels_answers(const struct kept_kernels *kept)
{
    return &kept->answers;
}

static void free_table(struct kept_kernels *kept)
{
    kernel_answers_clear(&kept->answers);
    free(kept);
}

static void set_name(struct kept_kernels *kept)
{
    const struct kernel_origin *origin = &kept->answers.origin;
    uint64_t hash = hash_text(hash_text(HASH_START, origin->gpu), origin->driver);
    snprintf(kept->name, sizeof kept->name, "%016llx.txt",
        (unsigned long long)hash_bytes(hash, &origin->cudnn, sizeof origin->cudnn));
}

static void note_use(struct kernel_store *store, struct kept_kernels *kept, int64_t at)
{
    store->uses = store->uses >= at ? store->uses + 1 : at;
    kept->used = store->uses;
}

/* Where there are TABLES_MAX, the one that was not used for the longest time is dropped; its file
 * stays. */
static void add_table(struct kernel_store *store, struct kept_kernels *kept)
{
    if (store->n < TABLES_MAX) {
        store->tables[store->n++] = kept;
        return;
    }
    size_t oldest = 0;
    for (size_t i = 1; i < store->n; i++)
        if (store->tables[i]->used < store->tables[oldest]->used)
            oldest = i;
    free_table(store->tables[oldest]);
    store->tables[oldest] = kept;
}

const struct kernel_answers *kernel_store_find(
    const struct kernel_store *store, const char *gpu, const char *driver)
{
    const struct kept_kernels *found = NULL;
    for (size_t i = 0; i < store->n; i++) {
        const struct kept_kernels *kept = store->tables[i];
        const struct kernel_origin *origin = &kept->answers.origin;
        if (strcmp(origin->gpu, gpu) == 0 && (!driver || strcmp(origin->driver, driver) == 0) &&
            (!found || kept->used > found->used))
            found = kept;
    }
    return found ? &found->answers : NULL;
}

struct kept_kernels *kernel_store_use(
    struct kernel_store *store, const struct kernel_origin *origin)
{
    struct kept_kernels *kept = NULL;
    for (size_t i = 0; i < store->n && !kept; i++)
        if (kernel_origin_equal(&store->tables[i]->answers.origin, origin))
            kept = store->tables[i];
    if (!kept) {
        kept = calloc(1, sizeof *kept);
        if (!kept)
            return NULL;
        kept->answers.origin = *origin;
        set_name(kept);
        add_table(store, kept);
    }
    note_use(store, kept, 0);
    return kept;
}

int kept_kernels_put(struct kept_kernels *kept, const struct conv_question *question, int64_t bytes)
{
    size_t before = kept->answers.count;
    int r = kernel_answers_put(&kept->answers, question, bytes);
    if (kept->answers.count < before)
        kept->saved = 0;
    return r;
}

/* ---- files ---- */

static void file_path(
    const struct kernel_store *store, const char *name, char path[static STATE_PATH_SIZE])
{
    snprintf(path, STATE_PATH_SIZE, "%.560s/%.31s", store->folder, name);
}

static int write_whole(const char *path, const struct kept_kernels *kept)
{
    char *text = NULL;
    size_t size = 0;
    FILE *file = open_memstream(&text, &size);
    if (!file)
        return -ENOMEM;
    kernel_file_write_head(file, &kept->answers.origin);
    kernel_file_write(file, &kept->answers, 0);
    int r = fclose(file) == 0 ? file_write_atomic(path, text, size, 0600) : -ENOMEM;
    free(text);
    return r;
}

static int append_new(const char *path, const struct kept_kernels *kept)
{
    FILE *file = fopen(path, "ae");
    if (!file)
        return -errno;
    kernel_file_write(file, &kept->answers, kept->saved);
    return fclose(file) == 0 ? 0 : -errno;
}

void kept_kernels_save(struct kernel_store *store, struct kept_kernels *kept)
{
    char path[STATE_PATH_SIZE];
    if (kept->saved == kept->answers.count)
        return;
    file_path(store, kept->name, path);
    int r = file_make_folders(store->folder, 0700);
    if (r == 0)
        r = kept->saved ? append_new(path, kept) : write_whole(path, kept);
    if (r == 0)
        kept->saved = kept->answers.count;
    else
        log_warning("cannot keep cuDNN's answers in %s: %s", path, strerror(-r));
}

/* A file that cannot be read, or is none of these, is left as it is. */
static void read_table(struct kernel_store *store, const char *name)
{
    char path[STATE_PATH_SIZE], *text = NULL;
    struct stat status;
    struct fault fault = {0};
    size_t size = 0;
    file_path(store, name, path);
    if (stat(path, &status) < 0 || file_read(path, FILE_BYTES_MAX, &fault, &text, &size) < 0)
        return;
    struct kept_kernels *kept = calloc(1, sizeof *kept);
    if (kept && kernel_file_parse(text, size, &kept->answers) == 0) {
        set_name(kept);
        kept->saved = size && text[size - 1] == '\n' ? kept->answers.count : 0;
        kept->used = status.st_mtime;
        store->uses = store->uses > kept->used ? store->uses : kept->used;
        add_table(store, kept);
    } else if (kept) {
        log_warning("%s has no answers of cuDNN: they are asked again", path);
        free_table(kept);
    }
    free(text);
}

static bool is_file_of_answers(const char *name)
{
    size_t size = strlen(name);
    return size > 4 && size < sizeof((struct kept_kernels *)NULL)->name &&
           strcmp(name + size - 4, ".txt") == 0;
}

struct kernel_store *kernel_store_open(const char *state_dir)
{
    struct kernel_store *store = calloc(1, sizeof *store);
    if (!store)
        return NULL;
    snprintf(store->folder, sizeof store->folder, "%s/kernels", state_dir);
    DIR *folder = opendir(store->folder);
    for (struct dirent *entry; folder && (entry = readdir(folder));)
        if (is_file_of_answers(entry->d_name))
            read_table(store, entry->d_name);
    if (folder)
        closedir(folder);
    return store;
}

void kernel_store_close(struct kernel_store *store)
{
    for (size_t i = 0; store && i < store->n; i++)
        free_table(store->tables[i]);
    free(store);
}
