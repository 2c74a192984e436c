# SPDX-License-Identifier: BSD-3-Clause
"""What the guest is made of: Debian's cloud kernel, an initial file system, an NVDIMM with ext4.

Kernel and formatted NVDIMM are kept in a folder of the build tree; neither is installed.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
from pathlib import Path

from machine import QEMU, Guest, MachineFailed, Parts

NVDIMM_BYTES = 256 << 20
NAMESPACE_BYTES = 2 << 20  # in front of the file system: the namespace's own
KERNEL_PACKAGE = "linux-image-cloud-amd64"  # names the newest
MODULES = ("nd_pmem", "nfit")
TOOLS = (QEMU, "busybox", "modprobe", "depmod", "mkfs.ext4", "dpkg-deb", "apt-get", "apt-cache",
         "ldd", "mpiexec.hydra", "hydra_pmi_proxy")
SYSTEM_PATHS = ":/usr/sbin:/sbin"  # users often have neither
FORMAT_SECONDS_MAX = 600


class CannotRun(Exception):
    """A reason why there is no guest here."""


def tool(name: str) -> str:
    """The path of a program."""
    found = shutil.which(name, path=os.environ.get("PATH", "") + SYSTEM_PATHS)
    if found is None:
        raise CannotRun(f"{name} is missing: tools/bootstrap.sh --dax installs it")
    return found


def run(*words: object, cwd: Path | None = None) -> str:
    """What a program prints; CannotRun if it fails."""
    command = [tool(str(words[0])), *(str(word) for word in words[1:])]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        last = (done.stderr.strip() or done.stdout.strip() or "no reason given").splitlines()[-1]
        raise CannotRun(f"{words[0]} {words[1]} failed: {last}")
    return done.stdout


class Archive:
    """A cpio archive in the format newc, as kernels unpack it."""

    def __init__(self) -> None:
        self._bytes = bytearray()
        self._names: set[str] = set()

    def add(self, name: str, content: bytes = b"", mode: int = stat.S_IFREG | 0o755) -> None:
        """A file, with its folders; a name that is there already is left alone."""
        if name in self._names:
            return
        folder = name.rpartition("/")[0]
        if folder:
            self.add_folder(folder)
        self._add(name, content, mode)

    def add_folder(self, name: str) -> None:
        """A folder, with those that it is in."""
        self.add(name, mode=stat.S_IFDIR | 0o755)

    def finish(self) -> bytes:
        """The archive."""
        self._add("TRAILER!!!", b"", 0)
        return bytes(self._bytes)

    def _add(self, name: str, content: bytes, mode: int) -> None:
        self._names.add(name)
        fields = (len(self._names), mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0)
        self._bytes += b"070701" + b"".join(b"%08X" % field for field in fields)
        self._bytes += name.encode() + b"\0"
        self._pad()
        self._bytes += content
        self._pad()

    def _pad(self) -> None:
        self._bytes += bytes(-len(self._bytes) % 4)


def libraries_of(program: str) -> list[tuple[str, str]]:
    """(name in the guest, path here) of what a program is linked with, itself left out."""
    found = []
    for line in run("ldd", program).splitlines():
        if match := re.match(r"\s*(?:\S+ => )?(/\S+) \(0x", line):
            name = os.path.basename(match[1])
            found.append((("lib64/" if name.startswith("ld-") else "lib/") + name, match[1]))
    return found


class Images:
    """Makes them in `folder`, what is there already is kept; programs are (name, path here)."""

    def __init__(self, folder: Path):
        self._folder = folder
        self._release = ""
        folder.mkdir(parents=True, exist_ok=True)

    def kernel(self) -> Path:
        """Downloaded once; the newest that apt knows."""
        depends = run("apt-cache", "depends", KERNEL_PACKAGE)
        package = re.search(r"Depends: (linux-image-\S+)", depends)
        if package is None:
            raise CannotRun(f"apt knows no {KERNEL_PACKAGE}: the guest needs Debian's cloud kernel")
        self._release = package[1].removeprefix("linux-image-")
        kernel = self._root / f"boot/vmlinuz-{self._release}"
        if kernel.exists():
            return kernel
        run("apt-get", "download", "-qq", package[1], cwd=self._folder)
        archive = next(self._folder.glob(f"{package[1]}_*.deb"))
        unpacked = self._folder / "unpacked"
        shutil.rmtree(unpacked, ignore_errors=True)
        run("dpkg-deb", "-x", archive, unpacked)
        run("depmod", "-b", unpacked, self._release)
        archive.unlink()
        shutil.rmtree(self._root, ignore_errors=True)
        unpacked.rename(self._root)
        return kernel

    def initramfs(self, init: Path, programs: list[tuple[str, Path | str]]) -> Path:
        """With what the programs are linked with; kernel() was called before."""
        archive = Archive()
        for name in ("proc", "sys", "dev", "tmp", "nvm", "etc", "root", "run"):
            archive.add_folder(name)
        archive.add("init", init.read_bytes())
        archive.add("bin/busybox", Path(tool("busybox")).read_bytes())
        archive.add("etc/passwd", b"root:x:0:0:root:/root:/bin/sh\n")
        archive.add("etc/hosts", b"127.0.0.1 localhost guest\n")
        for number, module in enumerate(self._modules()):
            archive.add(f"modules/{number:02}-{module.name}", module.read_bytes())
        for name, path in programs:
            archive.add(f"bin/{name}", Path(path).read_bytes())
            for library, found in libraries_of(str(path)):
                archive.add(library, Path(found).read_bytes())
        made = self._folder / "initramfs"
        made.write_bytes(archive.finish())
        return made

    def nvdimm(self, kernel: Path, initramfs: Path) -> Path:
        """An NVDIMM with a namespace of mode fsdax, which a guest makes, and an empty ext4."""
        formatted = self._folder / f"nvdimm-{self._release}"
        if formatted.exists():
            return formatted
        raw = self._folder / "nvdimm.new"
        raw.unlink(missing_ok=True)
        with raw.open("wb") as file:
            file.truncate(NVDIMM_BYTES)
        guest = Guest(Parts(kernel, initramfs, raw), self._folder, environment="PURPOSE=format")
        try:
            if not guest.wait_for(rb"\nformatted\n", FORMAT_SECONDS_MAX):
                said = guest.text.decode(errors="replace")[-500:]
                raise MachineFailed(f"the guest could not make a namespace: {said}")
            guest.wait_for(rb"(?!)", 60)  # until it has switched itself off
        finally:
            guest.kill()
        blocks = (NVDIMM_BYTES - NAMESPACE_BYTES) // 4096
        run("mkfs.ext4", "-q", "-F", "-b", "4096", "-E", f"offset={NAMESPACE_BYTES}", raw, blocks)
        raw.rename(formatted)
        return formatted

    @property
    def _root(self) -> Path:
        return self._folder / "kernel"

    def _modules(self) -> list[Path]:
        """In the order in which they are to be loaded."""
        found: dict[Path, None] = {}
        for name in MODULES:
            said = run("modprobe", "-d", self._root, "-S", self._release, "--show-depends", name)
            found |= dict.fromkeys(Path(path) for path in re.findall(r"^insmod (\S+)", said, re.M))
        return list(found)
