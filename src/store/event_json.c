/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each kind of event has a table of fields: the key, the type, where the value is in struct event,
 * and its range. Writing and reading walk the same table, so they cannot disagree, and the order of
 * the rows is the order of the keys in the log. Only lists (GPUs, the GPUs of a placement or a
 * move, the tasks of a sample) are written and read by separate functions.
 */
#include "store/event_json.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "core/policy.h"
#include "core/sharing_choice.h"

/* Integers up to it are exact as a double. */
#define EXACT_INTEGER_MAX 9007199254740992.0

/* Readers refuse larger indices and arrays. Chosen: sums and products of two do not overflow. */
enum { ARRAY_NUMBER_MAX = 1000000000, ARRAY_ELEMENTS_MAX = 1000000, HOST_CPUS_MAX = 10000 };
#define HOST_BYTES_MAX (INT64_C(1) << 50)

/* ---- the tables ---- */

/* The names of an enumeration; NULL for a value that cannot stand in an event. */
struct names {
    const char *(*name)(int value);
    int n;
};

struct field {
    const char *key;
    enum {
        FIELD_BOOL,
        FIELD_INT,
        FIELD_UINT32,
        FIELD_INT64,
        FIELD_TEXT,     /* char[max] */
        FIELD_NAME,     /* an enumeration, by the names */
        FIELD_POLICY,   /* const struct policy * */
        FIELD_FRACTION, /* struct reading from 0 to 1 */
        FIELD_READING,  /* struct reading, any number */
        FIELD_WHOLE     /* struct reading, a whole number */
    } type;
    size_t offset;
    enum { REQUIRED, OPTIONAL } presence; /* OPTIONAL: left out when false, 0, "" or unknown */
    int64_t min, max;                     /* of a whole number; FIELD_TEXT: max is the size */
    const struct names *names;
};

static const char *need_kind_name(int kind)
{
    static const char *const names[] = {
        [NEED_UNKNOWN] = "unknown",
        [NEED_PENDING] = "pending",
        [NEED_ESTIMATED] = "estimated",
        [NEED_DECLARED] = "declared",
    };
    return names[kind];
}

static const char *requested_sharing_name(int sharing)
{
    return sharing_name((enum sharing)sharing);
}

static const char *attempt_sharing_name(int sharing)
{
    return sharing == SHARING_AUTO ? NULL : sharing_name((enum sharing)sharing);
}

static const char *reason_name(int reason)
{
    return sharing_reason_name((enum share_reason)reason);
}

static const char *failure_class_name(int failure)
{
    return failure_name((enum failure_class)failure);
}

static const char *end_state_name(int state)
{
    bool is_end = task_state_is_done((enum task_state)state);
    return is_end ? task_state_name((enum task_state)state) : NULL;
}

static const char *yield_name(int reason)
{
    return yield_reason_name((enum yield_reason)reason);
}

static const char *suspension_failure_name_of(int failure)
{
    return suspension_failure_name((enum suspension_failure)failure);
}

static const char *way_name(int way)
{
    return suspension_way_name((enum suspension_way)way);
}

static const struct names need_kinds = {need_kind_name, NEED_DECLARED + 1};
static const struct names requested_sharings = {requested_sharing_name, SHARING_AUTO + 1};
static const struct names attempt_sharings = {attempt_sharing_name, SHARING_AUTO + 1};
static const struct names reasons = {reason_name, SHARE_REASONS};
static const struct names failures = {failure_class_name, FAILURE_CLASSES};
static const struct names yield_reasons = {yield_name, YIELD_REASONS};
static const struct names suspension_failures = {suspension_failure_name_of, SUSPENSION_FAILURES};
static const struct names suspension_ways = {way_name, SUSPENSION_WAYS};
static const struct names dependency_kinds = {dependency_kind_name, DEPENDENCY_KINDS};
static const struct names end_states = {end_state_name, TASK_STATES};

static_assert(sizeof(enum sharing) == sizeof(int), "enumerations are read and written as int");
static_assert(SHARE_AS_ASKED == 0, "the reason is left out when it is as requested");

/* clang-format off */
#define AT(member) offsetof(struct gpu_identity, member)
static const struct field gpu_fields[] = {
    {"uuid", FIELD_TEXT, AT(uuid), REQUIRED, 0, sizeof((struct gpu_identity *)0)->uuid, NULL},
    {"label", FIELD_TEXT, AT(label), REQUIRED, 0, sizeof((struct gpu_identity *)0)->label, NULL},
    {"name", FIELD_TEXT, AT(name), REQUIRED, 0, sizeof((struct gpu_identity *)0)->name, NULL},
    {"mem_total_bytes", FIELD_INT64, AT(mem_total_bytes), REQUIRED, 0, EVENT_NUMBER_MAX, NULL},
    {"is_place", FIELD_BOOL, AT(is_place), REQUIRED, 0, 0, NULL},
    {"is_mig_instance", FIELD_BOOL, AT(is_mig_instance), REQUIRED, 0, 0, NULL},
    {"one_process", FIELD_BOOL, AT(one_process), OPTIONAL, 0, 0, NULL},
    {"without_mps", FIELD_BOOL, AT(without_mps), OPTIONAL, 0, 0, NULL},
    {"is_out_of_use", FIELD_BOOL, AT(is_out_of_use), OPTIONAL, 0, 0, NULL},
    {"is_gone", FIELD_BOOL, AT(is_gone), OPTIONAL, 0, 0, NULL},
    {"memory_domain", FIELD_INT, AT(memory_domain), OPTIONAL, 1, 1000000, NULL},
    {"distances", FIELD_TEXT, AT(distances), OPTIONAL, 0, sizeof((struct gpu_identity *)0)->distances, NULL},
    {"device", FIELD_INT, AT(device), OPTIONAL, 1, 1000000, NULL},
    {"power_limit_w", FIELD_INT, AT(power_limit_w), OPTIONAL, 1, 1000000, NULL},
    {"speed", FIELD_INT, AT(speed), OPTIONAL, 1, 1000000, NULL},
    {"near_cpus", FIELD_TEXT, AT(near_cpus), OPTIONAL, 0, sizeof((struct gpu_identity *)0)->near_cpus, NULL},
};
#undef AT

