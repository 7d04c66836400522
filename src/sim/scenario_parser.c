/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line is split at blanks. The first word, or the second after a time ("t=5"), decides
 * which function reads the rest. The options of a task are fields of a struct, so each is a row in
 * a table: its name, its type, and where its value goes. Settings are those of core/settings.def.
 */
#include "sim/scenario_parser.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/units.h"
#include "core/setting_table.h"
#include "policy/policies.h"

#define WORDS_MAX       16 /* chosen: more than any line needs */
#define RISE_DEFAULT_US (5 * SECOND_US)
#define TIME_MAX_S      1e6

/* ---- words ---- */

struct line_words {
    char *word[WORDS_MAX];
    int n;
    char text[1024];
};

static int split_line(struct span line, struct line_words *words, struct fault *fault)
{
    if (!span_copy(line, words->text, sizeof words->text))
        return fault_set(fault, EINVAL, "line too long");
    words->n = 0;
    char *save = NULL;
    for (char *word = strtok_r(words->text, " \t", &save); word;
         word = strtok_r(NULL, " \t", &save)) {
        if (word[0] == '#')
            return 0;
        if (words->n == WORDS_MAX)
            return fault_set(fault, EINVAL, "more than %d words", WORDS_MAX);
        words->word[words->n++] = word;
    }
    return 0;
}

static int refuse_word(struct fault *fault, const char *word)
{
    return fault_set(fault, EINVAL, "'%s' is not understood here", word);
}

/* ---- fields of a struct ---- */

struct field {
    const char *name;
    enum {
        FIELD_SIZE,           /* int64_t bytes */
        FIELD_DURATION,       /* int64_t microseconds */
        FIELD_REAL,           /* double from 0 to max */
        FIELD_INT,            /* int from 0 to max */
        FIELD_READING,        /* struct reading from 0 to max */
        FIELD_TIME,           /* struct reading of a duration, in microseconds */
        FIELD_NEED_ESTIMATED, /* struct need */
        FIELD_NEED_DECLARED,
        FIELD_POLICY,   /* const struct policy * */
        FIELD_PRIORITY, /* int: a class */
        FIELD_TEXT      /* char[max] */
    } type;
    size_t offset;
    int max;
};

static int read_int(const char *text, int max, int *ret)
{
    int64_t value;
    int r = parse_int64(text, 0, max, &value);
    if (r == 0)
        *ret = (int)value;
    return r;
}

static int read_need(enum need_kind kind, const char *text, struct need *ret)
{
    ret->kind = kind;
    return parse_size(text, &ret->bytes);
}

static int read_time(const char *text, struct reading *ret)
{
    int64_t time_us;
    int r = parse_duration(text, &time_us);
    if (r == 0 && time_us > 0)
        *ret = reading_of((double)time_us);
    return r;
}

static int read_policy(const char *text, const struct policy **ret)
{
    *ret = policy_find(text);
    return *ret ? 0 : -EINVAL;
}

static int read_field(const struct field *field, void *object, const char *text)
{
    void *at = (char *)object + field->offset;
    switch (field->type) {
    case FIELD_SIZE:
        return parse_size(text, at);
    case FIELD_DURATION:
        return parse_duration(text, at);
    case FIELD_REAL:
        return parse_double(text, 0, field->max, at);
    case FIELD_INT:
        return read_int(text, field->max, at);
    case FIELD_READING:
        *(struct reading *)at = reading_of(0);
        return parse_double(text, 0, field->max, &((struct reading *)at)->value);
    case FIELD_TIME:
        return read_time(text, at);
    case FIELD_NEED_ESTIMATED:
        return read_need(NEED_ESTIMATED, text, at);
    case FIELD_NEED_DECLARED:
        return read_need(NEED_DECLARED, text, at);
    case FIELD_POLICY:
        return read_policy(text, at);
    case FIELD_PRIORITY:
        return priority_parse(text, at);
    case FIELD_TEXT:
        return span_copy(span_of(text), at, (size_t)field->max) ? 0 : -EINVAL;
    }
    return -EINVAL;
}

/* Sets the named field of the object. Returns 0 or -EINVAL. */
static int read_named_field(const struct field *fields, size_t n, void *object, const char *name,
    const char *text, struct fault *fault)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(fields[i].name, name) == 0)
            return read_field(&fields[i], object, text) < 0 ? refuse_word(fault, text) : 0;
    return refuse_word(fault, name);
}

