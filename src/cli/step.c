/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processes of a step. Each has its number, as Slurm sets it:
 *
 *     srun -n 2 python train.py       SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NTASKS=2
 *                                     SLURM_PROCID=1 SLURM_LOCALID=1 SLURM_NTASKS=2
 *
 * All see the task's GPUs; with --gpus-per-task=N each sees N of them. Only the first one reads
 * standard input. With --label each line of output begins with the number of its process.
 *
 * This process tells the daemon when the step begins and how it ends (step_report.h), and stays
 * beside the command for that (command_child.h). A step that the daemon does not record has no such
 * process: this one becomes the command.
 */
#include "cli/step.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/command_child.h"
#include "cli/print.h"
#include "cli/step_report.h"
#include "taskfile/output_pattern.h"
#include "taskfile/slurm_lines.h"

enum { TASKS_MAX = 1024, LINE_SIZE = 4096 }; /* chosen: more than a server has CPUs */

struct step {
    const char *const *command;
    const struct slurm_facts *facts;
    const char *output, *error; /* patterns of file names; NULL: this process's */
    int tasks, gpus_per_task;
    int number; /* -1: the daemon does not record it */
};

/* Output of one process on its way to a labelled line. */
struct labelled {
    int from, to, process;
    size_t used;
    char line[LINE_SIZE];
};

/* ---- one process ---- */

static int report_failure(const char *what)
{
    print_error("cannot use %s: %s", what, strerror(errno));
    return EXIT_REFUSED;
}

static int open_as(const char *path, int flags, int as)
{
    int fd = open(path, flags | O_CLOEXEC, 0666);
    bool is_open = fd >= 0 && dup2(fd, as) == as;
    if (fd >= 0)
        close(fd);
    return is_open ? EXIT_OK : report_failure(path);
}

/* %j and the like, which the environment of the task has. */
static void put_letter(FILE *out, char letter)
{
    static const char *const variables[UCHAR_MAX + 1] = {
        ['a'] = "SLURM_ARRAY_TASK_ID", ['A'] = "SLURM_ARRAY_JOB_ID", ['x'] = "SLURM_JOB_NAME"};
    const char *name = variables[(unsigned char)letter], *value = name ? getenv(name) : NULL;
    if (!value)
        value = getenv("COLLOC_TASK_ID");
    if (letter == '%')
        fputc('%', out);
    else
        fputs(value ? value : "0", out);
}

static int open_output(const char *pattern, int process, int as)
{
    char path[4096], host[256] = "localhost";
    const char *user = getenv("USER");
    gethostname(host, sizeof host - 1);
    char *half = output_pattern_fill(pattern, user ? user : "user", host, process);
    FILE *out = half ? fmemopen(path, sizeof path, "w") : NULL;
    for (const char *at = half; out && *at; at++)
        if (*at == '%' && at[1 + strspn(at + 1, "0123456789")]) {
            at += 1 + strspn(at + 1, "0123456789");
            put_letter(out, *at);
        } else {
            fputc(*at, out);
        }
    bool fits = out && fputc('\0', out) == '\0' && fclose(out) == 0;
    free(half);
    return fits ? open_as(path, O_WRONLY | O_CREAT | O_APPEND, as) : report_failure(pattern);
}

static void set_number(const char *name, int number)
{
    char text[16];
    snprintf(text, sizeof text, "%d", number);
    setenv(name, text, 1);
}

/* "4,5,6,7": the GPUs of process 1 of 2 are "6,7". */
static void choose_gpus(const struct step *step, int process)
{
    const char *all = getenv("CUDA_VISIBLE_DEVICES"), *first = all;
    int skipped = process * step->gpus_per_task;
    if (!all || !step->gpus_per_task || step->tasks == 1)
        return;
    for (; skipped > 0 && (first = strchr(first, ',')); skipped--)
        first++;
    if (!first)
        return;
    const char *end = first;
    for (int i = 0; i < step->gpus_per_task && *end; i++) {
        end += i > 0;
        end += strcspn(end, ",");
    }
    char *own = strndup(first, (size_t)(end - first));
    if (own)
        setenv("CUDA_VISIBLE_DEVICES", own, 1);
    free(own);
}

/* "A=1,B": B is in the environment anyway. */
static void set_exported(const char *exported)
{
    char *copy = strdup(exported ? exported : ""), *rest = copy, *item;
    while (rest && (item = strsep(&rest, ","))) {
        char *value = strchr(item, '=');
        if (value) {
            *value = '\0';
            setenv(item, value + 1, 1);
        }
    }
    free(copy);
}

