# SPDX-License-Identifier: Apache-2.0
"""The carrier of libcolloc-preload.so (docs/carrier.md) in programs that use a pretend libcuda. Its
mapped memory is real: without it a program dies of SIGSEGV, and new memory is empty."""
import os
import signal
import sys
import textwrap
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_preload as tp  # noqa: E402
import kill_counts  # noqa: E402

pd, MIB = tp.pd, tp.MIB

# Memory of each block has its own byte, which is compared after each way out and back.
BLOCKS = """
cuda.cuMemsetD8_v2.argtypes = [c.c_uint64, c.c_ubyte, c.c_size_t]
cuda.cuMemcpyDtoH_v2.argtypes = [c.c_void_p, c.c_uint64, c.c_size_t]
def begin():
    init()
    context = c.c_void_p()
    assert cuda.cuDevicePrimaryCtxRetain(c.byref(context), 0) == 0
    return context.value
def fill(at, mib, byte):
    return cuda.cuMemsetD8_v2(at, byte, mib * MIB)
def has(at, mib, byte):
    room = c.create_string_buffer(mib * MIB)
    assert cuda.cuMemcpyDtoH_v2(room, at, mib * MIB) == 0
    return room.raw == bytes([byte]) * (mib * MIB)
def line():
    return sys.stdin.readline().strip()
"""
# Fills blocks, says so, and at each line says whether all is as it was.
HOLDER = """
begin()
sizes = [1, 3, 9, 30]
blocks = [(alloc(mib)[1], mib, 17 * i + 1) for i, mib in enumerate(sizes)]
for block in blocks: fill(*block)
say("ready")
while line(): say(all([has(*block) for block in blocks]))
say([free(at) for at, _, _ in blocks])
"""
HELD_MIB, MAPPED_MIB = 43, 2 + 4 + 10 + 30


class Carrier(tp.Preload):
    def carried(self, text, **options):
        return self.python(BLOCKS + textwrap.dedent(text), COLLOC_PRELOAD_CARRIER="1", **options)

    def say(self, program, text):
        program.stdin.write(text + "\n")
        program.stdin.flush()

    def hear(self, program):
        return program.stdout.readline().strip()

    def page(self, program):
        """Once its carrier is ready, or will never be."""
        self.daemon.wait_until(
            lambda: program.pid in self.daemon.pages
            and (
                self.daemon.pages[program.pid].where() != pd.NO_BLOCKS
                or self.daemon.pages[program.pid].why() != "can"
            )
        )
        return self.daemon.pages[program.pid]

    def begin(self, text, **options):
        if not self.daemon:
            self.start_daemon()
        program = self.carried(text, **options)
        self.assertEqual(self.hear(program), "ready")
        return program, self.page(program)

    def order_away(self, page, why="can"):
        page.set_gate(True)
        self.assertEqual(page.carry(pd.AWAY), why)
        self.assertEqual(page.where(), pd.IS_AWAY if why == "can" else pd.IS_HERE)
        if why != "can":
            page.set_gate(False)

    def order_here(self, page):
        self.assertEqual(page.carry(pd.HERE), "can")
        self.assertEqual(page.where(), pd.IS_HERE)
        page.set_gate(False)

    def check_end(self, program, page, blocks=4):
        self.say(program, "check")
        self.assertEqual(self.hear(program), "True")
        self.say(program, "")
        self.assertEqual(self.hear(program), str([0] * blocks))
        self.assertEqual(program.wait(pd.LIMIT_S), 0)
        self.assertEqual((self.gpu.get("used"), page.held()), (0, 0))


