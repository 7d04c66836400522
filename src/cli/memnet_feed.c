/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes what the networks of GPUMemNet are trained on and judged by into a file in memory.
 *
 * The shapes of the networks, the inputs of each row and the answers of trained networks come from
 * the code that `colloc estimate` runs. So Python trains on exactly the inputs that an estimate
 * has, and judges exactly the answers that it gives.
 */
#include "cli/memnet_feed.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/print.h"
#include "estimator/gpumemnet/gpumemnet_built_in.h"
#include "estimator/gpumemnet/gpumemnet_net.h"
#include "memnet/net_plan.h"

enum { WEIGHTS_MAX = 16 << 20 }; /* bytes of a file; chosen: the largest of ours has 70 KiB */

static void write_line(FILE *out, json_t *object)
{
    json_dumpf(object, out, JSON_COMPACT | JSON_REAL_PRECISION(17));
    fputc('\n', out);
    json_decref(object);
}

/* ---- networks ---- */

static bool is_selected(const struct memnet_feed *feed, const struct net_plan *plan)
{
    return !feed->only || strstr(plan->name, feed->only) != NULL;
}

/* The number of classes does not change the shape, but for the last layers. */
static json_t *plan_json(const struct net_plan *plan)
{
    struct gpumemnet_layout layout;
    json_t *values = json_array(), *encoders = json_array(), *members = json_array();
    gpumemnet_layout_init(plan->family, plan->method, 1, &layout);
    for (int i = 0; i < layout.n_values; i++)
        json_array_append_new(values, json_integer(layout.values[i]));
    for (int i = 0; i < layout.n_encoders; i++)
        json_array_append_new(
            encoders, json_pack("[ii]", layout.encoder[i].width, layout.encoder[i].n_layers));
    for (int i = 0; i < layout.n_members; i++)
        json_array_append_new(members, json_integer(layout.member[i].n_blocks));
    return json_pack("{ss,ss,ss,sI,so,so,so}", "plan", plan->name, "family",
        gpumemnet_family_name(plan->family), "method", gpumemnet_method_name(plan->method),
        "bin_mib", (json_int_t)plan->bin_mib, "values", values, "encoders", encoders, "members",
        members);
}

static int write_plans(const struct memnet_feed *feed, FILE *out, struct fault *fault)
{
    const struct net_plan *plan;
    size_t n = 0;
    for (size_t i = 0; (plan = net_plan_at(i)) != NULL; i++)
        if (is_selected(feed, plan)) {
            write_line(out, plan_json(plan));
            n++;
        }
    return n ? 0
             : fault_set(fault, ENOENT, "memnet: no network's name contains \"%s\"", feed->only);
}

/* ---- rows ---- */

static json_t *tokens_json(const struct gpumemnet_features *features)
{
    json_t *tokens = json_array();
    for (size_t i = 0; i < features->n_tokens; i++) {
        const float *token = features->tokens[i];
        json_array_append_new(
            tokens, json_pack("[fff]", (double)token[TOKEN_TYPE], (double)token[TOKEN_ACTIVATIONS],
                        (double)token[TOKEN_PARAMETERS]));
    }
    return tokens;
}

static json_t *row_json(const struct task_row *row)
{
    static const char *const parts[PARTS] = {"training", "validation", "test"};
    json_t *values = json_array();
    for (int i = 0; i < GPUMEMNET_VALUES; i++)
        json_array_append_new(values, json_real((double)row->features.value[i]));
    return json_pack("{ss,ss,sb,ss,ss,ss,sI,ss,ss,sf,so}", "row", row->id, "set",
        gpumemnet_family_name(row->features.family), "real", row->real, "part", parts[row->part],
        "family", row->family, "network", row->network, "batch", (json_int_t)row->batch,
        "optimizer", optimizer_name(row->optimizer), "precision", precision_name(row->precision),
        "bytes", row->bytes, "values", values);
}

static void write_rows(const struct memnet_feed *feed, FILE *out)
{
    for (size_t i = 0; i < feed->dataset->n; i++) {
        json_t *row = row_json(&feed->dataset->rows[i]);
        if (!feed->answers)
            json_object_set_new(row, "tokens", tokens_json(&feed->dataset->rows[i].features));
        write_line(out, row);
    }
}

/* ---- answers ---- */

