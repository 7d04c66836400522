/* SPDX-License-Identifier: Apache-2.0 */
/* The order of the rows is the order of the keys in the log: a new row comes last in its table, and
 * is OPTIONAL, so that events of earlier versions are still read. */
#include "store/event_fields.h"

#include <assert.h>
#include <limits.h>

#include "core/policy.h"
#include "core/sharing_choice.h"

/* Chosen, as ARRAY_NUMBER_MAX. */
enum { HOST_CPUS_MAX = 10000 };
#define HOST_BYTES_MAX (INT64_C(1) << 50)

/* ---- names ---- */

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
const struct names event_sharing_names = {requested_sharing_name, SHARING_AUTO + 1};
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

/* ---- rows ---- */

/* clang-format off */
#define AT(member) offsetof(struct gpu_identity, member)
static const struct field gpu_rows[] = {
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
static const struct field task_memory_rows[] = {
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
static const struct field dependency_rows[] = {
    {"kind", FIELD_NAME, AT(kind), REQUIRED, 0, 0, &dependency_kinds},
    {"first", FIELD_INT64, AT(first), REQUIRED, 1, INT64_MAX, NULL},
    {"last", FIELD_INT64, AT(last), REQUIRED, 1, INT64_MAX, NULL},
    {"each", FIELD_BOOL, AT(each), OPTIONAL, 0, 0, NULL},
};
#undef AT

#define AT(member) offsetof(struct array_run, member)
static const struct field array_run_rows[] = {
    {"task", FIELD_INT64, AT(task), REQUIRED, 1, INT64_MAX - INT_MAX, NULL},
    {"index", FIELD_INT, AT(index), REQUIRED, 0, ARRAY_NUMBER_MAX, NULL},
    {"step", FIELD_INT, AT(step), OPTIONAL, 0, ARRAY_NUMBER_MAX, NULL},
    {"count", FIELD_INT, AT(count), REQUIRED, 1, ARRAY_NUMBER_MAX, NULL},
};
#undef AT

#define AT(member) offsetof(struct event, member)
static const struct field submit_rows[] = {
    {"uid", FIELD_UINT32, AT(submit.uid), REQUIRED, 0, UINT32_MAX, NULL},
    {"held", FIELD_BOOL, AT(submit.held), REQUIRED, 0, 0, NULL},
    {"gpus", FIELD_INT, AT(submit.request.gpus), REQUIRED, 0, INT_MAX, NULL},
    {"nodes", FIELD_INT, AT(submit.request.nodes), OPTIONAL, 1, INT_MAX, NULL},
    {"policy", FIELD_POLICY, AT(submit.request.policy), OPTIONAL, 0, 0, NULL},
    {"exclusive", FIELD_BOOL, AT(submit.request.exclusive), REQUIRED, 0, 0, NULL},
    {"slot", FIELD_BOOL, AT(submit.request.takes_turns), OPTIONAL, 0, 0, NULL},
    {"sharing", FIELD_NAME, AT(submit.request.sharing), REQUIRED, 0, 0, &event_sharing_names},
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

static const struct field update_rows[] = {
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

static const struct field reserve_rows[] = {
    {"id", FIELD_INT64, AT(reserve.id), REQUIRED, 1, INT64_MAX, NULL},
    {"gpus", FIELD_INT, AT(reserve.gpus), REQUIRED, 1, INT_MAX, NULL},
    {"from_us", FIELD_INT64, AT(reserve.from_us), REQUIRED, 0, EVENT_NUMBER_MAX, NULL},
    {"until_us", FIELD_INT64, AT(reserve.until_us), REQUIRED, 0, EVENT_NUMBER_MAX, NULL},
};

static const struct field unreserve_rows[] = {
    {"id", FIELD_INT64, AT(unreserve), REQUIRED, 1, INT64_MAX, NULL},
};

static const struct field estimate_rows[] = {
    {"need", FIELD_NAME, AT(estimate.need.kind), REQUIRED, 0, 0, &need_kinds},
    {"need_bytes", FIELD_INT64, AT(estimate.need.bytes), REQUIRED, 0, EVENT_NUMBER_MAX, NULL},
    {"smact", FIELD_READING, AT(estimate.smact), OPTIONAL, 0, 0, NULL},
};

static const struct field run_again_rows[] = {
    {"need_bytes", FIELD_INT64, AT(run_again_bytes), OPTIONAL, 1, EVENT_NUMBER_MAX, NULL},
};

static const struct field started_rows[] = {
    {"has_library", FIELD_BOOL, AT(started.has_library), OPTIONAL, 0, 0, NULL},
};

static const struct field sample_rows[] = {
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

static const struct field exited_rows[] = {
    {"failure", FIELD_NAME, AT(exited.failure), REQUIRED, 0, 0, &failures},
    {"code", FIELD_INT, AT(exited.code), REQUIRED, INT_MIN, INT_MAX, NULL},
    {"signal", FIELD_INT, AT(exited.signal), REQUIRED, 0, INT_MAX, NULL},
    {"ended_us", FIELD_INT64, AT(exited.ended_us), OPTIONAL, 1, INT64_MAX, NULL},
    {"by_gpu", FIELD_BOOL, AT(exited.by_gpu), OPTIONAL, 0, 0, NULL},
};

static const struct field place_rows[] = {
    {"whole", FIELD_BOOL, AT(place.exclusive), REQUIRED, 0, 0, NULL},
    {"sharing", FIELD_NAME, AT(place.share.sharing), REQUIRED, 0, 0, &attempt_sharings},
    {"why", FIELD_NAME, AT(place.share.reason), OPTIONAL, 0, 0, &reasons},
    {"thread_percent", FIELD_INT, AT(place.share.thread_percent), OPTIONAL, 1, 100, NULL},
    {"mem_limit_bytes", FIELD_INT64, AT(place.share.mem_limit_bytes), OPTIONAL, 1, EVENT_NUMBER_MAX, NULL},
};

static const struct field end_rows[] = {
    {"state", FIELD_NAME, AT(end), REQUIRED, 0, 0, &end_states},
};

static const struct field pause_rows[] = {
    {"why", FIELD_NAME, AT(yield.reason), REQUIRED, 0, 0, &yield_reasons},
    {"for", FIELD_INT64, AT(yield.to_task), OPTIONAL, 1, INT64_MAX, NULL},
    {"until_us", FIELD_INT64, AT(yield.until_us), OPTIONAL, 1, INT64_MAX, NULL},
};

static const struct field suspending_rows[] = {
    {"why", FIELD_NAME, AT(yield.reason), REQUIRED, 0, 0, &yield_reasons},
    {"for", FIELD_INT64, AT(yield.to_task), OPTIONAL, 1, INT64_MAX, NULL},
    {"bytes", FIELD_WHOLE, AT(yield.bytes), OPTIONAL, 1, EVENT_NUMBER_MAX, NULL},
    {"keeps_context", FIELD_BOOL, AT(yield.keeps_context), OPTIONAL, 0, 0, NULL},
};

static const struct field moving_rows[] = {
    {"why", FIELD_NAME, AT(yield.reason), REQUIRED, 0, 0, &yield_reasons},
    {"for", FIELD_INT64, AT(yield.to_task), OPTIONAL, 1, INT64_MAX, NULL},
    {"bytes", FIELD_WHOLE, AT(yield.bytes), OPTIONAL, 1, EVENT_NUMBER_MAX, NULL},
};

static const struct field yielded_rows[] = {
    {"bytes", FIELD_WHOLE, AT(yielded.bytes), OPTIONAL, 1, EVENT_NUMBER_MAX, NULL},
    {"took_us", FIELD_INT64, AT(yielded.took_us), OPTIONAL, 1, EVENT_NUMBER_MAX, NULL},
    {"context_bytes", FIELD_WHOLE, AT(yielded.context_bytes), OPTIONAL, 1, EVENT_NUMBER_MAX, NULL},
    {"ranks", FIELD_BOOL, AT(yielded.has_ranks), OPTIONAL, 0, 0, NULL},
    {"copy_bytes", FIELD_WHOLE, AT(yielded.copy_bytes), OPTIONAL, 1, EVENT_NUMBER_MAX, NULL},
};

static const struct field suspension_failed_rows[] = {
    {"why", FIELD_NAME, AT(suspension_failed.why), REQUIRED, 0, 0, &suspension_failures},
    {"suspended", FIELD_BOOL, AT(suspension_failed.is_suspended), REQUIRED, 0, 0, NULL},
};

static const struct field dependency_end_rows[] = {
    {"kind", FIELD_NAME, AT(dependency.dependency.kind), REQUIRED, 0, 0, &dependency_kinds},
    {"first", FIELD_INT64, AT(dependency.dependency.first), REQUIRED, 1, INT64_MAX, NULL},
    {"last", FIELD_INT64, AT(dependency.dependency.last), REQUIRED, 1, INT64_MAX, NULL},
    {"holds", FIELD_BOOL, AT(dependency.holds), REQUIRED, 0, 0, NULL},
    {"by", FIELD_INT64, AT(dependency.by), OPTIONAL, 1, INT64_MAX, NULL},
};

static const struct field memory_wait_rows[] = {
    {"bytes", FIELD_INT64, AT(memory_wait.bytes), REQUIRED, 1, EVENT_NUMBER_MAX, NULL},
    {"again", FIELD_BOOL, AT(memory_wait.is_again), OPTIONAL, 0, 0, NULL},
};

static const struct field usage_rows[] = {
    {"uid", FIELD_UINT32, AT(usage.uid), REQUIRED, 0, UINT32_MAX, NULL},
    {"usage_us", FIELD_INT64, AT(usage.usage_us), REQUIRED, 0, EVENT_NUMBER_MAX, NULL},
    {"window_us", FIELD_INT64, AT(usage.window.length_us), OPTIONAL, 1, EVENT_NUMBER_MAX, NULL},
};

static const struct field delays_rows[] = {
    {"uid", FIELD_UINT32, AT(delays.uid), REQUIRED, 0, UINT32_MAX, NULL},
    {"sharing", FIELD_NAME, AT(delays.sharing), REQUIRED, 0, 0, &attempt_sharings},
    {"measured_us", FIELD_INT64, AT(delays.measured_us), REQUIRED, 0, EVENT_NUMBER_MAX, NULL},
    {"predicted_us", FIELD_INT64, AT(delays.predicted_us), REQUIRED, 0, EVENT_NUMBER_MAX, NULL},
};

static const struct field idle_rows[] = {
    {"idle_us", FIELD_INT64, AT(idle_us), REQUIRED, 0, EVENT_NUMBER_MAX, NULL},
};

static const struct field latest_start_rows[] = {
    {"latest_us", FIELD_INT64, AT(latest_start_us), REQUIRED, 0, EVENT_NUMBER_MAX, NULL},
};

static const struct field fifo_rows[] = {
    {"last_start_us", FIELD_INT64, AT(fifo.last_start_us), REQUIRED, 0, EVENT_NUMBER_MAX, NULL},
};

static const struct field restart_rows[] = {
    {"begin_us", FIELD_INT64, AT(restart_us), REQUIRED, 0, EVENT_NUMBER_MAX, NULL},
};

static const struct field metric_rows[] = {
    {"task", FIELD_INT64, AT(metric.task), REQUIRED, 1, INT64_MAX, NULL},
    {"rung", FIELD_INT, AT(metric.rung), REQUIRED, 0, STOP_RUNGS_MAX - 1, NULL},
    {"value", FIELD_READING, AT(metric.value), OPTIONAL, 0, 0, NULL},
};

static const struct field stop_rows[] = {
    {"rung", FIELD_INT, AT(stop.rung), REQUIRED, 0, STOP_RUNGS_MAX - 1, NULL},
    {"rank", FIELD_INT, AT(stop.rank), REQUIRED, 1, ARRAY_NUMBER_MAX, NULL},
    {"of", FIELD_INT, AT(stop.of), REQUIRED, 1, ARRAY_NUMBER_MAX, NULL},
};

static const struct field latency_rows[] = {
    {"p99_us", FIELD_WHOLE, AT(p99_us), OPTIONAL, 0, EVENT_NUMBER_MAX, NULL},
};

static const struct field speed_rows[] = {
    {"slowdown", FIELD_READING, AT(slowdown), OPTIONAL, 0, 0, NULL},
    {"step_us", FIELD_READING, AT(step_us), OPTIONAL, 0, 0, NULL},
};

static const struct field suspension_cost_rows[] = {
    {"way", FIELD_NAME, AT(suspension_cost.way), OPTIONAL, 0, 0, &suspension_ways},
    {"of_gpu", FIELD_INT, AT(suspension_cost.of_gpu), OPTIONAL, 1, 1000000, NULL},
    {"fixed_us", FIELD_INT64, AT(suspension_cost.cost.fixed_us), REQUIRED, 0, EVENT_NUMBER_MAX, NULL},
    {"suspend_us_per_gib", FIELD_INT64, AT(suspension_cost.cost.suspend_us_per_gib), REQUIRED, 0, EVENT_NUMBER_MAX, NULL},
    {"resume_us_per_gib", FIELD_INT64, AT(suspension_cost.cost.resume_us_per_gib), REQUIRED, 0, EVENT_NUMBER_MAX, NULL},
};

static const struct field memory_answer_rows[] = {
    {"granted", FIELD_BOOL, AT(memory_granted), REQUIRED, 0, 0, NULL},
};
#undef AT
/* clang-format on */

const struct fields gpu_identity_fields = FIELDS(gpu_rows);
const struct fields array_run_fields = FIELDS(array_run_rows);
const struct fields dependency_fields = FIELDS(dependency_rows);
const struct fields task_memory_fields = FIELDS(task_memory_rows);

const struct fields event_fields[EVENT_KINDS] = {
    [EVENT_SUBMIT] = FIELDS(submit_rows),
    [EVENT_UPDATE] = FIELDS(update_rows),
    [EVENT_RESERVE] = FIELDS(reserve_rows),
    [EVENT_UNRESERVE] = FIELDS(unreserve_rows),
    [EVENT_ESTIMATE] = FIELDS(estimate_rows),
    [EVENT_RUN_AGAIN] = FIELDS(run_again_rows),
    [EVENT_STARTED] = FIELDS(started_rows),
    [EVENT_SAMPLE] = FIELDS(sample_rows),
    [EVENT_EXITED] = FIELDS(exited_rows),
    [EVENT_PLACE] = FIELDS(place_rows),
    [EVENT_END] = FIELDS(end_rows),
    [EVENT_RESTART] = FIELDS(restart_rows),
    [EVENT_METRIC] = FIELDS(metric_rows),
    [EVENT_STOP] = FIELDS(stop_rows),
    [EVENT_LATENCY] = FIELDS(latency_rows),
    [EVENT_SPEED] = FIELDS(speed_rows),
    [EVENT_SUSPENDING] = FIELDS(suspending_rows),
    [EVENT_MOVING] = FIELDS(moving_rows),
    [EVENT_PAUSE] = FIELDS(pause_rows),
    [EVENT_SUSPENDED] = FIELDS(yielded_rows),
    [EVENT_RESUMED] = FIELDS(yielded_rows),
    [EVENT_MOVED] = FIELDS(yielded_rows),
    [EVENT_RELOCATED] = FIELDS(yielded_rows),
    [EVENT_SUSPENSION_FAILED] = FIELDS(suspension_failed_rows),
    [EVENT_DEPENDENCY] = FIELDS(dependency_end_rows),
    [EVENT_MEMORY_WAIT] = FIELDS(memory_wait_rows),
    [EVENT_MEMORY_ANSWER] = FIELDS(memory_answer_rows),
    [EVENT_USAGE] = FIELDS(usage_rows),
    [EVENT_DELAYS] = FIELDS(delays_rows),
    [EVENT_LATEST_START] = FIELDS(latest_start_rows),
    [EVENT_FIFO] = FIELDS(fifo_rows),
    [EVENT_IDLE] = FIELDS(idle_rows),
    [EVENT_SUSPENSION_COST] = FIELDS(suspension_cost_rows),
};
