/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two steps, each with a timer:
 *
 *     make      events behind the cursor of messages.db (store/message_db.h) are read from the log;
 *               the task's SUBMIT says whether its user wants messages, and where to
 *     deliver   users with due messages and without a helper take turns, all unlisted users as
 *               one: a message of the one whose last turn was first goes to colloc-message; what
 *               fails is due again later: 30 s, 1 min, 2 min ... (setting message-retry)
 *
 * The message about a suspension is due once that has lasted SUSPENDED_LONG_MS, and is withdrawn
 * when the task is resumed or ends before.
 *
 * A mail for a server with a login goes to colloc-message as root, which has read the password by
 * then and becomes an unprivileged user before it connects.
 */
#include "daemon/messages/messages.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/secret_file.h"
#include "daemon/http/http_answers.h"
#include "daemon/jobs.h"
#include "daemon/messages/message_text.h"
#include "policy/policies.h"
#include "service/user_helper.h"
#include "store/message_db.h"

#define EVENTS_AT_ONCE    20               /* of the log in one turn; chosen: some ms */
#define MAKE_PAUSE_MS     10               /* between turns: the loop has other work; chosen */
#define SUSPENDED_LONG_MS (10 * 60 * 1000) /* chosen */
#define HELPER_LIMIT_MS   45000            /* beyond the helper's own */
#define RETRY_MAX_MS      (3600 * 1000)    /* chosen */
#define ANSWER_GAVE_UP    1                /* of the helper: never try again */

enum { LOGIN_SIZE = 512 }; /* USER:PASSWORD */

/* An event that messages are about. */
struct noted {
    int64_t seq, wall_us;
    uint64_t task;
    enum event_kind event;
    enum task_state end;
    char gpus[128];  /* of PLACE */
    int64_t idle_us; /* of IDLE */
};

struct delivery {
    struct messages *messages;
    struct user_helper helper;
    bool is_under_way;
    uint32_t uid; /* of the message */
    int64_t id;
    uint64_t task;
    int attempts;
    bool is_mail;
};

struct messages {
    struct messages_options options;
    struct message_db *db;
    uv_timer_t make_timer, deliver_timer;
    struct delivery deliveries[MESSAGE_HELPERS];
    bool is_closed;
    char host[256];
    int64_t seq;         /* of the event that is walked */
    struct noted *noted; /* of the turn under way */
    size_t n_noted, noted_capacity;
};

static int64_t now_ms(void)
{
    return clock_wall_us() / 1000;
}

/* ---- making ---- */

static bool is_of_interest(enum event_kind kind)
{
    return kind == EVENT_PLACE || kind == EVENT_RECOVER || kind == EVENT_REQUEUE ||
           kind == EVENT_RESTART || kind == EVENT_END || kind == EVENT_SUSPENDED ||
           kind == EVENT_RESUMED || kind == EVENT_IDLE;
}

/* The TASK object, live or ended, as its owner sees it, for the caller to release; NULL: there is
 * none. */
static json_t *find_task(struct messages *messages, uint64_t id)
{
    struct fault fault = {0};
    json_t *record = NULL;
    return http_read_record(messages->options.http, id, &fault, &record) == 0 ? record : NULL;
}

static const char *gpu_label(const struct core *core, int gpu)
{
    const struct cluster_view *view = core_view(core);
    return gpu >= 0 && gpu < view->n_gpus ? view->gpus[gpu].id.label : "?";
}

static void write_gpus(
    const struct messages *messages, const struct event *event, char *text, size_t size)
{
    size_t used = 0;
    for (int i = 0; i < event->place.n && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? ", " : "",
            gpu_label(messages->options.core, event->place.gpus[i]));
}

/* The log must not be asked within its walk: what counts is noted first. */
static int on_event(void *context, const struct event *event, int64_t wall_us, const json_t *detail)
{
    struct messages *messages = context;
    if (!is_of_interest(event->kind))
        return 0;
    struct noted noted = {
        .seq = messages->seq, .wall_us = wall_us, .task = event->task, .event = event->kind};
    if (event->kind == EVENT_END)
        noted.end = event->end;
    if (event->kind == EVENT_IDLE)
        noted.idle_us = event->idle_us;
    if (event->kind == EVENT_PLACE)
        write_gpus(messages, event, noted.gpus, sizeof noted.gpus);
    return ARRAY_APPEND(messages->noted, messages->n_noted, messages->noted_capacity, noted);
}

