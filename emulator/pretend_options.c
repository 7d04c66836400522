/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of colloc-pretend-train: a table of options, and one case for each. Values that
 * are not given stay NAN, since their defaults are constants of the world, which is opened
 * later. */
#include "emulator/pretend_options.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <string.h>

#include "base/units.h"

static const char HELP[] =
    "Usage: colloc-pretend-train --memory-mib=N --seconds=S [options]\n"
    "Behaves like a training process on the GPUs that 'colloc-emulator create' made ($COLLOC_EMULATOR).\n"
    "Times are emulated seconds. Finds its GPUs through CUDA_VISIBLE_DEVICES, MPS through CUDA_MPS_PIPE_DIRECTORY.\n\n"
    "  --memory-mib=N       memory per GPU as nvidia-smi shows it\n"
    "  --seconds=S          how long the training takes alone on its GPUs\n"
    "  --gpus=N             how many GPUs it uses (default 1)\n"
    "  --epochs=N           prints a line after each (default 1)\n"
    "  --steps=N            reports that many steps, evenly, as a script with colloc.step() does (default 0: none)\n"
    "  --startup-seconds=S  time before it uses a GPU (default: the constant startup_s, 0)\n"
    "  --ramp-seconds=S     time until it has all its memory, at most half of --seconds (default: the constant ramp_s, 20)\n"
    "  --framework=NAME     framework of its error messages: pytorch, tensorflow, jax, cuda (default pytorch)\n"
    "  --exit-code=N        exit status after the last epoch (default 0)\n"
    "  --fault-after=S      reads a wrong address after S seconds of work: under MPS this ends all clients of its\n"
    "                       server on the GPU\n"
    "  --leak-mib=N         allocates N MiB more every second\n"
    "  --profiler           runs under a profiler: it cannot be locked\n"
    "  --managed            uses managed memory: it cannot be suspended\n"
    "  --catch-term         ends with exit status 0 on SIGTERM, as a training that writes a checkpoint does\n"
    "  --smact=F            SM activity when alone, 0 to 1 (default 0.6)\n"
    "  --gract=F --smocc=F --dram=F --power-w=W\n"
    "                       the other activities and the power of its GPU when alone (default: from SMACT)\n";

enum key {
    MEMORY_MIB = 256,
    SECONDS,
    GPUS,
    EPOCHS,
    STEPS,
    STARTUP_SECONDS,
    RAMP_SECONDS,
    FRAMEWORK,
    EXIT_CODE,
    FAULT_AFTER,
    LEAK_MIB,
    CATCH_TERM,
    PROFILER,
    MANAGED,
    SMACT,
    GRACT,
    SMOCC,
    DRAM,
    POWER_W,
    HELP_ASKED,
};

static const struct option options[] = {
    {"memory-mib", required_argument, NULL, MEMORY_MIB},
    {"seconds", required_argument, NULL, SECONDS},
    {"gpus", required_argument, NULL, GPUS},
    {"epochs", required_argument, NULL, EPOCHS},
    {"steps", required_argument, NULL, STEPS},
    {"startup-seconds", required_argument, NULL, STARTUP_SECONDS},
    {"ramp-seconds", required_argument, NULL, RAMP_SECONDS},
    {"framework", required_argument, NULL, FRAMEWORK},
    {"exit-code", required_argument, NULL, EXIT_CODE},
    {"fault-after", required_argument, NULL, FAULT_AFTER},
    {"leak-mib", required_argument, NULL, LEAK_MIB},
    {"catch-term", no_argument, NULL, CATCH_TERM},
    {"profiler", no_argument, NULL, PROFILER},
    {"managed", no_argument, NULL, MANAGED},
    {"smact", required_argument, NULL, SMACT},
    {"gract", required_argument, NULL, GRACT},
    {"smocc", required_argument, NULL, SMOCC},
    {"dram", required_argument, NULL, DRAM},
    {"power-w", required_argument, NULL, POWER_W},
    {"help", no_argument, NULL, HELP_ASKED},
    {0},
};

