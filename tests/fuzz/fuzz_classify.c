/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logs of any bytes: an answer whose evidence is one harmless line, the same in one portion as byte
 * by byte; and the records that stand between daemon and shim.
 */
#include <stdlib.h>
#include <string.h>

#include "exec/exit_record.h"
#include "exec/failure_classify.h"
#include "exec/spec.h"
#include "fuzz.h"

static void require(int holds)
{
    if (!holds)
        abort();
}

static void check_evidence(const char *evidence)
{
    require(strlen(evidence) < EVIDENCE_MAX);
    for (const unsigned char *at = (const unsigned char *)evidence; *at; at++)
        require(*at >= ' ' && *at != 0x7f);
}

static struct failure classify_in_portions(const uint8_t *data, size_t size, size_t portion)
{
    static const struct attempt_end ending = {.exit_code = 1};
    struct logscan out = {0}, err = {0};
    struct failure failure;
    while (size) {
        size_t n = portion < size ? portion : size;
        logscan_feed(&err, (struct span){(const char *)data, n});
        data += n;
        size -= n;
    }
    logscan_finish(&err);
    failure_classify(&ending, &out, &err, &failure);
    return failure;
}

static void scan_log(const uint8_t *data, size_t size)
{
    struct failure whole = classify_in_portions(data, size, size);
    struct failure bytes = classify_in_portions(data, size, 1);
    require(whole.class == bytes.class && strcmp(whole.evidence, bytes.evidence) == 0);
    check_evidence(whole.evidence);
}

static void read_records(const uint8_t *data, size_t size)
{
    struct attempt_exit attempt;
    struct spec_file file;
    char *copy = malloc(size + 1);
    if (!copy)
        return;
    if (size)
        memcpy(copy, data, size);
    exit_record_decode(copy, size, &attempt);
    if (spec_decode(copy, size, NULL, &file) == 0)
        require(file.spec.cwd && (file.has_script || file.spec.argv[0]));
    spec_file_fini(&file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    scan_log(data, size);
    read_records(data, size);
    return 0;
}
