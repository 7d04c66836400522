/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the reports of a thousand agents cost the controller: each agent sends one a second, with
 * eight GPUs and three processes on each. From one to the next the SM activity, the power and the
 * used memory of each GPU change, and with the latter that of one of its processes; every tenth
 * report a process has come to one GPU, or has gone. Agents send what has changed, and a whole
 * report each minute, as node_uplink.c does; those of an older version send whole reports only.
 *
 * A child process sends as all agents; the parent's processor time is the controller's, which sees
 * whole reports in the end: on_report holds some of their readings against what was sent. By munge
 * the first reports are credentials, and the others are signed by the keys that come back; munged's
 * time is shown, too. Within TLS the handshakes are measured as well. Each way is measured where it
 * can be: without munged only TLS is.
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
#include "nodelink/node_changes.h"
#include "nodelink/node_hub.h"
#include "nodelink/tls_channel.h"

enum {
    AGENTS = 1000,
    SECONDS = 10,
    GPUS = 8,
    PROCESSES = 3,
    WHOLE_EVERY = 60,   /* as CHANGES_MAX of node_uplink.c */
    PROCESS_EVERY = 10, /* reports of an agent, in which a process comes or goes */
};

static struct munged munged;
static const uint8_t key[SHA256_SIZE] = "of all nodes";
static int n_reports;

/* ---- the agents ---- */

/* The state of a node at its n-th report, in the memory of the other one. */
struct node_state {
    struct node_report report;
    struct node_gpu gpus[GPUS];
    struct node_process processes[GPUS][PROCESSES + 1];
};

/* What an agent sent last, and what it sends next; n: reports made so far. */
struct agent_state {
    struct node_state states[2];
    int n;
};

static bool sends_changes;
static struct agent_state agent_states[AGENTS];

/* The power tells the receiver what the SM activity has to be. */
static double power_at(int agent, int n, int gpu)
{
    return 300 + (agent * 7 + n * 13 + gpu * 31) % 1000 / 10.0;
}

static double smact_at(double power)
{
    return (double)((int)(power * 10 + 0.5) * 37 % 997) / 1000;
}

static double used_at(int agent, int n)
{
    return 20.0 * (1 << 30) + (double)((agent + n * 3) % 512) * (2 << 20);
}

static void fill_gpu(struct node_state *state, int agent, int n, int i)
{
    struct node_process *processes = state->processes[i];
    bool has_another = i == agent % GPUS && (n + agent) / PROCESS_EVERY % 2;
    for (int k = 0; k < PROCESSES + 1; k++)
        processes[k] = (struct node_process){.pid = 100000 + k,
            .memory_bytes = reading_of(k == 0 ? used_at(agent, n) : 21474836480.0),
            .job = 123456};
    state->gpus[i] = (struct node_gpu){.index = i,
        .memory_total_bytes = reading_of(85899345920.0),
        .memory_used_bytes = reading_of(used_at(agent, n) + 2 * 21474836480.0),
        .smact = reading_of(smact_at(power_at(agent, n, i))),
        .power_w = reading_of(power_at(agent, n, i)),
        .processes_known = true,
        .processes = processes,
        .n_processes = PROCESSES + has_another};
    snprintf(state->gpus[i].uuid, sizeof state->gpus[i].uuid,
        "GPU-6e5f2f0c-9a3c-4a4e-8f55-6c9f0b6f7a1%d", i);
}

static void fill_state(struct node_state *state, int agent, int n)
{
    state->report = (struct node_report){.boot = "6e5f2f0c-9a3c-4a4e-8f55-6c9f0b6f7a11",
        .sequence = clock_monotonic_us(),
        .time_us = clock_wall_us(),
        .gpus = state->gpus,
        .n_gpus = GPUS};
    snprintf(state->report.node, sizeof state->report.node, "n%d", agent);
    for (int i = 0; i < GPUS; i++)
        fill_gpu(state, agent, n, i);
}