/* Refuses weights of another network, which has other bins. */
static int check_net(
    const struct net_plan *plan, const struct gpumemnet_net *net, struct fault *fault)
{
    if (net->family == plan->family && net->method == plan->method && net->bin_mib == plan->bin_mib)
        return 0;
    return fault_set(fault, EINVAL,
        "weights: of the network %s-%s with bins of %" PRId64 " MiB, not of %s",
        gpumemnet_family_name(net->family), gpumemnet_method_name(net->method), net->bin_mib,
        plan->name);
}

static int read_net(const struct memnet_feed *feed, const struct net_plan *plan,
    struct fault *fault, struct gpumemnet_net *ret_net)
{
    char path[PATH_MAX], *text;
    size_t size;
    if (!feed->weights) {
        const struct gpumemnet_built_in *built_in = gpumemnet_built_in_find(plan->name);
        return gpumemnet_net_parse(built_in->text, built_in->size, fault, ret_net);
    }
    snprintf(path, sizeof path, "%s/%s.txt", feed->weights, plan->name);
    int r = file_read(path, WEIGHTS_MAX, fault, &text, &size);
    if (r < 0)
        return r;
    r = gpumemnet_net_parse(text, size, fault, ret_net);
    free(text);
    if (r == 0 && (r = check_net(plan, ret_net, fault)) < 0)
        gpumemnet_net_fini(ret_net);
    return r < 0 ? fault_prefix(fault, r, "%s", path) : 0;
}

static int write_answer(const char *plan, const struct gpumemnet_net *net,
    const struct dataset *dataset, size_t i, FILE *out)
{
    float probability[GPUMEMNET_CLASSES_MAX];
    int r = gpumemnet_net_ask(net, &dataset->rows[i].features, probability);
    if (r == 0)
        write_line(out,
            json_pack("{ss,sI,si,sf,sf,sf,sf}", "answer", plan, "row", (json_int_t)i, "classes",
                net->n_classes, "edge_bytes", gpumemnet_edge_bytes(net, probability), "p50_bytes",
                gpumemnet_quantile_bytes(net, probability, 0.5), "p90_bytes",
                gpumemnet_quantile_bytes(net, probability, 0.9), "p99_bytes",
                gpumemnet_quantile_bytes(net, probability, 0.99)));
    return r;
}

/* A training without rows of a network's family writes no file of its weights. */
static int write_answers_of(
    const struct memnet_feed *feed, const struct net_plan *plan, FILE *out, struct fault *fault)
{
    struct gpumemnet_net net;
    int r = read_net(feed, plan, fault, &net);
    if (r == -ENOENT) {
        print_error("skipped: %s", fault->text);
        return 0;
    }
    if (r < 0)
        return r;
    for (size_t i = 0; r == 0 && i < feed->dataset->n; i++)
        if (feed->dataset->rows[i].features.family == net.family)
            r = write_answer(plan->name, &net, feed->dataset, i, out);
    gpumemnet_net_fini(&net);
    return r < 0 ? fault_set(fault, -r, "out of memory") : 0;
}

static int write_answers(const struct memnet_feed *feed, FILE *out, struct fault *fault)
{
    const struct net_plan *plan;
    int r = 0;
    for (size_t i = 0; r == 0 && (plan = net_plan_at(i)) != NULL; i++)
        if (is_selected(feed, plan))
            r = write_answers_of(feed, plan, out, fault);
    return r;
}

/* ---- the file ---- */

static int write_feed(const struct memnet_feed *feed, FILE *out, struct fault *fault)
{
    int r = write_plans(feed, out, fault);
    if (r < 0)
        return r;
    write_rows(feed, out);
    return feed->answers ? write_answers(feed, out, fault) : 0;
}

int memnet_feed_open(const struct memnet_feed *feed, struct fault *fault, int *ret_fd)
{
    int fd = memfd_create("colloc-memnet", MFD_CLOEXEC), copy = fd < 0 ? -1 : dup(fd);
    FILE *out = copy < 0 ? NULL : fdopen(copy, "w");
    int r = out ? write_feed(feed, out, fault)
                : fault_set(fault, errno, "memory for the data: %s", strerror(errno));
    if (out && (fclose(out) != 0 || lseek(fd, 0, SEEK_SET) < 0) && r == 0)
        r = fault_set(fault, errno, "memory for the data: %s", strerror(errno));
    if (!out && copy >= 0)
        close(copy);
    if (r < 0 && fd >= 0)
        close(fd);
    else
        *ret_fd = fd;
    return r;
}
