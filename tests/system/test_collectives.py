# SPDX-License-Identifier: Apache-2.0
"""Ranks of a training that wait for each other, with libcolloc-preload.so and a pretend libnccl
(emulator/nccl_library.c): they stop at the same collective, are carried out and in, and go on. The
rule for the daemon is src/preload/collective_cut.h; here it is a few lines of Python."""
import os
import random
import signal
import sys
import textwrap
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import test_carrier as tc  # noqa: E402

tp, pd, MIB = tc.tp, tc.pd, tc.MIB

# As PyTorch is: linked with NCCL, so that the dynamic linker binds its functions.
NCCL = """
import random
c.CDLL("libnccl.so.2", mode=c.RTLD_GLOBAL)
nccl = c.CDLL(None)
class Id(c.Structure):
    _fields_ = [("bytes", c.c_char * 128)]
nccl.ncclCommInitRank.argtypes = [c.c_void_p, c.c_int, Id, c.c_int]
nccl.ncclAllReduce.argtypes = [c.c_void_p, c.c_void_p, c.c_size_t, c.c_int, c.c_int, c.c_void_p,
                               c.c_void_p]
nccl.ncclSend.argtypes = [c.c_void_p, c.c_size_t, c.c_int, c.c_int, c.c_void_p, c.c_void_p]
nccl.ncclRecv.argtypes = nccl.ncclSend.argtypes
nccl.ncclAlltoAll.argtypes = [c.c_void_p, c.c_void_p, c.c_size_t, c.c_int, c.c_void_p, c.c_void_p]
nccl.ncclGather.argtypes = [c.c_void_p, c.c_void_p, c.c_size_t, c.c_int, c.c_int, c.c_void_p,
                            c.c_void_p]
nccl.ncclScatter.argtypes = nccl.ncclGather.argtypes
nccl.ncclCommDestroy.argtypes = [c.c_void_p]
rank, ranks = int(os.environ["LOCAL_RANK"]), int(os.environ["RANKS"])
def join(number, n, place):
    comm = c.c_void_p()
    name = Id(bytes([number]) * 8)
    assert nccl.ncclCommInitRank(c.byref(comm), n, name, place) == 0
    return comm
kept = []  # what a group reads when it ends
def keep(value):
    mine = (c.c_int64 * 4)(*[value] * 4)
    kept.append(mine)
    del kept[:-32]
    return mine
def reduce_at(comm, at, value, stream=None):
    assert nccl.ncclAllReduce(keep(value), at, 4, 4, 0, comm, stream) == 0
def send(comm, peer, value, stream=None):
    assert nccl.ncclSend(keep(value), 4, 4, peer, comm, stream) == 0
def receive_at(comm, peer, at, stream=None):
    assert nccl.ncclRecv(at, 4, 4, peer, comm, stream) == 0
def read_at(at):
    out = (c.c_int64 * 4)()
    assert cuda.cuMemcpyDtoH_v2(out, at, 32) == 0
    return list(out)
"""

# Each training fills its memory, which it checks at the end, and has a communicator of all ranks.
BEGIN = """
begin()
at = alloc(2)[1]
blocks = [(alloc(mib)[1], mib, 17 * rank + mib) for mib in (1, 3, 9)]
for block in blocks: fill(*block)
world = join(1, ranks, rank)
"""
END = """
say(all([has(*block) for block in blocks]))
"""

# All ranks reduce in the world; neighbours also in pairs, some collectives are grouped, some are
# awaited only later. A rank checks each sum, and its other memory at the end.
TRAINING = (
    BEGIN
    + """
pair = join(2 + rank // 2, 2, rank % 2)
chances = random.Random(rank)
say("ready")
step, line_of_test = 0, os.environ["STEPS"]
while step < int(line_of_test):
    step += 1
    if chances.random() < 0.2: time.sleep(chances.random() / 100)
    if step % 3 == 0:
        nccl.ncclGroupStart(); reduce_at(pair, at, step); reduce_at(world, at + 64, step + rank)
        nccl.ncclGroupEnd()
    else:
        reduce_at(pair, at, step)
        fill(at + 4096, 1, step % 256)
        reduce_at(world, at + 64, step + rank)
    if step % 2:
        assert cuda.cuCtxSynchronize() == 0
        sums = read_at(at) + read_at(at + 64)
        right = [2 * step] * 4 + [ranks * step + sum(range(ranks))] * 4
        if sums != right: say("wrong", step, sums, right)
cuda.cuCtxSynchronize()
"""
    + END
)

