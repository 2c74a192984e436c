#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Tests of the NAS benchmarks, of hpl and of eddy beside their verification.

    check.py KIND PROGRAM …

planted  a program with a wrong published number fails, says where, and exits with 1
few      fewer iterations than the class has are neither verified nor failed
scratch  both layouts of npb_cg give the same zeta, in arrays of the sizes that NPB has
refuse   wrong options are refused with the right ones
refuse_eddy  the same of eddy
same     PROGRAM MPIRUN MPIEXEC RANKS MPI_PROGRAM OPTION …: ranks compute what one process does
cut      MPIRUN MPIEXEC RANKS PROGRAM SAID: a number of ranks that can't cut the grid is refused
markers  PROGRAM LIBRARY ITERATIONS [OPTION …]: a preloaded tracer sees the timed region and all
         iterations, in order
restart  PROTECTION COUNT COMMAND …: a job, whose iterations are the option COUNT, that is
         killed in its third, gives the digits that it gives undisturbed; it goes on from its end
equal    GCC CLANG TRANSFORMED [OPTION …]: what perdure-clang --ipv made of a program gives the
         digits that the same compiler gives without it: unprotected, and versioned in three tiers,
         with boxes that it announces. Tells whether another compiler's digits are the same
equal_openmp CLANG TRANSFORMED [OPTION …]: the same of a program with OpenMP, whose team may look at
         all objects, so that it need not announce any
"""

import json
import os
import subprocess
import sys
import tempfile


def run(*command, **environment):
    return subprocess.run(command, capture_output=True, text=True, check=False,
                          env=dict(os.environ, **environment))


def check(holds, done, what):
    if not holds:
        sys.exit(f"{what}: exit code {done.returncode}\n{done.stdout}{done.stderr}")


def facts_of(done):
    check(done.returncode == 0, done, "the program failed")
    return json.loads(done.stdout)


def planted(program):
    done = run(program)
    check(done.returncode == 1, done, "a wrong published number was met")
    check("WRONG" in done.stdout and "verification FAILED" in done.stdout, done, "not said")
    done = run(program, "--json")
    facts = json.loads(done.stdout)
    check(done.returncode == 1, done, "another exit code with --json")
    check(facts["verification"] == "failed", done, "not in the JSON object")
    difference = facts["checks"][0]["difference"]
    check(1.9e-10 < difference < 2.1e-10, done, f"a difference of {difference}, not 2e-10")


def few(program):
    done = run(program, "--iterations", "2")
    check(done.returncode == 0 and "not verified: 2 iterations" in done.stdout, done, "not said")
    check("published  " not in done.stdout, done, "compared with numbers that do not apply")
    facts = facts_of(run(program, "--iterations", "2", "--json"))
    check(facts["verification"] == "not applicable", done, "not in the JSON object")
    check(facts["iterations"] == 2, done, "another number of iterations")
    check(all("published" not in line for line in facts["checks"]), done, "compared")


def scratch(program):
    n, nonzeros = 1400, 7  # class S
    bound = n * (nonzeros + 1) ** 2 + n * (nonzeros + 2)
    matrix = 12 * bound + 4 * (n + 1)
    rest = 9 * n + 5 * 8 * n  # merging, and the solver's five vectors
    sizes = {"npb3.2": matrix + 16 * bound + rest,
             "npb3.3": matrix + 4 * n + 12 * n * (nonzeros + 1) + rest}
    zetas = []
    for layout, size in sizes.items():
        done = run(program, "--matrix-scratch", layout, "--json")
        facts = facts_of(done)
        check(facts["verification"] == "verified", done, layout)
        check(facts["array_bytes"] == size, done, f"{layout}: not {size} bytes of arrays")
        zetas.append(facts["checks"][0]["value"])
    check(abs(zetas[0] / zetas[1] - 1) < 1e-12, done, f"zetas {zetas}")
    default = facts_of(run(program, "--json"))
    check(default["array_bytes"] == sizes["npb3.2"], done, "npb3.2 is not the default")


def refuse(program):
    refuse_options(program, (["--class", "Z"], "--class"), (["--iterations", "0"], "--iterations"),
                   (["--matrix-scratch", "npb1"], "npb3.2"), (["--size", "9"], "--size"))


def refuse_eddy(program):
    refuse_options(program, (["--n", "48"], "take a power of two from 32 to 4096"),
                   (["--n", "16"], "from 32"), (["--n", "8192"], "to 4096"),
                   (["--n", "-64"], "--n"), (["--steps", "0"], "--steps"), (["--dt", "0"], "--dt"))
    done = run(program, "--n", "32", "--dt", "0.9")
    check(done.returncode == 1 and "take --dt 0.098 or less" in done.stdout, done,
          "an unstable step was not reported")


def refuse_options(program, *cases):
    for options, said in cases:
        done = run(program, *options)
        check(done.returncode not in (0, 1) and said in done.stderr, done, f"{options} was taken")
    done = run(program, "--help")
    check(done.returncode == 0 and "Examples:" in done.stdout, done, "--help")


def same(program, mpirun, mpiexec, ranks, mpi_program, *options):
    one = facts_of(run(program, *options, "--json"))
    done = run(mpirun, mpiexec, ranks, mpi_program, *options, "--json")
    facts = facts_of(done)
    check(facts["ranks"] == int(ranks), done, f"not {ranks} ranks")
    for name in ("error_vx", "error_vy", "error_pr"):
        check(abs(facts[name] / one[name] - 1) < 1e-9, done, f"{name}: one rank has {one[name]}")


def cut(mpirun, mpiexec, ranks, program, said):
    done = run(mpirun, mpiexec, ranks, program)
    check(done.returncode != 0 and said in done.stderr, done, f"{ranks} ranks were taken")


def markers(program, library, iterations, *options):
    done = run(program, *options, LD_PRELOAD=library)
    check(done.returncode == 0, done, "the program failed")
    expected = ["begin", *(f"iteration {i + 1}" for i in range(int(iterations))), "end"]
    check(done.stderr.splitlines() == expected, done, f"markers are not {expected}")
    check(not run(program, *options).stderr, done, "markers without a tracer")


def digits(facts):
    """Everything that a run computed and printed."""
    names = ("error_vx", "error_vy", "error_pr", "divergence")
    return facts.get("checks") or [facts[name] for name in names]


def restart(protection, count, *command):
    """The job's last words are the same digits, whatever it went through."""
    def job(iterations, *words, **environment):
        return run(*command, "--json", count, str(iterations), *words, **environment)

    def goes_on_from(iteration, *words):
        done = job(4, *words)
        facts = facts_of(done)
        check(facts["restored_iteration"] == iteration, done, f"not gone on from {iteration}")
        check(digits(facts) == plain, done, f"other digits than {plain}")

    plain = digits(facts_of(job(4)))
    victim = 1 if "mpirun.sh" in command[0] else 0
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="npb-check-") as folder:
        words = ("--protect", protection, "--pool", f"{folder}/pool")
        if protection == "disk":  # which dies nowhere by itself
            facts_of(job(2, *words))
        else:
            done = job(4, *words, PERDURE_KILL=f"rank={victim},iteration=3,point=slot")
            check(done.returncode != 0, done, "the job was not killed")
        goes_on_from(2, *words)
        goes_on_from(4, *words)
        goes_on_from(0, *words, "--discard")


