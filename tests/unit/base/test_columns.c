/* SPDX-License-Identifier: Apache-2.0 */
/* Tables: what separates them, RFC 4180's quotation marks, and the line that a message names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/columns.h"

static struct fault fault;

static void open_text(struct columns *columns, const char *text)
{
    fault = (struct fault){0};
    assert_int_equal(columns_open_text(columns, text, "t", &fault), 0);
}

static void assert_row(struct columns *columns, const char *first, const char *second)
{
    if (columns_next(columns, &fault) != 1)
        fail_msg("no row: %s", fault.text);
    assert_string_equal(columns->field[0], first);
    assert_string_equal(columns->field[1], second);
}

static void assert_end(struct columns *columns)
{
    assert_int_equal(columns_next(columns, &fault), 0);
    columns_close(columns);
}

static void assert_refused(const char *text, const char *message)
{
    struct columns columns;
    int r = columns_open_text(&columns, text, "t", &fault);
    while (r >= 0 && (r = columns_next(&columns, &fault)) == 1)
        ;
    columns_close(&columns);
    assert_true(r < 0);
    if (!strstr(fault.text, message))
        fail_msg("'%s', not '%s'", fault.text, message);
}

static void test_separators(void **state)
{
    struct columns columns;
    open_text(&columns, "a b\n 1\t 2  \n\n# no row\n3 4");
    assert_row(&columns, "1", "2");
    assert_row(&columns, "3", "4");
    assert_end(&columns);
    open_text(&columns, "a|b,c\n x y |\"1\"\r\n");
    assert_row(&columns, "x y", "\"1\"");
    assert_end(&columns);
    open_text(&columns, "\xef\xbb\xbf\"a\",b\r\n 1 , 2\r\n,-");
    assert_string_equal(columns.name_at[0], "a");
    assert_row(&columns, "1", "2");
    assert_row(&columns, "", "-");
    assert_null(columns_get(&columns, 1));
    assert_end(&columns);
}

static void test_quoted_fields(void **state)
{
    struct columns columns;
    open_text(&columns,
        "a,b\n\"--model x, --batch 32\", \" y \" \n\"say \"\"so\"\"\",\"#\"\n\"\",\"1\r\n\n2\"\nend,5");
    assert_row(&columns, "--model x, --batch 32", " y ");
    assert_int_equal(columns.number, 2);
    assert_row(&columns, "say \"so\"", "#");
    assert_row(&columns, "", "1\r\n\n2");
    assert_int_equal(columns.number, 4);
    assert_row(&columns, "end", "5");
    assert_int_equal(columns.number, 7);
    assert_end(&columns);
}

static void test_quotation_marks_out_of_place(void **state)
{
    assert_refused("a,b\n1,2\n\"x\"y,2\n", "t:3: a quotation mark within a field");
    assert_refused("a,b\nx\"y,2\n", "t:2: a quotation mark within a field");
    assert_refused("a,b\n1,\"x\n3,4\n", "t:2: a quoted field begins in this row and does not end");
    assert_refused("a,\"b\n", "t:1: a quoted field");
    assert_refused("a,b\n\n\"1\n2\",3,4\n", "t:3: 3 fields, where the first line names 2 columns");
    assert_refused("a,b\n1,2\r3,4\n", "t:2: 4 fields");
}

static void test_limits(void **state)
{
    size_t size = COLUMNS_LINE_MAX;
    char *text = malloc(3 * size);
    assert_non_null(text);
    strcpy(text, "a,b\n");
    memset(text + 4, 'x', size);
    strcpy(text + 4 + size, ",1\n");
    assert_refused(text, "t:2: the line is longer than 65534 bytes");
    for (size_t i = 0; i < 2 * size; i++)
        text[4 + i] = i % 100 == 99 ? '\n' : 'x';
    text[4] = '"';
    strcpy(text + 4 + 2 * size, "\",1\n");
    assert_refused(text, "t:2: the row is longer than 65534 bytes");
    free(text);
    assert_refused("", "t");
}

/* What is written is read again. */
static void test_there_and_back(void **state)
{
    static const char *const texts[] = {
        "plain", "a,b", "\"", "say \"so\"", " blank ", "#", "1\n2", "a|b", "", "\xc3\xa9"};
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        char *text = NULL;
        size_t size;
        struct columns columns;
        FILE *out = open_memstream(&text, &size);
        fputs("a,b\n", out);
        columns_print(out, texts[i]);
        fputs(",1\n", out);
        fclose(out);
        open_text(&columns, text);
        assert_row(&columns, texts[i], "1");
        assert_end(&columns);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_separators),
        cmocka_unit_test(test_quoted_fields),
        cmocka_unit_test(test_quotation_marks_out_of_place),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_there_and_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