# Weights are scattered by rank 0. Then each step passes a value down a pipeline, ring-wise within a
# group, now and then from all to all, and is reduced.
MESSAGES = (
    BEGIN
    + """
chances = random.Random(rank)
say("ready")
if rank == 0:
    nccl.ncclGroupStart()
    for peer in range(1, ranks): send(world, peer, 100 + peer)
    nccl.ncclGroupEnd()
else:
    receive_at(world, 0, at)
    assert cuda.cuCtxSynchronize() == 0
    if read_at(at) != [100 + rank] * 4: say("wrong scatter", read_at(at))
step, following, previous = 0, (rank + 1) % ranks, (rank - 1) % ranks
while step < int(os.environ["STEPS"]):
    step += 1
    if chances.random() < 0.2: time.sleep(chances.random() / 100)
    if rank: receive_at(world, rank - 1, at)
    if rank + 1 < ranks: send(world, rank + 1, step)
    nccl.ncclGroupStart()
    send(world, following, step + rank); receive_at(world, previous, at + 64)
    nccl.ncclGroupEnd()
    if step % 4 == 0:
        nccl.ncclGroupStart()
        for peer in range(ranks):
            if peer == rank: continue
            send(world, peer, step + 10 * rank)
            receive_at(world, peer, at + 256 + 64 * peer)
        nccl.ncclGroupEnd()
    reduce_at(world, at + 128, step)
    if step % 2 == 0:
        assert cuda.cuCtxSynchronize() == 0
        found = read_at(at + 64) + read_at(at + 128) + (read_at(at) if rank else [])
        right = [step + previous] * 4 + [ranks * step] * 4 + ([step] * 4 if rank else [])
        if found != right: say("wrong", step, found, right)
    if step % 4 == 0:
        others = [peer for peer in range(ranks) if peer != rank]
        found = [read_at(at + 256 + 64 * peer)[0] for peer in others]
        if found != [step + 10 * peer for peer in others]: say("wrong of all", step, found)
cuda.cuCtxSynchronize()
"""
    + END
)

# What NCCL 2.28 calls collectives, and makes of sends and receives: each counts once.
EXCHANGES = (
    BEGIN
    + """
chances = random.Random(rank)
def row(values):
    mine = (c.c_int64 * ranks)(*values)
    kept.append(mine)
    del kept[:-32]
    return mine
say("ready")
step = 0
while step < int(os.environ["STEPS"]):
    step += 1
    if chances.random() < 0.2: time.sleep(chances.random() / 100)
    root, peers = step % ranks, range(ranks)
    assert nccl.ncclAlltoAll(row(step + 10 * rank + p for p in peers), at, 1, 4, world, None) == 0
    assert nccl.ncclGather(row([step + rank] * ranks), at + 64, 1, 4, root, world, None) == 0
    assert nccl.ncclScatter(row(step + p for p in peers), at + 128, 1, 4, root, world, None) == 0
    if step % 2:
        assert cuda.cuCtxSynchronize() == 0
        found = read_at(at) + read_at(at + 128)[:1] + (read_at(at + 64) if rank == root else [])
        right = [step + 10 * p + rank for p in peers] + [step + rank]
        right += [step + p for p in peers] if rank == root else []
        if found != right: say("wrong", step, found, right)
cuda.cuCtxSynchronize()
"""
    + END
)