/* ---- GPUs and settings ---- */

/* The GPUs of a line, by its first word. */
static const struct gpu_line {
    const char *word;
    bool are_instances, share_memory, is_node;
} gpu_lines[] = {
    {"gpus", false, false, false},
    {"mig", true, false, false},
    {"mig-shared", true, true, false},
    {"node", false, false, true},
};

static const struct gpu_line *find_gpu_line(const char *word)
{
    for (size_t i = 0; i < ARRAY_SIZE(gpu_lines); i++)
        if (strcmp(gpu_lines[i].word, word) == 0)
            return &gpu_lines[i];
    return NULL;
}

/* "2x40GiB", "2x40GiB:A100", "2x40GiB:A100@700" with the speed of the kind */
static int read_gpus(
    struct scenario *scenario, const char *word, const struct gpu_line *line, struct fault *fault)
{
    char count_text[16] = "", size_text[32] = "";
    const char *x = strchr(word, 'x');
    int left = SCENARIO_GPUS_MAX - scenario->n_gpus;
    int64_t count, bytes, speed = 0;
    if (!x || x - word >= (int)sizeof count_text)
        return refuse_word(fault, word);
    memcpy(count_text, word, (size_t)(x - word));
    const char *kind = strchr(x, ':'), *speed_text = kind ? strchr(kind, '@') : NULL;
    struct span size = {x + 1, kind ? (size_t)(kind - x - 1) : strlen(x + 1)};
    if (!span_copy(size, size_text, sizeof size_text) ||
        parse_int64(count_text, 1, left < NODE_INDEX_MAX ? left : NODE_INDEX_MAX, &count) < 0 ||
        parse_size(size_text, &bytes) < 0 ||
        (speed_text && parse_int64(speed_text + 1, 1, SCENARIO_SPEED_MAX, &speed) < 0))
        return refuse_word(fault, word);
    int domain = line->share_memory ? scenario->n_gpus + 1 : 0;
    scenario->n_nodes += line->is_node;
    for (int64_t i = 0; i < count; i++) {
        int index = scenario->n_gpus++;
        struct gpu_identity *gpu = &scenario->gpus[index];
        gpu->is_place = true;
        gpu->is_mig_instance = line->are_instances;
        gpu->memory_domain = domain;
        gpu->mem_total_bytes = bytes;
        gpu->node = scenario->n_nodes;
        gpu->index_on_node = (int)i;
        gpu->power_limit_w = SCENARIO_LIMIT_W;
        snprintf(gpu->uuid, sizeof gpu->uuid, "GPU-%d", index);
        snprintf(gpu->label, sizeof gpu->label, "%d", index);
        gpu->speed = (int)speed;
        snprintf(gpu->name, sizeof gpu->name, "%.*s", kind ? (int)strcspn(kind + 1, "@") : 0,
            kind ? kind + 1 : "");
    }
    return 0;
}

/* "nvlink": all GPUs so far are joined by it */
static int read_links(struct scenario *scenario)
{
    for (int i = 0; i < scenario->n_gpus; i++)
        memset(scenario->gpus[i].distances, 'A', (size_t)i);
    return 0;
}

/* A story may have times that collocd does not take, such as memory that settles at once. */
static int read_setting(
    struct core_settings *settings, const char *name, const char *value, struct fault *fault)
{
    const struct core_setting *setting = core_setting_find(name);
    if (!setting)
        return refuse_word(fault, name);
    void *at = core_setting_at(setting, settings);
    int r = setting->kind->type == SETTING_TIME
                ? parse_duration(value, at)
                : setting_parse(setting->kind, value, at, setting->size);
    return r < 0 ? refuse_word(fault, value) : 0;
}

/* ---- tasks ---- */

