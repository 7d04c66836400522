#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`colloc slurm setup` and `remove` on the configurations of sites; no Slurm is needed."""

import os
import re
import resource
import shutil
import stat
import subprocess
import unittest

from cli_case import COLLOC, CliCase

DATA = os.path.join(os.path.dirname(__file__), "..", "..", "data", "slurmconf")
BLOCK = re.compile(r"# BEGIN colloc[^\n]*\n(.*?)# END colloc\r?\n", re.S)


def typed(gpus, shards=80):
    gpu = ",".join(f"gpu:i{k}:1" for k in range(gpus))
    return gpu + "," + ",".join(f"shard:i{k}:{shards}" for k in range(gpus))


class SlurmCase(CliCase):
    def setUp(self):
        super().setUp()
        self.etc = os.path.join(self.folder, "etc")
        os.mkdir(self.etc)
        self.settings = os.path.join(self.folder, "settings")
        # Setup asks whether the controller is installed beside it.
        self.installed = os.path.join(self.folder, "bin", "colloc")
        os.mkdir(os.path.dirname(self.installed))
        shutil.copy(COLLOC, self.installed)
        with open(self.installed + "-slurm", "wb"):
            pass

    def give(self, name, source=None, data=None):
        if source:
            with open(os.path.join(DATA, source), "rb") as file:
                data = file.read()
        with open(os.path.join(self.etc, name), "wb") as file:
            file.write(data)

    def slurm(self, action, *options, code=0):
        folders = (f"--folder={self.etc}", f"--settings={self.settings}")
        done = self.run_program(self.installed, "slurm", action, *folders, *options)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def files(self):
        found = {}
        for name in os.listdir(self.etc):
            with open(os.path.join(self.etc, name), "rb") as file:
                found[name] = file.read()
        return found

    def text(self, name):
        with open(os.path.join(self.etc, name), newline="", encoding="utf-8") as file:
            return file.read()

    def added(self, name):
        """The lines of our blocks that are not comments."""
        lines = "".join(BLOCK.findall(self.text(name))).replace("\r", "").splitlines()
        return [line for line in lines if not line.startswith("#")]

    def run_program(self, *words):
        return subprocess.run(
            words, capture_output=True, text=True, env=self.environment, timeout=60, check=False
        )

    def there_and_back(self, *options):
        """Writes, checks that this is repeatable and can be taken back; leaves it written."""
        before = self.files()
        printed = self.slurm("setup", *options)
        self.assertEqual(self.files(), before)
        self.slurm("setup", "--write", *options)
        after = self.files()
        self.assertIn("Nothing was to be changed", self.slurm("setup", "--write", *options))
        self.assertEqual(self.files(), after)
        self.slurm("remove", "--write")
        self.assertEqual(self.files(), before)
        self.assertIn("Nothing was to be changed", self.slurm("remove", "--write"))
        self.slurm("setup", "--write", *options)
        self.assertEqual(self.files(), after)
        return printed


