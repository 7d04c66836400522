/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records metrics over time in a database. Samples come many times a second, in the loop. They are
 * only collected there:
 *
 *     loop     add, add, add ...  | every few seconds the batch goes to the thread; more seldom
 *                                 | while no task runs, for a batch costs more than its samples
 *     thread                      | reads the tasks' processes (exec/process_usage.h), writes the
 *                                 | batch in one transaction, and once a minute thins and prunes
 *
 * The thread has the database to itself, so queries run there, too, between batches.
 *
 * Reading processes costs a pass over /proc. It is done with each batch, but so seldom that it
 * takes at most a thousandth of one processor (USAGE_SHARE).
 */
#include "daemon/metrics/metric_recorder.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/units.h"
#include "exec/process_usage.h"
#include "service/aligned_timer.h"

#define MAINTENANCE_US (60 * SECOND_US) /* between two; chosen */
#define BATCHES_MAX    12               /* waiting for a slow disk; chosen: a minute */
#define USAGE_SHARE    0.001
#define HOUR_MS        3600000LL

/* Samples of one series in a batch. */
struct collected {
    struct metric_key key;
    char label[METRIC_LABEL_SIZE]; /* "": the task's id */
    size_t count, times_capacity, values_capacity;
    int64_t *at_ms;
    float *values;
};

struct batch {
    struct collected *series;
    size_t count, capacity;
    size_t hint;      /* where the last sample went: the next one's series follows it */
    int64_t begun_us; /* clock_monotonic_us */
    int64_t first_ms; /* wall clock of the first sample; 0: there is none yet */
    struct metric_root *roots;
    size_t n_roots;
    bool has_tasks; /* samples of a task */
};

struct work {
    struct work *next;
    struct batch *batch; /* to write; or */
    struct metric_query *query;
    char *head;
    metric_on_answer *on_answer;
    void *context;
    char *answer;
    struct fault fault; /* of either */
    bool has_failed;
};

struct work_list {
    struct work *first, *last;
};

/* A task's totals when its processes were read last. */
struct former_usage {
    struct metric_root root;
    int64_t at_us;
    struct process_usage usage;
};

struct metric_recorder {
    const struct core *core;
    struct attempts *attempts;
    const struct jobs *jobs;
    struct disk *disk;
    struct batch *batch;   /* under way */
    uint64_t batch_ms;     /* how long a batch may be */
    int64_t idle_batch_us; /* the same of GPUs without tasks */
    uv_timer_t *timer;
    uv_async_t *wake; /* work is done */
    uv_thread_t thread;
    bool is_running;

    uv_mutex_t mutex;
    uv_cond_t has_work;
    struct work_list todo, done;
    int batches_waiting;
    bool is_ending;

    /* The thread's. */
    struct metric_db *db;
    int64_t bytes_max;
    int64_t maintained_us; /* 0: never */
    int64_t usage_not_before_us;
    struct former_usage *former;
    size_t n_former;
};

/* ---- work of the thread ---- */

static void append_work(struct work_list *list, struct work *work)
{
    work->next = NULL;
    if (list->last)
        list->last->next = work;
    else
        list->first = work;
    list->last = work;
}

static struct work *take_work(struct work_list *list)
{
    struct work *work = list->first;
    if (work)
        list->first = work->next;
    if (!list->first)
        list->last = NULL;
    return work;
}

static void batch_free(struct batch *batch)
{
    if (!batch)
        return;
    for (size_t i = 0; i < batch->count; i++) {
        free(batch->series[i].at_ms);
        free(batch->series[i].values);
    }
    free(batch->series);
    free(batch->roots);
    free(batch);
}

static void work_free(struct work *work)
{
    batch_free(work->batch);
    free(work->query);
    free(work->head);
    free(work->answer);
    free(work);
}

/* ---- collecting ---- */

