#include "base/columns.h"

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

/* The next line that says something, without its end. 1, 0 at the end, or a fault. */
static int read_line(struct columns *columns, struct fault *fault)
{
    while (fgets(columns->line, COLUMNS_LINE_MAX, columns->file)) {
        size_t size = strlen(columns->line);
        columns->number++;
        if ((size == 0 || columns->line[size - 1] != '\n') && !feof(columns->file))
            return columns_wrong(columns, fault, "the line is longer than %d bytes, or binary",
                COLUMNS_LINE_MAX - 2);
        columns->line[strcspn(columns->line, "\r\n")] = '\0';
        if (columns->line[0] != '#' && columns->line[strspn(columns->line, " \t")])
            return 1;
    }
    if (ferror(columns->file))
        return fault_set(fault, EIO, "%s: cannot be read after line %lld", columns->name,
            (long long)columns->number);
    return 0;
}

static char *trim(char *field)
{
    field += strspn(field, " \t");
    for (char *end = field + strlen(field); end > field && strchr(" \t", end[-1]); *--end = '\0')
        ;
    return field;
}

/* How many fields there are: more than COLUMNS_MAX are counted, not kept. */
static int cut(const struct columns *columns, char *line, char **fields)
{
    const char separator[] = {columns->separator, columns->separator == ' ' ? '\t' : '\0', '\0'};
    bool blanks = columns->separator == ' ';
    char *rest = blanks ? line + strspn(line, separator) : line;
    int n = 0;
    while (rest) {
        char *field = strsep(&rest, separator);
        if (n < COLUMNS_MAX)
            fields[n] = trim(field);
        n++;
        if (blanks && rest && *(rest += strspn(rest, separator)) == '\0')
            rest = NULL;
    }
    return n;
}

static int read_names(struct columns *columns, struct fault *fault)
{
    columns->line = malloc(COLUMNS_LINE_MAX);
    if (!columns->line)
        return fault_set(fault, ENOMEM, "out of memory");
    int r = read_line(columns, fault);
    if (r == 0)
        return fault_set(fault, EINVAL,
            "%s: the file is empty: a line with the names of the columns is missing",
            columns->name);
    if (r < 0)
        return r;
    const char *mark = "\xef\xbb\xbf"; /* of UTF-8, by spreadsheets */
    columns->names = strdup(columns->line + (strncmp(columns->line, mark, 3) == 0 ? 3 : 0));
    if (!columns->names)
        return fault_set(fault, ENOMEM, "out of memory");
    columns->separator = strchr(columns->names, '|')   ? '|'
                         : strchr(columns->names, ',') ? ','
                                                       : ' ';
    columns->n = cut(columns, columns->names, columns->name_at);
    if (columns->n > COLUMNS_MAX)
        return columns_wrong(columns, fault, "more than %d columns", COLUMNS_MAX);
    return 0;
}

int columns_open(struct columns *columns, const char *path, struct fault *fault)
{
    if (strcmp(path, "-") == 0)
        return columns_open_file(columns, stdin, "standard input", fault);
    *columns = (struct columns){.name = path, .file = fopen(path, "re"), .owned = true};
    if (!columns->file)
        return fault_set(fault, errno, "%s: %s", path, strerror(errno));
    return read_names(columns, fault);
}

int columns_open_file(struct columns *columns, FILE *file, const char *name, struct fault *fault)
{
    *columns = (struct columns){.name = name, .file = file};
    return read_names(columns, fault);
}

int columns_open_text(
    struct columns *columns, const char *text, const char *name, struct fault *fault)
{
    *columns = (struct columns){
        .name = name, .file = fmemopen((void *)text, strlen(text), "r"), .owned = true};
    if (!columns->file)
        return fault_set(fault, errno, "%s: %s", name, strerror(errno));
    return read_names(columns, fault);
}

void columns_close(struct columns *columns)
{
    if (columns->file && columns->owned)
        fclose(columns->file);
    free(columns->names);
    free(columns->line);
    *columns = (struct columns){0};
}

int columns_next(struct columns *columns, struct fault *fault)
{
    int r = read_line(columns, fault);
    if (r <= 0)
        return r;
    int n = cut(columns, columns->line, columns->field);
    if (n != columns->n)
        return columns_wrong(
            columns, fault, "%d fields, where the first line names %d columns", n, columns->n);
    return 1;
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
    return r < 0 ? columns_wrong(columns, fault, "%s is \"%.60s\", which is no number",
                       columns->name_at[column], text)
                 : 1;
}
