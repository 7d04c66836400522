/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options of a task as an estimator takes them. The daemon, the controller of a Slurm cluster and
 * `colloc estimate` estimate the same task from the same options, so that all three have the same
 * answer. What differs between them is where the network, the kind of GPU and the earlier runs come
 * from: that stays theirs.
 */
#include "taskfile/estimate_options.h"

#include <errno.h>

#include "taskfile/taskfile.h"

int estimate_options_apply(
    const struct option_value *values, struct fault *fault, struct estimate_request *request)
{
    request->batch = option_number_or(&values[TASK_BATCH], ESTIMATE_NOT_GIVEN);
    request->sequence_length = values[TASK_SEQ].number;
    request->optimizer_text = values[TASK_OPTIMIZER].text;
    request->optimizer = optimizer_parse(request->optimizer_text);
    request->checkpointing = values[TASK_CHECKPOINTING].number != 0;
    request->gpus = (int)option_number_or(&values[TASK_GPUS], 1);
    if (request->gpus == 0)
        return fault_set(fault, EINVAL, "gpus=0: without a GPU there is no GPU memory to estimate");
    request->parallel = parallel_parse(values[TASK_PARALLEL].text);
    request->parallel_degree = parallel_degree(values[TASK_PARALLEL].text);
    request->micro_batches = (int)values[TASK_MICRO_BATCHES].number;
    request->offload = offload_parse(values[TASK_OFFLOAD].text);
    request->loader_rate = (double)values[TASK_LOADER_RATE].number / MILLION;
    request->declared_bytes = values[TASK_MEMORY].number;
    return precision_parse("precision", values[TASK_PRECISION].text, fault, &request->precision);
}
