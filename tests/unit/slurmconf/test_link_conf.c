/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of the link as YAML lines: what is found, and what setup makes of them. */
#include <stdlib.h>

#include "../assert_has.h"
#include "slurmconf/link_conf.h"

static void test_read(void **state)
{
    struct link_conf conf = link_conf_read(span_of("# node-auth: tls\n"
                                                   "listen: 10.0.0.1:7490 # agents\n"
                                                   "node-auth : \"tls\" # without munge\r\n"
                                                   "login-listen: 0.0.0.0:1\n"
                                                   "node-key-file: '/a b/c#d'\n"
                                                   "  socket: /indented\n"
                                                   "not a setting\n"
                                                   "node-auths: munge\n"));
    assert_true(link_conf_is_tls(&conf));
    assert_string_equal(conf.listen, "10.0.0.1:7490");
    assert_string_equal(conf.key_file, "/a b/c#d");
    assert_string_equal(conf.socket, "");
    conf = link_conf_read(span_of("node-auth: tls\nnode-auth: munge"));
    assert_false(link_conf_is_tls(&conf)); /* the last one counts, as for the programs */
    conf = link_conf_read(span_of(""));
    assert_string_equal(conf.node_auth, "");
}

/* The text after setup, and it comes back byte for byte. */
static void expect_plan_with(const char *text, bool is_tls, const char *key_file, const char *part)
{
    struct text_edits edits;
    assert_int_equal(link_conf_plan(span_of(text), is_tls, key_file, &edits), 0);
    char *planned = marked_text_apply(span_of(text), &edits, "#");
    struct link_conf conf = link_conf_read(span_of(planned));
    assert_int_equal(link_conf_is_tls(&conf), is_tls);
    if (!is_tls)
        assert_string_equal(conf.key_file, "");
    if (part)
        assert_has(planned, part);
    else
        assert_string_equal(planned, text);
    char *back = marked_text_remove(span_of(planned), "#", NULL);
    assert_string_equal(back, text);
    text_edits_fini(&edits);
    free(planned);
    free(back);
}

static void expect_plan(const char *text, bool is_tls, const char *part)
{
    expect_plan_with(text, is_tls, NULL, part);
}

static void test_plan(void **state)
{
    expect_plan_with("", true, "/k", "node-auth: tls\nnode-key-file: /k\n");
    expect_plan_with("node-auth: tls\n", true, "/k", "# BEGIN");
    expect_plan_with("node-auth: tls\nnode-key-file: /own\n", true, "/k", NULL);
    expect_plan_with("node-auth: munge\n", false, "/k", NULL);
    expect_plan("", false, NULL);
    expect_plan("", true, "node-auth: tls\n");
    expect_plan("listen: none", true, "node-auth: tls\n");
    expect_plan("node-auth: tls\nnode-key-file: /k\n", true, NULL);
    expect_plan("node-auth: munge\n", false, NULL);
    expect_plan("a: 1\nnode-auth: munge\nb: 2\n", true, "node-auth: tls\n");
    expect_plan("node-auth: munge\nnode-auth: munge", true, "node-auth: tls\n");
    expect_plan("node-auth: tls\nnode-key-file: /k\n", false, "node-auth: munge\n");
    expect_plan("node-auth: TLS\r\n", true, "node-auth: tls\r\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_plan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
