/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the arguments of a training.
 *
 *     python run_clm.py --per_device_train_batch_size 8 --bf16 --torch_dtype bfloat16 \
 *         --gradient_checkpointing
 *
 * says --batch=8, --precision=bf16-true and --checkpointing. The names are those of published
 * programs: transformers' TrainingArguments and its examples (4.x, 5.x), TRL, LLaMA-Factory,
 * Accelerate, Lightning's and timm's train.py. A dash in a name is a low line. Nothing of the text
 * runs.
 */
#include "taskfile/training_arguments.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/array.h"
#include "taskfile/taskfile.h"
#include "taskfile/word_split.h"

enum { VALUE_SIZE = 64, NAME_SIZE = 64 };

enum subject {
    SUBJECT_BATCH,     /* of one process */
    SUBJECT_ANY_BATCH, /* of one process, or of all */
    SUBJECT_OPTIMIZER,
    SUBJECT_WEIGHTS, /* their type */
    SUBJECT_MIXED,   /* autocast's type, or a precision */
    SUBJECT_CHECKPOINTING,
    SUBJECT_SEQUENCE,
    SUBJECT_IMAGE, /* its side */
    SUBJECTS
};

/* `flag`: the value where the argument has none, or a true one; NULL: it needs one. */
static const struct row {
    const char *name;
    enum subject subject;
    const char *flag;
} rows[] = {
    {"per_device_train_batch_size", SUBJECT_BATCH, NULL},
    {"per_gpu_train_batch_size", SUBJECT_BATCH, NULL},
    {"train_batch_size", SUBJECT_ANY_BATCH, NULL},
    {"batch_size", SUBJECT_ANY_BATCH, NULL},
    {"micro_batch_size", SUBJECT_BATCH, NULL},
    {"optim", SUBJECT_OPTIMIZER, NULL},
    {"optimizer", SUBJECT_OPTIMIZER, NULL},
    {"opt", SUBJECT_OPTIMIZER, NULL},
    {"torch_dtype", SUBJECT_WEIGHTS, NULL},
    {"model_dtype", SUBJECT_WEIGHTS, NULL},
    {"dtype", SUBJECT_WEIGHTS, NULL},
    {"pure_bf16", SUBJECT_WEIGHTS, "bfloat16"},
    {"bf16", SUBJECT_MIXED, "bf16"},
    {"fp16", SUBJECT_MIXED, "fp16"},
    {"amp", SUBJECT_MIXED, "amp"},
    {"use_amp", SUBJECT_MIXED, "amp"},
    {"mixed_precision", SUBJECT_MIXED, NULL},
    {"precision", SUBJECT_MIXED, NULL},
    {"gradient_checkpointing", SUBJECT_CHECKPOINTING, "yes"},
    {"grad_checkpointing", SUBJECT_CHECKPOINTING, "yes"},
    {"use_gradient_checkpointing", SUBJECT_CHECKPOINTING, "yes"},
    {"activation_checkpointing", SUBJECT_CHECKPOINTING, "yes"},
    {"max_seq_length", SUBJECT_SEQUENCE, NULL},
    {"max_seq_len", SUBJECT_SEQUENCE, NULL},
    {"max_length", SUBJECT_SEQUENCE, NULL},
    {"model_max_length", SUBJECT_SEQUENCE, NULL},
    {"block_size", SUBJECT_SEQUENCE, NULL},
    {"seq_length", SUBJECT_SEQUENCE, NULL},
    {"seq_len", SUBJECT_SEQUENCE, NULL},
    {"sequence_length", SUBJECT_SEQUENCE, NULL},
    {"cutoff_len", SUBJECT_SEQUENCE, NULL},
    {"img_size", SUBJECT_IMAGE, NULL},
    {"image_size", SUBJECT_IMAGE, NULL},
    {"imgsz", SUBJECT_IMAGE, NULL},
    {"resolution", SUBJECT_IMAGE, NULL},
};