class Blocks(Carrier):
    def test_an_allocation_is_counted_as_asked_for(self):
        program, page = self.begin(HOLDER)
        self.assertEqual(page.held(), HELD_MIB * MIB)
        self.assertEqual(self.gpu.get("used"), MAPPED_MIB * MIB)
        self.assertEqual(page.u64(pd.CARRY_BYTES), MAPPED_MIB * MIB)
        self.check_end(program, page)
        self.assertEqual(page.peak(), HELD_MIB * MIB)

    def test_what_a_program_asks_is_answered_as_of_other_memory(self):
        program, page = self.begin(
            """
            context = begin()
            at, inside = alloc(3)[1], 1000
            base, size, number = c.c_uint64(), c.c_size_t(), c.c_uint64()
            r = cuda.cuMemGetAddressRange_v2(c.byref(base), c.byref(size), c.c_uint64(at + inside))
            range_is_right = (r, base.value, size.value) == (0, at, 3 * MIB)
            outside = cuda.cuMemGetAddressRange_v2(None, None, c.c_uint64(at + 3 * MIB))
            def attribute(which):
                assert cuda.cuPointerGetAttribute(c.byref(number), which, c.c_uint64(at + 5)) == 0
                return number.value
            attributes = attribute(1) == context, attribute(11) == at, attribute(12) == 3 * MIB
            which = (c.c_int * 2)(1, 12)
            values = (c.c_uint64 * 2)()
            each = (c.c_void_p * 2)(c.addressof(values), c.addressof(values) + 8)
            cuda.cuPointerGetAttributes(2, which, each, c.c_uint64(at))
            handle = c.c_uint64()
            retained = cuda.cuMemRetainAllocationHandle(c.byref(handle), c.c_void_p(at))
            say("ready")
            line()
            say(range_is_right, outside, attributes, list(values) == [context, 3 * MIB], retained,
                unmap(at, 3), free(at + 1), free(at), free(at))
            """
        )
        self.say(program, "go on")
        self.assertEqual(self.hear(program), "True 1 (True, True, True) True 1 1 1 0 1")

    def test_a_pitch(self):
        program, page = self.begin(
            """
            begin()
            at, pitch = c.c_uint64(), c.c_size_t()
            r = cuda.cuMemAllocPitch_v2(c.byref(at), c.byref(pitch), c.c_size_t(1000),
                                        c.c_size_t(4096), 4)
            say("ready")
            line()
            say(r, pitch.value, fill(at.value, 4, 3), has(at.value, 4, 3), free(at.value))
            """
        )
        self.say(program, "go on")
        self.assertEqual(self.hear(program), "0 1024 0 True 0")
        self.assertEqual(self.gpu.get("used"), 0)

    def test_a_free_waits_for_the_gpu(self):
        program, page = self.begin("begin(); at = alloc(4)[1]; say('ready'); line(); say(free(at))")
        self.gpu.set("busy", 1)
        self.say(program, "free")
        self.daemon.wait_until(lambda: self.gpu.get("synchronising") == 1)
        self.assertEqual(self.gpu.get("used"), 4 * MIB)
        self.gpu.set("busy", 0)
        self.assertEqual(self.hear(program), "0")
        self.assertEqual(self.gpu.get("used"), 0)

    def test_a_block_that_is_freed_in_a_capture_goes_after_it(self):
        program, page = self.begin(
            """
            begin()
            at, stream, graph = alloc(4)[1], c.c_void_p(16), c.c_void_p()
            cuda.cuStreamBeginCapture_v2(stream, 0)
            say("ready"); line()
            say(free(at)); line()
            cuda.cuStreamEndCapture(stream, c.byref(graph))
            say(alloc(2)[0]); line()
            """
        )
        self.say(program, "")
        self.assertEqual(self.hear(program), "0")
        self.assertEqual((page.held(), self.gpu.get("used")), (0, 4 * MIB))
        self.say(program, "")
        self.assertEqual(self.hear(program), "0")
        self.assertEqual(self.gpu.get("used"), 2 * MIB)

    def test_blocks_go_with_their_context(self):
        program, page = self.begin(
            """
            begin(); alloc(4); alloc(8)
            say("ready"); line()
            say(cuda.cuDevicePrimaryCtxReset_v2(0)); line()
            """
        )
        self.say(program, "")
        self.assertEqual(self.hear(program), "0")
        self.assertEqual((page.held(), self.gpu.get("used")), (0, 0))

    def test_a_full_gpu_is_waited_for(self):
        """Also if the memory was there and could not be mapped: nothing of it is left."""
        self.start_daemon()
        self.gpu.set("used", 990 * MIB)
        program = self.carried("begin(); r, at = alloc(20); say(r, fill(at, 20, 1), free(at))")
        wait = self.wait_for_wait()
        self.assertEqual((wait.bytes, wait.reason), (20 * MIB, pd.MEMORY))
        self.gpu.set("used", 0)
        self.daemon.answer(wait, pd.RETRY)
        self.assertEqual(self.hear(program), "0 0 0")

    def test_where_mapping_fails_the_driver_allocates(self):
        for call in ("cuMemAddressReserve", "cuMemSetAccess"):
            self.start_daemon()
            program = self.carried(
                "begin(); r, at = alloc(20); say(r); line(); say(free(at))", PRETEND_CUDA_FAILS=call
            )
            self.assertEqual(self.hear(program), "0" if call == "cuMemSetAccess" else "2")
            used = self.gpu.get("used")
            self.assertEqual(used, 20 * MIB if call == "cuMemSetAccess" else 0)
            program.kill()
            self.gpu.set("used", 0)
            self.daemon.close()

    def test_without_the_carrier_nothing_is_mapped(self):
        self.start_daemon()
        program = self.python(BLOCKS + "begin(); at = alloc(4)[1]; say('ready'); line()")
        self.hear(program)
        self.assertEqual(self.daemon.pages[program.pid].where(), pd.NO_BLOCKS)
        self.assertEqual(self.gpu.get("used"), 4 * MIB)


