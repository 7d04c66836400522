/* SPDX-License-Identifier: Apache-2.0 */
/*
 * colloc-slurm: places the jobs of a Slurm cluster on shared GPUs (docs/slurm-controller.md). It
 * runs beside slurmctld, as SlurmUser, root or a user with AdminLevel=Admin. While it does not run,
 * jobs wait in the intake partition, and running ones continue.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>

#include "base/file.h"
#include "base/log.h"
#include "slurm/libslurm_calls.h"
#include "slurm/slurm_loop.h"

/* A second controller would place each job twice. The lock ends with the process. */
static int lock_state(const struct slurm_config *config, struct fault *fault)
{
    char path[600];
    int r = file_make_folders(config->state_dir, 0755);
    if (r < 0)
        return fault_set(fault, -r, "state-dir: %s: %s", config->state_dir, strerror(-r));
    snprintf(path, sizeof path, "%s/colloc-slurm.lock", config->state_dir);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return fault_set(fault, errno, "%s: %s", path, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) < 0)
        return fault_set(fault, EBUSY, "%s: another colloc-slurm runs", path);
    return 0;
}

static int run_controller(const struct slurm_config *config, struct fault *fault)
{
    struct slurm_calls calls = {0};
    int r = lock_state(config, fault);
    if (r == 0 && libslurm_calls_init(config->intake_partition, config->run_partition, &calls) < 0)
        r = fault_set(fault, ENOMEM, "out of memory");
    if (r == 0) {
        log_info("colloc-slurm %s: jobs of partition %s are placed into %s by %s", COLLOC_VERSION,
            config->intake_partition, config->run_partition, config->core.policy->name);
        r = slurm_loop_run(config, &calls, fault);
    }
    libslurm_calls_fini(&calls);
    return r;
}

/* What --check finds beyond the settings themselves. */
static int check_key(const struct slurm_config *config, struct fault *fault)
{
    uint8_t key[SHA256_SIZE];
    bool listens = strcmp(config->listen, "none") != 0;
    int r = listens ? node_key_read(config->node_auth, config->node_key_file, fault, key) : 0;
    explicit_bzero(key, sizeof key);
    return r < 0 ? r : 0;
}

static void print_help(void)
{
    puts("usage: colloc-slurm [--config=FILE] [--SETTING=VALUE ...]\n"
         "\n"
         "Places the jobs of a Slurm cluster on shared GPUs.\n"
         "\n"
         "  --config=FILE\n      file of settings (default: /etc/colloc/slurm.yaml)\n"
         "  --check\n      only check the settings\n"
         "  --version\n");
    slurm_config_print(stdout);
}

int main(int argc, char **argv)
{
    struct slurm_config config;
    struct fault fault = {0};
    int r = slurm_config_read(&config, argc, argv, &fault);
    if (r == SLURM_CONFIG_HELP)
        print_help();
    else if (r == SLURM_CONFIG_VERSION)
        puts("colloc-slurm " COLLOC_VERSION);
    else if (r == SLURM_CONFIG_CHECK) {
        r = check_key(&config, &fault);
        if (r == 0)
            puts("configuration is fine");
    } else if (r == 0) {
        log_set_level((enum log_level)config.log_level);
        r = run_controller(&config, &fault);
    }
    if (r < 0)
        fprintf(stderr, "colloc-slurm: %s\n", fault.text);
    return r < 0 ? 1 : 0;
}
