/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads tables: CSV, and files separated by "|" or blanks. Comma-separated tables are parsed by
 * libcsv: a quoted field may contain commas, line breaks and doubled quotation marks. Its strict
 * mode makes a misplaced quotation mark an error on its line, so that it does not swallow the
 * following rows. The other two kinds have no quotation marks: "|" separates the output of Slurm's
 * `sacct -P` and colloc's tables, blanks separate hand-written tables.
 *
 * Lines are read into `raw`; the fields of a row are copied to `row`, one after the other, each
 * ended by a NUL in place of its separator. So a row's text is never longer than its lines, and
 * COLUMNS_LINE_MAX bounds both.
 */
#include "base/columns.h"

#include <csv.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"

int columns_wrong(const struct columns *columns, struct fault *fault, const char *format, ...)
{
    char text[400];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return fault_set(fault, EINVAL, "%s:%lld: %s", columns->name, (long long)columns->number, text);
}

/* Reads the next line with its end. Returns 1, 0 at the end of the file, or a fault. */
static int read_line(struct columns *columns, struct fault *fault)
{
    if (fgets(columns->raw, COLUMNS_LINE_MAX, columns->file)) {
        size_t size = strlen(columns->raw);
        columns->lines++;
        if ((size == 0 || columns->raw[size - 1] != '\n') && !feof(columns->file)) {
            columns->number = columns->lines;
            return columns_wrong(columns, fault, "the line is longer than %d bytes, or binary",
                COLUMNS_LINE_MAX - 2);
        }
        return 1;
    }
    if (ferror(columns->file))
        return fault_set(fault, EIO, "%s: cannot be read after line %lld", columns->name,
            (long long)columns->lines);
    return 0;
}

/* Reads the first line of the next row, skipping blank lines and comments. */
static int read_first_line(struct columns *columns, struct fault *fault)
{
    int r = 1;
    if (columns->has_first) {
        columns->has_first = false;
        return 1;
    }
    while ((r = read_line(columns, fault)) == 1)
        if (columns->raw[0] != '#' && columns->raw[strspn(columns->raw, " \t\r\n")])
            break;
    columns->number = columns->lines;
    return r;
}

/* ---- separated by "|" or by blanks ---- */

static char *trim_blanks(char *field)
{
    field += strspn(field, " \t");
    for (char *end = field + strlen(field); end > field && strchr(" \t", end[-1]); *--end = '\0')
        ;
    return field;
}

/* Returns the number of fields; those beyond COLUMNS_MAX are counted, not stored. */
static int split_fields(const struct columns *columns, char *line, char **fields)
{
    const char separator[] = {columns->separator, columns->separator == ' ' ? '\t' : '\0', '\0'};
    bool blanks = columns->separator == ' ';
    char *rest = blanks ? line + strspn(line, separator) : line;
    int n = 0;
    while (rest) {
        char *field = strsep(&rest, separator);
        if (n < COLUMNS_MAX)
            fields[n] = trim_blanks(field);
        n++;
        if (blanks && rest && *(rest += strspn(rest, separator)) == '\0')
            rest = NULL;
    }
    return n;
}

/* ---- separated by commas ---- */

/* The row that libcsv is reading. */
struct row {
    char *text; /* COLUMNS_LINE_MAX bytes */
    size_t used;
    char **fields;
    int n;
    bool has_ended;
};

static void on_field(void *bytes, size_t size, void *context)
{
    struct row *row = context;
    char *field = row->text + row->used;
    if (size)
        memcpy(field, bytes, size);
    field[size] = '\0';
    row->used += size + 1;
    if (row->n < COLUMNS_MAX)
        row->fields[row->n] = field;
    row->n++;
}

static void on_row(int end, void *context)
{
    ((struct row *)context)->has_ended = true;
}

