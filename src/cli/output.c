#include "cli/output.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/command.h"

void print_safe(FILE *stream, const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        bool is_c1 = c[0] == 0xc2 && c[1] >= 0x80 && c[1] < 0xa0;
        if (is_c1)
            fprintf(stream, "\\x%02x", *++c);
        else if ((*c < ' ' && *c != '\t') || *c == 0x7f)
            fprintf(stream, "\\x%02x", *c);
        else
            fputc(*c, stream);
    }
}

static void print_word(const char *word, int size)
{
    char *copy = strndup(word, (size_t)size);
    print_safe(stdout, copy ? copy : "");
    free(copy);
}

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

void complain(const char *format, ...)
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

int print_json(const json_t *json)
{
    json_dumpf(json, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(15));
    putchar('\n');
    return EXIT_OK;
}

void print_csv_cell(const json_t *value)
{
    const char *text = json_string_value(value);
    if (json_is_number(value)) {
        printf("%.15g", json_number_value(value));
    } else if (text && strpbrk(text, ",\"\r\n")) {
        putchar('"');
        for (; *text; text++) {
            if (*text == '"')
                putchar('"');
            putchar(*text);
        }
        putchar('"');
    } else if (text) {
        fputs(text, stdout);
    }
}