class OutAndIn(Carrier):
    def test_the_memory_leaves_and_comes_back(self):
        program, page = self.begin(HOLDER)
        for _ in range(5):
            self.order_away(page)
            self.assertEqual(self.gpu.get("used"), 0)
            self.order_here(page)
            self.assertEqual(self.gpu.get("used"), MAPPED_MIB * MIB)
            self.say(program, "check")
            self.assertEqual(self.hear(program), "True")
        self.assertGreater(page.u64(pd.CARRY_OUT_US), 0)
        self.check_end(program, page)

    def test_many_blocks(self):
        program, page = self.begin(
            """
            begin()
            blocks = [(alloc(1)[1], 1, i % 251) for i in range(400)]
            for block in blocks: fill(*block)
            say("ready")
            while line(): say(all([has(*block) for block in blocks]))
            say([free(at) for at, _, _ in blocks])
            """
        )
        self.order_away(page)
        self.order_here(page)
        self.check_end(program, page, 400)

    def test_every_call_waits_while_it_is_away(self):
        """Also launches whose hook has stepped aside, and calls that the library does not know."""
        for call in (
            "fill(at, 4, 9)",
            "free(at)",
            "alloc(4)[0]",
            "cuda.cuStreamSynchronize(None)",
            "cuda.cuLaunchKernel(*[None] * 11)",
        ):
            program, page = self.begin(
                f"""
begin(); at = alloc(4)[1]
for i in range(100002 if "Launch" in "{call}" else 0): cuda.cuLaunchKernel(*[None] * 11)
say("ready"); line()
say({call})
"""
            )
            self.order_away(page)
            self.say(program, "go")
            self.daemon.wait_until(lambda: page.u32(pd.AT_GATE) == 1)
            self.order_here(page)
            self.assertEqual(self.hear(program), "0", call)
            self.assertEqual(program.wait(pd.LIMIT_S), 0)
            self.gpu.set("used", 0)

    def test_arguments_on_the_stack_come_through(self):
        self.start_daemon()
        program = self.start(
            os.path.join(tp.TOOLS, "probe"), "table", "launch", COLLOC_PRELOAD_CARRIER="1"
        )
        self.assertEqual(self.hear(program), "ready")
        self.say(program, "")
        self.assertEqual(self.output(program), ["13000", "506", "25"])

    def test_it_waits_for_a_call_in_flight(self):
        program, page = self.begin(
            "begin(); at = alloc(4)[1]; say('ready'); line(); "
            "say(fill(at, 4, 7)); say(has(at, 4, 7))"
        )
        self.gpu.set("busy", 1)
        self.say(program, "fill")
        self.daemon.wait_until(lambda: self.gpu.get("synchronising") == 1)
        page.set_gate(True)
        order = page.set_order(pd.AWAY)
        self.daemon.wait_until(lambda: page.where() == pd.IS_WAITING)
        self.gpu.set("busy", 0)
        self.daemon.wait_until(lambda: page.u32(pd.CARRY_DONE) == order)
        self.assertEqual(page.where(), pd.IS_AWAY)
        self.order_here(page)
        self.assertEqual([self.hear(program), self.hear(program)], ["0", "True"])

    def test_a_library_that_is_loaded_at_the_gate(self):
        """Its constructor waits there, with the dynamic linker's lock, which the carrier must not
        need: neither would ever go on."""
        program, page = self.begin(
            """
            begin()
            at = alloc(4)[1]
            fill(at, 4, 7)
            say("ready"); line()
            say("loading")
            c.CDLL(os.path.join(os.environ["LD_LIBRARY_PATH"], "libloaded-late.so"))
            say(has(at, 4, 7))
            """
        )
        page.set_gate(True)
        self.say(program, "load")
        self.assertEqual(self.hear(program), "loading")
        self.daemon.wait_until(lambda: page.u32(pd.AT_GATE) == 1)
        self.order_away(page)
        self.order_here(page)
        self.assertEqual(self.hear(program), "True")

    def test_an_order_that_is_taken_back_changes_nothing(self):
        program, page = self.begin(
            "begin(); at = alloc(4)[1]; say('ready'); line(); say(fill(at, 4, 7))"
        )
        self.gpu.set("busy", 1)
        self.say(program, "fill")
        self.daemon.wait_until(lambda: self.gpu.get("synchronising") == 1)
        page.set_gate(True)
        page.set_order(pd.AWAY)
        self.daemon.wait_until(lambda: page.where() == pd.IS_WAITING)
        self.assertEqual(page.carry(pd.HERE), "can")
        self.assertEqual(page.where(), pd.IS_HERE)
        page.set_gate(False)
        self.gpu.set("busy", 0)
        self.assertEqual(self.hear(program), "0")

    def test_a_full_gpu_keeps_it_away(self):
        program, page = self.begin(HOLDER)
        self.order_away(page)
        self.gpu.set("used", 970 * MIB)
        self.assertEqual(page.carry(pd.HERE), "no-gpu-memory")
        self.assertEqual(page.where(), pd.IS_AWAY)
        self.assertEqual(self.gpu.get("used"), 970 * MIB)
        self.gpu.set("used", 0)
        self.order_here(page)
        self.check_end(program, page)

    def test_an_order_is_carried_out_once(self):
        program, page = self.begin(HOLDER)
        self.order_away(page)
        self.assertEqual(page.carry(pd.AWAY), "can")
        self.order_here(page)
        self.assertEqual(page.carry(pd.HERE), "can")
        self.check_end(program, page)

    def test_a_copy_that_fails_leaves_it_here(self):
        program, page = self.begin(HOLDER, PRETEND_CUDA_FAILS="cuMemcpyDtoHAsync_v2")
        self.order_away(page, why="driver")
        self.assertEqual(page.u32(pd.CARRY_ERROR), 700)
        self.check_end(program, page)

    def test_a_copy_back_that_fails_loses_it(self):
        program, page = self.begin(HOLDER, PRETEND_CUDA_FAILS="cuMemcpyHtoDAsync_v2")
        self.order_away(page)
        self.assertEqual(page.carry(pd.HERE), "driver")
        self.assertEqual(page.where(), pd.IS_LOST)

    def test_the_next_daemon_finds_it_away(self):
        program, page = self.begin(HOLDER)
        self.order_away(page)
        self.daemon.close()
        self.daemon = None
        self.start_daemon()
        self.daemon.wait_until(lambda: program.pid in self.daemon.pages)
        page = self.daemon.pages[program.pid]
        self.daemon.wait_until(lambda: page.where() == pd.IS_AWAY)
        self.assertEqual(page.u32(pd.GATE), 1)
        self.order_here(page)
        self.check_end(program, page)

    def test_a_daemon_that_ends_in_the_middle(self):
        """The order that it gave is finished, and the next one finds the memory where it is."""
        program, page = self.begin(HOLDER)
        self.gpu.set("busy", 1)
        page.set_gate(True)
        page.set_order(pd.AWAY)
        self.daemon.wait_until(lambda: self.gpu.get("synchronising") == 1)
        self.daemon.close()
        self.daemon = None
        self.gpu.set("busy", 0)
        self.daemon_of(program)
        page = self.daemon.pages[program.pid]
        self.daemon.wait_until(lambda: page.where() == pd.IS_AWAY)
        self.order_here(page)
        self.check_end(program, page)

    def daemon_of(self, program):
        self.start_daemon()
        self.daemon.wait_until(lambda: program.pid in self.daemon.pages)

    def test_a_process_that_is_killed_while_it_is_away(self):
        program, page = self.begin(HOLDER)
        self.order_away(page)
        program.send_signal(signal.SIGKILL)
        program.wait(pd.LIMIT_S)
        self.assertEqual(self.gpu.get("used"), 0)

    def test_a_signal_of_the_program_is_handled_in_its_own_thread(self):
        program, page = self.begin(
            """
import signal, _thread
signal.signal(signal.SIGUSR1, lambda *_: say("handled"))
begin(); at = alloc(4)[1]
say("ready"); line(); say("end")
"""
        )
        program.send_signal(signal.SIGUSR1)
        self.assertEqual(self.hear(program), "handled")
        self.say(program, "")
        self.assertEqual(self.hear(program), "end")


