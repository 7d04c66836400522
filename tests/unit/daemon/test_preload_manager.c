/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part preload with pretend GPUs: this process plays the processes of a task and their threads
 * that wait, over the real socket. The story has the events that the core gets.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/process.h"
#include "base/units.h"
#include "daemon/gpus/gpus_query.h"
#include "daemon/preload/preload_manager.h"
#include "policy/policies.h"
#include "preload/page.h"
#include "preload/protocol.h"
#include "pretend_driver.h"

enum { TASK = 1 };

/* The GPU of the process, by its UUID as text and as the library counts it. */
static const char gpu_uuid[] = "GPU-00112233-4455-6677-8899-aabbccddeeff";
static const unsigned char uuid_bytes[16] = {
    0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa, 0xbb, 0xcc, 0xdd, 0xee, 0xff};

static struct {
    struct config config;
    struct preload_manager *manager;
    char folder[32];
    struct gpu_info info;
    struct gpu_sample sample;
    struct gpu_process process; /* as the driver lists this process */
} seen;

static struct process_id own_id(void)
{
    struct process_stat stat;
    assert_int_equal(process_read_stat(getpid(), &stat), 0);
    return (struct process_id){getpid(), stat.start_ticks};
}

/* One that had its pid before. */
static struct process_id earlier_id(void)
{
    struct process_id id = own_id();
    id.born--;
    return id;
}

/* ---- the part below ---- */

bool gpus_report(const struct gpus *gpus, size_t i, struct gpu_report *ret_report)
{
    *ret_report = (struct gpu_report){.info = &seen.info, .sample = &seen.sample};
    return i == 0;
}

static void answer_memory(uint64_t task, bool is_granted)
{
    tell("%s; ", is_granted ? "granted" : "denied");
    preload_manager_answer_memory(seen.manager, task, is_granted);
}

/* ---- the part, and a task of this process's user ---- */

static void create_part(void)
{
    const struct preload_manager_options options = {.loop = &pretend.loop,
        .config = &seen.config,
        .core = pretend.core,
        .jobs = pretend.jobs,
        .driver = pretend.driver};
    seen.manager = preload_manager_create(&options);
    preload_manager_open(seen.manager);
}

static void destroy_part(void)
{
    preload_manager_close(seen.manager);
    uv_run(&pretend.loop, UV_RUN_NOWAIT);
    preload_manager_destroy(seen.manager);
}

/* The GPU was sampled before, not in the same microsecond: the core awaits the next sample. */
static void start_task(void)
{
    for (int64_t now_us = clock_monotonic_us(); clock_monotonic_us() == now_us;)
        ;
    struct event submit = driver_event(pretend.driver, EVENT_SUBMIT, TASK);
    submit.submit.uid = geteuid();
    submit.submit.request = (struct task_request){
        .gpus = 1, .policy = &policy_first_fit, .need = {NEED_DECLARED, 8 * GIB}};
    assert_non_null(jobs_add(pretend.jobs, TASK, geteuid(), NULL));
    assert_int_equal(driver_feed(pretend.driver, &submit, NULL), 0);
    assert_int_equal(feed(EVENT_STARTED, TASK), 0);
    expect_story("SUBMIT; PLACE; STARTED; ");
}

static int set_up(void **state)
{
    memset(&seen, 0, sizeof seen);
    strcpy(seen.folder, "/tmp/preload-XXXXXX");
    if (!mkdtemp(seen.folder))
        return -1;
    snprintf(seen.config.socket_path, sizeof seen.config.socket_path, "%s/socket", seen.folder);
    strcpy(seen.config.preload_library, "/proc/self/exe"); /* any file that can be read */
    seen.config.memory_wait_us = 60 * SECOND_US;
    seen.config.core.conditions.margin_bytes = 2 * GIB;
    strcpy(seen.info.uuid, gpu_uuid);
    seen.info.mem_total_bytes = reading_of(40 * GIB);
    seen.process.pid = own_id().pid;
    seen.process.born = own_id().born;
    seen.sample.processes.valid = true;
    seen.sample.processes.item = &seen.process;
    seen.sample.processes.count = 1;
    pretend_driver_begin(1);
    pretend.answer_memory = answer_memory;
    start_task();
    create_part();
    return 0;
}

