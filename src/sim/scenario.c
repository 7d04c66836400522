/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/scenario.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "policy/policy.h"
#include "sim/driver.h"
#include "sim/trace.h"

#define SAMPLE_US   SECOND_US
#define RUN_MAX_US  (86400 * SECOND_US)
#define DEAF_US     (5 * SECOND_US)
#define TASKS_MAX   256
#define GPUS_MAX    256
#define COMMAND_MAX 16 /* words of a line */

/* Events of this world's own. */
enum { WAKE_SAMPLES = EVENT_KINDS, WAKE_FINISH, WAKE_COMMAND, WAKE_INPUT, WAKE_WHY };

struct pretend_task {
    char name[32];
    int64_t takes_bytes, sleeps_us, rise_us, runs_us;
    double smact;
    int exit_code;
    bool deaf, unlaunchable;
    int attempt; /* running: the attempt; 0 otherwise */
    int64_t started_us;
};

struct pretend_gpu {
    struct gpu_identity id;
    int64_t foreign_bytes;
    bool lost, faulty, silent, blind, lists_no_processes, hides_processes, has_no_smact;
};

struct command {
    char verb[16], target[32];
    int64_t bytes;
};

struct scenario {
    struct pretend_task tasks[TASKS_MAX + 1]; /* by id, from 1 */
    int n_tasks;
    struct pretend_gpu gpus[GPUS_MAX];
    int n_gpus;
    struct gpu_identity identities[GPUS_MAX];
    struct task_memory sampled[TASKS_MAX];
    struct command commands[TASKS_MAX];
    int n_commands;
    struct core_settings settings;
    struct event submissions[2 * TASKS_MAX];
    int n_submissions;
    int64_t run_us;
    struct sim *sim;
    FILE *out;
};

/* ---- the pretend world ---- */

static double taken_by(const struct pretend_task *task, int64_t now_us)
{
    int64_t age_us = now_us - task->started_us - task->sleeps_us;
    if (age_us < 0)
        return 0;
    if (task->rise_us == 0 || age_us >= task->rise_us)
        return (double)task->takes_bytes;
    return (double)task->takes_bytes * (double)age_us / (double)task->rise_us;
}

static int schedule(struct sim *sim, int kind, int64_t time_us, uint64_t task)
{
    struct event event = {.kind = (enum event_kind)kind, .time_us = time_us, .task = task};
    return sim_at(sim, &event);
}

static void finish(
    struct sim *sim, struct pretend_task *pretend, uint64_t id, struct task_exit exit)
{
    struct event event = {
        .kind = EVENT_EXITED, .time_us = sim_now_us(sim), .task = id, .exited = exit};
    pretend->attempt = 0;
    sim_at(sim, &event);
}

static void on_start(void *context, struct sim *sim, const struct task *task)
{
    struct scenario *scenario = context;
    struct pretend_task *pretend = &scenario->tasks[task->id];
    pretend->started_us = sim_now_us(sim);
    if (pretend->unlaunchable) {
        finish(sim, pretend, task->id, (struct task_exit){.failure = FAILURE_LAUNCH, .code = -1});
        return;
    }
    pretend->attempt = task->attempts;
    schedule(sim, EVENT_STARTED, sim_now_us(sim), task->id);
    if (pretend->runs_us) {
        struct event event = {
            .kind = (enum event_kind)WAKE_FINISH, .time_us = sim_now_us(sim) + pretend->runs_us};
        event.task = task->id;
        event.exited.code = task->attempts; /* of which attempt: a later one must not end of it */
        sim_at(sim, &event);
    }
}

static void on_kill(void *context, struct sim *sim, const struct task *task)
{
    struct scenario *scenario = context;
    struct pretend_task *pretend = &scenario->tasks[task->id];
    bool deaf = pretend->deaf;
    struct task_exit exit = {.failure = task->ending, .code = -1, .signal = deaf ? 9 : 15};
    struct event event = {
        .kind = EVENT_EXITED, .time_us = sim_now_us(sim) + (deaf ? DEAF_US : 0), .task = task->id};
    event.exited = exit;
    if (!deaf)
        pretend->attempt = 0; /* a deaf one keeps its memory until it goes */
    sim_at(sim, &event);
}

static bool is_on(const struct task *task, int gpu)
{
    for (int i = 0; i < task->n_gpus; i++)
        if (task->gpus[i] == gpu)
            return true;
    return false;
}