/* The messages that a user wants about a task, and their address. */
struct wish {
    json_t *detail; /* of SUBMIT, which has the texts */
    unsigned kinds;
    struct message_address to;
    gid_t gid;
};

/* Returns false when the user wants no messages of the task. */
static bool read_wish(const struct messages *messages, uint64_t task, struct wish *ret_wish)
{
    struct fault fault = {0};
    *ret_wish = (struct wish){0};
    if (job_read_detail(messages->options.store, task, &fault, &ret_wish->detail) < 0)
        return false;
    const char *kinds = json_string_value(json_object_get(ret_wish->detail, "notify")),
               *to = json_string_value(json_object_get(ret_wish->detail, "notify_to"));
    const char *user = json_string_value(json_object_get(ret_wish->detail, "user"));
    ret_wish->gid = (gid_t)json_integer_value(json_object_get(ret_wish->detail, "gid"));
    if (!to)
        to = user ? user : "";
    if (kinds && message_kinds_parse(kinds, &fault, &ret_wish->kinds) == 0 && ret_wish->kinds &&
        message_address_parse(to, &fault, &ret_wish->to) == 0)
        return true;
    json_decref(ret_wish->detail);
    return false;
}

/* The kind of message that an event is one of; MESSAGE_KINDS: of none that the user wants. */
static enum message_kind kind_of(const struct noted *noted, unsigned wanted)
{
    bool has_failed = !task_state_is_success(noted->end) && noted->end != TASK_CANCELLED;
    enum message_kind kind = MESSAGE_KINDS;
    switch (noted->event) {
    case EVENT_PLACE:
        kind = MESSAGE_START;
        break;
    case EVENT_RECOVER:
    case EVENT_REQUEUE:
    case EVENT_RESTART:
        kind = MESSAGE_REQUEUE;
        break;
    case EVENT_SUSPENDED:
        kind = MESSAGE_SUSPEND;
        break;
    case EVENT_IDLE:
        kind = MESSAGE_IDLE;
        break;
    case EVENT_END:
        kind = has_failed && (wanted & 1U << MESSAGE_FAIL) ? MESSAGE_FAIL : MESSAGE_END;
        break;
    default:
        break;
    }
    return kind < MESSAGE_KINDS && (wanted & 1U << kind) ? kind : MESSAGE_KINDS;
}

/* Returns the message's text as the queue keeps it; NULL: there is none to send. */
static char *make_message(struct messages *messages, const struct noted *noted,
    const struct wish *wish, enum message_kind kind, struct message_row *ret_row)
{
    const struct config *config = messages->options.config;
    json_t *task = find_task(messages, noted->task);
    if (!task)
        return NULL;
    const struct message_facts facts = {.kind = kind,
        .task = task,
        .host = messages->host,
        .seq = noted->seq,
        .at = (double)noted->wall_us / 1e6,
        .gpus = noted->gpus,
        .idle_s = (double)noted->idle_us / 1e6};
    json_t *message = message_make(&facts, &wish->to, config->mail_server, config->mail_from);
    char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;
    *ret_row = (struct message_row){.seq = noted->seq,
        .task = noted->task,
        .uid = (uint32_t)json_integer_value(json_object_get(task, "uid")),
        .gid = wish->gid,
        .kind = (int)kind,
        .due_ms = now_ms() + (kind == MESSAGE_SUSPEND ? SUSPENDED_LONG_MS : 0),
        .text = text};
    json_decref(message);
    json_decref(task);
    return text;
}

/* Makes the messages of one event, and moves the cursor behind it if there are any. */
static int make_of(struct messages *messages, const struct noted *noted, struct fault *fault)
{
    struct message_row row;
    struct wish wish;
    int r = 0;
    if (!read_wish(messages, noted->task, &wish))
        return 0;
    if (noted->event == EVENT_RESUMED || noted->event == EVENT_END)
        r = message_db_withdraw(messages->db, noted->task, MESSAGE_SUSPEND, fault);
    enum message_kind kind = kind_of(noted, wish.kinds);
    char *text = r == 0 && kind < MESSAGE_KINDS ? make_message(messages, noted, &wish, kind, &row)
                                                : NULL;
    if (text)
        r = message_db_add(messages->db, &row, 1, noted->seq, fault);
    free(text);
    json_decref(wish.detail);
    return r;
}

