/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorded inputs: the inputs and decisions of a core, one JSON object in each line. They suffice
 * to repeat the inputs with a new core and to compare its decisions. docs/replay.md describes the
 * form for users:
 *
 *     {"colloc_inputs":2,"settings":{...}}
 *     {"input":"SUBMIT","time_us":1795204780251990,"task":1,"event":{...}}
 *     {"decision":"PLACE","time_us":1795204780251990,"task":1,"event":{...}}
 *
 * Contract:
 * 1. Numbers are read back bit for bit.
 * 2. Files of the first form (version 0.1.0 and before, input_line_v1.h) stay readable, and a file
 *    may change from the first form to this one: the first character of each line shows its form.
 */
#ifndef COLLOC_REPLAY_INPUT_LINE_H
#define COLLOC_REPLAY_INPUT_LINE_H

#include <stdio.h>

#include "base/text.h"
#include "replay/recorded_line.h"
#include "store/store.h"

/* Each writes a line. Returns 0, -EIO, or -ENOMEM. */
int input_line_write_begin(FILE *out, const struct core_settings *settings);
int input_line_write_settings(FILE *out, const struct core_settings *settings);
int input_line_write_forget(FILE *out, uint64_t task);

/*
 * Writes the line of an event.
 *
 * kind:   APPLY, STEP or DECISION.
 * answer: of STEP.
 *
 * Returns 0; -EIO; -EINVAL with a fault if the event cannot be written.
 */
int input_line_write_event(FILE *out, enum input_line_kind kind, int answer,
    const struct event *event, struct fault *fault);

/*
 * Reads a line of either form.
 *
 * text: any bytes, without the line end.
 *
 * Returns 0, and input_line_release must follow; -EINVAL with what is wrong in the fault; -ENOMEM.
 */
int input_line_read(struct span text, store_find_policy *find_policy, struct fault *fault,
    struct input_line *ret_line);
void input_line_release(struct input_line *line);

/* Is this the first line of a start of the daemon, of either form, or the beginning of one? */
bool input_line_is_begin(struct span text);

#endif
