/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A full-screen display on the terminal, for `colloc top`: frames of lines on the alternate screen,
 * and keys. One screen per process. The terminal is restored however the program ends, except by
 * SIGKILL. Written with ECMA-48 sequences, which all present terminals know. Each frame is drawn
 * completely, about once a second, so a library such as ncurses would save nothing.
 */
#ifndef COLLOC_CLI_SCREEN_H
#define COLLOC_CLI_SCREEN_H

#include <stdbool.h>

#include "base/fault.h"

enum screen_style {
    STYLE_PLAIN,
    STYLE_BOLD,
    STYLE_DIM,
    STYLE_REVERSE,
    STYLE_GREEN,
    STYLE_YELLOW,
    STYLE_RED,
    STYLES
};

/* Other keys are their character. */
enum screen_key {
    KEY_NONE = 0,
    KEY_ENTER = '\n',
    KEY_ESCAPE = 27,
    KEY_BACKSPACE = 127,
    KEY_UP = 256,
    KEY_DOWN,
    KEY_PAGE_UP,
    KEY_PAGE_DOWN,
    KEY_HOME,
    KEY_END,
    KEY_CLOSED /* the terminal was closed */
};

struct screen;

/*
 * Takes over the terminal on stdin and stdout.
 *
 * ret_screen: for screen_close.
 *
 * Returns 0, or with a fault: -ENOTTY (they are no terminal), -ENOMEM, or another -errno.
 */
int screen_open(struct fault *fault, struct screen **ret_screen);

/* Restores the terminal. NULL is allowed. */
void screen_close(struct screen *screen);

/*
 * Waits for a key.
 *
 * Returns a character or enum screen_key; KEY_NONE after `timeout_ms`, or when the size of the
 * terminal has changed.
 */
int screen_wait_key(struct screen *screen, int timeout_ms);

/* Begins a frame of the terminal's present size. */
void screen_begin(struct screen *screen);
int screen_rows(const struct screen *screen);
int screen_columns(const struct screen *screen);

/* Return the lines of this frame that are still free, and the free columns of this line. */
int screen_rows_left(const struct screen *screen);
int screen_columns_left(const struct screen *screen);

/* Can the terminal show block characters? False: only ASCII. */
bool screen_has_blocks(const struct screen *screen);

/*
 * Writes text at the cursor, never beyond the end of the line. Control characters show as "?".
 *
 * width: columns; the text is cut, or padded with blanks. Negative: right-aligned in -width.
 */
void screen_put(struct screen *screen, enum screen_style style, int width, const char *text);

/* Writes formatted text at the cursor, neither padded nor wrapped. */
void screen_print(struct screen *screen, enum screen_style style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Fills the rest of the line with blanks and begins the next. */
void screen_end_line(struct screen *screen, enum screen_style style);

/* Shows the frame. */
void screen_show(struct screen *screen);

#endif