class Phases(Carrier):
    """The daemon ends in each phase of the way out and back, in turns; the next one finds the
    memory where it is, and brings it back whole. So does a process that is killed there: it leaves
    its neighbour alone."""

    ROUNDS = int(os.environ.get("COLLOC_CARRIER_KILLS", "14"))
    HOLD_COPY_OUT, HOLD_UNMAP, HOLD_CREATE, HOLD_COPY_BACK = 1, 2, 4, 8
    # the order, the call that does not return, the phase that is reached
    PHASES = (
        (pd.AWAY, HOLD_COPY_OUT, pd.IS_COPYING),
        (pd.AWAY, HOLD_UNMAP, pd.IS_RELEASING),
        (pd.AWAY, 0, pd.IS_AWAY),
        (pd.HERE, HOLD_CREATE, pd.IS_RETURNING),
        (pd.HERE, HOLD_COPY_BACK, pd.IS_RETURNING),
        (pd.HERE, 0, pd.IS_HERE),
    )

    def reach(self, page, goal, held, phase):
        if goal == pd.HERE:
            self.order_away(page)
        self.gpu.set("held", held)
        page.set_gate(True)
        page.set_order(goal)
        self.daemon.wait_until(lambda: page.where() == phase)

    def next_daemon(self, program):
        self.daemon.close()
        self.daemon = None
        self.start_daemon()
        self.gpu.set("held", 0)
        self.daemon.wait_until(lambda: program.pid in self.daemon.pages)
        page = self.daemon.pages[program.pid]
        self.daemon.wait_until(lambda: page.where() in (pd.IS_AWAY, pd.IS_HERE))
        return page

    def test_the_daemon_ends(self):
        program, page = self.begin(HOLDER)
        with kill_counts.of(self) as killed:
            for i in range(self.ROUNDS):
                goal, held, phase = self.PHASES[i % len(self.PHASES)]
                self.reach(page, goal, held, phase)
                page = self.next_daemon(program)
                killed["collocd"] += 1
                # what the last daemon ordered may end after the new page was sent
                page.set_gate(True)
                self.order_here(page)
                self.say(program, "check")
                self.assertEqual(self.hear(program), "True", (i, phase))
            self.check_end(program, page)

    def test_the_process_is_killed(self):
        neighbour, _ = self.begin(HOLDER)
        with kill_counts.of(self) as killed:
            for i in range(self.ROUNDS):
                self.kill_in_phase(i % len(self.PHASES))
                killed["task"] += 1
                self.say(neighbour, "check")
                self.assertEqual(self.hear(neighbour), "True", i)
            self.check_end(neighbour, self.daemon.pages[neighbour.pid])

    def kill_in_phase(self, i):
        program, page = self.begin(HOLDER)
        self.reach(page, *self.PHASES[i])
        program.kill()
        program.wait(pd.LIMIT_S)
        for stream in (program.stdin, program.stdout):
            stream.close()
        self.gpu.set("held", 0)
        self.gpu.set("used", MAPPED_MIB * MIB)  # the driver frees what it held


