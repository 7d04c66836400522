/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The helper's protocol. Both ends use this file. A line is cut into fields at single blanks, and
 * each call has a fixed number of them; whatever else a line may hold, it is refused.
 */
#include "checkpoint/helper_line.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/span_parts.h"
#include "base/units.h"

enum { FIELDS_MAX = 5 }; /* of the longest request but for its moves */

/* 25 days. Chosen: the driver takes an unsigned int. */
static const int64_t TIMEOUT_MS_MAX = INT64_C(1) << 31;
/* Chosen: more than any GPU has, and it can be rounded up. */
static const int64_t BYTES_MAX = INT64_C(1) << 50;

/* Chosen: CUDA 1000, as cuDriverGetVersion counts. */
static const int64_t VERSION_MAX = 1000 * 1000;

/* What follows the pid and the start in a request. */
enum shape { NOTHING_AT_ALL, NOTHING, TIMEOUT, GPU_AND_BYTES, MOVES };

static const struct {
    const char *name;
    enum shape shape;
} calls[HELPER_CALLS] = {
    [HELPER_GPUS] = {"gpus", NOTHING_AT_ALL},
    [HELPER_INSPECT] = {"inspect", NOTHING},
    [HELPER_STATE] = {"state", NOTHING},
    [HELPER_LOCK] = {"lock", TIMEOUT},
    [HELPER_SUSPEND] = {"checkpoint", NOTHING},
    [HELPER_RESERVE] = {"reserve", GPU_AND_BYTES},
    [HELPER_RESUME] = {"restore", MOVES},
    [HELPER_RELEASE] = {"release", NOTHING},
    [HELPER_UNLOCK] = {"unlock", NOTHING},
    [HELPER_LEND] = {"lend", GPU_AND_BYTES},
};

static const char *const states[] = {
    [PROCESS_UNKNOWN] = "-",
    [PROCESS_RUNNING] = "running",
    [PROCESS_LOCKED] = "locked",
    [PROCESS_SUSPENDED] = "suspended",
    [PROCESS_FAILED] = "failed",
    [PROCESS_GONE] = "gone",
};

const char *helper_call_name(enum helper_call call)
{
    return calls[call].name;
}

bool gpu_uuid_is_valid(struct span text)
{
    if (text.size != GPU_UUID_SIZE - 1 || !span_starts(text, "GPU-"))
        return false;
    for (size_t i = 4; i < text.size; i++)
        if (text.at[i] != '-' && !isxdigit((unsigned char)text.at[i]))
            return false;
    return true;
}

/* ---- writing ---- */

struct line {
    char *at;
    size_t size, used;
    bool is_full;
};

static void __attribute__((format(printf, 2, 3))) put(struct line *line, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(line->at + line->used, line->size - line->used, format, arguments);
    va_end(arguments);
    if (n < 0 || (size_t)n >= line->size - line->used)
        line->is_full = true;
    else
        line->used += (size_t)n;
}

static size_t finish_line(struct line *line)
{
    put(line, "\n");
    return line->is_full ? 0 : line->used;
}

size_t helper_request_write(const struct helper_request *request, char *text, size_t size)
{
    struct line line = {text, size, 0, size == 0};
    enum shape shape = calls[request->call].shape;
    if (line.is_full)
        return 0;
    put(&line, "%s", calls[request->call].name);
    if (shape != NOTHING_AT_ALL)
        put(&line, " %lld %llu", (long long)request->pid, (unsigned long long)request->born);
    if (shape == TIMEOUT)
        put(&line, " %lld", (long long)request->timeout_ms);
    if (shape == GPU_AND_BYTES)
        put(&line, " %s %lld", request->gpu, (long long)request->bytes);
    for (size_t i = 0; shape == MOVES && i < request->n_moves; i++)
        put(&line, "%s%s>%s", i ? "," : " ", request->moves[i].from, request->moves[i].to);
    return finish_line(&line);
}

size_t helper_reply_write(const struct helper_reply *reply, char *text, size_t size)
{
    struct line line = {text, size, 0, size == 0};
    if (line.is_full)
        return 0;
    put(&line, "%d %lld %s%s%s", reply->result, (long long)reply->took_us, states[reply->state],
        *reply->text ? " " : "", reply->text);
    return finish_line(&line);
}

/* ---- reading ---- */

static int read_int64(struct span field, int64_t min, int64_t max, int64_t *ret)
{
    char text[24];
    if (!field.size || memchr(field.at, '\0', field.size) || !span_copy(field, text, sizeof text))
        return -EINVAL;
    return parse_int64(text, min, max, ret) < 0 ? -EINVAL : 0;
}