static int read_task_flag(struct scenario_task *task, const char *word, struct fault *fault)
{
#define FLAG(field) offsetof(struct scenario_task, field)
    static const struct {
        const char *name;
        size_t offset; /* of a bool */
    } flags[] = {{"exclusive", FLAG(request.exclusive)}, {"slot", FLAG(request.takes_turns)},
        {"held", FLAG(held)}, {"deaf", FLAG(deaf)}, {"unlaunchable", FLAG(unlaunchable)},
        {"unsuspendable", FLAG(unsuspendable)}, {"unanswered", FLAG(unanswered)},
        {"once", FLAG(request.once)}, {"unhooked", FLAG(unhooked)}, {"uncarried", FLAG(uncarried)},
        {"ranks", FLAG(are_ranks)}, {"without-library", FLAG(request.without_library)},
        {"limited", FLAG(request.limited)}, {"service", FLAG(request.service.is_service)}};
#undef FLAG
    for (size_t i = 0; i < ARRAY_SIZE(flags); i++) {
        if (strcmp(flags[i].name, word) == 0) {
            *(bool *)((char *)task + flags[i].offset) = true;
            return 0;
        }
    }
    if (strcmp(word, "pending") == 0)
        task->request.need.kind = NEED_PENDING;
    else if (strcmp(word, "mps") == 0)
        task->request.sharing = SHARING_MPS;
    else if (strcmp(word, "auto") == 0)
        task->request.sharing = SHARING_AUTO;
    else
        return refuse_word(fault, word);
    return 0;
}

/* "held", or "takes=6GiB" */
static int read_task_option(struct scenario_task *task, char *word, struct fault *fault)
{
#define OPTION(field) offsetof(struct scenario_task, field)
    static const struct field fields[] = {
        {"takes", FIELD_SIZE, OPTION(takes_bytes), 0},
        {"rise", FIELD_DURATION, OPTION(rise_us), 0},
        {"sleeps", FIELD_DURATION, OPTION(sleeps_us), 0},
        {"runs", FIELD_DURATION, OPTION(runs_us), 0},
        {"smact", FIELD_REAL, OPTION(smact), 1},
        {"exits", FIELD_INT, OPTION(exit_code), 255},
        {"context-refusals", FIELD_INT, OPTION(context_refusals), 1000000},
        {"gpus", FIELD_INT, OPTION(request.gpus), 1000},
        {"nodes", FIELD_INT, OPTION(request.nodes), 1000},
        {"cpus", FIELD_INT, OPTION(request.host.cpus), 10000},
        {"host", FIELD_SIZE, OPTION(request.host.memory_bytes), 0},
        {"kind", FIELD_TEXT, OPTION(gpu_kind), TASK_GPU_KIND_SIZE},
        {"user", FIELD_INT, OPTION(uid), 1000000},
        {"need", FIELD_NEED_ESTIMATED, OPTION(request.need), 0},
        {"declared", FIELD_NEED_DECLARED, OPTION(request.need), 0},
        {"policy", FIELD_POLICY, OPTION(request.policy), 0},
        {"limit", FIELD_DURATION, OPTION(request.time_limit_us), 0},
        {"says", FIELD_READING, OPTION(request.expect.smact), 1},
        {"busy", FIELD_READING, OPTION(request.expect.gract), 1},
        {"lasts", FIELD_TIME, OPTION(request.expect.time_us), 0},
        {"begin", FIELD_DURATION, OPTION(request.begin_us), 0},
        {"priority", FIELD_PRIORITY, OPTION(request.priority), 0},
        {"p99", FIELD_DURATION, OPTION(request.service.p99_us), 0},
        {"latency", FIELD_DURATION, OPTION(latency_us), 0},
        {"promise", FIELD_READING, OPTION(request.slowdown_max), 100},
        {"slows", FIELD_REAL, OPTION(slows), 100},
        {"step", FIELD_DURATION, OPTION(step_us), 0},
    };
#undef OPTION
    char *value = strchr(word, '=');
    if (!value)
        return read_task_flag(task, word, fault);
    *value++ = '\0';
    return read_named_field(fields, ARRAY_SIZE(fields), task, word, value, fault);
}

/* ---- what happens ---- */

static int add_input(
    struct scenario *scenario, const struct scenario_input *input, struct fault *fault)
{
    if (scenario->n_inputs == SCENARIO_INPUTS_MAX)
        return fault_set(fault, EINVAL, "more than %d inputs", SCENARIO_INPUTS_MAX);
    scenario->inputs[scenario->n_inputs++] = *input;
    return 0;
}

/* The first task of the name; 0: there is none. */
static uint64_t find_task(const struct scenario *scenario, const char *name)
{
    for (int i = 1; i <= scenario->n_tasks; i++)
        if (strcmp(scenario->tasks[i].name, name) == 0)
            return (uint64_t)i;
    return 0;
}

