/* SPDX-License-Identifier: Apache-2.0 */
#include "gpu/dcgm.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "gpu/run.h"

/* Between two attempts: a period at first, doubled each time, and forgotten by a stream that lived
 * that long. */
#define REST_MAX_US   (60 * SECOND_US)
#define SILENT_MAX_US (10 * SECOND_US)

enum phase { RESTING, LISTING, STREAMING };

struct wanted {
    char uuid[sizeof(((struct gpu_info *)0)->uuid)]; /* "": not wanted */
    struct dcgm_row row;
    bool begun; /* the stream's first row of it has come */
    bool told;
    int64_t told_us;
};

struct dcgm {
    char program[512];
    int64_t period_us;
    struct wanted wanted[DCGM_GPUS_MAX]; /* by the caller's number */
    int gpu_of[DCGM_GPUS_MAX];           /* the caller's number by DCGM's; -1: not wanted */

    enum phase phase;
    int64_t began_us; /* of the phase */
    int64_t rest_us;  /* how long a rest takes */
    int64_t heard_us; /* the last row, or the start */
    bool heard;       /* a row, since the start */
    pid_t pid;
    int fd;
    struct dcgm_lines lines;
    struct dcgm_list list;
    struct dcgm_table table;
    char last_words[96];
    char why_not[112];
};

struct dcgm *dcgm_create(const char *program, int64_t period_us)
{
    struct dcgm *dcgm = calloc(1, sizeof(*dcgm));

    if (!dcgm)
        return NULL;
    snprintf(dcgm->program, sizeof(dcgm->program), "%s", program);
    dcgm->period_us = period_us;
    dcgm->fd = -1;
    dcgm->began_us = INT64_MIN / 2;
    return dcgm;
}

static void end_program(struct dcgm *dcgm)
{
    if (dcgm->fd < 0)
        return;
    close(dcgm->fd);
    dcgm->fd = -1;
    run_end(dcgm->pid);
}

void dcgm_destroy(struct dcgm *dcgm)
{
    if (dcgm)
        end_program(dcgm);
    free(dcgm);
}

void dcgm_want(struct dcgm *dcgm, size_t gpu, const char *uuid)
{
    snprintf(dcgm->wanted[gpu].uuid, sizeof(dcgm->wanted[gpu].uuid), "%s", uuid);
}

const char *dcgm_why_not(const struct dcgm *dcgm)
{
    if (dcgm->phase == STREAMING && dcgm->heard)
        return "dcgmi tells nothing of this GPU at the moment";
    return *dcgm->why_not ? dcgm->why_not : "dcgmi has not told anything yet";
}

/* ---- phases ---- */

static void rest(struct dcgm *dcgm, int64_t now_us, const char *why)
{
    bool lived = dcgm->phase == STREAMING && now_us - dcgm->began_us > REST_MAX_US;
    int64_t longer_us = dcgm->rest_us && !lived ? 2 * dcgm->rest_us : dcgm->period_us;

    end_program(dcgm);
    snprintf(dcgm->why_not, sizeof(dcgm->why_not), "%s%s%.*s", why, *dcgm->last_words ? ": " : "",
        (int)sizeof(dcgm->last_words), dcgm->last_words);
    dcgm->phase = RESTING;
    dcgm->began_us = now_us;
    dcgm->rest_us = longer_us < REST_MAX_US ? longer_us : REST_MAX_US;
}

static void start(struct dcgm *dcgm, int64_t now_us, enum phase phase, const char *const *argv)
{
    struct fault fault = {0};
    char path[PATH_MAX];

    dcgm->lines = (struct dcgm_lines){0};
    dcgm->table = (struct dcgm_table){0};
    dcgm->list = (struct dcgm_list){0};
    dcgm->last_words[0] = '\0';
    if (!run_find(dcgm->program, path, sizeof(path))) {
        snprintf(dcgm->last_words, sizeof(dcgm->last_words), "it comes with NVIDIA DCGM");
        rest(dcgm, now_us, "SM activity wants dcgmi, which is not on PATH");
        return;
    }
    struct run run = {.path = path, .argv = (char *const *)(uintptr_t)argv, .envp = environ};
    if (run_start(&run, &dcgm->pid, &dcgm->fd, &fault) < 0) {
        rest(dcgm, now_us, fault.text);
        return;
    }
    dcgm->phase = phase;
    dcgm->began_us = dcgm->heard_us = now_us;
    dcgm->heard = false;
}

static void start_list(struct dcgm *dcgm, int64_t now_us)
{
    for (int i = 0; i < DCGM_GPUS_MAX; i++) {
        dcgm->gpu_of[i] = -1;
        dcgm->wanted[i].begun = false;
    }
    start(dcgm, now_us, LISTING, (const char *[]){"dcgmi", "discovery", "-l", NULL});
}