static int read_uuid(struct span field, char *ret_uuid)
{
    return gpu_uuid_is_valid(field) && span_copy(field, ret_uuid, GPU_UUID_SIZE) ? 0 : -EINVAL;
}

/* "GPU-...>GPU-...". */
static int read_move(struct span text, struct gpu_move *ret_move)
{
    if (text.size != 2 * (GPU_UUID_SIZE - 1) + 1 || text.at[GPU_UUID_SIZE - 1] != '>')
        return -EINVAL;
    int r = read_uuid((struct span){text.at, GPU_UUID_SIZE - 1}, ret_move->from);
    return r < 0
               ? r
               : read_uuid((struct span){text.at + GPU_UUID_SIZE, GPU_UUID_SIZE - 1}, ret_move->to);
}

static int read_moves(struct span text, struct helper_request *request)
{
    while (text.size) {
        bool is_last = !memchr(text.at, ',', text.size);
        struct span one = span_take_until(&text, ',');
        if (request->n_moves == HELPER_MOVES_MAX ||
            read_move(one, &request->moves[request->n_moves]) < 0)
            return -EINVAL;
        request->n_moves++;
        if (!is_last && !text.size)
            return -EINVAL;
    }
    return 0;
}

static int read_process(struct span *rest, struct helper_request *request)
{
    int64_t pid, born;
    if (read_int64(span_take_until(rest, ' '), 1, INT32_MAX, &pid) < 0 ||
        read_int64(span_take_until(rest, ' '), 0, INT64_MAX, &born) < 0)
        return -EINVAL;
    request->pid = (pid_t)pid;
    request->born = (uint64_t)born;
    return 0;
}

static int read_rest(enum shape shape, struct span *rest, struct helper_request *request)
{
    int r = 0;
    if (shape == TIMEOUT)
        r = read_int64(span_take_until(rest, ' '), 0, TIMEOUT_MS_MAX, &request->timeout_ms);
    if (shape == GPU_AND_BYTES)
        r = read_uuid(span_take_until(rest, ' '), request->gpu);
    if (shape == GPU_AND_BYTES && r == 0)
        r = read_int64(span_take_until(rest, ' '), 1, BYTES_MAX, &request->bytes);
    if (shape == MOVES)
        r = read_moves(span_take_until(rest, ' '), request);
    return r == 0 && rest->size ? -EINVAL : r;
}

int helper_request_read(struct span line, struct helper_request *ret_request)
{
    struct span name = span_take_until(&line, ' ');
    *ret_request = (struct helper_request){.call = HELPER_CALLS};
    for (int i = 0; i < HELPER_CALLS; i++) {
        if (!span_is(name, calls[i].name))
            continue;
        ret_request->call = (enum helper_call)i;
        int r = calls[i].shape == NOTHING_AT_ALL ? 0 : read_process(&line, ret_request);
        return r < 0 ? r : read_rest(calls[i].shape, &line, ret_request);
    }
    return -EINVAL;
}

int helper_gpus_read(struct span text, int *ret_version, size_t *ret_n_gpus)
{
    int64_t version;
    char uuid[GPU_UUID_SIZE];
    size_t n = 0;
    if (read_int64(span_take_until(&text, ' '), 1, VERSION_MAX, &version) < 0)
        return -EINVAL;
    for (; text.size; n++)
        if (n == HELPER_MOVES_MAX || read_uuid(span_take_until(&text, ','), uuid) < 0)
            return -EINVAL;
    if (n == 0)
        return -EINVAL;
    *ret_version = (int)version;
    *ret_n_gpus = n;
    return 0;
}

static int read_state(struct span field, enum process_state *ret_state)
{
    int place = span_place(field, states, ARRAY_SIZE(states));
    if (place < 0)
        return -EINVAL;
    *ret_state = (enum process_state)place;
    return 0;
}

int helper_reply_read(struct span line, struct helper_reply *ret_reply)
{
    int64_t result;
    struct helper_reply *reply = ret_reply;
    *reply = (struct helper_reply){0};
    if (read_int64(span_take_until(&line, ' '), INT32_MIN, INT32_MAX, &result) < 0 ||
        read_int64(span_take_until(&line, ' '), 0, INT64_MAX, &reply->took_us) < 0 ||
        read_state(span_take_until(&line, ' '), &reply->state) < 0 ||
        (line.size && memchr(line.at, '\0', line.size)) ||
        !span_copy(line, reply->text, sizeof reply->text))
        return -EINVAL;
    reply->result = (int)result;
    text_mend(reply->text);
    return 0;
}
