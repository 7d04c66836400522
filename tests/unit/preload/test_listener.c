/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's end of the preloaded library, against clients in this process that keep to the
 * protocol and others that do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "preload/preload_listener.h"

/* In all, and so of one user: 1 of 128 guaranteed, a quarter of the shared half. */
enum { CONNECTIONS = 128, OF_USER_MAX = 1 + 16 };

struct fixture {
    uv_loop_t loop;
    struct preload_listener *listener;
    char folder[64], path[96];
    uint64_t admitted;                         /* only this task */
    int begun, ended, waits, stopped, refused; /* calls of hooks */
    uint64_t last_peak_bytes;                  /* in the page of the last process that ended */
    enum preload_kind answer_at_once;          /* 0: none */
};

static bool on_admits(void *context, const struct preload_peer *peer)
{
    const struct fixture *f = context;
    assert_int_equal(peer->pid, getpid());
    assert_int_equal(peer->uid, geteuid());
    return peer->task == f->admitted;
}

static void on_begins(void *context, struct preload_process *process)
{
    struct fixture *f = context;
    f->begun++;
    process->page->cap_bytes = 12345;
}

static void on_ends(void *context, struct preload_process *process)
{
    struct fixture *f = context;
    f->ended++;
    f->last_peak_bytes = process->page->devices[0].peak_bytes;
}

static void on_waits(void *context, struct preload_waiter *waiter)
{
    struct fixture *f = context;
    f->waits++;
    if (f->answer_at_once)
        preload_answer(waiter, f->answer_at_once, 0);
}

static void on_stops_waiting(void *context, struct preload_waiter *waiter)
{
    struct fixture *f = context;
    f->stopped++;
}

static void on_refuses(void *context, uid_t uid, int count)
{
    struct fixture *f = context;
    assert_int_equal(uid, geteuid());
    assert_int_equal(count, OF_USER_MAX);
    f->refused++;
}

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof(*f));
    const struct preload_hooks hooks = {
        f, on_admits, on_begins, on_ends, on_waits, on_stops_waiting, on_refuses};
    struct fault fault;
    snprintf(f->folder, sizeof(f->folder), "/tmp/preload-XXXXXX");
    if (!mkdtemp(f->folder))
        return -1;
    snprintf(f->path, sizeof(f->path), "%s/socket", f->folder);
    f->admitted = 7;
    uv_loop_init(&f->loop);
    *state = f;
    return preload_listener_create(&f->loop, f->path, CONNECTIONS, &hooks, &fault, &f->listener);
}

static int tear_down(void **state)
{
    struct fixture *f = *state;
    preload_listener_close(f->listener);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    preload_listener_destroy(f->listener);
    int r = uv_loop_close(&f->loop);
    r |= access(f->path, F_OK) == 0; /* its socket is removed */
    r |= rmdir(f->folder);
    free(f);
    return r;
}

/* ---- a client ---- */

static int connect_client(const struct fixture *f)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", f->path);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static struct preload_message request(enum preload_kind kind)
{
    struct preload_message message = preload_message_of(kind);
    message.task = 7;
    message.attempt = 1;
    if (kind == PRELOAD_WAIT) {
        message.reason = PRELOAD_NEEDS_MEMORY;
        message.bytes = 1 << 20;
    }
    return message;
}

static void send_request(int fd, enum preload_kind kind)
{
    struct preload_message message = request(kind);
    assert_int_equal(send(fd, &message, sizeof(message), MSG_NOSIGNAL), sizeof(message));
}

/* All that the loop can do now. */
static void run(struct fixture *f)
{
    for (int i = 0; i < 20; i++)
        uv_run(&f->loop, UV_RUN_NOWAIT);
}

/* Returns the kind of the next message; 0: none; -1: the connection is closed. */
static int receive(int fd, int *ret_page)
{
    struct preload_message message;
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {&message, sizeof(message)};
    struct msghdr header = {.msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = control.room,
        .msg_controllen = sizeof(control.room)};
    ssize_t n = recvmsg(fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0 && errno == EAGAIN)
        return 0;
    if (n <= 0)
        return -1;
    if (ret_page && header.msg_controllen)
        memcpy(ret_page, CMSG_DATA(&control.header), sizeof(*ret_page));
    return message.kind;
}

static bool is_closed(struct fixture *f, int fd)
{
    run(f);
    return receive(fd, NULL) == -1;
}

/* ---- tests ---- */

