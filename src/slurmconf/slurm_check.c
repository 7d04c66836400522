/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checks of a cluster, a function and a line of the table each, in the order in which their
 * failures explain each other.
 */
#include "slurmconf/slurm_check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "slurmconf/conf_text.h"
#include "slurmconf/gres_check.h"
#include "slurmconf/gres_text.h"

enum { CLOCK_LIMIT_S = 30 }; /* chosen: munge refuses credentials at 300 s */

/* Slurm versions as year and month in one number: 2205. */
enum {
    OLDEST = 2205, /* the oldest that was tested */
    REPLACES_GRES = 2303 /* 23.02.6 and later: a change replaces a job's GRES (release notes) */,
    NEWEST_TESTED = 2411
};

/* The value of "Key   = value" in what `scontrol show config` prints. */
static bool find_setting(const char *config, const char *key, struct span *ret_value)
{
    struct span rest = span_of(config), line;
    while (span_next_line(&rest, &line)) {
        const char *equals = memchr(line.at, '=', line.size);
        if (!equals)
            continue;
        struct span name = span_trim((struct span){line.at, (size_t)(equals - line.at)});
        if (!span_is(name, key))
            continue;
        *ret_value = span_trim(
            (struct span){equals + 1, (size_t)(line.at + line.size - equals) - 1});
        return true;
    }
    return false;
}

static bool has_setting(const char *config, const char *key, const char *word)
{
    struct span value;
    return find_setting(config, key, &value) && memmem(value.at, value.size, word, strlen(word));
}

/* ---- the checks ---- */

static void check_slurmctld(const struct slurm_facts_read *facts, struct doctor_check *check)
{
    if (*facts->config && strstr(facts->ping, " is UP"))
        doctor_pass(check, "answers");
    else
        doctor_fail(check,
            "start slurmctld, or run this where SLURM_CONF names the cluster's slurm.conf",
            "does not answer: %.150s", *facts->ping ? facts->ping : "scontrol cannot be run");
}

/* Does Slurm itself do without munge? */
static bool is_without_munge(const struct slurm_facts_read *facts, struct span *ret_type)
{
    return find_setting(facts->config, "AuthType", ret_type) && !span_is(*ret_type, "auth/munge");
}

static void check_munge(const struct slurm_facts_read *facts, struct doctor_check *check)
{
    struct span type;
    if (is_without_munge(facts, &type))
        doctor_pass(check, "not needed: AuthType=%.*s (colloc's commands on login nodes need it)",
            (int)type.size, type.at);
    else if (facts->munge_works)
        doctor_pass(check, "makes credentials here");
    else
        doctor_fail(check, "install munge with the cluster's key and start munged",
            "`munge -n` fails on this machine");
}

static void check_version(const struct slurm_facts_read *facts, struct doctor_check *check)
{
    struct span text = {"unknown", 7};
    int year = 0, month = 0, patch = 0;
    if (find_setting(facts->config, "SLURM_VERSION", &text))
        sscanf(text.at, "%d.%d.%d", &year, &month, &patch);
    int version = 100 * year + month;
    bool replaces = version >= REPLACES_GRES || (version == 2302 && patch >= 6);
    if (version < OLDEST)
        doctor_fail(check, "22.05 is the oldest Slurm that colloc works with", "%.*s",
            (int)text.size, text.at);
    else if (!replaces)
        doctor_pass(check,
            "%.*s: works; a job that ran out of GPU memory can be repeated only on a GPU of the "
            "same index (23.02.6 and later: on any)",
            (int)text.size, text.at);
    else
        doctor_pass(check, "%.*s%s", (int)text.size, text.at,
            version > NEWEST_TESTED ? " (newer than 24.11, the newest tested)" : "");
}

static void check_select(const struct slurm_facts_read *facts, struct doctor_check *check)
{
    if (!has_setting(facts->config, "SelectType", "select/cons_tres"))
        doctor_fail(check, "set SelectType=select/cons_tres", "cannot place shards");
    else if (!has_setting(facts->config, "GresTypes", "shard"))
        doctor_fail(check, "run `colloc slurm setup`", "GresTypes has no shard");
    else
        doctor_pass(check, "cons_tres with shards");
}

