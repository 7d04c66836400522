/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>

#include "cli/ending.h"
#include "cli/output.h"
#include "cli/request.h"
#include "cli/session.h"
#include "cli/submit_check.h"
#include "taskfile/taskfile.h"

enum { SUBMIT_WAIT, SUBMIT_DRY_RUN };

static const struct option_spec options[] = {
    [SUBMIT_WAIT] = {.name = "wait",
        .letter = 'W',
        .kind = OPTION_FLAG,
        .help = "wait until the task has ended; its exit code becomes that of this program"},
    [SUBMIT_DRY_RUN] = {.name = "dry-run",
        .kind = OPTION_FLAG,
        .help = "print the request that would be made, and make none"},
};

/* The file's description with the command line's options over it, summary read. */
static int describe(
    const struct invocation *invocation, struct fault *fault, struct task_description *task)
{
    const char *first = invocation->operands[0];
    int r = invocation->after_dashes ? taskfile_of_command(invocation->operands, fault, task)
                                     : taskfile_read(first, fault, task);
    if (r < 0)
        return submit_explain_unread(invocation->operands, r, fault);
    if (option_values_overlay(task->values, invocation->task_values, TASK_OPTIONS) < 0)
        return fault_set(fault, ENOMEM, "out of memory");
    return taskfile_read_summary(task, fault);
}

/* What can be seen to be wrong before the task starts. */
static int check_words(
    const struct invocation *invocation, const struct task_description *task, struct fault *fault)
{
    const char *const *words = invocation->operands;
    int r = invocation->after_dashes ? submit_check_command(words, fault)
                                     : submit_check_directives(words[0], task->script, fault);
    if (r == 0 && !invocation->after_dashes)
        submit_warn_of_words(invocation->command, words, task->script);
    return r == 0 ? submit_check_outputs(task, fault) : r;
}

static int make_request(const struct invocation *invocation, json_t **ret_request)
{
    struct task_description task = {0};
    struct fault fault = {0};
    /* A script's name is in its description; a command's is its first argument. */
    const char *const *arguments = invocation->operands + (invocation->after_dashes ? 0 : 1);
    int r = describe(invocation, &fault, &task);
    if (r == 0)
        r = check_words(invocation, &task, &fault);
    if (r == 0)
        r = request_create(&task, arguments, &fault, ret_request);
    if (r == 0)
        request_name_command(*ret_request, invocation->operands);
    task_description_fini(&task);
    if (r == 0)
        return EXIT_OK;
    complain("%s", fault.text);
    return EXIT_USAGE;
}

static int wait_for(const struct invocation *invocation, struct client *client, int64_t id)
{
    json_t *reply;
    int code = ending_wait(client, id, INT64_MAX, &reply);
    if (code != EXIT_OK)
        return code;
    json_t *task = json_object_get(reply, "task");
    if (invocation->common[COMMON_JSON].number)
        print_json(reply);
    else
        ending_print(task);
    code = ending_exit_code(task);
    json_decref(reply);
    return code;
}

static void print_submitted(const struct invocation *invocation, const json_t *reply)
{
    size_t i;
    json_t *warning;
    json_array_foreach(json_object_get(reply, "warnings"), i, warning) {
        complain("warning: %s", json_string_value(warning));
    }
    if (!invocation->common[COMMON_JSON].number)
        printf("Submitted task %" JSON_INTEGER_FORMAT "\n",
            json_integer_value(json_object_get(reply, "id")));
    else if (!invocation->values[SUBMIT_WAIT].number)
        print_json(reply);
    fflush(stdout);
}

static int submit(const struct invocation *invocation, const json_t *request)
{
    struct client *client;
    json_t *reply;
    int code = session_open(invocation, &client);
    if (code != EXIT_OK)
        return code;
    code = session_call(client, "POST", "/v1/tasks", request, &reply);
    if (code == EXIT_OK) {
        print_submitted(invocation, reply);
        if (invocation->values[SUBMIT_WAIT].number)
            code = wait_for(invocation, client, json_integer_value(json_object_get(reply, "id")));
        json_decref(reply);
    }
    client_close(client);
    return code;
}

static int run(const struct invocation *invocation)
{
    json_t *request;
    int code = make_request(invocation, &request);
    if (code != EXIT_OK)
        return code;
    code = invocation->values[SUBMIT_DRY_RUN].number ? print_json(request)
                                                     : submit(invocation, request);
    json_decref(request);
    return code;
}

const struct command command_submit = {
    .name = "submit",
    .usage = "[OPTION...] FILE [ARGUMENT...] | -- COMMAND [ARGUMENT...]",
    .summary = "hand in a task",
    .description =
        "FILE is a script with #COLLOC lines, or a .rad file (see TASK FILES), or - for standard input. What stands "
        "behind it goes to the script. Behind -- stands a command that needs no script; the "
        "task is named by what it runs, such as train.py, unless --name says otherwise.\n\n"
        "Refused is what cannot become right by the time the task starts: a program that is not on PATH, a command "
        "line in one word, an output file that is a folder, a script with #SBATCH --array or --dependency, which are "
        "not supported yet. A path, a script or an output folder that is not there yet is a warning.\n\n"
        "Options here win over those in the file. The script and the model summary are kept as they are now: later "
        "edits do not change the task. It runs in the current folder with the current environment.\n\n"
        "The task finds in its environment: CUDA_VISIBLE_DEVICES, its GPUs by index as nvidia-smi counts "
        "(CUDA_DEVICE_ORDER=PCI_BUS_ID), or by UUID where GPUs are divided by MIG; COLLOC_GPUS, the same as `colloc "
        "gpus` shows them; COLLOC_TASK_ID; COLLOC_ATTEMPT, a mark of this attempt that must stay as it is. Where it "
        "shares by MPS, CUDA_MPS_PIPE_DIRECTORY and its limits. Unless it has a value of its own: PYTHONUNBUFFERED=1 "
        "and, if it may share its GPUs, TF_FORCE_GPU_ALLOW_GROWTH=true and XLA_PYTHON_CLIENT_PREALLOCATE=false, so "
        "that TensorFlow and JAX take memory as they need it.\n\n"
        "Prints \"Submitted task 12\" once the task is safe in the daemon's log.",
    COMMAND_OPTIONS(options),
    .task_options = TASK_OPTION_BIT(TASK_OPTIONS) - 1,
    .operand = OPERAND_FILE,
    .min_operands = 1,
    .max_operands = -1,
    .rest_is_operands = true,
    .run = run,
};