/* In place of this process, so that signals and the exit code are the command's. */
static int become_command(const struct step *step, int process)
{
    const char *input = step->facts->input ? step->facts->input : process > 0 ? "/dev/null" : NULL;
    set_exported(step->facts->exported);
    set_number("SLURM_PROCID", process);
    set_number("SLURM_LOCALID", process);
    set_number("SLURM_NODEID", 0);
    set_number("SLURM_NTASKS", step->tasks);
    set_number("SLURM_NPROCS", step->tasks);
    set_number("SLURM_STEP_NUM_TASKS", step->tasks);
    if (step->number >= 0) {
        set_number("SLURM_STEP_ID", step->number);
        set_number("SLURM_STEPID", step->number);
    }
    choose_gpus(step, process);
    int code = EXIT_OK;
    if (step->output)
        code = open_output(step->output, process, STDOUT_FILENO);
    if (code == EXIT_OK && (step->error || step->output))
        code = open_output(step->error ? step->error : step->output, process, STDERR_FILENO);
    if (code == EXIT_OK && input)
        code = open_as(input, O_RDONLY, STDIN_FILENO);
    if (code == EXIT_OK && step->facts->folder && chdir(step->facts->folder) < 0)
        code = report_failure(step->facts->folder);
    if (code != EXIT_OK)
        return code;
    execvp(step->command[0], (char *const *)(uintptr_t)step->command);
    code = errno == ENOENT ? 127 : 126;
    print_error("cannot execute %s: %s", step->command[0], strerror(errno));
    return code;
}

/* ---- several processes ---- */

static void put_line(struct labelled *stream)
{
    if (stream->used > 0)
        dprintf(stream->to, "%d: %.*s\n", stream->process, (int)stream->used, stream->line);
    stream->used = 0;
}

/* Returns false at the end. A longer line is divided. */
static bool pass_output(struct labelled *stream)
{
    char data[LINE_SIZE];
    ssize_t n = read(stream->from, data, sizeof data);
    if (n < 0 && errno == EINTR)
        return true;
    for (ssize_t i = 0; i < n; i++) {
        if (data[i] != '\n')
            stream->line[stream->used++] = data[i];
        if (data[i] == '\n' && stream->used == 0)
            dprintf(stream->to, "%d: \n", stream->process);
        else if (data[i] == '\n' || stream->used == sizeof stream->line)
            put_line(stream);
    }
    if (n <= 0)
        put_line(stream);
    return n > 0;
}

static void pass_all(struct labelled *streams, int count)
{
    struct pollfd *polled = calloc((size_t)count, sizeof *polled);
    for (int i = 0, open = count; polled && open > 0;) {
        for (i = 0; i < count; i++)
            polled[i] = (struct pollfd){streams[i].from, POLLIN, 0};
        if (poll(polled, (nfds_t)count, -1) < 0 && errno != EINTR)
            break;
        for (i = 0; i < count; i++)
            if (polled[i].revents && !pass_output(&streams[i])) {
                close(streams[i].from);
                streams[i].from = -1; /* poll skips it */
                open--;
            }
    }
    free(polled);
}

/* `pipes`: of its standard output and error; -1: this process's. Returns its id or -1. */
static pid_t start_process(const struct step *step, int process, const int pipes[2])
{
    pid_t parent = getpid(), child = fork();
    if (child != 0)
        return child;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(128 + SIGTERM);
    for (int i = 0; i < 2; i++)
        if (pipes[i] >= 0)
            dup2(pipes[i], STDOUT_FILENO + i);
    fflush(NULL);
    _exit(become_command(step, process));
}

/* Waits for all, and ends the others after one that failed, if that is wanted. */
static int wait_all(const struct step *step, const pid_t *children)
{
    int highest = EXIT_OK, status;
    for (pid_t pid; (pid = wait(&status)) > 0 || errno == EINTR;) {
        int code = pid > 0 ? command_child_exit_code(status) : EXIT_OK;
        for (int i = 0; i < step->tasks && code != EXIT_OK && step->facts->kills_on_exit; i++)
            if (highest == EXIT_OK && children[i] > 0 && children[i] != pid)
                kill(children[i], SIGTERM);
        highest = code > highest ? code : highest;
    }
    return highest;
}

