/* SPDX-License-Identifier: Apache-2.0 */
/* The forms of containers' cgroups: those of docker and podman with both cgroup drivers, with
 * cgroup v1, v2 and both (hybrid), and of containerd under Kubernetes. */
#include "base/container_cgroup.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"

#define ID    "4f2c1ab83c1d00112233445566778899aabbccddeeff00112233445566778899"
#define OTHER "00001ab83c1d00112233445566778899aabbccddeeff00112233445566778899"
#define USER  "/user.slice/user-1000.slice/user@1000.service"

static const struct {
    const char *cgroup, *program;
} table[] = {
    /* docker 20.10, driver systemd: v2; v1; v1 with the unified hierarchy beside it */
    {"0::/system.slice/docker-" ID ".scope\n", "docker"},
    {"12:pids:/system.slice/docker-" ID ".scope\n11:devices:/system.slice/docker-" ID ".scope\n"
     "1:name=systemd:/system.slice/docker-" ID ".scope\n",
        "docker"},
    {"2:memory:/system.slice/docker-" ID ".scope\n0::/system.slice/docker-" ID ".scope\n",
        "docker"},
    /* driver systemd with --cgroup-parent or compose's cgroup_parent, which is a slice */
    {"0::/lab.slice/lab-train.slice/docker-" ID ".scope\n", "docker"},
    /* driver cgroupfs: v2; v1, where a container's init may have a cgroup below */
    {"0::/docker/" ID "\n", "docker"},
    {"12:memory:/docker/" ID "\n3:cpu,cpuacct:/docker/" ID "\n0::/docker/" ID "\n", "docker"},
    {"1:name=systemd:/docker/" ID "/init.scope\n", "docker"},
    /* docker in docker: the innermost */
    {"0::/docker/" OTHER "/docker/" ID "\n", "docker"},
    /* podman 4.3: root by systemd and cgroupfs, rootless by systemd */
    {"0::/machine.slice/libpod-" ID ".scope/container\n", "podman"},
    {"0::/libpod_parent/libpod-" ID "\n", "podman"},
    {"0::" USER "/user.slice/libpod-" ID ".scope/container\n", "podman"},
    {"0::/kubepods.slice/kubepods-pod1.slice/cri-containerd-" ID ".scope\n", "containerd"},
    /* no container, or a name that a login gave its own cgroup */
    {"0::" USER "/app.slice/docker-" ID ".scope\n", NULL},
    {"0::/system.slice/docker-4f2c.scope\n", NULL},
    {"0::/system.slice/docker-" ID "0.scope\n", NULL},
    {"0::/system.slice/docker.service\n", NULL},
    {"0::/user.slice/user-1000.slice/session-3.scope\n", NULL},
    {"0::/\n", NULL},
    {"", NULL},
};

static void a_cgroup_names_its_container(void **state)
{
    for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
        char id[CONTAINER_ID_SIZE] = "";
        const char *program = container_find(table[i].cgroup, id);
        if (!program != !table[i].program || (program && strcmp(program, table[i].program) != 0))
            fail_msg("%s: %s", table[i].cgroup, program ? program : "none");
        assert_string_equal(id, program ? "4f2c1ab83c1d" : "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_cgroup_names_its_container)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
