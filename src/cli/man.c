/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli/ending.h"
#include "cli/help.h"

/* Text with what roff would take for its own escaped; an empty line begins a paragraph. */
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
        printf("=\\fI%s\\fR", spec->argument);
    putchar('\n');
    char help[OPTION_HELP_MAX];
    print_roff(option_help_text(spec->help, spec->choice_at, help, sizeof help));
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
    "A task file is one of three. Which one shows in its content.\n\n"
    "A script: any script may hold lines that begin with #COLLOC, before its first command, with the options above as "
    "a shell would read them; quotes and backslash work, nothing is expanded, # begins a comment. A first line #! "
    "names "
    "the interpreter; without it, it is bash.\n\n"
    "A .rad file with keys: lines to run, and lines `model: FILE`, `batch_size: N`, `policy: exclusive` or "
    "`collocation` or a policy's name, `gpus: N`, and every option above as a key. dataset and epochs are ignored.\n\n"
    "A .rad file by position: comment, conda line, command line, model summary, dataset, batch size, policy, GPUs, "
    "measured MiB, and estimates of Horus, FakeTensor and GPUMemNet in MB, where 40000 means none. The measured memory "
    "is taken as --memory; the estimates are not used, since colloc makes its own.\n\n"
    "The lines of a .rad file run in bash as they stand there, conda lines with conda's shell hook. When one of those "
    "fails, the task fails.\n\n"
    "A model summary with a relative path is looked for beside the task file, then in the current folder.";

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

static void print_exit_codes(void)
{
    puts(".SH EXIT STATUS");
    print_number_code(EXIT_OK, "All went well.");
    print_number_code(
        EXIT_REFUSED, "The daemon refused, or something failed that has no code of its own.");
    print_number_code(
        EXIT_USAGE, "The command line, a task file or a model summary is wrong. Nothing was done.");
    print_number_code(EXIT_UNREACHABLE, "The daemon cannot be reached, or broke off.");
    puts(".PP");
    print_roff(
        "wait and submit --wait give the exit code of the task itself when it failed with one, and");
    print_number_code(
        EXIT_OUT_OF_MEMORY, "when it ended for good for want of GPU memory (OUT_OF_MEMORY),");
    print_number_code(
        EXIT_TIMEOUT, "when its time was up (TIMEOUT), or that of `colloc wait --timeout`,");
    print_number_code(EXIT_CANCELLED, "when it was cancelled (CANCELLED),");
    print_exit_code("128+N", "when it ended by signal N: 137 is SIGKILL.");
}

static const char environment[] =
    "COLLOC_SOCKET names the daemon's socket. Without it and without --socket the first of these that answers is used: "
    "/run/colloc/collocd.sock, $XDG_RUNTIME_DIR/colloc/collocd.sock, /tmp/colloc-UID/collocd.sock.\n\n"
    "NO_COLOR, when it is set and not empty, keeps tables without colours.";

static const char examples[] = "colloc submit --gpus=2 --memory=12G -- python train.py --lr 0.1\n"
                               "colloc submit --summary=resnet50.txt --batch=128 --wait train.sh\n"
                               "colloc queue\n"
                               "colloc logs -f 12\n"
                               "colloc queue --json | jq '.tasks[].reason_text'";

int help_print_man(void)
{
    printf(".TH COLLOC 1 2026-11-20 \"colloc %s\" \"User Commands\"\n", COLLOC_VERSION);
    print_section("NAME", "colloc - train deep-learning models on shared GPUs");
    puts(".SH SYNOPSIS\n.B colloc\n.I COMMAND\n.RI [ OPTION ...]");
    print_section("DESCRIPTION",
        "Hands training tasks to collocd(8) on this machine, and shows and changes them. collocd estimates the "
        "GPU memory of a task, runs it where there is room, beside other tasks when that does no harm, and "
        "starts it again on a GPU to itself when it ran out of GPU memory.\n\n"
        "All commands print tables for people and, with --json, objects whose keys carry their units.");
    puts(".SH COMMON OPTIONS");
    for (size_t i = 0; i < COMMON_OPTIONS; i++)
        print_option(&common_options[i], NULL);
    puts(".SH COMMANDS");
    for (const struct command *const *command = commands; *command; command++)
        print_command(*command);
    puts(".SH TASK OPTIONS");
    print_roff(
        "On the command line of submit, in #COLLOC lines and, without dashes, in .rad files:");
    for (size_t i = 0; i < TASK_OPTIONS; i++)
        print_option(&task_options[i], NULL);
    print_section("TASK FILES", task_files);
    print_exit_codes();
    print_section("ENVIRONMENT", environment);
    puts(".SH EXAMPLES\n.EX");
    print_roff(examples);
    puts(".EE");
    print_section("SEE ALSO",
        "collocd(8), collocd.yaml(5); pages named docs/... are installed in share/doc/colloc below "
        "the prefix");
    return EXIT_OK;
}