# A step is captured once. Its all-reduce and its messages run with each launch of the graph.
GRAPH = (
    BEGIN
    + """
following, previous = (rank + 1) % ranks, (rank - 1) % ranks
mine = (c.c_int64 * 4)(*[rank] * 4)
stream, graph, launched = c.c_void_p(64), c.c_void_p(), c.c_void_p()
chances = random.Random(rank)
assert cuda.cuStreamBeginCapture_v2(stream, 0) == 0
assert nccl.ncclAllReduce(mine, at, 4, 4, 0, world, stream) == 0
nccl.ncclGroupStart()
assert nccl.ncclSend(mine, 4, 4, following, world, stream) == 0
receive_at(world, previous, at + 64, stream)
nccl.ncclGroupEnd()
assert cuda.cuStreamEndCapture(stream, c.byref(graph)) == 0
assert cuda.cuGraphInstantiateWithFlags(c.byref(launched), graph, c.c_uint64(0)) == 0
assert cuda.cuGraphDestroy(graph) == 0
say("ready")
step = 0
while step < int(os.environ["STEPS"]):
    step += 1
    if chances.random() < 0.2: time.sleep(chances.random() / 100)
    for i in range(4): mine[i] = step * (rank + 1)
    assert cuda.cuGraphLaunch(launched, stream) == 0
    assert cuda.cuCtxSynchronize() == 0
    found = read_at(at) + read_at(at + 64)
    right = [step * sum(range(1, ranks + 1))] * 4 + [step * (previous + 1)] * 4
    if found != right: say("wrong", step, found, right)
assert cuda.cuGraphExecDestroy(launched) == 0
"""
    + END
)

# As PyTorch runs a pipeline: neighbours have a communicator of their own, made with their first
# message. Activations go down and gradients come up, in two parts; then the losses are gathered and
# the learning rate is scattered. In each step one rank computes long: others wait in a receive.
PIPELINE = (
    BEGIN
    + """
pairs = {}
def pair(peer):
    low = min(rank, peer)
    if low not in pairs: pairs[low] = join(2 + low, 2, rank - low)
    return pairs[low], int(peer > rank)
def pass_to(peer, value): send(*pair(peer), value)
def take_from(peer, to): receive_at(*pair(peer), to)
def compute(part):
    if part == step % 2 and rank == step % ranks: time.sleep(float(os.environ["COMPUTE_S"]))
say("ready")
step, parts, down, up = 0, range(2), rank + 1 < ranks, rank > 0
while step < int(os.environ["STEPS"]):
    step += 1
    for part in parts:
        if up: take_from(rank - 1, at + 64 * part)
        compute(part)
        if down: pass_to(rank + 1, 10 * step + part)
    for part in parts:
        if down: take_from(rank + 1, at + 128 + 64 * part)
        compute(1 - part)
        if up: pass_to(rank - 1, -10 * step - part)
    if rank: nccl.ncclGather(keep(step + rank), at, 1, 4, 0, world, None)
    else: nccl.ncclGather(keep(step), at + 256, 1, 4, 0, world, None)
    nccl.ncclScatter(keep(7 * step), at + 320, 1, 4, 0, world, None)
    assert cuda.cuCtxSynchronize() == 0
    found = [read_at(at + 64 * part)[0] for part in parts if up]
    found += [read_at(at + 128 + 64 * part)[0] for part in parts if down]
    found += read_at(at + 320)[:1] + (read_at(at + 256) if rank == 0 else [])
    right = [10 * step + part for part in parts if up]
    right += [-10 * step - part for part in parts if down]
    right += [7 * step] + ([step + p for p in range(ranks)] if rank == 0 else [])
    if found != right: say("wrong", step, found, right)
"""
    + END
)


