#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests of matpower with one MPI and one number of ranks.

    check.py paper|random|files|refuse MPIRUN MPIEXEC RANKS PROGRAM

paper   the example of the paper's section 3.3: A^2, A^3, walks, a shortest path, two triangles
random  powers of random graphs are numpy's, for every access and both arithmetics, also where the
        ranks do not divide the nodes; so are distances and triangles; the seed is printed, and
        taken from PERDURE_TEST_SEED
files   what is left in the directory, and that with MPI_MODE_DELETE_ON_CLOSE it is nothing
refuse  what is wrong with an input or an option is said in a sentence, and the job ends in order
"""

import math
import os
import pathlib
import random
import resource
import sys

import numpy

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "job"))
import checking  # noqa: E402
from checking import check, check_refused, run_check  # noqa: E402

PAPER = [[0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0]]
PAPER_2 = [[0, 0, 1, 1], [0, 0, 0, 1], [1, 1, 0, 0], [0, 1, 2, 0]]
PAPER_3 = [[1, 1, 0, 1], [1, 1, 0, 0], [0, 1, 2, 0], [0, 0, 1, 2]]
FILE_LIMIT = 64 << 20  # more than what an MPI itself puts into files
ACCESSES = ("rows", "views", "collective")


class Job(checking.Job):
    """Its ranks make a square grid."""

    @property
    def side(self):
        return math.isqrt(self.ranks)


def facts_of(job, *arguments):
    """The facts of a run, a list by metric."""
    facts = {}
    for fact in job.run(*arguments):
        facts.setdefault(fact["metric"], []).append(fact)
    return facts


def left_in(folder):
    return sorted(path.name for path in folder.iterdir())


def take_matrix(folder, name, nodes):
    """The matrix of a file that was kept; removes it."""
    path = folder / f"matpower-{name}.bin"
    check(path.stat().st_size == nodes * nodes, path, "has", path.stat().st_size, "bytes")
    cells = numpy.fromfile(path, dtype=numpy.uint8).reshape(nodes, nodes)
    path.unlink()
    return cells


def narrowed(counts, arithmetic):
    return numpy.minimum(counts, 255) if arithmetic == "saturating" else counts % 256


def power_of(adjacency, power, arithmetic):
    wide = adjacency.astype(numpy.int64)
    cells = wide
    for _ in range(power - 1):
        cells = narrowed(wide @ cells, arithmetic)
    return cells


# --- paper ---------------------------------------------------------------------------------------


def write_edges(path, adjacency):
    edges = ((i, j) for i, row in enumerate(adjacency) for j, cell in enumerate(row) if cell)
    path.write_text("# an edge list\n" + "".join(f"{i} {j}\n" for i, j in edges))


def check_paper(job, folder):
    if job.ranks > 4 and job.side > 4:
        return
    graph, work = folder / "edges", folder / "work"
    work.mkdir()
    write_edges(graph, PAPER)
    here = ["--graph", graph, "--directory", work, "--keep", "--check"]
    for power, expected in ((1, PAPER), (2, PAPER_2), (3, PAPER_3)):
        asked = ["--power", power, "--walks", "3,2", "--walks", "2,0", "--shortest"]
        facts = facts_of(job, *here, *asked, *(["--triangles"] if power == 3 else []))
        name = "adjacency" if power == 1 else "result"
        check((take_matrix(work, name, 4) == expected).all(), "power", power)
        if power > 1:
            check((take_matrix(work, "adjacency", 4) == PAPER).all(), "A changed")
        check(left_in(work) == [], "left:", left_in(work))
        walks = [(fact["value"], fact["shortest"]) for fact in facts["walks"]]
        check([count for count, _ in walks] == [expected[3][2], expected[2][0]], walks)
        # The paper counts nodes from 1: from its node 3 to its node 1 it is 2 steps.
        check(walks[1][1] == (2 if power > 1 else None), "shortest:", walks)
        if power == 3:
            found = facts["triangles"][0]
            check((found["value"], found["exact"]) == (2, True), "triangles:", found)
    print("the paper's example: powers 1 to 3, walks, shortest paths, 2 triangles")


# --- random --------------------------------------------------------------------------------------


def check_distances(facts, adjacency, power):
    nodes = len(adjacency)
    reached = numpy.eye(nodes, dtype=bool)
    lengths = numpy.zeros((nodes, nodes), dtype=int)
    for length in range(1, power + 1):
        now = power_of(adjacency, length, "saturating") > 0
        lengths[now & ~reached] = length
        reached |= now
    found = [fact["value"] for fact in facts["pairs_at_distance"]]
    expected = [int((lengths == length).sum()) for length in range(1, power + 1)]
    check(found == expected, "pairs at distances:", found, "instead of", expected)
    check(facts["pairs_beyond"][0]["value"] == int((~reached).sum()), "beyond:", facts)
    far = lengths.max(axis=1)[reached.all(axis=1)]
    fact = facts["nodes_that_reach_all"][0]
    check(fact["value"] == len(far), "reach all:", fact, len(far))
    if len(far):
        check((fact["radius"], fact["diameter"]) == (far.min(), far.max()), fact)


def check_triangles(facts, adjacency, symmetric):
    wide = adjacency.astype(numpy.int64)
    expected = int(numpy.trace(wide @ wide @ wide)) // (6 if symmetric else 3)
    found = facts["triangles"][0]
    check((found["value"], found["exact"]) == (expected, True), found, "instead of", expected)


def random_cases(draw):
    """Nodes, power, density, options; few enough to take seconds."""
    for number, access in enumerate(ACCESSES):
        for arithmetic in ("saturating", "modular"):
            nodes = draw.randrange(40, 90)
            symmetric = draw.random() < 0.5
            yield nodes, 4 + number, draw.choice((0.05, 0.2)), access, arithmetic, symmetric
    yield 301, 3, 0.9, "rows", "saturating", False  # sums of more than 16 bits, two tiles
    yield 300, 3, 0.9, "rows", "modular", True


def check_random(job, folder):
    seed = int(os.environ.get("PERDURE_TEST_SEED") or random.randrange(1 << 30))
    print(f"PERDURE_TEST_SEED={seed}")
    for nodes, power, density, access, arithmetic, symmetric in random_cases(random.Random(seed)):
        words = ["--nodes", nodes, "--power", power, "--density", density, "--seed", seed]
        words += ["--access", access, "--arithmetic", arithmetic, "--keep", "--reread", "--check"]
        words += ["--symmetric"] if symmetric else ["--directed"]
        # Distances need counts that are not 0 modulo 256; dense graphs are near, and their
        # second powers do not fit.
        sparse = density < 0.5
        words += ["--triangles"] if sparse else []
        words += ["--shortest"] if sparse and arithmetic == "saturating" else []
        facts = facts_of(job, *words, "--directory", folder)
        adjacency = take_matrix(folder, "adjacency", nodes)
        expected = power_of(adjacency, power, arithmetic)
        check((take_matrix(folder, "result", nodes) == expected).all(), words, "is not numpy's")
        check(set(numpy.unique(adjacency)) <= {0, 1}, words, "cells of A")
        check((adjacency == adjacency.T).all() == symmetric, words, "symmetry")
        edges = nodes * (nodes - 1) * density
        spread = 6 * math.sqrt(2 * edges)
        check(abs(int(adjacency.sum()) - edges) <= spread, words, adjacency.sum(), "edges")
        check(facts["total_s"][0]["edges"] == adjacency.sum(), words, "counts its edges wrongly")
        if sparse:
            check_triangles(facts, adjacency, symmetric)
        if "--shortest" in words:
            check_distances(facts, adjacency, power)
        check_traffic(facts, job, nodes, power, "--shortest" in words)
    print("random graphs agree with numpy")


def check_traffic(facts, job, nodes, power, shortest):
    products, cells = power - 1, nodes * nodes
    read = facts["read_bytes"][0]["value"]
    check(read == cells * (2 * job.side * products + shortest), "read", read)
    written = facts["written_bytes"][0]["value"]
    check(written == cells * products, "wrote", written)


# --- files ---------------------------------------------------------------------------------------


def check_files(job, folder):
    small = ["--nodes", "23", "--density", "0.2", "--directory", folder]
    hashes = set()
    for options, expected in (
        ([], []),
        (["--delete-on-close"], []),
        (["--delete-on-close", "--keep"], ["matpower-adjacency.bin"]),
        (["--sync", "never", "--reread"], []),
        (["--hint", "cb_buffer_size=65536", "--hint", "no_such_hint=1"], []),
        (["--keep"], ["matpower-adjacency.bin", "matpower-result.bin"]),
    ):
        facts = facts_of(job, *small, "--power", "5", *options)
        check(left_in(folder) == expected, options, "left", left_in(folder))
        for name in expected:
            (folder / name).unlink()
        hashes.add(facts["total_s"][0]["hash"])
        print(f"{' '.join(options) or 'no option'}: left {expected}")
    check(len(hashes) == 1, "the options changed the power:", hashes)
    check_limit(job, folder)


def check_limit(job, folder):
    """What the file system refuses is said in the words of the MPI, and nothing is left."""

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_LIMIT, FILE_LIMIT))

    nodes = math.isqrt(FILE_LIMIT) + 100
    limited = Job(*job.launch)
    limited.launch[3:3] = ["env", "--ignore-signal=XFSZ"]  # which would end it at the limit
    done = limited.start(["--nodes", nodes, "--directory", folder], preexec_fn=limit)
    check(done.returncode not in (0, 124), "a limit was passed:", done.returncode)
    said = [line for line in done.stderr.splitlines() if "matpower: " in line]
    check(len(said) == 1 and ": MPI_File_" in said[0], "said:", done.stderr)
    left = [name for name in left_in(folder) if name.startswith("matpower")]
    check(left == [], "left:", left)
    print(f"refused: {said[0]}")


# --- refuse --------------------------------------------------------------------------------------


def bad_inputs(job, folder):
    """Arguments and a part of the sentence that they lead to."""
    text, far, empty = folder / "text", folder / "far", folder / "empty"
    loops, used = folder / "loops", folder / "used"
    text.write_text("0 1\n" * 3 + "0 one\n")
    far.write_text("0 2147483647\n")
    empty.write_text("")
    loops.write_text("0 0\n0 1\n1 2\n2 3\n")
    used.mkdir()
    (used / "matpower-result.bin").write_text("mine")
    small = ["--nodes", "9"]
    yield [*small, "--power", "0"], "--power"
    yield [], "is missing; give the number of nodes"
    yield [*small, "--density", "1.5"], "--density"
    yield [*small, "--walks", "3"], "'3' is not two nodes"
    yield [*small, "--hint", "key"], "'key' is not KEY=VALUE"
    yield [*small, "--triangles"], "third power"
    yield [*small, "--shortest", "--arithmetic", "modular"], "needs --arithmetic saturating"
    yield [*small, "--delete-on-close", "--reread"], "excludes"
    yield ["--graph", folder / "none"], f"{folder / 'none'}: No such file"
    yield ["--graph", text], f"{text}: line 4: 'one' is not the number of a node"
    yield ["--graph", far], f"{far}: line 1: node 2147483647 is not below 2147483647, the limit"
    yield ["--graph", text, "--nodes", "1"], f"{text}: line 1: node 1 is not below 1; see --nodes"
    yield ["--graph", empty], f"{empty} has no edges"
    if math.isqrt(job.ranks) ** 2 != job.ranks:
        yield small, f"{job.ranks} ranks make no square grid"
        return
    yield [*small, "--walks", "3,9"], "node 9 is not below 9"
    yield ["--graph", loops, "--triangles", "--power", "3"], "1 edges from a node to itself"
    yield [*small, "--directory", folder / "no"], f"{folder / 'no'}: No such file"
    yield [*small, "--directory", used], "matpower-result.bin exists already"
    if job.side > 1:
        yield ["--nodes", job.side - 1], "has no block for each of"


def check_refusals(job, folder):
    for arguments, sentence in bad_inputs(job, folder):
        place = [] if "--directory" in arguments else ["--directory", folder]
        check_refused(job, [*arguments, *place], sentence)
    kept = folder / "used/matpower-result.bin"
    check(kept.read_text() == "mine", "a file in the way was changed")
    check(not list(folder.glob("matpower-*")), "files are left:", left_in(folder))


if __name__ == "__main__":
    run_check(__doc__, {
        "paper": check_paper,
        "random": check_random,
        "files": check_files,
        "refuse": check_refusals,
    }, Job)
