/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stands in for nvidia-cuda-mps-control. With -d it leaves a daemon behind that serves its pipe
 * directory and writes the settings it was given to "settings" in its log directory; without, it
 * passes its input on to that daemon. FAKE_MPS=fail makes the start fail, FAKE_MPS=deaf makes a
 * daemon that does not quit.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static char pid_path[256];

static int open_control(struct sockaddr_un *address)
{
    const char *folder = getenv("CUDA_MPS_PIPE_DIRECTORY");

    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    snprintf(address->sun_path, sizeof(address->sun_path), "%.80s/control", folder);
    snprintf(pid_path, sizeof(pid_path), "%.200s/nvidia-cuda-mps-control.pid", folder);
    return socket(AF_UNIX, SOCK_STREAM, 0);
}

static void write_text(const char *path, const char *text)
{
    FILE *out = fopen(path, "w");
    if (!out)
        exit(3);
    fputs(text, out);
    fclose(out);
}

static void serve(int control)
{
    char command[32] = "";

    setsid();
    alarm(60); /* never outlives a test that died */
    while (strncmp(command, "quit", 4) != 0) {
        int client = accept(control, NULL, NULL);
        if (client < 0 || read(client, command, sizeof(command) - 1) < 0)
            exit(3);
        close(client);
        if (getenv("FAKE_MPS"))
            command[0] = '\0';
    }
    unlink(pid_path);
    exit(0);
}

static int start(void)
{
    struct sockaddr_un address;
    char text[512], path[256];
    int control = open_control(&address);

    if (getenv("FAKE_MPS") && strcmp(getenv("FAKE_MPS"), "fail") == 0) {
        fputs("Cannot find MPS control daemon process\n", stderr);
        return 1;
    }
    if (bind(control, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(control, 8) < 0)
        return 2;
    snprintf(path, sizeof(path), "%.200s/settings", getenv("CUDA_MPS_LOG_DIRECTORY"));
    snprintf(text, sizeof(text), "%s", getenv("CUDA_VISIBLE_DEVICES"));
    write_text(path, text);
    pid_t daemon = fork();
    if (daemon == 0)
        serve(control);
    snprintf(text, sizeof(text), "%d\n", (int)daemon);
    write_text(pid_path, text);
    return 0;
}

static int pass_on(void)
{
    struct sockaddr_un address;
    char command[32];
    int control = open_control(&address);
    ssize_t n = read(0, command, sizeof(command));

    if (connect(control, (struct sockaddr *)&address, sizeof(address)) < 0 ||
        write(control, command, (size_t)n) != n)
        return 2;
    return 0;
}

int main(int argc, char **argv)
{
    return argc > 1 && strcmp(argv[1], "-d") == 0 ? start() : pass_on();
}