/* What was found; "": nothing. */
struct found {
    char values[SUBJECTS][VALUE_SIZE];
    bool differs[SUBJECTS]; /* two values: it says nothing */
};

static bool is_one_of(const char *text, const char *const *words)
{
    for (size_t i = 0; words[i]; i++)
        if (strcasecmp(text, words[i]) == 0)
            return true;
    return false;
}

static bool is_true(const char *text)
{
    static const char *const words[] = {"true", "1", "yes", "on", NULL};
    return is_one_of(text, words);
}

static bool is_false(const char *text)
{
    static const char *const words[] = {"false", "0", "no", "off", "none", NULL};
    return is_one_of(text, words);
}

static void note_value(struct found *found, enum subject subject, const char *value)
{
    char *known = found->values[subject];
    if (strchr(value, '$') || strlen(value) >= VALUE_SIZE)
        found->differs[subject] = true;
    else if (*known && strcmp(known, value) != 0)
        found->differs[subject] = true;
    else
        snprintf(known, VALUE_SIZE, "%s", value);
}

/* Writes the name of "--batch-size=8" as "batch_size". Returns whether the word has one. */
static bool name_of(const char *word, char ret_name[static NAME_SIZE])
{
    size_t n = strncmp(word, "--", 2) == 0 ? strcspn(word + 2, "=") : 0;
    if (n == 0 || n >= NAME_SIZE)
        return false;
    for (size_t i = 0; i < n; i++)
        ret_name[i] = word[2 + i] == '-' ? '_' : word[2 + i];
    ret_name[n] = '\0';
    return true;
}

/* next: the word behind, or NULL */
static void read_word(const char *word, const char *next, struct found *found)
{
    char name[NAME_SIZE];
    const char *equals = strchr(word, '=');
    if (!name_of(word, name))
        return;
    const char *value = equals ? equals + 1 : next && next[0] != '-' ? next : NULL;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        const struct row *row = &rows[i];
        if (strcmp(row->name, name) != 0)
            continue;
        if (!row->flag && value && !is_false(value))
            note_value(found, row->subject, value);
        else if (row->flag && (!value || !is_false(value)))
            note_value(found, row->subject, row->flag);
    }
}

static void read_words(const char *const *words, struct found *found)
{
    for (size_t i = 0; words && words[i]; i++)
        read_word(words[i], words[i + 1], found);
}

/* A line that a backslash continues is one with the next. Returns where the next one begins. */
static char *end_line(char *line)
{
    for (char *end = strchr(line, '\n'); end; end = strchr(end, '\n')) {
        if (end == line || end[-1] != '\\') {
            *end = '\0';
            return end + 1;
        }
        end[-1] = *end = ' ';
    }
    return line + strlen(line);
}

/* lines: are changed */
static int read_lines(char *lines, struct fault *fault, struct found *found)
{
    for (char *line = lines, *next; *line; line = next) {
        struct fault unused = {0};
        const char **words;
        next = end_line(line);
        if (line[strspn(line, " \t")] == '#')
            continue;
        int r = word_split((struct span){line, strlen(line)}, &unused, &words);
        if (r == -ENOMEM)
            return fault_set(fault, ENOMEM, "out of memory");
        if (r >= 0) { /* a quote that goes on in the next line is no training's argument */
            read_words(words, found);
            free(words);
        }
    }
    return 0;
}

static int read_script(const char *script, struct fault *fault, struct found *found)
{
    char *copy = strdup(script);
    if (!copy)
        return fault_set(fault, ENOMEM, "out of memory");
    int r = read_lines(copy, fault, found);
    free(copy);
    return r;
}

/* ---- what was found, as options ---- */

static bool is_half_type(const char *type, const char *name, const char *other)
{
    return strcasecmp(type, name) == 0 || strcasecmp(type, other) == 0;
}

