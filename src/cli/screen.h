/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole terminal as a screen: frames of lines on the alternate screen, keys, and the terminal
 * as it was afterwards, however the program ends (SIGKILL excepted). One screen per process. Plain
 * ECMA-48 sequences, which every terminal of today knows: a frame is drawn whole, once in a while,
 * so there is nothing that a library would save.
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
    KEY_CLOSED /* the terminal is gone */
};

struct screen;

/* Takes the terminal over. -ENOTTY when stdin and stdout are none. */
int screen_open(struct fault *fault, struct screen **ret_screen);

/* Gives it back. NULL is fine. */
void screen_close(struct screen *screen);

/* Waits for a key for at most `timeout_ms`; KEY_NONE also, at once, when the terminal has another
 * size now. */
int screen_wait_key(struct screen *screen, int timeout_ms);

/* Begins a frame, of the terminal's size now. */
void screen_begin(struct screen *screen);
int screen_rows(const struct screen *screen);
int screen_columns(const struct screen *screen);

/* Lines of this frame that are still free, and columns of this line. */
int screen_rows_left(const struct screen *screen);
int screen_columns_left(const struct screen *screen);

/* False: only ASCII can be shown. */
bool screen_has_blocks(const struct screen *screen);

/*
 * Puts text at the place reached, cut or filled up to exactly `width` columns (negative: at the
 * right of -width), and never beyond the line. Control characters show as "?".
 */
void screen_put(struct screen *screen, enum screen_style style, int width, const char *text);

/* The same with the text's own width. */
void screen_print(struct screen *screen, enum screen_style style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Fills the rest of the line and begins the next. */
void screen_end_line(struct screen *screen, enum screen_style style);

/* Shows the frame. */
void screen_show(struct screen *screen);

#endif