/* The first one is whole. */
static char *encode_report(int agent, size_t *ret_size)
{
    struct agent_state *of = &agent_states[agent];
    struct node_state *now = &of->states[of->n % 2];
    const struct node_state *base = &of->states[(of->n + 1) % 2];
    char *text;
    fill_state(now, agent, of->n);
    int r = sends_changes && (of->n + agent * (of->n > 0)) % WHOLE_EVERY
                ? node_changes_encode(&base->report, &now->report, &text, ret_size)
                : node_report_encode(&now->report, &text, ret_size);
    if (r != 0)
        _exit(1);
    of->n++;
    return text;
}

static int connect_agent(const struct tcp_address *address)
{
    int fd = socket(address->storage.ss_family, SOCK_STREAM, 0);
    if (connect(fd, (const struct sockaddr *)&address->storage, address->size) < 0)
        _exit(1);
    return fd;
}

static void send_all(int fd, const void *bytes, size_t n)
{
    if (send(fd, bytes, n, MSG_NOSIGNAL) != (ssize_t)n)
        _exit(1);
}

/* Waits for the instant at which the next agent sends. */
static void await_us(int64_t due_us)
{
    int64_t wait_us = due_us - clock_monotonic_us();
    if (wait_us > 0)
        usleep((useconds_t)wait_us);
}

static void send_line(int fd, char *line)
{
    size_t size = strlen(line);
    line[size] = '\n';
    send_all(fd, line, size + 1);
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

_Noreturn static void run_munge_agents(const struct tcp_address *address)
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
        await_us(due_us);
        send_next(&sessions[i], i, fds[i]);
    }
}

/* ---- the agents within TLS ---- */

struct tls_agent {
    int fd;
    struct tls_credentials *credentials;
    struct tls_channel *channel;
};

static void send_output(const struct tls_agent *agent)
{
    size_t n;
    void *output = tls_channel_take_output(agent->channel, &n);
    if (output)
        send_all(agent->fd, output, n);
    free(output);
}

static void open_agent(struct tls_agent *agent, int number, const struct tcp_address *address)
{
    char node[NODE_NAME_SIZE], bytes[4096], text[4096];
    struct fault fault;
    snprintf(node, sizeof node, "n%d", number);
    agent->fd = connect_agent(address);
    if (tls_credentials_create(key, node, &fault, &agent->credentials) < 0)
        _exit(1);
    agent->channel = tls_channel_create(agent->credentials);
    for (ssize_t n = 0; !tls_channel_is_open(agent->channel);) {
        tls_channel_take(agent->channel, bytes, (size_t)n);
        if (tls_channel_read(agent->channel, text, sizeof text, &fault) < 0)
            _exit(1);
        send_output(agent);
        if (!tls_channel_is_open(agent->channel) &&
            (n = recv(agent->fd, bytes, sizeof bytes, 0)) <= 0)
            _exit(1);
    }
}

static void send_within_tls(const struct tls_agent *agent, int number)
{
    size_t size;
    char *text = encode_report(number, &size);
    text[size] = '\n';
    if (tls_channel_write(agent->channel, text, size + 1) < 0)
        _exit(1);
    free(text);
    send_output(agent);
}