static int parse_int(const char *text, int min, int max, int *ret_value)
{
    int64_t value;
    int r = parse_int64(text, min, max, &value);

    if (r == 0)
        *ret_value = (int)value;
    return r;
}

static int parse_mib(const char *text, int64_t *ret_bytes)
{
    int r = parse_int64(text, 1, INT64_C(1) << 30, ret_bytes);

    *ret_bytes *= MIB;
    return r;
}

static int parse_framework(const char *text, enum framework *ret_framework)
{
    int found = framework_find(text);

    if (found < 0)
        return -EINVAL;
    *ret_framework = (enum framework)found;
    return 0;
}

/* Each value has its limits here, so that no combination makes the world unsound. */
static int take_option(int key, const char *text, struct pretend_options *o)
{
    switch (key) {
    case MEMORY_MIB:
        return parse_mib(text, &o->memory_bytes);
    case SECONDS:
        return parse_double(text, 0, 1e9, &o->seconds);
    case GPUS:
        return parse_int(text, 1, SEATS_MAX, &o->gpus);
    case EPOCHS:
        return parse_int(text, 1, 1000000, &o->epochs);
    case STEPS:
        return parse_int(text, 0, 1000000000, &o->steps);
    case STARTUP_SECONDS:
        return parse_double(text, 0, 1e9, &o->startup_s);
    case RAMP_SECONDS:
        return parse_double(text, 0, 1e9, &o->ramp_s);
    case FRAMEWORK:
        return parse_framework(text, &o->framework);
    case EXIT_CODE:
        return parse_int(text, 0, 255, &o->exit_code);
    case FAULT_AFTER:
        return parse_double(text, 0, 1e9, &o->fault_s);
    case LEAK_MIB:
        return parse_double(text, 0, 1e6, &o->leak_mib_per_s);
    case CATCH_TERM:
        o->catches_term = true;
        return 0;
    case PROFILER:
        o->has_profiler = true;
        return 0;
    case MANAGED:
        o->has_managed = true;
        return 0;
    case SMACT:
        return parse_double(text, 0, 1, &o->demand.smact);
    case GRACT:
        return parse_double(text, 0, 1, &o->demand.gract);
    case SMOCC:
        return parse_double(text, 0, 1, &o->demand.smocc);
    case DRAM:
        return parse_double(text, 0, 1, &o->demand.dram);
    case POWER_W:
        return parse_double(text, 0, 2000, &o->demand.power_w);
    default:
        return -EINVAL;
    }
}

static const char *name_of(int key)
{
    for (int i = 0; options[i].name; i++)
        if (options[i].val == key)
            return options[i].name;
    return "";
}

/* Returns 1 when it has printed the help, and 0 with sound options. */
int pretend_options_parse(
    int argc, char **argv, struct pretend_options *ret_options, struct fault *fault)
{
    struct pretend_options o = {
        .seconds = -1,
        .ramp_s = NAN,
        .startup_s = NAN,
        .epochs = 1,
        .gpus = 1,
        .demand = {.gract = NAN, .smact = 0.6, .smocc = NAN, .dram = NAN, .power_w = NAN},
        .fault_s = -1,
    };
    int key;

    while ((key = getopt_long(argc, argv, "", options, NULL)) != -1) {
        if (key == HELP_ASKED) {
            fputs(HELP, stdout);
            return 1;
        }
        if (key == '?')
            return fault_set(fault, EINVAL, "see colloc-pretend-train --help");
        if (take_option(key, optarg, &o) < 0)
            return fault_set(
                fault, EINVAL, "--%s=%s: not a value it can have", name_of(key), optarg);
    }
    if (optind < argc)
        return fault_set(fault, EINVAL, "%s: unexpected", argv[optind]);
    if (o.memory_bytes == 0 || o.seconds < 0)
        return fault_set(fault, EINVAL, "--memory-mib and --seconds are needed");
    *ret_options = o;
    return 0;
}