#define AT(member) offsetof(struct task_memory, member)
static const struct field task_memory_fields[] = {
    {"task", FIELD_INT64, AT(task), REQUIRED, 1, INT64_MAX, NULL},
    {"mem_used_bytes", FIELD_READING, AT(mem_used_bytes), OPTIONAL, 0, 0, NULL},
    {"mps_clients", FIELD_INT, AT(mps_clients), OPTIONAL, 0, 1000000, NULL},
    {"hooked", FIELD_INT, AT(hooked), OPTIONAL, 0, 1000000, NULL},
    {"unhooked", FIELD_INT, AT(unhooked), OPTIONAL, 0, 1000000, NULL},
    {"carried", FIELD_INT, AT(carried), OPTIONAL, 0, 1000000, NULL},
    {"inactive", FIELD_BOOL, AT(is_inactive), OPTIONAL, 0, 0, NULL},
};
#undef AT

#define AT(member) offsetof(struct dependency, member)
static const struct field dependency_fields[] = {
    {"kind", FIELD_NAME, AT(kind), REQUIRED, 0, 0, &dependency_kinds},
    {"first", FIELD_INT64, AT(first), REQUIRED, 1, INT64_MAX, NULL},
    {"last", FIELD_INT64, AT(last), REQUIRED, 1, INT64_MAX, NULL},
    {"each", FIELD_BOOL, AT(each), OPTIONAL, 0, 0, NULL},
};
#undef AT

/* Tasks of an array whose ids are one apart and whose indices are `step` apart. */
struct array_run {
    int64_t task;
    int index, step, count;
};

#define AT(member) offsetof(struct array_run, member)
static const struct field array_run_fields[] = {
    {"task", FIELD_INT64, AT(task), REQUIRED, 1, INT64_MAX - INT_MAX, NULL},
    {"index", FIELD_INT, AT(index), REQUIRED, 0, ARRAY_NUMBER_MAX, NULL},
    {"step", FIELD_INT, AT(step), OPTIONAL, 0, ARRAY_NUMBER_MAX, NULL},
    {"count", FIELD_INT, AT(count), REQUIRED, 1, ARRAY_NUMBER_MAX, NULL},
};
#undef AT

#define AT(member) offsetof(struct event, member)
static const struct field submit_fields[] = {
    {"uid", FIELD_UINT32, AT(submit.uid), REQUIRED, 0, UINT32_MAX, NULL},
    {"held", FIELD_BOOL, AT(submit.held), REQUIRED, 0, 0, NULL},
    {"gpus", FIELD_INT, AT(submit.request.gpus), REQUIRED, 0, INT_MAX, NULL},
    {"nodes", FIELD_INT, AT(submit.request.nodes), OPTIONAL, 1, INT_MAX, NULL},
    {"policy", FIELD_POLICY, AT(submit.request.policy), OPTIONAL, 0, 0, NULL},
    {"exclusive", FIELD_BOOL, AT(submit.request.exclusive), REQUIRED, 0, 0, NULL},
    {"slot", FIELD_BOOL, AT(submit.request.takes_turns), OPTIONAL, 0, 0, NULL},
    {"sharing", FIELD_NAME, AT(submit.request.sharing), REQUIRED, 0, 0, &requested_sharings},
    {"need", FIELD_NAME, AT(submit.request.need.kind), REQUIRED, 0, 0, &need_kinds},
    {"need_bytes", FIELD_INT64, AT(submit.request.need.bytes), REQUIRED, 0, EVENT_NUMBER_MAX, NULL},
    {"time_limit_us", FIELD_INT64, AT(submit.request.time_limit_us), REQUIRED, 0, EVENT_NUMBER_MAX, NULL},
    {"smact", FIELD_FRACTION, AT(submit.request.expect.smact), OPTIONAL, 0, 0, NULL},
    {"gract", FIELD_FRACTION, AT(submit.request.expect.gract), OPTIONAL, 0, 0, NULL},
    {"dram", FIELD_FRACTION, AT(submit.request.expect.dram), OPTIONAL, 0, 0, NULL},
    {"expected_us", FIELD_WHOLE, AT(submit.request.expect.time_us), OPTIONAL, 1, EVENT_NUMBER_MAX, NULL},
    {"thread_percent", FIELD_INT, AT(submit.request.thread_percent), OPTIONAL, 1, 100, NULL},
    {"priority", FIELD_INT, AT(submit.request.priority), OPTIONAL, PRIORITY_LOW, PRIORITY_URGENT, NULL},
    {"service", FIELD_BOOL, AT(submit.request.service.is_service), OPTIONAL, 0, 0, NULL},
    {"p99_us", FIELD_INT64, AT(submit.request.service.p99_us), OPTIONAL, 1, EVENT_NUMBER_MAX, NULL},
    {"max_slowdown", FIELD_READING, AT(submit.request.slowdown_max), OPTIONAL, 0, 0, NULL},
    {"limited", FIELD_BOOL, AT(submit.request.limited), OPTIONAL, 0, 0, NULL},
    {"once", FIELD_BOOL, AT(submit.request.once), OPTIONAL, 0, 0, NULL},
    {"without_library", FIELD_BOOL, AT(submit.request.without_library), OPTIONAL, 0, 0, NULL},
    {"array_limit", FIELD_INT, AT(submit.array_limit), OPTIONAL, 1, ARRAY_NUMBER_MAX, NULL},
    {"begin_us", FIELD_INT64, AT(submit.request.begin_us), OPTIONAL, 1, EVENT_NUMBER_MAX, NULL},
    {"stop_factor", FIELD_INT, AT(submit.stop.factor), OPTIONAL, 2, STOP_FACTOR_MAX, NULL},
    {"stop_max", FIELD_BOOL, AT(submit.stop.is_max), OPTIONAL, 0, 0, NULL},
    {"stop_step", FIELD_INT64, AT(submit.stop.first_step), OPTIONAL, 1, STOP_STEP_MAX, NULL},
    {"stop_metric", FIELD_TEXT, AT(submit.stop.metric), OPTIONAL, 0, STOP_METRIC_SIZE, NULL},
    {"cpus", FIELD_INT, AT(submit.request.host.cpus), OPTIONAL, 1, HOST_CPUS_MAX, NULL},
    {"host_bytes", FIELD_INT64, AT(submit.request.host.memory_bytes), OPTIONAL, 1, HOST_BYTES_MAX, NULL},
};