static void wake_delivery(struct messages *messages);

static void on_make(uv_timer_t *timer)
{
    struct messages *messages = timer->data;
    struct fault fault = {0};
    int64_t before = message_db_cursor(messages->db);
    messages->n_noted = 0;
    int r = store_events_after(messages->options.store, before, EVENTS_AT_ONCE, policy_find,
        on_event, messages, &fault, &messages->seq);
    for (size_t i = 0; r == 0 && i < messages->n_noted; i++)
        r = make_of(messages, &messages->noted[i], &fault);
    if (r == 0 && messages->seq > message_db_cursor(messages->db))
        r = message_db_add(messages->db, NULL, 0, messages->seq, &fault);
    if (r < 0) {
        log_warning("messages cannot be made: %s", fault.text);
        uv_timer_start(timer, on_make, 60000, 0);
        return;
    }
    if (messages->seq > before)
        uv_timer_start(timer, on_make, MAKE_PAUSE_MS, 0); /* there may be more */
    wake_delivery(messages);
}

void messages_note(struct messages *messages, const struct event *event)
{
    if (messages && !messages->is_closed && is_of_interest(event->kind) &&
        !uv_is_active((uv_handle_t *)&messages->make_timer))
        uv_timer_start(&messages->make_timer, on_make, MAKE_PAUSE_MS, 0);
}

/* ---- messages that no event makes ---- */

/* Queues a message to `to`, for the user and group of the row. */
static int add_message(struct messages *messages, const struct message_facts *facts,
    const struct message_address *to, struct message_row row, struct fault *fault)
{
    const struct config *config = messages->options.config;
    json_t *message = message_make(facts, to, config->mail_server, config->mail_from);
    char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;
    row.seq = message_db_cursor(messages->db);
    row.kind = (int)facts->kind;
    row.due_ms = now_ms();
    row.text = text;
    int r = text ? message_db_add(messages->db, &row, 1, row.seq, fault)
                 : fault_set(fault, ENOMEM, "out of memory");
    free(text);
    json_decref(message);
    return r;
}

/* ---- GPUs that fail ---- */

/* Queues a message to `to` about the task, or to the administrator without one. */
static int add_gpu_message(struct messages *messages, const struct gpu_health_change *change,
    const json_t *task, const struct message_address *to, gid_t gid, struct fault *fault)
{
    const struct message_facts facts = {.kind = MESSAGE_GPU,
        .task = task,
        .host = messages->host,
        .seq = message_db_cursor(messages->db),
        .at = (double)clock_wall_us() / 1e6,
        .gpus = change->name,
        .health = change->health,
        .why = change->why};
    const struct message_row row = {
        .task = (uint64_t)json_integer_value(json_object_get(task, "id")),
        .uid = task ? (uint32_t)json_integer_value(json_object_get(task, "uid")) : geteuid(),
        .gid = gid};
    return add_message(messages, &facts, to, row, fault);
}

static int queue_for_user(struct messages *messages, const struct gpu_health_change *change,
    uint64_t id, struct fault *fault)
{
    struct wish wish;
    int r = 0;
    if (!read_wish(messages, id, &wish))
        return 0;
    json_t *task = wish.kinds & 1U << MESSAGE_GPU ? find_task(messages, id) : NULL;
    if (task)
        r = add_gpu_message(messages, change, task, &wish.to, wish.gid, fault);
    json_decref(task);
    json_decref(wish.detail);
    return r;
}

void messages_note_gpu(struct messages *messages, const struct gpu_health_change *change)
{
    struct message_address administrator;
    struct fault fault = {0};
    int r = 0;
    if (!messages || messages->is_closed)
        return;
    const char *to = messages->options.config->alerts_to;
    if (strcmp(to, "none") != 0 && message_address_parse(to, &fault, &administrator) == 0)
        r = add_gpu_message(messages, change, NULL, &administrator, getegid(), &fault);
    bool is_bad = strcmp(change->health, "ok") != 0;
    for (size_t i = 0; r == 0 && is_bad && i < change->n_tasks; i++)
        r = queue_for_user(messages, change, change->tasks[i], &fault);
    if (r < 0)
        log_warning("messages cannot be made: %s", fault.text);
    wake_delivery(messages);
}

