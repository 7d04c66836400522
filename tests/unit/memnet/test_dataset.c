/* SPDX-License-Identifier: Apache-2.0 */
/* Reading measured trainings as rows for the networks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <lzma.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/units.h"
#include "memnet/dataset.h"

static const char layers[] =
    "{\"model\":\"m1\",\"layers\":4,\"rows\":[[\"Linear\",19.0,1273,\"66, 19\",[19],0,0],"
    "[\"BatchNorm1d\",19.0,38,\"\",[19],0,0],[\"Tanh\",19.0,0,\"\",[19],1,0],[\"Linear\",7.0,140,\"\",[7],0,0],"
    "[\"Linear\",7.0,140,\"\",[7],0,1]]}\n"
    "{\"model\":\"lstm\",\"rows\":[[\"LSTM\",35.0,100,\"\",[5,7],0,0]]}\n";

static const char names[] =
    "id,seconds,kind,family,split,model,batch,optimizer,precision,status,driver_mib\n";

static int parse(const char *rows, struct fault *fault, struct dataset *ret)
{
    char runs[2048];
    snprintf(runs, sizeof runs, "%s%s", names, rows);
    return dataset_parse(runs, layers, sizeof layers - 1, fault, ret);
}

static void test_rows(void **state)
{
    (void)state;
    struct dataset dataset;
    struct fault fault = {""};
    int r = parse("a,1.5,mlp,mlp-uniform,train,m1,64,sgd,amp,ok,808\n"
                  "b,1.5,mlp,mlp-uniform,train,m1,64,sgd,amp,oom,65536\n"
                  "c,1.5,real,rnn,held-out,lstm,8,adam,fp32,ok,900\n"
                  "d,1.5,real,mlp,test,m1,8,adam,fp32,ok,900.5\n"
                  "e,1.5,real,mlp,train,gone,8,adam,fp32,ok,900\n",
        &fault, &dataset);
    if (r < 0)
        fail_msg("%s", fault.text);
    assert_int_equal(dataset.n, 2);
    assert_int_equal(dataset.n_failed, 1);
    assert_int_equal(dataset.n_unsupported, 2);
    const struct task_row *row = &dataset.rows[0];
    assert_string_equal(row->id, "a");
    assert_false(row->real);
    assert_true(dataset.rows[1].real && dataset.rows[1].bytes == 900.5 * MIB);
    assert_true(row->bytes == 808.0 * MIB && row->batch == 64);
    assert_int_equal(row->features.family, GPUMEMNET_MLP);
    assert_int_equal(row->part, PART_TRAINING);
    assert_int_equal(row->features.n_tokens, 5);
    assert_float_equal(row->features.value[VALUE_LINEARS], log1p(3), 1e-6);
    assert_float_equal(row->features.value[VALUE_PARAMETERS], log1p(1273 + 38 + 140), 1e-5);
    assert_float_equal(row->features.value[VALUE_ACTIVATIONS], log1p(3 * 19 + 2 * 7), 1e-5);
    assert_float_equal(row->features.value[VALUE_STATES], 0, 0);
    assert_float_equal(row->features.value[VALUE_HALF], 1, 0);
    dataset_fini(&dataset);
}

static void refuse(const char *rows, const char *words)
{
    struct dataset dataset;
    struct fault fault = {""};
    assert_int_equal(parse(rows, &fault, &dataset), -EINVAL);
    if (!strstr(fault.text, words))
        fail_msg("\"%s\" does not say \"%s\"", fault.text, words);
    dataset_fini(&dataset);
}

static void test_mistakes_are_named_by_line(void **state)
{
    (void)state;
    const char *good = "a,1.5,mlp,mlp-uniform,train,m1,64,sgd,amp,ok,808\n";
    char text[512];
    snprintf(text, sizeof text, "%sb,1.5,mlp,mlp-uni", good);
    refuse(text, "runs.csv:3: 4 fields");
    refuse("a,1.5,mlp,mlp-uniform,train,m1,0,sgd,amp,ok,808\n", "runs.csv:2:");
    refuse("a,1.5,mlp,mlp-uniform,train,m1,64.5,sgd,amp,ok,808\n",
        "runs.csv:2: batch: 64.5 is not a whole number");
    refuse("a,1.5,mlp,mlp-uniform,train,m1,64,sgd,amp,ok,\n", "runs.csv:2: no driver_mib");
    refuse("a,1.5,mlp,mlp-uniform,train,m1,64,sgd,amp,ok,x\n", "runs.csv:2:");
    refuse("a,1.5,mlp,mlp-uniform,often,m1,64,sgd,amp,ok,808\n", "runs.csv:2: split");
}

static void test_missing_column(void **state)
{
    (void)state;
    struct dataset dataset;
    struct fault fault = {""};
    assert_int_equal(dataset_parse("id,kind\n", "", 0, &fault, &dataset), -EINVAL);
    assert_string_equal(fault.text, "runs.csv: no column \"family\"");
    dataset_fini(&dataset);
}

static void refuse_layers(const char *text, const char *words)
{
    struct dataset dataset;
    struct fault fault = {""};
    assert_true(dataset_parse(names, text, strlen(text), &fault, &dataset) < 0);
    if (!strstr(fault.text, words))
        fail_msg("\"%s\" does not say \"%s\"", fault.text, words);
    dataset_fini(&dataset);
}

static void test_broken_layers_are_named_by_line(void **state)
{
    (void)state;
    char cut[sizeof layers];
    snprintf(cut, sizeof cut, "%.*s", (int)sizeof layers - 40, layers);
    refuse_layers(cut, "layers.jsonl: line 2: no JSON");
    static const char row[] =
        "{\"model\":\"x\",\"rows\":[[\"Linear\",5,30,\"\",[5],false,false]]}\n";
    char twice[2 * sizeof row];
    snprintf(twice, sizeof twice, "%s%s", row, row);
    refuse_layers(twice, "two networks have the key \"x\"");
    refuse_layers("[]\n", "line 1: no member \"model\"");
    refuse_layers("{\"model\":\"x\",\"rows\":[]}\n", "line 1: no rows");
    refuse_layers("{\"model\":\"x\",\"rows\":[[\"Linear\",1]]}\n", "line 1: rows[0]: must have");
}

/* ---- files ---- */