static const struct field update_fields[] = {
    {"sets_time_limit", FIELD_BOOL, AT(update.sets_time_limit), OPTIONAL, 0, 0, NULL},
    {"time_limit_us", FIELD_INT64, AT(update.time_limit_us), OPTIONAL, 0, EVENT_NUMBER_MAX, NULL},
    {"sets_priority", FIELD_BOOL, AT(update.sets_priority), OPTIONAL, 0, 0, NULL},
    {"priority", FIELD_INT, AT(update.priority), OPTIONAL, PRIORITY_LOW, PRIORITY_URGENT, NULL},
    {"sets_need", FIELD_BOOL, AT(update.sets_need), OPTIONAL, 0, 0, NULL},
    {"need", FIELD_NAME, AT(update.need.kind), OPTIONAL, 0, 0, &need_kinds},
    {"need_bytes", FIELD_INT64, AT(update.need.bytes), OPTIONAL, 1, EVENT_NUMBER_MAX, NULL},
    {"sets_begin", FIELD_BOOL, AT(update.sets_begin), OPTIONAL, 0, 0, NULL},
    {"begin_us", FIELD_INT64, AT(update.begin_us), OPTIONAL, 1, EVENT_NUMBER_MAX, NULL},
    {"sets_after", FIELD_BOOL, AT(update.sets_after), OPTIONAL, 0, 0, NULL},
    {"sets_host", FIELD_BOOL, AT(update.sets_host), OPTIONAL, 0, 0, NULL},
    {"may_raise", FIELD_BOOL, AT(update.may_raise), OPTIONAL, 0, 0, NULL},
    {"cpus", FIELD_INT, AT(update.host.cpus), OPTIONAL, 1, HOST_CPUS_MAX, NULL},
    {"host_bytes", FIELD_INT64, AT(update.host.memory_bytes), OPTIONAL, 1, HOST_BYTES_MAX, NULL},
};

static const struct field reserve_fields[] = {
    {"id", FIELD_INT64, AT(reserve.id), REQUIRED, 1, INT64_MAX, NULL},
    {"gpus", FIELD_INT, AT(reserve.gpus), REQUIRED, 1, INT_MAX, NULL},
    {"from_us", FIELD_INT64, AT(reserve.from_us), REQUIRED, 0, EVENT_NUMBER_MAX, NULL},
    {"until_us", FIELD_INT64, AT(reserve.until_us), REQUIRED, 0, EVENT_NUMBER_MAX, NULL},
};

static const struct field unreserve_fields[] = {
    {"id", FIELD_INT64, AT(unreserve), REQUIRED, 1, INT64_MAX, NULL},
};

static const struct field estimate_fields[] = {
    {"need", FIELD_NAME, AT(estimate.need.kind), REQUIRED, 0, 0, &need_kinds},
    {"need_bytes", FIELD_INT64, AT(estimate.need.bytes), REQUIRED, 0, EVENT_NUMBER_MAX, NULL},
    {"smact", FIELD_READING, AT(estimate.smact), OPTIONAL, 0, 0, NULL},
};

static const struct field run_again_fields[] = {
    {"need_bytes", FIELD_INT64, AT(run_again_bytes), OPTIONAL, 1, EVENT_NUMBER_MAX, NULL},
};

static const struct field started_fields[] = {
    {"has_library", FIELD_BOOL, AT(started.has_library), OPTIONAL, 0, 0, NULL},
};

static const struct field sample_fields[] = {
    {"gpu", FIELD_INT, AT(sample.gpu), REQUIRED, INT_MIN, INT_MAX, NULL},
    {"lost", FIELD_BOOL, AT(sample.lost), OPTIONAL, 0, 0, NULL},
    {"faulty", FIELD_BOOL, AT(sample.faulty), OPTIONAL, 0, 0, NULL},
    {"more_follow", FIELD_BOOL, AT(sample.more_follow), OPTIONAL, 0, 0, NULL},
    {"mem_used_bytes", FIELD_READING, AT(sample.mem_used_bytes), OPTIONAL, 0, 0, NULL},
    {"smact", FIELD_READING, AT(sample.smact), OPTIONAL, 0, 0, NULL},
    {"smact_repeats", FIELD_BOOL, AT(sample.smact_repeats), OPTIONAL, 0, 0, NULL},
    {"utilisation", FIELD_READING, AT(sample.utilisation), OPTIONAL, 0, 0, NULL},
    {"external_processes", FIELD_READING, AT(sample.external_processes), OPTIONAL, 0, 0, NULL},
    {"power_w", FIELD_READING, AT(sample.power_w), OPTIONAL, 0, 0, NULL},
    {"pcie_bytes_per_s", FIELD_READING, AT(sample.pcie_bytes_per_s), OPTIONAL, 0, 0, NULL},
};

static const struct field exited_fields[] = {
    {"failure", FIELD_NAME, AT(exited.failure), REQUIRED, 0, 0, &failures},
    {"code", FIELD_INT, AT(exited.code), REQUIRED, INT_MIN, INT_MAX, NULL},
    {"signal", FIELD_INT, AT(exited.signal), REQUIRED, 0, INT_MAX, NULL},
    {"ended_us", FIELD_INT64, AT(exited.ended_us), OPTIONAL, 1, INT64_MAX, NULL},
    {"by_gpu", FIELD_BOOL, AT(exited.by_gpu), OPTIONAL, 0, 0, NULL},
};

static const struct field place_fields[] = {
    {"whole", FIELD_BOOL, AT(place.exclusive), REQUIRED, 0, 0, NULL},
    {"sharing", FIELD_NAME, AT(place.share.sharing), REQUIRED, 0, 0, &attempt_sharings},
    {"why", FIELD_NAME, AT(place.share.reason), OPTIONAL, 0, 0, &reasons},
    {"thread_percent", FIELD_INT, AT(place.share.thread_percent), OPTIONAL, 1, 100, NULL},
    {"mem_limit_bytes", FIELD_INT64, AT(place.share.mem_limit_bytes), OPTIONAL, 1, EVENT_NUMBER_MAX, NULL},
};

static const struct field end_fields[] = {
    {"state", FIELD_NAME, AT(end), REQUIRED, 0, 0, &end_states},
};

static const struct field pause_fields[] = {
    {"why", FIELD_NAME, AT(yield.reason), REQUIRED, 0, 0, &yield_reasons},
    {"for", FIELD_INT64, AT(yield.to_task), OPTIONAL, 1, INT64_MAX, NULL},
    {"until_us", FIELD_INT64, AT(yield.until_us), OPTIONAL, 1, INT64_MAX, NULL},
};

static const struct field suspending_fields[] = {
    {"why", FIELD_NAME, AT(yield.reason), REQUIRED, 0, 0, &yield_reasons},
    {"for", FIELD_INT64, AT(yield.to_task), OPTIONAL, 1, INT64_MAX, NULL},
    {"bytes", FIELD_WHOLE, AT(yield.bytes), OPTIONAL, 1, EVENT_NUMBER_MAX, NULL},
    {"keeps_context", FIELD_BOOL, AT(yield.keeps_context), OPTIONAL, 0, 0, NULL},
};