class Sites(SlurmCase):
    def test_plain(self):
        self.give("slurm.conf", "plain.conf")
        self.slurm("setup", code=1)  # the partition gpu is there
        printed = self.there_and_back("--take-partition")
        self.assertEqual(
            self.added("slurm.conf"),
            [
                "GresTypes=gpu,shard",
                f"NodeName=gpu[01-04] RealMemory=512000 Gres=nvme:1,{typed(4)}",
                "PartitionName=gpu Nodes=gpu[01-04] MaxTime=2-00:00:00 AllowGroups=ml State=DOWN",
                "PartitionName=gpu-run Nodes=gpu[01-04] MaxTime=2-00:00:00 AllowGroups=ml "
                "State=UP Default=NO",
                "JobSubmitPlugins=lua",
                "JobCompType=jobcomp/lua",
            ],
        )
        gres = self.added("gres.conf")
        self.assertEqual(len(gres), 8)
        self.assertEqual(gres[2], "NodeName=gpu[01-04] Name=gpu Type=i1 File=/dev/nvidia1")
        self.assertEqual(
            gres[3], "NodeName=gpu[01-04] Name=shard Type=i1 Count=80 File=/dev/nvidia1"
        )
        self.assertIn("+GresTypes=gpu,shard\n", printed)
        self.assertIn("administrators = {[0] = true},", self.text("job_submit.lua"))

    def test_wake_file(self):
        """slurmctld writes it as SlurmUser: in a folder that belongs to that user anyway."""
        node = b"NodeName=n Gres=gpu:1\n"
        self.give("slurm.conf", data=node + b"StateSaveLocation=/var/a\nStateSaveLocation=/var/b\n")
        self.assertIn("    wake-file: /var/b/colloc-wake\n", self.slurm("setup", "--write"))
        for name in ("job_submit.lua", "jobcomp.lua"):
            self.assertIn('wake_file = "/var/b/colloc-wake"', self.text(name))
        self.assertIn("    wake-file: /run/w\n", self.slurm("setup", "--wake-file=/run/w"))
        self.give("slurm.conf", data=node)
        self.assertIn("    wake-file: /run/colloc-slurm/wake\n", self.slurm("setup"))

    def test_login_nodes(self):
        with open(os.path.join(DATA, "plain.conf"), "rb") as file:
            auth = b"AuthInfo=ttl=60,socket=/run/other/munge.socket,cred_expire=60\n"
            self.give("slurm.conf", data=file.read() + auth)
        options = ("--take-partition", "--login=ctl1.example.org:7491", "--controller-user=slurm")
        printed = self.there_and_back(*options)
        self.assertEqual(
            self.added("colloc.conf"),
            [
                "Controller=ctl1.example.org:7491",
                "ControllerUser=slurm",
                "MungeSocket=/run/other/munge.socket",
            ],
        )
        self.assertIn("    login-listen: 0.0.0.0:7491\n", printed)
        self.assertIn("    login-name: ctl1.example.org:7491\n", printed)
        printed = self.slurm("setup", "--take-partition", "--login=10.0.0.1:7491")
        self.assertIn("    login-listen: 10.0.0.1:7491\n", printed)
        self.assertNotIn("login-listen", self.slurm("setup", "--take-partition"))
        for bad in ("ctl1", "ctl1:0", "a b:1", "a;b:1"):
            said = self.slurm("setup", "--take-partition", f"--login={bad}", code=2)
            self.assertIn("give a host and a port", said)

    def test_awkward(self):
        self.give("slurm.conf", "awkward.conf")
        self.give("nodes.conf", "nodes.conf")
        self.give("gres.conf", "awkward-gres.conf")
        printed = self.there_and_back("--shards=10")
        self.assertEqual(
            self.added("slurm.conf"),
            [
                "gresTypes=nvme,gpu,shard",
                "JobSubmitPlugins=all_partitions,require_timelimit,lua",
                f"NodeName=a CPUs=4    Gres={typed(2, 10)}",
                "NodeName=b Gres=gpu:i3:1,shard:i3:10",
                "PartitionName=gpu Nodes=a,b,c[1-2] State=DOWN",
                "PartitionName=gpu-run Nodes=a,b,c[1-2] State=UP",
            ],
        )
        self.assertEqual(self.added("nodes.conf"), [f"NodeName=DEFAULT Gres={typed(1, 10)}"])
        self.assertIn(f"NodeName=DEFAULT Gres={typed(1, 10)}\r\n# END", self.text("nodes.conf"))
        self.assertEqual(
            self.added("gres.conf"),
            [
                line
                for nodes, k, file, more in (
                    ("a", 0, "/dev/nvidia0", " Cores=0-3"),
                    ("a", 1, "/dev/nvidia1", " Cores=0-3"),
                    ("b", 3, "/dev/nvidia3", ""),
                    ("c[1-2]", 0, "/dev/nvidia0", ""),
                )
                for line in (
                    f"NodeName={nodes} AutoDetect=off Name=gpu Type=i{k} File={file}{more}",
                    f"NodeName={nodes} AutoDetect=off Name=shard Type=i{k} Count=10 File={file}",
                )
            ],
        )
        self.assertIn("JobCompType=jobcomp/filetxt stays", printed)
        self.assertIn("AutoDetect is off", printed)

    def test_first_tier(self):
        self.give("slurm.conf", "plain.conf")
        self.there_and_back("--estimates-only", "--gpu-memory=40GiB")
        self.assertEqual(
            self.added("slurm.conf"),
            [
                "GresTypes=gpu,shard",
                f"NodeName=gpu[01-04] RealMemory=512000 Gres=nvme:1,{typed(4)}",
                "CliFilterPlugins=lua",
            ],
        )
        self.assertIn("gpu_memory_mib = 40960,", self.text("cli_filter.lua"))
        self.assertNotIn("job_submit.lua", self.files())
        # From tier to tier nothing stays behind.
        first = self.files()
        self.slurm("setup", "--write", "--take-partition")
        self.assertIn("job_submit.lua", self.files())
        self.assertNotIn("cli_filter.lua", self.files())
        self.slurm("setup", "--write", "--estimates-only", "--gpu-memory=40GiB")
        self.assertEqual(self.files(), first)
        self.assertIn("--gpu-memory", self.slurm("setup", "--estimates-only", code=2))

    def test_every_prefix_comes_back(self):
        """A file may end anywhere: inside a line, a continuation, between CR and LF."""
        for name in ("awkward.conf", "nodes.conf"):
            with open(os.path.join(DATA, name), "rb") as file:
                data = file.read()
            for size in range(0, len(data), 13):
                head = b"NodeName=n Gres=gpu:1\n" if size % 2 else b"NodeName=n Gres=gpu:1\r\n"
                self.give("slurm.conf", data=head + data[:size].replace(b"Include", b"#nclude"))
                before = self.files()
                self.slurm("setup", "--write")
                self.slurm("remove", "--write")
                self.assertEqual(self.files(), before, size)


