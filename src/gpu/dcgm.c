/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs colloc-dcgm, or dcgmi where that does not work, and reads its rows. Four phases:
 *
 *     PAUSED --pause over--> STREAMING (colloc-dcgm, which finds the entities itself)
 *     STREAMING --colloc-dcgm fails within a minute--> LISTING_GPUS (dcgmi discovery -l)
 *     LISTING_GPUS --end--> STREAMING (dcgmi dmon)
 *     LISTING_GPUS --end, if instances are watched--> LISTING_INSTANCES (dcgmi discovery -c)
 *     LISTING_INSTANCES --end--> STREAMING (dcgmi dmon)
 *     STREAMING --end, or silence--> PAUSED
 *
 * A step waits until the process before it has ended: one that is killed inside the driver, or on a
 * busy machine, ends late.
 *
 * So each start tries the library first, and a library that crashes, hangs or refuses is left for
 * dcgmi at once.
 *
 * DCGM may learn of a new MIG instance later than colloc: a stream without one ends after a minute,
 * the next one after two, and so on.
 */
#include "gpu/dcgm.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/beside.h"
#include "base/clock.h"
#include "gpu/dcgm_watched.h"
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

struct dcgm;
typedef void dcgm_step(struct dcgm *dcgm, int64_t now_us);

struct dcgm {
    char helper[512]; /* colloc-dcgm; "": there is none */
    char dcgmi[512];
    int64_t period_us;
    struct dcgm_watched_list watched;

    enum phase phase;
    bool by_library;     /* the stream is colloc-dcgm's, not dcgmi's */
    int64_t began_us;    /* of the phase */
    int64_t pause_us;    /* how long a pause takes */
    int64_t ask_us;      /* a stream without a watched instance ends after that */
    int64_t last_row_us; /* time of the last row, or of the start */
    bool has_rows;       /* a row has come since the start */
    pid_t pid;
    pid_t ending;    /* a child that was killed and has not ended yet; 0: none */
    dcgm_step *next; /* what is done when it has ended; NULL: the phase goes on */
    int fd;
    struct dcgm_lines lines;
    struct dcgm_list list;
    struct dcgm_tree tree;
    struct dcgm_table table;
    char last_message[96];
    char missing_reason[112];
    char library_failure[96];
    char stream_source[160]; /* of the stream, which may not have rows yet */
    char source[160];
};

int dcgm_find_helper(char *path, size_t size)
{
    static const char *const places[] = {".", "../" COLLOC_LIBEXEC_DIR "/colloc", "../gpu"};
    *path = '\0';
    return beside_find(places, ARRAY_SIZE(places), "colloc-dcgm", path, size);
}

struct dcgm *dcgm_create(const char *helper, const char *dcgmi, int64_t period_us)
{
    struct dcgm *dcgm = calloc(1, sizeof *dcgm);
    if (!dcgm)
        return NULL;
    snprintf(dcgm->helper, sizeof dcgm->helper, "%s", helper);
    snprintf(dcgm->dcgmi, sizeof dcgm->dcgmi, "%s", dcgmi);
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
    if (!program_kill(dcgm->pid))
        dcgm->ending = dcgm->pid;
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
    dcgm->next = NULL;
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
    dcgm->watched = (struct dcgm_watched_list){0};
    dcgm->ask_us = ASK_FIRST_US;
    start_anew(dcgm);
}

void dcgm_add_gpu(struct dcgm *dcgm, size_t i, const char *uuid)
{
    dcgm_watched_add_gpu(&dcgm->watched, i, uuid);
}

void dcgm_add_instance(struct dcgm *dcgm, size_t i, const char *card_uuid, unsigned gpu_instance)
{
    dcgm_watched_add_instance(&dcgm->watched, i, card_uuid, gpu_instance);
}

const char *dcgm_source(const struct dcgm *dcgm)
{
    return dcgm->source;
}

static const char *explain_not_listed(const struct dcgm *dcgm, bool is_instance)
{
    static const char *const texts[][2] = {
        {"`dcgmi discovery -l` does not list this GPU",
            "`dcgmi discovery -c` does not list this MIG instance"},
        {"libdcgm does not list this GPU", "libdcgm does not list this MIG instance"},
    };
    return texts[dcgm->by_library][is_instance];
}

const char *dcgm_missing_reason(const struct dcgm *dcgm, size_t i)
{
    const struct dcgm_watched *watched = &dcgm->watched.at[i];
    if (dcgm->phase == STREAMING && !watched->is_listed && (dcgm->has_rows || !dcgm->by_library))
        return explain_not_listed(dcgm, watched->is_instance);
    if (dcgm->phase == STREAMING && dcgm->has_rows)
        return dcgm->by_library ? "libdcgm reports nothing about this GPU at the moment"
                                : "dcgmi reports nothing about this GPU at the moment";
    return *dcgm->missing_reason ? dcgm->missing_reason : "DCGM has not reported anything yet";
}

/* ---- phases ---- */

static bool has_lived(const struct dcgm *dcgm, int64_t now_us)
{
    return dcgm->phase == STREAMING && dcgm->has_rows && now_us - dcgm->began_us > REST_MAX_US;
}

