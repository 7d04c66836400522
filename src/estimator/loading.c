/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers decode side by side until the processors are all busy. Of a host that decodes 100
 * pictures a second in one process and 1,200 in all:
 *
 *     8 workers, one GPU             8 x 100 = 800 a second
 *     8 workers for each of 4 GPUs   1,200 / 4 = 300 for each
 *     none: the training decodes     100
 *
 * Decoding takes as long as there are pixels. Pictures of a very different size are not judged: the
 * work for each picture, which was measured with the pixels, counts otherwise there.
 */
#include "estimator/loading.h"

#include <math.h>

enum { SIZES_MOST = 4 }; /* times as many pixels as measured, or as few. Chosen. */

/* Processes of the training on the host, as the task or its script says. */
static double processes_of(const struct estimate_request *request)
{
    return request->gpus > 1 ? request->gpus : fmax(1, (double)request->export->processes);
}

static struct reading not_known(const char *why, const char **ret_why)
{
    *ret_why = why;
    return READING_NONE;
}

static struct reading rate_of_host(const struct estimate_request *request,
    const struct export_loader *loader, const char **ret_why)
{
    const struct host_decoding *host = &request->decoding;
    double sizes = loader->pixels / LOADING_PIXELS, processes = processes_of(request);
    if (host->rate <= 0 || host->most <= 0)
        return not_known("it decodes JPEGs, and how fast this host does is not known: SMACT is "
                         "without a wait for data; colloc calibrate measures it",
            ret_why);
    if (!(sizes >= 1.0 / SIZES_MOST && sizes <= SIZES_MOST))
        return not_known("its JPEGs are of another size than those by which this host was "
                         "measured: SMACT is without a wait for data",
            ret_why);
    double of_workers = fmax(1, (double)loader->workers) * host->rate;
    return reading_of(fmin(of_workers, host->most / processes) / sizes);
}

struct reading loading_rate(const struct estimate_request *request, const char **ret_why)
{
    const struct export_loader *loader = request->export ? &request->export->loader : NULL;
    *ret_why = "";
    if (request->loader_rate > 0)
        return reading_of(request->loader_rate);
    if (!loader || !loader->is_seen || loader->data == LOADER_TENSORS)
        return READING_NONE;
    if (loader->data == LOADER_JPEG)
        return rate_of_host(request, loader, ret_why);
    return not_known("how fast its data are loaded is not known: SMACT is without a wait for "
                     "data, unless --loader-rate says how long",
        ret_why);
}