/* The type of the weights decides: autocast over weights in 16 bit changes little. */
static const char *precision_of(const struct found *found)
{
    const char *weights = found->values[SUBJECT_WEIGHTS], *mixed = found->values[SUBJECT_MIXED];
    if (found->differs[SUBJECT_WEIGHTS] || found->differs[SUBJECT_MIXED])
        return "";
    if (is_half_type(weights, "bfloat16", "bf16"))
        return "bf16-true";
    if (is_half_type(weights, "float16", "fp16"))
        return "fp16-true";
    if (!*mixed && is_half_type(weights, "float32", "fp32"))
        return "fp32";
    return strcasecmp(mixed, "16") == 0 ? "fp16" : is_true(mixed) ? "" : mixed;
}

/* "adamw_torch_fused" is AdamW: the optimizer's name is what stands before the first low line. */
static const char *optimizer_of(const struct found *found, char ret_name[static VALUE_SIZE])
{
    const char *value = found->values[SUBJECT_OPTIMIZER];
    snprintf(ret_name, VALUE_SIZE, "%.*s", (int)strcspn(value, "_"), value);
    return option_is_choice(&task_options[TASK_OPTIMIZER], ret_name) ? ret_name : value;
}

static const char *image_of(const struct found *found, char ret_shape[static VALUE_SIZE])
{
    const char *side = found->values[SUBJECT_IMAGE];
    bool is_number = *side && strspn(side, "0123456789") == strlen(side) && strlen(side) < 8;
    *ret_shape = '\0';
    if (is_number)
        snprintf(ret_shape, VALUE_SIZE, "3x%.8sx%.8s", side, side);
    return ret_shape;
}

static void append_option(char *taken, size_t size, const char *name, const char *value)
{
    size_t n = strlen(taken);
    snprintf(taken + n, size - n, "%s--%s%s%s", n ? " " : "", name, value ? "=" : "",
        value ? value : "");
}

/* A value that the option does not take says nothing. */
static int set_option(enum task_option option, const char *text, struct option_value *values,
    char *taken, size_t size)
{
    const struct option_spec *spec = &task_options[option];
    struct fault unused = {0};
    if (!*text || values[option].set)
        return 0;
    if (spec->choices && spec->kind == OPTION_CHOICE && !option_is_choice(spec, text))
        return 0;
    int r = option_set_text(spec, spec->name, text, &values[option], &unused);
    if (r == 0)
        append_option(taken, size, spec->name, spec->kind == OPTION_FLAG ? NULL : text);
    return r == -ENOMEM ? r : 0;
}

int training_arguments_apply(const char *script, const char *const *arguments,
    struct option_value *values, struct fault *fault, char *ret_taken, size_t size)
{
    struct found found = {0};
    char optimizer[VALUE_SIZE], image[VALUE_SIZE];
    ret_taken[0] = '\0';
    int r = script ? read_script(script, fault, &found) : 0;
    if (r < 0)
        return r;
    read_words(arguments, &found);
    bool is_alone = !values[TASK_GPUS].set || values[TASK_GPUS].number <= 1;
    const struct {
        enum task_option option;
        enum subject subject;
        const char *text;
    } options[] = {
        {TASK_BATCH, SUBJECT_BATCH, found.values[SUBJECT_BATCH]},
        {TASK_BATCH, SUBJECT_ANY_BATCH, is_alone ? found.values[SUBJECT_ANY_BATCH] : ""},
        {TASK_OPTIMIZER, SUBJECT_OPTIMIZER, optimizer_of(&found, optimizer)},
        {TASK_PRECISION, SUBJECT_MIXED, precision_of(&found)},
        {TASK_CHECKPOINTING, SUBJECT_CHECKPOINTING, found.values[SUBJECT_CHECKPOINTING]},
        {TASK_SEQ, SUBJECT_SEQUENCE, found.values[SUBJECT_SEQUENCE]},
        {TASK_INPUT, SUBJECT_IMAGE, image_of(&found, image)},
    };
    for (size_t i = 0; r == 0 && i < ARRAY_SIZE(options); i++)
        if (!found.differs[options[i].subject])
            r = set_option(options[i].option, options[i].text, values, ret_taken, size);
    return r < 0 ? fault_set(fault, ENOMEM, "out of memory") : 0;
}
