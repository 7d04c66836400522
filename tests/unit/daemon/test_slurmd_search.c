/* SPDX-License-Identifier: Apache-2.0 */
/* Of which node and cluster a slurmd is, by its command line and slurm.conf. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"
#include "daemon/node/slurmd_search.h"

static void test_options(void **state)
{
    static const struct {
        char words[64];
        size_t size;
        const char *node, *conf;
    } cases[] = {
#define WORDS(text) text, sizeof text
        {WORDS("slurmd\0-D\0-N\0n1"), "n1", NULL},
        {WORDS("slurmd\0-DNn1\0-f\0/etc/s.conf"), "n1", "/etc/s.conf"},
        {WORDS("slurmd\0-L\0/N\0--systemd"), NULL, NULL},
        {WORDS("slurmd\0-N"), NULL, NULL},
#undef WORDS
        {"", 0, NULL, NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        const char *node = slurmd_find_option(cases[i].words, cases[i].size, 'N');
        const char *conf = slurmd_find_option(cases[i].words, cases[i].size, 'f');
        assert_string_equal(node ? node : "", cases[i].node ? cases[i].node : "");
        assert_string_equal(conf ? conf : "", cases[i].conf ? cases[i].conf : "");
    }
}

static void test_cluster_names(void **state)
{
    static const struct {
        const char *text, *name; /* NULL: not known */
    } cases[] = {
        {"# x\nClusterName=alpha\nNodeName=n1\n", "alpha"},
        {"  clustername = \"beta\" # x", "beta"},
        {"ClusterName=alpha\r\nClusterName=beta\r\n", "beta"}, /* the last one holds */
        {"#ClusterName=alpha\n", NULL},
        {"ClusterNames=alpha\n", NULL},
        {"ClusterName=\n", NULL},
        {"ClusterName\n", NULL},
        {"ClusterName=longer-than-sixteen\n", NULL},
        {"Include other.conf\n", NULL},
        {"", NULL},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char name[16] = "";
        assert_int_equal(
            slurm_conf_cluster(cases[i].text, name, sizeof name), cases[i].name != NULL);
        if (cases[i].name)
            assert_string_equal(name, cases[i].name);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_cluster_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
