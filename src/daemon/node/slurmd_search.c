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
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/process.h"

enum { ENTRY_MAX = 4 << 20 };

/* Of root, or of the agent's own user: others can give their processes any name. */
static bool is_slurmd(pid_t pid)
{
    char path[64], text[512];
    struct process_stat process;
    struct stat owner;
    snprintf(path, sizeof path, "/proc/%d", (int)pid);
    if (stat(path, &owner) < 0 || (owner.st_uid != 0 && owner.st_uid != geteuid()))
        return false;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    return file_read_start(path, text, sizeof text) > 0 &&
           process_parse_stat(text, &process) == 0 && !process_has_ended(&process) &&
           strcmp(process.name, "slurmd") == 0;
}

/* The value of an option in a command line of slurmd: "-N n1", "-Nn1", "-DN n1"; NULL: none. */
static const char *find_option(const char *words, size_t size, char option)
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

static const char *find_variable(const char *environment, size_t size, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = environment; at < environment + size; at += strlen(at) + 1)
        if (strncmp(at, name, n) == 0 && at[n] == '=')
            return at + n + 1;
    return NULL;
}

/* Is it slurmd of another node or of another cluster, for certain? */
static bool serves_another(pid_t pid, const char *node)
{
    char *words = NULL, *environment = NULL;
    size_t n_words = 0, n_environment = 0;
    const char *ours = getenv("SLURM_CONF");
    if (process_read_entry(pid, "cmdline", ENTRY_MAX, &words, &n_words) < 0)
        return false;
    if (process_read_entry(pid, "environ", ENTRY_MAX, &environment, &n_environment) < 0)
        n_environment = 0;
    const char *name = find_option(words, n_words, 'N'), *conf = find_option(words, n_words, 'f');
    if (!conf)
        conf = find_variable(environment, n_environment, "SLURM_CONF");
    bool is_another = (name && strcmp(name, node) != 0) ||
                      (ours && conf && strcmp(ours, conf) != 0);
    free(words);
    free(environment);
    return is_another;
}

static int match_slurmd(pid_t pid, void *context)
{
    return is_slurmd(pid) && !serves_another(pid, context) ? pid : 0;
}

pid_t slurmd_search(const char *node, struct fault *fault)
{
    int r = process_walk(match_slurmd, (void *)node);
    return r < 0 ? fault_set(fault, -r, "could not list /proc: %s", strerror(-r)) : r;
}
