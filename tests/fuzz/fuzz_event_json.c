/* SPDX-License-Identifier: Apache-2.0 */
/* An event of the log, as "KIND\n" and any JSON: understood and written back to the same, or a
 * fault with words. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "core/policy.h"
#include "fuzz.h"
#include "store/event_json.h"

static void require(int holds)
{
    if (!holds)
        abort();
}

static const struct policy *find_policy(const char *name)
{
    static const struct policy magm = {.name = "magm"};
    return strcmp(name, magm.name) == 0 ? &magm : NULL;
}

static json_t *encode(const struct event *event)
{
    struct fault fault = {""};
    json_t *body = NULL;
    require(event_encode(event, &fault, &body) == 0);
    return body;
}

/* What was understood says the same when it is written and read again. */
static void go_round(const struct event *event)
{
    struct event again = {.kind = event->kind};
    struct fault fault = {""};
    json_t *once = encode(event);
    require(event_decode(once, find_policy, &fault, &again) == 0);
    json_t *twice = encode(&again);
    require(json_equal(once, twice));
    event_release(&again);
    json_decref(once);
    json_decref(twice);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span rest = {(const char *)data, size}, line;
    struct event event = {0};
    struct fault fault = {""};
    char kind[32];
    if (!span_next_line(&rest, &line) || !span_copy(line, kind, sizeof kind) ||
        event_parse_name(kind, &event.kind) < 0)
        return 0;
    json_t *body = json_loadb(rest.at, rest.size, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
    if (event_decode(body, find_policy, &fault, &event) == 0) {
        go_round(&event);
        event_release(&event);
    } else {
        require(fault.text[0] != '\0');
    }
    json_decref(body);
    return 0;
}
