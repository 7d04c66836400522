/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a group of trainings as child processes in one thread: polls their outputs, their pidfds and
 * the signalfd, with the next sample and the time limit as its timeout. Outputs are read while the
 * trainings run, since a full pipe would stop a training and so falsify its times; the text is
 * parsed and stored. Trainings that share a GPU begin their epochs together (start_barrier.h). A
 * group that is ended gets SIGTERM, and SIGKILL KILL_DELAY_US later.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/spawn.h"
#include "bench/start_barrier.h"
#include "bench/trainer_group.h"
#include "bench/training_failure.h"

#define KILL_DELAY_US (5 * SECOND_US) /* from SIGTERM to SIGKILL; chosen */
enum { READS_LEFT_MAX = 1024 };       /* more than a pipe's 64 KiB */

struct trainer {
    pid_t pid;
    int pidfd, output;
    int copy; /* where the output is stored */
    struct training_log log;
};

struct group_processes {
    const struct trainer_group *trainers;
    struct fault *fault;
    struct trainer processes[BENCH_TASKS_MAX];
    struct training_result *results;
    struct start_barrier barrier;
    int started, alive;
    int64_t next_sample_us, deadline_us;
    int answer;
    int copy_errno; /* an output could not be stored; 0: all were */
};

static double unix_s(void)
{
    return (double)clock_wall_us() / (double)SECOND_US;
}

/* ---- starting ---- */

enum { PATH_SIZE = 4096 };

static void make_log_path(const struct trainer_group *trainers, int i, char *path)
{
    snprintf(path, PATH_SIZE, "%s.%d", trainers->log_path, i);
}

static void make_output_path(const struct trainer_group *trainers, int i, char *path)
{
    snprintf(path, PATH_SIZE, "%s.%d.out", trainers->log_path, i);
}

static void set_environment(const struct trainer_group *trainers, int i)
{
    const struct bench_task *task = &trainers->group->tasks[i];
    char share[8];
    if (task->is_script)
        setenv("PYTHONUNBUFFERED", "1", 1); /* so that its last lines are stored, too */
    if (trainers->run_ids && *trainers->run_ids[i])
        setenv("MLFLOW_RUN_ID", trainers->run_ids[i], 1);
    if (trainers->devices)
        setenv("CUDA_VISIBLE_DEVICES", trainers->devices[i], 1);
    if (!trainers->mps_pipe || task->sharing != BENCH_MPS)
        return;
    setenv("CUDA_MPS_PIPE_DIRECTORY", trainers->mps_pipe, 1);
    if (task->threads != BENCH_THREADS_ALL) {
        snprintf(share, sizeof share, "%d", task->threads);
        setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", share, 1);
    }
}

/* The inputs of the child between fork and exec. */
struct launch {
    const struct trainer_group *trainers;
    const struct start_barrier *barrier;
    int i, output;
};

/* In its own process group, so that it can be killed with its children. */
static void prepare_process(void *context)
{
    const struct launch *launch = context;
    const char *folder = launch->trainers->group->tasks[launch->i].folder;
    char path[PATH_SIZE];
    sigset_t none;
    make_log_path(launch->trainers, launch->i, path);
    int errors = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    int empty = open("/dev/null", O_RDONLY | O_CLOEXEC);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    setpgid(0, 0);
    set_environment(launch->trainers, launch->i);
    start_barrier_inherit(launch->barrier);
    dup2(empty, STDIN_FILENO);
    dup2(launch->output, STDOUT_FILENO);
    if (errors >= 0)
        dup2(errors, STDERR_FILENO);
    if (folder && chdir(folder) < 0) {
        perror(folder);
        _exit(EXIT_FAILURE);
    }
}

static void close_copy(struct trainer *trainer)
{
    if (trainer->copy >= 0)
        close(trainer->copy);
    trainer->copy = -1;
}