static const struct field moving_fields[] = {
    {"why", FIELD_NAME, AT(yield.reason), REQUIRED, 0, 0, &yield_reasons},
    {"for", FIELD_INT64, AT(yield.to_task), OPTIONAL, 1, INT64_MAX, NULL},
    {"bytes", FIELD_WHOLE, AT(yield.bytes), OPTIONAL, 1, EVENT_NUMBER_MAX, NULL},
};

static const struct field yielded_fields[] = {
    {"bytes", FIELD_WHOLE, AT(yielded.bytes), OPTIONAL, 1, EVENT_NUMBER_MAX, NULL},
    {"took_us", FIELD_INT64, AT(yielded.took_us), OPTIONAL, 1, EVENT_NUMBER_MAX, NULL},
    {"context_bytes", FIELD_WHOLE, AT(yielded.context_bytes), OPTIONAL, 1, EVENT_NUMBER_MAX, NULL},
    {"ranks", FIELD_BOOL, AT(yielded.has_ranks), OPTIONAL, 0, 0, NULL},
    {"copy_bytes", FIELD_WHOLE, AT(yielded.copy_bytes), OPTIONAL, 1, EVENT_NUMBER_MAX, NULL},
};

static const struct field suspension_failed_fields[] = {
    {"why", FIELD_NAME, AT(suspension_failed.why), REQUIRED, 0, 0, &suspension_failures},
    {"suspended", FIELD_BOOL, AT(suspension_failed.is_suspended), REQUIRED, 0, 0, NULL},
};

static const struct field dependency_end_fields[] = {
    {"kind", FIELD_NAME, AT(dependency.dependency.kind), REQUIRED, 0, 0, &dependency_kinds},
    {"first", FIELD_INT64, AT(dependency.dependency.first), REQUIRED, 1, INT64_MAX, NULL},
    {"last", FIELD_INT64, AT(dependency.dependency.last), REQUIRED, 1, INT64_MAX, NULL},
    {"holds", FIELD_BOOL, AT(dependency.holds), REQUIRED, 0, 0, NULL},
    {"by", FIELD_INT64, AT(dependency.by), OPTIONAL, 1, INT64_MAX, NULL},
};

static const struct field memory_wait_fields[] = {
    {"bytes", FIELD_INT64, AT(memory_wait.bytes), REQUIRED, 1, EVENT_NUMBER_MAX, NULL},
    {"again", FIELD_BOOL, AT(memory_wait.is_again), OPTIONAL, 0, 0, NULL},
};

static const struct field usage_fields[] = {
    {"uid", FIELD_UINT32, AT(usage.uid), REQUIRED, 0, UINT32_MAX, NULL},
    {"usage_us", FIELD_INT64, AT(usage.usage_us), REQUIRED, 0, EVENT_NUMBER_MAX, NULL},
    {"window_us", FIELD_INT64, AT(usage.window.length_us), OPTIONAL, 1, EVENT_NUMBER_MAX, NULL},
};

static const struct field delays_fields[] = {
    {"uid", FIELD_UINT32, AT(delays.uid), REQUIRED, 0, UINT32_MAX, NULL},
    {"sharing", FIELD_NAME, AT(delays.sharing), REQUIRED, 0, 0, &attempt_sharings},
    {"measured_us", FIELD_INT64, AT(delays.measured_us), REQUIRED, 0, EVENT_NUMBER_MAX, NULL},
    {"predicted_us", FIELD_INT64, AT(delays.predicted_us), REQUIRED, 0, EVENT_NUMBER_MAX, NULL},
};

static const struct field idle_fields[] = {
    {"idle_us", FIELD_INT64, AT(idle_us), REQUIRED, 0, EVENT_NUMBER_MAX, NULL},
};

static const struct field latest_start_fields[] = {
    {"latest_us", FIELD_INT64, AT(latest_start_us), REQUIRED, 0, EVENT_NUMBER_MAX, NULL},
};

static const struct field fifo_fields[] = {
    {"last_start_us", FIELD_INT64, AT(fifo.last_start_us), REQUIRED, 0, EVENT_NUMBER_MAX, NULL},
};

static const struct field restart_fields[] = {
    {"begin_us", FIELD_INT64, AT(restart_us), REQUIRED, 0, EVENT_NUMBER_MAX, NULL},
};

static const struct field metric_fields[] = {
    {"task", FIELD_INT64, AT(metric.task), REQUIRED, 1, INT64_MAX, NULL},
    {"rung", FIELD_INT, AT(metric.rung), REQUIRED, 0, STOP_RUNGS_MAX - 1, NULL},
    {"value", FIELD_READING, AT(metric.value), OPTIONAL, 0, 0, NULL},
};

static const struct field stop_fields[] = {
    {"rung", FIELD_INT, AT(stop.rung), REQUIRED, 0, STOP_RUNGS_MAX - 1, NULL},
    {"rank", FIELD_INT, AT(stop.rank), REQUIRED, 1, ARRAY_NUMBER_MAX, NULL},
    {"of", FIELD_INT, AT(stop.of), REQUIRED, 1, ARRAY_NUMBER_MAX, NULL},
};

static const struct field latency_fields[] = {
    {"p99_us", FIELD_WHOLE, AT(p99_us), OPTIONAL, 0, EVENT_NUMBER_MAX, NULL},
};

static const struct field speed_fields[] = {
    {"slowdown", FIELD_READING, AT(slowdown), OPTIONAL, 0, 0, NULL},
    {"step_us", FIELD_READING, AT(step_us), OPTIONAL, 0, 0, NULL},
};

static const struct field suspension_cost_fields[] = {
    {"way", FIELD_NAME, AT(suspension_cost.way), OPTIONAL, 0, 0, &suspension_ways},
    {"of_gpu", FIELD_INT, AT(suspension_cost.of_gpu), OPTIONAL, 1, 1000000, NULL},
    {"fixed_us", FIELD_INT64, AT(suspension_cost.cost.fixed_us), REQUIRED, 0, EVENT_NUMBER_MAX, NULL},
    {"suspend_us_per_gib", FIELD_INT64, AT(suspension_cost.cost.suspend_us_per_gib), REQUIRED, 0, EVENT_NUMBER_MAX, NULL},
    {"resume_us_per_gib", FIELD_INT64, AT(suspension_cost.cost.resume_us_per_gib), REQUIRED, 0, EVENT_NUMBER_MAX, NULL},
};

static const struct field memory_answer_fields[] = {
    {"granted", FIELD_BOOL, AT(memory_granted), REQUIRED, 0, 0, NULL},
};
#undef AT
/* clang-format on */

#define FIELDS(table)                                                                              \
    {                                                                                              \
        table, ARRAY_SIZE(table)                                                                   \
    }

struct fields {
    const struct field *field;
    size_t n;
};

