/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A log says what a program saw; the daemon knows more. Example: "Tried to allocate 120.00 GiB" is a
 * lack of memory for PyTorch. On a server whose largest GPU has 40 GiB it is a wrong batch size or
 * shape: a second attempt alone on a GPU would fail in the same way.
 *
 * The number is searched behind the words that frameworks put before it (the files are named in
 * exec/sentences.def); its unit decides what it is, so a shape or an ordinal is never taken for it.
 */
#include "exec/failure_facts.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/units.h"
#include "exec/log_line.h"
#include "exec/pattern.h"

/* A number is believed up to this. Chosen: 1 PiB, more than any GPU has; it cannot overflow. */
#define BELIEVED_BYTES (1024.0 * 1024 * GIB)

/* Words before the amount asked for, in lower case. */
static const char *const before_asked[] = {
    "tried to allocate ",               /* PyTorch */
    "trying to allocate ",              /* TensorFlow, XLA */
    "failed to allocate request for ",  /* XLA */
    "out of memory allocating ",        /* CuPy */
    "requested memory: ",               /* XGBoost */
    "cannot allocate ",                 /* PaddlePaddle */
    "requested buffer of size ",        /* ONNX Runtime */
    "requested size was ",              /* TensorRT */
    "desired gpu memory utilization (", /* vLLM: "(0.9, 35.01 GiB)" */
    "requested ",                       /* CatBoost, in MB; PyTorch with cudaMallocAsync */
};

/* Units behind a number. PyTorch's GiB and XLA's "GiB" are binary; so are the "GB" and "MB" of
 * PaddlePaddle (string::HumanReadableSize) and CatBoost. */
static double unit_bytes(const char *unit, double bare)
{
    static const struct {
        const char *name;
        double bytes;
    } units[] = {{"gib", GIB}, {"gb", GIB}, {"mib", MIB}, {"mb", MIB}, {"kib", KIB}, {"kb", KIB},
        {"tib", 1024.0 * GIB}, {"bytes", 1}, {"byte", 1}};
    for (size_t i = 0; i < ARRAY_SIZE(units); i++)
        if (strncmp(unit, units[i].name, strlen(units[i].name)) == 0)
            return units[i].bytes;
    return bare;
}

/* Reads "20.00 GiB", ": 20.00 GiB", "8,000,000,000 bytes" or "878511352". `bare`: bytes of a number
 * without a unit. Returns bytes; 0: it is none of these. */
static double read_amount(const char *at, double bare)
{
    char digits[40];
    size_t n = 0;
    at += strspn(at, " :");
    for (; (isdigit((unsigned char)*at) || *at == '.' || *at == ',') && n + 1 < sizeof digits; at++)
        if (*at != ',')
            digits[n++] = *at;
    digits[n] = '\0';
    double amount = n ? strtod(digits, NULL) : 0;
    double bytes = amount * unit_bytes(at + strspn(at, " "), bare);
    return bytes <= BELIEVED_BYTES ? bytes : BELIEVED_BYTES;
}

static double amount_behind(const char *line, const char *words)
{
    const char *at = strstr(line, words);
    if (!at)
        return 0;
    at += strlen(words);
    const char *second = strstr(words, "utilization (") ? strchr(at, ',') : NULL;
    double bare = strcmp(words, "requested ") == 0 ? MIB : 1;
    return second ? read_amount(second + 1, 0) : read_amount(at, bare);
}

/* TensorFlow's names of types, and the bytes of an element; any other counts as one byte. */
static double element_bytes(const char *type)
{
    static const struct {
        const char *name;
        double bytes;
    } types[] = {{"float", 4}, {"half", 2}, {"bfloat16", 2}, {"double", 8}, {"int64", 8},
        {"int32", 4}, {"complex64", 8}};
    for (size_t i = 0; i < ARRAY_SIZE(types); i++)
        if (strncmp(type, types[i].name, strlen(types[i].name)) == 0)
            return types[i].bytes;
    return 1;
}

/* "OOM when allocating tensor with shape[128,256,56,56] and type float". */
static double tensor_bytes(const char *line)
{
    static const char before[] = "allocating tensor with shape[", between[] = "] and type ";
    const char *at = strstr(line, before), *type = strstr(line, between);
    double elements = 1;
    if (!at || !type || type < at)
        return 0;
    for (at += strlen(before); at < type; at += *at == ',') {
        char *end;
        elements *= strtod(at, &end);
        if (end == at || end > type)
            return 0;
        at = end;
    }
    double bytes = elements * element_bytes(type + strlen(between));
    return bytes >= 0 && bytes <= BELIEVED_BYTES ? bytes : BELIEVED_BYTES;
}

/* "Of the allocated memory 38.00 GiB is allocated by PyTorch": tensors that the process holds. Its
 * cache is not counted, since PyTorch gives that back before it fails. */
static double held_bytes(const char *line)
{
    double held = amount_behind(line, "of the allocated memory ");
    const char *end = strstr(line, " already allocated"), *at = end;
    while (at && at > line && at[-1] != ';' && at[-1] != '(')
        at--;
    return end && held == 0 ? read_amount(at, 0) : held;
}

int64_t failure_asked_bytes(const char *evidence, bool with_held)
{
    char line[EVIDENCE_MAX];
    snprintf(line, sizeof line, "%s", evidence);
    pattern_lower(line, line);
    double asked = tensor_bytes(line);
    for (size_t i = 0; i < ARRAY_SIZE(before_asked) && asked == 0; i++)
        asked = amount_behind(line, before_asked[i]);
    return asked > 0 ? (int64_t)(asked + (with_held ? held_bytes(line) : 0)) : 0;
}

static const struct pattern *find_sentence(const struct failure *failure)
{
    char line[EVIDENCE_MAX];
    pattern_lower(failure->evidence, line);
    return pattern_find(line, true);
}

bool failure_is_hardware(const struct failure *failure)
{
    const struct pattern *sentence = find_sentence(failure);
    return failure->class == FAILURE_GPU_FAULT && sentence && sentence->kind == LOG_CAUSE_HARDWARE;
}

static bool is_of_library(const struct failure *failure)
{
    const struct pattern *sentence = find_sentence(failure);
    return failure->class == FAILURE_PROGRAM && sentence && sentence->kind == LOG_CAUSE_LIBRARY;
}

static void say_too_much(struct failure *failure, int64_t largest_bytes)
{
    char text[EVIDENCE_MAX + 96];
    snprintf(text, sizeof text, "asks for more than any GPU here has (%.1f GiB): %s",
        (double)largest_bytes / GIB, failure->evidence);
    log_line_clean(span_of(text), failure->evidence);
    failure->class = FAILURE_PROGRAM;
}

void failure_apply_facts(struct failure *failure, const struct failure_facts *facts)
{
    if (facts->gpu_was_full && is_of_library(failure))
        failure->class = FAILURE_GPU_OOM;
    else if (failure->class == FAILURE_MPS && !facts->by_mps)
        failure->class = FAILURE_PROGRAM;
    else if (failure->class == FAILURE_GPU_OOM && facts->largest_gpu_bytes > 0 &&
             failure_asked_bytes(failure->evidence, facts->was_shared) > facts->largest_gpu_bytes)
        say_too_much(failure, facts->largest_gpu_bytes);
}
