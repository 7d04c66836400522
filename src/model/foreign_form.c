/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table of printers and words that stand together on one of their lines. Example: fvcore's
 * flop_count_table begins with "| module | #parameters or shape | #flops |".
 */
#include "model/foreign_form.h"

#include "base/array.h"
#include "model/format.h"

static const struct {
    const char *words[3]; /* all on one line */
    const char *name;
} forms[] = {
    /* lightning/pytorch/utilities/model_summary/model_summary.py; rich prints the same head */
    {{"| Name", "| Type", "| Params"},
        "a ModelSummary of Lightning, which shows neither shapes nor arguments of all layers"},
    /* deepspeed/profiling/flops_profiler/profiler.py */
    {{"% Params", "% MACs", "latency"}, "a flops profile of DeepSpeed, which shows no shapes"},
    /* ptflops/pytorch_engine.py */
    {{"% Params", "% MACs", ""}, "a complexity report of ptflops, which shows no shapes"},
    /* fvcore/nn/print_model_statistics.py */
    {{"| module", "#parameters or shape", "#flops"},
        "a flop_count_table of fvcore, which shows no shapes of outputs"},
    {{"| name", "#elements or shape", ""},
        "a parameter_count_table of fvcore, which shows no layers"},
    /* fastai/callback/hook.py, Learner.summary: "Sequential (Input shape: 64 x 3 x 224 x 224)" */
    {{" (Input shape: ", "", ""},
        "a summary of fastai's Learner, which shows no arguments of layers"},
    /* peft/peft_model.py, print_trainable_parameters */
    {{"trainable params:", "all params:", "trainable%"},
        "PEFT's line of trainable parameters, which shows no layers"},
};

static bool has_words(struct span line, const char *const words[3])
{
    for (size_t i = 0; i < 3 && *words[i]; i++)
        if (span_find_text(line, words[i]) == line.size)
            return false;
    return true;
}

const char *foreign_form_name(struct span text)
{
    struct span line;
    while (span_next_line(&text, &line))
        for (size_t i = 0; i < ARRAY_SIZE(forms); i++)
            if (has_words(line, forms[i].words))
                return forms[i].name;
    return NULL;
}