class Pool(Carrier):
    """The copy goes to host memory of the daemon's, a file that the process keeps mapped."""

    FILE = "pretend-room"

    def hand_over(self, program, mib=MAPPED_MIB):
        fd = os.memfd_create(self.FILE, os.MFD_ALLOW_SEALING)
        os.ftruncate(fd, mib * MIB)
        self.addCleanup(os.close, fd)
        self.daemon.give_room(program.pid, pd.POOL, mib * MIB, fd)
        return fd

    def has_mapped(self, program):
        with open(f"/proc/{program.pid}/maps") as maps:
            return self.FILE in maps.read()

    def has_open(self, program):
        folder = f"/proc/{program.pid}/fd"
        return any(self.FILE in os.readlink(f"{folder}/{fd}") for fd in os.listdir(folder))

    def out_and_back(self, program, page):
        self.order_away(page)
        self.assertEqual((page.lies(), self.gpu.get("used")), (pd.POOL, 0))
        self.order_here(page)
        self.assertEqual(page.lies(), pd.OWN)
        self.say(program, "check")
        self.assertEqual(self.hear(program), "True")

    def test_one_file_for_all_ways_out(self):
        program, page = self.begin(HOLDER)
        fd = self.hand_over(program)
        for _ in range(3):
            self.out_and_back(program, page)
            self.assertIn(bytes([1]) * MIB, os.pread(fd, MAPPED_MIB * MIB, 0))
            os.pwrite(fd, bytes(MAPPED_MIB * MIB), 0)  # nothing of it is needed any more
            self.assertTrue(self.has_mapped(program))
            self.assertFalse(self.has_open(program))
        self.check_end(program, page)

    def test_the_reason_stays_when_the_wake_comes_late(self):
        """For a second, after which the carrier says anew whether its memory could be carried."""
        program, page = self.begin(HOLDER)
        page.set_place(pd.POOL)

        def stays():
            self.assertIn(page.carry(pd.AWAY), ("no-room", "can"))
            page.wake(pd.CARRY_ORDER)
            time.sleep(0.05)
            return page.why() == "no-room"

        page.set_gate(True)
        self.daemon.wait_until(stays)
        page.set_gate(False)
        self.check_end(program, page)

    def test_a_larger_file_takes_its_place(self):
        program, page = self.begin(HOLDER)
        self.hand_over(program, MAPPED_MIB - 2)
        self.order_away(page, "no-room")
        self.order_away(page, "no-room")
        self.hand_over(program, MAPPED_MIB + 64)
        self.out_and_back(program, page)
        self.check_end(program, page)

    def test_it_is_given_back(self):
        program, page = self.begin(HOLDER)
        self.hand_over(program)
        self.out_and_back(program, page)
        self.daemon.give_back(program.pid, pd.POOL)
        self.daemon.wait_until(lambda: not self.has_mapped(program))
        page.set_place(pd.POOL)
        self.order_away(page, "no-room")
        self.hand_over(program)
        self.out_and_back(program, page)
        self.check_end(program, page)

    def test_the_next_daemon_gets_it_back(self):
        program, page = self.begin(HOLDER)
        self.hand_over(program)
        self.order_away(page)
        self.daemon.close()
        self.start_daemon()
        page = self.page(program)
        self.assertEqual((page.where(), page.lies()), (pd.IS_AWAY, pd.POOL))
        self.assertTrue(self.has_mapped(program))
        self.order_here(page)
        self.daemon.wait_until(lambda: not self.has_mapped(program))
        self.check_end(program, page)

    def test_a_child_does_not_have_it(self):
        program, page = self.begin(
            HOLDER.replace("say(all(", "fork_and_wait() and say(all(").replace(
                "begin()",
                "import os\n"
                "def fork_and_wait():\n"
                "    child = os.fork()\n"
                "    if not child: os._exit('pretend-room' in open('/proc/self/maps').read())\n"
                "    return os.waitpid(child, 0)[1] == 0\n"
                "begin()",
                1,
            )
        )
        self.hand_over(program)
        self.out_and_back(program, page)
        self.check_end(program, page)

    def test_a_file_that_cannot_be_mapped(self):
        program, page = self.begin(HOLDER)
        fd = os.open("/dev/null", os.O_RDONLY)
        self.daemon.give_room(program.pid, pd.POOL, MAPPED_MIB * MIB, fd)
        os.close(fd)
        self.order_away(page, "no-host-memory")
        page.set_place(pd.OWN)
        self.order_away(page)
        self.order_here(page)
        self.check_end(program, page)


