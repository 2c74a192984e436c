# SPDX-License-Identifier: BSD-3-Clause
"""How each snippet of a page is held to what the code does: a row for each block of each page.

Blocks are fenced or indented. Those of ```console and ```diff are done by tutorial.py, where
CMakeLists.txt names the page; a fence without a language is what a screen or a file has. All others
have a row here, in the order of the page, so that a new one is missed by the test. What is neither
run nor compiled is said on docs/testing.md, with the reason.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FRAMES = Path(__file__).parent / "frames"


@dataclass(frozen=True)
class Block:
    """A snippet as a page has it."""

    line: int
    language: str  # of the fence; "indented"
    text: str

    def with_line(self, line: str) -> Block:
        return Block(self.line, self.language, f"{self.text}{line}\n")


@dataclass(frozen=True)
class Aside:
    """Commands that are not run here, by a test or for a reason that docs/testing.md names."""

    what: str
    why: str


@dataclass(frozen=True)
class Run:
    """Commands of a shell, run as they stand except for paths: each has to end with 0."""

    prepare: str = ""  # what the reader is taken to have, in the folder where it runs
    other: dict[str, str] = field(default_factory=dict)  # what is run in place of some text
    leave: Aside | None = None  # lines that begin with "perdure bench" are not run
    each: str = ""  # what is done before each line: a job begins anew
    needs: tuple[str, ...] = ()  # programs without which it is skipped
    after: str = ""  # what has to hold then


@dataclass(frozen=True)
class Compiled:
    """Lines of a program, compiled in a frame: FRAMES/NAME, in which a line says "snippet"."""

    frame: str


@dataclass(frozen=True)
class Same:
    """Lines of a program, each of which is in a file that a test compiles and runs."""

    file: str


@dataclass(frozen=True)
class Python:
    """Lines of Python, run after those of `before`, followed by those of `after`."""

    before: str = ""
    after: str = ""
    other: dict[str, str] = field(default_factory=dict)
    torch: bool = False
    times: int = 1


@dataclass(frozen=True)
class Settings:
    """A file of settings, which `perdure config show` then finds."""


@dataclass(frozen=True)
class Text:
    """No snippet: a formula, a message, the lines of a file, what the compiler makes."""


How = Run | Compiled | Same | Python | Settings | Text | Aside
TEXT = Text()


def blocks_of(markdown: str) -> list[Block]:
    """All blocks of a page except console, diff and fences without a language, in their order."""
    found: list[Block] = []
    fence: str | None = None
    indented = False  # the last lines, apart from empty ones, are an indented block
    after_text = False  # an indented line goes on with an item of a list
    for number, line in enumerate(markdown.splitlines(), 1):
        if line.startswith("```"):
            fence = line[3:] if fence is None else None
            if fence is not None:
                found.append(Block(number + 1, fence, ""))
            indented = after_text = False
        elif fence is not None:
            found[-1] = found[-1].with_line(line)
        elif line.startswith("    ") and not after_text:
            if not indented:
                found.append(Block(number, "indented", ""))
            found[-1] = found[-1].with_line(line[4:])
            indented = True
        elif line.strip():
            indented, after_text = False, True
        else:
            after_text = False
    return [block for block in found if block.language not in ("", "console", "diff")]


def pages() -> dict[str, list[Block]]:
    """Each page that has such blocks."""
    named = {"README.md": ROOT / "README.md"}
    named |= {f"docs/{path.name}": path for path in sorted((ROOT / "docs").glob("*.md"))}
    found = {name: blocks_of(path.read_text(encoding="utf-8")) for name, path in named.items()}
    return {name: blocks for name, blocks in found.items() if blocks}


_HEAT = "cp $EXAMPLES/heat.c solver.c\n"
_MPI = "mpicc -O1 -o solver $EXAMPLES/records.c\n"
# A job of hpccg with a commit in each of 220 iterations, as `./solver`.
_SOLVER = r"""cat > solver <<'END'
#!/bin/sh
exec "$PERDURE_BUILD/apps/hpccg/hpccg_mpich" 8 8 8 --iterations 220 \
  --protect copy --pool "$PWD/state" >/dev/null
END
chmod +x solver
"""
_ANEW = "rm -rf state"
_PLAN = "perdure energy plan --write-time 2s --read-time 2s --mtbf 3h -o plan.json >/dev/null\n"
_TRIAD = """cp $TESTS/trace/triad.c cg.c
perdure-clang --trace -O1 cg.c -o cg.B
"""
_TRACES = r"""printf '0 1000\n1 1040\n2 400\n' > trace.din
printf 'time,op,address,size\n1,r,0,512\n2,w,8,4096\n' > io.csv
python -c 'import struct, sys
for t, (name, after) in enumerate(((7, 2), (8, -1), (7, -1))):
    sys.stdout.buffer.write(struct.pack("<IQIq", t, name, 512, after))' > io.oracleGeneral