static struct collected *find_collected(
    struct batch *batch, const struct metric_key *key, const char *label)
{
    for (size_t i = 0; i < batch->count; i++) {
        size_t at = (batch->hint + 1 + i) % batch->count;
        struct collected *series = &batch->series[at];
        if (series->key.task == key->task && strcmp(series->key.gpu, key->gpu) == 0) {
            batch->hint = at;
            return series;
        }
    }
    if (ARRAY_APPEND(
            batch->series, batch->count, batch->capacity, (struct collected){.key = *key}) < 0)
        return NULL;
    batch->hint = batch->count - 1;
    snprintf(batch->series[batch->hint].label, METRIC_LABEL_SIZE, "%s", label ? label : "");
    return &batch->series[batch->hint];
}

/* Without memory for it the sample is missing. */
static void collect_value(struct batch *batch, const struct metric_key *key, const char *label,
    int64_t at_ms, const float *values, int n_values)
{
    struct collected *series = find_collected(batch, key, label);
    size_t n = (size_t)n_values;
    if (!series || ARRAY_RESERVE(series->at_ms, series->times_capacity, series->count + 1) < 0 ||
        ARRAY_RESERVE(series->values, series->values_capacity, (series->count + 1) * n) < 0)
        return;
    series->at_ms[series->count] = at_ms;
    memcpy(series->values + series->count * n, values, n * sizeof *values);
    series->count++;
}

/* ---- the thread: processes ---- */

static struct reading rate_of(
    struct reading now, struct reading before, double elapsed_s, double unit)
{
    bool is_known = now.valid && before.valid && elapsed_s > 0 && now.value >= before.value;
    return is_known ? reading_of((now.value - before.value) / elapsed_s / unit) : READING_NONE;
}

static float value_of(struct reading reading)
{
    return reading.valid ? (float)reading.value : NAN;
}

static const struct former_usage *find_former(
    const struct metric_recorder *recorder, const struct metric_root *root)
{
    for (size_t i = 0; i < recorder->n_former; i++)
        if (recorder->former[i].root.task == root->task &&
            recorder->former[i].root.root == root->root)
            return &recorder->former[i];
    return NULL;
}

static void add_usage(struct metric_recorder *recorder, struct batch *batch,
    const struct metric_root *root, const struct process_usage *now, int64_t now_us)
{
    static const struct process_usage none;
    const struct former_usage *former = find_former(recorder, root);
    const struct process_usage *before = former ? &former->usage : &none;
    double s = former ? (double)(now_us - former->at_us) / (double)SECOND_US : 0, mib = (double)MIB;
    struct reading memory = now->resident_bytes;
    memory.value /= mib;
    const float values[PROCESS_METRICS] = {
        [PROCESS_METRIC_CPU_CORES] = value_of(rate_of(now->cpu_s, before->cpu_s, s, 1)),
        [PROCESS_METRIC_HOST_MEM_MIB] = value_of(memory),
        [PROCESS_METRIC_DISK_READ_MIB_S] = value_of(
            rate_of(now->disk_read_bytes, before->disk_read_bytes, s, mib)),
        [PROCESS_METRIC_DISK_WRITE_MIB_S] = value_of(
            rate_of(now->disk_written_bytes, before->disk_written_bytes, s, mib)),
        [PROCESS_METRIC_NET_RX_MIB_S] = value_of(
            rate_of(now->net_received_bytes, before->net_received_bytes, s, mib)),
        [PROCESS_METRIC_NET_TX_MIB_S] = value_of(
            rate_of(now->net_sent_bytes, before->net_sent_bytes, s, mib)),
        [PROCESS_METRIC_STEPS_PER_S] = value_of(root->steps_per_s),
    };
    const struct metric_key key = {.task = root->task};
    collect_value(batch, &key, NULL, clock_wall_us() / 1000, values, PROCESS_METRICS);
}

static void keep_usage(struct metric_recorder *recorder, const struct batch *batch,
    const struct process_usage *usage, int64_t now_us)
{
    struct former_usage *former = calloc(batch->n_roots, sizeof *former);
    free(recorder->former);
    recorder->former = former;
    recorder->n_former = former ? batch->n_roots : 0;
    for (size_t i = 0; i < recorder->n_former; i++)
        former[i] = (struct former_usage){batch->roots[i], now_us, usage[i]};
}