static int open_copy(struct group_processes *group, int i)
{
    char path[PATH_SIZE];
    make_output_path(group->trainers, i, path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    return fd < 0 ? fault_set(group->fault, errno, "%s: %s", path, strerror(errno)) : fd;
}

/* Starts the task's command, under its profiler if it has one. If the program cannot be started,
 * its task has failed, as with a missing script: the other tasks and groups run. */
static int spawn_trainer(struct group_processes *group, int i, int output)
{
    const struct bench_task *task = &group->trainers->group->tasks[i];
    struct training_result *result = &group->results[i];
    struct trainer *trainer = &group->processes[i];
    struct launch launch = {group->trainers, &group->barrier, i, output};
    char profile[PATH_SIZE];
    snprintf(profile, sizeof profile, "%s.%d", group->trainers->profile_path, i);
    char **argv = profiler_command(task->profiler, profile, task->argv);
    if (!argv)
        return fault_set(group->fault, ENOMEM, "%s: %s", task->name, strerror(ENOMEM));
    int r = spawn_program(argv, prepare_process, &launch, &trainer->pid, &trainer->pidfd);
    if (r < 0) {
        snprintf(result->failure, sizeof result->failure, "%s cannot be started: %s", argv[0],
            strerror(-r));
        result->ended_unix_s = unix_s();
    } else {
        *result->failure = '\0';
        group->alive++;
    }
    free(argv);
    return 0;
}

static int start_trainer(struct group_processes *group, int i)
{
    struct trainer *trainer = &group->processes[i];
    int output[2];
    if (pipe2(output, O_CLOEXEC) < 0)
        return fault_set(group->fault, errno, "no pipe: %s", strerror(errno));
    trainer->copy = open_copy(group, i);
    group->results[i].started_unix_s = unix_s();
    int r = trainer->copy < 0 ? trainer->copy : spawn_trainer(group, i, output[1]);
    close(output[1]);
    if (r < 0 || trainer->pidfd < 0) {
        close(output[0]);
        close_copy(trainer);
    } else {
        trainer->output = output[0];
    }
    group->started += r == 0;
    return r;
}

/* ---- output and ends ---- */

static void read_output(struct group_processes *group, int i)
{
    struct trainer *trainer = &group->processes[i];
    char bytes[4096];
    ssize_t n = read(trainer->output, bytes, sizeof bytes);
    if (n > 0) {
        training_log_feed(&trainer->log, &group->results[i].report, bytes, (size_t)n);
        int r = file_write_fd(trainer->copy, bytes, (size_t)n);
        group->copy_errno = r < 0 ? -r : group->copy_errno;
    } else if (n == 0 || errno != EINTR) {
        close(trainer->output);
        trainer->output = -1;
    }
}

/* Reads what is left in the pipe, but does not wait for a grandchild that keeps it open. */
static void read_rest(struct group_processes *group, int i)
{
    struct pollfd fd = {.fd = group->processes[i].output, .events = POLLIN};
    for (int n = 0; n < READS_LEFT_MAX && group->processes[i].output >= 0 && poll(&fd, 1, 0) > 0;
         n++)
        read_output(group, i);
    if (group->processes[i].output >= 0)
        close(group->processes[i].output);
    group->processes[i].output = -1;
}

static void reap_trainer(struct group_processes *group, int i)
{
    struct trainer *trainer = &group->processes[i];
    char log[PATH_SIZE], output[PATH_SIZE];
    int status = 0;
    group->results[i].ended_unix_s = unix_s();
    kill(-trainer->pid, SIGKILL); /* its children; until it is reaped the group id is not reused */
    read_rest(group, i);
    while (waitpid(trainer->pid, &status, 0) < 0 && errno == EINTR)
        ;
    close_copy(trainer);
    make_log_path(group->trainers, i, log);
    make_output_path(group->trainers, i, output);
    training_failure_explain(status, output, log, &group->results[i]);
    close(trainer->pidfd);
    trainer->pidfd = -1;
    group->alive--;
}

static void kill_all(struct group_processes *group, int signal)
{
    for (int i = 0; i < group->started; i++)
        if (group->processes[i].pidfd >= 0)
            kill(-group->processes[i].pid, signal);
}

static void end_early(struct group_processes *group, int answer)
{
    kill_all(group, group->answer ? SIGKILL : SIGTERM);
    group->answer = answer;
    group->deadline_us = clock_monotonic_us() + KILL_DELAY_US;
}

static int wait_ms(const struct group_processes *group)
{
    int64_t until_us = group->next_sample_us < group->deadline_us ? group->next_sample_us
                                                                  : group->deadline_us;
    int64_t left_us = until_us - clock_monotonic_us();
    return left_us <= 0 ? 0 : (int)((left_us + MS_US - 1) / MS_US);
}

static void wait_once(struct group_processes *group)
{
    struct pollfd fds[2 * BENCH_TASKS_MAX + 1] = {
        {.fd = group->answer ? -1 : group->trainers->signals, .events = POLLIN}};
    int n = group->started;
    for (int i = 0; i < n; i++) {
        fds[1 + 2 * i] = (struct pollfd){.fd = group->processes[i].output, .events = POLLIN};
        fds[2 + 2 * i] = (struct pollfd){.fd = group->processes[i].pidfd, .events = POLLIN};
    }
    if (poll(fds, 1 + 2 * (nfds_t)n, wait_ms(group)) < 0)
        return;
    for (int i = 0; i < n; i++) {
        if (fds[1 + 2 * i].revents)
            read_output(group, i);
        if (fds[2 + 2 * i].revents)
            reap_trainer(group, i);
    }
    if (fds[0].revents)
        end_early(group, TRAINER_INTERRUPTED);
}

/* Those that have ended will not be ready any more. */
static bool all_are_ready(const struct group_processes *group)
{
    for (int i = 0; i < group->started; i++)
        if (group->processes[i].pidfd >= 0 && !group->results[i].report.ready_unix_s.valid)
            return false;
    return group->started == group->trainers->group->n_tasks;
}

static void check_times(struct group_processes *group)
{
    int64_t now_us = clock_monotonic_us();
    if (now_us >= group->next_sample_us) {
        group->trainers->sample(group->trainers->context);
        group->next_sample_us += group->trainers->period_us;
        if (group->next_sample_us < now_us)
            group->next_sample_us = now_us + group->trainers->period_us;
    }
    if (now_us >= group->deadline_us)
        end_early(group, group->answer ? group->answer : TRAINER_TIMEOUT);
}

/* Starts all tasks at once; "serial": the next one when none runs. */
static int start_due(struct group_processes *group)
{
    const struct bench_group *bench_group = group->trainers->group;
    bool serial = bench_group_is_serial(bench_group);
    int r = 0;
    while (r == 0 && !group->answer && group->started < bench_group->n_tasks &&
           !(serial && group->alive))
        r = start_trainer(group, group->started);
    return r;
}

int trainer_group_run_processes(
    const struct trainer_group *trainers, struct fault *fault, struct training_result *ret_results)
{
    struct group_processes *group = calloc(1, sizeof *group);
    if (!group)
        return fault_set(fault, ENOMEM, "out of memory");
    int64_t now_us = clock_monotonic_us();
    *group = (struct group_processes){
        .trainers = trainers, .fault = fault, .results = ret_results, .next_sample_us = now_us};
    group->deadline_us = now_us + trainers->limit_us;
    for (int i = 0; i < trainers->group->n_tasks; i++) {
        group->processes[i].output = group->processes[i].pidfd = group->processes[i].copy = -1;
        ret_results[i] = (struct training_result){.exit_code = -1, .failure = "never started"};
    }
    group->barrier = START_BARRIER_NONE;
    int r = start_barrier_is_for(trainers->group) ? start_barrier_init(&group->barrier) : 0;
    if (r < 0)
        fault_set(fault, -r, "no pipe: %s", strerror(-r));
    else
        r = start_due(group);
    if (r < 0)
        end_early(group, TRAINER_INTERRUPTED);
    while (group->alive) {
        wait_once(group);
        if (all_are_ready(group))
            start_barrier_open(&group->barrier);
        check_times(group);
        int more = r < 0 ? 0 : start_due(group);
        r = more < 0 ? more : r;
    }
    start_barrier_open(&group->barrier);
    int answer = group->answer;
    if (r == 0 && group->copy_errno)
        r = fault_set(fault, group->copy_errno, "the output of a training cannot be stored: %s",
            strerror(group->copy_errno));
    free(group);
    return r < 0 ? r : answer;
}
