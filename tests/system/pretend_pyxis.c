/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A plugin of Slurm that starts a job's tasks in a container, when pyxis does (its
 * slurm_spank_task_init joins the container's mount namespace): for jobs in whose environment
 * PRETEND_CONTAINER is. The container is this machine's file system; an empty one is mounted over
 * the folder that PRETEND_CONTAINER names, if it begins with '/'. It needs jobs of root.
 */
#include <sched.h>
#include <sys/mount.h>

#include <slurm/spank.h>

SPANK_PLUGIN(pretend_pyxis, 1)

int slurm_spank_task_init(spank_t spank, int n_arguments, char **arguments)
{
    char hidden[4096];
    if (spank_getenv(spank, "PRETEND_CONTAINER", hidden, sizeof hidden) != ESPANK_SUCCESS)
        return 0;
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return -1;
    return *hidden == '/' ? mount("none", hidden, "tmpfs", 0, NULL) : 0;
}
