# SPDX-License-Identifier: GPL-2.0
"""What is read from the host's apt configuration and from backports."""

import tempfile
import unittest
from pathlib import Path

from irdma_env import apt
from irdma_env.errors import EnvError
from irdma_env.guest import module_order
from irdma_env.kernel import choose_abi

DEB822 = """\
Types: deb
URIs: http://security.example/debian-security
Suites: bookworm-security
Components: main

# A comment.
Enabled: no
Types: deb
URIs: http://off.example/debian
Suites: bookworm
Components: main

Types: deb deb-src
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian.gpg
"""

ONE_LINE = """\
# deb http://comment.example/debian bookworm main
deb-src http://source.example/debian bookworm main
deb http://tool.example/apt stable tool
deb [arch=amd64 signed-by=/k.gpg] http://mirror.example/debian trixie main contrib
"""


class Mirrors(unittest.TestCase):
    def test_deb822(self):
        self.assertEqual(apt.from_deb822(DEB822), apt.Mirror(
            "http://mirror.example/debian", "/usr/share/keyrings/debian.gpg"))

    def test_one_line(self):
        self.assertEqual(apt.from_one_line(ONE_LINE),
                         apt.Mirror("http://mirror.example/debian", "/k.gpg"))

    def test_key_in_the_file_itself(self):
        text = DEB822.replace("/usr/share/keyrings/debian.gpg",
                              "\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n x")
        self.assertEqual(apt.from_deb822(text).keyring, "")

    def test_none_is_an_error(self):
        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaises(EnvError):
                apt.find_mirror(Path(folder))

    def test_list_directory(self):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "sources.list.d").mkdir()
            (Path(folder) / "sources.list.d/a.list.disabled").write_text(ONE_LINE)
            with self.assertRaises(EnvError):
                apt.find_mirror(Path(folder))
            (Path(folder) / "sources.list.d/debian.sources").write_text(DEB822)
            self.assertEqual(apt.find_mirror(Path(folder)).uri,
                             "http://mirror.example/debian")


class Kernels(unittest.TestCase):
    def test_newest_of_the_series(self):
        names = [f"linux-headers-{v}" for v in (
            "7.2.9+deb13-amd64", "7.3.4+deb13-amd64", "7.3.10+deb13-amd64",
            "7.3.11+deb13-cloud-amd64", "7.3.12+deb13-rt-amd64", "8.0.1+deb13-amd64")]
        self.assertEqual(choose_abi(names), ("7.3.10+deb13-amd64", "7.3"))

    def test_nearest_newer_series(self):
        names = ["linux-headers-7.2.9+deb13-amd64", "linux-headers-7.5.1+deb13-amd64",
                 "linux-headers-7.5.3+deb13-amd64", "linux-headers-8.0.1+deb13-amd64"]
        self.assertEqual(choose_abi(names), ("7.5.3+deb13-amd64", "7.5"))

    def test_only_older_ones(self):
        with self.assertRaisesRegex(EnvError, "6.12.1"):
            choose_abi(["linux-headers-6.12.1+deb13-amd64", "linux-image-7.3.1-amd64"])


class ModuleOrder(unittest.TestCase):
    def test_needs_come_first_and_builtin_ones_are_left_out(self):
        with tempfile.TemporaryDirectory() as folder:
            tree = Path(folder)
            (tree / "modules.dep").write_text(
                "k/9p.ko: k/9pnet.ko k/netfs.ko\nk/9pnet.ko:\nk/netfs.ko:\n"
                "k/9pnet_virtio.ko: k/9pnet.ko\n")
            (tree / "modules.builtin").write_text("k/virtio_blk.ko\n")
            self.assertEqual(
                module_order(tree, ["virtio_blk", "9p", "9pnet_virtio"]),
                ["k/netfs.ko", "k/9pnet.ko", "k/9p.ko", "k/9pnet_virtio.ko"])
            with self.assertRaises(EnvError):
                module_order(tree, ["nothing"])