/* "after=ok:a,any:b" */
static int read_after(
    const struct scenario *scenario, struct scenario_task *task, char *word, struct fault *fault)
{
    char *save = NULL;
    for (char *item = strtok_r(word + strlen("after="), ",", &save); item;
         item = strtok_r(NULL, ",", &save)) {
        char *name = strchr(item, ':');
        int kind = 0;
        if (!name || task->request.n_after == SCENARIO_AFTER_MAX)
            return refuse_word(fault, word);
        *name++ = '\0';
        while (kind < DEPENDENCY_KINDS && strcmp(dependency_kind_name(kind), item) != 0)
            kind++;
        uint64_t id = find_task(scenario, name);
        if (kind == DEPENDENCY_KINDS || id == 0)
            return refuse_word(fault, word);
        task->after[task->request.n_after++] = (struct dependency){
            (enum dependency_kind)kind, id, id, false};
    }
    task->request.after = task->after;
    return 0;
}

/* "t=0 submit a takes=6GiB" */
static int read_submit(
    struct scenario *scenario, int64_t time_us, const struct line_words *words, struct fault *fault)
{
    if (scenario->n_tasks == SCENARIO_TASKS_MAX)
        return fault_set(fault, EINVAL, "more than %d tasks", SCENARIO_TASKS_MAX);
    struct scenario_task *task = &scenario->tasks[++scenario->n_tasks];
    task->request.gpus = 1;
    task->rise_us = RISE_DEFAULT_US;
    snprintf(task->name, sizeof task->name, "%s", words->word[2]);
    for (int i = 3; i < words->n; i++) {
        char *word = words->word[i];
        int r = strncmp(word, "after=", 6) == 0 ? read_after(scenario, task, word, fault)
                                                : read_task_option(task, word, fault);
        if (r < 0)
            return r;
    }
    struct scenario_input input = {.kind = INPUT_EVENT,
        .time_us = time_us,
        .event = {.kind = EVENT_SUBMIT, .time_us = time_us, .task = (uint64_t)scenario->n_tasks}};
    input.event.submit.uid = (uint32_t)task->uid;
    input.event.submit.held = task->held;
    input.event.submit.request = task->request;
    input.event.submit.request.gpu_kind = *task->gpu_kind ? task->gpu_kind : NULL;
    return add_input(scenario, &input, fault);
}

/* "t=5 cancel a", "t=5 why a" */
static int read_task_event(struct scenario *scenario, struct scenario_input *input,
    const struct line_words *words, struct fault *fault)
{
    input->event.time_us = input->time_us;
    input->event.task = find_task(scenario, words->word[2]);
    return input->event.task ? add_input(scenario, input, fault)
                             : refuse_word(fault, words->word[2]);
}

/* "t=5 estimate a 6GiB", "t=5 estimate a 6GiB 0.4", "t=5 estimate a unknown 0.4" */
static int read_estimate(struct scenario *scenario, struct scenario_input *input,
    const struct line_words *words, struct fault *fault)
{
    if (words->n < 4)
        return fault_set(fault, EINVAL, "estimate needs a task and a size");
    struct reading *smact = &input->event.estimate.smact;
    if (strcmp(words->word[3], "unknown") != 0 &&
        read_need(NEED_ESTIMATED, words->word[3], &input->event.estimate.need) < 0)
        return refuse_word(fault, words->word[3]);
    if (words->n > 4 && parse_double(words->word[4], 0, 1, &smact->value) < 0)
        return refuse_word(fault, words->word[4]);
    smact->valid = words->n > 4;
    return read_task_event(scenario, input, words, fault);
}

/* "t=5 memory-wait a 6GiB", or "t=6 memory-wait a 6GiB again": the driver has refused the try */
static int read_memory_wait(struct scenario *scenario, struct scenario_input *input,
    const struct line_words *words, struct fault *fault)
{
    if (words->n < 4)
        return fault_set(fault, EINVAL, "memory-wait needs a task and a size");
    if (parse_size(words->word[3], &input->event.memory_wait.bytes) < 0)
        return refuse_word(fault, words->word[3]);
    input->event.memory_wait.is_again = words->n > 4;
    if (words->n > 4 && strcmp(words->word[4], "again") != 0)
        return refuse_word(fault, words->word[4]);
    return read_task_event(scenario, input, words, fault);
}

