/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds mistakes in the arguments of `colloc submit`.
 *
 * A task may start hours after its submission, so a mistake is reported before. The client checks,
 * as the user: the daemon never opens files that users name. A mistake that will remain is an
 * error: a command line quoted as one argument, a name that is no program on PATH, an output file
 * that is a folder, indices of an array or dependencies that cannot be read. A file that may exist
 * when the task starts causes a warning: a path, a folder, a script that another task writes.
 */
#include "cli/submit_check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/print.h"
#include "core/dependency.h"
#include "core/stop_spec.h"
#include "model/export.h"
#include "taskfile/array_spec.h"
#include "taskfile/metric_pattern.h"
#include "taskfile/metric_source.h"
#include "taskfile/training_arguments.h"

/* ---- programs ---- */

static bool is_program(const char *path)
{
    struct stat status;
    return stat(path, &status) == 0 && S_ISREG(status.st_mode) &&
           faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) == 0;
}

/* Searches a name without a slash as execvp does: an empty part of PATH is the current folder. */
static bool is_on_path(const char *name)
{
    const char *path = getenv("PATH");
    for (const char *at = path ? path : "/usr/local/bin:/usr/bin:/bin"; *name;) { /* "": none */
        char candidate[4096];
        size_t n = strcspn(at, ":");
        int length = snprintf(
            candidate, sizeof candidate, "%.*s/%s", n ? (int)n : 1, n ? at : ".", name);
        if (length > 0 && (size_t)length < sizeof candidate && is_program(candidate))
            return true;
        if (!at[n])
            return false;
        at += n + 1;
    }
    return false;
}

/* Warns if the first argument that looks like a script, which an interpreter will open, is missing.
 */
static void warn_of_missing_script(const char *const *arguments)
{
    for (; *arguments; arguments++) {
        if (**arguments == '-' || !(text_ends(*arguments, ".py") || text_ends(*arguments, ".sh")))
            continue;
        if (access(*arguments, F_OK) < 0)
            print_error("warning: %s: %s", *arguments, strerror(errno));
        return;
    }
}

/* A word with blanks that is no file is a command line that was quoted as one. */
static bool is_quoted_line(const char *word)
{
    return strpbrk(word, " \t\n") && access(word, F_OK) < 0 &&
           (strchr(word, '/') || !is_on_path(word));
}

/* What only a shell does, so that leaving out the quotes is no help. */
static bool needs_shell(const char *line)
{
    static const char *const builtins[] = {"cd ", "source ", ". ", "export ", "ulimit ", "module "};
    for (size_t i = 0; i < ARRAY_SIZE(builtins); i++)
        if (strncmp(line, builtins[i], strlen(builtins[i])) == 0)
            return true;
    return strpbrk(line, "&|;<>$`*?\n") != NULL;
}

int submit_refuse_quoted_line(const char *line, struct fault *fault)
{
    if (needs_shell(line))
        return fault_set(fault, ENOENT,
            "'%.80s': no program has this name: a shell runs such a line: colloc submit -- bash -c "
            "'%.160s'",
            line, line);
    return fault_set(fault, ENOENT,
        "'%.80s': no program has this name: did you mean `colloc submit -- %.160s`?", line, line);
}

/* ---- containers of a server ---- */

#define DOCKER_WORDS                                                                               \
    "`docker exec`, `docker start`, and docker by sudo or by its path, start processes outside "   \
    "the task: use `docker run` or `docker compose` (docs/containers.md)"

/* In a task colloc's `docker` stands first on PATH, which sudo sets anew. */
static bool passes_task_by(const char *program, const char *verb, bool by_sudo)
{
    const char *name = path_name(program);
    bool is_docker = strcmp(name, "docker") == 0 || strcmp(name, "nvidia-docker") == 0;
    bool is_collocs = name == program && strcmp(name, "nvidia-docker") != 0 && !by_sudo;
    if (strcmp(name, "docker-compose") == 0)
        return !is_collocs;
    if (!is_docker || !verb)
        return false;
    if (strcmp(verb, "exec") == 0 || strcmp(verb, "start") == 0)
        return true;
    return !is_collocs && (strcmp(verb, "run") == 0 || strcmp(verb, "compose") == 0);
}

static void warn_of_docker(const char *const *words)
{
    const char *const *first = words;
    bool by_sudo = false;
    for (; *first && (strcmp(*first, "sudo") == 0 || strcmp(*first, "exec") == 0); first++)
        by_sudo |= strcmp(*first, "sudo") == 0;
    if (*first && passes_task_by(*first, first[1], by_sudo))
        print_error("warning: " DOCKER_WORDS);
}

/* "    docker run ..." in a script. */
static bool is_docker_line(struct span line)
{
    char text[64], *rest = text;
    const char *words[4] = {NULL};
    bool by_sudo = false;
    size_t n = 0;
    struct span trimmed = span_trim(line);
    trimmed.size = trimmed.size < sizeof text ? trimmed.size : sizeof text - 1;
    span_copy(trimmed, text, sizeof text);
    for (char *word; n < 3 && (word = strsep(&rest, " \t"));) {
        bool is_sudo = strcmp(word, "sudo") == 0;
        by_sudo |= is_sudo && n == 0;
        if (*word && !is_sudo && (n > 0 || strcmp(word, "exec") != 0))
            words[n++] = word;
    }
    return n > 0 && passes_task_by(words[0], words[1], by_sudo);
}

