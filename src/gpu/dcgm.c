/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs dcgmi and reads its rows. Four phases:
 *
 *     PAUSED --pause over--> LISTING_GPUS (discovery -l) --end--> STREAMING (dmon)
 *     LISTING_GPUS --end, if instances are watched--> LISTING_INSTANCES (discovery -c)
 *     LISTING_INSTANCES --end--> STREAMING
 *     STREAMING --end, or silence--> PAUSED
 *
 * DCGM may learn of a new MIG instance later than colloc: a stream without one ends after a minute,
 * the next one after two, and so on.
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

/* The time until instances that are not listed are asked for again, first and at most. Chosen: each
 * time the activity of all others is not known for some periods. */
#define ASK_FIRST_US (60 * SECOND_US)
#define ASK_MAX_US   (60 * 60 * SECOND_US)

enum phase { PAUSED, LISTING_GPUS, LISTING_INSTANCES, STREAMING };

/* A GPU or a MIG instance whose activity is asked for. */
struct watched {
    char uuid[sizeof(((struct gpu_info *)0)->uuid)]; /* of the card; "": nothing is watched */
    bool is_instance;
    unsigned gpu_instance; /* NVML's number */

    char name[24];   /* as `dmon -i` takes it: "0", "0/2"; "": dcgmi does not list it */
    unsigned number; /* DCGM's, if listed */
    struct dcgm_row row;
    bool begun; /* the stream's first row has come */
    bool has_row;
    int64_t row_us;
};

struct dcgm {
    char program[512];
    int64_t period_us;
    struct watched watched[DCGM_WATCHED_MAX]; /* by the caller's number */
    size_t n_watched;                         /* the largest number in use, plus 1 */

