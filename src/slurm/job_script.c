/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The script is parsed as `colloc submit` does, but for its #SBATCH lines, which are Slurm's own:
 * they are made plain comments first. Of the options only those count that decide where a job runs;
 * the number of GPUs, time limits and dependencies are Slurm's.
 */
#include "slurm/job_script.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "core/event.h"
#include "model/network.h"
#include "policy/policies.h"
#include "taskfile/estimate_options.h"
#include "taskfile/training_arguments.h"

/* Returns a copy in which no line begins with "#SBATCH"; NULL without memory. */
static char *without_slurm_lines(const char *text)
{
    char *copy = strdup(text);
    for (char *line = copy; line && *line;) {
        char *end = strchr(line, '\n');
        if (strncmp(line, "#SBATCH", 7) == 0)
            line[1] = ' ';
        line = end ? end + 1 : NULL;
    }
    return copy;
}

static int set_policy(const char *name, struct task_request *request, struct fault *fault)
{
    request->policy = name ? policy_find(name) : NULL;
    return name && !request->policy
               ? option_refuse_choice(&task_options[TASK_POLICY], "--policy", name, fault)
               : 0;
}

static int set_request(
    const struct job_script_settings *settings, struct job_script *script, struct fault *fault)
{
    const struct option_value *values = script->description.values;
    struct task_request *request = &script->request;
    request->exclusive = values[TASK_EXCLUSIVE].set && values[TASK_EXCLUSIVE].number;
    request->thread_percent = (int)values[TASK_THREADS].number;
    if (values[TASK_EXPECT].set)
        request->expect.time_us = reading_of((double)values[TASK_EXPECT].number);
    if (values[TASK_SMACT].set)
        request->expect.smact = reading_of((double)values[TASK_SMACT].number / MILLION);
    const char *sharing = values[TASK_SHARING].text;
    if (!sharing || sharing_parse(sharing, &request->sharing) < 0)
        request->sharing = settings->sharing;
    return set_policy(values[TASK_POLICY].text, request, fault);
}

int job_script_parse(const char *text, const struct job_script_settings *settings,
    struct fault *fault, struct job_script *ret_script)
{
    ret_script->request.sharing = settings->sharing;
    if (!text)
        return 0;
    char *copy = without_slurm_lines(text);
    if (!copy)
        return fault_set(fault, ENOMEM, "out of memory");
    int r = taskfile_is_script(copy, strlen(copy))
                ? taskfile_parse("script", copy, strlen(copy), fault, &ret_script->description)
                : 0;
    free(copy);
    char taken[1];
    if (r == 0 && ret_script->description.values[TASK_SUMMARY].set)
        r = training_arguments_apply(ret_script->description.script, NULL,
            ret_script->description.values, fault, taken, sizeof taken);
    return r < 0 ? r : set_request(settings, ret_script, fault);
}

const char *job_script_summary(const struct job_script *script)
{
    return script->description.values[TASK_SUMMARY].text;
}

static int keep_estimate(const struct estimate *estimate, const char *name,
    const struct job_script_settings *settings, struct fault *fault,
    struct job_estimate *ret_estimate)
{
    struct reading bytes = estimate_reserved(estimate, settings->reserve_quantile);
    if (!(bytes.value >= 0 && bytes.value <= (double)EVENT_NUMBER_MAX))
        return fault_set(fault, ERANGE,
            "%s estimates %.3g bytes: the batch or the summary cannot be right", name, bytes.value);
    ret_estimate->need = (struct need){need_kind_of_estimator(name), (int64_t)bytes.value};
    ret_estimate->smact = estimate->smact;
    return 0;
}

int job_script_estimate(const struct job_script *script, const struct job_script_settings *settings,
    const char *summary, size_t size, struct fault *fault, struct job_estimate *ret_estimate)
{
    const struct option_value *values = script->description.values;
    CLEANUP(network_fini) struct network network = {0};
    struct estimate estimate = {0};
    *ret_estimate = (struct job_estimate){0};
    int r = summary ? network_parse(summary, size, fault, &network) : 0;
    if (r == 0)
        r = network_set_input(&network, values[TASK_INPUT].text, fault);
    if (r < 0)
        return fault_prefix(fault, r, "%s", job_script_summary(script));
    struct estimate_request request = {.model = network.model, .export = network.export};
    r = estimate_options_apply(values, fault, &request);
    const char *name = estimator_choose(values[TASK_ESTIMATOR].text, &request, settings->estimator);
    if (r == 0)
        r = estimate_run(name, &request, fault, &estimate);
    if (r == 0)
        r = keep_estimate(&estimate, name, settings, fault, ret_estimate);
    return r == ESTIMATE_UNKNOWN ? 0 : r;
}

int job_script_use_estimate(
    struct job_script *script, const struct job_estimate *estimate, struct fault *fault)
{
    const struct need *need = &estimate->need;
    const struct reading *smact = &estimate->smact;
    bool is_kind = need->kind == NEED_UNKNOWN || need->kind == NEED_ESTIMATED ||
                   need->kind == NEED_DECLARED;
    if (!is_kind || need->bytes < 0 || need->bytes > EVENT_NUMBER_MAX ||
        !(smact->value >= 0 && smact->value <= 1))
        return fault_set(fault, EINVAL, "the estimate makes no sense");
    script->request.need = *need;
    if (!script->request.expect.smact.valid)
        script->request.expect.smact = *smact;
    return 0;
}

void job_script_fini(struct job_script *script)
{
    task_description_fini(&script->description);
}
