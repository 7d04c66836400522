/* SPDX-License-Identifier: Apache-2.0 */
/* Whose home is mounted in a container, from lines in the form of proc_pid_mountinfo(5). */
#include "daemon/outside/mounted_home.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/array.h"

#define ID "4f2c1ab83c1d"

/* One disk; /home on a second disk; btrfs with subvolumes; homes of a server, by automount. */
#define ONE "29 1 8:2 / / rw,relatime shared:1 - ext4 /dev/sda2 rw\n"
#define TWO ONE "46 29 8:3 / /home rw,relatime shared:20 - ext4 /dev/sda3 rw\n"
#define BTRFS                                                                                      \
    "29 1 0:25 /@ / rw - btrfs /dev/sda2 rw,subvol=/@\n"                                           \
    "50 29 0:25 /@home /home rw - btrfs /dev/sda2 rw,subvol=/@home\n"
#define NFS ONE "80 29 0:50 / /home/ada rw - nfs4 nas:/home/ada rw\n"

/* What each container has: its root, and files that docker mounts. */
#define OWN                                                                                        \
    "500 400 0:60 / / rw - overlay overlay rw,lowerdir=/var/lib/docker/overlay2/l/A\n"             \
    "501 500 0:61 / /proc rw,nosuid - proc proc rw\n"                                              \
    "502 500 8:2 /var/lib/docker/containers/" ID "00/hosts /etc/hosts rw - ext4 /dev/sda2 rw\n"

static void test_owners(void **state)
{
    static const struct {
        const char *host, *container, *user;
    } rows[] = {
        {ONE, OWN "503 500 8:2 /home/ada/data /data rw - ext4 /dev/sda2 rw\n", "ada"},
        {ONE, OWN "503 500 8:2 /home/ada /home/ada rw - ext4 /dev/sda2 rw\n", "ada"},
        {TWO, OWN "503 500 8:3 /ada/data /data rw - ext4 /dev/sda3 rw\n", "ada"},
        {BTRFS, OWN "503 500 0:25 /@home/bob/x /x rw - btrfs /dev/sda2 rw\n", "bob"},
        {NFS, OWN "503 500 0:50 / /work rw - nfs4 nas:/home/ada rw\n", "ada"},
        {NFS, OWN "503 500 0:50 /runs /work rw - nfs4 nas:/home/ada rw\n", "ada"},
        /* the first of two; one that no mount of the host has */
        {ONE,
            OWN "503 500 8:2 /home/bob/a /a rw - ext4 /dev/sda2 rw\n"
                "504 500 8:2 /home/ada/b /b rw - ext4 /dev/sda2 rw",
            "bob"},
        {ONE,
            OWN "503 500 8:9 /home/bob/a /a rw - ext4 /dev/sdb rw\n"
                "504 500 8:2 /home/ada/b /b rw - ext4 /dev/sda2 rw",
            "ada"},
        /* no home of anyone: other folders, all homes, docker's own files below /home */
        {ONE, OWN "503 500 8:2 /data/ada /data rw - ext4 /dev/sda2 rw\n", NULL},
        {ONE, OWN "503 500 8:2 /home /home rw - ext4 /dev/sda2 rw\n", NULL},
        {TWO, OWN "503 500 8:3 / /home rw - ext4 /dev/sda3 rw\n", NULL},
        {ONE,
            "502 500 8:2 /home/docker/containers/" ID
            "00/hosts /etc/hosts rw - ext4 /dev/sda2 rw\n",
            NULL},
        {ONE, "500 400 8:2 /home/docker/root / rw - ext4 /dev/sda2 rw\n", NULL},
        {BTRFS, OWN "503 500 0:25 /@homes/bob/x /x rw - btrfs /dev/sda2 rw\n", NULL},
        /* what is no name, and lines that are none */
        {ONE, "503 500 8:2 /home/a\\040b/x /x rw - ext4 /dev/sda2 rw\n", NULL},
        {ONE,
            "503 500 8:2 /home/abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz/x /x rw - a b\n",
            NULL},
        {ONE, "503 500 8:2\n\n   \n503\n", NULL},
        {"29\n\n1 2 8:2 home /\n", OWN "503 500 8:2 /home/ada /x rw - ext4 a rw\n", NULL},
        {"", OWN, NULL},
        {ONE, "", NULL},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        char user[HOME_USER_SIZE] = "";
        if (mounted_home_find(rows[i].container, rows[i].host, ID, user) !=
                (rows[i].user != NULL) ||
            (rows[i].user && strcmp(user, rows[i].user) != 0))
            fail_msg("row %zu: '%s'", i, user);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_owners)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
