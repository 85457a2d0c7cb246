# SPDX-License-Identifier: GPL-2.0
"""What guests boot from: a Debian user space, and per kernel its modules and initramfs."""

import gzip
import inspect
import os
import shutil
import stat
from pathlib import Path

from . import apt
from .errors import EnvError
from .paths import TREE
from .parts import Part, hash_files
from .root import NO_DOCS

#: rdma-core's test suite, shipped among the documentation of its Debian package.
RDMA_CORE_TESTS = "usr/share/doc/rdma-core/tests"


class Guest(Part):
    """User space of the guests: unmodified Debian with rdma-core and tools."""

    name = "guest"
    needs = ("root",)
    about = "guest image: Debian user space with rdma-core and tools"

    packages = """
        rdma-core ibverbs-utils rdmacm-utils perftest python3-pyverbs infiniband-diags
        iproute2 iputils-ping tcpdump tshark ethtool python3 gcc libc6-dev make
        libibverbs-dev librdmacm-dev libjansson4 kmod procps psmisc pciutils strace iperf3 socat
        netcat-openbsd util-linux bsdextrautils less jq ncurses-base""".split()

    def inputs(self):
        # The build root is but a tool here.
        return [apt.RELEASE, self.packages, NO_DOCS]

    def build(self, out, step):
        root = self.catalog["root"]
        mirror = apt.find_mirror()
        files = out / "files"
        sources = out / "sources.list"
        sources.write_text(mirror.sources())
        root.path()
        step.stage(f"Debian {apt.RELEASE} user space from {mirror.uri}")
        step.run(["mmdebstrap", "--variant=essential", *NO_DOCS,
                  # With its parent directory, which dpkg would leave out as well.
                  f"--dpkgopt=path-include=/{RDMA_CORE_TESTS.rsplit('/', 1)[0]}*",
                  *(f"--aptopt={line}" for line in apt.proxy_options()),
                  "--include=" + ",".join(self.packages), apt.RELEASE, files, sources])
        self._arrange(files)
        step.stage("writing the image")
        step.run(root.enter(["mkfs.erofs", "-T0", out / "guest.erofs", files],
                            binds=[out]))
        shutil.rmtree(files)
        sources.unlink()

    @staticmethod
    def _arrange(files: Path) -> None:
        """Small changes that make the user space a guest's."""
        for entry in ("opt/irdma_rs/bin", "opt/irdma_rs/tests", "share", "run/lab"):
            (files / entry).mkdir(parents=True, exist_ok=True)
        suite = files / RDMA_CORE_TESTS
        if not suite.is_dir():
            raise EnvError("guest image: Debian's python3-pyverbs has no "
                           f"/{RDMA_CORE_TESTS} any more")
        target = files / "opt/rdma-core/tests"
        shutil.copytree(suite, target)
        os.chown(target, 0, 0)
        for packed in target.rglob("*.gz"):
            packed.with_suffix("").write_bytes(gzip.decompress(packed.read_bytes()))
            packed.unlink()
        for file in target.rglob("*.py"):
            file.chmod(0o644)
        for waste in ("var/cache/apt", "var/lib/apt/lists", "boot"):
            shutil.rmtree(files / waste, ignore_errors=True)
        (files / "etc/hostname").write_text("guest\n")
        (files / "etc/hosts").write_text("127.0.0.1 localhost\n::1 localhost\n" + "".join(
            f"10.99.0.{n + 1} node{n}\nfd00:99::{n + 1:x} node{n}\n" for n in range(16)))


#: Modules the initramfs needs to find and mount the images.
BOOT_MODULES = ["virtio_blk", "erofs", "overlay", "9p", "9pnet_virtio", "virtio_rng"]


