/* SPDX-License-Identifier: Apache-2.0 */
/*
 * colloc-dcgm: prints what libdcgm measures, so that a crash or a hang in that library ends this
 * process and not its caller's.
 *
 *     colloc-dcgm                        prints the source only
 *     colloc-dcgm PERIOD_MS ENTITY...    prints rows at this period until it is killed
 *
 * An ENTITY is a GPU by its UUID, or a MIG instance by its card's UUID and NVML's number:
 *
 *     source libdcgm.so.4 with nv-hostengine
 *     entity GPU-4d75f16a GPU 0
 *     entity GPU-4d75f16a/2 GPU-I 11
 *     #Entity GPUTL GRACT SMACT
 *     GPU 0 98 0.971 0.612
 *     GPU-I 11 N/A 0.5 0.3
 *
 * gpu/dcgm_table.h parses it. Entities that DCGM does not list are left out. A failure is one line
 * on stderr and exit status 1.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "gpu/dcgm_session.h"
#include "gpu/dcgm_table.h"

/* The process ends when one round takes this much longer than a period: a call hangs. Its caller
 * may be gone. Chosen: three times the caller's own limit. */
enum { HANG_MAX_S = 30 };

/* A value is not known when it is older: the engine has stopped measuring. Chosen. */
enum { AGE_MAX_PERIODS = 3 };

struct stream {
    struct dcgm_session session;
    int64_t period_us;
    unsigned short field[DCGM_FIELDS];
    struct dcgm_abi_entity *entity;
    size_t count;
};

static const char *kind_name(const struct dcgm_abi_entity *entity)
{
    return entity->kind == DCGM_ABI_GPU_INSTANCE ? "GPU-I" : "GPU";
}

/* "GPU-4d75f16a/2", which it cuts at the slash. */
static int split_instance(char *name)
{
    char *slash = strchr(name, '/');
    int64_t instance;
    if (!slash || parse_int64(slash + 1, 0, DCGM_NUMBER_MAX, &instance) < 0)
        return -1;
    *slash = '\0';
    return (int)instance;
}

static int find_entity(struct stream *stream, const char *name, struct fault *fault)
{
    struct dcgm_abi_entity *entity = &stream->entity[stream->count];
    char card[128];
    snprintf(card, sizeof card, "%s", name);
    int instance = split_instance(card);
    int r = dcgm_session_find(&stream->session, card, instance, fault, entity);
    if (r == 0) {
        printf("entity %s %s %u\n", name, kind_name(entity), entity->number);
        stream->count++;
    }
    return r;
}

static int find_entities(struct stream *stream, char **names, struct fault *fault)
{
    for (; *names; names++) {
        int r = find_entity(stream, *names, fault);
        if (r < 0)
            return r;
    }
    return stream->count > 0 ? 0 : fault_set(fault, ENODEV, "libdcgm lists none of the GPUs");
}

static void print_header(void)
{
    printf("#Entity");
    for (int i = 0; i < DCGM_FIELDS; i++)
        printf(" %s", dcgm_field_name((enum dcgm_field)i));
    printf("\n");
}

static int print_row(
    struct stream *stream, const struct dcgm_abi_entity *entity, struct fault *fault)
{
    struct reading reading[DCGM_FIELDS];
    int64_t oldest_us = clock_wall_us() - AGE_MAX_PERIODS * stream->period_us;
    int r = dcgm_session_read(
        &stream->session, entity, stream->field, DCGM_FIELDS, oldest_us, fault, reading);
    if (r < 0)
        return r;
    printf("%s %u", kind_name(entity), entity->number);
    for (int i = 0; i < DCGM_FIELDS; i++)
        if (reading[i].valid)
            printf(" %.9g", reading[i].value);
        else
            printf(" N/A");
    printf("\n");
    return 0;
}

static void sleep_until(int64_t at_us)
{
    int64_t left_us = at_us - clock_monotonic_us();
    struct timespec left = {left_us / SECOND_US, left_us % SECOND_US * 1000};
    if (left_us > 0)
        nanosleep(&left, NULL);
}

static void guard_against_hang(const struct stream *stream)
{
    alarm((unsigned)(stream->period_us / SECOND_US + HANG_MAX_S));
}

/* Returns -errno with a fault; 0 when the reader is gone. */
static int print_rows(struct stream *stream, struct fault *fault)
{
    int r = 0;
    print_header();
    for (int64_t next_us = clock_monotonic_us(); r == 0 && fflush(stdout) == 0;) {
        next_us += stream->period_us;
        guard_against_hang(stream);
        sleep_until(next_us);
        for (size_t i = 0; i < stream->count && r == 0; i++)
            r = print_row(stream, &stream->entity[i], fault);
    }
    return r;
}

static int run_stream(struct stream *stream, char **names, struct fault *fault)
{
    int r = find_entities(stream, names, fault);
    if (r == 0)
        r = dcgm_session_watch(&stream->session, stream->entity, stream->count, stream->field,
            DCGM_FIELDS, stream->period_us, fault);
    return r < 0 ? r : print_rows(stream, fault);
}

static int print_dcgm(int argc, char **argv, struct stream *stream, struct fault *fault)
{
    guard_against_hang(stream);
    int r = dcgm_session_open(&stream->session, fault);
    if (r < 0)
        return r;
    printf("source %s with %s\n", stream->session.library.name, stream->session.engine);
    return argc > 2 ? run_stream(stream, argv + 2, fault) : 0;
}

/* The library's threads and exit handlers are left behind: they may hang. */
int main(int argc, char **argv)
{
    struct stream stream = {.entity = calloc((size_t)argc, sizeof *stream.entity)};
    struct fault fault = {0};
    int64_t period_ms = 0;
    if (!stream.entity ||
        (argc > 1 && (parse_int64(argv[1], 1, INT32_MAX, &period_ms) < 0 || argc == 2))) {
        fprintf(stderr, "usage: colloc-dcgm [PERIOD_MS GPU-UUID[/INSTANCE]...]\n");
        _exit(2);
    }
    stream.period_us = period_ms * MS_US;
    for (int i = 0; i < DCGM_FIELDS; i++)
        stream.field[i] = dcgm_field_id((enum dcgm_field)i);
    int r = print_dcgm(argc, argv, &stream, &fault);
    fflush(stdout);
    if (r < 0)
        fprintf(stderr, "%s\n", fault.text);
    _exit(r < 0);
}
