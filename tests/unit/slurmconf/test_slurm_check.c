/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of a cluster over what scontrol printed. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "../assert_has.h"
#include "slurmconf/slurm_check.h"

static const char config[] = "Configuration data as of 2026-11-22T23:00:00\n"
                             "AuthInfo                = (null)\n"
                             "AuthType                = auth/munge\n"
                             "GresTypes               = gpu,shard\n"
                             "JobCompType             = jobcomp/lua\n"
                             "JobSubmitPlugins        = all_partitions,lua\n"
                             "SelectType              = select/cons_tres\n"
                             "SLURM_VERSION           = 24.11.5\n";
static const char nodes[] =
    "NodeName=n0 Gres=gpu:i0:1(S:0),shard:i0:80(S:0) State=IDLE SlurmdStartTime=2026-11-22T22:00:00\n"
    "NodeName=c1 Gres=(null) State=IDLE SlurmdStartTime=2026-11-22T22:00:00\n";
static const char partitions[] = "PartitionName=gpu State=DOWN TotalNodes=1\n"
                                 "PartitionName=gpu-run State=UP TotalNodes=1\n";

static struct slurm_facts_read good_facts(void)
{
    struct tm when = {.tm_year = 126, .tm_mon = 10, .tm_mday = 22, .tm_hour = 23, .tm_sec = 3};
    when.tm_isdst = -1;
    return (struct slurm_facts_read){.ping = "Slurmctld(primary) at head is UP\n",
        .config = config,
        .nodes = nodes,
        .partitions = partitions,
        .munge_works = true,
        .intake = "gpu",
        .run = "gpu-run",
        .guard = "-- of the site\n-- guard\n",
        .guard_wanted = "-- guard\n",
        .wake_file = "/w",
        .wake_wanted = "/w",
        .agents.is_known = true,
        .now_s = mktime(&when)};
}

/* The only check that fails is the named one, and it has the words; NULL: none fails. */
static void assert_fails(const struct slurm_facts_read *facts, const char *name, const char *words)
{
    struct doctor_check checks[SLURM_CHECKS_MAX];
    size_t count = slurm_check_run(facts, checks);
    assert_int_equal(count, 14);
    for (size_t i = 0; i < count; i++) {
        if (!name || strcmp(checks[i].name, name) != 0) {
            if (!checks[i].is_ok)
                fail_msg("%s: %s", checks[i].name, checks[i].detail);
            continue;
        }
        assert_false(checks[i].is_ok);
        assert_has(checks[i].detail, words);
        assert_true(*checks[i].advice);
    }
}

/* The text with one part of it replaced; the caller frees it. */
static char *with(const char *text, const char *old, const char *new_part)
{
    const char *at = strstr(text, old);
    char *result;
    assert_non_null(at);
    assert_true(
        asprintf(&result, "%.*s%s%s", (int)(at - text), text, new_part, at + strlen(old)) > 0);
    return result;
}

static void assert_config_fails(
    const char *old, const char *new_part, const char *name, const char *words)
{
    struct slurm_facts_read facts = good_facts();
    char *text = with(config, old, new_part);
    facts.config = text;
    assert_fails(&facts, name, words);
    free(text);
}

static void assert_nodes_fail(
    const char *old, const char *new_part, const char *name, const char *words)
{
    struct slurm_facts_read facts = good_facts();
    char *text = with(nodes, old, new_part);
    facts.nodes = text;
    assert_fails(&facts, name, words);
    free(text);
}

static void test_all_is_well(void **state)
{
    struct slurm_facts_read facts = good_facts();
    assert_fails(&facts, NULL, NULL);
}

static void test_types_of_other_files(void **state)
{
    struct slurm_facts_read facts = good_facts();
    facts.gres = "Name=gpu Type=i2 File=/dev/nvidia2\n";
    assert_fails(&facts, NULL, NULL);
    facts.gres = "Name=gpu Type=i0 File=/dev/nvidia2\n";
    assert_fails(&facts, "nodes", "gres.conf gives /dev/nvidia2 the type i0");
}

