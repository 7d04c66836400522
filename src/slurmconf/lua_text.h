/* SPDX-License-Identifier: Apache-2.0 */
/* The Lua scripts that colloc gives to Slurm. */
#ifndef COLLOC_SLURMCONF_LUA_TEXT_H
#define COLLOC_SLURMCONF_LUA_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The scripts by their file names, which Slurm prescribes; ended by NULL. */
extern const char *const lua_names[];

struct lua_settings {
    const char *intake, *run; /* partitions */
    const char *wake_file;
    const uid_t *administrators; /* users whose requests the guard does not refuse */
    size_t n_administrators;
    int shards;               /* of a GPU; this and the next are for cli_filter.lua */
    const char *colloc;       /* path of the program */
    int64_t gpu_memory_bytes; /* of a GPU */
};

/*
 * Makes a script: the text in dist/slurm with its settings.
 *
 * name: one of lua_names
 *
 * Returns the text on the heap; NULL when memory is out or the name is unknown.
 */
char *lua_text_make(const char *name, const struct lua_settings *settings);

#endif
