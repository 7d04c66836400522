/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as weights, as layers.jsonl and as runs.csv: an answer, or a fault with words. The
 * first byte says which.
 */
#include <stdlib.h>
#include <string.h>

#include "estimator/gpumemnet/gpumemnet_net.h"
#include "fuzz.h"
#include "memnet/dataset.h"

static const char names[] =
    "id,kind,family,split,model,batch,optimizer,precision,status,driver_mib\n";
static const char run[] = "a,mlp,mlp,train,m1,64,sgd,amp,ok,808\n";

static void require(int holds)
{
    if (!holds)
        abort();
}

static void as_weights(const char *text, size_t size)
{
    struct gpumemnet_net net;
    struct gpumemnet_features features = {.family = GPUMEMNET_MLP};
    struct fault fault = {""};
    float probability[GPUMEMNET_CLASSES_MAX];
    if (gpumemnet_net_parse(text, size, &fault, &net) < 0) {
        require(fault.text[0] != '\0');
        return;
    }
    require(gpumemnet_net_ask(&net, &features, probability) == 0);
    gpumemnet_net_fini(&net);
}

static void as_dataset(const char *runs, const char *layers, size_t layers_size)
{
    struct dataset dataset;
    struct fault fault = {""};
    int r = dataset_parse(runs, layers, layers_size, &fault, &dataset);
    require(r == 0 || fault.text[0] != '\0');
    dataset_fini(&dataset);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(sizeof names + sizeof run + size);
    if (!text || size == 0) {
        free(text);
        return 0;
    }
    const char *rest = (const char *)data + 1;
    if (data[0] == 'w')
        as_weights(rest, size - 1);
    else if (data[0] == 'l') {
        strcat(strcpy(text, names), run);
        as_dataset(text, rest, size - 1);
    } else {
        strcpy(text, names);
        memcpy(text + sizeof names - 1, rest, size - 1);
        text[sizeof names - 1 + size - 1] = '\0';
        as_dataset(text, "", 0);
    }
    free(text);
    return 0;
}