/* Who asks last crashes: the youngest task on a GPU that is over-full, while it is still taking
 * memory. */
static bool crash_youngest(struct scenario *scenario, int gpu, double used)
{
    struct core *core = sim_core(scenario->sim);
    const struct task *youngest = NULL;
    if (used <= (double)scenario->gpus[gpu].id.mem_total_bytes)
        return false;
    for (const struct task *task = core_next_task(core, 0); task;
         task = core_next_task(core, task->id))
        if (is_on(task, gpu) && scenario->tasks[task->id].attempt &&
            (!youngest || task->started_us >= youngest->started_us))
            youngest = task;
    if (!youngest)
        return false;
    struct task_exit oom = {.failure = FAILURE_GPU_OOM, .code = 1};
    finish(scenario->sim, &scenario->tasks[youngest->id], youngest->id, oom);
    return true;
}

static double measure(
    struct scenario *scenario, int gpu, struct core_sample *sample, double *ret_smact)
{
    struct core *core = sim_core(scenario->sim);
    double used = (double)scenario->gpus[gpu].foreign_bytes;
    *ret_smact = 0;
    sample->n_tasks = 0;
    for (const struct task *task = core_next_task(core, 0); task;
         task = core_next_task(core, task->id)) {
        const struct pretend_task *pretend = &scenario->tasks[task->id];
        double taken = taken_by(pretend, sim_now_us(scenario->sim));
        if (!is_on(task, gpu) || !pretend->attempt)
            continue;
        used += taken;
        *ret_smact += taken > 0 ? pretend->smact : 0;
        sample->tasks[sample->n_tasks++] = (struct task_memory){task->id, reading_of(taken)};
    }
    return used;
}

static void sample_gpu(struct scenario *scenario, int i)
{
    struct pretend_gpu *gpu = &scenario->gpus[i];
    struct event event = {.kind = EVENT_SAMPLE, .time_us = sim_now_us(scenario->sim)};
    struct core_sample *sample = &event.sample;
    *sample = (struct core_sample){
        .gpu = i, .lost = gpu->lost, .faulty = gpu->faulty, .tasks = scenario->sampled};
    double smact, used = measure(scenario, i, sample, &smact);
    if (crash_youngest(scenario, i, used))
        used = measure(scenario, i, sample, &smact);
    if (gpu->silent)
        return;
    smact = smact > 1 ? 1 : smact;
    sample->mem_used_bytes = reading_of(used);
    sample->smact = gpu->blind || gpu->has_no_smact ? READING_NONE : reading_of(smact);
    sample->utilisation = gpu->blind ? READING_NONE : reading_of(smact > 0 ? 0.5 + smact / 2 : 0);
    sample->foreign_processes = gpu->lists_no_processes ? READING_NONE
                                                        : reading_of(gpu->foreign_bytes ? 1 : 0);
    if (gpu->lists_no_processes || gpu->hides_processes)
        sample->n_tasks = 0;

    /* Stepped at once, not scheduled: the list of tasks is scratch. */
    sim_feed(scenario->sim, &event);
}

static struct pretend_gpu *gpu_named(struct scenario *scenario, const char *name)
{
    int64_t i;
    if (strncmp(name, "gpu", 3) != 0 || parse_int64(name + 3, 0, scenario->n_gpus - 1, &i) < 0)
        return NULL;
    return &scenario->gpus[i];
}

static void carry_out(struct scenario *scenario, const struct command *command)
{
    struct pretend_gpu *gpu = gpu_named(scenario, command->target);
    const char *verb = command->verb;
    if (strcmp(verb, "foreign") == 0)
        gpu->foreign_bytes = command->bytes;
    else if (strcmp(verb, "lost") == 0)
        gpu->lost = true;
    else if (strcmp(verb, "faulty") == 0)
        gpu->faulty = true;
    else if (strcmp(verb, "found") == 0)
        gpu->lost = gpu->faulty = gpu->silent = gpu->blind = gpu->lists_no_processes =
            gpu->hides_processes = gpu->has_no_smact = false;
    else if (strcmp(verb, "silent") == 0)
        gpu->silent = true;
    else if (strcmp(verb, "blind") == 0)
        gpu->blind = true;
    else if (strcmp(verb, "nosmact") == 0)
        gpu->has_no_smact = true;
    else if (strcmp(verb, "hides") == 0)
        gpu->hides_processes = true;
    else
        gpu->lists_no_processes = true;
}