class Ranks(tc.Carrier):
    ranks = 4

    def setUp(self):
        super().setUp()
        self.gpus = []

    def begin_ranks(self, text, steps=400, **more):
        """Each rank has a GPU, and sees those of the others."""
        self.start_daemon()
        programs = []
        for rank in range(self.ranks):
            gpu = tp.Gpu(os.path.join(self.folder.name, f"gpu{rank}"), 1000)
            self.addCleanup(gpu.file.close)
            self.gpus.append(gpu)
            options = {
                "PRETEND_CUDA": gpu.path,
                "PRETEND_CUDA_GPUS": str(self.ranks),
                "PRETEND_NCCL": os.path.join(self.folder.name, "meeting"),
                "LOCAL_RANK": str(rank),
                "RANKS": str(self.ranks),
                "STEPS": str(steps),
            }
            programs.append(self.carried(NCCL + textwrap.dedent(text), **{**options, **more}))
        for program in programs:
            self.assertEqual(self.hear(program), "ready")
        return programs, [self.page(program) for program in programs]

    def environment(self, **options):
        gpu = options.pop("PRETEND_CUDA", None)
        env = super().environment(**options)
        if gpu:
            env["PRETEND_CUDA"] = gpu
        return env

    def cut(self, pages):
        """One round of the rule. Returns whether the cut is reached."""
        calls = [page.u64(pd.CALLS) for page in pages]
        may_come = [page.u64(pd.CALLS_ALLOWED) > n for page, n in zip(pages, calls)]
        under_way = [page.u32(pd.UNDER_WAY) for page in pages]
        seen = [page.communicators() for page in pages]
        behind = self.behind_in_messages(pages)
        if any(page.u32(pd.JOINING) for page in pages):
            behind = [True] * len(pages)
        most = {}
        for each in seen:
            for number, (_, launched, _) in each.items():
                most[number] = max(most.get(number, 0), launched)
        self.hold_number += 1
        is_reached = not any(under_way) and not any(may_come) and not any(behind)
        for page, each, n, is_behind in zip(pages, seen, calls, behind):
            page.allow_calls(n + 1 if is_behind else 0)
            for number, (place, launched, _) in each.items():
                page.allow(place, most[number])
                is_reached &= launched == most[number]
            page.hold(self.hold_number)
        return is_reached

    @staticmethod
    def behind_in_messages(pages):
        """Whether each is: the other end of one of its channels has launched more."""
        channels, ranks = [page.channels() for page in pages], [page.ranks() for page in pages]
        behind = [False] * len(pages)
        for own, places in zip(channels, ranks):
            for (number, start, end), launched in own.items():
                peer = end if places[number] == start else start
                other = next(i for i, r in enumerate(ranks) if r.get(number) == peer)
                behind[other] |= channels[other].get((number, start, end), 0) < launched
        return behind

    def hold(self, pages):
        self.hold_number = 1
        for page in pages:
            page.hold(1)
        self.daemon.wait_until(lambda: self.cut(pages))

    def release(self, pages):
        for page in pages:
            page.set_gate(False)
            page.wake(pd.GATE)
            page.hold(0)

    def take_away(self, pages):
        for page in pages:
            page.set_gate(True)
        self.daemon.wait_until(lambda: not any(page.u32(pd.IN_FLIGHT) for page in pages))
        orders = [page.set_order(pd.AWAY) for page in pages]
        self.daemon.wait_until(lambda: [page.u32(pd.CARRY_DONE) for page in pages] == orders)

    def bring_back(self, pages):
        orders = [page.set_order(pd.HERE) for page in pages]
        self.daemon.wait_until(lambda: [page.u32(pd.CARRY_DONE) for page in pages] == orders)
        self.release(pages)

    def wait_for_steps(self, pages, more):
        def launched():
            return sum(each[1] for page in pages for each in page.communicators().values())

        aim = launched() + more
        self.daemon.wait_until(lambda: launched() >= aim)