/* ---- a command ---- */

/* A path may become right until the task starts, so that is a warning; a name is looked up on the
 * PATH that the task will have, so that is an error. */
int submit_check_command(const char *const *words, struct fault *fault)
{
    const char *program = words[0];
    if (is_quoted_line(program))
        return submit_refuse_quoted_line(program, fault);
    warn_of_docker(words);
    if (strchr(program, '/')) {
        if (!is_program(program))
            print_error("warning: %s: %s", program,
                access(program, F_OK) < 0 ? strerror(errno) : "is not executable (chmod +x)");
    } else if (!is_on_path(program)) {
        return fault_set(fault, ENOENT, "%.80s: no such program on PATH", program);
    }
    warn_of_missing_script(words + 1);
    return 0;
}

/* ---- the file, and the arguments after it ---- */

/* Joins as many arguments as fit into `buffer`, with blanks between them. */
static void join_words(const char *const *words, char *buffer, size_t size)
{
    size_t used = 0;
    for (; *words && used < size; words++)
        used += (size_t)snprintf(buffer + used, size - used, "%s%s", used ? " " : "", *words);
}

int submit_explain_unread(const char *const *words, int r, struct fault *fault)
{
    char line[160] = "";
    join_words(words, line, sizeof line);
    if (r == -ENOENT && is_quoted_line(words[0]))
        return submit_refuse_quoted_line(words[0], fault);
    if (r == -EFBIG && is_program(words[0]))
        return fault_set(fault, EFBIG,
            "%.80s: is a program, not a script; run it with: colloc submit -- %s", words[0], line);
    if (r != -ENOENT || strchr(words[0], '/') || !is_on_path(words[0]))
        return r;
    return fault_set(fault, ENOENT,
        "%.80s: no such script in the current folder: did you mean `colloc submit -- "
        "%s`?",
        words[0], line);
}

static bool is_option_of(const struct option_spec *specs, size_t count, const char *word)
{
    char name[64];
    size_t n = strcspn(word, "=");
    if (strncmp(word, "--", 2) != 0 || n < 3 || n >= sizeof name)
        return false;
    snprintf(name, sizeof name, "%.*s", (int)(n - 2), word + 2);
    return option_find(specs, count, name) != NULL;
}

/* Options after FILE are the script's, as with sbatch. Those that submit has too are probably a
 * mistake. */
void submit_warn_of_words(
    const struct command *submit, const char *const *words, const char *script)
{
    for (const char *const *word = words + 1; *word && strcmp(*word, "--") != 0; word++)
        if (is_option_of(task_options, task_option_count, *word) ||
            is_option_of(submit->options, submit->option_count, *word))
            print_error(
                "warning: %s is passed to %s: give options of submit before FILE", *word, words[0]);
}

bool submit_is_python(const char *file, const char *script)
{
    return text_ends(file, ".py") && strncmp(script, "#!", 2) != 0;
}

int submit_check_python(const char *file, struct fault *fault)
{
    if (!is_on_path("python3"))
        return fault_set(fault, ENOENT,
            "%.80s: its first line is not #! INTERPRETER, and there is no python3 on PATH: activate "
            "its environment, then submit",
            file);
    print_error("python3 runs %s when the task starts: later edits of the file count", file);
    return 0;
}

enum { TAKEN_SIZE = 256 }; /* the task's options that are taken from its arguments, as text */

/* Only the estimate of a network's memory reads them. */
void submit_warn_without_network(const struct task_description *task)
{
    static const enum task_option of_network[] = {TASK_BATCH, TASK_OPTIMIZER, TASK_PRECISION,
        TASK_CHECKPOINTING, TASK_SEQ, TASK_PARALLEL, TASK_MICRO_BATCHES, TASK_OFFLOAD,
        TASK_LOADER_RATE};
    for (size_t i = 0; !task->values[TASK_SUMMARY].set && i < ARRAY_SIZE(of_network); i++)
        if (task->values[of_network[i]].set)
            print_error("warning: --%s has no effect without a model summary: give --summary, or "
                        "--estimate=script",
                task_options[of_network[i]].name);
}

int submit_take_arguments(
    struct task_description *task, const char *const *arguments, struct fault *fault)
{
    char taken[TAKEN_SIZE];
    if (!task->values[TASK_SUMMARY].set || !task->summary ||
        export_detect(task->summary, strlen(task->summary)))
        return 0;
    int r = training_arguments_apply(
        task->script, arguments, task->values, fault, taken, sizeof taken);
    if (r == 0 && *taken)
        print_error("for the estimate, from the command's arguments: %s", taken);
    return r;
}

/* Not refused: a task's processes may share its own GPUs by MPS. */
void submit_warn_of_sharing(const struct task_description *task)
{
    const struct option_value *sharing = &task->values[TASK_SHARING];
    if (task->values[TASK_EXCLUSIVE].number && sharing->set &&
        strcmp(sharing->text, "streams") != 0)
        print_error(
            "warning: --exclusive: no other task shares its GPUs, so --sharing=%s is for the "
            "task's own processes only",
            sharing->text);
}

