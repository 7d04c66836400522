/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A table instead of a distance between letters: --vram is --memory, though no letter says so, and
 * --device is not --service. A row counts only for a command that has its option.
 *
 *     colloc submit --vram=10G    --vram: no such option: --memory is the GPU memory that it needs
 *     colloc queue --watch        --watch: no such option: `colloc top` shows tasks continuously
 */
#include "taskfile/option_hints.h"

#include <string.h>

#include "base/array.h"

#define GPU_MEMORY  "--memory=12GiB is the GPU memory that it needs on each GPU"
#define HOST_MEMORY "--host-memory=32GiB is the main memory that it needs"
#define CERTAIN_GPU "--gpu-ids=2,3 names the GPUs that it may run on"
#define CONTAINER   "--container=IMAGE runs the command in a container with the task's GPUs"
#define ENVIRONMENT                                                                                \
    "a task has the environment of this shell: write A=1 before colloc, or --export=ALL,A=1"
#define TIME_LIMIT "--time=2h limits its run time"
#define RUN_AGAIN  "--requeue is the default; `colloc rerun ID` submits an ended task again"
#define OUTPUT     "--output=FILE is the file for its output"
#define MESSAGES   "--notify=end,fail sends messages, --notify-to=ADDRESS says where to"
#define TOP        "`colloc top` shows tasks and GPUs continuously"

static const struct {
    const char *name;
    const char *needs; /* an option of the command; NULL: any command */
    const char *hint;
} hints[] = {
    {"gpu-memory", "memory", GPU_MEMORY},
    {"gpu-mem", "memory", GPU_MEMORY},
    {"vram", "memory", GPU_MEMORY},
    {"ram", "host-memory", HOST_MEMORY},
    {"cpu-memory", "host-memory", HOST_MEMORY},
    {"main-memory", "host-memory", HOST_MEMORY},
    {"num-gpus", "gpus", "--gpus=2 is the number of GPUs"},
    {"ngpus", "gpus", "--gpus=2 is the number of GPUs"},
    {"n-gpus", "gpus", "--gpus=2 is the number of GPUs"},
    {"gpu-count", "gpus", "--gpus=2 is the number of GPUs"},
    {"gpu", "gpu-ids", "--gpus=1 is the number of GPUs; " CERTAIN_GPU},
    {"gpu-id", "gpu-ids", CERTAIN_GPU},
    {"gpu-index", "gpu-ids", CERTAIN_GPU},
    {"device", "gpu-ids", CERTAIN_GPU},
    {"devices", "gpu-ids", CERTAIN_GPU},
    {"gpu-type", "gpu-kind", "--gpu-kind=A100 names the kinds of GPUs that it may run on"},
    {"gpu-model", "gpu-kind", "--gpu-kind=A100 names the kinds of GPUs that it may run on"},
    {"num-cpus", "cpus", "--cpus=8 is the number of CPUs"},
    {"cores", "cpus", "--cpus=8 is the number of CPUs"},
    {"ncpus", "cpus", "--cpus=8 is the number of CPUs"},
    {"env", "requeue", ENVIRONMENT},
    {"environment", "requeue", ENVIRONMENT},
    {"cwd", "requeue", "--chdir=FOLDER is the folder that it runs in"},
    {"working-dir", "requeue", "--chdir=FOLDER is the folder that it runs in"},
    {"timeout", "requeue", TIME_LIMIT},
    {"walltime", "requeue", TIME_LIMIT},
    {"time-limit", "requeue", TIME_LIMIT},
    {"retry", "requeue", RUN_AGAIN},
    {"retries", "requeue", RUN_AGAIN},
    {"restart", "requeue", RUN_AGAIN},
    {"log", "output", OUTPUT},
    {"logfile", "output", OUTPUT},
    {"stdout", "output", OUTPUT},
    {"stderr", "error", "--error=FILE is the file for its standard error"},
    {"mail", "notify", MESSAGES},
    {"email", "notify", MESSAGES},
    {"depends", "after", "--after=ok:12 waits for the end of task 12"},
    {"depends-on", "after", "--after=ok:12 waits for the end of task 12"},
    {"delay", "begin", "--begin=now+2h does not start it before"},
    {"detach", "requeue", "`colloc submit` returns at once; `colloc run` waits"},
    {"interactive", "requeue", "`colloc shell` opens a shell, `colloc run --pty` a terminal"},
    {"image", "container", CONTAINER},
    {"docker", "container", CONTAINER},
    {"podman", "container", CONTAINER},
    {"watch", NULL, TOP},
    {"interval", NULL, TOP},
    {"all", "state", "--state=all shows tasks that have ended, too"},
    {"me", "mine", "--mine selects your own tasks"},
    {"me", "user", "--user=$USER selects your own tasks"},
    {"mine", "user", "--user=$USER selects your own tasks"},
    {"tail", "lines", "--lines=N shows the last N lines"},
    {"tail", "follow", "-f follows the output"},
    {"last", "since", "--since=2h shows what ended since then"},
    {"to", "for", "--for=8h is how long the reservation lasts"},
    {"until", "for", "--for=8h is how long the reservation lasts"},
    {"end", "for", "--for=8h is how long the reservation lasts"},
    {"start", "for", "--from=2030-01-31T08:00 is when the reservation begins"},
    {"begin", "for", "--from=2030-01-31T08:00 is when the reservation begins"},
    {"duration", "for", "--for=8h is how long the reservation lasts"},
    {"format", NULL, "--json prints all members for programs, --csv a table"},
    {"verbose", NULL, "`colloc show ID` shows everything about a task"},
};

static bool has_option(const struct option_set *sets, size_t n_sets, const char *name)
{
    for (size_t s = 0; s < n_sets; s++)
        if (option_find(sets[s].specs, sets[s].count, name))
            return true;
    return false;
}

const char *option_hint(const struct option_set *sets, size_t n_sets, const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(hints); i++)
        if (strcmp(hints[i].name, name) == 0 &&
            (!hints[i].needs || has_option(sets, n_sets, hints[i].needs)))
            return hints[i].hint;
    return NULL;
}