class Together(Ranks):
    def test_they_leave_and_come_back_again_and_again(self):
        self.check_again_and_again(TRAINING)

    def test_with_sends_and_receives(self):
        self.check_again_and_again(MESSAGES)

    def test_with_collectives_in_a_cuda_graph(self):
        self.check_again_and_again(GRAPH)

    def test_with_collectives_of_a_newer_nccl(self):
        self.check_again_and_again(EXCHANGES)

    def test_a_pipeline(self):
        """NCCL's own memory is more than that of its blocks, and stays."""
        mib = 16
        more = {"COMPUTE_S": "0.02", "PRETEND_NCCL_MIB": str(mib)}
        pairs = [1] + [2] * (self.ranks - 2) + [1]
        self.check_again_and_again(PIPELINE, [(n + 1) * mib << 20 for n in pairs], **more)

    def test_a_newer_collective_counts_as_one(self):
        waiting = EXCHANGES.replace('say("ready")', 'say("ready")\nline()')
        programs, pages = self.begin_ranks(waiting, steps=5)
        for program in programs:
            self.say(program, "go")
        for program in programs:
            self.assertEqual(self.output(program), ["True"])
        counts = [each[1] for page in pages for each in page.communicators().values()]
        self.assertEqual(counts, [3 * 5] * self.ranks)
        self.assertEqual([page.channels() for page in pages], [{}] * self.ranks)

    def test_what_nccl_does_not_have_is_not_found(self):
        """The library exports the function for programs that are linked with a newer NCCL."""
        self.start_daemon()
        program = self.carried(
            """
            begin()
            def find(): return "".join(str(int(hasattr(c.CDLL(None), name))) for name in names)
            names = ["ncclAlltoAll", "ncclGather", "ncclScatter", "ncclAllReduce"]
            say(find())
            c.CDLL("libnccl.so.2", mode=c.RTLD_GLOBAL)
            say(find())
            """
        )
        self.assertEqual(self.output(program), ["0001", "1111"])

    def check_again_and_again(self, training, of_nccl=None, **more):
        """of_nccl: bytes on each GPU that stay"""
        programs, pages = self.begin_ranks(training, steps=300, **more)
        chances = random.Random(1)
        for _ in range(10):
            self.wait_for_steps(pages, 1 + chances.randrange(40))
            self.hold(pages)
            self.take_away(pages)
            self.assertEqual([page.why() for page in pages], ["can"] * self.ranks)
            self.assertEqual([page.where() for page in pages], [pd.IS_AWAY] * self.ranks)
            self.assertEqual([gpu.get("used") for gpu in self.gpus], of_nccl or [0] * self.ranks)
            self.bring_back(pages)
        for program in programs:
            self.assertEqual(self.output(program), ["True"])

    def test_without_the_cut_they_would_wait_for_ever(self):
        """The test can fail: a rank that was stopped before its peers' collective."""
        programs, pages = self.begin_ranks(
            """
            begin(); at = alloc(2)[1]
            world = join(1, ranks, rank)
            reduce_at(world, at, 1); cuda.cuCtxSynchronize()
            say("ready")
            if rank: line()
            reduce_at(world, at, 2); cuda.cuCtxSynchronize()
            say(read_at(at)[0])
            """
        )
        self.daemon.wait_until(lambda: pages[0].u32(pd.IN_FLIGHT) == 1)  # its cuCtxSynchronize
        for page in pages[1:]:
            page.hold(1)
            page.set_gate(True)
        for program in programs[1:]:
            self.say(program, "go")
        self.daemon.wait_until(lambda: all(page.u32(pd.IN_FLIGHT) == 0 for page in pages[1:]))
        self.assertEqual(pages[0].u32(pd.IN_FLIGHT), 1)
        for page in pages[1:]:
            page.set_gate(False)
        self.hold(pages)  # they are behind, and let in
        counts = [each[1] for page in pages for each in page.communicators().values()]
        self.assertEqual(counts, [2] * self.ranks)
        self.release(pages)
        for program in programs:
            self.assertEqual(self.output(program), [str(2 * self.ranks)])

    def test_the_first_collective_waits_in_its_call(self):
        programs, pages = self.begin_ranks(
            """
            begin(); at = alloc(2)[1]
            world = join(1, ranks, rank)
            say("ready")
            if rank: line()
            reduce_at(world, at, 5); cuda.cuCtxSynchronize()
            say(read_at(at)[0])
            """
        )
        self.daemon.wait_until(lambda: pages[0].u32(pd.UNDER_WAY) == 1)
        for page in pages:
            page.hold(1)
        for program in programs[1:]:
            self.say(program, "go")
        self.hold(pages)
        self.release(pages)
        for program in programs:
            self.assertEqual(self.output(program), [str(5 * self.ranks)])

    def test_a_receiver_that_never_received_is_let_in(self):
        programs, pages = self.begin_ranks(
            """
            begin(); at = alloc(2)[1]
            world = join(1, ranks, rank)
            say("ready")
            if rank == 0: send(world, 1, 5)
            elif rank == 1: line(); receive_at(world, 0, at); line(); receive_at(world, 2, at + 64)
            else: line()
            if rank == 2: send(world, 1, 6)
            cuda.cuCtxSynchronize()
            say(read_at(at)[0] + read_at(at + 64)[0] if rank == 1 else 11)
            """
        )
        self.daemon.wait_until(lambda: pages[0].u32(pd.UNDER_WAY) == 1)  # it makes the connection
        for page in pages:
            page.hold(1)
        self.say(programs[1], "go")
        self.hold(pages)
        self.assertEqual(list(pages[0].channels().values()), [1])
        self.assertEqual(pages[0].channels(), pages[1].channels())
        for program in programs[1:]:
            self.say(program, "go")  # nothing more is let in
        self.assertEqual([page.channels() for page in pages[2:]], [{}] * (self.ranks - 2))
        self.release(pages)
        for program in programs:
            self.assertEqual(self.output(program), ["11"])

    def test_all_go_on_while_one_makes_a_communicator(self):
        """Rank 2 waits for rank 1, which is held before a collective with rank 0."""
        programs, pages = self.begin_ranks(
            """
            begin(); at = alloc(2)[1]
            world = join(1, ranks, rank)
            low = join(2, 2, rank) if rank < 2 else None
            say("ready")
            if rank != 2: line()
            if low: reduce_at(low, at, 5)
            if rank in (1, 2): reduce_at(join(3, 2, rank - 1), at + 64, 7)
            cuda.cuCtxSynchronize()
            say(read_at(at)[0] + read_at(at + 64)[0])
            """
        )
        self.daemon.wait_until(lambda: pages[2].u32(pd.JOINING) == 1)
        for page in pages:
            page.hold(1)
        for program in programs[:2] + programs[3:]:
            self.say(program, "go")
        self.hold(pages)
        self.assertEqual([page.u32(pd.JOINING) for page in pages], [0] * self.ranks)
        self.assertEqual(len(pages[1].communicators()), 3)
        self.release(pages)
        for program, right in zip(programs, (10, 24, 14, 0)):
            self.assertEqual(self.output(program), [str(right)])


