/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the program that a command line runs. In a queue where all tasks are called "python" no
 * task can be found, so a task gets the name of the script that its command names:
 *
 *     python -u train.py --lr 0.1                     train.py
 *     python -m pkg.train                             pkg.train
 *     timeout 2h torchrun --nproc-per-node 2 train.py train.py
 *     bash -c 'cd x; ./train'                         bash
 *     ./train --lr 0.1                                train
 *
 * Interpreters (python, bash, ...) run the first word after their options. Launchers (torchrun,
 * nice, srun, ...) take options, and only the launcher knows which of them have a value. So after a
 * launcher the first word is chosen that can only be the started program: one that looks like a
 * script, or is an interpreter or launcher itself. Without such a word, it is the first that is
 * neither an option nor possibly the value of one.
 */
#include "taskfile/command_line.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text.h"
#include "taskfile/plain_text.h"

/* One program that runs another file. The letters are its short options. */
struct interpreter {
    const char *name; /* or the beginning of the name, as in python3.11 */
    const char *code; /* options whose value is the program itself: there is no script */
    const char *with_value;
    bool has_modules; /* -m names a module */
};

static const struct interpreter interpreters[] = {
    {"python", "c", "WX", true},
    {"pypy", "c", "WX", true},
    {"bash", "c", "oO", false},
    {"dash", "c", "o", false},
    {"zsh", "c", "o", false},
    {"ksh", "c", "o", false},
    {"sh", "c", "o", false},
    {"perl", "eE", "", false},
    {"ruby", "e", "rI", false},
    {"Rscript", "e", "", false},
    {"julia", "eE", "pL", false},
    {"node", "ep", "r", false},
    {"lua", "e", "l", false},
};

static const char *const launchers[] = {"torchrun", "accelerate", "deepspeed", "horovodrun",
    "mpirun", "mpiexec", "srun", "env", "nice", "ionice", "chrt", "nohup", "time", "timeout",
    "numactl", "taskset", "stdbuf", "setsid", "conda", "mamba", "micromamba", "poetry", "pipenv",
    "uv", "apptainer", "singularity", "nsys", "ncu", "strace", "xvfb-run"};

/* Subcommands of launchers, which are not the started program. */
static const char *const verbs[] = {"launch", "run", "exec", "profile"};

/* Modules that are launchers: python -m torch.distributed.run train.py */
static const char *const launcher_modules[] = {"torch.distributed.run", "torch.distributed.launch",
    "accelerate.commands.launch", "deepspeed.launcher.runner", "coverage", "cProfile"};

static const char *const script_endings[] = {
    ".py", ".sh", ".bash", ".pl", ".rb", ".R", ".jl", ".js", ".lua", ".ipynb"};

/* "python" and "python3.11", but not "python-config". */
static const struct interpreter *find_interpreter(const char *word)
{
    const char *name = path_name(word);
    for (size_t i = 0; i < ARRAY_SIZE(interpreters); i++) {
        size_t n = strlen(interpreters[i].name);
        if (strncmp(name, interpreters[i].name, n) == 0 &&
            name[n + strspn(name + n, "0123456789.")] == '\0')
            return &interpreters[i];
    }
    return NULL;
}

static bool is_launcher(const char *word)
{
    return span_place(span_of(path_name(word)), launchers, ARRAY_SIZE(launchers)) >= 0;
}

static bool looks_like_script(const char *word)
{
    for (size_t i = 0; i < ARRAY_SIZE(script_endings); i++)
        if (text_ends(path_name(word), script_endings[i]))
            return true;
    return false;
}

static const char *started_by(const char *const *words, int depth);

/* ---- interpreters ---- */

static const char *module_name(const char *module, const char *const *rest, int depth)
{
    if (span_place(span_of(module), launcher_modules, ARRAY_SIZE(launcher_modules)) < 0)
        return module;
    const char *started = started_by(rest, depth + 1);
    return started ? started : module;
}

/* The meaning of one option word of an interpreter. */
enum short_option { SHORT_PLAIN, SHORT_TAKES_NEXT, SHORT_IS_CODE, SHORT_IS_MODULE };

/*
 * Classifies a word that begins with one dash. *ret_value: the value attached to the option's
 * letter, or "".
 */
static enum short_option read_short_option(
    const struct interpreter *interpreter, const char *word, const char **ret_value)
{
    for (const char *letter = word + 1; *letter; letter++) {
        *ret_value = letter + 1;
        if (strchr(interpreter->code, *letter))
            return SHORT_IS_CODE;
        if (interpreter->has_modules && *letter == 'm')
            return SHORT_IS_MODULE;
        if (strchr(interpreter->with_value, *letter))
            return letter[1] ? SHORT_PLAIN : SHORT_TAKES_NEXT;
    }
    return SHORT_PLAIN;
}