static const struct fields gpu_identity_fields = FIELDS(gpu_fields);
static const struct fields run_fields = FIELDS(array_run_fields);
static const struct fields after_fields = FIELDS(dependency_fields);
static const struct fields sample_task_fields = FIELDS(task_memory_fields);

/* Kinds without a row have no fields. STARTED has its sharing, too (decode_started). */
static const struct fields fields_of_kind[EVENT_KINDS] = {
    [EVENT_SUBMIT] = FIELDS(submit_fields),
    [EVENT_UPDATE] = FIELDS(update_fields),
    [EVENT_RESERVE] = FIELDS(reserve_fields),
    [EVENT_UNRESERVE] = FIELDS(unreserve_fields),
    [EVENT_ESTIMATE] = FIELDS(estimate_fields),
    [EVENT_RUN_AGAIN] = FIELDS(run_again_fields),
    [EVENT_STARTED] = FIELDS(started_fields),
    [EVENT_SAMPLE] = FIELDS(sample_fields),
    [EVENT_EXITED] = FIELDS(exited_fields),
    [EVENT_PLACE] = FIELDS(place_fields),
    [EVENT_END] = FIELDS(end_fields),
    [EVENT_RESTART] = FIELDS(restart_fields),
    [EVENT_METRIC] = FIELDS(metric_fields),
    [EVENT_STOP] = FIELDS(stop_fields),
    [EVENT_LATENCY] = FIELDS(latency_fields),
    [EVENT_SPEED] = FIELDS(speed_fields),
    [EVENT_SUSPENDING] = FIELDS(suspending_fields),
    [EVENT_MOVING] = FIELDS(moving_fields),
    [EVENT_PAUSE] = FIELDS(pause_fields),
    [EVENT_SUSPENDED] = FIELDS(yielded_fields),
    [EVENT_RESUMED] = FIELDS(yielded_fields),
    [EVENT_MOVED] = FIELDS(yielded_fields),
    [EVENT_RELOCATED] = FIELDS(yielded_fields),
    [EVENT_SUSPENSION_FAILED] = FIELDS(suspension_failed_fields),
    [EVENT_DEPENDENCY] = FIELDS(dependency_end_fields),
    [EVENT_MEMORY_WAIT] = FIELDS(memory_wait_fields),
    [EVENT_MEMORY_ANSWER] = FIELDS(memory_answer_fields),
    [EVENT_USAGE] = FIELDS(usage_fields),
    [EVENT_DELAYS] = FIELDS(delays_fields),
    [EVENT_LATEST_START] = FIELDS(latest_start_fields),
    [EVENT_FIFO] = FIELDS(fifo_fields),
    [EVENT_IDLE] = FIELDS(idle_fields),
    [EVENT_SUSPENSION_COST] = FIELDS(suspension_cost_fields),
};

/* ---- writing ---- */

static int64_t integer_at(const struct field *field, const void *at)
{
    switch (field->type) {
    case FIELD_BOOL:
        return *(const bool *)at;
    case FIELD_UINT32:
        return *(const uint32_t *)at;
    case FIELD_INT64:
        return *(const int64_t *)at;
    default:
        return *(const int *)at;
    }
}

static bool is_left_out(const struct field *field, const void *at)
{
    if (field->presence == REQUIRED)
        return false;
    if (field->type == FIELD_POLICY)
        return !*(const struct policy *const *)at;
    if (field->type == FIELD_FRACTION || field->type == FIELD_READING || field->type == FIELD_WHOLE)
        return !((const struct reading *)at)->valid;
    if (field->type == FIELD_TEXT)
        return !*(const char *)at;
    return integer_at(field, at) == 0;
}

/* Samples are many, and bytes are integers: those are written without ".0". */
static json_t *encode_reading(double value)
{
    bool is_integer = floor(value) == value && fabs(value) < EXACT_INTEGER_MAX &&
                      !(value == 0 && signbit(value));
    return is_integer ? json_integer((json_int_t)value) : json_real(value);
}

/* NULL for a text that is not UTF-8, a value without a name, or without memory. */
static json_t *encode_value(const struct field *field, const void *at)
{
    const char *name;
    switch (field->type) {
    case FIELD_BOOL:
        return json_boolean(*(const bool *)at);
    case FIELD_TEXT:
        return json_string(at);
    case FIELD_NAME:
        name = field->names->name(*(const int *)at);
        return name ? json_string(name) : NULL;
    case FIELD_POLICY:
        return json_string((*(const struct policy *const *)at)->name);
    case FIELD_FRACTION:
        return json_real(((const struct reading *)at)->value);
    case FIELD_READING:
        return encode_reading(((const struct reading *)at)->value);
    case FIELD_WHOLE: /* only an integer is read back */
        return json_integer(llround(((const struct reading *)at)->value));
    default:
        return json_integer(integer_at(field, at));
    }
}

/* Returns 0 or -1. */
static int encode_fields(json_t *object, const struct fields *fields, const void *from)
{
    for (size_t i = 0; i < fields->n; i++) {
        const struct field *field = &fields->field[i];
        const void *at = (const char *)from + field->offset;
        if (!is_left_out(field, at) &&
            json_object_set_new(object, field->key, encode_value(field, at)) < 0)
            return -1;
    }
    return 0;
}

/* A list of `n` objects, of which `list` holds each `size` bytes apart. Returns 0 or -1. */
static int encode_list(json_t *object, const char *key, const struct fields *fields,
    const void *list, size_t size, int n)
{
    json_t *array = json_array();
    for (int i = 0; i < n; i++) {
        json_t *entry = json_object();
        int r = entry ? encode_fields(entry, fields, (const char *)list + (size_t)i * size) : -1;
        if (json_array_append_new(array, entry) < 0 || r < 0) {
            json_decref(array);
            return -1;
        }
    }
    return json_object_set_new(object, key, array);
}

static int encode_indices(json_t *object, const int *gpus, int n)
{
    json_t *array = json_array();
    for (int i = 0; i < n; i++) {
        if (json_array_append_new(array, json_integer(gpus[i])) < 0) {
            json_decref(array);
            return -1;
        }
    }
    return json_object_set_new(object, "gpus", array);
}

static int encode_free(json_t *object, const int64_t *free_us, int n)
{
    json_t *list = json_array();
    int r = list ? 0 : -1;
    for (int i = 0; i < n && r == 0; i++)
        r = json_array_append_new(list, json_integer((json_int_t)free_us[i]));
    return json_object_set_new(object, "free_us", list) < 0 ? -1 : r;
}

/* A suspension names the neighbour GPU for its copy, if it has one. */
static bool names_destination(const struct event *event)
{
    enum event_kind kind = event->kind;
    return kind == EVENT_MOVE || kind == EVENT_MOVING || kind == EVENT_RESUMING ||
           (kind == EVENT_SUSPENDING && event->yield.n > 0);
}