class Ends(Ranks):
    def test_a_hold_ends_with_the_daemon(self):
        programs, pages = self.begin_ranks(TRAINING, steps=100)
        for page in pages:
            page.hold(1)
        self.daemon.close()
        for program in programs:
            self.assertEqual(self.output(program), ["True"])
        self.daemon = None

    def test_a_killed_rank_leaves_no_memory_and_the_others_end_as_ever(self):
        """In each phase: while they are held, on the way out, away, and on the way back."""
        for phase in ("held", "going", "away", "coming"):
            with self.subTest(phase):
                self.gpus = []
                programs, pages = self.begin_ranks(TRAINING, steps=100000)
                victim = programs[1]
                others = [page for page in pages if page is not pages[1]]
                for page in pages:
                    page.hold(1)
                if phase == "held":
                    victim.kill()
                    victim.wait()
                else:
                    self.hold(pages)
                    if phase == "going":
                        for page in pages:
                            page.set_gate(True)
                        orders = [page.set_order(pd.AWAY) for page in pages]
                        victim.kill()
                        self.daemon.wait_until(
                            lambda: [p.u32(pd.CARRY_DONE) for p in others]
                            == [o for o, p in zip(orders, pages) if p is not pages[1]]
                        )
                    else:
                        self.take_away(pages)
                        if phase == "away":
                            victim.kill()
                        orders = [page.set_order(pd.HERE) for page in pages]
                        if phase == "coming":
                            victim.kill()
                        self.daemon.wait_until(
                            lambda: [p.u32(pd.CARRY_DONE) for p in others]
                            == [o for o, p in zip(orders, pages) if p is not pages[1]]
                        )
                    if phase == "going":
                        for page in others:
                            page.carry(pd.HERE)
                self.release(others)
                self.assertEqual([p.where() for p in others], [pd.IS_HERE] * len(others))
                # Without the library they would now wait for the dead rank until a launcher, as
                # torchrun, ends them.
                for program in programs:
                    if program is not victim:
                        self.assertIsNone(program.poll())
                        program.send_signal(signal.SIGTERM)
                        program.wait(pd.LIMIT_S)
                self.daemon.close()