static void start_stream(struct dcgm *dcgm, int64_t now_us)
{
    char gpus[4 * DCGM_GPUS_MAX] = "", period[24];
    size_t used = 0;

    for (int i = 0; i < DCGM_GPUS_MAX; i++)
        if (dcgm->gpu_of[i] >= 0)
            used += (size_t)snprintf(gpus + used, sizeof(gpus) - used, "%s%d", used ? "," : "", i);
    snprintf(period, sizeof(period), "%lld", (long long)(dcgm->period_us / MS_US));
    if (used == 0)
        rest(dcgm, now_us, "dcgmi lists none of the GPUs that it is wanted for");
    else
        start(dcgm, now_us, STREAMING,
            (const char *[]){
                "dcgmi", "dmon", "-e", DCGM_FIELD_IDS, "-d", period, "-i", gpus, NULL});
}

static void on_end(struct dcgm *dcgm, int64_t now_us)
{
    if (dcgm->phase == STREAMING) {
        rest(dcgm, now_us, "dcgmi dmon has ended");
        return;
    }
    end_program(dcgm);
    start_stream(dcgm, now_us);
}

/* ---- what it tells ---- */

static void take_list_line(struct dcgm *dcgm, struct span line)
{
    struct span uuid;

    if (!dcgm_list_take(&dcgm->list, line, &uuid))
        return;
    for (int i = 0; i < DCGM_GPUS_MAX; i++)
        if (*dcgm->wanted[i].uuid && span_is(uuid, dcgm->wanted[i].uuid))
            dcgm->gpu_of[dcgm->list.gpu] = i;
}

/* The first row of a stream is a mean over no time, and may say 0: it does not count. */
static void keep_row(struct wanted *wanted, const struct dcgm_row *row, int64_t now_us)
{
    if (wanted->begun) {
        wanted->row = *row;
        wanted->told = true;
        wanted->told_us = now_us;
    }
    wanted->begun = true;
}

/* True when the line was understood. */
static bool take_row(struct dcgm *dcgm, struct span line, int64_t now_us)
{
    struct dcgm_row row;

    if (!dcgm_table_take(&dcgm->table, line, &row))
        return false;
    int gpu = dcgm->gpu_of[row.gpu];
    if (gpu >= 0)
        keep_row(&dcgm->wanted[gpu], &row, now_us);
    dcgm->heard_us = now_us;
    dcgm->heard = true;
    return true;
}

static bool is_prose(struct span line)
{
    return line.size > 0 && line.at[0] != '#' && line.at[0] != '|' && line.at[0] != '+' &&
           !span_is(line, "ID") && !span_is(line, "Id");
}

static void take_line(struct dcgm *dcgm, struct span line, int64_t now_us)
{
    if (dcgm->phase == LISTING)
        take_list_line(dcgm, line);
    else if (take_row(dcgm, line, now_us))
        return;
    line = span_trim(line);
    if (is_prose(line))
        span_copy(line, dcgm->last_words, sizeof(dcgm->last_words));
}

static void read_all(struct dcgm *dcgm, int64_t now_us)
{
    const int pieces_max =
        64; /* more than a pipe holds: whoever writes without end is read on the next time */
    char data[4096];

    for (int i = 0; i < pieces_max; i++) {
        ssize_t n = read(dcgm->fd, data, sizeof(data));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            on_end(dcgm, now_us);
            return;
        }
        struct span piece = {data, (size_t)n}, line;
        while (dcgm_lines_next(&dcgm->lines, &piece, &line))
            take_line(dcgm, line, now_us);
    }
}

void dcgm_turn(struct dcgm *dcgm, int64_t now_us)
{
    int64_t silent_max_us = 10 * dcgm->period_us > SILENT_MAX_US ? 10 * dcgm->period_us
                                                                 : SILENT_MAX_US;

    if (dcgm->phase == RESTING && now_us - dcgm->began_us >= dcgm->rest_us)
        start_list(dcgm, now_us);
    if (dcgm->phase != RESTING)
        read_all(dcgm, now_us);
    if (dcgm->phase != RESTING && now_us - dcgm->heard_us > silent_max_us)
        rest(dcgm, now_us, "dcgmi was silent and is started anew");
}

const struct dcgm_row *dcgm_latest(
    const struct dcgm *dcgm, size_t gpu, int64_t now_us, int64_t *ret_at_us)
{
    const struct wanted *wanted = &dcgm->wanted[gpu];

    if (!wanted->told || now_us - wanted->told_us > dcgm->period_us * 3 / 2)
        return NULL;
    *ret_at_us = wanted->told_us;
    return &wanted->row;
}