static void test_configuration(void **state)
{
    assert_config_fails("auth/munge", "auth/slurm", "node-auth", "auth/slurm");
    assert_config_fails("24.11.5", "21.08.2", "version", "21.08.2");
    assert_config_fails("gpu,shard", "gpu", "select", "no shard");
    assert_config_fails("cons_tres", "linear", "select", "cannot place");
    assert_config_fails("partitions,lua", "partitions", "guard", "no lua");
    assert_config_fails("23:00:00", "23:10:00", "clocks", "597 s apart");
}

static void test_versions(void **state)
{
    static const struct {
        const char *version, *words;
        bool is_restricted;
    } rows[] = {{"22.05.8", "same index", true}, {"23.02.5", "same index", true},
        {"23.02.6", "23.02.6", false}, {"23.11.4", "23.11.4", false},
        {"25.05.0", "newer than 24.11", false}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct doctor_check checks[SLURM_CHECKS_MAX];
        struct slurm_facts_read facts = good_facts();
        char *text = with(config, "24.11.5", rows[i].version);
        facts.config = text;
        slurm_check_run(&facts, checks);
        assert_string_equal(checks[2].name, "version");
        assert_true(checks[2].is_ok);
        assert_has(checks[2].detail, rows[i].words);
        assert_int_equal(strstr(checks[2].detail, "same index") != NULL, rows[i].is_restricted);
        free(text);
    }
}

static void test_nodes(void **state)
{
    assert_nodes_fail("shard:i0:80(S:0)", "shard:80", "nodes", "1 of 1 nodes");
    assert_nodes_fail("shard:i0:80(S:0)", "gpu:i1:1,shard:i0:80", "nodes", "by index: n0");
    assert_nodes_fail("State=IDLE", "State=DOWN*", "responding", "1 of 1");
    assert_nodes_fail("22:00:00", "23:30:00", "clocks", "node n0 is at least 1797 s ahead");
    struct slurm_facts_read facts = good_facts();
    facts.nodes = "NodeName=c1 Gres=(null) State=IDLE\n";
    assert_fails(&facts, "nodes", "no node has GPUs");
}

/* The one check that is named passes, and has the words. */
static void assert_passes(const struct slurm_facts_read *facts, const char *name, const char *words)
{
    struct doctor_check checks[SLURM_CHECKS_MAX];
    size_t count = slurm_check_run(facts, checks);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(checks[i].name, name) != 0)
            continue;
        assert_true(checks[i].is_ok);
        assert_has(checks[i].detail, words);
        return;
    }
    fail_msg("no check %s", name);
}

static struct link_side side_of(const char *path, bool is_tls, const char *digest)
{
    struct link_side side = {.is_there = true, .is_tls = is_tls, .key_fault = "there is no key"};
    snprintf(side.path, sizeof side.path, "%s", path);
    snprintf(side.key_digest, sizeof side.key_digest, "%s", digest);
    return side;
}

/* Both sides of the link have to say the same, with the same key, and what Slurm can do. */
static void test_node_auth(void **state)
{
    struct slurm_facts_read facts = good_facts();
    assert_passes(&facts, "node-auth", "munge");
    facts.controller = side_of("slurm.yaml", false, "");
    facts.agent = side_of("collocd.yaml", false, "");
    assert_passes(&facts, "node-auth", "munge");
    facts.agent = side_of("collocd.yaml", true, "1111aaaa");
    assert_fails(&facts, "node-auth", "slurm.yaml has node-auth munge, collocd.yaml has tls");
    facts.controller = side_of("slurm.yaml", true, "2222bbbb");
    assert_fails(&facts, "node-auth", "slurm.yaml (2222bbbb) and collocd.yaml (1111aaaa) differ");
    facts.controller = side_of("slurm.yaml", true, "");
    assert_fails(&facts, "node-auth", "there is no key");
    facts.controller = side_of("slurm.yaml", true, "1111aaaa");
    assert_passes(&facts, "node-auth", "tls, by key 1111aaaa");
    facts.controller = (struct link_side){0}; /* on a node */
    assert_passes(&facts, "node-auth", "tls, by key 1111aaaa");
    char *without = with(config, "auth/munge", "auth/slurm");
    facts.config = without;
    facts.munge_works = false;
    assert_passes(&facts, "node-auth", "tls");
    assert_passes(&facts, "munge", "not needed: AuthType=auth/slurm");
    facts.agent = side_of("collocd.yaml", false, "");
    assert_fails(&facts, "node-auth", "collocd.yaml has node-auth munge, but Slurm has");
    free(without);
}

