/*
 * The exporter's file (docs/export.md): the layers of a model, and every storage that a training of it allocates on the
 * device, with when it comes and goes.
 */
#ifndef COLLOC_MODEL_EXPORT_H
#define COLLOC_MODEL_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"
#include "model/model.h"

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
    int64_t batch; /* it holds for this one; 0: nobody ran it */
    int64_t bytes;
    bool computed; /* the model does not run on fake tensors: a line through really computed passes */
};

/* A convolution, for the scratch memory of its kernel. Bytes are of its data type. */
struct export_conv {
    int64_t tick;
    struct linear_size input, output;
    int64_t weight;
    bool dense;     /* not in groups */
    bool pointwise; /* a kernel of one tap */
    bool backward;
};

struct export
{
    struct model *model;     /* its layers, format "export"; batch is what the user asked for */
    bool every_batch;        /* false: the sizes hold for the model's batch alone */
    int64_t sequence_length; /* 0: none */
    char optimizer[32], precision[16], method[16];
    struct fake_peak fake_peak;
    struct export_tensor *tensors;
    size_t n_tensors;
    int64_t ticks;
    struct export_conv *convs; /* of all iterations, by tick */
    size_t n_convs;
    bool multiplies;         /* matrices, so that cuBLAS is there */
    struct linear_size macs; /* of one forward pass */
    bool not_modelled;       /* a flag says that it allocates in a way the file cannot show */
};

/* 0, or with a fault -EINVAL (no JSON, not the exporter's, members that contradict each other), -EPROTO (another
 * version), -ERANGE, -EFBIG, -ENOMEM. */
int export_parse(const char *text, size_t size, struct fault *fault, struct export **ret_export);

/* Whether the text looks like one, to tell it from a summary. */
bool export_detect(const char *text, size_t size);

void export_destroy(struct export *export);

#endif
