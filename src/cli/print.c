/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text of users, tasks and processes may contain anything. Before it is printed, characters that
 * control a terminal are escaped: control characters, and characters that reorder a line.
 */
#include "cli/print.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/columns.h"
#include "base/text.h"
#include "cli/command.h"

/* `kept`: control characters that are printed as they are */
static void print_escaped(FILE *stream, const char *text, const char *kept)
{
    unsigned number;
    for (; *text; text++) {
        size_t size = strchr(kept, *text) ? 0 : text_control(text, &number);
        if (size)
            fprintf(stream, number < 0x100 ? "\\x%02x" : "\\u%04x", number);
        else
            fputc(*text, stream);
        text += size ? size - 1 : 0;
    }
}

void print_safe(FILE *stream, const char *text)
{
    print_escaped(stream, text, "\t");
}

int print_safe_output(FILE *stream, const char *bytes, size_t size)
{
    char *text = malloc(size + 1);
    if (!text)
        return -ENOMEM;
    for (size_t i = 0; i < size; i++)
        text[i] = bytes[i] ? bytes[i] : '?';
    text[size] = '\0';
    text_mend(text);
    print_escaped(stream, text, "\t\r\n");
    free(text);
    return fflush(stream) == 0 ? 0 : -errno;
}

static void print_word(const char *word, int size)
{
    char *copy = strndup(word, (size_t)size);
    print_safe(stdout, copy ? copy : "");
    free(copy);
}

/* Two line ends in the text begin a paragraph; other white space is where a line may break. */
void print_wrapped(const char *text, int column, int width)
{
    int at = column;
    while (*text) {
        int n = (int)strcspn(text, " \n");
        if (at > column && width && at + 1 + n > width) {
            printf("\n%*s", column, "");
            at = column;
        } else if (at > column) {
            putchar(' ');
            at++;
        }
        print_word(text, n);
        at += n;
        text += n;
        if (strncmp(text, "\n\n", 2) == 0) {
            printf("\n\n%*s", column, "");
            at = column;
        }
        text += strspn(text, " \n");
    }
    putchar('\n');
}

/* Standard output is flushed first, so that both are in order where they go to one terminal. */
void print_error(const char *format, ...)
{
    char *text;
    va_list args;
    va_start(args, format);
    int n = vasprintf(&text, format, args);
    va_end(args);
    if (n < 0)
        return;
    fflush(stdout);
    fputs("colloc: ", stderr);
    print_safe(stderr, text);
    fputc('\n', stderr);
    free(text);
}

bool output_has_colours(void)
{
    const char *no_color = getenv("NO_COLOR"), *terminal = getenv("TERM");
    return isatty(STDOUT_FILENO) && !(no_color && *no_color) && terminal &&
           strcmp(terminal, "dumb") != 0;
}

int output_width(void)
{
    struct winsize size = {0};
    if (!isatty(STDOUT_FILENO))
        return 0;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : 80;
}

/* Escapes control characters that JSON allows. Those below U+0020 are only line breaks between
 * values: jansson has escaped them within strings. */
static void print_json_text(FILE *stream, const char *text)
{
    unsigned number;
    for (; *text; text++) {
        size_t size = (unsigned char)*text < ' ' ? 0 : text_control(text, &number);
        if (size)
            fprintf(stream, "\\u%04x", number);
        else
            fputc(*text, stream);
        text += size ? size - 1 : 0;
    }
    fputc('\n', stream);
}

bool print_is_format_valid(print_formatted *print, const void *context)
{
    FILE *nowhere = fopen("/dev/null", "w");
    bool is_valid = !nowhere || print(context, nowhere) >= 0;
    if (nowhere)
        fclose(nowhere);
    return is_valid;
}

int print_json_to(FILE *stream, const json_t *json, size_t layout)
{
    char *text = json_dumps(json, layout | JSON_REAL_PRECISION(15));
    if (text)
        print_json_text(stream, text);
    free(text);
    return text ? EXIT_OK : EXIT_REFUSED;
}

int print_json(const json_t *json)
{
    return print_json_to(stdout, json, JSON_INDENT(2));
}

/* Escaped as in a table, since a table on a terminal is often made of it. */
static void print_csv_text(const char *text)
{
    char *safe = NULL;
    size_t size;
    FILE *out = open_memstream(&safe, &size);
    if (!out)
        return;
    print_safe(out, text);
    if (fclose(out) == 0)
        columns_print_text(stdout, safe);
    free(safe);
}

void print_csv_cell(const json_t *value)
{
    const char *text = json_string_value(value);
    if (json_is_number(value))
        printf("%.15g", json_number_value(value));
    else if (text)
        print_csv_text(text);
}