static void check_nodes(const struct slurm_facts_read *facts, struct doctor_check *check)
{
    struct fault fault = {.text = ""};
    struct span rest = span_of(facts->nodes), line, name, gres, first = {0};
    int good = 0, bad = 0;
    while (span_next_line(&rest, &line)) {
        char *text = strndup(line.at, line.size);
        if (text && conf_find(text, "NodeName", &name) && conf_find(text, "Gres", &gres) &&
            gres_count(gres, "gpu") > 0) {
            bool is_typed = gres_count_typed(gres) == gres_count(gres, "gpu");
            if (!is_typed && bad++ == 0)
                first = (struct span){line.at + (name.at - text), name.size};
            good += is_typed;
        }
        free(text);
    }
    if (bad > 0)
        doctor_fail(check, "run `colloc slurm setup`, then restart slurmctld and the slurmd's",
            "%d of %d nodes with GPUs lack shards by index: %.*s%s", bad, good + bad,
            (int)first.size, first.at, bad > 1 ? ", ..." : "");
    else if (facts->gres && gres_check_numbers(span_of(facts->gres), NULL, &fault, NULL) == -EINVAL)
        doctor_fail(check, "see docs/slurm.md", "%s", fault.text);
    else if (good == 0)
        doctor_fail(
            check, "name the GPUs in slurm.conf (Gres=gpu:N) and gres.conf", "no node has GPUs");
    else
        doctor_pass(check, "%d with GPUs, all have shards by index", good);
}

/* A "*" behind the state: the node does not respond. */
static void check_responding(const struct slurm_facts_read *facts, struct doctor_check *check)
{
    struct span rest = span_of(facts->nodes), line, gres, state;
    int silent = 0, unusable = 0, all = 0;
    while (span_next_line(&rest, &line)) {
        char *text = strndup(line.at, line.size);
        if (text && conf_find(text, "Gres", &gres) && gres_count(gres, "gpu") > 0 &&
            conf_find(text, "State", &state)) {
            bool is_silent = memchr(state.at, '*', state.size);
            silent += is_silent;
            unusable += !is_silent && (memmem(state.at, state.size, "DOWN", 4) ||
                                          memmem(state.at, state.size, "DRAIN", 5));
            all++;
        }
        free(text);
    }
    if (silent > 0)
        doctor_fail(check, "look at slurmd and munge there; clocks that are apart look like this",
            "%d of %d nodes with GPUs do not respond", silent, all);
    else
        doctor_pass(check, "%d nodes with GPUs respond; %d are down or drained", all, unusable);
}

/* The State of a partition; false: there is no such partition. */
static bool find_partition(const char *partitions, const char *name, bool *ret_is_up)
{
    struct span rest = span_of(partitions), line, value;
    bool is_found = false;
    while (!is_found && span_next_line(&rest, &line)) {
        char *text = strndup(line.at, line.size);
        if (text && conf_begins_with(text, "PartitionName", &value) && span_is(value, name)) {
            is_found = true;
            *ret_is_up = conf_find(text, "State", &value) && span_is(value, "UP");
        }
        free(text);
    }
    return is_found;
}

static void check_partitions(const struct slurm_facts_read *facts, struct doctor_check *check)
{
    bool intake_is_up = false, run_is_up = false;
    if (!find_partition(facts->partitions, facts->intake, &intake_is_up))
        doctor_fail(check, "run `colloc slurm setup`, or name it with --intake",
            "there is no partition %s", facts->intake);
    else if (intake_is_up)
        doctor_fail(check,
            "setup --take-partition makes it colloc's, --intake=NAME names another one",
            "partition %s is UP, so Slurm itself starts its jobs: the name clashes", facts->intake);
    else if (!find_partition(facts->partitions, facts->run, &run_is_up))
        doctor_fail(check, "run `colloc slurm setup`, or name it with --run",
            "there is no partition %s", facts->run);
    else if (!run_is_up)
        doctor_fail(check, "scontrol update PartitionName=NAME State=UP",
            "partition %s is not UP: no job can start", facts->run);
    else
        doctor_pass(check, "%s takes jobs, they run in %s", facts->intake, facts->run);
}

static void check_guard(const struct slurm_facts_read *facts, struct doctor_check *check)
{
    if (!has_setting(facts->config, "JobSubmitPlugins", "lua"))
        doctor_fail(check, "run `colloc slurm setup`, then restart slurmctld",
            "JobSubmitPlugins has no lua: users could choose GPUs themselves");
    else if (!facts->guard)
        doctor_fail(check, "run `colloc slurm setup --write` on slurmctld's machine",
            "job_submit.lua is missing beside slurm.conf");
    else if (!strstr(facts->guard, facts->guard_wanted))
        doctor_fail(check, "run `colloc slurm setup --write` again (with the same options)",
            "job_submit.lua lacks colloc's part, or it was altered");
    else
        doctor_pass(check, "job_submit.lua is as setup writes it");
}

