/* SPDX-License-Identifier: Apache-2.0 */
/*
 * colloc-orders: simulates a trace in orders that it is given, thousands of them. The search for
 * the best schedule with hindsight (python/colloc_fit/study_orders.py) asks it.
 *
 *     colloc-orders TRACE SEED < ORDERS
 *
 * SEED: of a trace resampled from TRACE; 0: the trace itself. The GPUs are 4 A100-40GB, shared by
 * MPS, with the tasks' memory and activity known.
 *
 * The first line of the output has the completion times of the tasks under first come, first served
 * on whole GPUs, in s, in the order of the trace. Then each line of standard input has for each
 * task, in the order of the trace, RANK:GPU:LIMIT, such as 12:-1:3. Of the tasks that have arrived,
 * the one of the smallest rank is next, and all others wait for it. It starts where the policy
 * predictive places it: on GPU number GPU (-1: on any; of a task on several GPUs it is ignored),
 * where no task is predicted to take over LIMIT times as long as alone. The answer is a line: the
 * total time and the completion times.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/units.h"
#include "policy/policies.h"
#include "sim/simulate.h"

/* Chosen: each of a task's seven allocations is rounded up to 2 MiB. */
#define MARGIN_BYTES (16 * MIB)

/* What an order says of a task. */
struct choice {
    int rank, gpu;
    double limit;
};

static struct {
    struct choice *choices; /* by id - 1 */
    size_t n, capacity;
} order; /* policies have no context of their own */

static const struct choice *choice_of(const struct task *task)
{
    static const struct choice none = {0, -1, 3};
    return task->id <= order.n ? &order.choices[task->id - 1] : &none;
}

static int64_t rank(const struct task *task, int64_t now_us)
{
    return choice_of(task)->rank;
}

static enum placement_answer choose(
    const struct placement_query *query, int *ret_gpus, struct verdict *ret_verdicts)
{
    const struct choice *choice = choice_of(query->task);
    struct conditions conditions = *query->conditions;
    struct placement_query chosen = *query;
    chosen.conditions = &conditions;
    conditions.slowdown_max = choice->limit;
    if (choice->gpu >= 0 && choice->gpu < query->view->n_gpus && query->task->request.gpus == 1) {
        chosen.first_gpu = choice->gpu;
        chosen.end_gpu = choice->gpu + 1;
        for (int i = 0; i < query->view->n_gpus; i++)
            ret_verdicts[i] = (struct verdict){.kind = VERDICT_NOT_A_PLACE};
    }
    return policy_predictive.choose(&chosen, ret_gpus, ret_verdicts);
}

/* With preemption the head of the queue is the task of the smallest rank; none can be stopped. */
static const struct policy policy_in_order = {
    .name = "in-order", .help = "-", .longest_first = true, .choose = choose, .rank = rank};

static void print_answer(double total_s, const struct completions *completions)
{
    printf("%.3f", total_s);
    for (size_t i = 0; i < completions->n; i++)
        printf(" %.3f", completions->jct_s[i]);
    putchar('\n');
    fflush(stdout);
}

static int simulate_and_print(struct simulation simulation)
{
    struct completions completions = {0};
    struct simulation_result result;
    struct fault fault = {0};
    simulation.completions = &completions;
    int r = simulate_trace(&simulation, &fault, &result);
    if (r == 0)
        print_answer(result.total_s, &completions);
    else
        fprintf(stderr, "colloc-orders: %s\n", fault.text);
    free(completions.jct_s);
    return r;
}

static int print_fifo(struct simulation simulation)
{
    simulation.settings.policy = &policy_exclusive;
    return simulate_and_print(simulation);
}

/* Returns false if the line is no order. */
static bool read_order(char *line)
{
    order.n = 0;
    for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n")) {
        struct choice choice;
        if (sscanf(word, "%d:%d:%lf", &choice.rank, &choice.gpu, &choice.limit) != 3)
            return false;
        if (order.n == order.capacity) {
            size_t capacity = order.capacity ? 2 * order.capacity : 128;
            struct choice *grown = realloc(order.choices, capacity * sizeof *grown);
            if (!grown)
                return false;
            order.choices = grown;
            order.capacity = capacity;
        }
        order.choices[order.n++] = choice;
    }
    return order.n > 0;
}

static int answer_orders(const struct simulation *simulation)
{
    char *line = NULL;
    size_t size = 0;
    int r = 0;
    while (r == 0 && getline(&line, &size, stdin) > 0) {
        if (!read_order(line)) {
            fprintf(stderr, "colloc-orders: this is no order\n");
            r = -1;
        } else {
            r = simulate_and_print(*simulation);
        }
    }
    free(line);
    free(order.choices);
    return r;
}

static int prepare_simulation(const char *trace, const char *seed, struct gpu_kinds *kinds,
    struct cluster *cluster, struct catalogue *catalogue, struct fault *fault,
    struct simulation *ret_simulation)
{
    const struct catalogue_settings declared = {.estimator = "declared", .smact = 0.5};
    *ret_simulation = (struct simulation){.trace = trace,
        .catalogue = catalogue,
        .cluster = cluster,
        .laws = &kinds->constants,
        .settings = core_settings_default(),
        .sharing = SHARING_MPS,
        .resample = strtoull(seed, NULL, 10),
        .knows_activity = true};
    struct core_settings *settings = &ret_simulation->settings;
    settings->policy = &policy_in_order;
    settings->preempt = true;
    settings->backfill = false;
    settings->conditions.margin_bytes = MARGIN_BYTES;
    int r = gpu_kinds_init(kinds, fault);
    if (r == 0)
        r = cluster_parse(kinds, "4xA100-40GB", fault, cluster);
    return r < 0 ? r : catalogue_read(NULL, &declared, fault, catalogue);
}

int main(int argc, char **argv)
{
    struct gpu_kinds kinds = {0};
    struct cluster cluster = {0};
    struct catalogue catalogue = {0};
    struct simulation simulation;
    struct fault fault = {0};
    if (argc != 3) {
        fprintf(stderr, "usage: colloc-orders TRACE SEED < ORDERS\n");
        return 2;
    }
    int r = prepare_simulation(argv[1], argv[2], &kinds, &cluster, &catalogue, &fault, &simulation);
    if (r < 0)
        fprintf(stderr, "colloc-orders: %s\n", fault.text);
    if (r == 0)
        r = print_fifo(simulation);
    if (r == 0)
        r = answer_orders(&simulation);
    catalogue_fini(&catalogue);
    cluster_fini(&cluster);
    return r < 0 ? 1 : 0;
}
