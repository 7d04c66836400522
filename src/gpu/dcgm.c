/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs dcgmi and reads its rows. Three phases:
 *
 *     PAUSED --pause over--> LISTING (discovery -l) --end--> STREAMING (dmon)
 *     STREAMING --end, or silence--> PAUSED
 */
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
#include "gpu/program.h"

/* The longest pause before a restart; the first is one period, each further one twice as long. A
 * stream that lived longer than this starts anew with one period. Both chosen. */
#define REST_MAX_US   (60 * SECOND_US)
#define SILENT_MAX_US (10 * SECOND_US) /* chosen: ten of its usual periods */

enum phase { PAUSED, LISTING, STREAMING };

struct dcgm_gpu {
    char uuid[sizeof(((struct gpu_info *)0)->uuid)]; /* "": not queried */
    struct dcgm_row row;
    bool begun; /* the stream's first row has come */
    bool has_row;
    int64_t row_us;
};

struct dcgm {
    char program[512];
    int64_t period_us;
    struct dcgm_gpu wanted[DCGM_GPUS_MAX]; /* by the caller's number */
    int gpu_of[DCGM_GPUS_MAX];             /* the caller's number by DCGM's; -1: not wanted */

    enum phase phase;
    int64_t began_us;    /* of the phase */
    int64_t pause_us;    /* how long a pause takes */
    int64_t last_row_us; /* time of the last row, or of the start */
    bool has_rows;       /* a row has come since the start */
    pid_t pid;
    int fd;
    struct dcgm_lines lines;
    struct dcgm_list list;
    struct dcgm_table table;
    char last_message[96];
    char missing_reason[112];
};

struct dcgm *dcgm_create(const char *program, int64_t period_us)
{
    struct dcgm *dcgm = calloc(1, sizeof *dcgm);
    if (!dcgm)
        return NULL;
    snprintf(dcgm->program, sizeof dcgm->program, "%s", program);
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
    program_kill(dcgm->pid);
}

void dcgm_destroy(struct dcgm *dcgm)
{
    if (dcgm)
        end_program(dcgm);
    free(dcgm);
}

/* The pause counts as a first one: nothing is wrong with dcgmi. */
void dcgm_set_period(struct dcgm *dcgm, int64_t period_us)
{
    if (period_us == dcgm->period_us)
        return;
    end_program(dcgm);
    dcgm->period_us = period_us;
    dcgm->phase = PAUSED;
    dcgm->pause_us = 0;
}

void dcgm_add_gpu(struct dcgm *dcgm, size_t gpu, const char *uuid)
{
    snprintf(dcgm->wanted[gpu].uuid, sizeof dcgm->wanted[gpu].uuid, "%s", uuid);
}

const char *dcgm_missing_reason(const struct dcgm *dcgm)
{
    if (dcgm->phase == STREAMING && dcgm->has_rows)
        return "dcgmi reports nothing about this GPU at the moment";
    return *dcgm->missing_reason ? dcgm->missing_reason : "dcgmi has not reported anything yet";
}

/* ---- phases ---- */

static void pause_for_restart(struct dcgm *dcgm, int64_t now_us, const char *why)
{
    bool lived = dcgm->phase == STREAMING && now_us - dcgm->began_us > REST_MAX_US;
    int64_t longer_us = dcgm->pause_us && !lived ? 2 * dcgm->pause_us : dcgm->period_us;
    end_program(dcgm);
    snprintf(dcgm->missing_reason, sizeof dcgm->missing_reason, "%s%s%.*s", why,
        *dcgm->last_message ? ": " : "", (int)sizeof dcgm->last_message, dcgm->last_message);
    dcgm->phase = PAUSED;
    dcgm->began_us = now_us;
    dcgm->pause_us = longer_us < REST_MAX_US ? longer_us : REST_MAX_US;
}

static void start_program(
    struct dcgm *dcgm, int64_t now_us, enum phase phase, const char *const *argv)
{
    struct fault fault = {0};
    char path[PATH_MAX];
    dcgm->lines = (struct dcgm_lines){0};
    dcgm->table = (struct dcgm_table){0};
    dcgm->list = (struct dcgm_list){0};
    dcgm->last_message[0] = '\0';
    if (!program_find(dcgm->program, path, sizeof path)) {
        snprintf(dcgm->last_message, sizeof dcgm->last_message, "it comes with NVIDIA DCGM");
        pause_for_restart(
            dcgm, now_us, "SM activity of this GPU needs dcgmi, which is not on PATH");
        return;
    }
    struct program run = {.path = path, .argv = (char *const *)(uintptr_t)argv, .envp = environ};
    if (program_start(&run, &dcgm->pid, &dcgm->fd, &fault) < 0) {
        pause_for_restart(dcgm, now_us, fault.text);
        return;
    }
    dcgm->phase = phase;
    dcgm->began_us = dcgm->last_row_us = now_us;
    dcgm->has_rows = false;
}

