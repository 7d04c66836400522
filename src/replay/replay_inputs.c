/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The record is read a line at a time. An input goes to core_step; the decisions that the core then
 * makes are compared, one by one, with the lines of decisions that follow in the record. A decision
 * too few, too many or other than the recorded one ends the replay.
 *
 *     {"input":"SUBMIT", ...}      core_step: the core places the task on GPU 0
 *     {"decision":"PLACE", ...}    the same in the record? else a difference
 *     {"input":"SAMPLE", ...}      no decision may be left over here
 */
#include "replay/replay_inputs.h"

#include <errno.h>
#include <stdlib.h>

#include "store/event_json.h"

struct replay {
    store_find_policy *find_policy;
    struct core *core; /* NULL before the first start */
    int next_effect;   /* the effects of the last step before it have been compared */
    int64_t number;    /* of the line */
    bool is_in_doubt;  /* the last line was not understood: a start of the daemon must follow */
    struct replay_result *result;
};

/* ---- decisions ---- */

/* The core's next decision that the record has not confirmed yet; NULL: none. */
static const struct event *next_decision(struct replay *replay)
{
    int n = 0;
    const struct effect *effects = replay->core ? core_effects(replay->core, &n) : NULL;
    while (replay->next_effect < n && effects[replay->next_effect].kind != EFFECT_APPEND)
        replay->next_effect++;
    return replay->next_effect < n ? &effects[replay->next_effect].event : NULL;
}

/* After an input that the core refused, and after a call other than a step, no decision is
 * expected. */
static void expect_no_decisions(struct replay *replay)
{
    int n;
    core_effects(replay->core, &n);
    replay->next_effect = n;
}

static int report_difference(struct replay *replay, struct span recorded, struct span decided)
{
    char texts[2][480];
    span_copy(recorded, texts[0], sizeof texts[0]);
    span_copy(decided, texts[1], sizeof texts[1]);
    snprintf(replay->result->difference, sizeof replay->result->difference,
        "line %lld: recorded: %s; decided now: %s", (long long)replay->number,
        recorded.size ? texts[0] : "nothing", decided.size ? texts[1] : "nothing");
    return REPLAY_DIFFERS;
}

/* Reports a difference. `recorded`: the line, empty if there is none. `decision`: the core's, NULL
 * if it made none. */
static int report_decision(
    struct replay *replay, struct span recorded, const struct event *decision, struct fault *fault)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return fault_set(fault, ENOMEM, "out of memory");
    int r = decision ? input_line_write_event(out, INPUT_LINE_DECISION, 0, decision, fault) : 0;
    if (fclose(out) != 0)
        r = fault_set(fault, ENOMEM, "out of memory");
    if (r == 0)
        r = report_difference(replay, recorded, (struct span){text, size ? size - 1 : 0});
    free(text);
    return r;
}

/* Compares the decision as JSON: an unknown key in the record is a difference, too. Returns 1 or 0,
 * or a fault. */
static int is_same(const struct input_line *line, const struct event *decision, struct fault *fault)
{
    json_t *body;
    if (!decision || decision->kind != line->event.kind ||
        decision->time_us != line->event.time_us || decision->task != line->event.task)
        return 0;
    int r = event_encode(decision, fault, &body);
    if (r < 0)
        return r;
    int same = json_equal(body, line->body);
    json_decref(body);
    return same;
}

static int check_decision(
    struct replay *replay, const struct input_line *line, struct span text, struct fault *fault)
{
    const struct event *decision = next_decision(replay);
    int r = is_same(line, decision, fault);
    if (r < 0)
        return r;
    if (r == 0)
        return report_decision(replay, text, decision, fault);
    replay->next_effect++;
    replay->result->decisions++;
    return 0;
}

/* All decisions of the step before must have been compared. */
static int check_none_left(struct replay *replay, struct fault *fault)
{
    const struct event *decision = next_decision(replay);
    return decision ? report_decision(replay, (struct span){"", 0}, decision, fault) : 0;
}

/* ---- lines ---- */