zstd -q io.oracleGeneral
"""
_CONFIGURE = """cat > configure <<'END'
#!/bin/sh -e
printf 'program p\\nprint *, 1\\nend program\\n' > p.f90
echo 'int main(void) { return 0; }' > p.c
$CC -O2 p.c -o p && ./p
$FC -O2 p.f90 -o q && ./q
END
chmod +x configure
cp $TESTS/trace/triad.c cg.c
"""
_CHECKED = """cp $EXAMPLES/heat_ipv.cpp flow.cpp
cp $EXAMPLES/ripples_ipv.c ripples_ipv.c
( echo '#define main renamed'; cat ripples_ipv.c; echo '#undef main'
  echo 'int main(void) { char* words[] = {"heat", "64", "20", "pool", 0};'
  echo 'system("rm -rf pool"); return renamed(4, words); }' ) > heat.c
"""
_RECORDED = """cp $EXAMPLES/ripples.c ripples.c
( echo '#define main renamed'; cat ripples.c; echo '#undef main'
  echo 'int main(void) { char* words[] = {"cg", "64", "20", 0}; return renamed(3, words); }'
) > cg.c
perdure-clang -DRECORD --ipv-record -O2 cg.c -lm -o cg.S
cp cg.S sp.S
"""
_PROFILE = "perdure energy profile . --max-bytes 70MB --writers 1 --repeats 1 --yes " \
    "-o disk.json >/dev/null\n"

_BENCH = ("benchmarks", "they take minutes; `test_bench*.py` runs each in its short form")
_CAMPAIGN = ("tests and campaigns", "they are the tests; `docs.commands` finds what none of them "
             "has")
_PREFIX = ("installing, a prefix", "`test_install.py` installs one, moves it and builds with it")
_SLURM = ("batch scripts, prolog and epilog", "they need Slurm, PBS or Flux: `make test-cluster` "
          "runs such jobs where Slurm's daemons are installed")

_STATE = """
import numpy as np, perdure
pool = perdure.open("pool")
def step(random):
    return random.random()
"""
_READ = """
import perdure, subprocess, sys
with perdure.open(PMEM + "/heat") as pool:
    u = pool.array("u", 100)
    state = pool.scalars(iteration=0)
    pool.restart()
    pool.commit()
"""
_TRAINING = """
import torch
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
data = torch.utils.data.TensorDataset(torch.randn(8, 4), torch.randn(8, 1))
loader = torch.utils.data.DataLoader(data, batch_size=4, generator=torch.Generator())
def step(model, optimizer, x, y):
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(x), y).backward()
    optimizer.step()
def train(model, optimizer):
    for x, y in loader:
        step(model, optimizer, x, y)
