/* SPDX-License-Identifier: Apache-2.0 */
/* Real summaries that other people made, where COLLOC_EVAL_DATA says they are: each parses, with
 * the right total. */
#include "base/array.h"
#include "unit.h"

#include <dirent.h>

struct expected {
    const char *file;
    int64_t parameters;
};

static const struct expected models[] = {
    {"BERT_base", 130638728},
    {"BERT_large", 363331208},
    {"gpt2_large", 838359040},
    {"inceptionv3", 23834568},
    {"Inception", 23834568},
    {"Xception", 22855952},
    {"efficientnet", 5288548},
    {"efficientNet_cifar", 4135648},
    {"mnist_cnn", 1199882},
    {"mobilenet_cifar", 4135648},
    {"mobilenet_", 3504872},
    {"resnet18", 11227812},
    {"resnet34", 21335972},
    {"resnet50", 25557032},
    {"vgg", 138357544},
    {"xlnet_base", 117310466},
    {"xlnet_large", 361320450},
};

static int64_t expected_parameters(const char *file)
{
    for (size_t i = 0; i < ARRAY_SIZE(models); i++)
        if (strncmp(file, models[i].file, strlen(models[i].file)) == 0)
            return models[i].parameters;
    fail_msg("no expected content is known for %s", file);
    return 0;
}

static void test_totals(void **state)
{
    const char *data = getenv("COLLOC_EVAL_DATA");
    if (!data)
        skip();
    char folder[512], path[1024];
    snprintf(folder, sizeof folder, "%s/carma/models", data);
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    struct dirent *entry;
    int n = 0;
    while ((entry = readdir(dir)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        struct model *model = parse_path(path);
        if (model->parameters != expected_parameters(entry->d_name))
            fail_msg("%s: %lld parameters", entry->d_name, (long long)model->parameters);
        model_destroy(model);
        n++;
    }
    closedir(dir);
    assert_true(n >= 31);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_totals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