static void write_file(const char *folder, const char *name, const void *data, size_t size)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    fclose(file);
}

static void remove_file(const char *folder, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    unlink(path);
}

static void test_packed_files(void **state)
{
    (void)state;
    char folder[] = "/tmp/colloc-memnet-XXXXXX";
    static const char runs[] =
        "id,kind,family,split,model,batch,optimizer,precision,status,driver_mib\n"
        "a,mlp,mlp-uniform,train,m1,64,sgd,amp,ok,808\n";
    unsigned char packed[4096];
    size_t half = strchr(layers, '\n') + 1 - layers, size = 0;
    struct dataset dataset;
    struct fault fault = {""};
    assert_non_null(mkdtemp(folder));
    write_file(folder, "runs.csv", runs, sizeof runs - 1);
    assert_int_equal(dataset_read(folder, &fault, &dataset), -ENOENT);
    dataset_fini(&dataset);
    lzma_easy_buffer_encode(
        1, LZMA_CHECK_CRC64, NULL, (const uint8_t *)layers, half, packed, &size, sizeof packed);
    lzma_easy_buffer_encode(1, LZMA_CHECK_CRC64, NULL, (const uint8_t *)layers + half,
        sizeof layers - 1 - half, packed, &size, sizeof packed);
    write_file(folder, "layers.jsonl.xz", packed, size);
    assert_int_equal(dataset_read(folder, &fault, &dataset), 0);
    assert_int_equal(dataset.n, 1);
    dataset_fini(&dataset);
    write_file(folder, "layers.jsonl.xz", packed, size - 9);
    assert_int_equal(dataset_read(folder, &fault, &dataset), -EINVAL);
    assert_non_null(strstr(fault.text, "layers.jsonl.xz: damaged, incomplete"));
    dataset_fini(&dataset);
    remove_file(folder, "runs.csv");
    remove_file(folder, "layers.jsonl.xz");
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_mistakes_are_named_by_line),
        cmocka_unit_test(test_missing_column),
        cmocka_unit_test(test_broken_layers_are_named_by_line),
        cmocka_unit_test(test_packed_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