static void check_job_ends(const struct slurm_facts_read *facts, struct doctor_check *check)
{
    bool has_lua = has_setting(facts->config, "JobCompType", "jobcomp/lua");
    doctor_pass(check, has_lua ? "reported at once by jobcomp.lua"
                               : "noticed by polling, within seconds (JobCompType is not lua)");
}

static void check_wake_file(const struct slurm_facts_read *facts, struct doctor_check *check)
{
    if (!facts->controller.is_there)
        doctor_pass(check, "not known: colloc-slurm has no settings here");
    else if (strcmp(facts->wake_file, facts->wake_wanted) != 0)
        doctor_fail(check,
            "set wake-file there to what `colloc slurm setup` prints, and restart colloc-slurm",
            "%s has wake-file %s, Slurm's scripts write %s: submissions are seen late",
            facts->controller.path, facts->wake_file, facts->wake_wanted);
    else
        doctor_pass(check, "submissions are seen at once, by %s", facts->wake_file);
}

/* Seconds since 1970 of "2026-11-22T23:00:00" in local time, or 0. */
static int64_t read_time(struct span text)
{
    char buffer[32];
    struct tm when = {.tm_isdst = -1};
    span_copy(text, buffer, sizeof buffer);
    const char *end = strptime(buffer, "%Y-%m-%dT%H:%M:%S", &when);
    return end ? (int64_t)mktime(&when) : 0;
}

/* Returns the largest number of seconds by which a slurmd began in the future. */
static int64_t find_clock_ahead(const struct slurm_facts_read *facts, char *node, size_t size)
{
    struct span rest = span_of(facts->nodes), line, name, start;
    int64_t most = 0;
    while (span_next_line(&rest, &line)) {
        char *text = strndup(line.at, line.size);
        if (text && conf_find(text, "NodeName", &name) &&
            conf_find(text, "SlurmdStartTime", &start)) {
            int64_t ahead = read_time(start) - facts->now_s;
            if (ahead > most) {
                most = ahead;
                span_copy(name, node, size);
            }
        }
        free(text);
    }
    return most;
}

static void check_clocks(const struct slurm_facts_read *facts, struct doctor_check *check)
{
    static const char before[] = "Configuration data as of ";
    static const char advice[] = "synchronise the clocks (chrony): munge refuses credentials at 5 "
                                 "minutes";
    const char *at = strstr(facts->config, before);
    int64_t now_s = at ? read_time((struct span){at + strlen(before), 19}) : 0;
    int64_t apart_s = now_s ? llabs((long long)(now_s - facts->now_s)) : 0;
    char node[64] = "";
    int64_t ahead_s = find_clock_ahead(facts, node, sizeof node);
    if (apart_s > CLOCK_LIMIT_S)
        doctor_fail(check, advice, "slurmctld's clock and this machine's are %lld s apart",
            (long long)apart_s);
    else if (ahead_s > CLOCK_LIMIT_S)
        doctor_fail(check, advice, "the clock of node %s is at least %lld s ahead", node,
            (long long)ahead_s);
    else
        doctor_pass(check, "no difference was found (a node that is behind cannot be seen)");
}

/* ---- the link between colloc-slurm and the agents ---- */

static const char *auth_name(const struct link_side *side)
{
    return side->is_tls ? "tls" : "munge";
}

/* Returns false when the side alone is wrong. */
static bool check_side(
    const struct slurm_facts_read *facts, const struct link_side *side, struct doctor_check *check)
{
    struct span type;
    if (!side->is_there)
        return true;
    if (!side->is_tls && is_without_munge(facts, &type))
        doctor_fail(check,
            "run `colloc slurm setup --write` on colloc-slurm's machine and follow what it prints",
            "%s has node-auth munge, but Slurm has AuthType=%.*s", side->path, (int)type.size,
            type.at);
    else if (side->is_tls && !*side->key_digest)
        doctor_fail(check,
            "copy the key of colloc-slurm's machine (`scp -p`), where `colloc slurm setup --write` "
            "makes it; run this check as root",
            "%s has node-auth tls: %.300s", side->path, side->key_fault);
    else
        return true;
    return false;
}