/* "t=5 idle a 600s" */
static int read_idle(struct scenario *scenario, struct scenario_input *input,
    const struct line_words *words, struct fault *fault)
{
    if (words->n < 4)
        return fault_set(fault, EINVAL, "idle needs a task and a time");
    if (parse_duration(words->word[3], &input->event.idle_us) < 0)
        return refuse_word(fault, words->word[3]);
    return read_task_event(scenario, input, words, fault);
}

/* "limit=60s" */
static int read_change(struct task_update *update, char *word, struct fault *fault)
{
#define UPDATE(field) offsetof(struct task_update, field)
    static const struct field fields[] = {
        {"limit", FIELD_DURATION, UPDATE(time_limit_us), 0},
        {"priority", FIELD_PRIORITY, UPDATE(priority), 0},
        {"declared", FIELD_NEED_DECLARED, UPDATE(need), 0},
        {"begin", FIELD_DURATION, UPDATE(begin_us), 0},
    };
    static const size_t flags[] = {
        UPDATE(sets_time_limit), UPDATE(sets_priority), UPDATE(sets_need), UPDATE(sets_begin)};
#undef UPDATE
    char *value = strchr(word, '=');
    if (!value)
        return refuse_word(fault, word);
    *value++ = '\0';
    for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
        if (strcmp(fields[i].name, word) == 0)
            *(bool *)((char *)update + flags[i]) = true;
    return read_named_field(fields, ARRAY_SIZE(fields), update, word, value, fault);
}

/* "t=5 update a limit=60s priority=high", "t=5 update a after=ok:b" */
static int read_update(struct scenario *scenario, struct scenario_input *input,
    const struct line_words *words, struct fault *fault)
{
    struct task_update *update = &input->event.update;
    uint64_t id = find_task(scenario, words->word[2]);
    struct scenario_task *task = &scenario->tasks[id];
    int before = task->request.n_after; /* those of its submission, which has its own copy */
    for (int i = 3; i < words->n; i++) {
        char *word = words->word[i];
        bool is_after = strncmp(word, "after=", 6) == 0;
        update->sets_after |= is_after;
        if (is_after && id == 0)
            return refuse_word(fault, word);
        int r = is_after ? read_after(scenario, task, word, fault)
                         : read_change(update, word, fault);
        if (r < 0)
            return r;
    }
    update->after = task->after + before;
    update->n_after = task->request.n_after - before;
    return read_task_event(scenario, input, words, fault);
}

