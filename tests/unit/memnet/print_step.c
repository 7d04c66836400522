/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One step of training as JSON, for test_torch.py: the network's weights, the batch, the loss, the
 * gradients, and the running moments that the step left. A tensor is a pair [weights, gradients].
 *
 *     print-step mlp|cnn|transformer mlp|transformer
 */
#include "step_bench.h"

struct printed {
    const struct bench *bench;
    const float *weights; /* before the step */
};

static void print_row(const float *row, size_t n)
{
    putchar('[');
    for (size_t i = 0; i < n; i++)
        printf("%s%.9g", i ? "," : "", (double)row[i]);
    putchar(']');
}

static void print_tensor(const struct printed *printed, const char *name, size_t at, int n)
{
    printf("\"%s\":[", name);
    print_row(printed->weights + at, (size_t)n);
    putchar(',');
    print_row(printed->bench->gradients + at, (size_t)n);
    putchar(']');
}

static void print_linear(const struct printed *printed, const struct linear_layout *linear)
{
    printf("{\"in\":%d,\"out\":%d,", linear->in, linear->out);
    print_tensor(printed, "weight", linear->weight, linear->in * linear->out);
    putchar(',');
    print_tensor(printed, "bias", linear->bias, linear->out);
    putchar('}');
}

/* running: it is a batch norm. */
static void print_norm(const struct printed *printed, const struct norm_layout *norm, bool running)
{
    putchar('{');
    print_tensor(printed, "scale", norm->scale, norm->width);
    putchar(',');
    print_tensor(printed, "shift", norm->shift, norm->width);
    for (int i = 0; running && i < 2; i++) {
        size_t at = i ? norm->variance : norm->mean;
        printf(",\"%s\":[", i ? "variance" : "mean");
        print_row(printed->weights + at, (size_t)norm->width);
        putchar(',');
        print_row(printed->bench->weights + at, (size_t)norm->width); /* after the step */
        putchar(']');
    }
    putchar('}');
}

static void print_block(const struct printed *printed, const struct block_layout *block)
{
    printf("{\"linear\":");
    print_linear(printed, &block->linear);
    printf(",\"norm\":");
    print_norm(printed, &block->norm, true);
    putchar('}');
}

static void print_encoder(const struct printed *printed, const struct encoder_layout *encoder)
{
    printf("{\"width\":%d,\"embedding\":[", encoder->width);
    for (int i = 0; i < 2; i++) {
        printf("%s", i ? "," : "");
        print_block(printed, &encoder->embedding[i]);
    }
    printf("],\"layers\":[");
    for (int i = 0; i < encoder->n_layers; i++) {
        const struct encoder_layer_layout *layer = &encoder->layer[i];
        printf("%s{\"qkv\":", i ? "," : "");
        print_linear(printed, &layer->qkv);
        printf(",\"projection\":");
        print_linear(printed, &layer->projection);
        printf(",\"up\":");
        print_linear(printed, &layer->up);
        printf(",\"down\":");
        print_linear(printed, &layer->down);
        printf(",\"norm_attention\":");
        print_norm(printed, &layer->norm_attention, false);
        printf(",\"norm_feed_forward\":");
        print_norm(printed, &layer->norm_feed_forward, false);
        putchar('}');
    }
    printf("]}");
}

static void print_members(const struct printed *printed)
{
    const struct gpumemnet_layout *layout = &printed->bench->layout;
    printf("\"members\":[");
    for (int m = 0; m < layout->n_members; m++) {
        printf("%s{\"blocks\":[", m ? "," : "");
        for (int i = 0; i < layout->member[m].n_blocks; i++) {
            printf("%s", i ? "," : "");
            print_block(printed, &layout->member[m].block[i]);
        }
        printf("],\"logits\":");
        print_linear(printed, &layout->member[m].logits);
        putchar('}');
    }
    putchar(']');
}

static void print_rows(const struct bench *bench)
{
    printf("\"rows\":[");
    for (int i = 0; i < ROWS; i++) {
        const struct example *row = &bench->rows[i];
        printf("%s{\"class\":%d,\"values\":", i ? "," : "", row->class);
        print_row(row->values, (size_t)bench->layout.n_values);
        printf(",\"tokens\":[");
        for (size_t t = 0; t < row->n_tokens; t++) {
            printf("%s", t ? "," : "");
            print_row(row->tokens + t * TOKEN_SIZE, TOKEN_SIZE);
        }
        printf("]}");
    }
    putchar(']');
}

/* Index of the name among the names of the enumeration; ends the program where it is none. */
static int find_name(const char *name, const char *(*name_of)(int), int n)
{
    for (int i = 0; i < n; i++)
        if (strcmp(name, name_of(i)) == 0)
            return i;
    fprintf(stderr, "print-step: no such network: %s\n", name);
    exit(1);
}

static const char *family_name(int family)
{
    return gpumemnet_family_name((enum gpumemnet_family)family);
}

static const char *method_name(int method)
{
    return gpumemnet_method_name((enum gpumemnet_method)method);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: print-step FAMILY METHOD\n");
        return 1;
    }
    int family = find_name(argv[1], family_name, GPUMEMNET_FAMILIES);
    int method = find_name(argv[2], method_name, GPUMEMNET_METHODS);
    struct bench *bench = bench_create(
        (enum gpumemnet_family)family, (enum gpumemnet_method)method);
    memcpy(bench->other, bench->weights, bench->layout.size * sizeof(float));
    double loss = loss_at(bench, bench->weights);
    struct printed printed = {.bench = bench, .weights = bench->other};
    printf("{\"loss\":%.9g,\"encoders\":[", loss);
    for (int i = 0; i < bench->layout.n_encoders; i++) {
        printf("%s", i ? "," : "");
        print_encoder(&printed, &bench->layout.encoder[i]);
    }
    printf("],");
    print_members(&printed);
    putchar(',');
    print_rows(bench);
    printf("}\n");
    bench_destroy(bench);
    return 0;
}