/* ---- processes outside of tasks ---- */

static int add_outside_message(struct messages *messages, const struct outside_use *use,
    const struct message_address *to, struct fault *fault)
{
    const struct message_facts facts = {.kind = MESSAGE_OUTSIDE,
        .host = messages->host,
        .gpus = use->gpu,
        .process = use->process,
        .why = messages->options.config->outside_text};
    return add_message(
        messages, &facts, to, (struct message_row){.uid = use->uid, .gid = use->gid}, fault);
}

void messages_note_outside(struct messages *messages, const struct outside_use *use)
{
    struct message_address mail;
    struct fault fault = {0};
    if (!messages || messages->is_closed)
        return;
    bool has_mail = strcmp(messages->options.config->mail_server, "none") != 0 &&
                    message_address_parse(use->user, &fault, &mail) == 0 &&
                    mail.form == MESSAGE_BY_MAIL;
    int r = add_outside_message(
        messages, use, &(struct message_address){.form = MESSAGE_ON_TERMINALS}, &fault);
    if (r == 0 && has_mail)
        r = add_outside_message(messages, use, &mail, &fault);
    if (r < 0)
        log_warning("messages cannot be made: %s", fault.text);
    wake_delivery(messages);
}

/* ---- delivering: in the helper ---- */

/* Adds the login of the mail server, which only root can read: the user of the message must not be
 * able to look into the process that knows it. Returns the new text for free, or NULL with a fault.
 */
static char *add_login(const struct config *config, const char *text, struct fault *fault)
{
    char line[LOGIN_SIZE], *colon, *whole = NULL;
    if (secret_file_read("mail-login-file", config->mail_login_file, SECRET_OF_ANYBODY, fault, line,
            sizeof line) < 0)
        return NULL;
    json_t *message = json_loads(text, 0, NULL);
    colon = strchr(line, ':');
    if (colon && message) {
        *colon = '\0';
        json_object_set_new(message, "login",
            json_pack("{s:s, s:s, s:s}", "user", line, "password", colon + 1, "ca_file",
                config->mail_ca_file));
        whole = json_dumps(message, JSON_COMPACT);
    }
    if (!whole)
        fault_set(fault, EINVAL, "mail-login-file: %s: its first line must be USER:PASSWORD",
            config->mail_login_file);
    explicit_bzero(line, sizeof line);
    json_decref(message);
    return whole;
}

/* Starts the program with these streams. Not by fork: in a child of a child, libuv's fork handler
 * closes descriptors that it wrongly considers its own. */