_Noreturn static void run_tls_agents(const struct tcp_address *address)
{
    static struct tls_agent agents[AGENTS];
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (int i = 0; i < AGENTS; i++) {
        open_agent(&agents[i], i, address);
        send_within_tls(&agents[i], i);
        usleep(2000);
    }
    int64_t due_us = clock_monotonic_us();
    for (int i = 0;; i = (i + 1) % AGENTS, due_us += SECOND_US / AGENTS) {
        await_us(due_us);
        send_within_tls(&agents[i], i);
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
    for (size_t i = 0; i < report->n_gpus; i++) {
        const struct node_gpu *gpu = &report->gpus[i];
        double off = gpu->smact.value - smact_at(gpu->power_w.value);
        if (off < -1e-6 || off > 1e-6 || gpu->n_processes < PROCESSES) {
            fprintf(stderr, "%s: GPU %d is not as it was sent\n", report->node, gpu->index);
            exit(1);
        }
    }
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

static void run_until_reports(uv_loop_t *loop, int n)
{
    while (n_reports < n)
        uv_run(loop, UV_RUN_ONCE);
}

/* From the first connection to the first report of all. */
static void measure_begin(uv_loop_t *loop, const char *way)
{
    char label[80];
    double cpu = cpu_s();
    run_until_reports(loop, AGENTS);
    double cost = 1e3 * (cpu_s() - cpu) / AGENTS;
    snprintf(label, sizeof label, "controller, to take on an agent, %s", way);
    bench_row(label, "ms", "", &cost, 1);
}

/* One value for each second. */
static void measure(uv_loop_t *loop, const char *way, bool has_munged)
{
    double hub[SECONDS], munge[SECONDS], rate[SECONDS];
    char label[80];
    measure_begin(loop, way);
    run_until_reports(loop, 3 * AGENTS);
    for (int i = 0; i < SECONDS; i++) {
        int before = n_reports;
        double cpu = cpu_s(), munge_cpu = has_munged ? munged_cpu_s() : 0;
        int64_t begun_us = clock_monotonic_us();
        while (clock_monotonic_us() - begun_us < SECOND_US)
            uv_run(loop, UV_RUN_ONCE);
        double span_s = (double)(clock_monotonic_us() - begun_us) / 1e6;
        hub[i] = 100 * (cpu_s() - cpu) / span_s;
        munge[i] = has_munged ? 100 * (munged_cpu_s() - munge_cpu) / span_s : 0;
        rate[i] = (n_reports - before) / span_s;
    }
    snprintf(label, sizeof label, "reports of 1,000 agents accepted, %s", way);
    bench_row(label, "1/s", "median > 950", rate, SECONDS);
    snprintf(label, sizeof label, "controller's part of a core for them, %s", way);
    bench_row(label, "%", "median < 10", hub, SECONDS);
    if (has_munged)
        bench_row("munged's", "%", "", munge, SECONDS);
}

/* Returns 0 or 1. */
static int measure_way(const char *way, const struct node_hub_options *options,
    void (*run_agents)(const struct tcp_address *address))
{
    struct fault fault;
    struct node_hub *hub;
    n_reports = 0;
    if (node_hub_create(options, &fault, &hub) < 0) {
        fprintf(stderr, "%s\n", fault.text);
        return 1;
    }
    pid_t agents = fork();
    if (agents == 0)
        run_agents(node_hub_address(hub));
    measure(options->loop, way, !options->key);
    node_hub_close(hub); /* first: the end of an agent is a mistake */
    kill(agents, SIGKILL);
    waitpid(agents, NULL, 0);
    uv_run(options->loop, UV_RUN_DEFAULT);
    uint64_t refused = node_hub_counts(hub).refused;
    if (refused)
        fprintf(stderr, "%llu reports were refused, by %s\n", (unsigned long long)refused, way);
    node_hub_destroy(hub);
    return refused > 0;
}

/* By agents of an older version, then by those of this one. */
static int measure_both(const char *way, const struct node_hub_options *options,
    void (*run_agents)(const struct tcp_address *address))
{
    char label[80];
    snprintf(label, sizeof label, "%s, whole reports", way);
    sends_changes = false;
    int r = measure_way(label, options, run_agents);
    sends_changes = true;
    return measure_way(way, options, run_agents) || r;
}

int main(void)
{
    uv_loop_t *loop = uv_default_loop();
    struct node_hub_options options = {.loop = loop,
        .address = "127.0.0.1:0",
        .agents = geteuid(),
        .hooks = {NULL, knows_node, on_report, on_gone}};
    log_set_level(LOG_LEVEL_WARNING);
    int r = munged_start(&munged);
    options.munge_socket = munged.socket;
    bool has_failed = r < 0 || (r == 0 && measure_both("munge", &options, run_munge_agents));
    munged_remove(&munged);
    options.key = key;
    return measure_both("TLS", &options, run_tls_agents) || has_failed;
}