class Neighbour(Carrier):
    """The copy goes to memory of another GPU, which the daemon hands over."""

    HOLD_COPY_OUT, HOLD_COPY_ACROSS = 1, 16

    def hand_over(self, program, mib=MAPPED_MIB, place=pd.NEIGHBOUR):
        fd = os.memfd_create("neighbour")
        os.ftruncate(fd, mib * MIB)
        self.daemon.give_room(program.pid, place, mib * MIB, fd)
        self.addCleanup(os.close, fd)
        return fd

    def check_whole(self, program):
        self.say(program, "check")
        self.assertEqual(self.hear(program), "True")

    def test_there_and_back(self):
        program, page = self.begin(HOLDER)
        self.assertEqual(page.places(), 1 << pd.OWN | 1 << pd.POOL | 1 << pd.NEIGHBOUR)
        for _ in range(3):
            fd = self.hand_over(program)
            self.order_away(page)
            self.assertEqual((page.lies(), self.gpu.get("used")), (pd.NEIGHBOUR, 0))
            self.assertIn(bytes([1]) * MIB, os.pread(fd, MAPPED_MIB * MIB, 0))
            self.order_here(page)
            self.assertEqual(page.lies(), pd.OWN)
            self.check_whole(program)
        self.check_end(program, page)

    def test_it_goes_to_the_host_and_then_back(self):
        program, page = self.begin(HOLDER)
        self.hand_over(program)
        self.order_away(page)
        page.set_place(pd.OWN)
        self.assertEqual(page.carry(pd.TO_HOST), "can")
        self.assertEqual((page.where(), page.lies()), (pd.IS_AWAY, pd.OWN))
        self.order_here(page)
        self.check_end(program, page)

    def test_a_way_to_the_host_that_fails_leaves_it_there(self):
        program, page = self.begin(HOLDER, PRETEND_CUDA_FAILS="cuMemcpyDtoHAsync_v2")
        self.hand_over(program)
        self.order_away(page)
        page.set_place(pd.OWN)
        self.assertEqual(page.carry(pd.TO_HOST), "driver")
        self.assertEqual((page.where(), page.lies()), (pd.IS_AWAY, pd.NEIGHBOUR))
        self.order_here(page)
        self.check_end(program, page)

    def test_without_memory_that_suits_it_stays(self):
        program, page = self.begin(HOLDER)
        page.set_place(pd.NEIGHBOUR)
        self.order_away(page, "no-room")
        self.hand_over(program, MAPPED_MIB - 2)
        self.order_away(page, "no-room")
        self.hand_over(program)
        page.set_place(7)
        self.order_away(page, "no-room")
        self.hand_over(program)
        self.order_away(page)
        self.order_here(page)
        self.check_end(program, page)

    def test_memory_that_cannot_be_mapped(self):
        program, page = self.begin(HOLDER, PRETEND_CUDA_FAILS="cuMemImportFromShareableHandle")
        self.hand_over(program)
        self.order_away(page, "driver")
        page.set_place(pd.OWN)
        self.order_away(page)
        self.order_here(page)
        self.check_end(program, page)

    def test_a_copy_that_fails(self):
        program, page = self.begin(HOLDER, PRETEND_CUDA_FAILS="cuMemcpyDtoDAsync_v2")
        self.hand_over(program)
        self.order_away(page, "driver")
        self.check_end(program, page)

    def test_the_daemon_ends_in_the_middle(self):
        program, page = self.begin(HOLDER)
        self.hand_over(program)
        page.set_gate(True)
        self.gpu.set("held", self.HOLD_COPY_ACROSS)
        page.set_order(pd.AWAY)
        self.daemon.wait_until(lambda: page.where() == pd.IS_COPYING)
        page = Phases.next_daemon(self, program)
        self.daemon.wait_until(lambda: page.where() == pd.IS_AWAY)
        self.assertEqual(page.lies(), pd.NEIGHBOUR)
        page.set_gate(True)
        page.set_order(pd.TO_HOST)
        page = Phases.next_daemon(self, program)
        page.set_gate(True)
        self.order_here(page)
        self.check_end(program, page)

    def test_a_child_does_not_keep_the_memory(self):
        """What is handed over and not used yet is closed in a child, and given back on request."""
        program, page = self.begin(
            """
            begin(); alloc(4)
            def neighbours():
                links = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
                return sum("neighbour" in os.readlink(l) for l in links if os.path.islink(l))
            say("ready"); line()
            while not neighbours(): time.sleep(0.01)
            reader, writer = os.pipe()
            if os.fork() == 0:
                os.write(writer, bytes([neighbours()]))
                os._exit(0)
            say(neighbours(), os.read(reader, 1)[0])
            while neighbours(): time.sleep(0.01)
            say("given back")
            """
        )
        self.hand_over(program)
        self.say(program, "look")
        self.assertEqual(self.hear(program), "1 0")
        self.daemon.give_back(program.pid)
        self.assertEqual(self.hear(program), "given back")


