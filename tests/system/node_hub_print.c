/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A controller for the tests of the agent: prints each report that it accepts, one line of JSON
 * each, and sends what its standard input says.
 *
 *     node_hub_print ADDRESS MUNGE-SOCKET     prints "listening ADDRESS" first
 *     pin NODE JOB[_TASK] mps|streams         a line of standard input; its end ends the program
 *     out NODE [JOB...]                       these jobs are to be off their GPUs: repeated with
 *                                             each report, as the controller does
 *     silent NODE                             no further orders
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "nodelink/node_hub.h"

static struct node_hub *hub;
static uv_loop_t loop;
static uv_poll_t input;

static struct {
    char node[NODE_NAME_SIZE]; /* "": none is ordered */
    uint32_t jobs[16];
    size_t n;
} order;

static bool knows_node(void *context, const char *node)
{
    return strncmp(node, "n", 1) == 0;
}

static void on_report(void *context, const struct node_report *report)
{
    char *text;
    size_t size;
    if (node_report_encode(report, &text, &size) < 0)
        exit(1);
    puts(text);
    free(text);
    if (strcmp(report->node, order.node) == 0)
        node_hub_order(hub, order.node, order.jobs, order.n);
}

static void on_gone(void *context, const char *node)
{
    printf("gone %s\n", node);
}

static struct node_pin read_pin(const char *job, const char *how)
{
    struct node_pin pin = {.is_mps = strcmp(how, "mps") == 0};
    pin.is_of_array = sscanf(job, "%" SCNu32 "_%" SCNu32, &pin.job, &pin.array_task) == 2;
    return pin;
}

static void read_order(char *line)
{
    char *rest = NULL, *word = strtok_r(line, " \n", &rest);
    bool is_silent = strcmp(word, "silent") == 0;
    word = strtok_r(NULL, " \n", &rest);
    snprintf(order.node, sizeof order.node, "%s", word && !is_silent ? word : "");
    for (order.n = 0; order.n < 16 && (word = strtok_r(NULL, " \n", &rest));)
        order.jobs[order.n++] = (uint32_t)strtoul(word, NULL, 10);
    printf("ordered %zu\n", order.n);
}

static void on_input(uv_poll_t *poll, int status, int events)
{
    char line[256], node[NODE_NAME_SIZE], job[32], how[16];
    ssize_t n = read(STDIN_FILENO, line, sizeof line - 1);
    if (n <= 0) {
        node_hub_close(hub);
        uv_close((uv_handle_t *)poll, NULL);
        return;
    }
    line[n] = '\0';
    if (strncmp(line, "out ", 4) == 0 || strncmp(line, "silent ", 7) == 0) {
        read_order(line);
        return;
    }
    if (sscanf(line, "pin %63s %31s %15s", node, job, how) != 3)
        return;
    struct node_pin pin = read_pin(job, how);
    printf("pinned %d\n", node_hub_pin(hub, node, &pin));
}

int main(int argc, char **argv)
{
    char text[TCP_ADDRESS_TEXT_SIZE];
    struct fault fault = {0};
    setvbuf(stdout, NULL, _IOLBF, 0);
    uv_loop_init(&loop);
    const struct node_hub_options options = {.loop = &loop,
        .address = argv[1],
        .munge_socket = argc > 2 ? argv[2] : NULL,
        .agents = geteuid(),
        .hooks = {NULL, knows_node, on_report, on_gone}};
    if (argc < 3 || node_hub_create(&options, &fault, &hub) < 0) {
        fprintf(stderr, "%s\n", fault.text);
        return 1;
    }
    printf("listening %s\n", tcp_address_format(node_hub_address(hub), text));
    uv_poll_init(&loop, &input, STDIN_FILENO);
    uv_poll_start(&input, UV_READABLE, on_input);
    uv_run(&loop, UV_RUN_DEFAULT);
    node_hub_destroy(hub);
    return 0;
}