static void pause_for_restart(struct dcgm *dcgm, int64_t now_us, const char *why)
{
    bool doubles = dcgm->pause_us && !has_lived(dcgm, now_us);
    int64_t longer_us = doubles ? 2 * dcgm->pause_us : dcgm->period_us;
    end_program(dcgm);
    snprintf(dcgm->missing_reason, sizeof dcgm->missing_reason, "%s%s%s", why,
        *dcgm->last_message ? ": " : "", dcgm->last_message);
    dcgm->phase = PAUSED;
    dcgm->began_us = now_us;
    dcgm->pause_us = longer_us < REST_MAX_US ? longer_us : REST_MAX_US;
}

/* Does the next step, at once or when the killed process has ended. */
static void go_on(struct dcgm *dcgm, int64_t now_us, dcgm_step *next)
{
    if (!dcgm->ending) {
        next(dcgm, now_us);
        return;
    }
    dcgm->phase = PAUSED;
    dcgm->began_us = now_us;
    dcgm->next = next;
}

static bool last_has_ended(struct dcgm *dcgm, int64_t now_us)
{
    if (dcgm->ending && !program_has_ended(dcgm->ending)) {
        if (now_us - dcgm->began_us > SILENT_MAX_US)
            snprintf(dcgm->missing_reason, sizeof dcgm->missing_reason,
                "the last process was killed and does not end: the driver hangs");
        return false;
    }
    dcgm->ending = 0;
    return true;
}

/* Returns false when the program does not start; a fault says why. */
static bool start_program(struct dcgm *dcgm, int64_t now_us, enum phase phase, const char *path,
    const char *const *argv, struct fault *fault)
{
    struct program run = {.path = path, .argv = (char *const *)(uintptr_t)argv, .envp = environ};
    dcgm->lines = (struct dcgm_lines){0};
    dcgm->table = (struct dcgm_table){0};
    dcgm->list = (struct dcgm_list){0};
    dcgm->tree = (struct dcgm_tree){0};
    dcgm->last_message[0] = '\0';
    dcgm->began_us = dcgm->last_row_us = now_us;
    dcgm->has_rows = false;
    if (program_start(&run, &dcgm->pid, &dcgm->fd, fault) < 0)
        return false;
    dcgm->phase = phase;
    return true;
}

static void print_period(const struct dcgm *dcgm, char *text, size_t size)
{
    snprintf(text, size, "%lld", (long long)(dcgm->period_us / MS_US));
}

/* ---- dcgmi ---- */

static void start_dcgmi(
    struct dcgm *dcgm, int64_t now_us, enum phase phase, const char *const *argv)
{
    struct fault fault = {0};
    char path[PATH_MAX];
    if (!program_find(dcgm->dcgmi, path, sizeof path)) {
        snprintf(dcgm->last_message, sizeof dcgm->last_message, "%s", dcgm->library_failure);
        pause_for_restart(dcgm, now_us, "NVIDIA DCGM is needed: dcgmi is not on PATH");
    } else if (!start_program(dcgm, now_us, phase, path, argv, &fault)) {
        pause_for_restart(dcgm, now_us, fault.text);
    }
}

static void list_gpus(struct dcgm *dcgm, int64_t now_us)
{
    dcgm->by_library = false;
    start_dcgmi(dcgm, now_us, LISTING_GPUS, (const char *[]){"dcgmi", "discovery", "-l", NULL});
}

static void list_instances(struct dcgm *dcgm, int64_t now_us)
{
    start_dcgmi(
        dcgm, now_us, LISTING_INSTANCES, (const char *[]){"dcgmi", "discovery", "-c", NULL});
}

static void join_field_ids(char *text, size_t size)
{
    size_t used = 0;
    for (int i = 0; i < DCGM_FIELDS; i++)
        used += (size_t)snprintf(
            text + used, size - used, "%s%u", i ? "," : "", dcgm_field_id((enum dcgm_field)i));
}

static void start_dmon(struct dcgm *dcgm, int64_t now_us)
{
    char names[DCGM_WATCHED_NAMES_SIZE], ids[DCGM_FIELDS * 8], period[24];
    if (!dcgm_watched_join_names(&dcgm->watched, names)) {
        pause_for_restart(dcgm, now_us, "dcgmi lists none of the GPUs to query");
        return;
    }
    join_field_ids(ids, sizeof ids);
    print_period(dcgm, period, sizeof period);
    snprintf(dcgm->stream_source, sizeof dcgm->stream_source, "dcgmi (%s)", dcgm->library_failure);
    start_dcgmi(dcgm, now_us, STREAMING,
        (const char *[]){"dcgmi", "dmon", "-e", ids, "-d", period, "-i", names, NULL});
}

/* ---- colloc-dcgm, then dcgmi ---- */

static void leave_library(struct dcgm *dcgm, int64_t now_us, const char *why)
{
    end_program(dcgm);
    if (*dcgm->last_message)
        why = dcgm->last_message; /* it says what the library refused */
    snprintf(dcgm->library_failure, sizeof dcgm->library_failure, "%s", why);
    go_on(dcgm, now_us, list_gpus);
}

