# SPDX-License-Identifier: GPL-2.0
"""The build root: a Debian with compilers, QEMU and tools, and how to run things in it.

Two ways to run a program of the build root:

- `enter`: the command line of a program inside it, in a mount namespace of its
  own, where the root is read-only and chosen host directories appear under
  their own paths. The mounts vanish with the last process. Needs root.
- `host_command`: the command line of a single program of it on the host's file
  system, through its own dynamic linker. Needs no rights.
"""

import os
from pathlib import Path

from . import apt
from .parts import Part

#: Puts the build root together in a private mount namespace and enters it.
#: Arguments: root, mount point, host directories (writable; `PATH` or `PATH:INSIDE`)
#: up to `--`, command.
ENTER = r"""
set -eu
root=$1; top=$2; shift 2
mount -t tmpfs -o mode=755 build-root "$top"
cd "$root"
for entry in *; do
    if [ -L "$entry" ]; then
        cp -P "$entry" "$top/"
        continue
    fi
    mkdir "$top/$entry"
    case $entry in
    usr|etc|opt)
        mount --bind "$entry" "$top/$entry"
        mount -o remount,bind,ro "$top/$entry" ;;
    esac
done
cd /
mkdir -p "$top/proc" "$top/sys" "$top/dev" "$top/tmp" "$top/root" "$top/var/tmp" \
    "$top/var/lib/dpkg" "$top/var/lib/apt/lists/partial" \
    "$top/var/cache/apt/archives/partial" "$top/var/log/apt"
chmod 1777 "$top/tmp" "$top/var/tmp"
mount --bind "$root/var/lib/dpkg" "$top/var/lib/dpkg"
mount -o remount,bind,ro "$top/var/lib/dpkg"
mount -t proc proc "$top/proc"
mount --rbind /sys "$top/sys"
mount --rbind /dev "$top/dev"
for file in /etc/resolv.conf /etc/hosts; do
    [ ! -e "$file" ] || mount --bind "$file" "$top$file"
done
[ ! -d /etc/ssl/certs ] || mount --bind /etc/ssl/certs "$top/etc/ssl/certs"
while [ "$1" != -- ]; do
    mkdir -p "$top${1#*:}"
    mount --bind "${1%%:*}" "$top${1#*:}"
    shift
done
shift
exec chroot "$top" "$@"
"""

#: Environment of programs in the build root.
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root",
               "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "DEBIAN_FRONTEND": "noninteractive"}

#: What mmdebstrap leaves out of any tree it makes: nobody reads it there.
NO_DOCS = ["--dpkgopt=path-exclude=/usr/share/man/*",
           "--dpkgopt=path-exclude=/usr/share/locale/*",
           "--dpkgopt=path-exclude=/usr/share/doc/*",
           "--dpkgopt=path-exclude=/usr/share/info/*",
           "--dpkgopt=force-unsafe-io",
           '--aptopt=APT::Install-Recommends "false"',
           '--aptopt=Acquire::Languages "none"']


class Inside(list):
    """Command line of something in the build root, with what it is in short."""

    def __init__(self, args, command):
        super().__init__(args)
        self.label = " ".join(os.fspath(c) for c in command)


class Root(Part):
    """Debian with all build tools and QEMU."""

    name = "root"
    about = "Debian build root: compilers, Rust, QEMU, image tools"

    packages = """
        gcc-14 make flex bison bc libelf-dev libssl-dev libdw-dev xz-utils kmod cpio
        python3 rustc cargo rust-src rustfmt rust-clippy bindgen clang libclang-dev lld
        llvm pahole git ca-certificates perl libc6-dev pkgconf
        libibverbs-dev librdmacm-dev libjansson-dev erofs-utils busybox-static shellcheck
        python3-pyflakes codespell tshark""".split()
    backports = ["qemu-system-x86"]

    def inputs(self):
        return [apt.RELEASE, self.packages, self.backports, NO_DOCS]

    def build(self, out, step):
        apt.require_root("the build root")
        apt.require_host_tools()
        mirror = apt.find_mirror()
        step.stage(f"Debian {apt.RELEASE} and build tools from {mirror.uri}")
        sources = out.with_name(out.name + ".list")
        sources.write_text(mirror.sources())
        qemu = " ".join(self.backports)
        try:
            step.run(["mmdebstrap", "--variant=apt", *NO_DOCS,
                      *(f"--aptopt={line}" for line in apt.proxy_options()),
                      "--include=" + ",".join(self.packages),
                      "--customize-hook=chroot \"$1\" apt-get install -y "
                      f"--no-install-recommends -t {apt.BACKPORTS} {qemu}",
                      apt.RELEASE, out, sources])
        finally:
            sources.unlink(missing_ok=True)
        for name in ("resolv.conf", "hosts"):
            (out / "etc" / name).touch()

    # -- running things -----------------------------------------------------

    def enter(self, command, binds=(), env=None, cwd="/") -> list:
        """Command line that runs `command` inside.

        `binds` are host directories it may write to, `PATH` or `PATH:INSIDE`.
        """
        apt.require_root("this part")
        top = self.catalog.cache / "mnt"
        top.mkdir(parents=True, exist_ok=True)
        setting = [f"{k}={v}" for k, v in {**ENVIRONMENT, **(env or {})}.items()]
        args = ["unshare", "--mount", "--propagation", "private", "--", "sh", "-c",
                ENTER, "enter", os.fspath(self.path()), os.fspath(top),
                *(os.fspath(b) for b in binds), "--",
                "env", "-i", "-C", os.fspath(cwd), *setting,
                *(os.fspath(c) for c in command)]
        return Inside(args, command)

    def host_command(self, program: str, args=()) -> list:
        """Command line that runs a program of the build root where we are."""
        root = self.path()
        libraries = root / "usr/lib/x86_64-linux-gnu"
        return [os.fspath(root / "lib64/ld-linux-x86-64.so.2"), "--library-path",
                f"{libraries}:{root / 'usr/lib'}", os.fspath(Path(root, program)), *args]