static int begin_core(struct replay *replay, const struct input_line *line, struct fault *fault)
{
    int r = replay->is_in_doubt ? 0 : check_none_left(replay, fault);
    if (r != 0)
        return r;
    core_destroy(replay->core);
    replay->core = core_create(&line->settings);
    replay->next_effect = 0;
    replay->result->starts++;
    return replay->core ? 0 : fault_set(fault, ENOMEM, "out of memory");
}

static int step_core(struct replay *replay, const struct input_line *line, struct fault *fault)
{
    int answer = core_step(replay->core, &line->event);
    if (answer < 0)
        return fault_set(fault, ENOMEM, "out of memory");
    replay->result->inputs++;
    replay->result->samples += line->event.kind == EVENT_SAMPLE;
    if (answer != line->answer) {
        char recorded[40], now[40];
        snprintf(recorded, sizeof recorded, "answer %d", line->answer);
        snprintf(now, sizeof now, "answer %d", answer);
        return report_difference(replay, span_of(recorded), span_of(now));
    }
    replay->next_effect = 0;
    if (answer > 0)
        expect_no_decisions(replay);
    return 0;
}

static int replay_line(
    struct replay *replay, const struct input_line *line, struct span text, struct fault *fault)
{
    if (line->kind == INPUT_LINE_BEGIN)
        return begin_core(replay, line, fault);
    if (!replay->core)
        return fault_set(fault, EINVAL, "the record does not begin with a start");
    if (line->kind == INPUT_LINE_DECISION)
        return check_decision(replay, line, text, fault);
    int r = check_none_left(replay, fault);
    if (r != 0)
        return r;
    if (line->kind == INPUT_LINE_STEP)
        return step_core(replay, line, fault);
    if (line->kind == INPUT_LINE_SETTINGS)
        core_configure(replay->core, &line->settings);
    else if (line->kind == INPUT_LINE_FORGET)
        core_forget(replay->core, line->task);
    else if (core_apply(replay->core, &line->event) < 0)
        return fault_set(fault, ENOMEM, "out of memory");
    expect_no_decisions(replay);
    return 0;
}

static int replay_text(struct replay *replay, struct span text, struct fault *fault)
{
    struct input_line line;
    int r = input_line_read(text, replay->find_policy, fault, &line);
    if (r < 0)
        return r;
    r = replay_line(replay, &line, text, fault);
    input_line_release(&line);
    return r;
}

/*
 * A line that is not understood counts as cut if the daemon's next start follows, or nothing, not
 * even its line end: the daemon was killed while it wrote. Anywhere else it is a fault.
 */
static int replay_lines(struct replay *replay, FILE *in, struct fault *fault)
{
    char *text = NULL;
    size_t capacity = 0;
    ssize_t n;
    int r = 0;
    bool is_whole = true;
    while (r == 0 && (n = getline(&text, &capacity, in)) > 0) {
        is_whole = text[n - 1] == '\n';
        struct span line = {text, (size_t)n - is_whole};
        if (replay->is_in_doubt && !input_line_is_begin(line)) {
            r = -EINVAL;
            break;
        }
        replay->number++;
        r = replay_text(replay, line, fault);
        if (r < 0)
            fault_prefix(fault, r, "line %lld", (long long)replay->number);
        replay->is_in_doubt = r == -EINVAL && replay->core;
        replay->result->is_cut |= replay->is_in_doubt;
        r = replay->is_in_doubt ? 0 : r;
    }
    free(text);
    if (r == 0 && ferror(in))
        return fault_set(fault, EIO, "cannot be read");
    return r == 0 && replay->is_in_doubt && is_whole ? -EINVAL : r;
}

int replay_inputs(
    FILE *in, store_find_policy *find_policy, struct fault *fault, struct replay_result *ret_result)
{
    struct replay replay = {.find_policy = find_policy, .result = ret_result};
    *ret_result = (struct replay_result){0};
    int r = replay_lines(&replay, in, fault);
    if (r == 0 && !replay.core)
        r = fault_set(fault, EINVAL, "nothing is recorded there");
    if (r == 0 && !replay.is_in_doubt)
        r = check_none_left(&replay, fault);
    core_destroy(replay.core);
    return r;
}
