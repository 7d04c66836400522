/* SPDX-License-Identifier: Apache-2.0 */
#include "replay/replay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct replay {
    store_find_policy *find_policy;
    struct core *core; /* NULL before the first start */
    int64_t number;    /* of the line */
    bool is_in_doubt;  /* the last line was not understood */
    char *expected; /* the lines of decisions that the core made and the record has not shown yet */
    size_t at, size; /* in `expected` */
    struct replay_result *result;
};

/* Decisions are compared as the record has them: as text. */
static int keep_decisions(struct replay *replay, struct fault *fault)
{
    int n, r = 0;
    const struct effect *effects = core_effects(replay->core, &n);
    free(replay->expected);
    replay->expected = NULL;
    replay->at = replay->size = 0;
    FILE *out = open_memstream(&replay->expected, &replay->size);
    if (!out)
        return fault_set(fault, ENOMEM, "out of memory");
    for (int i = 0; i < n && r == 0; i++)
        if (effects[i].kind == EFFECT_APPEND)
            r = line_write_event(out, LINE_DECISION, 0, &effects[i].event, fault);
    return fclose(out) == 0 ? r : fault_set(fault, ENOMEM, "out of memory");
}

static struct span next_expected(const struct replay *replay)
{
    struct span line = {"", 0};
    if (replay->at < replay->size) {
        struct span rest = {replay->expected + replay->at, replay->size - replay->at};
        span_next_line(&rest, &line);
    }
    return line;
}

static int differs(const struct replay *replay, const char *recorded, struct span decided)
{
    char text[480];
    span_copy(decided, text, sizeof text);
    snprintf(replay->result->difference, sizeof replay->result->difference,
        "line %lld: recorded: %.480s; decided now: %s", (long long)replay->number, recorded,
        decided.size ? text : "nothing");
    return REPLAY_DIFFERS;
}

static int check_decision(struct replay *replay, struct span text)
{
    struct span expected = next_expected(replay);
    if (expected.size != text.size || memcmp(expected.at, text.at, text.size) != 0) {
        char recorded[480];
        span_copy(text, recorded, sizeof recorded);
        return differs(replay, recorded, expected);
    }
    replay->at += text.size + 1;
    replay->result->decisions++;
    return 0;
}

static int begin(struct replay *replay, const struct line *line, struct fault *fault)
{
    if (replay->at < replay->size && !replay->is_in_doubt)
        return differs(replay, "nothing", next_expected(replay));
    core_destroy(replay->core);
    replay->core = core_create(&line->settings);
    replay->at = replay->size = 0;
    replay->result->starts++;
    return replay->core ? 0 : fault_set(fault, ENOMEM, "out of memory");
}

static int step(struct replay *replay, const struct line *line, struct fault *fault)
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
        return differs(replay, recorded, span_of(now));
    }
    return answer == 0 ? keep_decisions(replay, fault) : 0;
}

static int take(
    struct replay *replay, const struct line *line, struct span text, struct fault *fault)
{
    if (line->kind == LINE_BEGIN)
        return begin(replay, line, fault);
    if (!replay->core)
        return fault_set(fault, EINVAL, "the record does not begin with a start");
    if (line->kind == LINE_DECISION)
        return check_decision(replay, text);
    if (replay->at < replay->size)
        return differs(replay, "nothing", next_expected(replay));
    if (line->kind == LINE_STEP)
        return step(replay, line, fault);
    if (line->kind == LINE_SETTINGS)
        core_configure(replay->core, &line->settings);
    else if (line->kind == LINE_FORGET)
        core_forget(replay->core, line->task);
    else if (core_apply(replay->core, &line->event) < 0)
        return fault_set(fault, ENOMEM, "out of memory");
    return 0;
}

static int take_text(struct replay *replay, struct span text, struct fault *fault)
{
    struct line line;
    int r = line_read(text, replay->find_policy, fault, &line);
    if (r < 0)
        return r;
    r = take(replay, &line, text, fault);
    line_release(&line);
    return r;
}

static bool is_begin(struct span text)
{
    return span_starts(text, "colloc-inputs ");
}

/*
 * A line that is not understood counts as cut when the daemon's next start follows, or nothing, not
 * even its line end: its writer was killed. Anywhere else it is a fault.
 */
static int take_all(struct replay *replay, FILE *in, struct fault *fault)
{
    char *text = NULL;
    size_t room = 0;
    ssize_t n;
    int r = 0;
    bool is_whole = true;
    while (r == 0 && (n = getline(&text, &room, in)) > 0) {
        is_whole = text[n - 1] == '\n';
        struct span line = {text, (size_t)n - is_whole};
        if (replay->is_in_doubt && !is_begin(line)) {
            r = -EINVAL;
            break;
        }
        replay->number++;
        r = take_text(replay, line, fault);
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

int replay_run(
    FILE *in, store_find_policy *find_policy, struct fault *fault, struct replay_result *ret_result)
{
    struct replay replay = {.find_policy = find_policy, .result = ret_result};
    *ret_result = (struct replay_result){0};
    int r = take_all(&replay, in, fault);
    if (r == 0 && !replay.core)
        r = fault_set(fault, EINVAL, "nothing is recorded there");
    if (r == 0 && !replay.is_in_doubt && replay.at < replay.size)
        r = differs(&replay, "nothing", next_expected(&replay));
    core_destroy(replay.core);
    free(replay.expected);
    return r;
}