static void read_usage(struct metric_recorder *recorder, struct batch *batch)
{
    int64_t now_us = clock_monotonic_us(), began_us = clock_thread_us();
    if (batch->n_roots == 0 || now_us < recorder->usage_not_before_us)
        return;
    pid_t *roots = calloc(batch->n_roots, sizeof *roots);
    struct process_usage *usage = calloc(batch->n_roots, sizeof *usage);
    for (size_t i = 0; roots && i < batch->n_roots; i++)
        roots[i] = batch->roots[i].root;
    if (roots && usage && process_usage_read(roots, batch->n_roots, usage) == 0) {
        for (size_t i = 0; i < batch->n_roots; i++)
            add_usage(recorder, batch, &batch->roots[i], &usage[i], now_us);
        keep_usage(recorder, batch, usage, now_us);
    }
    free(roots);
    free(usage);
    recorder->usage_not_before_us = now_us +
                                    (int64_t)((double)(clock_thread_us() - began_us) / USAGE_SHARE);
}

/* ---- the thread: the database ---- */

static int write_batch(
    struct metric_recorder *recorder, const struct batch *batch, struct fault *fault)
{
    struct metric_samples *samples = calloc(batch->count + 1, sizeof *samples);
    if (!samples)
        return fault_set(fault, ENOMEM, "out of memory");
    for (size_t i = 0; i < batch->count; i++) {
        const struct collected *series = &batch->series[i];
        samples[i] = (struct metric_samples){.key = series->key,
            .label = series->label,
            .n_values = metric_count(metric_kind_of(&series->key)),
            .count = series->count,
            .at_ms = series->at_ms,
            .values = series->values};
    }
    int r = batch->count ? metric_db_write(recorder->db, samples, batch->count, fault) : 0;
    free(samples);
    return r;
}

static int maintain_database(struct metric_recorder *recorder, struct fault *fault)
{
    int64_t now_us = clock_monotonic_us(), now_ms = clock_wall_us() / 1000;
    int r;
    if (recorder->maintained_us && now_us - recorder->maintained_us < MAINTENANCE_US)
        return 0;
    recorder->maintained_us = now_us;
    while ((r = metric_db_thin(recorder->db, now_ms, fault)) == METRIC_DB_MORE)
        ;
    return r < 0 ? r : metric_db_prune(recorder->db, now_ms, recorder->bytes_max, fault);
}

static void do_work(struct metric_recorder *recorder, struct work *work)
{
    if (work->query) {
        work->answer = metric_query_run(recorder->db, work->query, work->head, &work->fault);
        return;
    }
    read_usage(recorder, work->batch);
    int r = write_batch(recorder, work->batch, &work->fault);
    if (r == 0)
        r = maintain_database(recorder, &work->fault);
    work->has_failed = r < 0;
}

static void run_thread(void *argument)
{
    struct metric_recorder *recorder = argument;
    uv_mutex_lock(&recorder->mutex);
    for (;;) {
        while (!recorder->todo.first && !recorder->is_ending)
            uv_cond_wait(&recorder->has_work, &recorder->mutex);
        struct work *work = take_work(&recorder->todo);
        bool is_due = work && (work->batch || !recorder->is_ending);
        if (!work)
            break;
        uv_mutex_unlock(&recorder->mutex);
        if (is_due)
            do_work(recorder, work);
        uv_mutex_lock(&recorder->mutex);
        append_work(&recorder->done, work);
        if (!recorder->is_ending)
            uv_async_send(recorder->wake);
    }
    uv_mutex_unlock(&recorder->mutex);
}

/* ---- the loop ---- */

static void finish_work(struct metric_recorder *recorder, struct work *work)
{
    if (work->on_answer) {
        if (!work->answer && !*work->fault.text)
            fault_set(&work->fault, ESHUTDOWN, "collocd is going down");
        work->on_answer(work->context, work->answer, &work->fault);
        work->answer = NULL;
    } else if (work->has_failed) {
        disk_failed(recorder->disk, work->fault.text);
    }
    work_free(work);
}

