/* SPDX-License-Identifier: Apache-2.0 */
/* Recorded inputs: any text is replayed or refused in words, and a line that is understood is
 * written back to itself.
 */
#include <stdlib.h>
#include <string.h>

#include "core/policy.h"
#include "fuzz.h"
#include "policy/policies.h"
#include "replay/replay_inputs.h"

static void require(int holds)
{
    if (!holds)
        abort();
}

static void write_back(FILE *out, const struct input_line *line)
{
    if (line->kind == INPUT_LINE_BEGIN)
        require(input_line_write_begin(out, &line->settings) == 0);
    else if (line->kind == INPUT_LINE_SETTINGS)
        require(input_line_write_settings(out, &line->settings) == 0);
    else if (line->kind == INPUT_LINE_FORGET)
        require(input_line_write_forget(out, line->task) == 0);
    else
        require(input_line_write_event(out, line->kind, line->answer, &line->event, NULL) == 0);
}

/* Written, read and written again it is the same: what was first there may be written in other
 * ways. */
static char *as_text(const struct input_line *line)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    require(out != NULL);
    write_back(out, line);
    fclose(out);
    return text;
}

static void go_round(const struct input_line *line)
{
    struct input_line again;
    char *once = as_text(line);
    require(input_line_read((struct span){once, strlen(once) - 1}, policy_find, NULL, &again) == 0);
    char *twice = as_text(&again);
    require(strcmp(once, twice) == 0);
    input_line_release(&again);
    free(once);
    free(twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span rest = {(const char *)data, size}, text;
    struct replay_result result;
    struct input_line line;
    while (span_next_line(&rest, &text)) {
        struct fault fault = {""};
        if (input_line_read(text, policy_find, &fault, &line) < 0) {
            require(fault.text[0] != '\0');
            continue;
        }
        go_round(&line);
        input_line_release(&line);
    }
    struct fault fault = {""};
    FILE *in = size ? fmemopen((void *)(uintptr_t)data, size, "r") : NULL;
    if (in) {
        int r = replay_inputs(in, policy_find, &fault, &result);
        require(r >= 0 || fault.text[0] != '\0');
        fclose(in);
    }
    return 0;
}
