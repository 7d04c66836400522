/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Completion scripts for bash, zsh and fish, printed from the tables of commands and options.
 *
 * Each shell wants another form of the same facts:
 *
 *     bash   a function with `case` branches: options of each command, values of each option
 *     fish   a `complete` line for each option of each command
 *     zsh    an _arguments specification for each command
 *
 * Ids of tasks are completed by running `colloc queue`, and `colloc history` for commands that take
 * ended ones, too. Where no daemon answers there are none. Behind "--" stands a program of the user,
 * then files. An option may have other values in another command: --state of `queue` and `history`.
 */
#include <string.h>

#include "cli/help.h"
#include "cli/print.h"
#include "estimator/estimator.h"

static void bash_option(const struct option_spec *spec, void *context)
{
    printf("--%s%s ", spec->name, spec->argument ? "=" : "");
}

/* Prints the values that completion offers for an option, each followed by a blank. */
static void print_hints(const struct option_spec *spec)
{
    if (strcmp(spec->name, task_options[TASK_ESTIMATOR].name) == 0) {
        for (size_t i = 0; estimator_at(i); i++)
            printf("%s ", estimator_at(i)->name);
        return;
    }
    const char *choice;
    for (size_t i = 0; (choice = option_choice(spec, i)); i++)
        printf("%s ", choice);
}

static bool has_hints(const struct option_spec *spec)
{
    return option_choice(spec, 0) || strcmp(spec->name, task_options[TASK_ESTIMATOR].name) == 0;
}

/* `command`: "*": of any. */
static void bash_option_values(const char *command, const struct option_spec *spec)
{
    if (spec->kind == OPTION_FILE) {
        printf("    '%s --%s') compopt -o filenames; COMPREPLY=($(compgen -f -- \"$cur\")); "
               "return ;;\n",
            command, spec->name);
        return;
    }
    if (!has_hints(spec))
        return;
    printf("    '%s --%s') COMPREPLY=($(compgen -W '", command, spec->name);
    print_hints(spec);
    puts("' -- \"$cur\")); return ;;");
}

static void bash_value(const struct option_spec *spec, void *context)
{
    const struct command *command = context;
    bash_option_values(command->name, spec);
}

static void bash_all_values(void)
{
    for (const struct command *const *command = commands; *command; command++)
        help_each_option(*command, bash_value, (void *)*command);
}

static const char *const operand_words[] = {
    [OPERAND_NONE] = "none",
    [OPERAND_TASK] = "task",
    [OPERAND_ANY_TASK] = "any-task",
    [OPERAND_FILE] = "file",
    [OPERAND_COMMAND] = "command",
    [OPERAND_PROGRAM] = "program",
};

static void print_actions(const struct command *command)
{
    for (size_t i = 0; command->actions && command->actions[i]; i++)
        printf("%s%s", i ? " " : "", command->actions[i]);
}

static void bash_command(const struct command *command)
{
    printf("    %s) operand=%s actions='", command->name, operand_words[command->operand]);
    print_actions(command);
    printf("' options='");
    help_each_option(command, bash_option, NULL);
    puts("' ;;");
}

static void print_names(void)
{
    for (const struct command *const *command = commands; *command; command++)
        printf("%s%s", command == commands ? "" : " ", (*command)->name);
}

/* Shell commands that print the ids of tasks, also of arrays; nothing without a daemon. Only what
 * looks like an id: bash expands the words that it completes. */
#define IDS_OF(list)                                                                               \
    list " -o id 2>/dev/null | awk '{ id = $1 } sub(/_.*/, \"\", $1) && $1 ~ /^[0-9]+$/ && "       \
         "!seen[$1]++ { print $1 } id ~ /^[0-9]+(_[0-9]+)?$/ { print id }'"
static const char live_ids[] = IDS_OF("colloc queue");
static const char ended_ids[] = IDS_OF("colloc history");

/* Bash breaks words at "=", so --policy=ma is three of them; the script puts them together
 * again. */