# Blocks of which the first bytes have a content, of any size.
SPARSE = """
begin()
blocks = [alloc({mib})[1] for _ in range({count})]
for i, at in enumerate(blocks): assert cuda.cuMemsetD8_v2(at, i % 251 + 1, 8) == 0
def first(at):
    room = c.create_string_buffer(8)
    assert cuda.cuMemcpyDtoH_v2(room, at, 8) == 0
    return room.raw
say("ready")
while line(): say(all(first(at) == bytes([i % 251 + 1]) * 8 for i, at in enumerate(blocks)))
say(sum(free(at) for at in blocks))
"""


class Large(Carrier):
    """Memory that no test machine has: only the first bytes of each block are real."""

    hand_over, check_whole = Neighbour.hand_over, Neighbour.check_whole

    def check_there_and_back(self, count, mib, mapped_mib):
        self.gpu.set("total", 2 * mapped_mib * MIB)
        program, page = self.begin(SPARSE.format(count=count, mib=mib), PRETEND_CUDA_SPARSE="1")
        for _ in range(2):
            self.hand_over(program, mapped_mib)
            self.order_away(page)
            self.assertEqual((page.lies(), self.gpu.get("used")), (pd.NEIGHBOUR, 0))
            self.order_here(page)
            self.assertEqual(page.u64(pd.CARRY_BYTES), mapped_mib * MIB)
            self.check_whole(program)
        self.say(program, "")
        self.assertEqual(self.hear(program), "0")
        self.assertEqual((self.gpu.get("used"), page.held()), (0, 0))

    def test_ten_thousand_blocks(self):
        self.check_there_and_back(10000, 1, 20000)

    def test_132_gib(self):
        """In one block, and in some."""
        self.check_there_and_back(1, 132 << 10, 132 << 10)
        self.check_there_and_back(4, 33 << 10, 132 << 10)

    def test_blocks_that_go_with_their_context(self):
        self.gpu.set("total", 40000 * MIB)
        program, page = self.begin(
            """
            begin()
            for _ in range(10000): assert alloc(1)[0] == 0
            say("ready"); line()
            say(cuda.cuDevicePrimaryCtxReset_v2(0)); line()
            """
        )
        self.say(program, "")
        self.assertEqual(self.hear(program), "0")
        self.assertEqual((page.held(), self.gpu.get("used")), (0, 0))