/* ---- lines for another queue ---- */

/* Is it a misspelt #COLLOC line? */
static bool is_nearly_ours(struct span line)
{
    static const char name[] = "colloc";
    struct span words = span_trim(line);
    size_t blanks = 1;
    while (blanks < words.size && strchr(" \t#", words.at[blanks]))
        blanks++;
    const char *at = words.at + blanks, *end = words.at + words.size;
    if (words.size < blanks + sizeof name || words.at[0] != '#' || span_starts(line, "#COLLOC") ||
        strncasecmp(at, name, strlen(name)) != 0 || !strchr(" \t", at[strlen(name)]))
        return false;
    for (at += strlen(name); at < end && strchr(" \t", *at);)
        at++;
    return blanks == 1 || (at < end && *at == '-'); /* "# colloc is ..." is prose */
}

/* Lines of other systems, and lines that are nearly ours, would be ignored without a word. */
static bool warn_of_line(struct span line, int number)
{
    struct span words = span_trim(line);
    if (span_starts(words, "#PBS "))
        print_error("warning: line %d: colloc does not read lines of #PBS: give options in #COLLOC "
                    "lines",
            number);
    else if (is_nearly_ours(line))
        print_error("warning: line %d is ignored: a #COLLOC line begins with exactly #COLLOC and "
                    "a blank",
            number);
    else
        return false;
    return true;
}

void submit_warn_of_slurm(const struct task_description *task)
{
    const char *warnings = task->slurm.warnings;
    struct span text = span_of(warnings ? warnings : ""), line;
    while (span_next_line(&text, &line))
        print_error("warning: %.*s", (int)line.size, line.at);
}

void submit_warn_of_directives(const struct task_description *task)
{
    struct span text = span_of(task->script), line;
    bool warned = false;
    for (int number = 1; span_next_line(&text, &line) && !warned; number++)
        warned = warn_of_line(line, number);
    for (text = span_of(task->script); span_next_line(&text, &line);)
        if (is_docker_line(line)) {
            print_error("warning: " DOCKER_WORDS);
            break;
        }
}

/* ---- dependencies and arrays ---- */

/* As with Slurm it may start at once, but a moment that has passed is often a mistake. */
static void warn_of_begin(const struct option_value *begin)
{
    if (begin->set && begin->number < clock_wall_us() - 60 * SECOND_US)
        print_error("warning: --begin has passed: the task may start at once");
}

static int check_stop(const struct task_description *task, struct fault *fault)
{
    const struct option_value *stop = &task->values[TASK_STOP];
    struct halving_rule rule;
    const struct option_value *source = &task->values[TASK_METRIC_FROM];
    int r = stop->set ? stop_spec_parse(stop->text, fault, &rule) : 0;
    if (r == 0 && source->set && !stop->set)
        return fault_set(
            fault, EINVAL, "--metric-from: nothing reads the metric: give --stop, too");
    const struct option_value *steps = &task->values[TASK_STEP_PATTERN];
    if (r == 0 && steps->set)
        r = step_pattern_check(steps->text, fault);
    return r == 0 && source->set ? metric_source_check(source->text, fault) : r;
}

int submit_check_order(const struct task_description *task, struct fault *fault)
{
    warn_of_begin(&task->values[TASK_BEGIN]);
    struct dependency_term list[DEPENDENCIES_MAX];
    const struct option_value *after = &task->values[TASK_AFTER];
    const struct option_value *array = &task->values[TASK_ARRAY];
    struct array_spec spec = {0};
    int r = after->set ? dependency_parse(after->text, fault, list) : 0;
    if (r >= 0)
        r = array->set ? array_spec_parse(array->text, fault, &spec) : 0;
    array_spec_fini(&spec);
    return r < 0 ? r : check_stop(task, fault);
}

/* ---- output files ---- */

/* A folder with a pattern such as %j in its name is known only when the task starts. */
static int check_output(const char *option, const char *path, struct fault *fault)
{
    struct stat status;
    char folder[4096];
    const char *slash = strrchr(path, '/');
    int n = snprintf(
        folder, sizeof folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    if (stat(path, &status) == 0 && S_ISDIR(status.st_mode))
        return fault_set(
            fault, EISDIR, "--%s=%.200s: is a folder: give a file in it", option, path);
    if (n < 0 || (size_t)n >= sizeof folder || strchr(folder, '%'))
        return 0;
    if (faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) < 0)
        print_error("warning: --%s=%s: cannot use its folder: %s", option, path, strerror(errno));
    return 0;
}

int submit_check_outputs(const struct task_description *task, struct fault *fault)
{
    static const enum task_option outputs[] = {TASK_OUTPUT, TASK_ERROR};
    int r = 0;
    for (size_t i = 0; i < 2 && r == 0; i++)
        if (task->values[outputs[i]].set)
            r = check_output(task_options[outputs[i]].name, task->values[outputs[i]].text, fault);
    return r;
}