static void print_bash(void)
{
    printf(
        "# bash completion for colloc; made by `colloc help --completion=bash`\n"
        "_colloc() {\n"
        "  local cur=${COMP_WORDS[COMP_CWORD]} prev='' command='' operand actions options word i\n"
        "  local dashes='' operands=0\n"
        "  COMPREPLY=()\n"
        "  ((COMP_CWORD > 0)) && prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
        "  if [[ $cur == = ]]; then\n"
        "    cur=''\n"
        "  elif [[ $prev == = ]]; then\n"
        "    prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
        "  fi\n"
        "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
        "    word=${COMP_WORDS[i]}\n"
        "    if [[ $word == -- && -n $command ]]; then\n"
        "      dashes=$i\n"
        "      break\n"
        "    fi\n"
        "    [[ $word == -* || ${COMP_WORDS[i - 1]} == --socket || ${COMP_WORDS[i - 1]} == = || "
        "$word == = ]] && continue\n"
        "    if [[ -z $command ]]; then\n"
        "      command=$word\n"
        "    else\n"
        "      operands=$((operands + 1))\n"
        "    fi\n"
        "  done\n"
        "  case $command in\n"
        "    '') operand=command options='--socket= --json --help --version' ;;\n");
    for (const struct command *const *command = commands; *command; command++)
        bash_command(*command);
    printf("    *) return ;;\n"
           "  esac\n"
           "  if [[ -n $dashes ]]; then\n"
           "    operand=program\n"
           "    operands=$((COMP_CWORD - dashes - 1))\n"
           "  elif [[ $cur == -* ]]; then\n"
           "    COMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n"
           "    [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace\n"
           "    return\n"
           "  else\n"
           "    case \"$command $prev\" in\n");
    bash_all_values();
    printf("    esac\n"
           "    if [[ -n ${actions-} && $operands == 0 ]]; then\n"
           "      COMPREPLY=($(compgen -W \"$actions\" -- \"$cur\"))\n"
           "      return\n"
           "    fi\n"
           "  fi\n"
           "  case $operand$operands in\n"
           "    program0) COMPREPLY=($(compgen -c -- \"$cur\")) ;;\n"
           "    task*) COMPREPLY=($(compgen -W \"$(%s)\" -- \"$cur\")) ;;\n"
           "    any-task*) COMPREPLY=($(compgen -W \"$(%s; %s)\" -- \"$cur\")) ;;\n"
           "    file* | program*) compopt -o filenames; COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n"
           "    command*) COMPREPLY=($(compgen -W '",
        live_ids, live_ids, ended_ids);
    print_names();
    printf("' -- \"$cur\")) ;;\n"
           "  esac\n"
           "}\n"
           "complete -F _colloc colloc\n");
}

/* Text inside double quotes of fish. */
static void fish_text(const char *text)
{
    for (; *text; text++)
        printf(strchr("\"$\\", *text) ? "\\%c" : "%c", *text);
}

static void fish_description(const char *text)
{
    printf(" -d \"");
    fish_text(text);
    puts("\"");
}

static void fish_option(const struct option_spec *spec, void *context)
{
    const struct command *command = context;
    printf(
        "complete -c colloc -n '__fish_seen_subcommand_from %s' -l %s", command->name, spec->name);
    if (spec->letter)
        printf(" -s %c", spec->letter);
    if (spec->kind == OPTION_FILE)
        printf(spec->is_optional ? " -F" : " -rF");
    else if (spec->argument)
        printf(" -x");
    if (has_hints(spec)) {
        printf(" -a '");
        print_hints(spec);
        putchar('\'');
    }
    char help[OPTION_HELP_MAX];
    fish_description(option_help_text(spec, help, sizeof help));
}

/* `colloc LIST -o id` prints an id a line. */
static void fish_ids(const char *name, const char *list)
{
    printf("complete -c colloc -n '__fish_seen_subcommand_from %s' -a \"(colloc %s -o id "
           "2>/dev/null | string match -rg '^ *([0-9]+(?:_[0-9]+)?) *\\$')\"\n",
        name, list);
}

