/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The terminal for `colloc top`: raw mode, the alternate screen, keys, and drawing without flicker.
 *
 * The terminal is restored on every way out, signals included; the signal handlers only call async-
 * signal-safe functions.
 */
#include "cli/screen.h"

#include <errno.h>
#include <langinfo.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>
#include <wchar.h>

#include "base/array.h"
#include "base/file.h"
#include "cli/print.h"

/* Alternate screen, cursor hidden, no wrapping at the right edge; and back. */
static const char ENTER[] = "\033[?1049h\033[?25l\033[?7l";
static const char LEAVE[] = "\033[0m\033[?7h\033[?25h\033[?1049l";

/* Global, since signal handlers have no parameter for them. */
static struct termios before, raw;

struct screen {
    int rows, columns, row, column;
    bool has_blocks, has_colours;
    FILE *frame;
    char *text;
    size_t size;
    char keys[64];
    size_t key_count;
};

/* ---- the terminal ---- */

static void enter_screen(void)
{
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw);
    (void)!write(STDOUT_FILENO, ENTER, sizeof ENTER - 1);
}

static void leave_screen(void)
{
    (void)!write(STDOUT_FILENO, LEAVE, sizeof LEAVE - 1);
    tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
}

/* Restores the terminal, and ends by the same signal: its disposition is the default again. */
static void on_end(int number)
{
    leave_screen();
    raise(number);
}

static void on_stop(int number)
{
    int saved = errno;
    leave_screen();
    raise(SIGSTOP);
    enter_screen();
    errno = saved;
}

static void on_resize(int number)
{
}

static void handle_signal(int number, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    sigemptyset(&action.sa_mask);
    sigaction(number, &action, NULL);
}

static void handle_signals(void)
{
    static const int ends[] = {
        SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL};
    for (size_t i = 0; i < ARRAY_SIZE(ends); i++)
        handle_signal(ends[i], on_end, (int)SA_RESETHAND);
    handle_signal(SIGTSTP, on_stop, SA_RESTART);
    handle_signal(SIGWINCH, on_resize, 0);
}

/* Line editing and echo are turned off; signals of the keyboard stay, so Ctrl-C and Ctrl-Z work. */
int screen_open(struct fault *fault, struct screen **ret_screen)
{
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || tcgetattr(STDIN_FILENO, &before) < 0)
        return fault_set(fault, ENOTTY, "standard input and output must be a terminal");
    struct screen *screen = calloc(1, sizeof *screen);
    if (!screen)
        return fault_set(fault, ENOMEM, "out of memory");
    screen->has_blocks = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
    screen->has_colours = output_has_colours();
    raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    handle_signals();
    enter_screen();
    *ret_screen = screen;
    return 0;
}

void screen_close(struct screen *screen)
{
    if (!screen)
        return;
    leave_screen();
    if (screen->frame)
        fclose(screen->frame);
    free(screen->text);
    free(screen);
}

/* ---- keys ---- */

static const struct {
    const char *sequence;
    int key;
} sequences[] = {
    {"\033[A", KEY_UP},
    {"\033[B", KEY_DOWN},
    {"\033OA", KEY_UP},
    {"\033OB", KEY_DOWN},
    {"\033[H", KEY_HOME},
    {"\033[F", KEY_END},
    {"\033[1~", KEY_HOME},
    {"\033[4~", KEY_END},
    {"\033[5~", KEY_PAGE_UP},
    {"\033[6~", KEY_PAGE_DOWN},
    {"\r", KEY_ENTER},
    {"\b", KEY_BACKSPACE},
};

/* Removes and returns the first key of those read. An unknown sequence is dropped as a whole. */
static int take_key(struct screen *screen)
{
    size_t used = 1;
    int key = (unsigned char)screen->keys[0];

    for (size_t i = 0; i < ARRAY_SIZE(sequences); i++) {
        size_t size = strlen(sequences[i].sequence);
        if (size <= screen->key_count && memcmp(screen->keys, sequences[i].sequence, size) == 0) {
            used = size;
            key = sequences[i].key;
        }
    }
    if (key == KEY_ESCAPE && screen->key_count > 1 &&
        (screen->keys[1] == '[' || screen->keys[1] == 'O')) {
        used = screen->key_count;
        key = KEY_NONE;
    }
    screen->key_count -= used;
    memmove(screen->keys, screen->keys + used, screen->key_count);
    return key;
}

int screen_wait_key(struct screen *screen, int timeout_ms)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    if (screen->key_count)
        return take_key(screen);
    if (poll(&input, 1, timeout_ms) <= 0)
        return KEY_NONE;
    ssize_t n = read(STDIN_FILENO, screen->keys, sizeof screen->keys);
    if (n <= 0)
        return n < 0 && errno == EINTR ? KEY_NONE : KEY_CLOSED;
    screen->key_count = (size_t)n;
    return take_key(screen);
}