/* The script or module that the interpreter words[0] runs; NULL when the line names none. */
static const char *script_of(
    const struct interpreter *interpreter, const char *const *words, int depth)
{
    for (int i = 1; words[i]; i++) {
        const char *word = words[i], *value;
        if (word[0] != '-')
            return path_name(word);
        if (strcmp(word, "--") == 0)
            return words[i + 1] ? path_name(words[i + 1]) : NULL;
        if (word[1] == '-')
            continue;
        if (word[1] == '\0')
            return NULL;
        switch (read_short_option(interpreter, word, &value)) {
        case SHORT_IS_CODE:
            return NULL;
        case SHORT_IS_MODULE:
            if (*value)
                return module_name(value, words + i + 1, depth);
            return words[i + 1] ? module_name(words[i + 1], words + i + 2, depth) : NULL;
        case SHORT_TAKES_NEXT:
            if (!words[++i])
                return NULL;
            break;
        default:
            break;
        }
    }
    return NULL;
}

/* ---- launchers ---- */

/* "60", "2h", "A=b": an operand of the launcher's own. */
static bool is_launcher_operand(const char *word)
{
    return isdigit((unsigned char)word[0]) || strchr(word, '=') ||
           span_place(span_of(word), verbs, ARRAY_SIZE(verbs)) >= 0;
}

static const char *first_plain_word(const char *const *words)
{
    bool behind_option = false;
    for (int i = 0; words[i]; i++) {
        bool is_option = words[i][0] == '-';
        bool may_be_value = behind_option && !strchr(words[i], '/');
        behind_option = is_option && !strchr(words[i], '=') && strcmp(words[i], "--") != 0;
        if (!is_option && !may_be_value && !is_launcher_operand(words[i]))
            return path_name(words[i]);
    }
    return NULL;
}

/* Returns the program that a launcher with these arguments starts; NULL if that is not known. */
static const char *started_by(const char *const *words, int depth)
{
    enum { DEPTH_MAX = 8 };
    if (depth > DEPTH_MAX)
        return NULL;
    for (int i = 0; words[i]; i++) {
        const struct interpreter *interpreter = find_interpreter(words[i]);
        bool is_module_option = strcmp(words[i], "-m") == 0 || strcmp(words[i], "--module") == 0;
        if (is_module_option && words[i + 1])
            return module_name(words[i + 1], words + i + 2, depth);
        if (interpreter) {
            const char *script = script_of(interpreter, words + i, depth + 1);
            return script ? script : path_name(words[i]);
        }
        if (is_launcher(words[i])) {
            const char *started = started_by(words + i + 1, depth + 1);
            return started ? started : path_name(words[i]);
        }
        if (looks_like_script(words[i]) && words[i][0] != '-')
            return path_name(words[i]);
    }
    return first_plain_word(words);
}

/* ---- the name ---- */

static bool is_fit_name(const char *name)
{
    for (const char *c = name; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            return false;
    return *name && strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
           is_plain_text((struct span){name, strlen(name)});
}

/* Bytes of `text` up to `most` that end between characters of UTF-8. */
static size_t whole_characters(const char *text, size_t most)
{
    size_t n = strlen(text);
    if (n <= most)
        return n;
    for (n = most; n && ((unsigned char)text[n] & 0xc0) == 0x80; n--)
        ;
    return n;
}

const char *command_line_name(const char *const *words, char name[COMMAND_NAME_SIZE])
{
    const struct interpreter *interpreter = find_interpreter(words[0]);
    const char *found = interpreter             ? script_of(interpreter, words, 0)
                        : is_launcher(words[0]) ? started_by(words + 1, 0)
                                                : NULL;
    if (!found || !is_fit_name(found))
        found = is_fit_name(path_name(words[0])) ? path_name(words[0]) : "command";
    size_t n = whole_characters(found, COMMAND_NAME_SIZE - 1);
    memcpy(name, found, n);
    name[n] = '\0';
    return name;
}

/* ---- the text ---- */

static bool needs_quotes(const char *word)
{
    for (const char *c = word; *c; c++)
        if (!isalnum((unsigned char)*c) && !strchr("_-+=./:,@%^", *c) && (unsigned char)*c < 0x80)
            return true;
    return *word == '\0';
}

static void put_word(FILE *out, const char *word)
{
    if (!needs_quotes(word)) {
        fputs(word, out);
        return;
    }
    fputc('\'', out);
    for (const char *c = word; *c; c++)
        if (*c == '\'')
            fputs("'\\''", out);
        else
            fputc(*c, out);
    fputc('\'', out);
}

char *command_line_text(const char *const *words)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    for (int i = 0; words[i]; i++) {
        if (i)
            fputc(' ', out);
        put_word(out, words[i]);
    }
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    if (size > COMMAND_TEXT_MAX)
        strcpy(text + whole_characters(text, COMMAND_TEXT_MAX - 3), "...");
    return text;
}