static void finish_all(struct metric_recorder *recorder)
{
    struct work *work;
    do {
        uv_mutex_lock(&recorder->mutex);
        work = take_work(&recorder->done);
        if (work && work->batch)
            recorder->batches_waiting--;
        uv_mutex_unlock(&recorder->mutex);
        if (work)
            finish_work(recorder, work);
    } while (work);
}

static void on_wake(uv_async_t *wake)
{
    finish_all(wake->data);
}

static void give_to_thread(struct metric_recorder *recorder, struct work *work)
{
    uv_mutex_lock(&recorder->mutex);
    append_work(&recorder->todo, work);
    recorder->batches_waiting += work->batch != NULL;
    uv_cond_signal(&recorder->has_work);
    uv_mutex_unlock(&recorder->mutex);
}

/* The batch goes to the thread, unless too many wait there already: then it is dropped. */
static void flush_batch(struct metric_recorder *recorder)
{
    uv_mutex_lock(&recorder->mutex);
    bool is_slow = recorder->batches_waiting >= BATCHES_MAX;
    uv_mutex_unlock(&recorder->mutex);
    struct batch *batch = recorder->batch;
    struct work *work = batch && !is_slow ? calloc(1, sizeof *work) : NULL;
    recorder->batch = NULL;
    if (is_slow)
        disk_failed(recorder->disk, "metrics: the disk is too slow for them");
    if (!work) {
        batch_free(batch);
        return;
    }
    work->batch = batch;
    give_to_thread(recorder, work);
}

static struct batch *begin_batch(struct metric_recorder *recorder)
{
    if (!recorder->batch && (recorder->batch = calloc(1, sizeof *recorder->batch)))
        recorder->batch->begun_us = clock_monotonic_us();
    return recorder->batch;
}

static void list_roots(struct metric_recorder *recorder, struct batch *batch)
{
    free(batch->roots);
    batch->roots = NULL;
    batch->n_roots = metric_list_roots(
        recorder->core, recorder->attempts, recorder->jobs, &batch->roots);
}

static bool may_wait(const struct metric_recorder *recorder, const struct batch *batch)
{
    return batch->n_roots == 0 && !batch->has_tasks &&
           clock_monotonic_us() < batch->begun_us + recorder->idle_batch_us;
}

static void on_flush(uv_timer_t *timer)
{
    struct metric_recorder *recorder = timer->data;
    aligned_timer_start(timer, on_flush, recorder->batch_ms);
    struct batch *batch = begin_batch(recorder);
    if (batch)
        list_roots(recorder, batch);
    if (!batch || !may_wait(recorder, batch))
        flush_batch(recorder);
}

void metric_recorder_add(struct metric_recorder *recorder, const struct metric_key *key,
    const char *label, int64_t at_ms, const struct reading *values)
{
    int n = metric_count(metric_kind_of(key));
    float floats[METRIC_VALUES_MAX];
    bool is_known = false;
    for (int i = 0; i < n; i++) {
        floats[i] = value_of(values[i]);
        is_known |= values[i].valid;
    }
    if (!recorder || !is_known)
        return;
    const struct batch *before = recorder->batch;
    if (before && before->first_ms &&
        (at_ms < before->first_ms || at_ms >= before->first_ms + METRIC_BATCH_MS))
        flush_batch(recorder); /* the wall clock was set */
    struct batch *batch = begin_batch(recorder);
    if (!batch)
        return;
    if (!batch->first_ms)
        batch->first_ms = at_ms;
    batch->has_tasks |= key->task != 0;
    collect_value(batch, key, label, at_ms, floats, n);
}

bool metric_recorder_ask(struct metric_recorder *recorder, struct metric_query *query, char *head,
    metric_on_answer *on_answer, void *context)
{
    if (!recorder)
        return false;
    struct work *work = calloc(1, sizeof *work);
    if (!work) {
        struct fault fault;
        fault_set(&fault, ENOMEM, "out of memory");
        free(query);
        free(head);
        on_answer(context, NULL, &fault);
        return true;
    }
    *work = (struct work){.query = query, .head = head, .on_answer = on_answer, .context = context};
    if (recorder->batch && clock_monotonic_us() >= recorder->batch->begun_us + SECOND_US)
        flush_batch(recorder); /* the answer shall lack a second at most */
    give_to_thread(recorder, work);
    return true;
}

