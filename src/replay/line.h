/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a core was fed and what it decided, as lines of text: enough to feed a fresh core the same
 * and to compare. The form is docs/replay.md's. Numbers are written so that they are read back bit
 * for bit.
 */
#ifndef COLLOC_REPLAY_LINE_H
#define COLLOC_REPLAY_LINE_H

#include <stdio.h>

#include "base/text.h"
#include "core/core.h"
#include "store/store.h"

enum line_kind {
    LINE_BEGIN,    /* a fresh core with these settings: the daemon started */
    LINE_SETTINGS, /* the core goes on with these settings */
    LINE_APPLY,    /* core_apply of an event: the event log was replayed */
    LINE_STEP,     /* core_step of an input, and what it answered */
    LINE_DECISION, /* what the core decided in the step before */
    LINE_FORGET,   /* core_forget */
};

struct line {
    enum line_kind kind;
    int answer;                    /* of LINE_STEP */
    uint64_t task;                 /* of LINE_FORGET */
    struct event event;            /* of LINE_APPLY, LINE_STEP and LINE_DECISION */
    struct core_settings settings; /* of LINE_BEGIN and LINE_SETTINGS */
};

/* 0; -EINVAL with the words in the fault, -ENOMEM, or -EIO. */
int line_write_begin(FILE *out, const struct core_settings *settings, struct fault *fault);
int line_write_settings(FILE *out, const struct core_settings *settings); /* 0, -ENOMEM, -EIO */
int line_write_event(
    FILE *out, enum line_kind kind, int answer, const struct event *event, struct fault *fault);
int line_write_forget(FILE *out, uint64_t task);

/* Any text, without its line end. 0 or -EINVAL, -ENOMEM. After 0 line_release frees what it points
 * to. */
int line_read(
    struct span text, store_find_policy *find_policy, struct fault *fault, struct line *ret_line);
void line_release(struct line *line);

#endif
