#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/output.h"
#include "cli/session.h"

enum { LOGS_FOLLOW, LOGS_STDERR, LOGS_ATTEMPT };

static const struct option_spec options[] = {
    [LOGS_FOLLOW] = {.name = "follow",
        .letter = 'f',
        .kind = OPTION_FLAG,
        .help = "go on with what is being written, until the task has ended"},
    [LOGS_STDERR] = {.name = "stderr",
        .kind = OPTION_FLAG,
        .help = "standard error instead of standard output"},
    [LOGS_ATTEMPT] = {.name = "attempt",
        .kind = OPTION_INTEGER,
        .argument = "K",
        .min = 1,
        .max = 1000,
        .help = "of the K-th start of the task; default: the last"},
};

/* Where reading is: what is asked for, and how far it got. */
struct reading_place {
    struct client *client;
    const char *stream;
    int64_t id, offset;
    int attempt; /* 0: the last one */
};

/* Reads one piece and writes it out. */
static int take_piece(struct reading_place *place, struct client_log *ret_log)
{
    char path[192];
    struct fault fault = {0};
    int64_t give_up_us = 0;
    int r, status,
        n = snprintf(path, sizeof path, "/v1/tasks/%" PRId64 "/log?stream=%s&offset=%" PRId64,
            place->id, place->stream, place->offset);
    if (place->attempt)
        snprintf(path + n, sizeof path - (size_t)n, "&attempt=%d", place->attempt);
    do
        r = client_read_log(place->client, path, &fault, &status, ret_log);
    while (
        (r < 0 || status == HTTP_UNAVAILABLE) && session_may_come_back(place->client, &give_up_us));
    if (r < 0 || status != 200) {
        complain("%s", fault.text);
        return r < 0 ? EXIT_UNREACHABLE : EXIT_REFUSED;
    }
    return EXIT_OK;
}

static int write_piece(struct reading_place *place, struct client_log *log)
{
    int r = file_write_fd(STDOUT_FILENO, log->data, log->size);
    place->offset = log->next_offset > place->offset ? log->next_offset
                                                     : place->offset + (int64_t)log->size;
    free(log->data);
    log->data = NULL;
    return r < 0 ? EXIT_REFUSED : EXIT_OK;
}

/* Everything that is there now. */
static int drain(struct reading_place *place)
{
    struct client_log log;
    size_t size;
    do {
        int code = take_piece(place, &log);
        if (code != EXIT_OK)
            return code;
        size = log.size;
        code = write_piece(place, &log);
        if (code != EXIT_OK)
            return code;
    } while (size);
    return EXIT_OK;
}

/* A task that is started again begins a new log: finishes the old one and goes to the front of the
 * new. */
static int next_attempt(struct reading_place *place, int old, int new)
{
    place->attempt = old;
    int code = drain(place);
    complain("task %" PRId64 " was started again: attempt %d", place->id, new);
    place->attempt = 0;
    place->offset = 0;
    return code;
}

static int follow(struct reading_place *place)
{
    struct client_log log;
    int code, attempt = 0;
    while ((code = take_piece(place, &log)) == EXIT_OK) {
        bool is_idle = log.size == 0, is_new = attempt && log.attempt != attempt;
        if (is_new) {
            free(log.data);
            code = next_attempt(place, attempt, log.attempt);
        } else {
            code = write_piece(place, &log);
        }
        attempt = log.attempt;
        if (code != EXIT_OK || (is_idle && !is_new && log.ended))
            break;
        if (is_idle && !is_new)
            nanosleep(&(struct timespec){.tv_nsec = 200 * 1000 * 1000}, NULL);
    }
    return code;
}

static int run(const struct invocation *invocation)
{
    const struct option_value *values = invocation->values;
    struct reading_place place = {.stream = values[LOGS_STDERR].number ? "stderr" : "stdout",
        .attempt = (int)values[LOGS_ATTEMPT].number};
    int code = parse_task_id(invocation->operands[0], &place.id);
    if (code == EXIT_OK)
        code = session_open(invocation, &place.client);
    if (code != EXIT_OK)
        return code;
    code = values[LOGS_FOLLOW].number && !place.attempt ? follow(&place) : drain(&place);
    client_close(place.client);
    return code;
}

const struct command command_logs = {
    .name = "logs",
    .usage = "[OPTION...] ID",
    .summary = "print what a task has written",
    .description =
        "Its standard output, as it stands. With -f goes on until the task has ended; when a task that ran out "
        "of GPU memory is started again, the new attempt's output follows.",
    COMMAND_OPTIONS(options),
    .operand = OPERAND_TASK,
    .min_operands = 1,
    .max_operands = 1,
    .run = run,
};