/* ---- life ---- */

size_t metric_recorder_levels(int64_t keep_ms, struct metric_level ret_levels[METRIC_LEVELS_MAX])
{
    const int64_t day_ms = 24 * HOUR_MS;
    const struct metric_level levels[METRIC_LEVELS_MAX] = {
        {0, 0, HOUR_MS},
        {10000, 600000, day_ms},
        {60000, HOUR_MS, 8 * day_ms},
        {600000, day_ms, keep_ms > day_ms ? keep_ms : day_ms},
    };
    memcpy(ret_levels, levels, sizeof levels);
    return ARRAY_SIZE(levels);
}

static int open_db(
    struct metric_recorder *recorder, const struct metric_options *options, struct fault *fault)
{
    struct metric_level levels[METRIC_LEVELS_MAX];
    size_t n = metric_recorder_levels(options->keep_us / 1000, levels);
    int r = metric_db_open(options->path, levels, n, fault, &recorder->db);
    if (r == METRIC_DB_REPLACED)
        log_warning("the metrics' database was damaged and begins anew: %s", fault->text);
    return r < 0 ? r : 0;
}

static void on_closed(uv_handle_t *handle)
{
    free(handle);
}

struct metric_recorder *metric_recorder_create(
    const struct metric_options *options, struct fault *fault)
{
    struct metric_recorder *recorder = calloc(1, sizeof *recorder);
    uv_timer_t *timer = calloc(1, sizeof *timer);
    uv_async_t *wake = calloc(1, sizeof *wake);
    bool has_memory = recorder && timer && wake;
    if (!has_memory)
        fault_set(fault, ENOMEM, "out of memory");
    if (!has_memory || open_db(recorder, options, fault) < 0) {
        free(recorder);
        free(timer);
        free(wake);
        return NULL;
    }
    recorder->core = options->core;
    recorder->attempts = options->attempts;
    recorder->jobs = options->jobs;
    recorder->disk = options->disk;
    recorder->bytes_max = options->bytes_max;
    recorder->batch_ms = (uint64_t)(options->batch_us / MS_US);
    recorder->idle_batch_us = options->idle_batch_us;
    uv_mutex_init(&recorder->mutex);
    uv_cond_init(&recorder->has_work);
    uv_timer_init(options->loop, timer);
    uv_async_init(options->loop, wake, on_wake);
    timer->data = wake->data = recorder;
    recorder->timer = timer;
    recorder->wake = wake;
    recorder->is_running = uv_thread_create(&recorder->thread, run_thread, recorder) == 0;
    if (recorder->is_running) {
        aligned_timer_start(timer, on_flush, recorder->batch_ms);
        return recorder;
    }
    fault_set(fault, EAGAIN, "no thread for the metrics can be started");
    metric_recorder_close(recorder);
    metric_recorder_destroy(recorder);
    return NULL;
}

void metric_recorder_close(struct metric_recorder *recorder)
{
    if (!recorder || !recorder->timer)
        return;
    uv_close((uv_handle_t *)recorder->timer, on_closed);
    recorder->timer = NULL;
    flush_batch(recorder);
    uv_mutex_lock(&recorder->mutex);
    recorder->is_ending = true;
    uv_cond_signal(&recorder->has_work);
    uv_mutex_unlock(&recorder->mutex);
    if (recorder->is_running)
        uv_thread_join(&recorder->thread);
    uv_close((uv_handle_t *)recorder->wake, on_closed);
    recorder->wake = NULL;
    finish_all(recorder);
}

void metric_recorder_destroy(struct metric_recorder *recorder)
{
    if (!recorder)
        return;
    struct work *work;
    while ((work = take_work(&recorder->todo)))
        work_free(work);
    batch_free(recorder->batch);
    free(recorder->former);
    metric_db_close(recorder->db);
    uv_cond_destroy(&recorder->has_work);
    uv_mutex_destroy(&recorder->mutex);
    free(recorder);
}
