/* SPDX-License-Identifier: Apache-2.0 */
/* radT's listeners: what to record beside the training, by a row of its tables. */
#ifndef COLLOC_BENCH_RADT_LISTENERS_H
#define COLLOC_BENCH_RADT_LISTENERS_H

#include <stdbool.h>

#include "exec/profiler.h"

enum listener_answer {
    LISTENER_UNKNOWN = 1, /* radT has none of that name either */
    LISTENER_REFUSED,     /* nothing here records the same */
    LISTENER_SECOND,      /* a second profiler: a program runs under one */
};

/* What a list asks for, beyond what each group's samples have. */
struct listeners {
    enum profiler profiler; /* or PROFILER_NONE */
    bool host_memory;       /* of the whole host */
};

/*
 * Parses a list such as "smi+top+nsys", in letters of any case. What smi, dcgmi, top, ps and iostat
 * record is in each group's samples anyway.
 *
 * ret_name: where the name of the listener starts that the answer is about
 * ret_size: the length of that name
 *
 * Returns 0 or a listener_answer.
 */
int listeners_parse(
    const char *text, struct listeners *ret_listeners, const char **ret_name, int *ret_size);

/* Returns a sentence for an answer: "radT has no such listener". */
const char *listener_answer_text(int answer);

#endif
