/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts that many tasks share (environments, scripts), stored once under the hash of their content.
 * A table of uses says which tasks need a text; it goes with the last of them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"
#include "store/store.h"
#include "store/store_private.h"

int store_put_blob(struct store *store, uint64_t task, const void *data, size_t size,
    struct fault *fault, char ret_key[static 65])
{
    sha256_hex(data, size, ret_key);
    int r = statement_write(store, ADD_BLOB, fault, "tb", ret_key, data, size);
    return r < 0 ? r : statement_write(store, ADD_BLOB_USE, fault, "it", (int64_t)task, ret_key);
}

static int copy_blob(const struct store *store, sqlite3_stmt *row, const char *key,
    struct fault *fault, char **ret_data, size_t *ret_size)
{
    const void *data = sqlite3_column_blob(row, 0);
    size_t size = (size_t)sqlite3_column_bytes(row, 0);
    char found[65];
    if (!data && size > 0) /* sqlite3_column_blob had no memory */
        return fault_set(fault, ENOMEM, "out of memory");
    sha256_hex(data ? data : "", size, found);
    if (strcmp(found, key) != 0)
        return store_damaged(store, fault, "the text %s is not what it was", key);
    char *copy = malloc(size + 1);
    if (!copy)
        return fault_set(fault, ENOMEM, "out of memory");
    if (size)
        memcpy(copy, data, size);
    copy[size] = '\0';
    *ret_data = copy;
    *ret_size = size;
    return 0;
}

int store_get_blob(
    struct store *store, const char *key, struct fault *fault, char **ret_data, size_t *ret_size)
{
    sqlite3_stmt *row = store->statements[GET_BLOB];
    statement_bind(row, "t", key);
    int r = statement_step(store, row, fault);
    r = r > 0 ? copy_blob(store, row, key, fault, ret_data, ret_size) : r < 0 ? r : STORE_NONE;
    statement_reset(row);
    return r;
}