/* The run at the front of the elements. */
static struct array_run first_run(const struct array_element *elements, int n)
{
    struct array_run run = {(int64_t)elements[0].task, elements[0].index, 0, 1};
    if (n > 1 && elements[1].task == elements[0].task + 1)
        run.step = elements[1].index - elements[0].index;
    while (run.count < n && run.step > 0 &&
           elements[run.count].task == elements[run.count - 1].task + 1 &&
           elements[run.count].index == elements[run.count - 1].index + run.step)
        run.count++;
    run.step = run.count > 1 ? run.step : 0;
    return run;
}

static int encode_array(json_t *object, const struct event *event)
{
    const struct array_element *elements = event->submit.elements;
    json_t *list = json_array();
    struct array_run run;
    for (int i = 0; i < event->submit.n_elements; i += run.count) {
        json_t *entry = json_object();
        run = first_run(elements + i, event->submit.n_elements - i);
        int r = entry ? encode_fields(entry, &run_fields, &run) : -1;
        if (json_array_append_new(list, entry) < 0 || r < 0) {
            json_decref(list);
            return -1;
        }
    }
    return json_object_set_new(object, "array", list);
}

/* The window has the buckets up to the oldest that is charged. */
static int encode_window(json_t *object, const struct usage_window *window)
{
    json_t *list = json_array();
    int r = list ? 0 : -1, n = USAGE_BUCKETS;
    while (n > 0 && window->charged_us[n - 1] <= 0)
        n--;
    for (int i = 0; i < n && r == 0; i++)
        r = json_array_append_new(list, json_integer((json_int_t)window->charged_us[i]));
    return json_object_set_new(object, "charged_us", list) < 0 ? -1 : r;
}

static int encode_users(json_t *object, const struct advance *advance)
{
    json_t *users = json_array();
    int r = users ? 0 : -1;
    for (int i = 0; i < advance->n_users && r == 0; i++)
        r = json_array_append_new(users, json_integer(advance->users[i]));
    return json_object_set_new(object, "users", users) < 0 ? -1 : r;
}

static int encode_gpus(json_t *object, const struct event *event)
{
    if (event->gpus.keeps_samples && json_object_set_new(object, "keeps_samples", json_true()) < 0)
        return -1;
    return encode_list(object, "gpus", &gpu_identity_fields, event->gpus.list,
        sizeof *event->gpus.list, event->gpus.n);
}

static int encode_body(json_t *object, const struct event *event)
{
    const struct core_sample *sample = &event->sample;
    const struct task_request *request = &event->submit.request;
    int r = 0;
    if (event->kind == EVENT_GPUS)
        r = encode_gpus(object, event);
    else if (event->kind == EVENT_PLACE)
        r = encode_indices(object, event->place.gpus, event->place.n);
    else if (names_destination(event))
        r = encode_indices(object, event->yield.gpus, event->yield.n);
    else if (event->kind == EVENT_FIFO)
        r = encode_free(object, event->fifo.free_us, event->fifo.n);
    else if (event->kind == EVENT_STARTED && event->started.by_streams)
        r = json_object_set_new(object, "sharing", json_string(sharing_name(SHARING_STREAMS)));
    if (r == 0)
        r = encode_fields(object, &fields_of_kind[event->kind], event);
    if (r == 0 && event->kind == EVENT_SUBMIT && request->gpu_kind)
        r = json_object_set_new(object, "gpu_kind", json_string(request->gpu_kind));
    if (r == 0 && event->kind == EVENT_SUBMIT && request->n_after)
        r = encode_list(object, "after", &after_fields, request->after, sizeof *request->after,
            request->n_after);
    if (r == 0 && event->kind == EVENT_RESERVE)
        r = encode_users(object, &event->reserve);
    if (r == 0 && event->kind == EVENT_USAGE && event->usage.window.length_us)
        r = encode_window(object, &event->usage.window);
    if (r == 0 && event->kind == EVENT_UPDATE && event->update.n_after)
        r = encode_list(object, "after", &after_fields, event->update.after,
            sizeof *event->update.after, event->update.n_after);
    if (r == 0 && event->kind == EVENT_SUBMIT && event->submit.elements)
        r = encode_array(object, event);
    if (r == 0 && event->kind == EVENT_SAMPLE && sample->n_tasks)
        r = encode_list(object, "tasks", &sample_task_fields, sample->tasks, sizeof *sample->tasks,
            sample->n_tasks);
    return r;
}

int event_encode(const struct event *event, struct fault *fault, json_t **ret_body)
{
    json_t *object = json_object();
    if (object && encode_body(object, event) == 0) {
        *ret_body = object;
        return 0;
    }
    json_decref(object);
    return fault_set(fault, EINVAL,
        "%s cannot be written as JSON: a text in it is not UTF-8, or memory is out",
        event_name(event->kind));
}

/* ---- reading ---- */

struct decoding {
    store_find_policy *find_policy;
    struct fault *fault;
};

static int decode_integer(const struct decoding *decoding, const struct field *field,
    const json_t *value, int64_t *ret_value)
{
    if (!json_is_integer(value))
        return fault_set(decoding->fault, EINVAL, "%s: missing, or not an integer", field->key);
    *ret_value = json_integer_value(value);
    if (*ret_value < field->min || *ret_value > field->max)
        return fault_set(
            decoding->fault, EINVAL, "%s: %lld is out of range", field->key, (long long)*ret_value);
    return 0;
}

static int decode_bool(const struct decoding *decoding, const struct field *field,
    const json_t *value, bool *ret_value)
{
    if (!json_is_boolean(value))
        return fault_set(
            decoding->fault, EINVAL, "%s: missing, or neither true nor false", field->key);
    *ret_value = json_is_true(value);
    return 0;
}

static int decode_text(const struct decoding *decoding, const struct field *field,
    const json_t *value, const char **ret_text)
{
    *ret_text = json_string_value(value);
    return *ret_text ? 0
                     : fault_set(decoding->fault, EINVAL, "%s: missing, or not a text", field->key);
}

static int copy_text(
    const struct decoding *decoding, const struct field *field, const char *text, char *buffer)
{
    size_t length = strlen(text);
    if (length >= (size_t)field->max)
        return fault_set(decoding->fault, EINVAL, "%s: longer than %lld bytes", field->key,
            (long long)field->max - 1);
    memcpy(buffer, text, length + 1);
    return 0;
}

static int unknown_name(
    const struct decoding *decoding, const struct field *field, const char *name)
{
    return fault_set(decoding->fault, EINVAL, "%s: '%.100s' is not known here", field->key, name);
}

