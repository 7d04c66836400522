/* SPDX-License-Identifier: Apache-2.0 */
/* Asks the server to close the connection behind the answer, so that its end is seen. */
#include "pretend_browser.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <poll.h>

#include "base/clock.h"

static int connect_to(int port)
{
    const struct sockaddr_in address = {.sin_family = AF_INET,
        .sin_port = htons((uint16_t)port),
        .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

int browse(uv_loop_t *loop, int port, const char *request, char ret_answer[ANSWER_SIZE])
{
    char text[2048];
    int status = 0, fd = connect_to(port);
    int64_t limit_us = clock_monotonic_us() + 60 * SECOND_US;
    size_t size = 0;
    ssize_t n = snprintf(text, sizeof text, "%sConnection: close\r\n\r\n", request);
    assert_int_equal(send(fd, text, (size_t)n, MSG_NOSIGNAL), n);
    while (n != 0) {
        struct pollfd news = {.fd = fd, .events = POLLIN};
        assert_true(clock_monotonic_us() < limit_us);
        uv_run(loop, UV_RUN_NOWAIT);
        if (poll(&news, 1, 1) == 0)
            continue;
        n = recv(fd, ret_answer + size, ANSWER_SIZE - 1 - size, 0);
        assert_true(n >= 0);
        size += (size_t)n;
    }
    close(fd);
    ret_answer[size] = '\0';
    assert_int_equal(sscanf(ret_answer, "HTTP/1.1 %d", &status), 1);
    return status;
}
