/* SPDX-License-Identifier: Apache-2.0 */
/* A line of recorded inputs, whatever form it was written in (input_line.h). */
#ifndef COLLOC_REPLAY_RECORDED_LINE_H
#define COLLOC_REPLAY_RECORDED_LINE_H

#include <jansson.h>

#include "core/core.h"

enum input_line_kind {
    INPUT_LINE_BEGIN,    /* the daemon started: a new core with these settings */
    INPUT_LINE_SETTINGS, /* the core continues with these settings */
    INPUT_LINE_APPLY,    /* core_apply of an event: the daemon replayed its event log */
    INPUT_LINE_STEP,     /* core_step of an input, and its return value */
    INPUT_LINE_DECISION, /* a decision of the core in the step before */
    INPUT_LINE_FORGET,   /* core_forget */
};

struct input_line {
    enum input_line_kind kind;
    int answer;                    /* of STEP: what core_step returned */
    uint64_t task;                 /* of FORGET */
    struct event event;            /* of APPLY, STEP and DECISION */
    json_t *body;                  /* of these: the event as it stands in the line */
    struct core_settings settings; /* of BEGIN and SETTINGS */
};

#endif