static void print_line(struct scenario *scenario, const struct event *event)
{
    char line[2048];
    if (trace_format(
            sim_core(scenario->sim), event, scenario->tasks[event->task].name, line, sizeof line))
        fprintf(scenario->out, "%s\n", line);
}

static void print_why(struct scenario *scenario, const struct event *why)
{
    const struct core *core = sim_core(scenario->sim);
    const struct task *task = core_task(core, why->task);
    char text[1024], time[32];
    core_explain(core, why->task, why->time_us, text, sizeof text);
    fprintf(scenario->out, "t=%s why %s: %s %s%s%s\n",
        trace_format_time(why->time_us, time, sizeof time), scenario->tasks[why->task].name,
        task ? task_state_word(task->state) : "unknown", core_reason_word(core, why->task),
        text[0] ? ": " : "", text);
}

/* What a user does: as the daemon does, a request that can never be met is refused. */
static void feed_input(struct scenario *scenario, const struct event *input)
{
    struct fault fault;
    char time[32];
    const struct core *core = sim_core(scenario->sim);
    const char *name = scenario->tasks[input->task].name;
    trace_format_time(input->time_us, time, sizeof time);
    if ((int)input->kind == WAKE_WHY)
        print_why(scenario, input);
    else if (input->kind == EVENT_SUBMIT &&
             core_check_request(core, &input->submit.request, &fault) < 0)
        fprintf(scenario->out, "t=%s refused %s: %s\n", time, name, fault.text);
    else if (sim_feed(scenario->sim, input) > 0)
        fprintf(scenario->out, "t=%s refused %s %s\n", time, event_name(input->kind), name);
}

static void on_wake(void *context, struct sim *sim, const struct event *event)
{
    struct scenario *scenario = context;
    struct pretend_task *pretend = &scenario->tasks[0];
    if ((int)event->kind == WAKE_FINISH)
        pretend = &scenario->tasks[event->task];
    switch ((int)event->kind) {
    case WAKE_SAMPLES:
        for (int i = 0; i < scenario->n_gpus; i++)
            sample_gpu(scenario, i);
        schedule(sim, WAKE_SAMPLES, event->time_us + SAMPLE_US, 0);
        break;
    case WAKE_FINISH:
        if (pretend->attempt == event->exited.code) {
            struct task_exit exit = {
                .failure = pretend->exit_code ? FAILURE_PROGRAM : FAILURE_NONE};
            exit.code = pretend->exit_code;
            pretend->attempt = 0;
            sim_feed(sim, &(struct event){.kind = EVENT_EXITED,
                              .time_us = event->time_us,
                              .task = event->task,
                              .exited = exit});
        }
        break;
    case WAKE_COMMAND:
        carry_out(scenario, &scenario->commands[event->task]);
        break;
    case WAKE_INPUT:
        feed_input(scenario, &scenario->submissions[event->task]);
        break;
    }
}

static void on_event(void *context, struct sim *sim, const struct event *event)
{
    print_line(context, event);
}

/* ---- reading the story ---- */

struct words {
    char *word[COMMAND_MAX];
    int n;
    char text[1024];
};

static int split(struct span line, struct words *words, struct fault *fault)
{
    if (!span_copy(line, words->text, sizeof words->text))
        return fault_set(fault, EINVAL, "line too long");
    words->n = 0;
    char *save = NULL;
    for (char *word = strtok_r(words->text, " \t", &save); word;
         word = strtok_r(NULL, " \t", &save)) {
        if (word[0] == '#')
            return 0;
        if (words->n == COMMAND_MAX)
            return fault_set(fault, EINVAL, "more than %d words", COMMAND_MAX);
        words->word[words->n++] = word;
    }
    return 0;
}

static int bad(struct fault *fault, const char *word)
{
    return fault_set(fault, EINVAL, "cannot make sense of '%s'", word);
}

/* "2x40GiB" */
static int read_gpus(
    struct scenario *scenario, const char *word, bool instances, struct fault *fault)
{
    char count_text[16] = "";
    const char *x = strchr(word, 'x');
    int64_t count, bytes;
    if (!x || x - word >= (int)sizeof count_text)
        return bad(fault, word);
    memcpy(count_text, word, (size_t)(x - word));
    if (parse_int64(count_text, 1, GPUS_MAX - scenario->n_gpus, &count) < 0 ||
        parse_size(x + 1, &bytes) < 0)
        return bad(fault, word);
    for (int64_t i = 0; i < count; i++) {
        struct gpu_identity *id = &scenario->gpus[scenario->n_gpus].id;
        id->is_place = true;
        id->is_mig_instance = instances;
        id->mem_total_bytes = bytes;
        snprintf(id->uuid, sizeof id->uuid, "GPU-%d", scenario->n_gpus);
        snprintf(id->label, sizeof id->label, "%d", scenario->n_gpus);
        scenario->n_gpus++;
    }
    return 0;
}