static int decode_name(
    const struct decoding *decoding, const struct field *field, const char *name, int *ret_value)
{
    for (int i = 0; i < field->names->n; i++) {
        const char *known = field->names->name(i);
        if (known && strcmp(known, name) == 0) {
            *ret_value = i;
            return 0;
        }
    }
    return unknown_name(decoding, field, name);
}

static int decode_policy(const struct decoding *decoding, const struct field *field,
    const char *name, const struct policy **ret_policy)
{
    *ret_policy = decoding->find_policy(name);
    return *ret_policy ? 0 : unknown_name(decoding, field, name);
}

static int decode_reading(const struct decoding *decoding, const struct field *field,
    const json_t *value, struct reading *ret_reading)
{
    double number = json_number_value(value);
    if (!json_is_number(value))
        return fault_set(decoding->fault, EINVAL, "%s: not a number", field->key);
    if (field->type == FIELD_FRACTION && !(number >= 0 && number <= 1))
        return fault_set(decoding->fault, EINVAL, "%s: not a number from 0 to 1", field->key);
    *ret_reading = reading_of(number);
    return 0;
}

static void store_integer(const struct field *field, int64_t value, void *at)
{
    if (field->type == FIELD_INT)
        *(int *)at = (int)value;
    else if (field->type == FIELD_UINT32)
        *(uint32_t *)at = (uint32_t)value;
    else if (field->type == FIELD_WHOLE)
        *(struct reading *)at = reading_of((double)value);
    else
        *(int64_t *)at = value;
}

static int decode_field(
    const struct decoding *decoding, const struct field *field, const json_t *value, void *at)
{
    int64_t integer = 0;
    const char *text = NULL;
    int r;
    if (!value && field->presence == OPTIONAL)
        return 0;
    switch (field->type) {
    case FIELD_BOOL:
        return decode_bool(decoding, field, value, at);
    case FIELD_FRACTION:
    case FIELD_READING:
        return decode_reading(decoding, field, value, at);
    case FIELD_TEXT:
        r = decode_text(decoding, field, value, &text);
        return r < 0 ? r : copy_text(decoding, field, text, at);
    case FIELD_NAME:
        r = decode_text(decoding, field, value, &text);
        return r < 0 ? r : decode_name(decoding, field, text, at);
    case FIELD_POLICY:
        r = decode_text(decoding, field, value, &text);
        return r < 0 ? r : decode_policy(decoding, field, text, at);
    default:
        r = decode_integer(decoding, field, value, &integer);
        if (r == 0)
            store_integer(field, integer, at);
        return r;
    }
}

static int decode_fields(
    const struct decoding *decoding, const struct fields *fields, const json_t *object, void *to)
{
    size_t left = json_object_size(object); /* members: most optional ones are left out, last */
    int r = 0;
    for (size_t i = 0; i < fields->n && r == 0; i++) {
        const struct field *field = &fields->field[i];
        const json_t *value = left ? json_object_get(object, field->key) : NULL;
        left -= value != NULL;
        r = decode_field(decoding, field, value, (char *)to + field->offset);
    }
    return r;
}

/* Allocates zeroed entries of a list, for the caller to free. */
static int open_list(const struct decoding *decoding, const json_t *list, const char *key,
    size_t size, void **ret_entries, int *ret_n)
{
    size_t n = json_array_size(list);
    if (!json_is_array(list) || n > INT_MAX)
        return fault_set(decoding->fault, EINVAL, "%s: missing, or not a list", key);
    *ret_entries = calloc(n + 1, size);
    if (!*ret_entries)
        return fault_set(decoding->fault, ENOMEM, "out of memory");
    *ret_n = (int)n;
    return 0;
}

/* A list of objects, as encode_list writes it. */
static int decode_list(const struct decoding *decoding, const json_t *list, const char *key,
    const struct fields *fields, size_t size, void **ret_entries, int *ret_n)
{
    int r = open_list(decoding, list, key, size, ret_entries, ret_n);
    if (r < 0)
        return r;
    for (int i = 0; i < *ret_n; i++) {
        r = decode_fields(decoding, fields, json_array_get(list, (size_t)i),
            (char *)*ret_entries + (size_t)i * size);
        if (r < 0) {
            free(*ret_entries);
            *ret_entries = NULL;
            *ret_n = 0;
            fault_prefix(decoding->fault, r, "%s, entry %d", key, i);
            return r;
        }
    }
    return 0;
}

static int decode_gpus(const struct decoding *decoding, const json_t *body, struct event *event)
{
    void *gpus;
    int r = decode_list(decoding, json_object_get(body, "gpus"), "gpus", &gpu_identity_fields,
        sizeof *event->gpus.list, &gpus, &event->gpus.n);
    if (r == 0)
        event->gpus.list = gpus;
    event->gpus.keeps_samples = json_is_true(json_object_get(body, "keeps_samples"));
    return r;
}

static int decode_indices(
    const struct decoding *decoding, const json_t *body, const int **ret_gpus, int *ret_n)
{
    const json_t *list = json_object_get(body, "gpus");
    void *entries;
    int n, r = open_list(decoding, list, "gpus", sizeof **ret_gpus, &entries, &n);
    if (r < 0)
        return r;
    int *gpus = entries;
    for (int i = 0; i < n; i++) {
        json_int_t index = json_integer_value(json_array_get(list, (size_t)i));
        if (!json_is_integer(json_array_get(list, (size_t)i)) || index < 0 || index > INT_MAX) {
            free(gpus);
            return fault_set(decoding->fault, EINVAL, "gpus, entry %d: not the index of a GPU", i);
        }
        gpus[i] = (int)index;
    }
    *ret_gpus = gpus;
    *ret_n = n;
    return 0;
}

static int decode_sample_tasks(
    const struct decoding *decoding, const json_t *body, struct event *event)
{
    const json_t *list = json_object_get(body, "tasks");
    void *tasks;
    int r = list ? decode_list(decoding, list, "tasks", &sample_task_fields,
                       sizeof *event->sample.tasks, &tasks, &event->sample.n_tasks)
                 : 0;
    if (list && r == 0)
        event->sample.tasks = tasks;
    return r;
}

static int decode_after(const struct decoding *decoding, const json_t *body,
    const struct dependency **ret_after, int *ret_n)
{
    const json_t *list = json_object_get(body, "after");
    void *after;
    int r = list ? decode_list(
                       decoding, list, "after", &after_fields, sizeof **ret_after, &after, ret_n)
                 : 0;
    if (list && r == 0)
        *ret_after = after;
    return r;
}

