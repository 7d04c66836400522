/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc submit`: makes the request from the task file and the options, checks what can be checked
 * here (submit_check.c), with --estimate=script follows the training in a sandbox, sends the
 * request, and with --wait waits for the task's end.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/beside.h"
#include "base/clock.h"
#include "base/file.h"
#include "cli/container.h"
#include "cli/docker_run.h"
#include "cli/print.h"
#include "cli/request.h"
#include "cli/script_estimate.h"
#include "cli/session.h"
#include "cli/submission.h"
#include "cli/submit_check.h"
#include "cli/task_end.h"
#include "gpu/program.h"
#include "taskfile/taskfile.h"
#include "taskfile/track_places.h"

enum {
    SUBMIT_WAIT,
    SUBMIT_DRY_RUN,
    SUBMIT_TEST_ONLY,
    SUBMIT_ESTIMATE,
    SUBMIT_SLURM,
    SUBMIT_CONTAINER
};

static const char *const estimate_sources[] = {"script", NULL};
static const char *const slurm_forms[] = {"line", "id", NULL};

static const struct option_spec options[] = {
    [SUBMIT_WAIT] = FLAG_OPTION("wait", .letter = 'W',
        .help = "wait until the task has ended, and exit with its exit code"),
    [SUBMIT_DRY_RUN] = FLAG_OPTION(
        "dry-run", .help = "print the request to the daemon as JSON, submit nothing"),
    [SUBMIT_TEST_ONLY] = FLAG_OPTION(
        "test-only", .help = "check the file and the options, submit nothing"),
    [SUBMIT_ESTIMATE] = OPTION("estimate", CHOICE, "HOW", .choices = estimate_sources,
        .help = "{choices}: run the training here, without a GPU, until its second optimizer step, "
                "and send what it would allocate in place of --summary"),
    [SUBMIT_SLURM] = OPTION("slurm", CHOICE, "HOW", .choices = slurm_forms,
        .help = "print the id as sbatch does: line (\"Submitted batch job 12\") or id (12, as "
                "with --parsable)"),
    [SUBMIT_CONTAINER] = OPTION("container", TEXT, "IMAGE", .max = 511,
        .help =
            "run the command in a container of this image, by podman or docker, with the task's GPUs "
            "only; "
            "it shares a GPU by --sharing=streams (docs/containers.md)"),
};

/* The image that the command is to run in; NULL: none. Other commands share submission_request. */
static const char *image_of(const struct invocation *invocation)
{
    return invocation->command->options == options ? invocation->values[SUBMIT_CONTAINER].text
                                                   : NULL;
}

/* Reads the file, lets the options of the command line override it, and reads the summary. */
static int describe_task(
    const struct invocation *invocation, struct fault *fault, struct task_description *task)
{
    const char *first = invocation->operands[0];
    task->slurm_command = (struct slurm_command){.is_slurm = invocation->is_slurm,
        .starts_tasks = invocation->command->slurm != SLURM_SBATCH,
        .options = invocation->slurm,
        .count = invocation->slurm_count};
    int r = invocation->after_dashes ? taskfile_of_command(invocation->operands, fault, task)
                                     : taskfile_read(first, fault, task);
    if (r < 0)
        return submit_explain_unread(invocation->operands, r, fault);
    if (option_values_overlay(task->values, invocation->task_values, TASK_OPTION_MAX) < 0)
        return fault_set(fault, ENOMEM, "out of memory");
    return taskfile_read_summary(task, fault);
}

/* Finds mistakes that the task would fail with (submit_check.h). */
static int check_words(
    const struct invocation *invocation, const struct task_description *task, struct fault *fault)
{
    const char *const *words = invocation->operands;
    bool is_here = invocation->after_dashes && !image_of(invocation);
    int r = is_here ? submit_check_command(words, fault) : 0;
    submit_warn_of_slurm(task);
    if (!invocation->after_dashes) {
        submit_warn_of_directives(task);
        submit_warn_of_words(invocation->command, words, task->script);
    }
    if (r == 0)
        r = submit_check_order(task, fault);
    if (r == 0 && task->values[TASK_TRACK].set)
        r = track_places_check_runs(task->values[TASK_TRACK].text, fault);
    return r == 0 ? submit_check_outputs(task, fault) : r;
}

/* Puts a large export into a file for the daemon (request.h). */
static int store_export(struct task_description *task, struct fault *fault)
{
    const char *temporary = getenv("TMPDIR");
    char path[PATH_MAX];
    snprintf(path, sizeof path - sizeof "/script.json", "%s/colloc-export-XXXXXX",
        temporary && *temporary ? temporary : "/tmp");
    if (!mkdtemp(path))
        return fault_set(fault, errno, "%s: %s", path, strerror(errno));
    strcat(path, "/script.json");
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int r = fd < 0 ? -errno : file_write_fd(fd, task->summary, strlen(task->summary));
    if (fd >= 0)
        close(fd);
    if (r < 0)
        return fault_set(fault, -r, "%s: %s", path, strerror(-r));
    return option_set_text(
        &task_options[TASK_SUMMARY], "--estimate", path, &task->values[TASK_SUMMARY], fault);
}

/* Removes it once the daemon has answered. */
static void remove_export(const struct invocation *invocation, const json_t *request)
{
    const json_t *summary = json_object_get(request, task_options[TASK_SUMMARY].field);
    const char *path = json_string_value(json_object_get(summary, "path"));
    if (!path || !invocation->values[SUBMIT_ESTIMATE].set)
        return;
    unlink(path);
    char *folder = strndup(path, (size_t)(strrchr(path, '/') - path));
    if (folder)
        rmdir(folder);
    free(folder);
}

/* Follows the training (script_estimate.h) and takes its export in place of a summary. */
static int follow_script(const struct invocation *invocation, const char *const *arguments,
    struct task_description *task, struct fault *fault)
{
    bool is_submit = invocation->command->options == options; /* others share submission_request */
    if (!is_submit || !invocation->values[SUBMIT_ESTIMATE].set)
        return 0;
    if (task->values[TASK_SUMMARY].set || task->values[TASK_MEMORY].set)
        return fault_set(fault, EINVAL,
            "--estimate=script excludes --%s: the training itself shows what it needs",
            task->values[TASK_SUMMARY].set ? "summary" : "memory");
    const struct script_command command = {
        .words = arguments, .script = arguments == invocation->operands + 1 ? task->script : NULL};
    size_t size;
    int r = script_export(&command, fault, &task->summary, &size);
    if (r == SCRIPT_NOT_FOLLOWED)
        return fault_prefix(fault, -EIO,
            "nothing was submitted: cannot follow the script (where that is not its own error, leave "
            "out --estimate, or give --memory instead)");
    if (r == 0 && size > REQUEST_SUMMARY_MAX)
        return store_export(task, fault);
    return r < 0 ? r
                 : option_set_text(&task_options[TASK_SUMMARY], "--estimate", "script.json",
                       &task->values[TASK_SUMMARY], fault);
}

/* `colloc submit train.py`: "python3 train.py ..." runs in place of the script, whose #COLLOC lines
 * have been read. Returns words for free, which point to the operands; or NULL with a fault. */
static const char **become_python(
    const struct invocation *invocation, struct task_description *task, struct fault *fault)
{
    int r = submit_check_python(invocation->operands[0], fault);
    const char **words = r == 0 ? calloc((size_t)invocation->operand_count + 2, sizeof *words)
                                : NULL;
    char *script = words ? strdup(TASKFILE_COMMAND_SCRIPT) : NULL;
    if (!script) {
        free(words);
        if (r == 0)
            fault_set(fault, ENOMEM, "out of memory");
        return NULL;
    }
    free(task->script);
    task->script = script;
    words[0] = "python3";
    memcpy(words + 1, invocation->operands, (size_t)invocation->operand_count * sizeof *words);
    return words;
}

/* --container=IMAGE -- python train.py: "colloc container IMAGE -- python train.py" runs. Returns
 * words for free, which point to the operands and to `self`; or NULL with a fault. */
static const char **become_container(const struct invocation *invocation,
    struct task_description *task, char self[PATH_MAX], struct fault *fault)
{
    struct option_value *sharing = &task->values[TASK_SHARING];
    char podman[PATH_MAX]; /* or docker */
    if (!invocation->after_dashes || !beside_self(self)) {
        fault_set(fault, EINVAL,
            "--container: give the command after --: colloc submit "
            "--container=IMAGE -- python train.py");
        return NULL;
    }
    if (!program_find("podman", podman, sizeof podman) && !docker_find("docker", podman)) {
        fault_set(fault, ENOENT,
            "--container: neither podman nor docker is on PATH: install one (docs/containers.md)");
        return NULL;
    }
    if (container_check_image(image_of(invocation), fault) < 0)
        return NULL;
    const char **words = calloc((size_t)invocation->operand_count + 5, sizeof *words);
    if (!words) {
        fault_set(fault, ENOMEM, "out of memory");
        return NULL;
    }
    if (!sharing->set && option_set_text(&task_options[TASK_SHARING], "--container", "streams",
                             sharing, fault) < 0) {
        free(words);
        return NULL;
    }
    const char *const first[] = {self, "container", image_of(invocation), "--"};
    memcpy(words, first, sizeof first);
    memcpy(words + ARRAY_SIZE(first), invocation->operands,
        (size_t)invocation->operand_count * sizeof *words);
    return words;
}

int submission_request(const struct invocation *invocation, json_t **ret_request)
{
    struct task_description task = {0};
    struct fault fault = {0};
    const char **python = NULL, **container = NULL;
    char self[PATH_MAX];
    /* A script is in the description; a command's program is its first argument. */
    const char *const *arguments = invocation->operands + (invocation->after_dashes ? 0 : 1);
    int r = describe_task(invocation, &fault, &task);
    if (r == 0)
        r = check_words(invocation, &task, &fault);
    if (r == 0 && !invocation->after_dashes &&
        submit_is_python(invocation->operands[0], task.script)) {
        arguments = python = become_python(invocation, &task, &fault);
        r = python ? 0 : -ENOENT;
    }
    if (r == 0 && image_of(invocation)) {
        arguments = container = become_container(invocation, &task, self, &fault);
        r = container ? 0 : -EINVAL;
    }
    if (r == 0)
        r = submit_take_arguments(&task, arguments, &fault);
    if (r == 0)
        r = follow_script(invocation, arguments, &task, &fault);
    if (r == 0) {
        submit_warn_without_network(&task);
        submit_warn_of_sharing(&task);
    }
    if (r == 0)
        r = request_create(&task, arguments, &fault, ret_request);
    if (r == 0)
        request_name_command(*ret_request, python ? python : invocation->operands);
    if (r == 0 && invocation->is_slurm && invocation->command->slurm == SLURM_SBATCH)
        json_object_set_new(*ret_request, "slurm_output", json_true());
    free(python);
    free(container);
    task_description_fini(&task);
    if (r == 0)
        return EXIT_OK;
    print_error("%s", fault.text);
    return EXIT_USAGE;
}

static void on_ended(void *context, const json_t *task)
{
    const struct invocation *invocation = context;
    if (invocation->common[COMMON_JSON].number) {
        json_t *reply = json_pack("{sO}", "task", task);
        print_json(reply);
        json_decref(reply);
    } else {
        task_end_print(task);
    }
}

static int wait_for(const struct invocation *invocation, struct client *client, int64_t id)
{
    const struct task_end_visitor visitor = {(void *)(uintptr_t)invocation, on_ended};
    int first = EXIT_OK, code = task_end_wait_for_all(client, id, TIME_NEVER, &visitor, &first);
    return code == EXIT_OK ? first : code;
}

/* Scripts read this line; for a script written for sbatch it is Slurm's. Warnings go to standard
 * error. */
static void print_submitted(const struct invocation *invocation, const json_t *reply)
{
    size_t i;
    json_t *warning;
    json_array_foreach(json_object_get(reply, "warnings"), i, warning) {
        print_error("warning: %s", json_string_value(warning));
    }
    const json_t *tasks = json_object_get(reply, "tasks");
    json_int_t id = json_integer_value(json_object_get(reply, "id"));
    const char *slurm = invocation->values[SUBMIT_SLURM].text;
    if (!invocation->common[COMMON_JSON].number && slurm)
        printf("%s%" JSON_INTEGER_FORMAT "\n",
            strcmp(slurm, "line") == 0 ? "Submitted batch job " : "", id);
    else if (!invocation->common[COMMON_JSON].number && tasks)
        printf("Submitted array %" JSON_INTEGER_FORMAT " (%" JSON_INTEGER_FORMAT " tasks)\n", id,
            json_integer_value(tasks));
    else if (!invocation->common[COMMON_JSON].number)
        printf("Submitted task %" JSON_INTEGER_FORMAT "\n", id);
    else if (!invocation->values[SUBMIT_WAIT].number)
        print_json(reply);
    fflush(stdout);
}

/* With --wait the connection stays open until the end of the task. */
static int send_request(const struct invocation *invocation, const json_t *request)
{
    CLEANUP(cleanup_client_close) struct client *client = NULL;
    json_auto_t *reply = NULL;
    int code = session_open(invocation, &client);
    if (code == EXIT_OK)
        code = session_call(client, "POST", "/v1/tasks", request, &reply);
    if (code != EXIT_OK)
        return code;
    print_submitted(invocation, reply);
    return invocation->values[SUBMIT_WAIT].number
               ? wait_for(invocation, client, json_integer_value(json_object_get(reply, "id")))
               : EXIT_OK;
}

static int run(const struct invocation *invocation)
{
    json_t *request;
    int code = submission_request(invocation, &request);
    if (code != EXIT_OK)
        return code;
    if (invocation->values[SUBMIT_DRY_RUN].number)
        code = print_json(request);
    else if (invocation->values[SUBMIT_TEST_ONLY].number)
        print_error("the file and the options are right; nothing was submitted");
    else
        code = send_request(invocation, request);
    remove_export(invocation, request);
    json_decref(request);
    return code;
}

const struct command command_submit = {
    .name = "submit",
    .usage = "[OPTION...] FILE [ARGUMENT...] | -- COMMAND [ARGUMENT...]",
    .summary = "submit a task",
    .description =
        "FILE is a script with #COLLOC or #SBATCH lines, a .rad file (see TASK FILES), or - for "
        "standard input. The arguments after FILE are passed to the script; python3 runs "
        "a .py file without a #! line. After "
        "--, give a command instead of a script; the task is named after the program "
        "it runs, such as train.py, unless --name is given.\n\n"
        "The task runs in the current folder with the current environment. Options "
        "on the command line override those in the file. The daemon stores the "
        "script and the model summary as they are now: later edits do not change the "
        "task.\n\n"
        "submit refuses a task that cannot run: a program that is not on PATH, a "
        "command line quoted as one word, an output file that is a folder, a #SBATCH "
        "line that is not supported. It only warns about a "
        "path, a script or an output folder that does not exist yet.\n\n"
        "The environment of the task has CUDA_VISIBLE_DEVICES (its GPUs by index in "
        "the order of nvidia-smi, or by UUID if a GPU has MIG instances), "
        "CUDA_DEVICE_ORDER=PCI_BUS_ID, COLLOC_GPUS (its GPUs as `colloc gpus` names "
        "them), COLLOC_TASK_ID, COLLOC_CGROUP (the folder of the task's cgroup), for a task of "
        "an array COLLOC_ARRAY_ID, _INDEX, _COUNT, _MIN and _MAX, and COLLOC_ATTEMPT, which identifies the processes of "
        "the attempt and must not be changed. With MPS it also has "
        "CUDA_MPS_PIPE_DIRECTORY and the limits. With the preloaded library (--preload) "
        "LD_PRELOAD begins with it, and ASAN_OPTIONS ends with verify_asan_link_order=0 "
        "unless you set that. Unless you set them, colloc sets "
        "PYTHONUNBUFFERED=1 and, if the task may share its GPUs, "
        "TF_FORCE_GPU_ALLOW_GROWTH=true and XLA_PYTHON_CLIENT_PREALLOCATE=false, so "
        "that TensorFlow and JAX allocate memory as they need it. MASTER_ADDR and "
        "MASTER_PORT (a port that no other task has), COLLOC_GPU_COUNT and torchrun's "
        "PET_NPROC_PER_NODE and PET_MASTER_PORT are set so that `torchrun train.py` "
        "runs a rank on each of the task's GPUs.\n\n"
        "With --estimate=script the training first runs here, as you, in the sandbox of "
        "`colloc estimate -- COMMAND`; the daemon estimates from that run. A training that "
        "cannot be followed is not submitted.\n\n"
        "Prints \"Submitted task 12\" when the task is stored on disk.",
    COMMAND_OPTIONS(options),
    .task_options = TASK_OPTIONS_ALL,
    .slurm = SLURM_SBATCH,
    .operand = OPERAND_FILE,
    .min_operands = 1,
    .max_operands = -1,
    .rest_is_operands = true,
    .run = run,
};