static int start_program(const char *program, int in, int out, pid_t *ret_pid)
{
    char *const argv[] = {(char *)(uintptr_t)program, NULL};
    posix_spawn_file_actions_t actions;
    int r = posix_spawn_file_actions_init(&actions);
    if (r != 0)
        return -r;
    r = posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
    if (r == 0)
        r = posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    if (r == 0)
        r = posix_spawn_file_actions_adddup2(&actions, out, STDERR_FILENO);
    if (r == 0)
        r = posix_spawn(ret_pid, program, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    return -r;
}

/* Runs colloc-message with the text. Returns its exit status and the begin of its output. */
static int run_program(const char *program, const char *text, char *output, size_t size)
{
    int pipe_ends[2], status = 0, in = memfd_create("message", MFD_CLOEXEC);
    pid_t pid;
    if (in < 0 || pipe2(pipe_ends, O_CLOEXEC) < 0)
        return -errno;
    int r = file_write_fd(in, text, strlen(text));
    if (r == 0 && lseek(in, 0, SEEK_SET) < 0)
        r = -errno;
    if (r == 0)
        r = start_program(program, in, pipe_ends[1], &pid);
    if (r < 0)
        return r;
    close(pipe_ends[1]);
    ssize_t n = read(pipe_ends[0], output, size - 1);
    output[n > 0 ? n : 0] = '\0';
    output[strcspn(output, "\n")] = '\0';
    if (waitpid(pid, &status, 0) < 0)
        return -errno;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
}

static _Noreturn void deliver_message(struct delivery *delivery,
    const struct user_helper_order *order, const char *program, const char *text)
{
    const struct config *config = delivery->messages->options.config;
    struct user_helper_report report = {0};
    char output[200] = "";
    if (delivery->is_mail && *config->mail_login_file) {
        text = add_login(config, text, &report.fault);
        if (!text) {
            report.answer = -EAGAIN;
            user_helper_end(&delivery->helper, &report);
        }
    } else {
        report.answer = user_helper_become(order);
    }
    int status = report.answer == 0 ? run_program(program, text, output, sizeof output)
                                    : report.answer;
    if (status == 0)
        report.answer = 0;
    else if (status == EX_UNAVAILABLE)
        report.answer = ANSWER_GAVE_UP;
    else
        report.answer = status < 0 ? status : -EAGAIN;
    if (status != 0)
        fault_set(&report.fault, EAGAIN, "%s",
            *output      ? output
            : status < 0 ? strerror(-status)
                         : "colloc-message ended without a word");
    user_helper_end(&delivery->helper, &report);
}

/* ---- delivering: in the loop ---- */

static int64_t retry_ms(const struct messages *messages, int attempts)
{
    int64_t first_ms = messages->options.config->message_retry_us / MS_US;
    int64_t wait_ms = attempts > 16 ? RETRY_MAX_MS : first_ms << attempts;
    return wait_ms > RETRY_MAX_MS ? RETRY_MAX_MS : wait_ms;
}

static void log_undelivered(const struct delivery *delivery, const char *why, bool is_last)
{
    char about[64] = "a GPU, or a process on it,";
    if (delivery->task)
        snprintf(about, sizeof about, "task %llu to its user", (unsigned long long)delivery->task);
    log_warning("the %s about %s was not delivered: %.160s%s",
        delivery->is_mail ? "mail" : "webhook", about, why,
        is_last ? "; given up" : "; tried again later");
}

static void on_delivered(struct user_helper *helper, int answer, const struct fault *why)
{
    struct delivery *delivery = helper->context;
    struct messages *messages = delivery->messages;
    struct fault fault = {0};
    bool is_last = answer == ANSWER_GAVE_UP || delivery->attempts + 1 >= MESSAGE_ATTEMPTS_MAX;
    delivery->is_under_way = false;
    if (answer != 0)
        log_undelivered(delivery, why->text, is_last);
    int r = answer == 0 || is_last ? message_db_remove(messages->db, delivery->id, &fault)
                                   : message_db_postpone(messages->db, delivery->id,
                                         now_ms() + retry_ms(messages, delivery->attempts), &fault);
    if (r < 0)
        log_warning("messages: %s", fault.text);
    wake_delivery(messages);
}

/* The text as the program reads it: with its id, which is the same in each attempt. */
static char *address_text(const struct messages *messages, const struct message_row *row)
{
    char id[400];
    json_t *message = json_loads(row->text, 0, NULL);
    const char *form = json_string_value(json_object_get(message, "form"));
    bool is_mail = form && strcmp(form, "mail") == 0;
    snprintf(id, sizeof id, is_mail ? "<%lld.%lld.colloc@%s>" : "%lld.%lld.colloc@%s",
        (long long)row->id, (long long)row->seq, messages->host);
    json_object_set_new(message, "id", json_string(id));
    char *text = message ? json_dumps(message, JSON_COMPACT) : NULL;
    json_decref(message);
    return text;
}

static uint32_t share_of(void *context, uint32_t uid)
{
    const struct messages *messages = context;
    names_of_uid(messages->options.names, uid); /* looked up for later, if need be */
    return names_counted_uid(messages->options.names, uid);
}

static void start_delivery(
    struct messages *messages, struct delivery *delivery, const struct message_row *row)
{
    const char *program = messages->options.config->messenger;
    const struct user_helper_order order = {
        .uid = row->uid, .gid = row->gid, .limit_ms = HELPER_LIMIT_MS, .what = "deliver a message"};
    struct fault fault = {0};
    char *text = address_text(messages, row);
    *delivery = (struct delivery){.messages = messages,
        .is_under_way = true,
        .uid = row->uid,
        .id = row->id,
        .task = row->task,
        .attempts = row->attempts,
        .is_mail = strstr(row->text, "\"form\":\"mail\"")};
    int r = text ? user_helper_begin(&delivery->helper, messages->options.loop, &order, &fault)
                 : fault_set(&fault, ENOMEM, "out of memory");
    if (r == USER_HELPER_CHILD)
        deliver_message(delivery, &order, program, text);
    free(text);
    delivery->helper.context = delivery;
    delivery->helper.on_done = on_delivered;
    if (r < 0)
        on_delivered(&delivery->helper, r, &fault);
}

/* The shares are those of now: a user's changes when the database turns out to lack that user, even
 * while its message is delivered. */
static struct delivery *find_free(struct messages *messages, uint32_t *busy, size_t *ret_n_busy)
{
    struct delivery *free_one = NULL;
    *ret_n_busy = 0;
    for (size_t i = 0; i < MESSAGE_HELPERS; i++) {
        struct delivery *delivery = &messages->deliveries[i];
        if (delivery->is_under_way)
            busy[(*ret_n_busy)++] = share_of(messages, delivery->uid);
        else
            free_one = delivery;
    }
    return free_one;
}

static void on_deliver(uv_timer_t *timer)
{
    struct messages *messages = timer->data;
    struct message_row row;
    struct fault fault = {0};
    uint32_t busy[MESSAGE_HELPERS];
    size_t n_busy;
    struct delivery *delivery = find_free(messages, busy, &n_busy);
    int r = delivery ? message_db_next(messages->db, busy, n_busy, now_ms(), &fault, &row) : 0;
    if (r < 0)
        log_warning("messages: %s", fault.text);
    if (r <= 0)
        return; /* the next that ends or is made wakes it */
    int64_t wait_ms = row.due_ms - now_ms();
    if (wait_ms <= 0 && message_db_take_turn(messages->db, share_of(messages, row.uid), &fault) < 0)
        log_warning("messages: %s", fault.text);
    if (wait_ms <= 0)
        start_delivery(messages, delivery, &row);
    /* Not for longer than a minute: the wall clock may leap. */
    uv_timer_start(
        timer, on_deliver, wait_ms <= 0 ? 1 : (uint64_t)(wait_ms < 60000 ? wait_ms : 60000), 0);
}

static void wake_delivery(struct messages *messages)
{
    if (!messages->is_closed)
        uv_timer_start(&messages->deliver_timer, on_deliver, 1, 0);
}

/* ---- life ---- */

struct messages *messages_create(const struct messages_options *options, struct fault *fault)
{
    char path[600];
    struct messages *messages = calloc(1, sizeof *messages);
    if (!messages) {
        fault_set(fault, ENOMEM, "out of memory");
        return NULL;
    }
    messages->options = *options;
    snprintf(path, sizeof path, "%s/messages.db", options->config->state_dir);
    const struct message_shares shares = {share_of, messages};
    int r = message_db_open(path, store_last_event(options->store), &shares, fault, &messages->db);
    if (r < 0) {
        free(messages);
        return NULL;
    }
    if (r == MESSAGE_DB_REPLACED)
        log_warning("the messages' database was damaged and is begun anew: %s", fault->text);
    if (gethostname(messages->host, sizeof messages->host - 1) < 0 || !*messages->host)
        snprintf(messages->host, sizeof messages->host, "localhost");
    uv_timer_init(options->loop, &messages->make_timer);
    uv_timer_init(options->loop, &messages->deliver_timer);
    messages->make_timer.data = messages->deliver_timer.data = messages;
    return messages;
}

void messages_start(struct messages *messages)
{
    if (messages)
        uv_timer_start(&messages->make_timer, on_make, 1, 0);
}

void messages_close(struct messages *messages)
{
    if (!messages || messages->is_closed)
        return;
    messages->is_closed = true;
    uv_close((uv_handle_t *)&messages->make_timer, NULL);
    uv_close((uv_handle_t *)&messages->deliver_timer, NULL);
    for (size_t i = 0; i < MESSAGE_HELPERS; i++)
        user_helper_leave(&messages->deliveries[i].helper);
}

void messages_destroy(struct messages *messages)
{
    if (!messages)
        return;
    message_db_close(messages->db);
    free(messages->noted);
    free(messages);
}
