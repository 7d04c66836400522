/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `colloc jupyter`: Jupyter as a task. The token that its address needs is made here and given to
 * Jupyter in its environment, which only the user can read. Jupyter writes each request to its
 * log, and the first one has the token: so the output file is for the user only.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "cli/interactive.h"
#include "cli/log_reader.h"
#include "cli/print.h"
#include "cli/session.h"
#include "cli/submission.h"
#include "gpu/program.h"

#define IDLE_DEFAULT_US (4 * HOUR_US) /* chosen: half a working day */

enum { JUPYTER_IDLE, WORDS_MAX = 64, LOOK_MS = 100, TOKEN_SIZE = 33, URL_SIZE = 128 };

static const struct option_spec options[] = {
    [JUPYTER_IDLE] = OPTION("idle", DURATION, "TIME", .max = 365 * DAY_US,
        .help = "end it after this time without a running cell or an open page (0s: never); "
                "default: 4h"),
};

/* ---- the request ---- */

static int make_token(char token[TOKEN_SIZE])
{
    uint64_t random[2];
    if (getrandom(random, sizeof random, 0) != sizeof random) {
        print_error("no random numbers for a token");
        return EXIT_REFUSED;
    }
    snprintf(token, TOKEN_SIZE, "%016" PRIx64 "%016" PRIx64, random[0], random[1]);
    return EXIT_OK;
}

/* The output file is opened under a umask of 077; Jupyter itself has the user's. */
static void hide_output(json_t *request)
{
    char mask[16];
    json_t *arguments = json_object_get(request, "arguments");
    snprintf(
        mask, sizeof mask, "%04o", (unsigned)json_integer_value(json_object_get(request, "umask")));
    const char *const words[] = {"/bin/sh", "-c", "umask \"$0\" && exec \"$@\"", mask};
    for (size_t i = 0; i < ARRAY_SIZE(words); i++)
        json_array_insert_new(arguments, i, json_string(words[i]));
    json_object_set_new(request, "umask", json_integer(077));
}

/* Jupyter 7 and JupyterLab know the setting by the first name, Jupyter 6 by the second; each
 * ignores the other. */
static int make_request(
    const struct invocation *invocation, const char *token, json_t **ret_request)
{
    const struct option_value *idle = &invocation->values[JUPYTER_IDLE];
    int64_t idle_s = option_number_or(idle, IDLE_DEFAULT_US) / SECOND_US;
    char server[80], notebook[80], path[4096];
    bool has_lab = program_find("jupyter-lab", path, sizeof path);
    if (!has_lab && !program_find("jupyter-notebook", path, sizeof path)) {
        print_error("neither jupyter-lab nor jupyter-notebook is on PATH: activate the environment "
                    "that has it, or install it with `pip install jupyterlab`");
        return EXIT_USAGE;
    }
    const char *words[WORDS_MAX + 8] = {has_lab ? "jupyter-lab" : "jupyter-notebook",
        "--no-browser", "--ip=127.0.0.1", server, notebook};
    struct invocation command = *invocation;
    if (invocation->operand_count > WORDS_MAX) {
        print_error("at most %d arguments for Jupyter", WORDS_MAX);
        return EXIT_USAGE;
    }
    snprintf(server, sizeof server, "--ServerApp.shutdown_no_activity_timeout=%" PRId64, idle_s);
    snprintf(
        notebook, sizeof notebook, "--NotebookApp.shutdown_no_activity_timeout=%" PRId64, idle_s);
    for (int i = 0; i < invocation->operand_count; i++)
        words[5 + i] = invocation->operands[i];
    command.operands = words;
    command.operand_count = 5 + invocation->operand_count;
    command.after_dashes = true;
    int code = submission_request(&command, ret_request);
    if (code != EXIT_OK)
        return code;
    hide_output(*ret_request);
    json_object_set_new(
        json_object_get(*ret_request, "environment"), "JUPYTER_TOKEN", json_string(token));
    return EXIT_OK;
}