"""
_STREAMS = _TRAINING + """
import random, numpy as np, perdure.torch
generator, epoch = np.random.default_rng(1), 3
kept = perdure.torch.Checkpoint("pool")
"""
_SHARDS = _TRAINING + """
state = {"model": model.state_dict()}
"""
_SAVED = _SHARDS + """
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from perdure.torch import PoolWriter
dist.init_process_group("gloo", rank=0, world_size=1, store=dist.HashStore())
writer, group = PoolWriter("pool"), dist.new_group(backend="gloo")
"""

HOW: dict[str, list[How]] = {
    "README.md": [
        Aside("`make demo`, `make test`",
              "`test_demo.py` runs the demonstration, and CI all tests"),
        Same("examples/heat.c"),
        Run(_SOLVER, {"./perdure": "perdure"}, each=_ANEW),
    ],
    "docs/advise.md": [
        Run("mpicc -O1 -o solver $EXAMPLES/rod.c; cc -o heat $EXAMPLES/walkers.c\n"
            "cp $EXAMPLES/walkers.py solver.py; touch input.dat\n"),
    ],
    "docs/cache.md": [
        Run(_MPI), Run(_MPI),
        Compiled("hint.c"),
        Aside("`perdure cache recover` and its options", "a part that a job left is needed: "
              "`test_cache_changed.py` makes such parts, and runs each"),
        Compiled("window_and_file.c"),
    ],
    "docs/cache_predict.md": [
        Run(_MPI, needs=("mpicc",)),
        Aside("logs of Darshan", "`test_cache_predict.py` predicts from one where PyPI's package "
              "is installed"),
    ],
    "docs/cli.md": [TEXT],
    "docs/cluster.md": [
        Aside(*_SLURM), Compiled("due.c"), Aside(*_SLURM), Aside(*_SLURM), Aside(*_SLURM),
        Aside(*_SLURM), Aside(*_SLURM), Aside(*_CAMPAIGN),
    ],
    "docs/cpp.md": [
        Compiled("pool.cpp"), Compiled("members.cpp"), Compiled("state.cpp"),
        Compiled("objects.cpp"), Compiled("follow.cpp"),
    ],
    "docs/devices.md": [Compiled("device.c"), Compiled("sycl.cpp")],
    "docs/doctor.md": [
        Run(other={"doctor /mnt/pmem": "doctor /mnt/pmem || [ $? = 1 ]"}),
        Run(other={"| grep '^problem'": "| grep '^problem' || true"}),
    ],
    "docs/energy.md": [
        Run(_PLAN + _SOLVER + "mkdir data; touch data/x\n",
            {"2GiB": "70MB --writers 1 --repeats 1"}),
    ],
    "docs/energy_inside.md": [TEXT, TEXT, TEXT],
    "docs/energy_plan.md": [
        Run(_PROFILE + "printf 'interval\\n3h\\n5h\\n9h\\n2h\\n8h\\n' > log.csv\n",
            {"1e7": "1e5", "./perdure": "perdure"}),
        TEXT, TEXT,
    ],
    "docs/environment.md": [Run(), Settings(), Run()],
    "docs/figures.md": [Aside(*_BENCH), Aside(*_BENCH)],
    "docs/format.md": [TEXT] * 9,
    "docs/fortran.md": [
        Run("cp $EXAMPLES/heat.f90 .; cp $TESTS/fortran/jacobi.f90 solver.f90\n",
            needs=("gfortran",)),
        Compiled("plate.f90"),
    ],
    "docs/gpu.md": [
        Compiled("gpu_before.c"), Compiled("gpu.c"), Same("examples/heat_jax.py"),
    ],
    "docs/hdf5.md": [
        Aside("PnetCDF's program", "Debian has PnetCDF for Open MPI only: `docs.pnetcdf.openmpi` "
              "runs it"),
    ],
    "docs/install.md": [
        Run("mkdir -p ~/.config/fish/completions\n", after="man -w -M ~/.local/share/man perdure\n"
            "test -s ~/.config/fish/completions/perdure.fish\n", needs=("man",)),
        Run(_HEAT + "cp $EXAMPLES/heat.f90 $EXAMPLES/CMakeLists.txt .; cp solver.c heat.c\n",
            needs=("gfortran",), after="cmake --build build\n"
            "cc -o by_pc heat.c $(pkg-config --cflags --libs perdure) "
            "-Wl,-rpath,$(perdure config --libdir)\n"
            "unset LD_LIBRARY_PATH; for it in build/heat ./by_pc ./heat; do $it $it.p; done\n"),
        Aside(*_PREFIX), Aside(*_PREFIX),
        Aside("installing, a Debian package", "`test_package.py` installs it in a clean Debian"),
        Aside("installing, pip", "`test_wheel.py` makes the wheel and installs it"),
    ],
    "docs/ipv.md": [Compiled("ipv.c"), Compiled("pair.c"), Compiled("ipv_grow.c"),
                    Compiled("ipv_ranks.c")],
    "docs/ipv_check.md": [
        Run(_RECORDED + _CHECKED + "perdure-clang --ipv-check -O2 heat.c -lm -o sp.checked\n",
            {"check -- ./sp.S": "check -- ./sp.checked"}, needs=("perdure-clang",)),
        Run(_CHECKED, {"heat.c -o": "heat.c -lm -o"}, needs=("perdure-clang",)),
        Run(_RECORDED, needs=("perdure-clang",)),
        Run(_CHECKED + "perdure-clang --ipv-check -O2 heat.c -lm -o heat\n",
            needs=("perdure-clang",)),
        Run(_CHECKED + "perdure-clang --ipv -O2 heat.c -lm -o heat\n"
            "perdure-clang --ipv --ipv-check -O2 heat.c -lm -o heat.checked\n",
            needs=("perdure-clang",)),
        Run(_RECORDED, {"srun": "mpiexec -n 1"}, needs=("perdure-clang",)),
    ],
    "docs/ipv_compiler.md": [
        Run("cp $EXAMPLES/ripples_ipv.c flow.c\n"
            "perdure-clang --ipv --ipv-explain=ipv.json -O3 -c flow.c -o other.o\n",
            {"flow.o -o": "flow.o -lm -o"}, needs=("perdure-clang",)),
        TEXT, TEXT,
        Run("cp $TESTS/pass/add_change.c flow.c 2>/dev/null || cp $FRAMES/add_change.c flow.c\n"
            "perdure-clang --ipv --ipv-explain=ipv.json -O3 -c flow.c -o other.o\n",
            needs=("perdure-clang",)),
        Run("cp $EXAMPLES/ripples_ipv.c flow.c\n"
            "clang-19 -O1 -emit-llvm -c flow.c -o flow.bc\n",
            {"flow.bc": "flow.bc -o after.bc"}, needs=("perdure-clang", "clang-19", "opt-19")),
    ],
    "docs/ipv_inside.md": [
        Aside(*_BENCH),
        Run("ln -s $PERDURE_BUILD/apps/npb/npb_ft_ipv .\n",
            {"loads=134217728": "loads=4194304", "--class A": "--class S", "DIR": "pool"},
            needs=("perdure-clang",)),
    ],
    "docs/levels.md": [
        Run(after="perdure config show levels\n"),
        Run("$PERDURE_BUILD/tests/python/counter heat 20 >/dev/null; mkdir -m 700 levels\n"
            "perdure pool drain heat --to levels\n", {"/scratch/me/levels": "levels"}),
        TEXT, TEXT,
    ],
    "docs/pools.md": [Same("examples/lists.py")],
    "docs/python.md": [
        Aside("installing, pip", "`test_wheel.py` makes the wheel and installs it"),
        Python(times=2), Python(_STATE, other={"< 1000": "< 20"}), Python(_READ),
    ],
    "docs/ranks.md": [
        Same("examples/strips.c"), Compiled("window_ranks.c"), Same("examples/strips.c"),
        Run("mpicc -O1 -o strips $EXAMPLES/strips.c "
            "$(perdure config --mpi mpich --cflags --libs)\nmkdir -p here levels\n",
            {"/scratch/me/levels": "$PWD/levels", "/mnt/pmem/strips": "here/strips",
             "redundancy=xor:4": "redundancy=off"}),  # it needs nodes
    ],
    "docs/report.md": [
        Run(_SOLVER),
        Run("cp $ROOT/docs/figures/hpccg.jsonl .\n", leave=Aside(*_BENCH)),
    ],
    "docs/run.md": [
        Run(_PLAN + _SOLVER, {"3.5s": "0.2s"}, each=_ANEW),
        Run(_SOLVER),
        TEXT,
    ],
    "docs/simulator.md": [
        Run("sed 's/= aligned_alloc/= (double*)aligned_alloc/' $TESTS/trace/triad.c > solver.cpp\n",
            {"./perdure": "perdure", "slowdown=20%": "slowdown=2000%"},
            needs=("perdure-clang",)),
        TEXT,
    ],
    "docs/simulator_inside.md": [TEXT, Aside(*_BENCH)],
    "docs/testing.md": [Aside(*_CAMPAIGN)] * 15,
    "docs/torch.md": [
        Python(_TRAINING, torch=True, times=2, other={"epochs(90)": "epochs(3)"}),
        Python(_TRAINING, torch=True, times=2, other={"0, 90)": "0, 3)"}),
        Python(_STREAMS, torch=True, other={'"cuda"': '"cpu"'}),
        Python(_STREAMS, torch=True), Python(_SHARDS, torch=True), Python(_SAVED, torch=True),
        Same("examples/shards.py"),
        Run("cp $EXAMPLES/shards.py .; export OMP_NUM_THREADS=1\n", {"40 23": "40 23 || true"},
            after="torchrun --nproc-per-node 1 shards.py $PWD/../pmem/run 45 | "
            "grep 'begin at step 45'\n", needs=("torchrun",)),
    ],
    "docs/tracing.md": [
        Run(_TRIAD, needs=("perdure-clang",)),
        Run(_CONFIGURE, {"OMPI_CC=perdure-clang mpicc": "OMPI_CC=perdure-clang mpicc.openmpi"},
            needs=("perdure-clang", "gfortran", "mpicc.openmpi")),
        Run(_TRIAD, needs=("perdure-clang",)),
        Compiled("region.c"),
        Run(_TRIAD, {"srun": "mpiexec -n 2"}, needs=("perdure-clang",)),
        Run(_TRACES, needs=("valgrind", "zstd")),
    ],
    "docs/veloc.md": [
        Aside("VELOC's own example", "it is VELOC's: `test_install.py` builds one like it with "
              "these flags, and runs it"),
    ],
    "docs/windows.md": [
        Compiled("window.c"),
        TEXT,
        Run("mpicc -O1 -o app $EXAMPLES/ring.c -lm\n"),
        TEXT,
    ],
}