static void start_library(struct dcgm *dcgm, int64_t now_us)
{
    const char *argv[DCGM_WATCHED_MAX + 3] = {"colloc-dcgm"};
    struct fault fault = {0};
    char period[24];
    size_t n = 1;
    print_period(dcgm, period, sizeof period);
    argv[n++] = period;
    n += dcgm_watched_keys(&dcgm->watched, argv + n);
    dcgm->by_library = true;
    if (!*dcgm->helper)
        leave_library(dcgm, now_us, "colloc-dcgm is not installed");
    else if (!start_program(dcgm, now_us, STREAMING, dcgm->helper, argv, &fault))
        leave_library(dcgm, now_us, fault.text);
}

static void start_stream(struct dcgm *dcgm, int64_t now_us)
{
    dcgm_watched_begin_stream(&dcgm->watched);
    start_library(dcgm, now_us);
}

static void on_failure(struct dcgm *dcgm, int64_t now_us, const char *why)
{
    if (dcgm->by_library && !has_lived(dcgm, now_us))
        leave_library(dcgm, now_us, why);
    else
        pause_for_restart(dcgm, now_us, why);
}

static void on_program_end(struct dcgm *dcgm, int64_t now_us)
{
    if (dcgm->phase == STREAMING) {
        on_failure(
            dcgm, now_us, dcgm->by_library ? "colloc-dcgm has ended" : "dcgmi dmon has ended");
        return;
    }
    end_program(dcgm);
    if (dcgm->phase == LISTING_GPUS && dcgm_watched_has_instances(&dcgm->watched))
        go_on(dcgm, now_us, list_instances);
    else
        go_on(dcgm, now_us, start_dmon);
}

/* ---- its output ---- */

static void take_gpu(struct dcgm *dcgm, struct span line)
{
    struct span uuid;
    if (dcgm_list_take(&dcgm->list, line, &uuid))
        dcgm_watched_note_gpu(&dcgm->watched, uuid, dcgm->list.gpu);
}

static void take_instance(struct dcgm *dcgm, struct span line)
{
    struct dcgm_instance found;
    if (dcgm_tree_take(&dcgm->tree, line, &found))
        dcgm_watched_note_instance(&dcgm->watched, dcgm->tree.card, &found);
}

static bool take_entity(struct dcgm *dcgm, struct span line)
{
    struct dcgm_entity entity;
    struct span key;
    if (!dcgm_entity_take(line, &key, &entity))
        return false;
    dcgm_watched_note_entity(&dcgm->watched, key, &entity);
    return true;
}

static bool take_source(struct dcgm *dcgm, struct span line)
{
    struct span source;
    if (!dcgm_source_take(line, &source))
        return false;
    span_copy(source, dcgm->stream_source, sizeof dcgm->stream_source);
    return true;
}

/* True when the line was understood. */
static bool take_row(struct dcgm *dcgm, struct span line, int64_t now_us)
{
    struct dcgm_row row;
    if (!dcgm_table_take(&dcgm->table, line, &row))
        return false;
    dcgm_watched_take_row(&dcgm->watched, &row, now_us);
    dcgm->last_row_us = now_us;
    if (!dcgm->has_rows)
        memcpy(dcgm->source, dcgm->stream_source, sizeof dcgm->source);
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
    else if (take_row(dcgm, line, now_us) ||
             (dcgm->by_library && (take_source(dcgm, line) || take_entity(dcgm, line))))
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
    if (!last_has_ended(dcgm, now_us))
        return;
    if (dcgm->next) {
        dcgm_step *next = dcgm->next;
        dcgm->next = NULL;
        next(dcgm, now_us);
    } else if (dcgm->phase == PAUSED && now_us - dcgm->began_us >= dcgm->pause_us) {
        start_stream(dcgm, now_us);
    }
    if (dcgm->phase != PAUSED)
        read_all(dcgm, now_us);
    if (dcgm->phase != PAUSED && now_us - dcgm->last_row_us > silent_max_us)
        on_failure(dcgm, now_us,
            dcgm->by_library ? "libdcgm was silent" : "dcgmi was silent and is restarted");
    if (dcgm->phase == STREAMING && dcgm_watched_lacks_instance(&dcgm->watched) &&
        now_us - dcgm->began_us > dcgm->ask_us) {
        dcgm->ask_us = 2 * dcgm->ask_us < ASK_MAX_US ? 2 * dcgm->ask_us : ASK_MAX_US;
        pause_for_restart(dcgm, now_us, "DCGM is asked for its MIG instances again");
    }
}

const struct dcgm_row *dcgm_latest(
    const struct dcgm *dcgm, size_t i, int64_t now_us, int64_t *ret_at_us)
{
    const struct dcgm_watched *watched = &dcgm->watched.at[i];
    if (!watched->has_row || now_us - watched->row_us > dcgm->period_us * 3 / 2)
        return NULL;
    *ret_at_us = watched->row_us;
    return &watched->row;
}