class Refusals(SlurmCase):
    def refuse(self, conf, *options, says, code=1):
        self.give("slurm.conf", data=conf.encode())
        before = self.files()
        self.assertIn(says, self.slurm("setup", "--write", *options, code=code))
        self.assertEqual(self.files(), before)

    def test_configurations(self):
        node = "NodeName=n Gres=gpu:1\n"
        self.refuse("NodeName=n CPUs=4\n", says="there is no GPU to share")
        self.refuse(node + "SelectType=select/linear\n", says="select/cons_tres")
        self.refuse(node + "PartitionName=gpu-run Nodes=n\n", says="name another one with --run")
        self.refuse(node + "PartitionName=gpu Nodes=n\n", says="--take-partition")
        self.refuse("NodeName=n Gres=gpu:1,mps:100\n", says="gres/mps")
        self.refuse("NodeName=n Gres=gpu:99999999999\n", says="at most 64")
        self.refuse(node + "Include absent.conf\n", says="absent.conf")
        self.refuse(node + "\0", says="NUL byte")
        self.refuse(node, "--run=gpu", says="two partitions", code=2)
        self.refuse(node, "--intake=a b", says="names of partitions", code=2)
        self.refuse(node, "--run=x\nNodeName=y", says="control character", code=2)

    def setting(self, name):
        with open(os.path.join(self.settings, name), newline="", encoding="utf-8") as file:
            return file.read()

    def give_setting(self, name, text):
        os.makedirs(self.settings, exist_ok=True)
        with open(os.path.join(self.settings, name), "w", encoding="utf-8") as file:
            file.write(text)

    def test_tls_where_slurm_has_no_munge(self):
        """Both sides get node-auth, and a key; remove leaves nothing of it."""
        node = b"NodeName=n Gres=gpu:1\nAuthType=auth/slurm\n"
        self.give("slurm.conf", data=node)
        printed = self.slurm("setup")
        self.assertFalse(os.path.exists(self.settings))
        self.assertIn("+node-auth: tls\n", printed)
        key = os.path.join(self.settings, "node.key")
        self.assertIn(f"{key} (new)", printed)
        self.assertIn(f"    scp -p {key} NODE:{key}\n", printed)
        self.assertNotIn("--write to do it", self.slurm("setup", "--write"))
        self.assertIn("\nnode-auth: tls\n", self.setting("slurm.yaml"))
        self.assertEqual(stat.S_IMODE(os.stat(key).st_mode), 0o400)
        made = self.setting("node.key")
        self.assertRegex(made, r"\A[0-9a-f]{64}\n# made by colloc slurm setup\n\Z")
        again = self.slurm("setup", "--write")
        self.assertIn("Nothing was to be changed", again)
        self.assertEqual(self.setting("node.key"), made)
        self.assertIn("would be removed", self.slurm("remove"))
        self.assertEqual(self.setting("node.key"), made)
        self.slurm("remove", "--write")
        self.assertEqual(os.listdir(self.settings), [])
        self.assertEqual(self.files(), {"slurm.conf": node})

    def test_tls_where_it_is_asked_for(self):
        """A line that is there is changed where it stands, and comes back; so does an agent's."""
        self.give("slurm.conf", data=b"NodeName=n Gres=gpu:1\n")
        ours, agent = (
            "listen: 0.0.0.0:7490\nnode-auth: munge # so far\npoll: 5s\n",
            "controller: c:1\n",
        )
        self.give_setting("slurm.yaml", ours)
        self.give_setting("collocd.yaml", agent)
        self.assertNotIn("node-auth: tls", self.slurm("setup"))
        self.slurm("setup", "--write", "--node-auth=tls")
        self.assertRegex(
            self.setting("slurm.yaml"),
            r"\Alisten: 0.0.0.0:7490\n# BEGIN [^\n]*\n#was: [^\n]*\nnode-auth: tls\n"
            r"# END[^\n]*\npoll",
        )
        self.assertIn("\nnode-auth: tls\n", self.setting("collocd.yaml"))
        self.slurm("setup", "--write")  # nothing asks for it any more
        self.assertEqual(self.setting("slurm.yaml"), ours)
        self.slurm("setup", "--write", "--node-auth=tls")
        self.slurm("remove", "--write")
        self.assertEqual(self.setting("slurm.yaml"), ours)
        self.assertEqual(self.setting("collocd.yaml"), agent)
        self.assertEqual(sorted(os.listdir(self.settings)), ["collocd.yaml", "slurm.yaml"])
        said = self.slurm("setup", "--node-auth=none", code=2)
        self.assertIn("give munge or tls", said)

    def test_tls_of_the_site_stays(self):
        """A site that has set it by hand keeps its lines and its key."""
        self.give("slurm.conf", data=b"NodeName=n Gres=gpu:1\n")
        key = os.path.join(self.settings, "own.key")
        ours = f"node-auth: 'tls'\nnode-key-file: {key}\n"
        self.give_setting("slurm.yaml", ours)
        self.give_setting("own.key", "0123456789abcdef0123456789abcdef\n")
        said = self.slurm("setup", "--write", code=1)
        self.assertIn("chmod 600", said)
        os.chmod(key, 0o600)
        printed = self.slurm("setup", "--write")
        self.assertIn(f"scp -p {key} NODE:{key}", printed)
        self.assertIn(f"node-key-file: {key}", printed)
        self.slurm("remove", "--write")
        self.assertEqual(self.setting("slurm.yaml"), ours)
        self.assertTrue(os.path.exists(key))
        self.slurm("setup", "--write", "--node-auth=munge")
        text = self.setting("slurm.yaml")
        self.assertIn("\nnode-auth: munge\n", text)
        self.assertIn('\nnode-key-file: ""\n', text)
        self.slurm("remove", "--write")
        self.assertEqual(self.setting("slurm.yaml"), ours)

    def test_no_controller(self):
        """Its jobs would wait for ever."""
        os.unlink(self.installed + "-slurm")
        self.refuse("NodeName=n Gres=gpu:1\n", says="colloc-slurm is not installed")
        self.slurm("setup")
        self.slurm("setup", "--write", "--estimates-only", "--gpu-memory=40GiB")

    def test_many_nodes_with_lines_of_their_own(self):
        """Eight GPUs of a node take not much longer than eight times as long as one."""

        def user_s(gpus, nodes=800):
            lines = [f"NodeName=n{i} Gres=gpu:{gpus}\n" for i in range(nodes)]
            files = [
                f"NodeName=n{i} Name=gpu File=/dev/nvidia[0-{gpus - 1}]\n" for i in range(nodes)
            ]
            self.give("slurm.conf", data="".join(lines).encode())
            self.give("gres.conf", data="".join(files).encode())
            before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
            self.assertIn(f"+NodeName=n{nodes - 1} Name=gpu", self.slurm("setup"))
            return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before

        self.assertLess(user_s(8), 12 * user_s(1))  # measured: 5; it was 22

    def test_words(self):
        self.give("slurm.conf", data=b"NodeName=n Gres=gpu:1\n")
        self.assertIn("unknown action 'set'", self.slurm("set", code=2))
        self.assertIn("--json", self.slurm("setup", "--json", code=2))
        self.assertIn("give no further argument", self.slurm("setup", "now", code=2))
        self.assertIn("there is no script", self.slurm("script", "submit.lua", code=1))
        os.remove(os.path.join(self.etc, "slurm.conf"))
        missing = os.path.join(self.etc, "slurm.conf")
        self.assertIn(
            f"{missing}: No such file or directory: name the folder of slurm.conf with --folder",
            self.slurm("setup", code=1),
        )

    def test_files_outside_are_not_written(self):
        outside = os.path.join(self.folder, "nodes.conf")
        with open(outside, "w", encoding="utf-8") as file:
            file.write("NodeName=n Gres=gpu:1\n")
        for conf in (f"Include {outside}\n", "Include link.conf\n"):
            os.path.exists(os.path.join(self.etc, "link.conf")) or os.symlink(
                outside, os.path.join(self.etc, "link.conf")
            )
            self.refuse(conf, says="nothing was written")
        self.assertIn("+NodeName=n Gres=gpu:i0:1", self.slurm("setup"))

    def test_a_script_of_the_site_stays(self):
        self.give("slurm.conf", data=b"NodeName=n Gres=gpu:1\n")
        self.give("job_submit.lua", data=b"-- the site's\nreturn slurm.SUCCESS\n")
        printed = self.slurm("setup", "--write")
        self.assertIn("`colloc slurm script job_submit.lua`", printed)
        self.assertEqual(self.files()["job_submit.lua"], b"-- the site's\nreturn slurm.SUCCESS\n")
        self.assertIn("jobcomp.lua", self.files())

    def test_modes_stay_and_links_inside_are_followed(self):
        self.give("real.conf", data=b"NodeName=n Gres=gpu:1\n")
        os.chmod(os.path.join(self.etc, "real.conf"), 0o640)
        os.symlink("real.conf", os.path.join(self.etc, "slurm.conf"))
        self.slurm("setup", "--write")
        self.assertTrue(os.path.islink(os.path.join(self.etc, "slurm.conf")))
        mode = os.stat(os.path.join(self.etc, "real.conf")).st_mode
        self.assertEqual(stat.S_IMODE(mode), 0o640)
        self.assertIn("State=DOWN", self.text("real.conf"))

    def test_a_block_without_end_stays(self):
        conf = b"NodeName=n Gres=gpu:1\n# BEGIN colloc\n#was: x\n"
        self.give("slurm.conf", data=conf)
        self.slurm("remove", "--write")
        self.assertEqual(self.files()["slurm.conf"], conf)

    def test_without_slurm(self):
        """`check` says what is missing where no Slurm is installed."""
        self.give("slurm.conf", data=b"NodeName=n Gres=gpu:1\n")
        bin_folder = os.path.join(self.folder, "empty")
        os.mkdir(bin_folder)
        os.symlink(shutil.which("sh"), os.path.join(bin_folder, "sh"))
        done = self.run_colloc(
            "slurm", "check", f"--folder={self.etc}", f"--settings={self.settings}", PATH=bin_folder
        )
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stdout, r"slurmctld +failed +does not answer: .*scontrol")
        self.assertRegex(done.stdout, r"munge +failed")


if __name__ == "__main__":
    unittest.main()