/* "1,2" */
static int read_users(char *text, struct advance *advance, struct fault *fault)
{
    char *save = NULL;
    for (char *word = strtok_r(text, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
        int uid = 0;
        if (advance->n_users == ADVANCE_USERS_MAX || read_int(word, 1000000, &uid) < 0)
            return refuse_word(fault, text);
        advance->users[advance->n_users++] = (uint32_t)uid;
    }
    return 0;
}

/* "t=5 reserve 1 gpus=2 from=60s until=120s users=1,2" */
static int read_reserve(struct scenario *scenario, struct scenario_input *input,
    const struct line_words *words, struct fault *fault)
{
#define RESERVE(field) offsetof(struct advance, field)
    static const struct field fields[] = {
        {"gpus", FIELD_INT, RESERVE(gpus), 1000},
        {"from", FIELD_DURATION, RESERVE(from_us), 0},
        {"until", FIELD_DURATION, RESERVE(until_us), 0},
    };
#undef RESERVE
    struct advance *advance = &input->event.reserve;
    int id = 0;
    if (read_int(words->word[2], 1000, &id) < 0)
        return refuse_word(fault, words->word[2]);
    advance->id = (uint64_t)id;
    for (int i = 3; i < words->n; i++) {
        char *word = words->word[i], *value = strchr(word, '=');
        if (!value)
            return refuse_word(fault, word);
        *value++ = '\0';
        int r = strcmp(word, "users") == 0
                    ? read_users(value, advance, fault)
                    : read_named_field(fields, ARRAY_SIZE(fields), advance, word, value, fault);
        if (r < 0)
            return r;
    }
    input->event.time_us = input->time_us;
    return add_input(scenario, input, fault);
}

/* "t=5 unreserve 1" */
static int read_unreserve(struct scenario *scenario, struct scenario_input *input,
    const struct line_words *words, struct fault *fault)
{
    int id = 0;
    if (read_int(words->word[2], 1000, &id) < 0)
        return refuse_word(fault, words->word[2]);
    input->event.unreserve = (uint64_t)id;
    input->event.time_us = input->time_us;
    return add_input(scenario, input, fault);
}

/* "t=5 move a gpu1" */
static int read_move(struct scenario *scenario, struct scenario_input *input,
    const struct line_words *words, struct fault *fault)
{
    if (words->n < 4 || strncmp(words->word[3], "gpu", 3) != 0 ||
        read_int(words->word[3] + 3, scenario->n_gpus - 1, &input->to_gpu) < 0)
        return fault_set(fault, EINVAL, "move needs a task and a GPU");
    return read_task_event(scenario, input, words, fault);
}

/* "t=5 stop-cost gpu1 carrier 600ms 188ms 104ms": fixed, and for each GiB out and back */
static int read_stop_cost(struct scenario *scenario, struct scenario_input *input,
    const struct line_words *words, struct fault *fault)
{
    struct suspension_cost *cost = &input->event.suspension_cost.cost;
    int gpu = 0, way = SUSPENSION_BY_DRIVER;
    if (words->n != 7 || strncmp(words->word[2], "gpu", 3) != 0 ||
        read_int(words->word[2] + 3, scenario->n_gpus - 1, &gpu) < 0 ||
        parse_duration(words->word[4], &cost->fixed_us) < 0 ||
        parse_duration(words->word[5], &cost->suspend_us_per_gib) < 0 ||
        parse_duration(words->word[6], &cost->resume_us_per_gib) < 0)
        return fault_set(fault, EINVAL, "stop-cost needs a GPU, a way and three times");
    while (way < SUSPENSION_WAYS && strcmp(suspension_way_name(way), words->word[3]) != 0)
        way++;
    if (way == SUSPENSION_WAYS)
        return refuse_word(fault, words->word[3]);
    input->event.suspension_cost.way = way;
    input->event.suspension_cost.of_gpu = gpu + 1;
    input->event.time_us = input->time_us;
    return add_input(scenario, input, fault);
}

/* "t=5 set preempt yes" */
static int read_reload(struct scenario *scenario, struct scenario_input *input,
    const struct line_words *words, struct fault *fault)
{
    int n = scenario->n_reloads;
    if (words->n != 4 || n == SCENARIO_RELOADS_MAX)
        return fault_set(
            fault, EINVAL, "set needs a name and a value, at most %d times", SCENARIO_RELOADS_MAX);
    scenario->reloads[n] = n > 0 ? scenario->reloads[n - 1] : scenario->settings;
    input->reload = scenario->n_reloads++;
    int r = read_setting(&scenario->reloads[n], words->word[2], words->word[3], fault);
    return r < 0 ? r : add_input(scenario, input, fault);
}

/* "t=5 lost gpu0", "t=5 foreign gpu0 20GiB" */
static int read_gpu_change(struct scenario *scenario, struct scenario_input *input,
    const struct line_words *words, struct fault *fault)
{
    const char *gpu = words->word[2];
    input->kind = INPUT_GPU;
    if (strncmp(gpu, "gpu", 3) != 0 ||
        read_int(gpu + 3, scenario->n_gpus - 1, &input->change.gpu) < 0)
        return refuse_word(fault, gpu);
    if (words->n > 3 && parse_size(words->word[3], &input->change.external_bytes) < 0)
        return refuse_word(fault, words->word[3]);
    return add_input(scenario, input, fault);
}

static int read_timed(
    struct scenario *scenario, const struct line_words *words, struct fault *fault)
{
    static const struct {
        const char *verb;
        int (*read)(struct scenario *scenario, struct scenario_input *input,
            const struct line_words *words, struct fault *fault);
        struct scenario_input input; /* the members that the verb decides */
    } verbs[] = {
        {"cancel", read_task_event, {.event.kind = EVENT_CANCEL}},
        {"run-again", read_task_event, {.event.kind = EVENT_RUN_AGAIN}},
        {"hold", read_task_event, {.event.kind = EVENT_HOLD}},
        {"release", read_task_event, {.event.kind = EVENT_RELEASE}},
        {"update", read_update, {.event.kind = EVENT_UPDATE}},
        {"reserve", read_reserve, {.event.kind = EVENT_RESERVE}},
        {"unreserve", read_unreserve, {.event.kind = EVENT_UNRESERVE}},
        {"suspend", read_task_event, {.event.kind = EVENT_SUSPEND}},
        {"resume", read_task_event, {.event.kind = EVENT_RESUME}},
        {"move", read_move, {.event.kind = EVENT_MOVE}},
        {"memory-wait", read_memory_wait, {.event.kind = EVENT_MEMORY_WAIT}},
        {"idle", read_idle, {.event.kind = EVENT_IDLE}},
        {"wake", read_task_event, {.event.kind = EVENT_WAKE}},
        {"memory-wait-end", read_task_event, {.event.kind = EVENT_MEMORY_WAIT_END}},
        {"estimate", read_estimate, {.event.kind = EVENT_ESTIMATE}},
        {"why", read_task_event, {.kind = INPUT_WHY}},
        {"set", read_reload, {.kind = INPUT_RELOAD}},
        {"stop-cost", read_stop_cost, {.event.kind = EVENT_SUSPENSION_COST}},
        {"foreign", read_gpu_change, {.change.sets_external = true}},
        {"found", read_gpu_change, {.change.clears = GPU_TROUBLE_ALL}},
        {"lost", read_gpu_change, {.change.sets = GPU_TROUBLE_LOST}},
        {"faulty", read_gpu_change, {.change.sets = GPU_TROUBLE_FAULTY}},
        {"silent", read_gpu_change, {.change.sets = GPU_TROUBLE_SILENT}},
        {"blind", read_gpu_change, {.change.sets = GPU_TROUBLE_BLIND}},
        {"nosmact", read_gpu_change, {.change.sets = GPU_TROUBLE_NO_SMACT}},
        {"noprocs", read_gpu_change, {.change.sets = GPU_TROUBLE_NO_PROCESS_LIST}},
        {"hides", read_gpu_change, {.change.sets = GPU_TROUBLE_HIDES_PROCESSES}},
    };
    double seconds;
    if (parse_double(words->word[0] + 2, 0, TIME_MAX_S, &seconds) < 0)
        return refuse_word(fault, words->word[0]);
    if (words->n < 3)
        return fault_set(
            fault, EINVAL, "a time needs a verb and a task, a GPU or a setting after it");
    int64_t time_us = (int64_t)(seconds * (double)SECOND_US);
    if (strcmp(words->word[1], "submit") == 0)
        return read_submit(scenario, time_us, words, fault);
    for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
        if (strcmp(verbs[i].verb, words->word[1]) != 0)
            continue;
        struct scenario_input input = verbs[i].input;
        input.time_us = time_us;
        return verbs[i].read(scenario, &input, words, fault);
    }
    return refuse_word(fault, words->word[1]);
}