static void test_a_process_and_its_page(void **state)
{
    struct fixture *f = *state;
    int fd = connect_client(f), page_fd = -1;
    send_request(fd, PRELOAD_HELLO);
    run(f);
    assert_int_equal(receive(fd, &page_fd), PRELOAD_WELCOME);
    struct preload_page *page = mmap(
        NULL, PRELOAD_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, page_fd, 0);
    assert_int_equal(page->magic, PRELOAD_PAGE_MAGIC);
    assert_int_equal(page->cap_bytes, 12345);
    assert_int_equal(ftruncate(page_fd, 0), -1); /* the daemon would fault */
    assert_int_equal(ftruncate(page_fd, 1 << 30), -1);
    page->devices[0].peak_bytes = 99;
    struct preload_process *process = preload_next_process(f->listener, NULL);
    assert_int_equal(process->page->devices[0].peak_bytes, 99);
    assert_null(preload_next_process(f->listener, process));
    assert_null(preload_next_waiter(f->listener, NULL));
    munmap(page, PRELOAD_PAGE_SIZE);
    close(page_fd);
    close(fd);
    run(f);
    assert_int_equal(f->ended, 1);
    assert_int_equal(f->last_peak_bytes, 99);
    assert_null(preload_next_process(f->listener, NULL));
}

static void test_the_processes_of_a_task(void **state)
{
    struct fixture *f = *state;
    int first = connect_client(f), second = connect_client(f);
    send_request(first, PRELOAD_HELLO);
    send_request(second, PRELOAD_HELLO);
    run(f);
    struct preload_process *one = preload_next_of_task(f->listener, 7, NULL);
    assert_non_null(one);
    struct preload_process *two = preload_next_of_task(f->listener, 7, one);
    assert_non_null(two);
    assert_null(preload_next_of_task(f->listener, 7, two));
    assert_null(preload_next_of_task(f->listener, 8, NULL));

    struct process_id id = preload_peer_id(&one->peer), unseen = {id.pid, 0};
    assert_ptr_equal(preload_next_of_process(f->listener, 7, id, NULL), one);
    assert_ptr_equal(preload_next_of_process(f->listener, 7, id, one), two);
    assert_null(preload_next_of_process(f->listener, 7, id, two));
    assert_null(preload_next_of_process(f->listener, 8, id, NULL));
    assert_null(preload_next_of_process(f->listener, 7, unseen, NULL));
    assert_null(preload_next_of_process(f->listener, 7, (struct process_id){0}, NULL));
    assert_null(preload_next_of_process(NULL, 7, id, NULL));
    assert_null(preload_next_waiter(NULL, NULL));
    close(first);
    close(second);
    run(f);
}

static void test_a_thread_waits(void **state)
{
    struct fixture *f = *state;
    int fd = connect_client(f);
    send_request(fd, PRELOAD_WAIT);
    run(f);
    struct preload_waiter *waiter = preload_next_waiter(f->listener, NULL);
    assert_non_null(waiter);
    assert_true(waiter->is_asking && waiter->bytes == 1 << 20);
    preload_answer(waiter, PRELOAD_BOUND, 1000);
    assert_int_equal(receive(fd, NULL), PRELOAD_BOUND);
    assert_true(waiter->is_asking);
    preload_answer(waiter, PRELOAD_RETRY, 0);
    assert_int_equal(receive(fd, NULL), PRELOAD_RETRY);
    assert_false(waiter->is_asking);
    preload_answer(waiter, PRELOAD_BOUND, 1000); /* its task is paused during the try */
    assert_int_equal(receive(fd, NULL), PRELOAD_BOUND);
    assert_false(waiter->is_asking);
    send_request(fd, PRELOAD_WAIT); /* it failed again */
    run(f);
    assert_int_equal(f->waits, 2);
    preload_answer(waiter, PRELOAD_FAIL, 0);
    assert_int_equal(receive(fd, NULL), PRELOAD_FAIL);
    close(fd);
    run(f);
    assert_int_equal(f->stopped, 1);
    assert_null(preload_next_waiter(f->listener, NULL));
}

static void test_it_may_be_answered_at_once(void **state)
{
    struct fixture *f = *state;
    int fd = connect_client(f);
    f->answer_at_once = PRELOAD_FAIL;
    send_request(fd, PRELOAD_WAIT);
    run(f);
    assert_int_equal(receive(fd, NULL), PRELOAD_FAIL);
    close(fd);
}

static void test_those_who_wait_come_in_order(void **state)
{
    struct fixture *f = *state;
    int fds[3];
    for (int i = 0; i < 3; i++) {
        struct preload_message message = request(PRELOAD_WAIT);
        message.bytes = (uint64_t)i + 1;
        fds[i] = connect_client(f);
        send(fds[i], &message, sizeof(message), 0);
        run(f);
    }
    close(fds[1]);
    run(f);
    struct preload_waiter *first = preload_next_waiter(f->listener, NULL);
    struct preload_waiter *second = preload_next_waiter(f->listener, first);
    assert_int_equal(first->bytes, 1);
    assert_int_equal(second->bytes, 3);
    assert_null(preload_next_waiter(f->listener, second));
    close(fds[0]);
    close(fds[2]);
}