static void fish_operands(const struct command *command)
{
    bool takes_ended = command->operand == OPERAND_ANY_TASK;
    if (command->operand == OPERAND_TASK || takes_ended)
        fish_ids(command->name, "queue");
    if (takes_ended)
        fish_ids(command->name, "history");
    if (!command->actions)
        return;
    printf("complete -c colloc -n '__fish_seen_subcommand_from %s; and not "
           "__fish_seen_subcommand_from ",
        command->name);
    print_actions(command);
    printf("' -a '");
    print_actions(command);
    puts("'");
}

/* Fish takes a rule for each option of each command. */
static void print_fish(void)
{
    puts(
        "# fish completion for colloc; made by `colloc help --completion=fish`\ncomplete -c colloc -f");
    for (const struct command *const *command = commands; *command; command++) {
        const char *name = (*command)->name;
        printf("complete -c colloc -n __fish_use_subcommand -a %s", name);
        fish_description((*command)->summary);
        fish_operands(*command);
        if ((*command)->operand == OPERAND_FILE || (*command)->operand == OPERAND_PROGRAM)
            printf("complete -c colloc -n '__fish_seen_subcommand_from %s' -F\n", name);
        help_each_option(*command, fish_option, (void *)*command);
    }
}

/* Text inside an _arguments or _describe specification in single quotes. */
static void zsh_text(const char *text)
{
    for (; *text; text++)
        if (*text == '\'')
            fputs("'\\''", stdout);
        else
            printf(strchr("[]:\\", *text) ? "\\%c" : "%c", *text);
}

/* '--policy=[help]:NAME:(magm lug)': what stands in the parentheses is offered as the value. */
static void zsh_option(const struct option_spec *spec, void *context)
{
    char help[OPTION_HELP_MAX];
    printf("        '--%s%s[", spec->name, spec->argument ? "=" : "");
    zsh_text(option_help_text(spec, help, sizeof help));
    putchar(']');
    if (spec->argument)
        printf(":%s:", spec->argument);
    if (spec->kind == OPTION_FILE)
        printf("_files");
    else if (has_hints(spec)) {
        putchar('(');
        print_hints(spec);
        putchar(')');
    }
    puts("' \\");
}

static void zsh_command(const struct command *command)
{
    static const char *const actions[] = {
        [OPERAND_NONE] = "",
        [OPERAND_TASK] = "'*:task:_colloc_tasks'",
        [OPERAND_ANY_TASK] = "'*:task:_colloc_any_tasks'",
        [OPERAND_FILE] = "'*:file:_files'",
        [OPERAND_COMMAND] = "'*:command:_colloc_commands'",
        [OPERAND_PROGRAM] = "'*::program:_normal'",
    };
    printf("    %s) _arguments \\\n", command->name);
    help_each_option(command, zsh_option, NULL);
    if (command->actions) {
        printf("        '1:action:(");
        print_actions(command);
        puts(")' \\");
    }
    printf("        %s ;;\n", actions[command->operand]);
}

static void print_zsh(void)
{
    puts("#compdef colloc\n# zsh completion for colloc; made by `colloc help --completion=zsh`\n"
         "_colloc_commands() {\n  local -a names=(");
    for (const struct command *const *command = commands; *command; command++) {
        printf("    '%s:", (*command)->name);
        zsh_text((*command)->summary);
        puts("'");
    }
    printf("  )\n  _describe command names\n}\n"
           "_colloc_tasks() {\n  local -a ids=(${(f)\"$(%s)\"})\n  compadd -a ids\n}\n"
           "_colloc_any_tasks() {\n  local -a ids=(${(f)\"$(%s; %s)\"})\n  compadd -a ids\n}\n"
           "_colloc() {\n"
           "  if (( CURRENT == 2 )); then\n    _colloc_commands\n    return\n  fi\n"
           "  shift words\n  (( CURRENT-- ))\n"
           "  case $words[1] in\n",
        live_ids, live_ids, ended_ids);
    for (const struct command *const *command = commands; *command; command++)
        zsh_command(*command);
    puts("  esac\n}\n_colloc \"$@\"");
}

int help_print_completion(const char *shell)
{
    if (strcmp(shell, "bash") == 0)
        print_bash();
    else if (strcmp(shell, "zsh") == 0)
        print_zsh();
    else
        print_fish();
    return EXIT_OK;
}
