/* SPDX-License-Identifier: Apache-2.0 */
/* What the pages of the order's processes say (preload/page.h), and their gates: of all processes
 * in the record together. */
#include <math.h>

#include "daemon/suspension/suspension_state.h"

enum preload_gate_answer suspension_set_gate(struct suspension *s, bool is_closed)
{
    enum preload_gate_answer worst = PRELOAD_GATE_CLEAR;
    if (!is_closed) /* also of processes that came while the task was suspended */
        return preload_manager_set_gate(
            s->parts.preload, s->orders->task, (struct process_id){0}, false);
    for (size_t i = 0; i < s->record.n_processes; i++) {
        enum preload_gate_answer gate = preload_manager_set_gate(s->parts.preload, s->orders->task,
            group_process_id(&s->record.processes[i]), is_closed);
        worst = gate > worst ? gate : worst;
    }
    return worst == PRELOAD_GATE_AWAY && s->is_without_library ? PRELOAD_GATE_NONE : worst;
}

uint64_t suspension_carried_bytes(const struct suspension *s, size_t i)
{
    const struct group_process *process = &s->record.processes[i];
    uint64_t listed_bytes = 0;
    for (size_t k = 0; k < process->n_memory; k++)
        listed_bytes += (uint64_t)process->memory[k].bytes;
    uint64_t claimed_bytes = preload_manager_carried_bytes(
        s->parts.preload, s->orders->task, group_process_id(process));
    return claimed_bytes < listed_bytes ? claimed_bytes : listed_bytes;
}

uint64_t suspension_room_bytes(const struct suspension *s)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < s->record.n_processes && s->parts.config->carrier; i++)
        bytes += preload_manager_room_bytes(
            s->parts.preload, s->orders->task, group_process_id(&s->record.processes[i]));
    return bytes;
}

/* Only what its pages say is there. */
struct reading suspension_near_bytes(const struct suspension *s)
{
    double bytes = 0;
    for (size_t i = 0; i < s->record.n_processes; i++) {
        uint64_t task = s->orders->task;
        struct process_id id = group_process_id(&s->record.processes[i]);
        if (preload_manager_lies(s->parts.preload, task, id) == PRELOAD_PLACE_NEIGHBOUR)
            bytes += (double)suspension_carried_bytes(s, i);
    }
    return bytes >= 1 ? reading_of(bytes) : READING_NONE;
}

/* At least one byte: nothing would mean that they have left their GPU. */
struct reading suspension_context_bytes(const struct suspension *s)
{
    struct reading bytes = suspension_record_bytes(&s->record);
    if (!bytes.valid)
        return reading_of((double)(SUSPENSION_CONTEXT_BYTES * (int64_t)s->record.n_processes));
    for (size_t i = 0; i < s->record.n_processes; i++)
        bytes.value -= (double)suspension_carried_bytes(s, i);
    return reading_of(fmax(1, bytes.value));
}

bool suspension_are_ranks(const struct suspension *s)
{
    bool are_ranks = false;
    for (size_t i = 0; i < s->record.n_processes; i++)
        are_ranks |= !preload_manager_has_no_ranks(
            s->parts.preload, s->orders->task, group_process_id(&s->record.processes[i]));
    return are_ranks && s->record.n_processes > 1;
}
