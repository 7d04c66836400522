/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the reports of a thousand agents cost the controller: each agent sends one a second, with
 * eight GPUs and three processes on each. A child process sends as all agents, the first reports in
 * munge credentials, the others signed by the keys that come back; the parent's processor time is
 * the controller's. Then munged's time is shown.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/process.h"
#include "bench.h"
#include "munged.h"
#include "nodelink/munge_seal.h"
#include "nodelink/node_answer.h"
#include "nodelink/node_hub.h"

enum { AGENTS = 1000, SECONDS = 10, GPUS = 8, PROCESSES = 3 };

static struct munged munged;
static int n_reports;

/* ---- the agents ---- */

static char *encode_report(int agent, size_t *ret_size)
{
    struct node_process processes[PROCESSES];
    struct node_gpu gpus[GPUS];
    struct node_report report = {.boot = "6e5f2f0c-9a3c-4a4e-8f55-6c9f0b6f7a11",
        .sequence = clock_monotonic_us(),
        .time_us = clock_wall_us(),
        .gpus = gpus,
        .n_gpus = GPUS};
    char *text;
    snprintf(report.node, sizeof report.node, "n%d", agent);
    for (int i = 0; i < PROCESSES; i++)
        processes[i] = (struct node_process){
            .pid = 100000 + i, .memory_bytes = reading_of(21474836480.0), .job = 123456};
    for (int i = 0; i < GPUS; i++)
        gpus[i] = (struct node_gpu){.index = i,
            .uuid = "GPU-6e5f2f0c-9a3c-4a4e-8f55-6c9f0b6f7a11",
            .memory_total_bytes = reading_of(85899345920.0),
            .memory_used_bytes = reading_of(64424509440.0),
            .smact = reading_of(0.731),
            .power_w = reading_of(412.5),
            .processes_known = true,
            .processes = processes,
            .n_processes = PROCESSES};
    if (node_report_encode(&report, &text, ret_size) < 0)
        _exit(1);
    return text;
}

static int connect_agent(const struct tcp_address *address)
{
    int fd = socket(address->storage.ss_family, SOCK_STREAM, 0);
    if (connect(fd, (const struct sockaddr *)&address->storage, address->size) < 0)
        _exit(1);
    return fd;
}

static void send_line(int fd, char *line)
{
    size_t size = strlen(line);
    line[size] = '\n';
    if (send(fd, line, size + 1, MSG_NOSIGNAL) != (ssize_t)size + 1)
        _exit(1);
    free(line);
}

static void send_first(struct munge_seal *seal, int agent, int fd)
{
    struct fault fault;
    size_t size;
    char *credential, *text = encode_report(agent, &size);
    if (munge_seal_encode(seal, text, size, &fault, &credential) < 0)
        _exit(1);
    free(text);
    send_line(fd, credential);
}

static void take_key(struct munge_seal *seal, int fd, struct report_session *session)
{
    static char line[ANSWER_SIZE_MAX];
    struct node_answer answer;
    struct fault fault;
    size_t used = 0, size;
    char *text;
    while (used == 0 || line[used - 1] != '\n') {
        ssize_t n = recv(fd, line + used, sizeof line - used, 0);
        if (n <= 0)
            _exit(1);
        used += (size_t)n;
    }
    line[used - 1] = '\0';
    if (munge_seal_decode(seal, line, &fault, &text, &size) != 0 ||
        node_answer_decode(text, size, &fault, &answer) < 0 ||
        report_session_take_key(session, answer.key) < 0)
        _exit(1);
    free(text);
}

static void send_next(struct report_session *session, int agent, int fd)
{
    size_t size;
    char *line, *text = encode_report(agent, &size);
    if (report_session_seal(session, text, size, &line) < 0)
        _exit(1);
    free(text);
    send_line(fd, line);
}

_Noreturn static void run_agents(const struct tcp_address *address)
{
    static int fds[AGENTS];
    static struct report_session sessions[AGENTS];
    struct munge_seal *seal = munge_seal_create(munged.socket, geteuid(), geteuid());
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int i = 0; i < AGENTS; i++) {
        fds[i] = connect_agent(address);
        send_first(seal, i, fds[i]);
        usleep(2000); /* real agents come back over a second or more */
    }
    for (int i = 0; i < AGENTS; i++)
        take_key(seal, fds[i], &sessions[i]);
    int64_t due_us = clock_monotonic_us();
    for (int i = 0;; i = (i + 1) % AGENTS, due_us += SECOND_US / AGENTS) {
        int64_t wait_us = due_us - clock_monotonic_us();
        if (wait_us > 0)
            usleep((useconds_t)wait_us);
        send_next(&sessions[i], i, fds[i]);
    }
}

/* ---- the controller ---- */

static bool knows_node(void *context, const char *node)
{
    return true;
}

static void on_report(void *context, const struct node_report *report)
{
    n_reports++;
}

static void on_gone(void *context, const char *node)
{
    fprintf(stderr, "%s is gone\n", node);
    exit(1);
}

static double cpu_s(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static double munged_cpu_s(void)
{
    struct process_stat stat;
    char *text;
    size_t size;
    if (process_read_entry(munged.pid, "stat", 4096, &text, &size) < 0)
        return 0;
    process_parse_stat(text, &stat);
    free(text);
    return (double)stat.cpu_ticks / (double)sysconf(_SC_CLK_TCK);
}

/* One value for each second. */
static void measure(uv_loop_t *loop)
{
    double hub[SECONDS], munge[SECONDS], rate[SECONDS];
    while (n_reports < 3 * AGENTS)
        uv_run(loop, UV_RUN_ONCE);
    for (int i = 0; i < SECONDS; i++) {
        int before = n_reports;
        double cpu = cpu_s(), munge_cpu = munged_cpu_s();
        int64_t begun_us = clock_monotonic_us();
        while (clock_monotonic_us() - begun_us < SECOND_US)
            uv_run(loop, UV_RUN_ONCE);
        double span_s = (double)(clock_monotonic_us() - begun_us) / 1e6;
        hub[i] = 100 * (cpu_s() - cpu) / span_s;
        munge[i] = 100 * (munged_cpu_s() - munge_cpu) / span_s;
        rate[i] = (n_reports - before) / span_s;
    }
    bench_row("reports of 1,000 agents accepted", "1/s", "median > 950", rate, SECONDS);
    bench_row("controller's part of a core for them", "%", "median < 10", hub, SECONDS);
    bench_row("munged's", "%", "", munge, SECONDS);
}

int main(void)
{
    struct fault fault;
    struct node_hub *hub;
    uv_loop_t *loop = uv_default_loop();
    log_set_level(LOG_LEVEL_WARNING);
    int r = munged_start(&munged);
    if (r != 0) {
        munged_remove(&munged);
        return r < 0;
    }
    const struct node_hub_options options = {.loop = loop,
        .address = "127.0.0.1:0",
        .munge_socket = munged.socket,
        .agents = geteuid(),
        .hooks = {NULL, knows_node, on_report, on_gone}};
    if (node_hub_create(&options, &fault, &hub) < 0)
        return 1;
    pid_t agents = fork();
    if (agents == 0)
        run_agents(node_hub_address(hub));
    measure(loop);
    kill(agents, SIGKILL);
    waitpid(agents, NULL, 0);
    munged_remove(&munged);
    node_hub_close(hub);
    uv_run(loop, UV_RUN_DEFAULT);
    node_hub_destroy(hub);
    return 0;
}