static void test_another_users_task(void **state)
{
    struct fixture *f = *state;
    int fd = connect_client(f);
    f->admitted = 8;
    send_request(fd, PRELOAD_HELLO);
    assert_true(is_closed(f, fd));
    assert_int_equal(f->begun + f->ended, 0);
    close(fd);
}

static void test_what_breaks_the_protocol_is_disconnected(void **state)
{
    struct fixture *f = *state;
    const struct preload_message hello = request(PRELOAD_HELLO), wait = request(PRELOAD_WAIT);
    const struct {
        const void *first, *second;
        size_t size;
    } cases[] = {
        {"x", NULL, 1}, {&hello, &hello, sizeof(hello)}, /* twice */
        {&hello, &wait, sizeof(hello)},                  /* a process does not wait */
        {&wait, &hello, sizeof(hello)},
        {&wait, &wait, sizeof(wait)}, /* without an answer between them */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int fd = connect_client(f), page = -1;
        send(fd, cases[i].first, cases[i].size, 0);
        if (cases[i].second)
            send(fd, cases[i].second, cases[i].size, 0);
        run(f);
        if (cases[i].first == &hello)
            assert_int_equal(receive(fd, &page), PRELOAD_WELCOME);
        assert_true(is_closed(f, fd));
        close(page);
        close(fd);
    }
    assert_int_equal(f->begun, f->ended);
    assert_int_equal(f->waits, f->stopped);
}

static void test_a_descriptor_that_is_sent_is_dropped(void **state)
{
    struct fixture *f = *state;
    int fd = connect_client(f), pipe_fds[2];
    struct preload_message wait = request(PRELOAD_WAIT);
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec part = {&wait, sizeof(wait)};
    struct msghdr header = {.msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = control.room,
        .msg_controllen = sizeof(control.room)};
    assert_int_equal(pipe(pipe_fds), 0);
    control.header.cmsg_level = SOL_SOCKET;
    control.header.cmsg_type = SCM_RIGHTS;
    control.header.cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(&control.header), &pipe_fds[1], sizeof(int));
    assert_int_equal(sendmsg(fd, &header, 0), sizeof(wait));
    close(pipe_fds[1]);
    run(f);
    assert_int_equal(f->waits, 1);
    char byte;
    assert_int_equal(read(pipe_fds[0], &byte, 1), 0); /* no one holds the other end */
    close(pipe_fds[0]);
    close(fd);
}

static void test_one_user_has_so_many_connections(void **state)
{
    struct fixture *f = *state;
    int fds[OF_USER_MAX + 1];
    for (int i = 0; i <= OF_USER_MAX; i++) {
        fds[i] = connect_client(f);
        send_request(fds[i], PRELOAD_HELLO);
        run(f);
    }
    assert_true(is_closed(f, fds[OF_USER_MAX]));
    assert_int_equal(f->refused, 1);
    assert_int_equal(receive(fds[0], NULL), PRELOAD_WELCOME);
    close(fds[0]);
    run(f);
    int fd = connect_client(f);
    send_request(fd, PRELOAD_WAIT);
    run(f);
    assert_int_equal(f->waits, 1);
    close(fd);
    for (int i = 1; i <= OF_USER_MAX; i++)
        close(fds[i]);
}

static void test_silent_connections_give_way(void **state)
{
    struct fixture *f = *state;
    int fds[OF_USER_MAX];
    for (int i = 0; i < OF_USER_MAX; i++) {
        fds[i] = connect_client(f);
        run(f);
    }
    int fd = connect_client(f);
    send_request(fd, PRELOAD_HELLO);
    run(f);
    assert_int_equal(receive(fd, NULL), PRELOAD_WELCOME);
    assert_int_equal(receive(fds[0], NULL), -1);
    assert_int_equal(receive(fds[1], NULL), 0);
    close(fd);
    for (int i = 0; i < OF_USER_MAX; i++)
        close(fds[i]);
}

static void test_a_path_that_is_too_long(void **state)
{
    struct fixture *f = *state;
    const struct preload_hooks hooks = {
        f, on_admits, on_begins, on_ends, on_waits, on_stops_waiting, on_refuses};
    char path[200];
    struct fault fault;
    struct preload_listener *listener;
    memset(path, 'x', sizeof(path) - 1);
    path[sizeof(path) - 1] = '\0';
    assert_int_equal(
        preload_listener_create(&f->loop, path, CONNECTIONS, &hooks, &fault, &listener),
        -ENAMETOOLONG);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_process_and_its_page),
        TEST(test_the_processes_of_a_task),
        TEST(test_a_thread_waits),
        TEST(test_it_may_be_answered_at_once),
        TEST(test_those_who_wait_come_in_order),
        TEST(test_another_users_task),
        TEST(test_what_breaks_the_protocol_is_disconnected),
        TEST(test_a_descriptor_that_is_sent_is_dropped),
        TEST(test_one_user_has_so_many_connections),
        TEST(test_silent_connections_give_way),
        TEST(test_a_path_that_is_too_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