class WhoCannot(Carrier):
    def check(self, text, why, **options):
        program, page = self.begin(text + "\nsay('ready'); line()", **options)
        self.daemon.wait_until(lambda: page.why() == why)
        if page.where() == pd.IS_HERE:
            self.order_away(page, why)
            for order in (pd.KEEP, pd.HERE):  # which change nothing
                self.assertEqual(page.carry(order), why)
        program.kill()

    def test_several_gpus(self):
        self.check("begin(); alloc(4)", "several-gpus", PRETEND_CUDA_GPUS="2")
        self.assertEqual(self.gpu.get("used"), 4 * MIB)

    def test_an_old_gpu(self):
        self.check("begin(); alloc(4)", "no-mapping", PRETEND_CUDA_OLD="1")

    def test_managed_memory(self):
        self.check(
            "begin(); alloc(4); cuda.cuMemAllocManaged(c.byref(c.c_uint64()), 9, 1)", "managed"
        )

    def test_shared_memory(self):
        self.check(
            "begin(); at = alloc(4)[1]; cuda.cuIpcGetMemHandle(None, c.c_uint64(at))", "shared"
        )

    def test_another_context(self):
        self.check(
            "begin(); alloc(4); cuda.cuCtxCreate_v2(c.byref(c.c_void_p()), 0, 0)", "contexts"
        )

    def test_memory_of_other_kinds(self):
        self.check("begin(); alloc(4); create(400)", "other-memory")
        self.check(
            "begin(); alloc(4); alloc_async(400)\n"
            "for _ in range(30): alloc_async(1); time.sleep(0.01)",
            "other-memory",
        )

    def test_a_library_that_is_linked_with_the_driver(self):
        """Also one that is loaded later, and no longer when it is gone."""
        program, page = self.begin(
            """
            begin(); alloc(4)
            library = os.path.join(os.environ["LD_LIBRARY_PATH"], "liblinked-library.so")
            say("ready"); line()
            linked = c.CDLL(library)
            say("loaded"); line()
            c.CDLL(None).dlclose(c.c_void_p(linked._handle))
            say("closed"); line()
            """
        )
        self.daemon.wait_until(lambda: page.where() == pd.IS_HERE)
        self.assertEqual(page.why(), "can")
        self.say(program, "")
        self.assertEqual(self.hear(program), "loaded")
        self.daemon.wait_until(lambda: page.why() == "linked")
        self.order_away(page, "linked")
        self.say(program, "")
        self.assertEqual(self.hear(program), "closed")
        self.daemon.wait_until(lambda: page.why() == "can")

    def test_no_room_for_the_buffers(self):
        self.check("begin(); alloc(4)", "no-host-memory", PRETEND_CUDA_FAILS="cuMemHostAlloc")

    def test_a_capture(self):
        self.check("begin(); alloc(4); cuda.cuStreamBeginCapture_v2(c.c_void_p(16), 0)", "captures")

    def test_an_open_gate(self):
        program, page = self.begin(HOLDER)
        self.assertEqual(page.carry(pd.AWAY), "gate-open")
        self.check_end(program, page)


if __name__ == "__main__":
    unittest.main()