static int tear_down(void **state)
{
    destroy_part();
    pretend_driver_end();
    return rmdir(seen.folder);
}

/* ---- a process ---- */

/* All that the loop can do now. */
static void run_loop(void)
{
    for (int i = 0; i < 20; i++)
        uv_run(&pretend.loop, UV_RUN_NOWAIT);
}

static int connect_process(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", preload_manager_socket(seen.manager));
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static void send_message(int fd, enum preload_kind kind, uint32_t attempt, uint64_t bytes)
{
    struct preload_message message = preload_message_of(kind);
    message.task = TASK;
    message.attempt = attempt;
    message.bytes = bytes;
    if (kind == PRELOAD_WAIT)
        message.reason = PRELOAD_NEEDS_MEMORY;
    assert_int_equal(send(fd, &message, sizeof message, MSG_NOSIGNAL), sizeof message);
    run_loop();
}

/* Returns the kind of the next message; 0: none; -1: the connection is closed. */
static int receive(int fd, int *ret_page)
{
    struct preload_message message;
    union {
        struct cmsghdr header;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {&message, sizeof message};
    struct msghdr header = {.msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = control.space,
        .msg_controllen = sizeof control.space};
    run_loop();
    ssize_t n = recvmsg(fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0)
        return 0;
    if (ret_page && header.msg_controllen)
        memcpy(ret_page, CMSG_DATA(&control.header), sizeof *ret_page);
    return n == 0 ? -1 : message.kind;
}

static struct preload_page *begin_process(int *ret_fd)
{
    int page_fd = -1;
    *ret_fd = connect_process();
    send_message(*ret_fd, PRELOAD_HELLO, 1, 0);
    assert_int_equal(receive(*ret_fd, &page_fd), PRELOAD_WELCOME);
    struct preload_page *page = mmap(
        NULL, PRELOAD_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, page_fd, 0);
    assert_ptr_not_equal(page, MAP_FAILED);
    close(page_fd);
    return page;
}

static void end_process(struct preload_page *page, int fd)
{
    munmap(page, PRELOAD_PAGE_SIZE);
    close(fd);
    run_loop();
}

static int begin_wait(uint64_t bytes)
{
    int fd = connect_process();
    send_message(fd, PRELOAD_WAIT, 1, bytes);
    return fd;
}

/* ---- processes ---- */

static void a_process_of_the_attempt_gets_a_page(void **state)
{
    int fd, other = connect_process();
    struct preload_page *page = begin_process(&fd);
    assert_int_equal(page->magic, PRELOAD_PAGE_MAGIC);
    assert_int_equal(page->cap_bytes, 0);
    assert_int_equal(page->gate, PRELOAD_GATE_OPEN);
    send_message(other, PRELOAD_HELLO, 2, 0); /* of an attempt that there is not */
    assert_int_equal(receive(other, NULL), -1);
    close(other);
    end_process(page, fd);
}

/* Also the process of a setuid program of that user: it has not the task's uid. */
static void a_task_of_another_user_is_refused(void **state)
{
    int fd = connect_process();
    struct preload_message hello = preload_message_of(PRELOAD_HELLO);
    struct event submit = driver_event(pretend.driver, EVENT_SUBMIT, TASK + 1);
    submit.submit.uid = geteuid() + 1;
    submit.submit.request = (struct task_request){
        .gpus = 1, .policy = &policy_first_fit, .need = {NEED_DECLARED, 8 * GIB}};
    assert_int_equal(driver_feed(pretend.driver, &submit, NULL), 0);
    hello.task = TASK + 1;
    hello.attempt = (uint32_t)core_task(pretend.core, TASK + 1)->attempts;
    assert_int_equal(send(fd, &hello, sizeof hello, MSG_NOSIGNAL), sizeof hello);
    assert_int_equal(receive(fd, NULL), -1);
    close(fd);
    pretend.story[0] = '\0';
}

static void the_cap_is_the_requirement_and_the_margin(void **state)
{
    int fd;
    seen.config.memory_cap = true;
    struct preload_page *page = begin_process(&fd);
    assert_int_equal(page->cap_bytes, 10 * GIB);
    end_process(page, fd);
}

static void the_gate_is_closed_in_the_page(void **state)
{
    int fd;
    struct process_id id = own_id();
    struct preload_page *page = begin_process(&fd);
    assert_int_equal(preload_manager_set_gate(seen.manager, TASK, id, true), PRELOAD_GATE_CLEAR);
    assert_int_equal(page->gate, PRELOAD_GATE_CLOSED);
    page->in_flight = 1;
    assert_int_equal(preload_manager_set_gate(seen.manager, TASK, id, true), PRELOAD_GATE_BUSY);
    assert_int_equal(preload_manager_set_gate(seen.manager, TASK, id, false), PRELOAD_GATE_BUSY);
    assert_int_equal(page->gate, PRELOAD_GATE_OPEN);
    page->gate = PRELOAD_GATE_CLOSED; /* of a process that came while the task was suspended */
    preload_manager_set_gate(seen.manager, TASK, (struct process_id){0}, false);
    assert_int_equal(page->gate, PRELOAD_GATE_OPEN);
    page->flags = PRELOAD_USES_IPC;
    assert_int_equal(preload_manager_flags(seen.manager, TASK, id), PRELOAD_USES_IPC);
    end_process(page, fd);
    assert_int_equal(preload_manager_set_gate(seen.manager, TASK, id, true), PRELOAD_GATE_AWAY);
    assert_int_equal(preload_manager_flags(seen.manager, TASK, id), 0);
}

/* A suspension's record, or the list of the driver, names one that has ended. */
static void another_process_that_had_its_pid_is_not_found(void **state)
{
    int fd;
    char why[128];
    struct process_id id = earlier_id();
    struct preload_page *page = begin_process(&fd);
    page->flags = PRELOAD_USES_IPC | PRELOAD_COUNTS_CALLS;
    page->called = 1;
    page->carry_state = PRELOAD_CARRY_IS_HERE;
    page->carry_bytes = GIB;
    preload_manager_polled(seen.manager);
    assert_true(preload_manager_knows(seen.manager, TASK, own_id()));
    assert_false(preload_manager_knows(seen.manager, TASK, id));
    assert_int_equal(preload_manager_set_gate(seen.manager, TASK, id, true), PRELOAD_GATE_AWAY);
    assert_int_equal(page->gate, PRELOAD_GATE_OPEN);
    assert_int_equal(preload_manager_flags(seen.manager, TASK, id), 0);
    assert_false(preload_manager_calls_idle_us(seen.manager, TASK, id).valid);
    assert_int_equal(preload_manager_carry(seen.manager, TASK, id, true), PRELOAD_CARRIES_NOT);
    assert_false(preload_manager_can_carry(seen.manager, TASK, id));
    assert_false(preload_manager_has_no_ranks(seen.manager, TASK, id));
    assert_int_equal(preload_manager_carried_bytes(seen.manager, TASK, id), 0);
    assert_true(preload_manager_explain_carrier(seen.manager, TASK, id, why, sizeof why));
    end_process(page, fd);
}

/* The driver still lists memory of one that has ended: its size teaches nothing. */
static void memory_of_one_that_had_its_pid_is_not_counted(void **state)
{
    int fd;
    struct job *job = jobs_find(pretend.jobs, TASK);
    struct preload_page *page = begin_process(&fd);
    struct preload_device *device = &page->devices[0];
    memcpy(device->uuid, uuid_bytes, sizeof uuid_bytes);
    device->held_bytes = device->peak_bytes = device->window_peak_bytes = GIB / 2;
    seen.process.used_bytes = job->mem_peak_bytes = reading_of(1 * GIB);
    seen.process.born = earlier_id().born;
    for (int poll = 0; poll < 3; poll++)
        preload_manager_polled(seen.manager);
    device->peak_bytes = device->window_peak_bytes = GIB / 2 + 3 * GIB;
    preload_manager_polled(seen.manager);
    assert_int_equal(job->mem_peak_bytes.value, 1 * GIB);
    end_process(page, fd);
}

/* Each process may claim to have blocks; there are places for the copies of 256. */
static void only_what_the_driver_lists_gets_a_place_for_its_copy(void **state)
{
    int fd;
    struct room_of_task rooms;
    struct preload_page *page = begin_process(&fd);
    seen.config.carrier = seen.config.core.can_suspend = true;
    seen.config.carrier_pool = 1 * GIB;
    page->carry_state = PRELOAD_CARRY_IS_HERE;
    page->carry_places = 1U << PRELOAD_PLACE_POOL;
    page->carry_bytes = UINT64_MAX;
    seen.sample.processes.count = 0;
    preload_manager_polled(seen.manager);
    assert_false(preload_manager_rooms_of_task(seen.manager, TASK, &rooms));
    seen.sample.processes.count = 1;
    seen.process.used_bytes = reading_of(1 * GIB);
    preload_manager_polled(seen.manager);
    assert_true(preload_manager_rooms_of_task(seen.manager, TASK, &rooms));
    seen.config.carrier = false;
    end_process(page, fd);
}

/* The driver sees 1 GiB; the process counts half of it, and had 3 GiB more between two polls. */
static void a_peak_between_two_polls_is_noted(void **state)
{
    int fd;
    struct job *job = jobs_find(pretend.jobs, TASK);
    struct preload_page *page = begin_process(&fd);
    struct preload_device *device = &page->devices[0];
    memcpy(device->uuid, uuid_bytes, sizeof uuid_bytes);
    device->held_bytes = device->peak_bytes = device->window_peak_bytes = GIB / 2;
    seen.process.used_bytes = reading_of(1 * GIB);
    job->mem_peak_bytes = reading_of(1 * GIB);
    for (int poll = 0; poll < 3; poll++)
        preload_manager_polled(seen.manager);
    assert_int_equal(job->mem_peak_bytes.value, 1 * GIB);
    device->peak_bytes = device->window_peak_bytes = GIB / 2 + 3 * GIB;
    preload_manager_polled(seen.manager);
    assert_int_equal(job->mem_peak_bytes.value, 4 * GIB);
    device->peak_bytes = 1000 * GIB; /* more than the GPU has is not believed */
    preload_manager_polled(seen.manager);
    assert_true(job->mem_peak_bytes.value <= 40.0 * GIB);
    end_process(page, fd);
}

/* It counts 3 GiB more, but has others that it could not count: the difference is no context. */
static void no_peak_is_taken_from_incomplete_counts(void **state)
{
    int fd;
    struct job *job = jobs_find(pretend.jobs, TASK);
    struct preload_page *page = begin_process(&fd);
    struct preload_device *device = &page->devices[0];
    memcpy(device->uuid, uuid_bytes, sizeof uuid_bytes);
    device->held_bytes = device->peak_bytes = device->window_peak_bytes = GIB / 2;
    seen.process.used_bytes = job->mem_peak_bytes = reading_of(1 * GIB);
    for (int poll = 0; poll < 3; poll++)
        preload_manager_polled(seen.manager);
    device->peak_bytes = device->window_peak_bytes = GIB / 2 + 3 * GIB;
    page->flags = PRELOAD_INCOMPLETE;
    preload_manager_polled(seen.manager);
    page->flags = 0; /* a process cannot take it back */
    end_process(page, fd);
    assert_int_equal(job->mem_peak_bytes.value, 1 * GIB);
}

static void calls_are_seen_at_polls(void **state)
{
    int fd;
    struct process_id id = own_id();
    struct preload_page *page = begin_process(&fd);
    page->called = 1; /* of a library that does not say that it counts */
    preload_manager_polled(seen.manager);
    assert_false(preload_manager_calls_idle_us(seen.manager, TASK, id).valid);
    page->flags = PRELOAD_COUNTS_CALLS;
    page->called = 0;
    preload_manager_polled(seen.manager);
    assert_false(preload_manager_calls_idle_us(seen.manager, TASK, id).valid);
    page->called = 1;
    preload_manager_polled(seen.manager);
    assert_int_equal(page->called, 0);
    struct reading idle = preload_manager_calls_idle_us(seen.manager, TASK, id);
    assert_true(idle.valid);
    page->in_flight = 1; /* a synchronizing call lasts */
    preload_manager_polled(seen.manager);
    assert_false(preload_manager_calls_idle_us(seen.manager, TASK + 1, id).valid);
    assert_true(preload_manager_calls_idle_us(seen.manager, TASK, id).valid);
    end_process(page, fd);
    assert_false(preload_manager_calls_idle_us(seen.manager, TASK, id).valid);
}

/* It is suspended because it did not use its GPU; then one of its threads is at the gate. */
static void a_call_wakes_an_unused_task(void **state)
{
    int fd;
    struct core_settings settings = *core_get_settings(pretend.core);
    struct event idle = driver_event(pretend.driver, EVENT_IDLE, TASK);
    struct preload_page *page = begin_process(&fd);
    settings.can_suspend = true;
    settings.suspend_unused_us = SECOND_US;
    core_configure(pretend.core, &settings);
    page->at_gate = 1;
    preload_manager_polled(seen.manager); /* it runs */
    expect_story("");
    idle.idle_us = SECOND_US;
    driver_feed(pretend.driver, &idle, NULL);
    expect_story("IDLE; SUSPENDING; ");
    page->at_gate = 0;
    preload_manager_polled(seen.manager);
    expect_story("");
    page->at_gate = 1;
    preload_manager_polled(seen.manager);
    preload_manager_polled(seen.manager);
    expect_story("WAKE; ");
    end_process(page, fd);
}

/* ---- threads that wait ---- */

static void a_wait_is_reported_at_the_next_poll(void **state)
{
    int fd = begin_wait(1 * GIB);
    assert_int_equal(receive(fd, NULL), PRELOAD_BOUND);
    expect_story("");
    preload_manager_polled(seen.manager);
    preload_manager_polled(seen.manager); /* it is reported once */
    expect_story("MEMORY_WAIT; ");
    preload_manager_answer_memory(seen.manager, TASK, true);
    assert_int_equal(receive(fd, NULL), PRELOAD_RETRY);
    send_message(fd, PRELOAD_WAIT, 1, 1 * GIB); /* it failed again */
    preload_manager_polled(seen.manager);
    expect_story("MEMORY_WAIT; ");
    preload_manager_answer_memory(seen.manager, TASK, false);
    expect_story("");
    assert_int_equal(receive(fd, NULL), PRELOAD_FAIL);
    close(fd);
    run_loop();
    expect_story("");
}

static void the_core_decides_about_one_thread_at_a_time(void **state)
{
    int first = begin_wait(1 * GIB), second = begin_wait(2 * GIB);
    preload_manager_polled(seen.manager);
    expect_story("MEMORY_WAIT; ");
    preload_manager_answer_memory(seen.manager, TASK, true);
    assert_int_equal(receive(first, NULL), PRELOAD_BOUND);
    assert_int_equal(receive(first, NULL), PRELOAD_RETRY);
    assert_int_equal(receive(second, NULL), PRELOAD_BOUND);
    assert_int_equal(receive(second, NULL), 0);
    close(first); /* it has its memory */
    run_loop();
    preload_manager_polled(seen.manager);
    expect_story("MEMORY_WAIT; ");
    close(second); /* it was killed */
    run_loop();
    expect_story("MEMORY_WAIT_END; ");
}

static void a_wait_without_a_bound_fails_at_once(void **state)
{
    seen.config.memory_wait_us = 0;
    int fd = begin_wait(1 * GIB);
    assert_int_equal(receive(fd, NULL), PRELOAD_BOUND);
    assert_int_equal(receive(fd, NULL), PRELOAD_FAIL);
    preload_manager_polled(seen.manager);
    expect_story("");
    close(fd);
    run_loop();
}

static void suspend_task(void)
{
    struct core_settings settings = *core_get_settings(pretend.core);
    settings.can_suspend = true;
    core_configure(pretend.core, &settings);
    assert_int_equal(feed(EVENT_SUSPEND, TASK), 0);
    expect_story("SUSPEND; SUSPENDING; ");
}

/* The task is suspended while the thread tries. Its try may still succeed. */
static void a_longer_time_limit_is_no_new_wait(void **state)
{
    seen.config.memory_wait_us = 2 * SECOND_US;
    int fd = begin_wait(1 * GIB);
    assert_int_equal(receive(fd, NULL), PRELOAD_BOUND);
    preload_manager_polled(seen.manager);
    preload_manager_answer_memory(seen.manager, TASK, true);
    assert_int_equal(receive(fd, NULL), PRELOAD_RETRY);
    expect_story("MEMORY_WAIT; ");
    suspend_task();
    usleep(600000);
    run_loop();
    preload_manager_polled(seen.manager);
    assert_int_equal(receive(fd, NULL), PRELOAD_BOUND);
    expect_story("");
    send_message(fd, PRELOAD_WAIT, 1, 1 * GIB); /* it failed */
    assert_int_equal(receive(fd, NULL), 0);
    preload_manager_polled(seen.manager);
    expect_story("MEMORY_WAIT; ");
    close(fd);
    run_loop();
    expect_story("MEMORY_WAIT_END; ");
}

/* ---- without the library ---- */

static void without_the_library_tasks_run_without(void **state)
{
    destroy_part();
    snprintf(seen.config.preload_library, sizeof seen.config.preload_library, "%s/not-there",
        seen.folder);
    create_part();
    assert_null(preload_manager_socket(seen.manager));
    assert_int_equal(
        preload_manager_set_gate(seen.manager, TASK, own_id(), true), PRELOAD_GATE_NONE);
    preload_manager_answer_memory(seen.manager, TASK, true);
    preload_manager_polled(seen.manager);
    expect_story("");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_process_of_the_attempt_gets_a_page),
        TEST(a_task_of_another_user_is_refused),
        TEST(the_cap_is_the_requirement_and_the_margin),
        TEST(the_gate_is_closed_in_the_page),
        TEST(another_process_that_had_its_pid_is_not_found),
        TEST(memory_of_one_that_had_its_pid_is_not_counted),
        TEST(only_what_the_driver_lists_gets_a_place_for_its_copy),
        TEST(a_peak_between_two_polls_is_noted),
        TEST(no_peak_is_taken_from_incomplete_counts),
        TEST(calls_are_seen_at_polls),
        TEST(a_call_wakes_an_unused_task),
        TEST(a_wait_is_reported_at_the_next_poll),
        TEST(the_core_decides_about_one_thread_at_a_time),
        TEST(a_wait_without_a_bound_fails_at_once),
        TEST(a_longer_time_limit_is_no_new_wait),
        TEST(without_the_library_tasks_run_without),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