static int decode_users(
    const struct decoding *decoding, const json_t *body, struct advance *advance)
{
    const json_t *list = json_object_get(body, "users"), *each;
    size_t i;
    json_array_foreach(list, i, each) {
        json_int_t uid = json_integer_value(each);
        if (i == ADVANCE_USERS_MAX || !json_is_integer(each) || uid < 0 || uid > UINT32_MAX)
            return fault_set(decoding->fault, EINVAL, "users: not a list of up to %d user ids",
                ADVANCE_USERS_MAX);
        advance->users[advance->n_users++] = (uint32_t)uid;
    }
    return 0;
}

static int decode_window(
    const struct decoding *decoding, const json_t *body, struct usage_window *window)
{
    const json_t *list = json_object_get(body, "charged_us"), *each;
    size_t i;
    json_array_foreach(list, i, each) {
        json_int_t charged_us = json_integer_value(each);
        if (i == USAGE_BUCKETS || !json_is_integer(each) || charged_us < 0 ||
            charged_us > EVENT_NUMBER_MAX)
            return fault_set(decoding->fault, EINVAL,
                "charged_us: not a list of up to %d times in microseconds", USAGE_BUCKETS);
        window->charged_us[i] = (double)charged_us;
    }
    return 0;
}

static int decode_free(const struct decoding *decoding, const json_t *body, struct event *event)
{
    const json_t *list = json_object_get(body, "free_us"), *each;
    void *entries;
    size_t i;
    int r = open_list(
        decoding, list, "free_us", sizeof *event->fifo.free_us, &entries, &event->fifo.n);
    if (r < 0)
        return r;
    int64_t *free_us = entries;
    json_array_foreach(list, i, each) {
        free_us[i] = json_integer_value(each);
        if (!json_is_integer(each) || free_us[i] < 0 || free_us[i] > EVENT_NUMBER_MAX) {
            free(free_us);
            return fault_set(
                decoding->fault, EINVAL, "free_us, entry %d: not a time in microseconds", (int)i);
        }
    }
    event->fifo.free_us = free_us;
    return 0;
}

static int64_t count_elements(const struct array_run *runs, int n)
{
    int64_t count = 0;
    for (int i = 0; i < n; i++)
        count += runs[i].count;
    return count;
}

static void fill_elements(const struct array_run *runs, int n, struct array_element *elements)
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k < runs[i].count; k++)
            *elements++ = (struct array_element){(uint64_t)(runs[i].task + k),
                (int)((runs[i].index + (int64_t)k * runs[i].step) % ARRAY_NUMBER_MAX)};
}

static int decode_array(const struct decoding *decoding, const json_t *body, struct event *event)
{
    const json_t *list = json_object_get(body, "array");
    void *runs;
    int n;
    int r = list ? decode_list(
                       decoding, list, "array", &run_fields, sizeof(struct array_run), &runs, &n)
                 : 0;
    if (!list || r < 0)
        return r;
    int64_t count = count_elements(runs, n);
    struct array_element *elements = count <= ARRAY_ELEMENTS_MAX
                                         ? calloc((size_t)count + 1, sizeof *elements)
                                         : NULL;
    if (elements)
        fill_elements(runs, n, elements);
    free(runs);
    if (!elements)
        return fault_set(
            decoding->fault, EINVAL, "array: more than %d tasks, or no memory", ARRAY_ELEMENTS_MAX);
    event->submit.elements = elements;
    event->submit.n_elements = (int)count;
    return 0;
}

/* The kinds are copied, for event_release to free. */
static int decode_gpu_kind(
    const struct decoding *decoding, const json_t *body, struct task_request *request)
{
    static const struct field field = {.key = "gpu_kind", .max = TASK_GPU_LIST_SIZE};
    const json_t *value = json_object_get(body, field.key);
    char kinds[TASK_GPU_LIST_SIZE];
    const char *text;
    int r = value ? decode_text(decoding, &field, value, &text) : 0;
    if (!value || r < 0 || (r = copy_text(decoding, &field, text, kinds)) < 0 || !*kinds)
        return r;
    request->gpu_kind = strdup(kinds);
    return request->gpu_kind ? 0 : fault_set(decoding->fault, ENOMEM, "out of memory");
}

static int decode_submit(const struct decoding *decoding, const json_t *body, struct event *event)
{
    struct task_request *request = &event->submit.request;
    int r = decode_gpu_kind(decoding, body, request);
    if (r == 0)
        r = decode_after(decoding, body, &request->after, &request->n_after);
    if (r == 0)
        r = decode_array(decoding, body, event);
    if (r < 0)
        event_release(event);
    return r;
}

/* An attempt that was placed as an MPS client, but got no server. */
static int decode_started(const struct decoding *decoding, const json_t *body, struct event *event)
{
    static const struct field field = {
        .key = "sharing", .type = FIELD_NAME, .presence = OPTIONAL, .names = &requested_sharings};
    int sharing = SHARING_AUTO;
    int r = decode_field(decoding, &field, json_object_get(body, "sharing"), &sharing);
    event->started.by_streams = r == 0 && sharing == SHARING_STREAMS;
    return r;
}

int event_decode(
    const json_t *body, store_find_policy *find_policy, struct fault *fault, struct event *event)
{
    const struct decoding decoding = {find_policy, fault};
    if (!json_is_object(body))
        return fault_set(fault, EINVAL, "not a JSON object");
    int r = decode_fields(&decoding, &fields_of_kind[event->kind], body, event);
    if (r < 0)
        return r;
    switch (event->kind) {
    case EVENT_SUBMIT:
        return decode_submit(&decoding, body, event);
    case EVENT_RESERVE:
        return decode_users(&decoding, body, &event->reserve);
    case EVENT_USAGE:
        return decode_window(&decoding, body, &event->usage.window);
    case EVENT_UPDATE:
        return decode_after(&decoding, body, &event->update.after, &event->update.n_after);
    case EVENT_GPUS:
        return decode_gpus(&decoding, body, event);
    case EVENT_FIFO:
        return decode_free(&decoding, body, event);
    case EVENT_PLACE:
        return decode_indices(&decoding, body, &event->place.gpus, &event->place.n);
    case EVENT_SUSPENDING:
        if (!json_object_get(body, "gpus"))
            return 0;
        return decode_indices(&decoding, body, &event->yield.gpus, &event->yield.n);
    case EVENT_MOVE:
    case EVENT_MOVING:
    case EVENT_RESUMING:
        return decode_indices(&decoding, body, &event->yield.gpus, &event->yield.n);
    case EVENT_SAMPLE:
        return decode_sample_tasks(&decoding, body, event);
    case EVENT_STARTED:
        return decode_started(&decoding, body, event);
    default:
        return 0;
    }
}
