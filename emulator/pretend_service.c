/* SPDX-License-Identifier: Apache-2.0 */
/*
 * colloc-pretend-service: an inference service as others observe it, on emulated GPUs. It takes
 * memory, answers HTTP on a port of this machine, one request after the other, and takes the longer
 * for each the more the processes beside it compute:
 *
 *     alone                                    20 ms
 *     beside a training of 0.6 SM activity     20 ms x 1.6 = 32 ms
 *     the same, while that is frozen           20 ms
 *
 * A frozen process does not show in the emulated machine; but a process that runs enters it every
 * tenth of a second, and notes when. One that has not for a while does not compute.
 */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/units.h"
#include "emulator/memory.h"
#include "emulator/visible.h"
#include "emulator/world.h"

/* Chosen: far longer than a running process takes to enter again, also on a busy host. */
#define FROZEN_US (2 * SECOND_US)

struct service_options {
    int64_t memory_bytes;
    double smact, request_ms;
    int port;
    int64_t requests; /* then it ends with an exit status of 1; 0: never */
};

static const char HELP[] =
    "Usage: colloc-pretend-service [options]\n"
    "Behaves like an inference service on a GPU that 'colloc-emulator create' made ($COLLOC_EMULATOR):\n"
    "answers HTTP on 127.0.0.1, the later the more the processes beside it compute.\n\n"
    "  --port=N          default: $COLLOC_PORT\n"
    "  --memory-mib=N    memory as nvidia-smi shows it (default 2000)\n"
    "  --smact=F         SM activity when alone, 0 to 1 (default 0.2)\n"
    "  --request-ms=F    real milliseconds that a request takes when alone (default 5)\n"
    "  --requests=N      ends with exit status 1 after N requests\n";

/* ---- options ---- */

enum key { PORT = 256, MEMORY_MIB, SMACT, REQUEST_MS, REQUESTS, HELP_ASKED };

static const struct option long_options[] = {
    {"port", required_argument, NULL, PORT},
    {"memory-mib", required_argument, NULL, MEMORY_MIB},
    {"smact", required_argument, NULL, SMACT},
    {"request-ms", required_argument, NULL, REQUEST_MS},
    {"requests", required_argument, NULL, REQUESTS},
    {"help", no_argument, NULL, HELP_ASKED},
    {0},
};

static int parse_port(const char *text, int *ret_port)
{
    int64_t port;
    int r = parse_int64(text, 1, 65535, &port);
    if (r == 0)
        *ret_port = (int)port;
    return r;
}

static int take_option(int key, const char *text, struct service_options *options)
{
    int64_t mib = 0;
    int r = -EINVAL;
    if (key == PORT)
        r = parse_port(text, &options->port);
    else if (key == MEMORY_MIB && (r = parse_int64(text, 1, INT64_C(1) << 30, &mib)) == 0)
        options->memory_bytes = mib * MIB;
    else if (key == SMACT)
        r = parse_double(text, 0, 1, &options->smact);
    else if (key == REQUEST_MS)
        r = parse_double(text, 0, 1e6, &options->request_ms);
    else if (key == REQUESTS)
        r = parse_int64(text, 1, INT64_MAX, &options->requests);
    return r;
}

/* Returns 0; 1 after printing the help; -EINVAL after printing what is wrong. */
static int read_options(int argc, char **argv, struct service_options *options)
{
    const char *port = getenv("COLLOC_PORT");
    int key;
    if (port && parse_port(port, &options->port) < 0)
        options->port = 0;
    while ((key = getopt_long(argc, argv, "", long_options, NULL)) >= 0) {
        if (key == HELP_ASKED) {
            fputs(HELP, stdout);
            return 1;
        }
        if (take_option(key, optarg, options) < 0) {
            fprintf(stderr, "colloc-pretend-service: a wrong option: see --help\n");
            return -EINVAL;
        }
    }
    if (options->port && optind == argc)
        return 0;
    fprintf(stderr, "colloc-pretend-service: --port is required: see --help\n");
    return -EINVAL;
}

/* ---- the GPU ---- */

