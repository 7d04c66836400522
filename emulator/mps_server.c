#include "emulator/mps_server.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/units.h"
#include "emulator/memory.h"
#include "emulator/visible.h"

static const int64_t SERVER_BYTES = 30 * MIB;

/* 0 or -errno. */
static int take_seats(struct world *world)
{
    struct seat seats[SEATS_MAX];
    int r = 0, count = visible_seats(world, getenv("CUDA_VISIBLE_DEVICES"), seats);

    world_enter(world);
    struct process *self = world_join(world, ROLE_MPS_SERVER, seats, count);
    for (int i = 0; self && r == 0 && i < count; i++)
        r = memory_take(world, self, seats[i], SERVER_BYTES);
    world_leave(world);
    return self ? r : -EMFILE;
}

static _Noreturn void serve(struct world *world, int ready, pid_t parent)
{
    signal(SIGTERM, SIG_DFL);
    prctl(PR_SET_NAME, "nvidia-cuda-mps-server");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    char fine = (char)(getppid() == parent && take_seats(world) == 0);
    if (write(ready, &fine, 1) != 1 || !fine)
        _exit(1);
    close_range(0, ~0U, 0); /* or the control daemon's connections would never end */
    for (;;)
        pause();
}

pid_t mps_server_start(struct world *world)
{
    int ready[2];
    char fine = 0;
    pid_t parent = getpid();

    if (pipe2(ready, O_CLOEXEC) < 0)
        return -errno;
    pid_t pid = fork();
    if (pid == 0)
        serve(world, ready[1], parent);
    close(ready[1]);
    if (pid > 0 && (read(ready[0], &fine, 1) != 1 || !fine)) {
        waitpid(pid, NULL, 0);
        pid = -EIO;
    }
    close(ready[0]);
    return pid < 0 ? -EAGAIN : pid;
}

int mps_server_clients(const struct world *world, pid_t server, const struct seat *seat, char separator, FILE *out)
{
    int count = 0;

    for (int i = 0; i < world->process_end; i++) {
        const struct process *p = &world->processes[i];
        if (p->present && p->mps_server == server && (!seat || process_sits_on(p, *seat))) {
            fprintf(out, "%d%c", (int)p->pid, separator);
            count++;
        }
    }
    return count;
}