def demand_digits(program, options, wanted):
    """The number of boxes in the tier stream."""
    def demand(*words):
        done = run(program, *options, "--json", *words, PERDURE_IPV="box_bytes=1")
        check(digits(facts_of(done)) == wanted, done, f"{words}: other digits than {wanted}")

    demand("--protect", "none")
    for tier in ("auto", "stream"):
        with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="npb-check-") as folder:
            report = f"{folder}/report.json"
            demand("--protect", "ipv", "--tier", tier, "--pool", f"{folder}/pool",
                   "--ipv-report", report)
            with open(report, encoding="utf-8") as file:
                boxes = sum(found["boxes"] for found in json.load(file)["objects"])
    return boxes


def equal_openmp(clang, transformed, *options):
    plain = facts_of(run(clang, *options, "--json"))
    wanted = digits(plain)
    boxes = demand_digits(transformed, options, wanted)
    print(f"{plain['program']} with {os.environ.get('OMP_NUM_THREADS')} threads, "
          f"{plain['iterations']} iterations: {len(wanted)} numbers are the same in every digit; "
          f"{boxes} boxes in the tier stream")


def equal(gcc, clang, transformed, *options):
    plain = facts_of(run(clang, *options, "--json"))
    wanted = digits(plain)
    if demand_digits(transformed, options, wanted) == 0:
        sys.exit("no boxes were announced")
    same = digits(facts_of(run(gcc, *options, "--json"))) == wanted
    print(f"{plain['program']}, {plain['iterations']} iterations: {len(wanted)} numbers are the "
          f"same in every digit; those of {gcc} {'too' if same else 'differ'}")


KINDS = {"planted": planted, "few": few, "scratch": scratch, "refuse": refuse,
         "refuse_eddy": refuse_eddy, "same": same, "cut": cut, "markers": markers,
         "restart": restart, "equal": equal, "equal_openmp": equal_openmp}

if __name__ == "__main__":
    if len(sys.argv) < 3 or sys.argv[1] not in KINDS:
        sys.exit(__doc__)
    KINDS[sys.argv[1]](*sys.argv[2:])