/* Takes a place on the first visible GPU, and its memory. Returns NULL after printing why not. */
static struct process *join_gpu(struct world *world, const struct service_options *options)
{
    struct seat seats[SEATS_MAX];
    struct process *self = NULL;
    if (visible_seats(world, getenv("CUDA_VISIBLE_DEVICES"), seats) < 1) {
        fprintf(stderr, "RuntimeError: No CUDA GPUs are available\n");
        return NULL;
    }
    world_enter(world);
    self = world_join(world, ROLE_TRAINING, seats, 1);
    if (self) {
        self->demand = (struct demand){
            .gract = NAN, .smact = options->smact, .smocc = NAN, .dram = NAN, .power_w = 0};
        demand_complete(&self->demand, world_kind(world, seats[0].gpu)->work_w);
        self->share = 1;
        self->seen_us = clock_monotonic_us();
        if (memory_take(world, self, seats[0], options->memory_bytes) < 0) {
            world_part(world, self);
            self = NULL;
        }
        world_solve(world);
    }
    world_leave(world);
    if (!self)
        fprintf(stderr, "torch.OutOfMemoryError: CUDA out of memory.\n");
    return self;
}

/* How many times as long as alone a request takes now. */
static double slowdown_now(struct world *world, struct process *self)
{
    double beside = 0;
    world_enter(world);
    int64_t now_us = clock_monotonic_us();
    for (int i = 0; i < world->process_end; i++) {
        const struct process *p = &world->processes[i];
        bool computes = p != self && p->present && p->role == ROLE_TRAINING && !p->off_gpu &&
                        p->cuda_state == CUDA_RUNNING && now_us - p->seen_us < FROZEN_US;
        if (computes && process_sits_on(p, self->seats[0]))
            beside += p->demand.smact;
    }
    self->seen_us = now_us;
    world_leave(world);
    return 1 + beside;
}

/* ---- requests ---- */

/* Reads up to the empty line that ends a request's head. */
static void read_request(int connection)
{
    char buffer[4096];
    size_t n = 0;
    while (n < sizeof buffer) {
        ssize_t got = read(connection, buffer + n, sizeof buffer - n);
        if (got <= 0)
            return;
        n += (size_t)got;
        if (n >= 4 && memmem(buffer, n, "\r\n\r\n", 4))
            return;
    }
}

static void answer_request(struct world *world, struct process *self, double request_ms, int fd)
{
    static const char reply[] =
        "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nok\n";
    read_request(fd);
    double took_s = request_ms / 1e3 * slowdown_now(world, self);
    struct timespec wait = {(time_t)took_s, (long)(fmod(took_s, 1) * 1e9)};
    nanosleep(&wait, NULL);
    ssize_t written = send(fd, reply, strlen(reply), MSG_NOSIGNAL);
    (void)written; /* a client that has left reads no reply */
}

/* Returns the socket, or -errno. */
static int listen_on(int port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int yes = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (bind(fd, (struct sockaddr *)&address, sizeof address) < 0 || listen(fd, 16) < 0) {
        close(fd);
        return -errno;
    }
    return fd;
}

static int serve_requests(struct world *world, const struct service_options *options)
{
    struct process *self = join_gpu(world, options);
    int fd = self ? listen_on(options->port) : -1;
    if (self && fd < 0)
        fprintf(stderr, "colloc-pretend-service: port %d: %s\n", options->port, strerror(errno));
    if (fd < 0)
        return 1;
    printf("answers on port %d\n", options->port);
    fflush(stdout);
    for (int64_t n = 0; !options->requests || n < options->requests; n++) {
        int connection = accept(fd, NULL, NULL);
        if (connection < 0)
            continue;
        answer_request(world, self, options->request_ms, connection);
        close(connection);
    }
    return 1;
}

int main(int argc, char **argv)
{
    struct service_options options = {
        .memory_bytes = 2000 * MIB, .smact = 0.2, .request_ms = 5, .port = 0};
    const char *path = getenv("COLLOC_EMULATOR");
    struct fault fault = {""};
    struct world *world = NULL;
    int r = read_options(argc, argv, &options);
    if (r != 0)
        return r > 0 ? 0 : 2;
    if (!path || world_open(path, &fault, &world) < 0) {
        fprintf(stderr, "colloc-pretend-service: %s\n",
            path ? fault.text : "COLLOC_EMULATOR is not set");
        return 2;
    }
    int status = serve_requests(world, &options);
    world_close(world);
    return status;
}
