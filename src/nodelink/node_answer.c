/* SPDX-License-Identifier: Apache-2.0 */
/* An answer as JSON, both ways. It is small and rare: one after the first report of a connection,
 * and one for the jobs that are pinned in one turn of the controller's loop. */
#include "nodelink/node_answer.h"

#include <errno.h>

#include "nodelink/json_field.h"

enum { ANSWER_VERSION = 1 };

static json_t *pin_json(const struct node_pin *pin)
{
    json_t *object = json_pack("{s:I, s:b, s:b}", "job", (json_int_t)pin->job, "mps",
        (int)pin->is_mps, "elsewhere", (int)pin->may_share_elsewhere);
    if (!pin->is_of_array ||
        json_object_set_new(object, "task", json_integer(pin->array_task)) == 0)
        return object;
    json_decref(object);
    return NULL;
}

static json_t *orders_json(const struct node_answer *answer)
{
    json_t *list = json_array();
    for (size_t i = 0; i < answer->n_out; i++)
        json_array_append_new(list, json_integer(answer->out[i]));
    return list;
}

int node_answer_encode(const struct node_answer *answer, char **ret_text)
{
    json_t *pins = json_array();
    int r = 0;
    for (size_t i = 0; i < answer->n_pins; i++)
        r |= json_array_append_new(pins, pin_json(&answer->pins[i]));
    json_t *object = json_pack("{s:i, s:s, s:I, s:s, s:o}", "v", ANSWER_VERSION, "node",
        answer->node, "sequence", (json_int_t)answer->sequence, "refused", answer->refused, "pins",
        pins);
    if (*answer->key)
        r |= json_object_set_new(object, "key", json_string(answer->key));
    if (answer->takes_changes)
        r |= json_object_set_new(object, "takes_changes", json_true());
    if (answer->wants_whole)
        r |= json_object_set_new(object, "wants_whole", json_true());
    if (answer->has_orders)
        r |= json_object_set_new(object, "out", orders_json(answer));
    *ret_text = object && r == 0 ? json_dumps(object, JSON_COMPACT) : NULL;
    json_decref(object);
    return *ret_text ? 0 : -ENOMEM;
}

static int read_pin(const json_t *object, struct fault *fault, struct node_pin *ret_pin)
{
    int64_t job, task = 0;
    int r = json_field_integer(object, "job", 1, UINT32_MAX, fault, &job);
    bool is_of_array = json_object_get(object, "task") != NULL;
    if (r == 0 && is_of_array)
        r = json_field_integer(object, "task", 0, UINT32_MAX, fault, &task);
    *ret_pin = (struct node_pin){.job = (uint32_t)job,
        .is_mps = json_is_true(json_object_get(object, "mps")),
        .may_share_elsewhere = json_is_true(json_object_get(object, "elsewhere")),
        .is_of_array = is_of_array,
        .array_task = (uint32_t)task};
    return r;
}

static int read_pins(const json_t *object, struct fault *fault, struct node_answer *answer)
{
    const json_t *list;
    int r = json_field_list(object, "pins", NODE_PINS_MAX, fault, &list);
    for (size_t i = 0; r == 0 && i < json_array_size(list); i++)
        r = read_pin(json_array_get(list, i), fault, &answer->pins[answer->n_pins++]);
    return r;
}

static int read_orders(const json_t *object, struct fault *fault, struct node_answer *answer)
{
    const json_t *list;
    int r = json_field_list(object, "out", NODE_JOBS_MAX, fault, &list);
    answer->has_orders = r == 0 && list;
    for (size_t i = 0; r == 0 && i < json_array_size(list); i++) {
        json_int_t job = json_integer_value(json_array_get(list, i));
        if (job < 1 || job > UINT32_MAX)
            return fault_set(fault, EINVAL, "out: not a list of jobs");
        answer->out[answer->n_out++] = (uint32_t)job;
    }
    return r;
}

static int read_answer(const json_t *object, struct fault *fault, void *ret_value)
{
    struct node_answer *answer = ret_value;
    int r = json_field_text(object, "node", fault, answer->node, sizeof answer->node);
    if (r == 0)
        r = json_field_integer(object, "sequence", 0, INT64_MAX, fault, &answer->sequence);
    if (r == 0)
        r = json_field_text(object, "refused", fault, answer->refused, sizeof answer->refused);
    if (r == 0)
        r = json_field_text(object, "key", fault, answer->key, sizeof answer->key);
    answer->takes_changes = json_is_true(json_object_get(object, "takes_changes"));
    answer->wants_whole = json_is_true(json_object_get(object, "wants_whole"));
    if (r == 0)
        r = read_pins(object, fault, answer);
    return r == 0 ? read_orders(object, fault, answer) : r;
}

int node_answer_decode(
    const char *text, size_t size, struct fault *fault, struct node_answer *ret_answer)
{
    static const struct json_format format = {ANSWER_SIZE_MAX, ANSWER_VERSION, read_answer};
    ret_answer->n_pins = ret_answer->n_out = 0;
    ret_answer->has_orders = false;
    return json_field_decode(&format, text, size, fault, ret_answer);
}
