/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA_VISIBLE_DEVICES: indices, UUIDs, and what hides the rest of the list. */
#include "machine.h"

#include <string.h>

#include "emulator/visible.h"

static struct machine m;

/* "0 2 3/1": GPU, and instance where it is one. */
static void sees(const char *list, const char *expected)
{
    struct seat seats[SEATS_MAX];
    char text[256] = "";
    size_t size = 0;

    for (int i = 0, n = visible_seats(m.world, list, seats); i < n; i++) {
        const char *gap = i ? " " : "";
        if (seats[i].unit)
            size += (size_t)snprintf(
                text + size, sizeof(text) - size, "%s%d/%d", gap, seats[i].gpu, seats[i].unit);
        else
            size += (size_t)snprintf(text + size, sizeof(text) - size, "%s%d", gap, seats[i].gpu);
    }
    assert_string_equal(text, expected);
}

static void reads_lists_as_cuda_does(void **state)
{
    char both[128];

    m = machine_make("2xA100-40GB,A100-40GB:3g.20gb+2g.10gb,A100-40GB", 1);
    sees(NULL, "0 1 2/1");
    sees("", "");
    sees("-1", "");
    sees("1,0", "1 0");
    sees("0, 1", "0 1");
    sees("0,9,1", "0");
    sees("0,0,1", "0");
    sees("0,nonsense,1", "0");
    sees("3,2,1", "3 2/1");
    sees(m.world->gpus[1].units[0].uuid, "1");
    sees(m.world->gpus[2].units[2].uuid, "2/2");
    snprintf(both, sizeof(both), "%s,%s", m.world->gpus[3].units[0].uuid,
        m.world->gpus[0].units[0].uuid);
    sees(both, "3 0");
    machine_end(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(reads_lists_as_cuda_does)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