/* ---- lines ---- */

static int read_line(struct scenario *scenario, struct span line, struct fault *fault)
{
    struct line_words words;
    int r = split_line(line, &words, fault);
    if (r < 0 || words.n == 0)
        return r;
    const char *first = words.word[0], *second = words.n > 1 ? words.word[1] : "";
    if (strncmp(first, "t=", 2) == 0)
        return read_timed(scenario, &words, fault);
    if (words.n == 1 && strcmp(first, "nvlink") == 0)
        return read_links(scenario);
    if (words.n < 2)
        return refuse_word(fault, first);
    const struct gpu_line *gpus = find_gpu_line(first);
    if (gpus)
        return read_gpus(scenario, second, gpus, fault);
    if (strcmp(first, "policy") == 0)
        return read_policy(second, &scenario->settings.policy) < 0 ? refuse_word(fault, second) : 0;
    if (strcmp(first, "run") == 0)
        return parse_duration(second, &scenario->run_us) < 0 ? refuse_word(fault, second) : 0;
    if (strcmp(first, "set") == 0 && words.n == 3)
        return read_setting(&scenario->settings, second, words.word[2], fault);
    return refuse_word(fault, first);
}

int scenario_parse(
    struct scenario *scenario, struct span text, const char *file_name, struct fault *fault)
{
    struct span line;
    scenario->settings = core_settings_default();
    scenario->settings.policy = &policy_magm;
    for (int number = 1; span_next_line(&text, &line); number++) {
        int r = read_line(scenario, line, fault);
        if (r < 0)
            return fault_prefix(fault, r, "%s:%d", file_name, number);
    }
    if (scenario->n_gpus == 0)
        return fault_set(
            fault, EINVAL, "%s: no GPUs: add a line such as 'gpus 2x40GiB'", file_name);
    return 0;
}