static int read_setting(
    struct core_settings *settings, const char *name, const char *value, struct fault *fault)
{
    struct {
        const char *name;
        int64_t *us, *bytes;
    } const table[] = {
        {"min-free", NULL, &settings->conditions.min_free_bytes},
        {"recovery-step", NULL, &settings->recovery_step_bytes},
        {"margin", NULL, &settings->conditions.margin_bytes},
        {"window", &settings->window_us, NULL},
        {"settle", &settings->settle_us, NULL},
        {"settle-max", &settings->settle_max_us, NULL},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(name, table[i].name) == 0)
            return (table[i].us ? parse_duration(value, table[i].us)
                                : parse_size(value, table[i].bytes)) < 0
                       ? bad(fault, value)
                       : 0;
    int64_t number;
    if (strcmp(name, "slowdown-max") == 0)
        return parse_double(value, 1, 1000, &settings->conditions.slowdown_max) < 0
                   ? bad(fault, value)
                   : 0;
    if (strcmp(name, "smact-max") == 0)
        return parse_double(value, 0, 1, &settings->conditions.smact_max) < 0 ? bad(fault, value)
                                                                              : 0;
    if (parse_int64(value, 0, 1000, &number) < 0)
        return bad(fault, value);
    if (strcmp(name, "recoveries") == 0)
        settings->recoveries_max = (int)number;
    else if (strcmp(name, "tasks-per-gpu") == 0)
        settings->conditions.tasks_per_gpu_max = (int)number;
    else
        return bad(fault, name);
    return 0;
}

static int read_need(struct need *need, enum need_kind kind, const char *value)
{
    need->kind = kind;
    return parse_size(value, &need->bytes);
}

static int read_task_flag(
    struct pretend_task *pretend, struct event *event, const char *word, struct fault *fault)
{
    if (strcmp(word, "exclusive") == 0)
        event->submit.request.exclusive = true;
    else if (strcmp(word, "held") == 0)
        event->submit.held = true;
    else if (strcmp(word, "pending") == 0)
        event->submit.request.need.kind = NEED_PENDING;
    else if (strcmp(word, "deaf") == 0)
        pretend->deaf = true;
    else if (strcmp(word, "unlaunchable") == 0)
        pretend->unlaunchable = true;
    else if (strcmp(word, "mps") == 0)
        event->submit.request.sharing = SHARING_MPS;
    else if (strcmp(word, "auto") == 0)
        event->submit.request.sharing = SHARING_AUTO;
    else
        return bad(fault, word);
    return 0;
}

static int read_task_word(
    struct pretend_task *pretend, struct event *event, char *word, struct fault *fault)
{
    struct task_request *request = &event->submit.request;
    char *value = strchr(word, '=');
    int64_t number = 0;
    int r;
    if (!value)
        return read_task_flag(pretend, event, word, fault);
    *value++ = '\0';
    if (strcmp(word, "takes") == 0)
        r = parse_size(value, &pretend->takes_bytes);
    else if (strcmp(word, "rise") == 0)
        r = parse_duration(value, &pretend->rise_us);
    else if (strcmp(word, "runs") == 0)
        r = parse_duration(value, &pretend->runs_us);
    else if (strcmp(word, "lasts") == 0)
        r = parse_duration(value, &request->expect.time_us);
    else if (strcmp(word, "says") == 0) {
        request->expect.smact = reading_of(0);
        r = parse_double(value, 0, 1, &request->expect.smact.value);
    } else if (strcmp(word, "sleeps") == 0)
        r = parse_duration(value, &pretend->sleeps_us);
    else if (strcmp(word, "limit") == 0)
        r = parse_duration(value, &request->time_limit_us);
    else if (strcmp(word, "smact") == 0)
        r = parse_double(value, 0, 1, &pretend->smact);
    else if (strcmp(word, "need") == 0)
        r = read_need(&request->need, NEED_ESTIMATED, value);
    else if (strcmp(word, "declared") == 0)
        r = read_need(&request->need, NEED_DECLARED, value);
    else if (strcmp(word, "policy") == 0)
        r = (request->policy = policy_find(value)) ? 0 : -EINVAL;
    else if (strcmp(word, "gpus") == 0 && (r = parse_int64(value, 0, 1000, &number)) == 0)
        request->gpus = (int)number;
    else if (strcmp(word, "exits") == 0 && (r = parse_int64(value, 0, 255, &number)) == 0)
        pretend->exit_code = (int)number;
    else
        r = -EINVAL;
    return r < 0 ? bad(fault, value) : 0;
}

