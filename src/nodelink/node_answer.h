/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the controller answers an agent. It names the node, so that an answer to one node cannot be
 * repeated to another.
 *
 *     {"v": 1, "node": "n1", "sequence": 81, "refused": "", "pins": [{"job": 12, "mps": true,
 *      "elsewhere": true}, {"job": 15, "task": 3, "mps": false, "elsewhere": true}],
 *      "key": "5f1c...", "takes_changes": true, "wants_whole": true, "out": [17]}
 */
#ifndef COLLOC_NODELINK_NODE_ANSWER_H
#define COLLOC_NODELINK_NODE_ANSWER_H

#include "nodelink/node_report.h"
#include "nodelink/report_session.h"

enum { NODE_PINS_MAX = 256, ANSWER_SIZE_MAX = 32 * 1024 };

/* A job that the controller is about to pin to GPUs of the node. A task of an array gets its own
 * number from Slurm after that: it is named by the array and its index. */
struct node_pin {
    uint32_t job;             /* Slurm's id; of a task of an array, the array's */
    bool is_mps;              /* it shares its GPUs by MPS */
    bool may_share_elsewhere; /* it may share GPUs of other nodes, of which this one sees nothing */
    bool is_of_array;
    uint32_t array_task; /* the index */
};

struct node_answer {
    char node[NODE_NAME_SIZE];
    int64_t sequence;             /* of the last report that was accepted; 0: none yet */
    char refused[NODE_TEXT_SIZE]; /* why the report was refused; "": it was accepted */
    char key[SESSION_KEY_SIZE];   /* that signs the next reports (report_session.h); "": none */
    bool takes_changes;           /* further reports may be changes (node_changes.h) */
    bool wants_whole;             /* changes did not fit: the next report is to be a whole one */
    struct node_pin pins[NODE_PINS_MAX];
    size_t n_pins;

    /* All jobs of the node that are to be off their GPUs. The order holds for a time (lease) and is
     * repeated, so that no job stays out for a controller that has ended. */
    bool has_orders;
    uint32_t out[NODE_JOBS_MAX];
    size_t n_out;
};

/*
 * Writes an answer as JSON.
 *
 * ret_text: the caller frees it
 *
 * Returns 0 or -ENOMEM.
 */
int node_answer_encode(const struct node_answer *answer, char **ret_text);

/* Reads an answer from any bytes. Returns 0; or -EPROTO, -EINVAL, -EMSGSIZE with a fault. */
int node_answer_decode(
    const char *text, size_t size, struct fault *fault, struct node_answer *ret_answer);

#endif