def module_order(tree: Path, names) -> list:
    """Module files below `tree` (a `lib/modules/RELEASE`) in an order that loads.

    Built-in modules are left out. Raises EnvError when a module does not exist.
    """
    by_name, needs = {}, {}
    for line in (tree / "modules.dep").read_text().splitlines():
        file, _, rest = line.partition(":")
        by_name[Path(file).name.split(".ko")[0].replace("-", "_")] = file
        needs[file] = rest.split()
    builtin = {Path(line).name.split(".ko")[0].replace("-", "_") for line in
               (tree / "modules.builtin").read_text().split()}
    order = []
    for name in names:
        if name in builtin:
            continue
        if name not in by_name:
            raise EnvError(f"kernel modules in {tree}: no {name}, which guests boot with")
        file = by_name[name]
        # depmod lists dependencies nearest first.
        for module in [*reversed(needs[file]), file]:
            if module not in order:
                order.append(module)
    return order


class Cpio:
    """Writer of the archive format that the kernel unpacks at boot ("newc")."""

    def __init__(self, file):
        self._file = file
        self._inode = 0

    def add(self, name: str, mode: int, data: bytes = b"", device=(0, 0)) -> None:
        """One entry; `mode` with its type bits."""
        self._inode += 1
        encoded = name.encode() + b"\0"
        fields = (self._inode, mode, 0, 0, 2 if stat.S_ISDIR(mode) else 1, 0, len(data),
                  0, 0, *device, len(encoded), 0)
        header = b"070701" + b"".join(b"%08X" % f for f in fields)
        self._file.write(self._padded(header + encoded) + self._padded(data))

    def close(self) -> None:
        self.add("TRAILER!!!", 0)

    @staticmethod
    def _padded(data: bytes) -> bytes:
        return data + bytes(-len(data) % 4)


class Boot(Part):
    """What a kernel needs to boot a guest: image, initramfs, modules on a disk."""

    name = "boot"
    needs = ("root",)
    about = "initramfs and module disk of the guests' kernel"
    #: The part with the kernel, unless a directory is given.
    of = "kernel"

    #: First process of a guest; it mounts the images and hands over.
    script = TREE / "tests/lab/guest/initramfs"

    def __init__(self, catalog, kernel_dir=None):
        super().__init__(catalog)
        self._dir = kernel_dir

        if not kernel_dir:
            self.needs = ("root", self.of)

    def _kernel(self) -> Path:
        return self._dir or self.catalog[self.of].path()

    def inputs(self):
        if self._dir:
            kernel = [os.fspath(self._dir)] + sorted(
                (os.fspath(p), p.stat().st_mtime_ns) for p in
                (self._dir / "vmlinuz", *self._dir.glob("lib/modules/*/modules.dep")))
        else:
            kernel = self.catalog[self.of].key
        return [kernel, BOOT_MODULES,
                hash_files(TREE, [self.script]), inspect.getsource(Cpio)]

    def build(self, out, step):
        root, kernel = self.catalog["root"], self._kernel()
        trees = sorted((kernel / "lib/modules").iterdir())
        if len(trees) != 1:
            raise EnvError(f"kernel {kernel}: exactly one release has to lie in "
                           f"lib/modules, there are {len(trees)}")
        tree = trees[0]
        step.stage(f"boot files of {tree.name}")
        (out / "release").write_text(tree.name + "\n")
        shutil.copy(kernel / "vmlinuz", out / "vmlinuz")
        with open(out / "initrd.cpio", "wb") as file:
            self._initramfs(Cpio(file), tree, root.path() / "usr/bin/busybox")
        step.run(root.enter(["mkfs.erofs", "-T0", out / "modules.erofs",
                             kernel / "lib/modules"], binds=[out, kernel]))

    def _initramfs(self, cpio: Cpio, tree: Path, busybox: Path) -> None:
        for folder in ("bin", "dev", "proc", "sys", "mnt", "lib"):
            cpio.add(folder, stat.S_IFDIR | 0o755)
        cpio.add("dev/console", stat.S_IFCHR | 0o600, device=(5, 1))
        cpio.add("init", stat.S_IFREG | 0o755, self.script.read_bytes())
        cpio.add("bin/busybox", stat.S_IFREG | 0o755, busybox.read_bytes())
        order = module_order(tree, BOOT_MODULES)
        for number, file in enumerate(order):
            cpio.add(f"lib/{number:02}-{Path(file).name}", stat.S_IFREG | 0o644,
                     (tree / file).read_bytes())
        cpio.close()
