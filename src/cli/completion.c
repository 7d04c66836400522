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
 * Ids of tasks are completed by running `colloc queue`. Where no daemon answers there are none.
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

static void bash_option_values(const struct option_spec *spec)
{
    if (spec->kind == OPTION_FILE) {
        printf("    --%s) compopt -o filenames; COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n",
            spec->name);
        return;
    }
    if (!has_hints(spec))
        return;
    printf("    --%s) COMPREPLY=($(compgen -W '", spec->name);
    print_hints(spec);
    puts("' -- \"$cur\")); return ;;");
}

static void bash_all_values(void)
{
    for (size_t i = 0; i < task_option_count; i++)
        bash_option_values(&task_options[i]);
    for (size_t i = 0; i < COMMON_OPTIONS; i++)
        bash_option_values(&common_options[i]);
    for (const struct command *const *command = commands; *command; command++)
        for (size_t i = 0; i < (*command)->option_count; i++)
            bash_option_values(&(*command)->options[i]);
}

static const char *const operand_words[] = {
    [OPERAND_NONE] = "none",
    [OPERAND_TASK] = "task",
    [OPERAND_FILE] = "file",
    [OPERAND_COMMAND] = "command",
};

static void bash_command(const struct command *command)
{
    printf("    %s) operand=%s options='", command->name, operand_words[command->operand]);
    help_each_option(command, bash_option, NULL);
    puts("' ;;");
}

static void print_names(void)
{
    for (const struct command *const *command = commands; *command; command++)
        printf("%s%s", command == commands ? "" : " ", (*command)->name);
}

/* A shell command that prints the ids of waiting and running tasks; nothing without a daemon. */
static const char ids[] = "colloc queue 2>/dev/null | awk 'NR > 1 && $1 ~ /^[0-9]+$/ { print $1 }'";

/* Bash breaks words at "=", so --policy=ma is three of them; the script puts them together
 * again. */
static void print_bash(void)
{
    printf("# bash completion for colloc; made by `colloc help --completion=bash`\n"
           "_colloc() {\n"
           "  local cur=${COMP_WORDS[COMP_CWORD]} prev='' command='' operand options word i\n"
           "  COMPREPLY=()\n"
           "  ((COMP_CWORD > 0)) && prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
           "  if [[ $cur == = ]]; then\n"
           "    cur=''\n"
           "  elif [[ $prev == = ]]; then\n"
           "    prev=${COMP_WORDS[COMP_CWORD - 2]}\n"
           "  fi\n"
           "  case $prev in\n");
    bash_all_values();
    printf(
        "  esac\n"
        "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
        "    word=${COMP_WORDS[i]}\n"
        "    [[ $word == -* || ${COMP_WORDS[i - 1]} == --socket || ${COMP_WORDS[i - 1]} == = || $word == = ]] && "
        "continue\n"
        "    command=$word\n"
        "    break\n"
        "  done\n"
        "  case $command in\n"
        "    '') operand=command options='--socket= --json --help --version' ;;\n");
    for (const struct command *const *command = commands; *command; command++)
        bash_command(*command);
    printf("    *) return ;;\n"
           "  esac\n"
           "  if [[ $cur == -* ]]; then\n"
           "    COMPREPLY=($(compgen -W \"$options\" -- \"$cur\"))\n"
           "    [[ ${COMPREPLY[0]-} == *= ]] && compopt -o nospace\n"
           "    return\n"
           "  fi\n"
           "  case $operand in\n"
           "    task) COMPREPLY=($(compgen -W \"$(%s)\" -- \"$cur\")) ;;\n"
           "    file) compopt -o filenames; COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n"
           "    command) COMPREPLY=($(compgen -W '",
        ids);
    print_names();
    printf("' -- \"$cur\")) ;;\n"
           "  esac\n"
           "}\n"
           "complete -F _colloc colloc\n");
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
    printf(" -d \"%s\"\n", option_help_text(spec, help, sizeof help));
}

/* Fish takes a rule for each option of each command. */
static void print_fish(void)
{
    puts(
        "# fish completion for colloc; made by `colloc help --completion=fish`\ncomplete -c colloc -f");
    for (const struct command *const *command = commands; *command; command++) {
        const char *name = (*command)->name;
        printf("complete -c colloc -n __fish_use_subcommand -a %s -d \"%s\"\n", name,
            (*command)->summary);
        if ((*command)->operand == OPERAND_TASK)
            printf("complete -c colloc -n '__fish_seen_subcommand_from %s' -a \"(%s)\"\n", name,
                "colloc queue 2>/dev/null | string match -rg '^ *([0-9]+) '");
        if ((*command)->operand == OPERAND_FILE)
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
        [OPERAND_FILE] = "'*:file:_files'",
        [OPERAND_COMMAND] = "'*:command:_colloc_commands'",
    };
    printf("    %s) _arguments \\\n", command->name);
    help_each_option(command, zsh_option, NULL);
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
           "_colloc() {\n"
           "  if (( CURRENT == 2 )); then\n    _colloc_commands\n    return\n  fi\n"
           "  shift words\n  (( CURRENT-- ))\n"
           "  case $words[1] in\n",
        ids);
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
