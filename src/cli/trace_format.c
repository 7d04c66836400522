/* SPDX-License-Identifier: Apache-2.0 */
/* The formats of logs by their first lines. Python reads the logs (python/colloc_trace/formats). */
#include "cli/trace_format.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"

const char *const trace_formats[] = {"philly", "helios", "acme", "alibaba", "alibaba-2023",
    "alibaba-2025", "alibaba-2026", "alibaba-spot", "sacct", "swf", NULL};

static bool line_has(struct span line, const char *word)
{
    return memmem(line.at, line.size, word, strlen(word));
}

/*
 * Recognises the format of a log by its first line; for the table of tasks of Alibaba's log of 2020
 * this needs the line of names, which the published files lack.
 *
 * head: the beginning of the log; may end anywhere
 *
 * Returns the format, or NULL.
 */
static const char *trace_format_of(struct span head)
{
    /* Of a table, words of the line of names. The first that has both is taken; where columns are
     * missing, its reader says which. */
    static const struct {
        const char *format, *words[2];
    } tables[] = {
        {"sacct", {"JobID", "Submit"}},
        {"sacct", {"JobID", "State"}},
        {"acme", {"gpu_num", "gpu_time"}},
        {"helios", {"submit_time", "gpu_num"}},
        {"alibaba", {"job_name", "inst_num"}},
        {"alibaba-2023", {"num_gpu", "gpu_milli"}},
        {"alibaba-2025", {"instance_sn", "gpu_request"}},
        {"alibaba-2026", {"pod_id", "avg_gpu_sm_util"}},
        {"alibaba-spot", {"worker_num", "gpu_request"}},
    };
    struct span line;
    head = span_trim(head);
    if (!span_next_line(&head, &line))
        return NULL;
    if (span_starts(line, ";"))
        return "swf";
    if (span_starts(line, "["))
        return "philly";
    for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
        if (line_has(line, tables[i].words[0]) && line_has(line, tables[i].words[1]))
            return tables[i].format;
    return NULL;
}

const char *trace_format_of_file(const char *path)
{
    char head[4096];
    struct stat status;
    bool is_kept = strcmp(path, "-") != 0 && stat(path, &status) == 0 && S_ISREG(status.st_mode);
    FILE *file = is_kept ? fopen(path, "re") : NULL;
    size_t size = file ? fread(head, 1, sizeof head, file) : 0;
    if (file)
        fclose(file);
    return trace_format_of((struct span){head, size});
}