/* Parses one more line of the row. libcsv needs a line end, which a file's last line may lack. */
static int parse_line(
    struct columns *columns, const char *line, struct row *row, struct fault *fault)
{
    size_t size = strlen(line);
    bool has_end = size && line[size - 1] == '\n';
    if (csv_parse(columns->parser, line, size, on_field, on_row, row) == size &&
        (has_end || csv_parse(columns->parser, "\n", 1, on_field, on_row, row) == 1))
        return 0;
    if (csv_error(columns->parser) != CSV_EPARSE)
        return fault_set(fault, ENOMEM, "out of memory");
    return columns_wrong(columns, fault,
        "a quotation mark within a field: put the whole field in quotation marks and double it");
}

/* Reads further lines while a quoted field contains line breaks. Returns the number of fields, or a
 * fault. */
static int parse_row(
    struct columns *columns, const char *line, char *text, char **fields, struct fault *fault)
{
    struct row row = {.text = text, .fields = fields};
    size_t size = 0;
    int r = 1;
    while (r == 1) {
        size += strlen(line) + 1;
        if (size > COLUMNS_LINE_MAX)
            return columns_wrong(
                columns, fault, "the row is longer than %d bytes", COLUMNS_LINE_MAX - 2);
        r = parse_line(columns, line, &row, fault);
        if (r < 0)
            return r;
        if (row.has_ended)
            return row.n;
        r = read_line(columns, fault);
        line = columns->raw;
    }
    return r < 0 ? r
                 : columns_wrong(
                       columns, fault, "a quoted field begins in this row and does not end");
}

/* ---- rows ---- */

/* Splits the row that begins with `line` into fields, which point into `text`. */
static int read_fields(
    struct columns *columns, const char *line, char *text, char **fields, struct fault *fault)
{
    if (columns->separator == ',')
        return parse_row(columns, line, text, fields, fault);
    strcpy(text, line);
    text[strcspn(text, "\r\n")] = '\0';
    return split_fields(columns, text, fields);
}

static int allocate_lines(struct columns *columns, struct fault *fault)
{
    columns->raw = malloc(COLUMNS_LINE_MAX);
    columns->names = malloc(COLUMNS_LINE_MAX);
    columns->row = malloc(COLUMNS_LINE_MAX);
    columns->parser = calloc(1, sizeof *columns->parser);
    if (!columns->raw || !columns->names || !columns->row || !columns->parser)
        return fault_set(fault, ENOMEM, "out of memory");
    csv_init(columns->parser, CSV_STRICT);
    return 0;
}

static bool begins_with_name(const char *line, const char *names)
{
    size_t size = strcspn(names, ",");
    return strncmp(line, names, size) == 0 && strchr(",\r\n", line[size]);
}

/* `names`: of the columns, where the table lacks them; NULL: it has them. */
static int read_names(struct columns *columns, const char *names, struct fault *fault)
{
    int r = allocate_lines(columns, fault);
    if (r < 0)
        return r;
    r = read_first_line(columns, fault);
    if (r >= 0 && names && (r == 0 || !begins_with_name(columns->raw, names))) {
        columns->has_first = r == 1;
        columns->named = true;
        columns->separator = ',';
        columns->n = read_fields(columns, names, columns->names, columns->name_at, fault);
        return columns->n < 0 ? columns->n : 0;
    }
    if (r == 0)
        return fault_set(fault, EINVAL,
            "%s: the file is empty: a line with the names of the columns is missing",
            columns->name);
    if (r < 0)
        return r;
    const char *mark = "\xef\xbb\xbf"; /* of UTF-8, written by spreadsheets */
    const char *line = columns->raw + (strncmp(columns->raw, mark, 3) == 0 ? 3 : 0);
    columns->separator = strchr(line, '|') ? '|' : strchr(line, ',') ? ',' : ' ';
    columns->n = read_fields(columns, line, columns->names, columns->name_at, fault);
    if (columns->n > COLUMNS_MAX)
        return columns_wrong(columns, fault, "more than %d columns", COLUMNS_MAX);
    return columns->n < 0 ? columns->n : 0;
}

