/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The man page colloc(1), printed as roff from the tables of commands and options, so `colloc help`
 * and the page cannot differ. Text about no command (forms of task files, exit codes, environment)
 * is in this file. The build runs it once, and docs/ installs the result.
 *
 *     .SS colloc wait [OPTION...] ID...        from struct command
 *     ID is a task (12), ...                   its description
 *     .TP                                      from each of its options
 *     \fB\-\-timeout\fR=\fITIME\fR
 */

#include "cli/help.h"
#include "cli/task_end.h"

/* Text with roff's special characters escaped; an empty line begins a paragraph. */
static void print_roff(const char *text)
{
    bool at_line_start = true, in_quotes = false;
    for (; *text; text++) {
        if (at_line_start && (*text == '.' || *text == '\''))
            fputs("\\&", stdout);
        at_line_start = false;
        if (*text == '\\')
            fputs("\\e", stdout);
        else if (*text == '-')
            fputs("\\-", stdout);
        else if (*text == '`')
            fputs((in_quotes = !in_quotes) ? "\\(oq" : "\\(cq", stdout);
        else if (*text == '\n' && text[1] == '\n') {
            fputs("\n.PP\n", stdout);
            text++;
            at_line_start = true;
        } else {
            putchar(*text);
        }
    }
    putchar('\n');
}

/* A dash in the name of an option is "\\-" in roff; a plain one may be set as a hyphen, which
 * cannot be copied. */
static void print_option(const struct option_spec *spec, void *context)
{
    fputs(".TP\n", stdout);
    if (spec->letter)
        printf("\\fB\\-%c\\fR, ", spec->letter);
    fputs("\\fB\\-\\-", stdout);
    for (const char *c = spec->name; *c; c++)
        fputs(*c == '-' ? "\\-" : (char[]){*c, '\0'}, stdout);
    fputs("\\fR", stdout);
    if (spec->argument)
        printf("%s\\fI%s\\fR%s", spec->is_optional ? "[=" : "=", spec->argument,
            spec->is_optional ? "]" : "");
    putchar('\n');
    char help[OPTION_HELP_MAX];
    print_roff(option_help_text(spec, help, sizeof help));
}

static void print_command(const struct command *command)
{
    printf(".SS colloc %s%s", command->name, *command->usage ? " " : "");
    print_roff(command->usage);
    print_roff(command->description);
    for (size_t i = 0; i < command->option_count; i++)
        print_option(&command->options[i], NULL);
}

static void print_section(const char *title, const char *text)
{
    printf(".SH %s\n", title);
    print_roff(text);
}

static const char task_files[] =
    "A task file has one of three forms; colloc detects which.\n\n"
    "A script: lines that begin with #COLLOC, before the first command, hold the "
    "options above. They are read as a shell reads them: quotes and backslashes "
    "work, nothing is expanded, # begins a comment. A first line #! names the "
    "interpreter; the default is bash.\n\n"
    "A .rad file with keys: command lines, and lines `model: FILE`, `batch_size: N`, "
    "`policy: exclusive` or `collocation` or the name of a policy, `gpus: N`, and "
    "every option above as a key. dataset and epochs are ignored.\n\n"
    "A .rad file by position: comment, conda line, command line, model summary, "
    "dataset, batch size, policy, GPUs, measured MiB, and the estimates of Horus, "
    "FakeTensor and GPUMemNet in MB, where 40000 means none. The measured memory "
    "becomes --memory; colloc ignores the estimates and makes its own.\n\n"
    "The command lines of a .rad file run in bash unchanged, conda lines with "
    "conda's shell hook. The task fails when one of them fails.\n\n"
    "A relative path of a model summary is searched in the folder of the task file, "
    "then in the current folder.";

static void print_exit_code(const char *code, const char *meaning)
{
    printf(".TP\n.B %s\n", code);
    print_roff(meaning);
}

static void print_number_code(int code, const char *meaning)
{
    char text[16];
    snprintf(text, sizeof text, "%d", code);
    print_exit_code(text, meaning);
}

/* The numbers are the constants of command.h, so that the page cannot disagree with them. */
static void print_exit_codes(void)
{
    puts(".SH EXIT STATUS");
    print_number_code(EXIT_OK, "Success.");
    print_number_code(EXIT_REFUSED, "The daemon refused the request, or another error.");
    print_number_code(EXIT_USAGE,
        "A mistake in the command line, a task file or a model summary. Nothing was "
        "done.");
    print_number_code(
        EXIT_UNREACHABLE, "The daemon cannot be reached, or the connection to it broke.");
    puts(".PP");
    print_roff("wait and submit --wait exit with the exit code of a task that failed with "
               "one, and with");
    print_number_code(
        EXIT_OUT_OF_MEMORY, "when it ran out of GPU memory in its last attempt (OUT_OF_MEMORY),");
    print_number_code(EXIT_TIMEOUT,
        "when it reached its time limit (TIMEOUT), or the command that of `colloc "
        "wait --timeout`,");
    print_number_code(EXIT_CANCELLED, "when it was cancelled (CANCELLED),");
    print_exit_code("128+N", "when it ended by signal N: 137 is SIGKILL.");
}

static const char environment[] =
    "COLLOC_SOCKET is the path of the daemon's socket. Without it and without "
    "--socket, colloc uses the first of these with a daemon: "
    "/run/colloc/collocd.sock, $XDG_RUNTIME_DIR/colloc/collocd.sock, "
    "/tmp/colloc-UID/collocd.sock.\n\n"
    "NO_COLOR, when it is set and not empty, turns colours off.";

static const char examples[] = "colloc submit --gpus=2 --memory=12G -- python train.py --lr 0.1\n"
                               "colloc submit --summary=resnet50.txt --batch=128 --wait train.sh\n"
                               "colloc queue\n"
                               "colloc logs -f 12\n"
                               "colloc queue --json | jq '.tasks[].reason_text'";

/* The program itself prints the page, from the tables by which it works. */
int help_print_man(void)
{
    printf(".TH COLLOC 1 2026-11-20 \"colloc %s\" \"User Commands\"\n", COLLOC_VERSION);
    print_section("NAME", "colloc - train deep-learning models on shared GPUs");
    puts(".SH SYNOPSIS\n.B colloc\n.I COMMAND\n.RI [ OPTION ...]");
    print_section("DESCRIPTION",
        "Submits training tasks to collocd(8) on this machine, and shows and changes "
        "them. collocd estimates the GPU memory requirement of a task, places it on "
        "GPUs with enough free memory and SM activity, beside other tasks where the "
        "interference is acceptable, and runs it again alone when it ran out of GPU "
        "memory.\n\n"
        "Commands print tables or, with --json, objects whose keys carry their "
        "units.");
    puts(".SH COMMON OPTIONS");
    for (size_t i = 0; i < COMMON_OPTIONS; i++)
        print_option(&common_options[i], NULL);
    puts(".SH COMMANDS");
    for (const struct command *const *command = commands; *command; command++)
        print_command(*command);
    puts(".SH TASK OPTIONS");
    print_roff("These options work on the command line of submit, in #COLLOC lines and, "
               "without dashes, in .rad files:");
    for (size_t i = 0; i < task_option_count; i++)
        print_option(&task_options[i], NULL);
    print_section("TASK FILES", task_files);
    print_exit_codes();
    print_section("ENVIRONMENT", environment);
    puts(".SH EXAMPLES\n.EX");
    print_roff(examples);
    puts(".EE");
    print_section("SEE ALSO",
        "collocd(8); the pages named docs/... and an example collocd.yaml are in "
        "PREFIX/share/doc/colloc");
    return EXIT_OK;
}
