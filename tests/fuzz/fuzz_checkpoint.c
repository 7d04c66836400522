/* SPDX-License-Identifier: Apache-2.0 */
/* The lines of colloc-checkpoint, what /proc shows, and the file of learned speeds: any bytes are
 * read, and what was read is written and read again as the same. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/units.h"
#include "checkpoint/copy_speed.h"
#include "checkpoint/cuda_process.h"
#include "checkpoint/helper_line.h"
#include "fuzz.h"

static void require(int holds)
{
    if (!holds)
        abort();
}

static void check_request(struct span line)
{
    static struct helper_request request, again;
    char text[HELPER_LINE_MAX], second[HELPER_LINE_MAX];
    if (helper_request_read(line, &request) < 0)
        return;
    require(request.call < HELPER_CALLS && request.n_moves <= HELPER_MOVES_MAX);
    size_t size = helper_request_write(&request, text, sizeof text);
    require(size > 0 && helper_request_read((struct span){text, size - 1}, &again) == 0);
    require(helper_request_write(&again, second, sizeof second) == size);
    require(memcmp(text, second, size) == 0);
}

static void check_reply(struct span line)
{
    static struct helper_reply reply, again;
    static char text[2 * HELPER_LINE_MAX];
    if (helper_reply_read(line, &reply) < 0)
        return;
    size_t size = helper_reply_write(&reply, text, sizeof text);
    require(size > 0 && helper_reply_read((struct span){text, size - 1}, &again) == 0);
    require(again.result == reply.result && again.state == reply.state);
    require(strcmp(again.text, reply.text) == 0);
}

static void check_process(struct span text)
{
    struct cuda_process process = {0}, again;
    char written[128];
    cuda_process_parse_maps(text, &process);
    cuda_process_parse_status(text, &process);
    cuda_process_parse_environ(text, &process);
    cuda_process_parse_auxv(text, &process);
    struct reading available = host_memory_parse(text);
    require(!available.valid || available.value >= 0);
    if (cuda_process_parse(text, &process) < 0)
        return;
    size_t size = cuda_process_write(&process, written, sizeof written);
    require(size > 0 && cuda_process_parse((struct span){written, size}, &again) == 0);
    require(again.born == process.born && again.has_nccl == process.has_nccl);
}

static void check_speed(struct span text)
{
    static char written[COPY_SPEED_TEXT_SIZE];
    struct copy_speed speed = copy_speed_read(text);
    require(speed.n_gpus <= COPY_SPEED_GPUS);
    for (size_t i = 0; i <= speed.n_gpus; i++) {
        const char *uuid = i < speed.n_gpus ? speed.gpus[i].uuid : NULL;
        for (enum copy_way way = 0; way < COPY_WAYS; way++) {
            int64_t us = copy_speed_expect_us(&speed, uuid, way, GIB);
            require(us > 0 && us <= 51 * SECOND_US);
            require(copy_speed_limit_us(&speed, uuid, way, INT64_C(1) << 40) > us);
        }
    }
    require(copy_speed_write(&speed, written, sizeof written) > 0);
    copy_speed_learn(&speed, "GPU-1", COPY_TO_HOST, 10 * GIB, SECOND_US);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span text = {(const char *)data, size}, line, rest = text;
    while (span_next_line(&rest, &line)) {
        check_request(line);
        check_reply(line);
    }
    check_process(text);
    check_speed(text);
    return 0;
}
