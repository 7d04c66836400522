/* SPDX-License-Identifier: Apache-2.0 */
/* The SQL functions of checksums. */
#include <sqlite3.h>

#include "store/store_private.h"
#include "unit.h"

#define HEAP_LIMIT (8 * 1024 * 1024)

static int n_results;

static void count_result(sqlite3_context *context, int n, sqlite3_value **values)
{
    n_results++;
}

static int open_db(void **state)
{
    struct store store = {0};
    assert_int_equal(sqlite3_open(":memory:", &store.db), SQLITE_OK);
    assert_int_equal(checksum_register(&store), SQLITE_OK);
    assert_int_equal(sqlite3_create_function(
                         store.db, "count_result", 1, SQLITE_UTF8, NULL, count_result, NULL, NULL),
        SQLITE_OK);
    *state = store.db;
    return 0;
}

static int close_db(void **state)
{
    return sqlite3_close(*state);
}

/* Evaluates an SQL expression. Returns SQLite's code; `ret_value` is set with SQLITE_ROW. */
static int evaluate(sqlite3 *db, const char *expression, sqlite3_int64 *ret_value)
{
    char sql[256];
    sqlite3_stmt *statement;
    snprintf(sql, sizeof sql, "SELECT %s", expression);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &statement, NULL), SQLITE_OK);
    int r = sqlite3_step(statement);
    if (r == SQLITE_ROW)
        *ret_value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    return r;
}

static sqlite3_int64 value_of(sqlite3 *db, const char *expression)
{
    sqlite3_int64 value = 0;
    assert_int_equal(evaluate(db, expression, &value), SQLITE_ROW);
    return value;
}

/* Logs keep these sums: they stay as they are. */
static void test_values(void **state)
{
    sqlite3_int64 null = value_of(*state, "row_sum(NULL)");
    assert_true(value_of(*state, "row_sum(x'')") == null);
    assert_true(value_of(*state, "row_sum('')") != null);
    assert_true(value_of(*state, "row_sum(0)") == value_of(*state, "row_sum('0')"));
    assert_true(value_of(*state, "row_sum(x'61')") == value_of(*state, "row_sum('a')"));
    assert_true(value_of(*state, "row_sum('ab', 'c')") != value_of(*state, "row_sum('a', 'bc')"));
    assert_true(value_of(*state, "text_key(NULL) = text_key('')"));
}

/* Without memory for a value there is no sum, rather than that of NULL. zeroblob() takes its memory
 * when its bytes are read. */
static void test_no_memory(void **state)
{
    sqlite3_int64 value;
    n_results = 0;
    sqlite3_hard_heap_limit64(HEAP_LIMIT);
    int sum = evaluate(*state, "count_result(row_sum(1, zeroblob(100000000)))", &value);
    int key = evaluate(*state, "count_result(text_key(zeroblob(100000000)))", &value);
    sqlite3_hard_heap_limit64(0);
    assert_int_equal(sum, SQLITE_NOMEM);
    assert_int_equal(key, SQLITE_NOMEM);
    assert_int_equal(n_results, 0);
    value_of(*state, "count_result(row_sum(1))");
    assert_int_equal(n_results, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_values, open_db, close_db),
        cmocka_unit_test_setup_teardown(test_no_memory, open_db, close_db),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
