/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checksums of rows: SQL functions that the schema and the statements use.
 *
 * SQLite notices a page whose structure is damaged, but not a changed value in a row: `"uid":64001`
 * that became `"uid":    0` would be served, and run. So each row of events, ended and records
 * keeps row_sum() of its other values. That is the start of their SHA-256, which is in this
 * component for the keys of texts already; 64 of its bits miss one damage in 2^64, and an event
 * costs a few microseconds beside the milliseconds of its commit.
 */
#include "base/sha256.h"
#include "store/store_private.h"

/* Sets the bytes of a value; NULL: the value is NULL or an empty blob. Returns false without
 * memory. Then SQLite makes the value NULL, so its type and the size of a blob are read before. */
static bool read_bytes(sqlite3_value *value, const void **ret_bytes, int *ret_size)
{
    int type = sqlite3_value_type(value);
    bool is_blob = type == SQLITE_BLOB;
    bool is_empty = type == SQLITE_NULL || (is_blob && sqlite3_value_bytes(value) == 0);
    *ret_bytes = is_blob ? sqlite3_value_blob(value) : (const void *)sqlite3_value_text(value);
    *ret_size = sqlite3_value_bytes(value);
    return *ret_bytes || is_empty;
}

/* Each value is hashed with its size before it, so that a byte moved from one value to the next
 * changes the hash. */
static void row_sum(sqlite3_context *context, int n, sqlite3_value **values)
{
    struct sha256 hash;
    uint8_t digest[SHA256_SIZE];
    uint64_t start = 0;
    sha256_begin(&hash);
    for (int i = 0; i < n; i++) {
        int size;
        const void *bytes;
        if (!read_bytes(values[i], &bytes, &size)) {
            sqlite3_result_error_nomem(context);
            return;
        }
        int mark = bytes ? size : -1;
        sha256_add(&hash, &mark, sizeof mark);
        if (bytes)
            sha256_add(&hash, bytes, (size_t)size);
    }
    sha256_end(&hash, digest);
    for (size_t i = 0; i < sizeof start; i++)
        start = start << 8 | digest[i];
    sqlite3_result_int64(context, (sqlite3_int64)start);
}

static void text_key(sqlite3_context *context, int n, sqlite3_value **values)
{
    char hex[65];
    int size;
    const void *bytes;
    if (!read_bytes(values[0], &bytes, &size)) {
        sqlite3_result_error_nomem(context);
        return;
    }
    sha256_hex(bytes ? bytes : "", (size_t)size, hex);
    sqlite3_result_text(context, hex, -1, SQLITE_TRANSIENT);
}

int checksum_register(struct store *store)
{
    const int how = SQLITE_UTF8 | SQLITE_DETERMINISTIC;
    int r = sqlite3_create_function(store->db, "row_sum", -1, how, NULL, row_sum, NULL, NULL);
    return r == SQLITE_OK
               ? sqlite3_create_function(store->db, "text_key", 1, how, NULL, text_key, NULL, NULL)
               : r;
}