class Refused(Ranks):
    ranks = 2

    def check_other(self, text):
        _, pages = self.begin_ranks(
            "begin(); at = alloc(2)[1]; world = join(1, ranks, rank)\n"
            + text
            + "\nsay('ready'); line()"
        )
        return [bool(page.u32(pd.FLAGS) & pd.OTHER_COLLECTIVES) for page in pages]

    def test_what_is_not_counted_is_noted(self):
        self.assertEqual(self.check_other("reduce_at(world, at, 1)"), [False, False])
        self.daemon.close()
        both = "nccl.ncclGroupStart(); send(world, 1 - rank, 1); receive_at(world, 1 - rank, at)\n"
        self.assertEqual(self.check_other(both + "nccl.ncclGroupEnd()"), [False, False])
        self.daemon.close()
        own = "nccl.ncclGroupStart(); send(world, rank, 1); receive_at(world, rank, at)\n"
        self.assertEqual(self.check_other(own + "nccl.ncclGroupEnd()"), [False, False])
        self.daemon.close()
        nowhere = "nccl.ncclSend((c.c_int64 * 4)(), 4, 4, 70000, world, None)"
        self.assertEqual(self.check_other(nowhere), [True, True])

    def test_another_way_to_its_functions(self):
        found = self.check_other("c.CDLL('libnccl.so.2').ncclCommInitRank")
        self.assertEqual(found, [True, True])

    def test_a_graph_within_another_is_noted(self):
        text = """
stream, graph, launched = c.c_void_p(64), c.c_void_p(), c.c_void_p()
cuda.cuStreamBeginCapture_v2(stream, 0)
reduce_at(world, at, 1, stream)
cuda.cuStreamEndCapture(stream, c.byref(graph))
cuda.cuGraphInstantiateWithFlags(c.byref(launched), graph, c.c_uint64(0))
cuda.cuStreamBeginCapture_v2(stream, 0)
"""
        self.assertEqual(self.check_other(text), [False, False])
        self.daemon.close()
        within = text + "cuda.cuGraphLaunch(launched, stream)"
        self.assertEqual(self.check_other(within), [True, True])

    def test_a_process_for_several_gpus_has_no_blocks(self):
        self.start_daemon()
        program = self.carried("begin(); alloc(4); say('ready'); line()", PRETEND_CUDA_GPUS="2")
        self.assertEqual(self.hear(program), "ready")
        self.assertEqual(self.page(program).why(), "several-gpus")

    def test_its_communicators_come_and_go(self):
        text = "nccl.ncclCommDestroy(world); world = join(9, ranks, rank); reduce_at(world, at, 1)"
        programs, pages = self.begin_ranks(
            "begin(); at = alloc(2)[1]; world = join(1, ranks, rank)\n"
            + text
            + "\nsay('ready'); line()"
        )
        first, second = (page.communicators() for page in pages)
        self.assertEqual(first, second)
        self.assertEqual([each[1:] for each in first.values()], [(1, 2)])


if __name__ == "__main__":
    unittest.main()
