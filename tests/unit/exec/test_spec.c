/* SPDX-License-Identifier: Apache-2.0 */
/* Specs of attempts: encoding, strict decoding, output paths. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "exec/exit_record.h"
#include "exec/spec.h"
#include "exec/tagged_fields.h"

static struct attempt_spec full_spec(void)
{
    static const char *const argv[] = {"", "a\nb 9 c", NULL};
    static const char *const env[] = {"A=1", "AB=2", "B=\n", NULL};
    static const char *const added[] = {"A=new", NULL};
    return (struct attempt_spec){.task_id = INT64_MAX,
        .uid = 4294967294,
        .gid = 5,
        .cwd = "/home/x y",
        .umask = 0777,
        .open_files = 1024,
        .profiler = PROFILER_NCU,
        .script = span_of("#!/bin/sh\n"),
        .argv = argv,
        .env = env,
        .env_added = added,
        .stdout_path = "o",
        .append = true,
        .grace_us = 1,
        .time_limit_us = 2};
}

static char *encode(const struct attempt_spec *spec, size_t *ret_size)
{
    char *data;
    struct fault fault;
    assert_int_equal(spec_encode(spec, &fault, &data, ret_size), 0);
    return data;
}

static void test_round_trip(void **state)
{
    struct attempt_spec spec = full_spec();
    struct spec_file file;
    size_t size;
    char *data = encode(&spec, &size);
    assert_int_equal(spec_decode(data, size, NULL, &file), 0);
    assert_int_equal(file.spec.task_id, INT64_MAX);
    assert_int_equal(file.spec.uid, 4294967294);
    assert_int_equal(file.spec.gid, 5);
    assert_string_equal(file.spec.cwd, "/home/x y");
    assert_int_equal(file.spec.umask, 0777);
    assert_int_equal(file.spec.open_files, 1024);
    assert_int_equal(file.spec.profiler, PROFILER_NCU);
    assert_true(file.has_script && file.spec.append);
    assert_string_equal(file.spec.argv[0], "");
    assert_string_equal(file.spec.argv[1], "a\nb 9 c");
    assert_null(file.spec.argv[2]);
    assert_string_equal(file.spec.env[0], "AB=2");
    assert_string_equal(file.spec.env[1], "B=\n");
    assert_string_equal(file.spec.env[2], "A=new");
    assert_null(file.spec.env[3]);
    assert_string_equal(file.spec.stdout_path, "o");
    assert_null(file.spec.stderr_path);
    assert_int_equal(file.spec.grace_us, 1);
    assert_int_equal(file.spec.time_limit_us, 2);
    spec_file_fini(&file);
}

static void test_every_cut_is_refused(void **state)
{
    struct attempt_spec spec = full_spec();
    size_t size;
    char *data = encode(&spec, &size);
    for (size_t cut = 0; cut < size; cut++) {
        struct spec_file file;
        struct fault fault = {0};
        char *part = malloc(cut + 1);
        memcpy(part, data, cut);
        int r = spec_decode(part, cut, &fault, &file);
        bool whole_fields = cut && data[cut - 1] == '\n' &&
                            r == 0; /* a shorter list is a spec, too */
        if (!whole_fields)
            assert_true(r == -EBADMSG && fault.text[0]);
        spec_file_fini(&file);
    }
    free(data);
}

static void test_bad_specs(void **state)
{
    static const char *const bad[] = {
        "",
        "colloc-spec 1 2\n",
        "colloc-spec 1 1\n",
        "colloc-spec 1 1\ncwd 1 /\n",
        "colloc-spec 1 1\ncwd 1 /\nscript 1 1\nnew 1 1\n",
        "colloc-spec 1 1\ncwd 1 /\nscript 1 1\nuid 2 -1\n",
        "colloc-spec 1 1\ncwd 1 /\nscript 1 1\nuid 10 4294967296\n",
        "colloc-spec 1 1\ncwd 99999999999999999999 /\n",
        "colloc-spec 1 1\ncwd -1 /\n",
        "  \n",
    };
    for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
        struct spec_file file;
        assert_int_equal(spec_decode(strdup(bad[i]), strlen(bad[i]), NULL, &file), -EBADMSG);
    }
}

static void test_an_unknown_user_is_not_root(void **state)
{
    struct attempt_spec no_user = full_spec(), no_group = full_spec();
    struct fault fault;
    size_t size;
    char *data;
    no_user.uid = (uid_t)-1;
    no_group.gid = (gid_t)-1;
    assert_int_equal(spec_encode(&no_user, &fault, &data, &size), -EINVAL);
    assert_int_equal(spec_encode(&no_group, &fault, &data, &size), -EINVAL);
}

static void test_output_path(void **state)
{
    struct attempt_spec spec = {.task_id = 42, .cwd = "/w"};
    char path[32], tight[8];
    assert_int_equal(spec_output_path(&spec, "a-%j.%j", path, sizeof path), 0);
    assert_string_equal(path, "/w/a-42.42");
    assert_int_equal(spec_output_path(&spec, "/x/%%j%k%", path, sizeof path), 0);
    assert_string_equal(path, "/x/%j%k%");
    assert_int_equal(spec_output_path(&spec, "/%4j_%03A_%999j%5", path, sizeof path), 0);
    assert_string_equal(path, "/0042_042_42%5");
    assert_int_equal(spec_output_path(&spec, "/345678", tight, sizeof tight), 0);
    assert_string_equal(tight, "/345678");
    assert_int_equal(spec_output_path(&spec, "/3456789", tight, sizeof tight), -ENAMETOOLONG);
    assert_int_equal(spec_output_path(&spec, "%j%j%j", tight, sizeof tight), -ENAMETOOLONG);
}

static void test_exit_record(void **state)
{
    char folder[] = "/tmp/colloc-exit-XXXXXX", path[64];
    struct attempt_exit wrote = {.exit_code = -1,
        .signal = 9,
        .failure = {FAILURE_GPU_OOM, "jax", "line"},
        .start_wall_us = -1,
        .end_wall_us = INT64_MAX,
        .max_rss_bytes = 3,
        .cpu_us = 4};
    struct attempt_exit got;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(exit_record_read(folder, NULL, &got), -ENOENT);
    assert_int_equal(exit_record_write(folder, &wrote), 0);
    assert_int_equal(exit_record_read(folder, NULL, &got), 0);
    assert_memory_equal(&wrote, &got, sizeof got);
    snprintf(path, sizeof path, "%s/exit", folder);
    struct fault fault;
    assert_int_equal(file_write_atomic(path, "colloc-exit 1 1\ncode 3 999\n", 27, 0600), 0);
    assert_int_equal(exit_record_read(folder, &fault, &got), -EBADMSG);
    unlink(path);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_every_cut_is_refused),
        cmocka_unit_test(test_bad_specs),
        cmocka_unit_test(test_output_path),
        cmocka_unit_test(test_an_unknown_user_is_not_root),
        cmocka_unit_test(test_exit_record),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