static void start_list(struct dcgm *dcgm, int64_t now_us)
{
    for (int i = 0; i < DCGM_GPUS_MAX; i++) {
        dcgm->gpu_of[i] = -1;
        dcgm->wanted[i].begun = false;
    }
    start_program(dcgm, now_us, LISTING, (const char *[]){"dcgmi", "discovery", "-l", NULL});
}

static void start_stream(struct dcgm *dcgm, int64_t now_us)
{
    char gpus[4 * DCGM_GPUS_MAX] = "", period[24];
    size_t used = 0;
    for (int i = 0; i < DCGM_GPUS_MAX; i++)
        if (dcgm->gpu_of[i] >= 0)
            used += (size_t)snprintf(gpus + used, sizeof gpus - used, "%s%d", used ? "," : "", i);
    snprintf(period, sizeof period, "%lld", (long long)(dcgm->period_us / MS_US));
    if (used == 0)
        pause_for_restart(dcgm, now_us, "dcgmi lists none of the GPUs to query");
    else
        start_program(dcgm, now_us, STREAMING,
            (const char *[]){
                "dcgmi", "dmon", "-e", DCGM_FIELD_IDS, "-d", period, "-i", gpus, NULL});
}

static void on_program_end(struct dcgm *dcgm, int64_t now_us)
{
    if (dcgm->phase == STREAMING) {
        pause_for_restart(dcgm, now_us, "dcgmi dmon has ended");
        return;
    }
    end_program(dcgm);
    start_stream(dcgm, now_us);
}

/* ---- its output ---- */

static void take_list_line(struct dcgm *dcgm, struct span line)
{
    struct span uuid;
    if (!dcgm_list_take(&dcgm->list, line, &uuid))
        return;
    for (int i = 0; i < DCGM_GPUS_MAX; i++)
        if (*dcgm->wanted[i].uuid && span_is(uuid, dcgm->wanted[i].uuid))
            dcgm->gpu_of[dcgm->list.gpu] = i;
}

/* The first row of a stream is a mean over no time, and may be 0: it is ignored. */
static void keep_row(struct dcgm_gpu *wanted, const struct dcgm_row *row, int64_t now_us)
{
    if (wanted->begun) {
        wanted->row = *row;
        wanted->has_row = true;
        wanted->row_us = now_us;
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
    dcgm->last_row_us = now_us;
    dcgm->has_rows = true;
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
        span_copy(line, dcgm->last_message, sizeof dcgm->last_message);
}

static void read_all(struct dcgm *dcgm, int64_t now_us)
{
    const int pieces_max = 64; /* more than a pipe holds; the rest is read at the next poll */
    char data[4096];
    for (int i = 0; i < pieces_max; i++) {
        ssize_t n = read(dcgm->fd, data, sizeof data);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0) {
            on_program_end(dcgm, now_us);
            return;
        }
        struct span piece = {data, (size_t)n}, line;
        while (dcgm_lines_next(&dcgm->lines, &piece, &line))
            take_line(dcgm, line, now_us);
    }
}

void dcgm_poll(struct dcgm *dcgm, int64_t now_us)
{
    int64_t silent_max_us = 10 * dcgm->period_us > SILENT_MAX_US ? 10 * dcgm->period_us
                                                                 : SILENT_MAX_US;
    if (dcgm->phase == PAUSED && now_us - dcgm->began_us >= dcgm->pause_us)
        start_list(dcgm, now_us);
    if (dcgm->phase != PAUSED)
        read_all(dcgm, now_us);
    if (dcgm->phase != PAUSED && now_us - dcgm->last_row_us > silent_max_us)
        pause_for_restart(dcgm, now_us, "dcgmi was silent and is restarted");
}

const struct dcgm_row *dcgm_latest(
    const struct dcgm *dcgm, size_t gpu, int64_t now_us, int64_t *ret_at_us)
{
    const struct dcgm_gpu *wanted = &dcgm->wanted[gpu];
    if (!wanted->has_row || now_us - wanted->row_us > dcgm->period_us * 3 / 2)
        return NULL;
    *ret_at_us = wanted->row_us;
    return &wanted->row;
}