int columns_open_file_named(
    struct columns *columns, FILE *file, const char *name, const char *names, struct fault *fault)
{
    *columns = (struct columns){.name = name, .file = file};
    return read_names(columns, names, fault);
}

int columns_open_named(
    struct columns *columns, const char *path, const char *names, struct fault *fault)
{
    if (strcmp(path, "-") == 0)
        return columns_open_file_named(columns, stdin, "standard input", names, fault);
    *columns = (struct columns){.name = path, .file = fopen(path, "re"), .owned = true};
    if (!columns->file)
        return fault_set(fault, errno, "%s: %s", path, strerror(errno));
    return read_names(columns, names, fault);
}

int columns_open(struct columns *columns, const char *path, struct fault *fault)
{
    return columns_open_named(columns, path, NULL, fault);
}

int columns_open_file(struct columns *columns, FILE *file, const char *name, struct fault *fault)
{
    return columns_open_file_named(columns, file, name, NULL, fault);
}

int columns_open_text(
    struct columns *columns, const char *text, const char *name, struct fault *fault)
{
    *columns = (struct columns){
        .name = name, .file = fmemopen((void *)text, strlen(text), "r"), .owned = true};
    if (!columns->file)
        return fault_set(fault, errno, "%s: %s", name, strerror(errno));
    return read_names(columns, NULL, fault);
}

void columns_close(struct columns *columns)
{
    if (columns->file && columns->owned)
        fclose(columns->file);
    if (columns->parser)
        csv_free(columns->parser);
    free(columns->parser);
    free(columns->names);
    free(columns->row);
    free(columns->raw);
    *columns = (struct columns){0};
}

int columns_next(struct columns *columns, struct fault *fault)
{
    int r = read_first_line(columns, fault);
    if (r <= 0)
        return r;
    int n = read_fields(columns, columns->raw, columns->row, columns->field, fault);
    if (n >= 0 && n != columns->n)
        return columns_wrong(columns, fault, "%d fields, where %s %d columns", n,
            columns->named ? "such a table has" : "the first line names", columns->n);
    return n < 0 ? n : 1;
}

int columns_find(const struct columns *columns, const char *const *names)
{
    for (; *names; names++)
        for (int i = 0; i < columns->n; i++)
            if (strcmp(columns->name_at[i], *names) == 0)
                return i;
    return -1;
}

const char *columns_get(const struct columns *columns, int column)
{
    const char *field = column < 0 ? "" : columns->field[column];
    return *field == '\0' || strcmp(field, "-") == 0 ? NULL : field;
}

int columns_number(const struct columns *columns, int column, double min, double max,
    struct fault *fault, double *ret_value)
{
    const char *text = columns_get(columns, column);
    if (!text)
        return 0;
    int r = parse_double(text, min, max, ret_value);
    if (r == -ERANGE)
        return columns_wrong(columns, fault, "%s is %.60s: it must be between %g and %g",
            columns->name_at[column], text, min, max);
    return r < 0 ? columns_wrong(columns, fault, "%s is \"%.60s\", which is not a number",
                       columns->name_at[column], text)
                 : 1;
}

void columns_print(FILE *out, const char *text)
{
    size_t size = strlen(text);
    bool has_blank_end = size && (strchr(" \t", text[0]) || strchr(" \t", text[size - 1]));
    if (has_blank_end || text[0] == '#' || strpbrk(text, ",|\"\r\n"))
        csv_fwrite(out, text, size);
    else
        fputs(text, out);
}

static bool is_number(const char *text)
{
    char *end;
    strtod(text, &end);
    return *text && !*end;
}

void columns_print_text(FILE *out, const char *text)
{
    char *guarded = NULL;
    if (*text && strchr("=+-@\t\r", *text) && !is_number(text) &&
        asprintf(&guarded, "'%s", text) < 0)
        return; /* no memory: an empty cell rather than a formula */
    columns_print(out, guarded ? guarded : text);
    free(guarded);
}
