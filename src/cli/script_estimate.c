/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a training script without a GPU, to see what it would allocate. The Python that the command
 * starts finds colloc_script/inject first on PYTHONPATH. Its sitecustomize.py waits for PyTorch and
 * leaves one of two files in the run's folder: `result`, an export; or `failure`, a sentence. The
 * sandbox ends when the first is there.
 */
#include "cli/script_estimate.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/support.h"
#include "gpu/program.h"
#include "model/export.h"
#include "sandbox/sandbox.h"

enum { REASON_MOST = 4096, SETTING_SIZE = 3 * PATH_MAX, WORDS_MOST = 4096 };

#define LIMIT_USUAL_US (300 * SECOND_US) /* chosen: five times the time of the slowest scripts */
#define MEMORY_MOST    (16 * GIB)        /* chosen: data and imports, while tensors are fake */

/* From when the progress is shown: on a terminal, where the line is removed in the end; and
 * elsewhere, where it is printed once. Chosen: most scripts are followed in less. */
#define SHOWN_AFTER_US   (3 * SECOND_US)
#define PRINTED_AFTER_US (10 * SECOND_US)

struct folder {
    char path[PATH_MAX], result[PATH_MAX], failure[PATH_MAX], script[PATH_MAX], progress[PATH_MAX];
};

/* Variables beside the user's own: no GPU, no network, no windows, no compilers that would read
 * tensors. */
static const char *const settings[] = {
    "CUDA_VISIBLE_DEVICES=",
    "PYTORCH_JIT=0",
    "TORCHDYNAMO_DISABLE=1",
    "PYTHONUNBUFFERED=1",
    "HF_HUB_OFFLINE=1",
    "HF_DATASETS_OFFLINE=1",
    "TRANSFORMERS_OFFLINE=1",
    "TOKENIZERS_PARALLELISM=false",
    "WANDB_MODE=disabled",
    "MPLBACKEND=Agg",
};

/* ---- the folder ---- */

/*
 * The run's own folder, for its user only:
 *
 *     result     the export, when the second optimizer step was seen
 *     failure    or a sentence why there is none
 *     progress   what was seen so far, renewed once a second
 *     script     a copy of the script, where a task file has one
 *     view       what the script sees in place of the file system's writable parts
 */
static int make_folder(struct folder *folder, struct fault *fault)
{
    const char *parent = getenv("TMPDIR");
    char path[PATH_MAX];
    if (!parent || *parent != '/')
        parent = "/tmp";
    if (snprintf(path, sizeof path, "%s/colloc-script-XXXXXX", parent) > PATH_MAX / 2 ||
        !mkdtemp(path) || !realpath(path, folder->path))
        return fault_set(
            fault, errno, "cannot make a folder in %.200s: %s", parent, strerror(errno));
    snprintf(folder->result, PATH_MAX, "%.*s/result", PATH_MAX / 2, folder->path);
    snprintf(folder->failure, PATH_MAX, "%.*s/failure", PATH_MAX / 2, folder->path);
    snprintf(folder->progress, PATH_MAX, "%.*s/progress", PATH_MAX / 2, folder->path);
    snprintf(folder->script, PATH_MAX, "%.*s/script", PATH_MAX / 2, folder->path);
    snprintf(path, sizeof path, "%.*s/view", PATH_MAX / 2, folder->path);
    return mkdir(path, 0700) == 0
               ? 0
               : fault_set(fault, errno, "cannot make %.200s: %s", path, strerror(errno));
}

/* ---- the command ---- */

static bool is_python(const char *word)
{
    return strncmp(path_name(word), "python", strlen("python")) == 0;
}

static int write_script(const char *path, const char *text, struct fault *fault)
{
    int r = file_write_atomic(path, text, strlen(text), 0700);
    return r < 0 ? fault_set(fault, -r, "cannot write %.200s: %s", path, strerror(-r)) : 0;
}

