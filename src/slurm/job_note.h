/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The data about a job that colloc-slurm keeps from one of its runs to the next: a line in the
 * job's admin_comment.
 *
 *     colloc want=2 attempt=1 restart=0 ooms=0 state=pinned node=n1 gpus=0,3 shards=12 smact=20
 *
 * A job over several nodes has `node=n1,n4`, and the GPUs are those of each. Then `want` is the
 * number on each node; the guard writes `total` where the user requested a number for all nodes
 * together.
 *
 * An administrator may have edited the note: it is parsed with care, and Slurm's own fields
 * override it. `want` may stand alone: the guard in slurmctld writes it when it takes a request for
 * GPUs out of a submission. `bound=1` follows if the user requested certain nodes: a pin's node
 * replaces these in Slurm.
 */
#ifndef COLLOC_SLURM_JOB_NOTE_H
#define COLLOC_SLURM_JOB_NOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/text.h"

enum note_state {
    NOTE_WAITING,    /* not placed */
    NOTE_PINNED,     /* to `nodes` and `gpus`, for the run with this number of restarts */
    NOTE_RECOVERING, /* it ran out of GPU memory there, and is run again alone */
};

struct job_note {
    int want;  /* GPUs of each node; 0: not given */
    int total; /* GPUs of all its nodes; 0: not given */
    int attempt;
    uint32_t restart; /* Slurm's count of restarts that the pin is for */
    int ooms;         /* ends by GPU memory */
    enum note_state state;
    struct span nodes; /* comma-separated */
    uint64_t gpus;     /* a bit for each index */
    int64_t shards;    /* of each; its memory follows from it */
    int smact_percent; /* that the job is expected to use of each; -1: not known */
    bool is_bound;     /* the user requested certain nodes (-w), which include `nodes` */
};

/*
 * Reads a note from any text.
 *
 * text:     may be NULL; the note points into it
 * ret_note: when there is none, zero with smact_percent -1
 *
 * Returns true for a note; false when the text is not one, or has a member that cannot be right.
 */
bool job_note_parse(const char *text, struct job_note *ret_note);

/* Writes the note. Returns `text`. */
const char *job_note_format(const struct job_note *note, char *text, size_t size);

#endif