static void test_wake_file(void **state)
{
    struct slurm_facts_read facts = good_facts();
    facts.wake_wanted = "/v";
    assert_passes(&facts, "wake-file", "no settings here");
    facts.controller = side_of("slurm.yaml", false, "");
    assert_fails(&facts, "wake-file", "wake-file /w, Slurm's scripts write /v");
    facts.wake_wanted = "/w";
    assert_passes(&facts, "wake-file", "at once, by /w");
    char path[300] = "/";
    memset(path + 1, 'd', sizeof path - 2);
    facts.wake_file = path;
    assert_fails(&facts, "wake-file", "write /w: submissions are seen late");
}

static void test_controller(void **state)
{
    struct slurm_facts_read facts = good_facts();
    assert_passes(&facts, "controller", "answers");
    facts.agents.is_known = false;
    assert_fails(&facts, "controller", "nor an agent has settings here: no job of gpu starts");
    facts.agent.is_there = true;
    assert_passes(&facts, "controller", "not known");
    facts.controller.is_there = true;
    assert_fails(&facts, "controller", "does not answer: no job of gpu starts");
}

static void test_agents(void **state)
{
    struct slurm_facts_read facts = good_facts();
    facts.agents.is_known = false;
    facts.agent.is_there = true;
    assert_passes(&facts, "agents", "does not answer");
    facts.agents.is_known = true;
    facts.agents.nodes = facts.agents.silent = 3;
    assert_passes(&facts, "agents", "estimates alone decide");
    facts.agents.silent = 2;
    strcpy(facts.agents.first_silent, "n2");
    assert_fails(&facts, "agents", "2 of 3 nodes do not report: n2, ...");
    facts.agents.is_wanted = true;
    facts.agents.silent = 3;
    assert_fails(&facts, "agents", "3 of 3 nodes");
    facts.agents.silent = 2;
    assert_fails(&facts, "agents", "2 of 3 nodes do not report: n2, ...");
    facts.agents.silent = 0;
    assert_passes(&facts, "agents", "3 nodes report");
}

static void test_partitions_and_guard(void **state)
{
    struct slurm_facts_read facts = good_facts();
    facts.run = "other";
    assert_fails(&facts, "partitions", "no partition other");
    facts = good_facts();
    facts.intake = "gpu-run";
    assert_fails(&facts, "partitions", "the name clashes");
    facts = good_facts();
    facts.guard = NULL;
    assert_fails(&facts, "guard", "missing");
    facts.guard = "-- guarded\n";
    assert_fails(&facts, "guard", "altered");
}

static void test_no_slurmctld(void **state)
{
    struct doctor_check checks[SLURM_CHECKS_MAX];
    struct slurm_facts_read facts = good_facts();
    facts.config = facts.nodes = facts.partitions = "";
    facts.ping = "Slurmctld(primary) at head is DOWN\n";
    assert_int_equal(slurm_check_run(&facts, checks), 2);
    assert_false(checks[0].is_ok);
    assert_has(checks[0].detail, "is DOWN");
    facts.munge_works = false;
    slurm_check_run(&facts, checks);
    assert_false(checks[1].is_ok);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_is_well),
        cmocka_unit_test(test_configuration),
        cmocka_unit_test(test_types_of_other_files),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_nodes),
        cmocka_unit_test(test_node_auth),
        cmocka_unit_test(test_controller),
        cmocka_unit_test(test_agents),
        cmocka_unit_test(test_wake_file),
        cmocka_unit_test(test_partitions_and_guard),
        cmocka_unit_test(test_no_slurmctld),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
