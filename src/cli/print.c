/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text of users, tasks and processes may contain anything. Before it is printed, characters that
 * control a terminal are escaped: control characters, and characters that reorder a line.
 */
#include "cli/print.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/columns.h"
#include "base/text.h"
#include "cli/command.h"

void print_safe(FILE *stream, const char *text)
{
    unsigned number;
    for (; *text; text++) {
        size_t size = *text == '\t' ? 0 : text_control(text, &number);
        if (size)
            fprintf(stream, number < 0x100 ? "\\x%02x" : "\\u%04x", number);
        else
            fputc(*text, stream);
        text += size ? size - 1 : 0;
    }
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
static void print_json_text(const char *text)
{
    unsigned number;
    for (; *text; text++) {
        size_t size = (unsigned char)*text < ' ' ? 0 : text_control(text, &number);
        if (size)
            printf("\\u%04x", number);
        else
            putchar(*text);
        text += size ? size - 1 : 0;
    }
    putchar('\n');
}

bool print_is_format_valid(print_formatted *print, const void *context)
{
    FILE *nowhere = fopen("/dev/null", "w");
    bool is_valid = !nowhere || print(context, nowhere) >= 0;
    if (nowhere)
        fclose(nowhere);
    return is_valid;
}

int print_json(const json_t *json)
{
    char *text = json_dumps(json, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    if (text)
        print_json_text(text);
    free(text);
    return text ? EXIT_OK : EXIT_REFUSED;
}

/* Quoted as RFC 4180 says, where it has to be. Null is an empty cell. */
void print_csv_cell(const json_t *value)
{
    const char *text = json_string_value(value);
    if (json_is_number(value)) {
        printf("%.15g", json_number_value(value));
    } else if (text) {
        columns_print_text(stdout, text);
    }
}
