/* SPDX-License-Identifier: Apache-2.0 */
/* What a node's agent, the controller and colloc on login nodes decode, once munge has let it
 * through. What is accepted is in range, and encodes to a text that decodes to the same. Where the
 * input has two lines, the second one is decoded onto the report that the first one is. */
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "nodelink/node_answer.h"
#include "nodelink/node_changes.h"
#include "nodelink/node_report.h"
#include "nodelink/signed_request.h"

static void require(int holds)
{
    if (!holds)
        abort();
}

static void check_gpu(const struct node_gpu *gpu)
{
    require(gpu->n_processes <= NODE_PROCESSES_MAX);
    require(gpu->n_processes == 0 || gpu->processes_known);
    require(gpu->external_at_least == 0 || !gpu->processes_known);
    require(gpu->external_at_least <= NODE_PROCESSES_MAX);
    require(!gpu->smact.valid || (gpu->smact.value >= 0 && gpu->smact.value <= 1));
    require(!gpu->memory_used_bytes.valid || gpu->memory_used_bytes.value >= 0);
    for (size_t i = 0; i < gpu->n_processes; i++)
        require(gpu->processes[i].pid > 0);
}

static void try_report(const char *text, size_t size)
{
    struct node_report report, again;
    char *written, *rewritten;
    if (node_report_decode(text, size, NULL, &report) == 0) {
        require(node_name_is_valid(report.node) && report.n_gpus <= NODE_GPUS_MAX);
        for (size_t i = 0; i < report.n_gpus; i++)
            check_gpu(&report.gpus[i]);
        require(node_report_encode(&report, &written, &size) == 0);
        require(node_report_decode(written, size, NULL, &again) == 0);
        require(node_report_encode(&again, &rewritten, &size) == 0);
        require(strcmp(written, rewritten) == 0);
        free(written);
        free(rewritten);
        node_report_fini(&again);
    }
    node_report_fini(&report);
}

/* What has changed leads from one report to the other, where that is possible at all. */
static void try_chain(const struct node_report *base, const struct node_report *now)
{
    struct node_report again;
    char *changes, *must, *is;
    size_t size;
    if (node_changes_encode(base, now, &changes, &size) != 0)
        return;
    require(node_changes_decode(base, changes, size, NULL, &again) == 0);
    require(node_report_encode(now, &must, &size) == 0);
    require(node_report_encode(&again, &is, &size) == 0);
    require(strcmp(is, must) == 0);
    free(changes);
    free(must);
    free(is);
    node_report_fini(&again);
}

static void try_changes(const char *text, size_t size)
{
    struct node_report base, now;
    const char *end = memchr(text, '\n', size);
    if (!end)
        return;
    const char *next = end + 1;
    if (node_report_decode(text, (size_t)(end - text), NULL, &base) == 0) {
        if (node_changes_decode(&base, next, size - (size_t)(next - text), NULL, &now) == 0) {
            require(now.n_gpus <= NODE_GPUS_MAX && now.n_crashes <= NODE_CRASHES_MAX);
            for (size_t i = 0; i < now.n_gpus; i++)
                check_gpu(&now.gpus[i]);
            try_chain(&base, &now);
        }
        node_report_fini(&now);
    }
    node_report_fini(&base);
}

static void try_request(const char *text, size_t size)
{
    struct signed_request request, again;
    char *written;
    if (signed_request_decode(text, size, NULL, &request) < 0)
        return;
    require(signed_request_encode(&request, &written) == 0);
    require(signed_request_decode(written, strlen(written), NULL, &again) == 0);
    require(memcmp(&request, &again, sizeof request) == 0);
    free(written);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct node_answer answer;
    char *text;
    try_report((const char *)data, size);
    if (size > 0)
        try_changes((const char *)data, size);
    try_request((const char *)data, size);
    if (node_answer_decode((const char *)data, size, NULL, &answer) == 0) {
        require(answer.n_pins <= NODE_PINS_MAX);
        require(node_answer_encode(&answer, &text) == 0);
        free(text);
    }
    return 0;
}