static int read_submit(
    struct scenario *scenario, int64_t time_us, const struct words *words, struct fault *fault)
{
    if (scenario->n_tasks == TASKS_MAX || words->n < 3)
        return fault_set(
            fault, EINVAL, "submit wants a name, and there may be %d tasks", TASKS_MAX);
    struct pretend_task *pretend = &scenario->tasks[++scenario->n_tasks];
    struct event event = {
        .kind = EVENT_SUBMIT, .time_us = time_us, .task = (uint64_t)scenario->n_tasks};
    event.submit.request.gpus = 1;
    pretend->rise_us = 5 * SECOND_US;
    snprintf(pretend->name, sizeof pretend->name, "%s", words->word[2]);
    for (int i = 3; i < words->n; i++) {
        int r = read_task_word(pretend, &event, words->word[i], fault);
        if (r < 0)
            return r;
    }
    scenario->submissions[scenario->n_submissions++] = event;
    return 0;
}

static uint64_t task_named(const struct scenario *scenario, const char *name)
{
    for (int i = 1; i <= scenario->n_tasks; i++)
        if (strcmp(scenario->tasks[i].name, name) == 0)
            return (uint64_t)i;
    return 0;
}

/* "cancel a", "estimate a 6GiB": events of one task. */
static int read_task_event(struct scenario *scenario, int64_t time_us, enum event_kind kind,
    const struct words *words, struct fault *fault)
{
    struct event event = {
        .kind = kind, .time_us = time_us, .task = task_named(scenario, words->word[2])};
    if (!event.task)
        return bad(fault, words->word[2]);
    if (kind == EVENT_ESTIMATE) {
        event.estimate.kind = NEED_ESTIMATED;
        if (words->n < 4 || parse_size(words->word[3], &event.estimate.bytes) < 0)
            return bad(fault, "estimate");
    }
    scenario->submissions[scenario->n_submissions++] = event;
    return 0;
}

static int read_gpu_command(
    struct scenario *scenario, int64_t time_us, const struct words *words, struct fault *fault)
{
    static const char *const verbs[] = {
        "foreign", "lost", "faulty", "found", "silent", "blind", "nosmact", "noprocs", "hides"};
    struct command *command = &scenario->commands[scenario->n_commands];
    bool known = false;
    for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
        known |= strcmp(words->word[1], verbs[i]) == 0;
    if (!known || !gpu_named(scenario, words->word[2]))
        return bad(fault, words->word[known ? 2 : 1]);
    if (words->n > 3 && parse_size(words->word[3], &command->bytes) < 0)
        return bad(fault, words->word[3]);
    snprintf(command->verb, sizeof command->verb, "%s", words->word[1]);
    snprintf(command->target, sizeof command->target, "%s", words->word[2]);
    struct event event = {.kind = (enum event_kind)WAKE_COMMAND, .time_us = time_us};
    event.task = (uint64_t)scenario->n_commands++;
    scenario->submissions[scenario->n_submissions++] = event;
    return 0;
}

static int read_timed(struct scenario *scenario, const struct words *words, struct fault *fault)
{
    static const struct {
        const char *verb;
        enum event_kind kind;
    } task_events[] = {{"cancel", EVENT_CANCEL}, {"hold", EVENT_HOLD}, {"release", EVENT_RELEASE},
        {"estimate", EVENT_ESTIMATE}, {"why", (enum event_kind)WAKE_WHY}};
    double seconds;
    if (parse_double(words->word[0] + 2, 0, 1e6, &seconds) < 0 || words->n < 3)
        return bad(fault, words->word[0]);
    if (scenario->n_submissions == 2 * TASKS_MAX || scenario->n_commands == TASKS_MAX)
        return fault_set(fault, EINVAL, "more than %d things happen", TASKS_MAX);
    int64_t time_us = (int64_t)(seconds * (double)SECOND_US);
    if (strcmp(words->word[1], "submit") == 0)
        return read_submit(scenario, time_us, words, fault);
    for (size_t i = 0; i < sizeof task_events / sizeof *task_events; i++)
        if (strcmp(words->word[1], task_events[i].verb) == 0)
            return read_task_event(scenario, time_us, task_events[i].kind, words, fault);
    return read_gpu_command(scenario, time_us, words, fault);
}

