/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exporter's file (docs/export.md): the layers of a model, and every storage that a training of
 * it allocates on the device, with when it comes and goes.
 */
#ifndef COLLOC_MODEL_EXPORT_H
#define COLLOC_MODEL_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"
#include "model/model.h"
#include "training/optimizer.h"
#include "training/precision.h"

enum {
    EXPORT_VERSION = 1,
    EXPORT_SIZE_MAX = 64 << 20, /* bytes of text */
    EXPORT_TENSORS_MAX = 1000000,
};

#define EXPORT_BYTES_MAX ((int64_t)1 << 52) /* of one storage at one sample; more is a mistake */

/* So much at any batch size, and so much for each sample. */
struct linear_size {
    int64_t fixed, per_sample;
};

struct export_tensor {
    struct linear_size bytes;
    int64_t first, last; /* ticks of the clock; last is -1 when it stays */
};

/* The most that lived at once among PyTorch's fake tensors over one forward and backward pass. */
struct fake_peak {
    int64_t batch; /* the export is valid for this batch; 0: the model was not run */
    int64_t bytes;
    bool computed; /* the model does not run on fake tensors: a line through really computed passes
                    */
};

/*
 * A batch or an output: a name of the loop holds it until the next iteration's is there, so that
 * two batches live at once, and no output lives through the next iteration's backward pass. From
 * the phases, whatever the file's ticks say (early exporters wrote it otherwise).
 */
struct export_hold {
    size_t tensor;
    int64_t until; /* tick of the next iteration */
    int64_t heir;  /* the tensor that takes its place; -1 where the iterations do not match */
};

enum export_pass { EXPORT_FORWARD, EXPORT_INPUT_GRADIENT, EXPORT_WEIGHT_GRADIENT };

/* A convolution's kernel, for its scratch memory. Bytes are of its data type. */
struct export_conv {
    int64_t tick;
    struct linear_size input, output;
    int64_t weight, inputs, outputs; /* the last two are channels */
    bool dense;                      /* not in groups */
    bool pointwise;                  /* a kernel of one tap */
    bool half;                       /* in 16 bit */
    enum export_pass pass;
    int64_t scratch; /* bytes that it took when the exporter asked a GPU; -1: not asked, or it had
                        no answer */
};

/* The GPU whose library was asked for the convolutions' scratch memory. */
struct export_asked {
    int64_t batch; /* valid for this batch; 0: no library was asked */
    char gpu[64];
};

struct export
{
    struct model *model;     /* its layers, format "export"; batch is what the user asked for */
    bool every_batch;        /* false: the sizes hold for the model's batch alone */
    int64_t sequence_length; /* 0: none */
    enum optimizer optimizer;
    enum precision precision;
    char method[16];
    struct fake_peak fake_peak;
    struct export_tensor *tensors;
    size_t n_tensors;
    int64_t ticks;
    struct export_hold *holds; /* by tick */
    size_t n_holds;
    int64_t last_iteration;    /* the tick at which the last iteration begins; -1: not known */
    struct export_conv *convs; /* of all iterations, by tick */
    size_t n_convs;
    struct export_asked asked;
    bool multiplies;            /* matrices, so that cuBLAS is there */
    int64_t multiplies_from[2]; /* ticks of the first product forward and backward; -1: none */
    struct linear_size macs;    /* of one forward pass */
    bool not_modelled;          /* a flag says that it allocates in a way the file cannot show */
};

/* 0, or with a fault -EINVAL (no JSON, not the exporter's, members that contradict each other),
 * -EPROTO (another version), -ERANGE, -EFBIG, -ENOMEM. */
int export_parse(const char *text, size_t size, struct fault *fault, struct export **ret_export);

/* Whether the text looks like one, to tell it from a summary. */
bool export_detect(const char *text, size_t size);

void export_destroy(struct export *export);

#endif