static int start_all(
    const struct step *step, pid_t *children, struct labelled *streams, int *ret_streams)
{
    int n = 0;
    for (int i = 0; i < step->tasks; i++) {
        int ends[2][2] = {{-1, -1}, {-1, -1}};
        for (int k = 0; k < 2 && streams; k++) {
            if (pipe2(ends[k], O_CLOEXEC) < 0)
                return report_failure("a pipe");
            streams[n++] = (struct labelled){
                .from = ends[k][0], .to = STDOUT_FILENO + k, .process = i};
        }
        children[i] = start_process(step, i, (const int[2]){ends[0][1], ends[1][1]});
        for (int k = 0; k < 2 && streams; k++)
            close(ends[k][1]);
        if (children[i] < 0)
            return report_failure("a new process");
    }
    *ret_streams = n;
    return EXIT_OK;
}

static int run_all(const struct step *step)
{
    pid_t *children = calloc((size_t)step->tasks, sizeof *children);
    struct labelled *streams = step->facts->is_labelled
                                   ? calloc(2 * (size_t)step->tasks, sizeof *streams)
                                   : NULL;
    int n = 0, code = EXIT_REFUSED;
    if (children && (streams || !step->facts->is_labelled))
        code = start_all(step, children, streams, &n);
    if (code == EXIT_OK && streams)
        pass_all(streams, n);
    if (code == EXIT_OK)
        code = wait_all(step, children);
    free(streams);
    free(children);
    return code; /* after a failure here, the end of this process ends what it has started */
}

/* ---- beside the command ---- */

static int run_here(const void *context)
{
    const struct step *step = context;
    bool is_one = step->tasks == 1 && !step->facts->is_labelled;
    return is_one ? become_command(step, 0) : run_all(step);
}

static int run_recorded(const struct step *step)
{
    struct command_child child;
    if (command_child_run(&child, run_here, step) < 0)
        return report_failure("a new process");
    step_report_end(step->number, child.status);
    return command_child_end(&child);
}

/* ---- the command ---- */

/* As Slurm: the program, or -J. */
static const char *step_name(const struct step *step, const char *given)
{
    const char *program = path_name(step->command[0]);
    return given && *given ? given : *program ? program : step->command[0];
}

static int read_options(
    const struct invocation *invocation, struct fault *fault, struct task_description *ret)
{
    ret->slurm_command = (struct slurm_command){.is_slurm = invocation->is_slurm,
        .starts_tasks = true,
        .options = invocation->slurm,
        .count = invocation->slurm_count};
    return slurm_command_read(ret, fault);
}

static int tasks_of(const struct slurm_facts *facts)
{
    return facts->tasks ? facts->tasks : facts->tasks_per_node ? facts->tasks_per_node : 0;
}

int step_count_tasks(const struct invocation *invocation, struct fault *fault)
{
    struct task_description task = {0};
    int r = read_options(invocation, fault, &task), tasks = tasks_of(&task.slurm);
    task_description_fini(&task);
    return r < 0 ? 0 : tasks ? tasks : 1;
}

/* A number of the task's environment, which its #SBATCH lines have set. */
static int read_inherited(const char *name, int otherwise)
{
    int64_t number;
    const char *text = getenv(name);
    return text && parse_int64(text, 1, TASKS_MAX, &number) == 0 ? (int)number : otherwise;
}

int step_run(const struct invocation *invocation)
{
    struct task_description task = {0};
    struct fault fault = {0};
    if (!getenv("COLLOC_TASK_ID")) {
        print_error("--step: this is no task of colloc: leave out --step");
        return EXIT_USAGE;
    }
    int r = read_options(invocation, &fault, &task);
    int given = tasks_of(&task.slurm), gpus = task.slurm.gpus_per_task;
    const struct option_value *values = invocation->task_values;
    const char *name = option_text_or(&task.slurm_values[TASK_NAME], values[TASK_NAME].text);
    struct step step = {.command = invocation->operands,
        .number = -1,
        .facts = &task.slurm,
        .output = option_text_or(&task.slurm_values[TASK_OUTPUT], values[TASK_OUTPUT].text),
        .error = option_text_or(&task.slurm_values[TASK_ERROR], values[TASK_ERROR].text),
        .tasks = given                  ? given
                 : invocation->is_slurm ? read_inherited("SLURM_NTASKS", 1)
                                        : 1,
        .gpus_per_task = gpus ? gpus : read_inherited("SLURM_GPUS_PER_TASK", 0)};
    if (r == 0 && step.tasks > TASKS_MAX)
        r = fault_set(&fault, ERANGE, "--ntasks=%d: at most %d", step.tasks, TASKS_MAX);
    int code = EXIT_USAGE;
    if (r < 0)
        print_error("%s", fault.text);
    else {
        step.number = step_report_begin(step_name(&step, name), step.tasks);
        code = step.number >= 0 ? run_recorded(&step) : run_here(&step);
    }
    task_description_fini(&task);
    return code;
}