/* The words of the program: the script, or the interpreter, in front. */
static int make_words(const struct script_command *command, const struct folder *folder,
    const char *ret_words[static WORDS_MOST + 2], struct fault *fault)
{
    const char *const *words = command->words;
    size_t n = 0;
    if (command->interpreter && (command->script || !words[0] || !is_python(words[0])))
        return fault_set(fault, EINVAL,
            "--python needs a command that starts with python: colloc estimate "
            "--python=PROGRAM -- python train.py");
    if (command->script) {
        ret_words[n++] = folder->script;
    } else if (command->interpreter) {
        ret_words[n++] = command->interpreter;
        words++;
    }
    for (; *words; words++) {
        if (n > WORDS_MOST)
            return fault_set(fault, E2BIG, "more than %d arguments", WORDS_MOST);
        ret_words[n++] = *words;
    }
    ret_words[n] = NULL;
    return command->script ? write_script(folder->script, command->script, fault) : 0;
}

static int check_program(const char *program, struct fault *fault)
{
    char path[PATH_MAX];
    return program_find(program, path, sizeof path)
               ? 0
               : fault_set(fault, ENOENT, "%.200s: no such program", program);
}

/* The modules come before the user's own PYTHONPATH, which stays. */
static int make_python_path(char setting[static SETTING_SIZE], struct fault *fault)
{
    char modules[PATH_MAX];
    const char *own = getenv("PYTHONPATH");
    if (support_find("python", modules, sizeof modules) < 0)
        return fault_set(
            fault, ENOENT, "cannot find colloc's Python programs where they were installed");
    int n = snprintf(setting, SETTING_SIZE, "PYTHONPATH=%s/colloc_script/inject:%s%s%s", modules,
        modules, own && *own ? ":" : "", own ? own : "");
    return n < SETTING_SIZE ? 0 : fault_set(fault, E2BIG, "PYTHONPATH is too long");
}

/* ---- the progress ---- */

struct progress {
    const struct folder *folder;
    int64_t shown_us; /* of the run, at the last line; 0: none yet */
    bool is_terminal;
};

/* Reads what was seen so far: one line. */
static void read_progress(const struct folder *folder, char *line, size_t size)
{
    char *text = NULL;
    size_t n = 0;
    snprintf(line, size, "PyTorch is not imported yet");
    if (file_read(folder->progress, REASON_MOST, NULL, &text, &n) == 0 && n > 0)
        span_copy(span_trim((struct span){text, n}), line, size);
    free(text);
    text_make_printable(line, '?');
}

static void show_progress(void *context, int64_t elapsed_us)
{
    struct progress *progress = context;
    char line[200];
    bool is_due = progress->is_terminal
                      ? elapsed_us - progress->shown_us >= SECOND_US && elapsed_us >= SHOWN_AFTER_US
                      : !progress->shown_us && elapsed_us >= PRINTED_AFTER_US;
    if (!is_due)
        return;
    progress->shown_us = elapsed_us;
    read_progress(progress->folder, line, sizeof line);
    fprintf(stderr, "%scolloc: following the script for %" PRId64 " s: %s%s",
        progress->is_terminal ? "\r\033[K" : "", elapsed_us / SECOND_US, line,
        progress->is_terminal ? "" : "\n");
}

static void end_progress(const struct progress *progress)
{
    if (progress->is_terminal && progress->shown_us)
        fputs("\r\033[K", stderr);
}

/* ---- the end ---- */

/* Size of the buffer for the last line of the output. */
static struct span last_line(const char *text)
{
    struct span line = {"", 0}, rest = span_trim(span_of(text)), next;
    while (span_next_line(&rest, &next))
        line = next;
    return span_trim(line);
}

static int explain_end(
    const struct sandbox_end *end, const struct folder *folder, struct fault *fault)
{
    char *reason = NULL;
    size_t size = 0;
    struct span last = last_line(end->tail);
    if (file_read(folder->failure, REASON_MOST, NULL, &reason, &size) == 0 && size > 0)
        fault_set(fault, EIO, "%.*s", (int)span_trim((struct span){reason, size}).size, reason);
    else
        fault_set(fault, EIO, "it ended with status %d, and no Python in it used PyTorch%s%.*s",
            end->status, last.size ? "; its last line: " : "",
            (int)(last.size < 200 ? last.size : 200), last.at);
    free(reason);
    return SCRIPT_NOT_FOLLOWED;
}

