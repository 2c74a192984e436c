#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests of pagerank with one MPI and one number of ranks.

    check.py agree|web|refuse|restart|windows MPIRUN MPIEXEC RANKS PROGRAM

agree    the ranks are those of another implementation, and sum to 1, on small graphs
web      the same on cnr-2000, named by PERDURE_TEST_GRAPH or beside the checkout
refuse   what is wrong with an input or an option is said in a sentence, and the job ends in order
restart  a job whose last rank is killed within a commit to disk goes on and ends with the bits of
         an undisturbed one; files of another problem are refused
windows  the same, for the protections that keep the ranks in persistent windows

Exit code 77: what it needs is not there.
"""

import array
import os
import pathlib
import sys
from functools import partial

import reference

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "job"))
from checking import (  # noqa: E402
    DISK_POINTS,
    POOL_POINTS,
    SKIPPED,
    check,
    check_refused,
    check_restart,
    run_check,
)

CNR_2000 = pathlib.Path(__file__).resolve().parents[3] / "shared/data/cnr-2000"
GRAPH = ["--rmat", "9", "--edge-factor", "6", "--seed", "5"]
DISK_MODES = {
    "disk": ["--protect", "disk"],
    "disk by threes": ["--protect", "disk", "--commit-every", "3"],
}
WINDOW_MODES = {
    f"{mode}{name}": ["--protect", mode] + flags
    for mode in ("copy", "twin", "log")
    for name, flags in (("", []), (" by threes", ["--commit-every", "3"]))
}


def facts_of(job, *arguments):
    """The facts of a run, by metric; that of the iterations has the hash."""
    return {fact["metric"]: fact for fact in job.run(*arguments)}


# --- agree, web ----------------------------------------------------------------------------------


def check_ranks(job, folder, name, arguments, graph, expected, iterations):
    """`graph` is the number of nodes and of arcs."""
    path = folder / "ranks"
    path.write_bytes(b"older and longer" * 1000 if graph[0] < 1000 else b"")
    facts = facts_of(job, *arguments, "--iterations", iterations, "--write-ranks", path, "--top", 1)
    ranks = array.array("d")
    ranks.frombytes(path.read_bytes())
    about = facts["iterations"]
    check((about["nodes"], about["arcs"]) == graph, name, "has other nodes or arcs:", about)
    check(len(ranks) == graph[0], name, "wrote", len(ranks), "ranks")
    error = max(abs(rank - other) for rank, other in zip(ranks, expected, strict=True))
    total = facts["total_rank"]["value"]
    check(error <= 1e-12, name, "differs by", error)
    check(abs(total - 1) < 1e-12 and abs(sum(ranks) - 1) < 1e-12, name, "sums to", total)
    top = facts["rank"]
    check(top["value"] == max(ranks) and ranks[top["node"]] == max(ranks), name, "top:", top)
    print(f"{name}: largest difference {error:.1e}, total {total:.15f}")


def small_graphs(folder):
    """Name, arguments, nodes and arcs of graphs with what can go wrong."""
    with_loop = {(0, 1), (1, 2), (2, 0), (2, 2), (5, 2), (0, 5)}
    lines = "".join(f"{source} {target}\n" for source, target in with_loop)
    (folder / "edges").write_text("# twice, a loop, and dangling nodes\n" + lines + lines)
    yield "edges", [folder / "edges", "--nodes", 9], 9, with_loop
    (folder / "one").write_text("0 0\n")
    yield "one node", [folder / "one"], 1, {(0, 0)}
    (folder / "none").write_text("# no arcs\n")
    yield "no arcs", [folder / "none", "--nodes", 3], 3, set()
    entries = "3 2 0.5\n1 1 2\n2 1 -7e2\n"
    header = "%%MatrixMarket matrix coordinate real symmetric\n"
    (folder / "m.mtx").write_text(f"{header}4 4 3\n{entries}")
    arcs = {(2, 1), (1, 2), (0, 0), (1, 0), (0, 1)}
    yield "Matrix Market", [folder / "m.mtx"], 4, arcs
    yield "R-MAT", GRAPH, *reference.rmat(9, 6, 5)


def check_agreement(job, folder):
    for name, arguments, nodes, arcs in small_graphs(folder):
        expected = reference.pagerank(nodes, sorted(arcs), 40)
        check_ranks(job, folder, name, arguments, (nodes, len(arcs)), expected, 40)
    facts = facts_of(job, *GRAPH, "--iterations", 500, "--tolerance", 1e-6)
    check(facts["iterations"]["value"] < 200, "did not converge:", facts["iterations"])
    check(facts["change"]["value"] < 1e-6, "ended too early:", facts["change"])
    facts = facts_of(job, *GRAPH, "--iterations", 3, "--damping", 0)
    check(facts["change"]["value"] < 1e-15, "without damping, ranks are uniform:", facts["change"])


def check_web(job, folder):
    try:
        import numpy
    except ImportError:
        print("skipped: needs numpy")
        sys.exit(SKIPPED)
    base = os.environ.get("PERDURE_TEST_GRAPH", str(CNR_2000)).removesuffix(".graph")
    if not os.path.exists(base + ".graph"):
        print(f"skipped: no {base}.graph; name one by PERDURE_TEST_GRAPH")
        sys.exit(SKIPPED)
    lists = reference.bvgraph(base)
    arcs = numpy.array([(v, u) for v, list_of_v in enumerate(lists) for u in list_of_v])
    check((len(lists), len(arcs)) == (325557, 3216152), "read", len(lists), len(arcs))
    expected = reference.pagerank_numpy(numpy, len(lists), arcs, 30)
    check_ranks(job, folder, "cnr-2000", [base], (len(lists), len(arcs)), expected, 30)


# --- refuse --------------------------------------------------------------------------------------


def bad_inputs(folder):
    """Arguments and a part of the sentence that they lead to."""
    missing, text = folder / "missing", folder / "text"
    text.write_text("0 1\n" * 1000 + "0 one\n" + "1 0\n" * 1000)
    short = folder / "short.mtx"
    short.write_text("%%MatrixMarket matrix coordinate pattern general\n3 3 9\n1 2\n2 3\n")
    empty = folder / "empty"
    empty.write_text("")
    for name in ("web.graph", "web.offsets", "web.properties"):
        (folder / name).write_bytes(bytes(range(200)))
    yield [missing], f"{missing}: No such file"
    yield [text], f"{text}: line 1001: 'one' is not the number of a node"
    yield [short], f"{short} has 2 arcs, but promises 9"
    yield [empty], "has no nodes"
    yield [folder / "web"], "is not of a BVGraph"
    yield [], "give its path"
    yield [text, "--rmat", "3"], "excludes"
    yield [*GRAPH, "--nodes", "3"], "--nodes requires graph"
    yield [*GRAPH, "--pool", "p"], "only for --protect copy, twin and log"
    yield [*GRAPH, "--commit-every", "3"], "only for protections"
    yield [*GRAPH, "--write-ranks", folder / "no" / "file"], f"{folder}/no/file"
    yield [*GRAPH, "--protect", "disk", "--disk-dir", text], str(text)


def check_refusals(job, folder):
    for arguments, sentence in bad_inputs(folder):
        check_refused(job, [*arguments, "--iterations", "2"], sentence)


# --- restart, windows ----------------------------------------------------------------------------


def in_folder(folder, flags):
    place = "--disk-dir" if "disk" in flags else "--pool"
    return [*flags, place, folder / "kept"]


def check_restarts(job, folder, modes, points):
    undisturbed = job.outcome(*GRAPH, "--iterations", 24)["hash"]
    for mode, flags in modes.items():
        every = 3 if "--commit-every" in flags else 1
        for point, versions in points.items():
            kept = folder / f"{mode}-{point}"
            kept.mkdir()
            arguments = [*GRAPH, *in_folder(kept, flags), "--iterations", 24]
            check_restart(job, mode, arguments, point, versions, every, undisturbed)
        about = job.outcome(*arguments)  # a job that is done has nothing to do
        check((about["first_iteration"], about["hash"]) == (24, undisturbed), mode, about)
    check_other_problems(job, next(iter(modes.values())), folder)


def check_other_problems(job, flags, folder):
    """What is kept of another graph, damping or number of arcs is not gone on with."""
    kept = in_folder(folder, flags)
    job.run(*GRAPH, *kept, "--iterations", 3)
    for other in (["--rmat", "9", "--edge-factor", "6", "--seed", "6"], [*GRAPH, "--damping", 0.8]):
        done = job.start([*other, *kept, "--iterations", 5])
        check(done.returncode not in (0, 124), other, "went on with", done.stdout)
        check("another" in done.stderr, other, "said:", done.stderr)


if __name__ == "__main__":
    run_check(__doc__, {
        "agree": check_agreement,
        "web": check_web,
        "refuse": check_refusals,
        "restart": partial(check_restarts, modes=DISK_MODES, points=DISK_POINTS),
        "windows": partial(check_restarts, modes=WINDOW_MODES, points=POOL_POINTS),
    })
