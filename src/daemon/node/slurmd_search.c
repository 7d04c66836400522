/* SPDX-License-Identifier: Apache-2.0 */
/*
 * slurmd is found by its name, not by SlurmdPidFile: Slurm writes none with `slurmd --systemd`.
 * Several slurmds may run on one machine, of other nodes (-N) or of other clusters (-f). When in
 * doubt one is of this node: then no job is ended, although slurmd may be lost.
 */
#include "daemon/node/slurmd_search.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/process.h"
#include "base/text.h"

enum { ENTRY_MAX = 4 << 20, NAME_SIZE = 256 };

/* Any user can start it under any name, by a link, and then it is root's process. */
static bool is_setuid_program(pid_t pid)
{
    char path[64];
    struct stat program;
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    return stat(path, &program) == 0 && program.st_mode & S_ISUID;
}

/* Of root, or of the agent's own user: others can give their processes any name. */
static bool is_slurmd(pid_t pid)
{
    char path[64];
    struct process_stat process;
    struct stat owner;
    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    if (stat(path, &owner) < 0 || (owner.st_uid != 0 && owner.st_uid != geteuid()))
        return false;
    return process_read_stat(pid, &process) == 0 && !process_has_ended(&process) &&
           strcmp(process.name, "slurmd") == 0 && !is_setuid_program(pid);
}

const char *slurmd_find_option(const char *words, size_t size, char option)
{
    static const char flags[] = "bcCDGhMsvVZ";
    for (const char *word = words; word < words + size; word += strlen(word) + 1) {
        if (*word != '-')
            continue;
        const char *found = word + 1 + strspn(word + 1, flags), *next = word + strlen(word) + 1;
        if (*found == option)
            return found[1] ? found + 1 : next < words + size ? next : NULL;
    }
    return NULL;
}

bool slurm_conf_cluster(const char *text, char *ret_name, size_t size)
{
    static const char key[] = "ClusterName";
    struct span rest = span_of(text), span;
    bool is_found = false;
    while (span_next_line(&rest, &span)) {
        char line[1024];
        span_copy(span, line, sizeof line);
        const char *at = line + strspn(line, " \t");
        if (strncasecmp(at, key, strlen(key)) != 0)
            continue;
        at += strlen(key) + strspn(at + strlen(key), " \t");
        if (*at != '=')
            continue;
        at += 1 + strspn(at + 1, " \t\"");
        is_found = span_copy((struct span){at, strcspn(at, " \t\r\"#")}, ret_name, size);
    }
    return is_found && *ret_name;
}

/* By the names of the clusters: one slurm.conf may have several paths, and copies. */
static bool is_of_another_cluster(pid_t pid, const char *conf, const char *cluster)
{
    char path[4096], name[NAME_SIZE], *text = NULL;
    size_t size;
    if (!*cluster || !conf || *conf != '/')
        return false;
    snprintf(path, sizeof path, "/proc/%d/root%s", (int)pid, conf);
    bool is_another = file_read(path, ENTRY_MAX, NULL, &text, &size) == 0 &&
                      slurm_conf_cluster(text, name, sizeof name) && strcasecmp(name, cluster) != 0;
    free(text);
    return is_another;
}

/* Is it slurmd of another node or of another cluster, for certain? */
static bool serves_another(pid_t pid, const struct slurm_identity *identity)
{
    char *words = NULL, *environment = NULL;
    size_t n_words = 0, n_environment = 0;
    if (process_read_entry(pid, "cmdline", ENTRY_MAX, &words, &n_words) < 0)
        return false;
    if (process_read_entry(pid, "environ", ENTRY_MAX, &environment, &n_environment) < 0)
        n_environment = 0;
    const char *name = slurmd_find_option(words, n_words, 'N');
    const char *conf = slurmd_find_option(words, n_words, 'f');
    if (!conf)
        conf = process_find_variable(environment, n_environment, "SLURM_CONF");
    bool is_another = (name && strcmp(name, identity->node) != 0) ||
                      is_of_another_cluster(pid, conf, identity->cluster);
    free(words);
    free(environment);
    return is_another;
}

static int match_slurmd(pid_t pid, void *context)
{
    return is_slurmd(pid) && !serves_another(pid, context) ? pid : 0;
}

pid_t slurmd_search(const struct slurm_identity *identity, struct fault *fault)
{
    int r = process_walk(match_slurmd, (void *)identity);
    return r < 0 ? fault_set(fault, -r, "could not list /proc: %s", strerror(-r)) : r;
}
