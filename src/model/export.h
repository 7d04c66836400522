/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exporter's file (docs/export.md): the layers of a model, and every storage that training it
 * allocates on the device, with the times of allocation and release. Of a training step of JAX it
 * has what the compiler planned instead.
 */
#ifndef COLLOC_MODEL_EXPORT_H
#define COLLOC_MODEL_EXPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/fault.h"
#include "kernels/conv_question.h"
#include "model/compiled_step.h"
#include "model/conv_shape.h"
#include "model/linear_size.h"
#include "model/model.h"
#include "model/step_work.h"
#include "training/optimizer.h"
#include "training/precision.h"

enum {
    EXPORT_VERSION = 1,
    EXPORT_SIZE_MAX = 64 << 20, /* bytes of text */
    EXPORT_TENSORS_MAX = 1000000,
    EXPORT_VALUES_MAX = 8000000, /* of its JSON; chosen: tensors have six each, layers some 20 */
};

#define EXPORT_BYTES_MAX                                                                           \
    ((int64_t)1 << 52) /* of one storage for one sample; a larger size is a
                                             * mistake */

struct export_tensor {
    struct linear_size bytes;
    int64_t first, last; /* ticks of the clock; `last` is -1 for a tensor that is never freed */
};

/* The most that lived at once among PyTorch's fake tensors over one forward and backward pass. */
struct fake_peak {
    int64_t batch; /* the batch that the figure holds for; 0: the model was not run */
    int64_t bytes;
    bool computed; /* the model does not run on fake tensors: the figure is a line through passes
                    *                                         that were computed on the CPU */
};

/*
 * A batch or an output. A variable of the training loop holds it until the next iteration assigns
 * the next one, so that two batches live at once, and no output lives through the next iteration's
 * backward pass. The times follow from the phases, not from the file's ticks, which early exporters
 * wrote differently. A script's export lists what its loop really held.
 */
struct export_hold {
    size_t tensor;
    int64_t until; /* tick of the next iteration */
    int64_t heir;  /* the tensor that replaces it; -1: the iterations do not match */
};

enum export_pass { EXPORT_FORWARD, EXPORT_INPUT_GRADIENT, EXPORT_WEIGHT_GRADIENT };

/* A convolution's kernel, for its workspace. Sizes in bytes are of its data type. */
struct export_conv {
    int64_t tick;
    size_t shape; /* index of `shapes` */
    struct linear_size input, output;
    int64_t weight, inputs, outputs;     /* the last two indices are channels */
    int64_t in_positions, out_positions; /* of a map for one sample: height times width */
    int64_t taps, groups;
    bool half; /* in 16 bit */
    enum export_pass pass;
    struct count workspace; /* bytes, as the library reported to the exporter */
    struct count tried; /* the largest of all kernels, where PyTorch tries them; else not known */
};

enum loader_data {
    LOADER_UNKNOWN, /* neither of the others */
    LOADER_JPEG,    /* decoded by Pillow for each sample */
    LOADER_TENSORS, /* there is nothing to decode */
};

/* The data loader of a script's training. */
struct export_loader {
    bool is_seen;
    enum loader_data data;
    int64_t workers; /* processes; 0: the training itself loads */
    double pixels;   /* of the JPEGs of one sample */
};

/* How the training uses cuDNN (torch.backends.cudnn). */
struct export_cudnn {
    bool is_known; /* it asks as colloc does: its PyTorch is new enough, and cuDNN is not off */
    bool tf32, deterministic;
};

/* The GPU whose library reported the convolutions' workspaces. */
struct export_measured {
    int64_t batch; /* the batch that the workspaces hold for; 0: no library was queried */
    char gpu[64];
    bool tries;           /* the library tried all kernels, as with cudnn.benchmark */
    struct count process; /* bytes beside the allocator's segments in the process that was asked:
                           * the context, with the code of all kernels that were tried */
};

struct export
{
    struct model *model;           /* its layers, format "export"; `batch` is the one that the user
                              * exported for; of a compiled step one layer, named by the program */
    struct compiled_step compiled; /* of JAX: there are no tensors and no clock then */
    bool every_batch;              /* false: the sizes hold for that batch only */
    int64_t sequence_length;       /* 0: none */
    enum optimizer optimizer;
    enum precision precision;
    char method[16];
    struct fake_peak fake_peak;
    struct export_tensor *tensors;
    size_t n_tensors;
    int64_t ticks;
    struct export_hold *holds; /* by tick */
    size_t n_holds;
    int64_t last_iteration;    /* the tick at which the last iteration begins; -1: the file does not
                                * say */
    struct export_conv *convs; /* of all iterations, by tick */
    size_t n_convs;
    size_t n_step_convs; /* of the last iteration: the last ones */
    struct conv_shape *shapes;
    struct export_cudnn cudnn;
    struct step_work work; /* of the last iteration */
    struct export_measured measured;
    bool multiplies;            /* the training multiplies matrices, so that cuBLAS is loaded */
    int64_t multiplies_from[2]; /* ticks of the first product forward and backward; -1: none */
    struct linear_size macs;    /* of one forward pass */
    bool releases_output;       /* its loop keeps no output of the model until the next iteration */
    bool tries_kernels;         /* cuDNN tries all kernels of each convolution, with workspaces that
                                 * only it knows (cudnn.benchmark) */
    struct export_loader loader;
    int64_t accumulation; /* forward passes of one iteration, each with another batch */
    int64_t ddp;          /* ranks of DistributedDataParallel in a script; 0: none */
    int64_t frozen;       /* parameters that are not trained, of a script */
    int64_t processes;    /* that exchange gradients by NCCL; 0: it does not use NCCL */
    bool not_modelled;    /* the training uses checkpointing or compilation: it allocates in a
                                 * way that the file cannot show */
};

/* Parses an export. Returns 0; or with a fault -EINVAL (no JSON, not the exporter's, members that
 * contradict each other), -EPROTO (another version), -ERANGE (a size beyond 64 bits), -EFBIG (too
 * large a file) or -ENOMEM. */
int export_parse(const char *text, size_t size, struct fault *fault, struct export **ret_export);

/* Tests whether the text looks like an export rather than a summary. */
bool export_detect(const char *text, size_t size);

/* Releases the export. */
void export_destroy(struct export *export);

#endif