static int explain_limit(const struct sandbox_program *program, const struct sandbox_end *end,
    const struct folder *folder, struct fault *fault)
{
    char size[32], seen[200];
    read_progress(folder, seen, sizeof seen);
    if (end->how == SANDBOX_TIME)
        fault_set(fault, ETIMEDOUT, "it did not reach its second optimizer step within %.4g s: %s",
            (double)program->limit_us / (double)SECOND_US, seen);
    else
        fault_set(fault, ENOMEM, "it took more than %s of main memory",
            format_size(program->memory_limit_bytes, size, sizeof size));
    return SCRIPT_NOT_FOLLOWED;
}

static int read_result(
    const struct folder *folder, struct fault *fault, char **ret_text, size_t *ret_size)
{
    int r = file_read(folder->result, EXPORT_SIZE_MAX, fault, ret_text, ret_size);
    return r < 0 ? SCRIPT_NOT_FOLLOWED : 0;
}

static void warn_of_gaps(unsigned gaps)
{
    if (!gaps)
        return;
    fprintf(stderr,
        "colloc: warning: the script ran unprotected, since this machine allows no namespaces:%s%s%s\n",
        gaps & SANDBOX_FILES ? " what it wrote or deleted stays;" : "",
        gaps & SANDBOX_NETWORK ? " it could use the network;" : "",
        gaps & SANDBOX_PROCESSES ? " it saw your other processes" : "");
}

/* Everything is checked before the sandbox starts: a misspelt program is an ordinary mistake, not a
 * training that could not be followed. */
static int run_command(const struct script_command *command, const struct folder *folder,
    struct fault *fault, char **ret_text, size_t *ret_size)
{
    const char *words[WORDS_MOST + 2], *all[ARRAY_SIZE(settings) + 3] = {0};
    char python_path[SETTING_SIZE], run_folder[PATH_MAX + 32];
    int r = make_words(command, folder, words, fault);
    if (r == 0)
        r = check_program(words[0], fault);
    if (r == 0)
        r = make_python_path(python_path, fault);
    if (r < 0)
        return r;
    snprintf(run_folder, sizeof run_folder, "COLLOC_SCRIPT_FOLDER=%s", folder->path);
    memcpy(all, settings, sizeof settings);
    all[ARRAY_SIZE(settings)] = python_path;
    all[ARRAY_SIZE(settings) + 1] = run_folder;
    struct progress progress = {.folder = folder, .is_terminal = isatty(STDERR_FILENO)};
    const struct sandbox_program program = {.words = words,
        .settings = all,
        .folder = folder->path,
        .result = folder->result,
        .limit_us = command->limit_us ? command->limit_us : LIMIT_USUAL_US,
        .memory_limit_bytes = MEMORY_MOST,
        .on_wait = show_progress,
        .context = &progress};
    struct sandbox_end end;
    r = sandbox_run(&program, fault, &end);
    end_progress(&progress);
    if (r < 0)
        return r;
    warn_of_gaps(end.gaps);
    if (end.how == SANDBOX_RESULT)
        return read_result(folder, fault, ret_text, ret_size);
    return end.how == SANDBOX_ENDED ? explain_end(&end, folder, fault)
                                    : explain_limit(&program, &end, folder, fault);
}

int script_export(
    const struct script_command *command, struct fault *fault, char **ret_text, size_t *ret_size)
{
    struct folder folder;
    int r = make_folder(&folder, fault);
    if (r == 0)
        r = run_command(command, &folder, fault, ret_text, ret_size);
    file_remove_folder(folder.path);
    return r;
}

json_t *script_seen(const char *text, size_t size)
{
    json_t *root = json_loadb(text, size, 0, NULL);
    json_t *seen = json_incref(json_object_get(root, "seen"));
    json_decref(root);
    if (json_is_object(seen))
        return seen;
    json_decref(seen);
    return NULL;
}