    enum phase phase;
    int64_t began_us;    /* of the phase */
    int64_t pause_us;    /* how long a pause takes */
    int64_t ask_us;      /* a stream without a watched instance ends after that */
    int64_t last_row_us; /* time of the last row, or of the start */
    bool has_rows;       /* a row has come since the start */
    pid_t pid;
    int fd;
    struct dcgm_lines lines;
    struct dcgm_list list;
    struct dcgm_tree tree;
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
    dcgm->ask_us = ASK_FIRST_US;
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
static void start_anew(struct dcgm *dcgm)
{
    end_program(dcgm);
    dcgm->phase = PAUSED;
    dcgm->pause_us = 0;
}

void dcgm_set_period(struct dcgm *dcgm, int64_t period_us)
{
    if (period_us == dcgm->period_us)
        return;
    dcgm->period_us = period_us;
    start_anew(dcgm);
}

void dcgm_watch_none(struct dcgm *dcgm)
{
    memset(dcgm->watched, 0, sizeof dcgm->watched);
    dcgm->n_watched = 0;
    dcgm->ask_us = ASK_FIRST_US;
    start_anew(dcgm);
}

static void add_watched(struct dcgm *dcgm, size_t i, const struct watched *watched)
{
    dcgm->watched[i] = *watched;
    if (i >= dcgm->n_watched)
        dcgm->n_watched = i + 1;
}

void dcgm_add_gpu(struct dcgm *dcgm, size_t i, const char *uuid)
{
    struct watched gpu = {0};
    snprintf(gpu.uuid, sizeof gpu.uuid, "%s", uuid);
    add_watched(dcgm, i, &gpu);
}

void dcgm_add_instance(struct dcgm *dcgm, size_t i, const char *card_uuid, unsigned gpu_instance)
{
    struct watched instance = {.is_instance = true, .gpu_instance = gpu_instance};
    snprintf(instance.uuid, sizeof instance.uuid, "%s", card_uuid);
    add_watched(dcgm, i, &instance);
}

const char *dcgm_missing_reason(const struct dcgm *dcgm, size_t i)
{
    const struct watched *watched = &dcgm->watched[i];
    if (dcgm->phase == STREAMING && !*watched->name)
        return watched->is_instance ? "`dcgmi discovery -c` does not list this MIG instance"
                                    : "`dcgmi discovery -l` does not list this GPU";
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
    dcgm->tree = (struct dcgm_tree){0};
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

static void list_gpus(struct dcgm *dcgm, int64_t now_us)
{
    for (size_t i = 0; i < dcgm->n_watched; i++) {
        dcgm->watched[i].name[0] = '\0';
        dcgm->watched[i].begun = false;
    }
    start_program(dcgm, now_us, LISTING_GPUS, (const char *[]){"dcgmi", "discovery", "-l", NULL});
}

static void list_instances(struct dcgm *dcgm, int64_t now_us)
{
    start_program(
        dcgm, now_us, LISTING_INSTANCES, (const char *[]){"dcgmi", "discovery", "-c", NULL});
}

/* Compute instances of one GPU instance have its activity, which is asked for once. */
static bool is_named_before(const struct dcgm *dcgm, size_t i)
{
    for (size_t other = 0; other < i; other++)
        if (strcmp(dcgm->watched[other].name, dcgm->watched[i].name) == 0)
            return true;
    return false;
}

static void start_stream(struct dcgm *dcgm, int64_t now_us)
{
    char names[DCGM_WATCHED_MAX * sizeof dcgm->watched[0].name] = "", period[24];
    size_t used = 0;
    for (size_t i = 0; i < dcgm->n_watched; i++)
        if (*dcgm->watched[i].name && !is_named_before(dcgm, i))
            used += (size_t)snprintf(
                names + used, sizeof names - used, "%s%s", used ? "," : "", dcgm->watched[i].name);
    snprintf(period, sizeof period, "%lld", (long long)(dcgm->period_us / MS_US));
    if (used == 0)
        pause_for_restart(dcgm, now_us, "dcgmi lists none of the GPUs to query");
    else
        start_program(dcgm, now_us, STREAMING,
            (const char *[]){
                "dcgmi", "dmon", "-e", DCGM_FIELD_IDS, "-d", period, "-i", names, NULL});
}

static bool has_instances(const struct dcgm *dcgm)
{
    for (size_t i = 0; i < dcgm->n_watched; i++)
        if (dcgm->watched[i].is_instance)
            return true;
    return false;
}

static bool lacks_instance(const struct dcgm *dcgm)
{
    for (size_t i = 0; i < dcgm->n_watched; i++)
        if (dcgm->watched[i].is_instance && !*dcgm->watched[i].name)
            return true;
    return false;
}

static void on_program_end(struct dcgm *dcgm, int64_t now_us)
{
    if (dcgm->phase == STREAMING) {
        pause_for_restart(dcgm, now_us, "dcgmi dmon has ended");
        return;
    }
    end_program(dcgm);
    if (dcgm->phase == LISTING_GPUS && has_instances(dcgm))
        list_instances(dcgm, now_us);
    else
        start_stream(dcgm, now_us);
}

/* ---- its output ---- */

static void take_gpu(struct dcgm *dcgm, struct span line)
{
    struct span uuid;
    if (!dcgm_list_take(&dcgm->list, line, &uuid))
        return;
    for (size_t i = 0; i < dcgm->n_watched; i++) {
        struct watched *gpu = &dcgm->watched[i];
        if (gpu->is_instance || !*gpu->uuid || !span_is(uuid, gpu->uuid))
            continue;
        gpu->number = dcgm->list.gpu;
        snprintf(gpu->name, sizeof gpu->name, "%u", gpu->number);
    }
}

static void take_instance(struct dcgm *dcgm, struct span line)
{
    struct dcgm_instance found;
    if (!dcgm_tree_take(&dcgm->tree, line, &found))
        return;
    for (size_t i = 0; i < dcgm->n_watched; i++) {
        struct watched *instance = &dcgm->watched[i];
        if (!instance->is_instance || instance->gpu_instance != found.gpu_instance ||
            strcmp(instance->uuid, dcgm->tree.card) != 0)
            continue;
        instance->number = found.number;
        snprintf(instance->name, sizeof instance->name, "%u/%u", found.card, found.gpu_instance);
    }
}

/* The first row of a stream is a mean over no time, and may be 0: it is ignored. */
static void keep_row(struct watched *watched, const struct dcgm_row *row, int64_t now_us)
{
    if (watched->begun) {
        watched->row = *row;
        watched->has_row = true;
        watched->row_us = now_us;
    }
    watched->begun = true;
}

/* True when the line was understood. */
static bool take_row(struct dcgm *dcgm, struct span line, int64_t now_us)
{
    struct dcgm_row row;
    if (!dcgm_table_take(&dcgm->table, line, &row))
        return false;
    for (size_t i = 0; i < dcgm->n_watched; i++) {
        struct watched *watched = &dcgm->watched[i];
        if (*watched->name && watched->is_instance == row.is_instance &&
            watched->number == row.number)
            keep_row(watched, &row, now_us);
    }
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
    if (dcgm->phase == LISTING_GPUS)
        take_gpu(dcgm, line);
    else if (dcgm->phase == LISTING_INSTANCES)
        take_instance(dcgm, line);
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
        list_gpus(dcgm, now_us);
    if (dcgm->phase != PAUSED)
        read_all(dcgm, now_us);
    if (dcgm->phase != PAUSED && now_us - dcgm->last_row_us > silent_max_us)
        pause_for_restart(dcgm, now_us, "dcgmi was silent and is restarted");
    if (dcgm->phase == STREAMING && lacks_instance(dcgm) &&
        now_us - dcgm->began_us > dcgm->ask_us) {
        dcgm->ask_us = 2 * dcgm->ask_us < ASK_MAX_US ? 2 * dcgm->ask_us : ASK_MAX_US;
        pause_for_restart(dcgm, now_us, "dcgmi is asked for its MIG instances again");
    }
}

const struct dcgm_row *dcgm_latest(
    const struct dcgm *dcgm, size_t i, int64_t now_us, int64_t *ret_at_us)
{
    const struct watched *watched = &dcgm->watched[i];
    if (!watched->has_row || now_us - watched->row_us > dcgm->period_us * 3 / 2)
        return NULL;
    *ret_at_us = watched->row_us;
    return &watched->row;
}