/* ---- a frame ---- */

static void measure_terminal(struct screen *screen)
{
    struct winsize size = {0};
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row && size.ws_col;
    screen->rows = known ? size.ws_row : 24;
    screen->columns = known ? size.ws_col : 80;
}

void screen_begin(struct screen *screen)
{
    measure_terminal(screen);
    screen->row = screen->column = 0;
    screen->frame = open_memstream(&screen->text, &screen->size);
    if (screen->frame)
        fputs("\033[H", screen->frame);
}

int screen_rows(const struct screen *screen)
{
    return screen->rows;
}

int screen_columns(const struct screen *screen)
{
    return screen->columns;
}

int screen_rows_left(const struct screen *screen)
{
    return screen->rows - screen->row;
}

int screen_columns_left(const struct screen *screen)
{
    return screen->columns - screen->column;
}

bool screen_has_blocks(const struct screen *screen)
{
    return screen->has_blocks;
}

/* Returns the bytes of the first character, 0 at the end. `ret_width`: its columns; -1 if it cannot
 * be shown. */
static size_t next_character(const char *text, int *ret_width)
{
    wchar_t wide;
    mbstate_t state = {0};
    size_t n = mbrtowc(&wide, text, MB_CUR_MAX, &state);
    if (n == 0)
        return 0;
    bool broken = n == (size_t)-1 || n == (size_t)-2;
    *ret_width = broken ? -1 : wcwidth(wide);
    return broken ? 1 : n;
}

static int width_of(const char *text)
{
    int width = 0, one;
    for (size_t n; (n = next_character(text, &one)) > 0; text += n)
        width += one < 0 ? 1 : one;
    return width;
}

/* Each style begins with a reset, so that styles do not add up. Without colours only bold, dim and
 * reverse are left. */
static void put_style(struct screen *screen, enum screen_style style)
{
    static const char *const codes[STYLES] = {
        [STYLE_PLAIN] = "",
        [STYLE_BOLD] = "1",
        [STYLE_DIM] = "2",
        [STYLE_REVERSE] = "7",
        [STYLE_GREEN] = "32",
        [STYLE_YELLOW] = "33",
        [STYLE_RED] = "31",
    };
    bool is_colour = style >= STYLE_GREEN;
    fprintf(screen->frame, "\033[0%s%sm", *codes[style] ? ";" : "",
        is_colour && !screen->has_colours ? "" : codes[style]);
}

/* Writes at most `width` columns of the text; the last is an ellipsis if the text is longer.
 * Returns the columns written. */
static int put_cut(struct screen *screen, const char *text, int width)
{
    bool cut = width_of(text) > width;
    int used = 0, one;
    for (size_t n; (n = next_character(text, &one)) > 0; text += n) {
        int columns = one < 0 ? 1 : one;
        if (used + columns > width - cut)
            break;
        if (one < 0)
            fputc('?', screen->frame);
        else
            fprintf(screen->frame, "%.*s", (int)n, text);
        used += columns;
    }
    if (cut && used < width) {
        fputs(screen->has_blocks ? "…" : "+", screen->frame);
        used++;
    }
    return used;
}

void screen_put(struct screen *screen, enum screen_style style, int width, const char *text)
{
    bool right = width < 0;
    int left = screen_columns_left(screen), wanted = right ? -width : width;
    int columns = wanted < left ? wanted : left;
    if (!screen->frame || screen->row >= screen->rows || columns <= 0)
        return;
    int pad = columns - width_of(text);
    put_style(screen, style);
    fprintf(screen->frame, "%*s", right && pad > 0 ? pad : 0, "");
    int used = put_cut(screen, text, columns) + (right && pad > 0 ? pad : 0);
    fprintf(screen->frame, "%*s", columns - used, "");
    screen->column += columns;
}

void screen_print(struct screen *screen, enum screen_style style, const char *format, ...)
{
    char *text;
    va_list args;
    va_start(args, format);
    int n = vasprintf(&text, format, args);
    va_end(args);
    if (n < 0)
        return;
    screen_put(screen, style, width_of(text), text);
    free(text);
}

void screen_end_line(struct screen *screen, enum screen_style style)
{
    screen_put(screen, style, screen_columns_left(screen), "");
    if (screen->frame && screen->row + 1 < screen->rows)
        fputs("\033[0m\r\n", screen->frame);
    screen->row++;
    screen->column = 0;
}

void screen_show(struct screen *screen)
{
    if (!screen->frame)
        return;
    fputs("\033[0m", screen->frame);
    if (screen->row < screen->rows && screen->column == 0)
        fputs("\033[J", screen->frame);
    if (fclose(screen->frame) == 0)
        file_write_fd(STDOUT_FILENO, screen->text, screen->size);
    screen->frame = NULL;
    free(screen->text);
    screen->text = NULL;
}
