/* SPDX-License-Identifier: Apache-2.0 */
/* Writes and reads the record of a suspended task, by which a new daemon finds its processes. It
 * has lines of words; the reader refuses everything that the writer does not write. */
#include "checkpoint/suspension_record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/span_parts.h"
#include "base/units.h"

char *suspension_record_write(const struct suspension_record *record)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    fprintf(out, "attempt %d\nnumber %d\nphase %s\n", record->attempt, record->number,
        record->is_resuming ? "resuming" : "suspending");
    if (record->is_carried)
        fputs("carried\n", out);
    if (record->are_clients)
        fputs("clients\n", out);
    if (record->memory_max_bytes)
        fprintf(out, "memory-max %lld\n", (long long)record->memory_max_bytes);
    for (size_t i = 0; i < record->n_gpus; i++)
        fprintf(out, "gpu %s\n", record->gpus[i].uuid);
    for (size_t i = 0; i < record->n_processes; i++) {
        const struct group_process *process = &record->processes[i];
        fprintf(out, "process %d %llu\n", (int)process->pid, (unsigned long long)process->born);
        for (size_t k = 0; k < process->n_memory; k++)
            fprintf(out, "memory %s %lld\n", process->memory[k].gpu,
                (long long)process->memory[k].bytes);
    }
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

/* ---- reading ---- */

enum { WORDS_MAX = 3 };

struct words {
    struct span word[WORDS_MAX];
    size_t count;
};

static int split_words(struct span line, struct words *ret_words)
{
    ret_words->count = 0;
    while (line.size) {
        struct span word = span_take_until(&line, ' ');
        if (ret_words->count == WORDS_MAX || !word.size)
            return -EINVAL;
        ret_words->word[ret_words->count++] = word;
    }
    return ret_words->count ? 0 : -EINVAL;
}

static bool is_line(const struct words *words, const char *name, size_t count)
{
    return span_is(words->word[0], name) && words->count == count;
}

static int read_number(struct span word, int64_t min, int64_t max, int64_t *ret)
{
    char text[24];
    if (memchr(word.at, '\0', word.size) || !span_copy(word, text, sizeof text))
        return -EINVAL;
    return parse_int64(text, min, max, ret) < 0 ? -EINVAL : 0;
}

static int read_gpu(struct span word, char *ret_gpu)
{
    return gpu_uuid_is_valid(word) && span_copy(word, ret_gpu, GPU_UUID_SIZE) ? 0 : -EINVAL;
}

static int read_process(const struct words *words, struct suspension_record *record)
{
    int64_t pid, born;
    if (record->n_processes == GROUP_PROCESSES_MAX ||
        read_number(words->word[1], 1, INT32_MAX, &pid) < 0 ||
        read_number(words->word[2], 0, INT64_MAX, &born) < 0)
        return -EINVAL;
    record->processes[record->n_processes++] = (struct group_process){
        .pid = (pid_t)pid, .born = (uint64_t)born};
    return 0;
}

static int read_memory(const struct words *words, struct suspension_record *record)
{
    struct group_process *process = record->n_processes
                                        ? &record->processes[record->n_processes - 1]
                                        : NULL;
    if (!process || process->n_memory == GROUP_GPUS_MAX)
        return -EINVAL;
    struct group_memory *memory = &process->memory[process->n_memory++];
    int r = read_gpu(words->word[1], memory->gpu);
    return r < 0 ? r : read_number(words->word[2], 0, INT64_MAX, &memory->bytes);
}

static int read_phase(struct span word, bool *ret_is_resuming)
{
    *ret_is_resuming = span_is(word, "resuming");
    return *ret_is_resuming || span_is(word, "suspending") ? 0 : -EINVAL;
}

static int read_line(struct span line, struct suspension_record *record)
{
    struct words words;
    int64_t number;
    int r = split_words(line, &words);
    if (r < 0)
        return r;
    if (is_line(&words, "attempt", 2)) {
        r = read_number(words.word[1], 1, INT32_MAX, &number);
        record->attempt = r == 0 ? (int)number : 0;
        return r;
    }
    if (is_line(&words, "number", 2)) {
        r = read_number(words.word[1], 0, INT32_MAX, &number);
        record->number = r == 0 ? (int)number : 0;
        return r;
    }
    if (is_line(&words, "phase", 2))
        return read_phase(words.word[1], &record->is_resuming);
    if (is_line(&words, "carried", 1)) {
        record->is_carried = true;
        return 0;
    }
    if (is_line(&words, "clients", 1)) {
        record->are_clients = true;
        return 0;
    }
    if (is_line(&words, "memory-max", 2))
        return read_number(words.word[1], 1, INT64_MAX / 4, &record->memory_max_bytes);
    if (is_line(&words, "gpu", 2))
        return record->n_gpus == GROUP_GPUS_MAX
                   ? -EINVAL
                   : read_gpu(words.word[1], record->gpus[record->n_gpus++].uuid);
    if (is_line(&words, "process", 3))
        return read_process(&words, record);
    return is_line(&words, "memory", 3) ? read_memory(&words, record) : -EINVAL;
}

int suspension_record_read(struct span text, struct suspension_record *ret_record)
{
    struct span line;
    *ret_record = (struct suspension_record){0};
    while (span_next_line(&text, &line))
        if (read_line(line, ret_record) < 0)
            return -EINVAL;
    bool is_whole = ret_record->attempt && ret_record->n_gpus && ret_record->n_processes;
    return is_whole ? 0 : -EINVAL;
}

/* ---- other GPUs ---- */

static bool is_among(const struct gpu_name *gpu, const struct gpu_name *gpus, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(gpus[i].uuid, gpu->uuid) == 0)
            return true;
    return false;
}

int suspension_record_map(const struct suspension_record *record, const struct gpu_name *gpus,
    size_t n_gpus, struct gpu_move *ret_moves)
{
    size_t n = 0, next = 0;
    if (n_gpus != record->n_gpus)
        return -EINVAL;
    for (size_t i = 0; i < n_gpus; i++) {
        if (is_among(&record->gpus[i], gpus, n_gpus))
            continue;
        while (is_among(&gpus[next], record->gpus, n_gpus))
            next++;
        memcpy(ret_moves[n].from, record->gpus[i].uuid, GPU_UUID_SIZE);
        memcpy(ret_moves[n].to, gpus[next++].uuid, GPU_UUID_SIZE);
        n++;
    }
    return (int)n;
}

struct reading suspension_record_bytes(const struct suspension_record *record)
{
    int64_t most = 0;
    for (size_t g = 0; g < record->n_gpus; g++) {
        int64_t sum = 0;
        for (size_t i = 0; i < record->n_processes; i++)
            for (size_t k = 0; k < record->processes[i].n_memory; k++)
                if (strcmp(record->processes[i].memory[k].gpu, record->gpus[g].uuid) == 0)
                    sum += record->processes[i].memory[k].bytes;
        most = sum > most ? sum : most;
    }
    return most > 0 ? reading_of((double)most) : READING_NONE;
}

struct group_process *suspension_record_process(struct suspension_record *record, pid_t pid)
{
    for (size_t i = 0; i < record->n_processes; i++)
        if (record->processes[i].pid == pid)
            return &record->processes[i];
    if (record->n_processes == GROUP_PROCESSES_MAX)
        return NULL;
    record->processes[record->n_processes] = (struct group_process){.pid = pid};
    return &record->processes[record->n_processes++];
}