static int read_line(struct scenario *scenario, struct span line, struct fault *fault)
{
    struct words words;
    int r = split(line, &words, fault);
    if (r < 0 || words.n == 0)
        return r;
    const char *first = words.word[0];
    if (strncmp(first, "t=", 2) == 0)
        return read_timed(scenario, &words, fault);
    if (words.n < 2)
        return bad(fault, first);
    if (strcmp(first, "gpus") == 0 || strcmp(first, "mig") == 0)
        return read_gpus(scenario, words.word[1], first[0] == 'm', fault);
    if (strcmp(first, "policy") == 0)
        return (scenario->settings.policy = policy_find(words.word[1])) ? 0
                                                                        : bad(fault, words.word[1]);
    if (strcmp(first, "run") == 0)
        return parse_duration(words.word[1], &scenario->run_us) < 0 ? bad(fault, words.word[1]) : 0;
    if (strcmp(first, "set") == 0 && words.n == 3)
        return read_setting(&scenario->settings, words.word[1], words.word[2], fault);
    return bad(fault, first);
}

static int read_story(
    struct scenario *scenario, struct span story, const char *file_name, struct fault *fault)
{
    struct span line;
    for (int number = 1; span_next_line(&story, &line); number++) {
        int r = read_line(scenario, line, fault);
        if (r < 0)
            return fault_prefix(fault, r, "%s:%d", file_name, number);
    }
    if (scenario->n_gpus == 0)
        return fault_set(fault, EINVAL, "%s: no line says which gpus there are", file_name);
    return 0;
}

/* ---- running it ---- */

static bool is_over(const struct scenario *scenario)
{
    const struct core *core = sim_core(scenario->sim);
    for (int i = 0; i < scenario->n_submissions; i++)
        if (scenario->submissions[i].time_us >= sim_now_us(scenario->sim))
            return false;
    for (const struct task *task = core_next_task(core, 0); task;
         task = core_next_task(core, task->id))
        if (!task_state_is_done(task->state))
            return false;
    return true;
}

/* What users do comes by way of this world, what happens to GPUs is of this world anyway. */
static int schedule_input(struct scenario *scenario, int i)
{
    const struct event *input = &scenario->submissions[i];
    if ((int)input->kind == WAKE_COMMAND)
        return sim_at(scenario->sim, input);
    return schedule(scenario->sim, WAKE_INPUT, input->time_us, (uint64_t)i);
}

static int play(struct scenario *scenario)
{
    struct event gpus = {.kind = EVENT_GPUS};
    for (int i = 0; i < scenario->n_gpus; i++)
        scenario->identities[i] = scenario->gpus[i].id;
    gpus.gpus.list = scenario->identities;
    gpus.gpus.n = scenario->n_gpus;
    int r = sim_at(scenario->sim, &gpus);
    if (r == 0)
        r = schedule(scenario->sim, WAKE_SAMPLES, 0, 0);
    for (int i = 0; i < scenario->n_submissions && r == 0; i++)
        r = schedule_input(scenario, i);
    int64_t until_us = scenario->run_us ? scenario->run_us : RUN_MAX_US;
    for (int64_t now_us = 0;
         r == 0 && now_us <= until_us && (scenario->run_us || !is_over(scenario));)
        r = sim_run(scenario->sim, now_us += SAMPLE_US);
    return r;
}

int scenario_run(struct span story, const char *file_name, FILE *out, struct fault *fault)
{
    struct scenario *scenario = calloc(1, sizeof *scenario);
    if (!scenario)
        return fault_set(fault, ENOMEM, "out of memory");
    scenario->settings = core_settings_default();
    scenario->settings.policy = &policy_magm;
    scenario->out = out;
    int r = read_story(scenario, story, file_name, fault);
    if (r == 0) {
        struct sim_world world = {scenario, on_start, on_kill, on_wake};
        scenario->sim = sim_create(&scenario->settings, &world, on_event, scenario);
        r = scenario->sim ? play(scenario) : -ENOMEM;
        if (r < 0)
            fault_set(fault, -r, "%s: the core: %s", file_name, strerror(-r));
    }
    sim_destroy(scenario->sim);
    free(scenario);
    return r;
}
