/* SPDX-License-Identifier: Apache-2.0 */
/* Parses what slurmstepd's plugin asks the agent: key=value pairs in any order. An unknown key is
 * ignored: the plugin may be of a later version. */
#include "daemon/node/step_request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/units.h"

static int parse_gpus(char *list, uint64_t *ret_gpus)
{
    char *rest = NULL;
    int64_t index;
    *ret_gpus = 0;
    for (char *item = strtok_r(list, ",", &rest); item; item = strtok_r(NULL, ",", &rest)) {
        if (parse_int64(item, 0, 63, &index) < 0)
            return -EINVAL;
        *ret_gpus |= UINT64_C(1) << index;
    }
    return 0;
}

static enum step_sharing parse_sharing(const char *text)
{
    if (strcmp(text, "mps") == 0)
        return STEP_SHARING_MPS;
    return strcmp(text, "streams") == 0 ? STEP_SHARING_STREAMS : STEP_SHARING_ANY;
}

static int take_word(struct step_request *request, const char *key, char *value)
{
    static const struct {
        const char *key;
        int64_t min, max;
    } numbers[] = {{"job", 1, UINT32_MAX}, {"step", INT32_MIN, INT32_MAX}, {"uid", 0, UINT32_MAX},
        {"gid", 0, UINT32_MAX}, {"status", INT32_MIN, INT32_MAX}, {"array", 1, UINT32_MAX},
        {"task", 0, UINT32_MAX}, {"pinned", 0, 1}};
    int64_t number = 0;
    if (strcmp(key, "gpus") == 0)
        return parse_gpus(value, &request->gpus);
    if (strcmp(key, "sharing") == 0)
        request->sharing = parse_sharing(value);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (strcmp(key, numbers[i].key) != 0)
            continue;
        if (parse_int64(value, numbers[i].min, numbers[i].max, &number) < 0)
            return -EINVAL;
        if (i == 0)
            request->job = (uint32_t)number;
        else if (i == 1)
            request->step = (int32_t)number;
        else if (i == 2)
            request->uid = (uid_t)number;
        else if (i == 3)
            request->gid = (gid_t)number;
        else if (i == 4)
            request->status = (int)number;
        else if (i == 5)
            request->array_job = (uint32_t)number;
        else if (i == 6)
            request->array_task = (uint32_t)number;
        else
            request->is_pinned = number;
    }
    return 0;
}

int step_request_parse(char *packet, struct fault *fault, struct step_request *ret_request)
{
    char *rest = NULL, *word = strtok_r(packet, " ", &rest);
    *ret_request = (struct step_request){0};
    if (word && strcmp(word, "end") == 0)
        ret_request->kind = STEP_ENDS;
    else if (!word || strcmp(word, "start") != 0)
        return fault_set(fault, EINVAL, "a request of a step begins with start or end");
    while ((word = strtok_r(NULL, " ", &rest))) {
        char *value = strchr(word, '=');
        if (!value)
            return fault_set(fault, EINVAL, "'%.40s': not key=value", word);
        *value++ = '\0';
        if (take_word(ret_request, word, value) < 0)
            return fault_set(fault, EINVAL, "%.40s: '%.40s' is not valid", word, value);
    }
    return ret_request->job ? 0 : fault_set(fault, EINVAL, "no job");
}

int step_request_write(const struct step_request *request, char *text, size_t size)
{
    char gpus[64 * sizeof "63"] = "", array[64] = "";
    size_t n = 0;
    for (unsigned i = 0; i < 64; i++)
        if (request->gpus >> i & 1)
            n += (size_t)snprintf(gpus + n, sizeof gpus - n, "%s%u", n ? "," : "", i);
    if (request->array_job)
        snprintf(array, sizeof array, " array=%u task=%u", request->array_job, request->array_task);
    int length = snprintf(text, size,
        "start job=%u step=%d uid=%u gid=%u gpus=%s%s sharing=%s pinned=%d\n", request->job,
        request->step, (unsigned)request->uid, (unsigned)request->gid, gpus, array,
        request->sharing == STEP_SHARING_MPS ? "mps" : "streams", request->is_pinned);
    return length < 0 || (size_t)length >= size ? -ENOSPC : 0;
}