/* ---- its address ---- */

/* "http://127.0.0.1:8888" of "... http://127.0.0.1:8888/lab?token=...". Returns false when the text
 * has none (yet). */
static bool find_address(const char *text, char address[URL_SIZE])
{
    const char *found = strstr(text, "http://127.0.0.1:");
    if (!found)
        return false;
    size_t prefix = strlen("http://127.0.0.1:"), digits = strspn(found + prefix, "0123456789");
    if (digits == 0 || digits > 5 || found[prefix + digits] != '/')
        return false;
    snprintf(address, URL_SIZE, "%.*s", (int)(prefix + digits), found);
    return true;
}

/* Jupyter writes to standard error, which is the same file by default. */
static int read_output(struct client *client, int64_t id, char address[URL_SIZE])
{
    for (int i = 0; i < 2 && !*address; i++) {
        struct log_reader reader = {.client = client, .stream = i ? "stdout" : "stderr", .id = id};
        struct client_log log;
        int code = log_reader_read(&reader, &log);
        if (code != EXIT_OK)
            return code;
        char *text = strndup(log.data ? log.data : "", log.size);
        if (text)
            find_address(text, address);
        free(text);
        free(log.data);
    }
    return EXIT_OK;
}

static void print_address(int64_t id, const char *address, const char *token)
{
    char machine[256] = "HOST";
    const char *port = strrchr(address, ':') + 1;
    gethostname(machine, sizeof machine - 1);
    printf(
        "%s/?token=%s\n\n"
        "Open this address in a browser on this machine. From another machine, first run there:\n"
        "    ssh -L %s:127.0.0.1:%s %s\n"
        "It is task %" PRId64 ": `colloc cancel %" PRId64 "` ends it.\n",
        address, token, port, port, machine, id, id);
}

/* Reads the output again and again until Jupyter prints where it listens, which takes it some
 * seconds. If it ends before, its output is shown: that says why. */
static int await_address(struct client *client, int64_t id, const char *token)
{
    char address[URL_SIZE] = "";
    for (;;) {
        bool is_over = false;
        int code = interactive_has_ended(client, id, &is_over);
        if (code == EXIT_OK)
            code = read_output(client, id, address);
        if (code != EXIT_OK)
            return code;
        if (*address)
            break;
        if (is_over) {
            code = interactive_follow(client, id); /* its output has the reason */
            return code == EXIT_OK ? EXIT_REFUSED : code;
        }
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
    }
    print_address(id, address, token);
    return EXIT_OK;
}

static int run(const struct invocation *invocation)
{
    char token[TOKEN_SIZE];
    CLEANUP(cleanup_client_close) struct client *client = NULL;
    json_t *request;
    int64_t id;
    int code = make_token(token);
    if (code == EXIT_OK)
        code = make_request(invocation, token, &request);
    if (code != EXIT_OK)
        return code;
    code = session_open(invocation, &client);
    if (code == EXIT_OK)
        code = interactive_submit(client, request, &id);
    if (code == EXIT_OK)
        code = await_address(client, id, token);
    json_decref(request);
    return code;
}

const struct command command_jupyter = {
    .name = "jupyter",
    .usage = "[OPTION...] [-- ARGUMENT...]",
    .summary = "start Jupyter on a GPU, and print its address",
    .description = "Runs JupyterLab, or the Jupyter notebook where that is not installed, as a "
                   "task, waits for its turn, and prints the address with its token. The arguments "
                   "are Jupyter's. It listens on this machine only, and continues after colloc has "
                   "returned; it ends after a time without use (--idle), and by `colloc cancel`.",
    COMMAND_OPTIONS(options),
    .task_options = TASK_OPTIONS_ALL,
    .usual_options = TASK_OPTIONS_USUAL,
    .slurm = SLURM_SALLOC,
    .max_operands = -1,
    .common_without = WITHOUT_JSON,
    .run = run,
};