static void check_node_auth(const struct slurm_facts_read *facts, struct doctor_check *check)
{
    const struct link_side *ours = &facts->controller, *agent = &facts->agent;
    const struct link_side *any = ours->is_there ? ours : agent;
    struct span type;
    if (!any->is_there && is_without_munge(facts, &type))
        doctor_fail(check, "run `colloc slurm setup --write`, and follow what it prints",
            "%s has no node-auth, but Slurm has AuthType=%.*s", ours->path, (int)type.size,
            type.at);
    else if (!any->is_there)
        doctor_pass(check, "munge (neither colloc-slurm nor an agent has settings here)");
    else if (!check_side(facts, ours, check) || !check_side(facts, agent, check))
        return;
    else if (ours->is_there && agent->is_there && ours->is_tls != agent->is_tls)
        doctor_fail(check, "set the same in both, and on all nodes; then restart what has changed",
            "%s has node-auth %s, %s has %s", ours->path, auth_name(ours), agent->path,
            auth_name(agent));
    else if (ours->is_there && agent->is_there && strcmp(ours->key_digest, agent->key_digest) != 0)
        doctor_fail(check, "give both the same file, and copy it to all nodes",
            "the keys of %s (%s) and %s (%s) differ", ours->path, ours->key_digest, agent->path,
            agent->key_digest);
    else if (any->is_tls)
        doctor_pass(check, "tls, by key %s: this check has to print the same on every node",
            any->key_digest);
    else
        doctor_pass(check, "munge");
}

/* The intake is DOWN, so without colloc-slurm no job of it starts. */
static void check_controller(const struct slurm_facts_read *facts, struct doctor_check *check)
{
    if (facts->agents.is_known)
        doctor_pass(check, "colloc-slurm answers");
    else if (facts->controller.is_there)
        doctor_fail(check, "`systemctl status colloc-slurm`, and what it has logged",
            "colloc-slurm has settings here (%s), but does not answer: no job of %s starts",
            facts->controller.path, facts->intake);
    else if (facts->agent.is_there)
        doctor_pass(check, "not known: it does not run on this machine");
    else
        doctor_fail(check,
            "write there what `colloc slurm setup` prints, and start colloc-slurm; on a GPU node "
            "write the settings of its agent",
            "neither colloc-slurm (%s) nor an agent has settings here: no job of %s starts",
            facts->controller.path, facts->intake);
}

static void check_agents(const struct slurm_facts_read *facts, struct doctor_check *check)
{
    const struct agents_seen *seen = &facts->agents;
    if (!seen->is_known)
        doctor_pass(check, "not known: colloc-slurm does not answer on this machine");
    else if (!seen->is_wanted && seen->silent == seen->nodes) /* it may be set elsewhere */
        doctor_pass(check, "none: colloc-slurm has no setting listen, and estimates alone decide");
    else if (seen->silent > 0)
        doctor_fail(check,
            "there: `systemctl status colloc-node`, and `colloc slurm check`, whose node-auth has "
            "to be as here; the log of colloc-slurm names agents that it refuses",
            "%d of %d nodes do not report: %s%s", seen->silent, seen->nodes, seen->first_silent,
            seen->silent > 1 ? ", ..." : "");
    else
        doctor_pass(check, "%d nodes report their GPUs", seen->nodes);
}

static const struct {
    const char *name;
    void (*run)(const struct slurm_facts_read *, struct doctor_check *);
} checks[] = {
    {"slurmctld", check_slurmctld},
    {"munge", check_munge},
    {"version", check_version},
    {"select", check_select},
    {"nodes", check_nodes},
    {"responding", check_responding},
    {"partitions", check_partitions},
    {"guard", check_guard},
    {"job-ends", check_job_ends},
    {"wake-file", check_wake_file},
    {"clocks", check_clocks},
    {"node-auth", check_node_auth},
    {"controller", check_controller},
    {"agents", check_agents},
};

_Static_assert(ARRAY_SIZE(checks) <= SLURM_CHECKS_MAX, "room for all checks");

size_t slurm_check_run(const struct slurm_facts_read *facts, struct doctor_check *ret_checks)
{
    size_t count = *facts->config ? ARRAY_SIZE(checks) : 2;
    for (size_t i = 0; i < count; i++) {
        ret_checks[i] = (struct doctor_check){.name = checks[i].name};
        checks[i].run(facts, &ret_checks[i]);
    }
    return count;
}
