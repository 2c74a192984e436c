# SPDX-License-Identifier: BSD-3-Clause
"""A guest of qemu without KVM, whose NVDIMM is a file: it is frozen, goes on, and is killed.

Starting a guest takes seconds; going on from the frozen one, whose memory is in a file but whose
NVDIMM is not, takes one or two. A guest ends with this process, however that ends.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import select
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

QEMU = "qemu-system-x86_64"
PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)


class MachineFailed(RuntimeError):
    """The machine itself does not do what it is there for."""


@dataclass(frozen=True)
class Parts:
    """What a guest is made of."""

    kernel: Path
    initramfs: Path
    nvdimm: Path


def _die_with_parent() -> None:
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def command_line(parts: Parts, more: list[str], environment: str = "") -> list[str]:
    """The NVDIMM's platform does not count caches as persistent, so programs must flush them."""
    bytes_of = parts.nvdimm.stat().st_size
    memory = f"memory-backend-file,id=memory,share=on,mem-path={parts.nvdimm},size={bytes_of}"
    return [QEMU, "-machine", "q35,nvdimm=on,nvdimm-persistence=mem-ctrl",
            "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", "2",
            "-m", "768M,slots=2,maxmem=4G", "-nographic", "-nodefaults", "-no-reboot",
            "-serial", "stdio", "-nic", "none",
            "-kernel", str(parts.kernel), "-initrd", str(parts.initramfs),
            "-append", f"console=ttyS0 quiet panic=-1 mitigations=off {environment}",
            "-object", memory, "-device", "nvdimm,memdev=memory", *more]


class Guest:
    """A running guest; `text` is all that its console said. Leave it with kill()."""

    def __init__(self, parts: Parts, folder: Path, frozen: Path | None = None,
                 environment: str = ""):
        self.text = b""
        self._control = folder / "control"
        more = ["-qmp", f"unix:{self._control},server=on,wait=off"]
        more += ["-incoming", "defer"] if frozen else []
        self._process = subprocess.Popen(
            command_line(parts, more, environment), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, start_new_session=True, preexec_fn=_die_with_parent)
        try:
            self._connect()
            if frozen:
                self._keep_nvdimm_out()
                self._command("migrate-incoming", uri=f"exec:cat '{frozen}'")
                self._wait_while("query-status", ("inmigrate",))
                self._command("cont")
        except BaseException:
            self.kill()
            raise

    def freeze(self, into: Path) -> None:
        """Stops the guest and keeps its memory in a file; it does not go on."""
        self._keep_nvdimm_out()
        self._command("stop")
        self._command("migrate", uri=f"exec:cat > '{into}'")
        if self._wait_while("query-migrate", ("setup", "active", "device")) != "completed":
            raise MachineFailed("qemu could not save the machine")

    def say(self, line: str) -> None:
        """Types a line at the console."""
        self._process.stdin.write(line.encode() + b"\n")
        self._process.stdin.flush()

    def wait_for(self, pattern: bytes, seconds: float) -> bool:
        """Until the console said it; false if it did not, within the time or before it ended."""
        end = time.monotonic() + seconds
        while not re.search(pattern, self.text):
            if time.monotonic() > end or not self._read(0.05):
                return bool(re.search(pattern, self.text))
        return True

    def listen(self, seconds: float) -> None:
        """Reads the console for a while."""
        self.wait_for(rb"(?!)", seconds)

    def kill(self) -> None:
        """SIGKILL; then what is left of the console."""
        self._process.kill()
        self._process.wait()
        while self._read(0) and select.select([self._process.stdout], [], [], 0)[0]:
            pass
        for stream in (self._process.stdin, self._process.stdout):
            stream.close()
        self._control.unlink(missing_ok=True)

    def _read(self, seconds: float) -> bool:
        """False: the console is closed."""
        ready, _, _ = select.select([self._process.stdout], [], [], seconds)
        if not ready:
            return True
        chunk = os.read(self._process.stdout.fileno(), 1 << 16)
        self.text += chunk.replace(b"\r", b"")
        return bool(chunk)

    def _connect(self) -> None:
        control = socket.socket(socket.AF_UNIX)
        end = time.monotonic() + 60
        while True:
            try:
                control.connect(str(self._control))
                break
            except OSError:
                self._read(0.05)
                if self._process.poll() is not None or time.monotonic() > end:
                    said = self.text.decode(errors="replace")
                    raise MachineFailed(f"qemu does not start: {said}") from None
        self._lines = control.makefile("rwb")
        control.close()  # the stream keeps it
        self._lines.readline()
        self._command("qmp_capabilities")

    def _command(self, name: str, **arguments: Any) -> Any:
        self._lines.write(json.dumps({"execute": name, "arguments": arguments}).encode() + b"\n")
        self._lines.flush()
        while line := self._lines.readline():
            answer = json.loads(line)
            if "error" in answer:
                raise MachineFailed(f"qemu refuses {name}: {answer['error']['desc']}")
            if "return" in answer:
                return answer["return"]
        raise MachineFailed(f"qemu ended during {name}")

    def _keep_nvdimm_out(self) -> None:
        ignored = [{"capability": "x-ignore-shared", "state": True}]
        self._command("migrate-set-capabilities", capabilities=ignored)

    def _wait_while(self, query: str, states: tuple[str, ...]) -> str:
        while (state := self._command(query).get("status", "setup")) in states:
            time.sleep(0.02)
        return state
