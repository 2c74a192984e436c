#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Runs Spin over one variant of a model here and checks that the verdict is expected.

    run.py --list                    variants, expected verdict, reason
    run.py --searches                the entries of ctest: NAME SOAK|TEST VARIANT RANKS …
    run.py VARIANT RANKS [--epochs E] [--crashes C] [--compact] [--trace]

A wrong variant passes when Spin finds a counterexample; --trace prints it. --compact keeps 64-bit
hashes of states instead of states, for searches that do not fit in memory.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

FOLDER = pathlib.Path(__file__).resolve().parent

# name: (defines, expected verdict, what it is and why the verdict is that)
VARIANTS = {
    # The protocol.
    "twin": ("", "right", "the application and its neighbours write into the copies"),
    "copy": ("COPY", "right", "they write into DRAM, and commit copies"),
    "local": ("LOCAL", "right", "no one-sided communication and no barrier but commit's"),
    "twin_fault": ("FAULT", "right", "a commit fails on one rank and is repeated"),
    "local_fault": ("LOCAL FAULT", "right", "the same without other barriers"),
    "copy_older": ("COPY OLDER", "right", "R-1 is whole wherever all ranks call it complete"),
    "local_older": ("LOCAL OLDER", "right", "the same in twin mode without one-sided writes"),
    "twin_older": ("OLDER", "right",
                   "the same with one-sided writes: who puts has opened its own slot before"),
    "copy_older_opened_at_commit": (
        "COPY OLDER OPEN_LATE", "right",
        "copy may put step 4 off until commit begins to copy; R-1 stays usable until then"),
    "lag": ("LOCAL LAG", "right", "an epoch is computed before the version before is finished"),
    "lag_older": ("LOCAL LAG OLDER", "right", "the same, and R-1 is whole as well"),
    # Right, too: steps that this property does not need.
    "twin_with_data_fence": (
        "DATA_FENCE", "right",
        "a fence between data and body changes nothing: the one before the state word covers both "
        "(same thread), and no one reads a body whose state word is OPEN"),
    "twin_without_reopen_barrier": (
        "NO_REOPEN_BARRIER", "right",
        "no rank completes R+1 before the epoch-closing fence, which all reach re-opened"),
    "twin_without_open": (
        "NEVER_OPEN", "right",
        "COMPLETE(v-1) is never the newest once v is agreed; only R-1 may be wrong, see below"),
    # Sanity: the search does reach the end after every crash.
    "never_ends": ("NEVER_ENDS", "wrong", "claims that no run ends after the last crash"),
    # Wrong.
    "no_agreement": ("NO_AGREEMENT", "wrong",
                     "a fast rank gives up the version that a slow rank still needs"),
    "agree_early": ("AGREE_EARLY NO_AGREEMENT", "wrong",
                    "agreed before the slot is written: the minimum may be given up"),
    "recover_max": ("RECOVER_MAX", "wrong", "some rank lacks the maximum"),
    "no_closing_fence": ("NO_CLOSING_FENCE", "wrong", "a put lands after the owner's flush"),
    "copy_no_closing_fence": ("COPY NO_CLOSING_FENCE", "wrong", "a put lands after the copy"),
    "no_remote_flush": ("NO_REMOTE_FLUSH", "wrong", "what others put was never made durable"),
    "no_body_fence": ("NO_BODY_FENCE", "wrong",
                      "the state word may be durable before the data and the body"),
    "no_state_fence": ("NO_STATE_FENCE", "wrong", "acknowledged before it is durable"),
    "state_first": ("STATE_FIRST", "wrong",
                    "COMPLETE beside the body of an abandoned attempt at the same version"),
    "no_reopen": ("NO_REOPEN", "wrong", "an abandoned COMPLETE(R+1) beside new data of R+1"),
    "local_no_reopen_barrier": ("LOCAL NO_REOPEN_BARRIER", "wrong",
                                "one rank completes R+1 before another has re-opened it"),
    "fault_no_reopen": ("FAULT NO_REOPEN_AFTER_FAULT", "wrong",
                        "the failed commit left COMPLETE on the ranks that did not fail"),
    "older_without_open": ("OLDER NEVER_OPEN", "wrong",
                           "the slot of v-1 stays COMPLETE while copy v+1 is written over it"),
    "older_opened_late": ("OLDER OPEN_LATE", "wrong",
                          "the same until the slot is opened"),
    "lag_two_copies": ("LOCAL LAG COPIES=2", "wrong",
                       "the epoch after the version under way is stored over the version before"),
    "lag_no_agreement": ("LOCAL LAG NO_AGREEMENT", "wrong",
                         "a fast rank gives up the version that a slow rank still needs"),
    # ring.pml: three slots, restores of older and of abandoned versions. Epochs are operations.
    "ring": ("", "right", "commits and restores with a ring of three slots"),
    "ring_never_ends": ("NEVER_ENDS", "wrong", "claims that no run ends after the last crash"),
    "ring_parity": ("PARITY", "wrong", "the copy after the head's may be a retained version's"),
    "ring_no_lineage": ("NO_LINEAGE", "wrong",
                        "after a restore and a crash the abandoned version is the newest again"),
    "ring_no_second_agreement": (
        "NO_SECOND_AGREEMENT", "wrong",
        "a restore of a newer version returns before the other rank's word says so"),
    "ring_recover_max": ("RECOVER_MAX", "wrong", "some rank lacks the maximum of the heads"),
    "ring_no_reopen": ("NO_REOPEN", "wrong", "an abandoned COMPLETE beside new data of its number"),
    # lease.pml: two runs of one job and a drain. Epochs: starts of both together.
    "lease": ("", "right", "two runs, kills, lost nodes, and runs that are taken for dead"),
    "lease_not_asked": ("NO_LEASE", "wrong", "a second run starts beside the first"),
    "lease_no_fence": (
        "NO_FENCE", "wrong", "a run that lost the level ends, and nobody finds what it drained"),
    "lease_no_lineage": (
        "NO_LINEAGE", "wrong", "versions of two runs have one place, and one name"),
    "lease_newest_wins": (
        "NEWEST_WINS", "wrong", "a start on whole nodes takes the other run's versions"),
    "lease_clean_all": ("CLEAN_ALL", "wrong", "a run removes the other's versions"),
    "lease_replace": ("REPLACE", "wrong", "two runs take the same number"),
    "lease_no_second_look": (
        "NO_SECOND_LOOK", "wrong",
        "what the holder before drained last, between the look and the lease, is passed over"),
    "lease_late_counts": (
        "LATE_COUNTS LAST=3", "wrong", "what a run drains after it was taken for dead is believed"),
    "lease_halves": ("HALVES", "right", "nodes part, and both halves go on with what they guard"),
    "lease_halves_one_lineage": (
        "HALVES ONE_LINEAGE LAST=3 LIVES=4", "wrong",
        "a half takes what the other one drained, without what it acknowledged itself"),
    "lease_given_up": ("GIVEN_UP", "right", "nodes come back with what a start gave up"),
    "lease_given_up_counts": (
        "GIVEN_UP GIVEN_UP_COUNTS", "wrong", "images of what was given up are taken"),
    # ranks.pml: a pool that another number of ranks goes on with. Epochs: starts of two jobs.
    "ranks": ("", "right", "a change of the number of ranks, beside another job, and its restarts"),
    "ranks_never_ends": ("NEVER_ENDS", "wrong", "claims that no run ends after the last crash"),
    "ranks_record_early": (
        "RECORD_EARLY", "wrong", "the record names files that hold no version yet"),
    "ranks_names_first": ("NAMES_FIRST", "wrong", "a name of the old pool has a new rank's file"),
    "ranks_names_not_synced": (
        "NAMES_NOT_SYNCED", "wrong", "the record is durable before a new file's name is"),
    "ranks_no_commit_fence": (
        "NO_COMMIT_FENCE", "wrong", "the record is durable before the first version is"),
    "ranks_record_not_synced": (
        "RECORD_NOT_SYNCED", "wrong", "acknowledged before the record is durable"),
    "ranks_acknowledged_early": (
        "ACKNOWLEDGED_EARLY", "wrong", "acknowledged before the record names the new pool"),
    "ranks_leaves_late": (
        "LEAVES_LATE", "wrong", "a rank that leaves removes a file that the others count on"),
    "ranks_hollow_stays": (
        "HOLLOW_STAYS", "wrong", "the new pool calls R complete, which lacks arrays"),
    "ranks_no_second_read": (
        "NO_SECOND_READ", "wrong", "old ranks go on with a pool that is not one any more"),
    "ranks_no_record_check": (
        "NO_RECORD_CHECK", "wrong", "the same of another number of ranks"),
    "ranks_names_not_checked": (
        "NO_NAME_CHECK", "wrong",
        "the new pool's files, which a killed job gave no names, are taken for remains"),
    "ranks_locks_not_checked": (
        "NO_LOCK_CHECK LIVES=3 CRASHES=0", "wrong",
        "what is locked was given way to the rank's file since, and a second job has that"),
    "ranks_same_generation": (
        "SAME_GENERATION LIVES=3 CRASHES=0", "wrong", "a file of earlier ranks is no remains"),
    # ranks_nodes.pml: the same on two nodes with a drain, which are lost. Epochs: starts.
    "ranks_nodes": ("", "right", "a change of the number of ranks on nodes, and lost nodes"),
    "ranks_nodes_never_ends": ("NEVER_ENDS", "wrong", "claims that no run ends"),
    "ranks_nodes_not_settled": (
        "NO_SETTLING", "wrong", "a node that has no new record yet hides the new pool"),
    "ranks_nodes_no_agreement": (
        "NO_AGREEMENT", "wrong", "a record on one node, and no version on the other"),
    "ranks_nodes_manifest_early": (
        "MANIFEST_EARLY", "wrong", "the drain shows a version that lacks an image"),
    "ranks_nodes_old_goes_early": (
        "OLD_GOES_EARLY", "wrong", "the old pool is gone before the new one is there"),
    "ranks_nodes_drained_goes_early": (
        "DRAINED_GOES_EARLY", "wrong", "a node is lost before the new version is on both"),
    "ranks_nodes_acknowledged_early": (
        "ACKNOWLEDGED_EARLY", "wrong", "the same of a version that was acknowledged"),
    "ranks_nodes_takes_younger": (
        "TAKES_YOUNGER LIVES=4", "wrong",
        "a node that went on gets the record of those that it went on without"),
    "ranks_nodes_same_generation": (
        "SAME_GENERATION", "wrong", "nodes disagree whose pool it is"),
    # levels.pml: images and guards of two ranks, losses, bringing back. Epochs: the last version.
    # evict.pml: a cache block that is evicted and brought back. Epochs are accesses of each user.
    "evict": ("CRASHES=0", "right", "a block makes room and is brought in beside accesses"),
    "evict_death": ("CRASHES=1", "right", "the same, and one of the processes dies"),
    "evict_never_ends": ("CRASHES=1 NEVER_ENDS", "wrong", "claims that no run ends"),
    "evict_no_barrier": (
        "CRASHES=1 NO_BARRIER", "wrong",
        "a mark that was stored before anybody evicted is not seen yet"),
    "evict_no_exchange": (
        "CRASHES=1 NO_EXCHANGE", "wrong", "the same of one that was stored since"),
    "evict_looks_first": (
        "CRASHES=1 LOOKS_FIRST", "wrong", "the state is from before the mark"),
    "evict_marks_first": (
        "CRASHES=1 MARKS_FIRST", "wrong", "an access begins after the look at the marks"),
    "evict_room_first": (
        "CRASHES=1 ROOM_FIRST", "wrong",
        "a death leaves a block that is present without its bytes"),
    "evict_passing_not_awaited": (
        "CRASHES=1 PASSING_NOT_AWAITED", "wrong",
        "a write goes to the file after that was read"),
    "levels": ("", "right", "versions are taken, lost with a node and brought back"),
    "levels_rename_early": (
        "RENAME_EARLY", "right",
        "with two ranks a file that takes its place early is refused beside an old one"),
    "levels_no_release": ("NO_RELEASE", "wrong", "a place is stored to while it is copied"),
    "levels_one_file": ("ONE_FILE", "wrong", "the newest whole version is stored over"),
    "levels_two_files": (
        "TWO_FILES CRASHES=3 LAST=3", "wrong",
        "a crash while a version is protected leaves it in two files: the next needs a third"),
    "levels_take_early": (
        "TAKE_EARLY TWO_FILES", "wrong",
        "one is taken before all have the one before; a third file would bear it"),
    "levels_state_first": ("STATE_FIRST", "wrong", "an image is believed before it is whole"),
    "levels_guard_first": (
        "GUARD_FIRST", "wrong",
        "a node that is lost in an exchange leaves a guard that is believed and holds the version "
        "before"),
    "levels_guard_not_cleared": (
        "GUARD_NOT_CLEARED CRASHES=3 LAST=3", "wrong",
        "the same of a guard that still says which version it held, half stored over"),
    "levels_source_not_kept": (
        "SOURCE_NOT_KEPT", "wrong",
        "a second loss finds that what the first was rebuilt from was stored over"),
    "levels_no_generation": (
        "NO_GENERATION", "wrong", "ids are given twice, and a version is not protected anew"),
    "levels_moves": ("MOVES NO_PUT", "right", "ranks change places, and change back"),
    "levels_moves_any_file": (
        "MOVES NO_PUT ANY_FILE", "wrong",
        "what a rank left behind when it moved is opened, because it is on the node"),
    "levels_moves_same_generation": (
        "MOVES NO_PUT KEEPS_GENERATION", "wrong", "what a rank left behind is as young"),
    "levels_moves_put": (
        "MOVES", "right",
        "images count more than a version that a rank has left, where others may have put since"),
    "levels_moves_put_pool": (
        "MOVES POOL_IF_AHEAD", "wrong",
        "beside an older file of a rank that lost its newest, the other rank's goes back to a "
        "version into whose place the lost rank has put"),
    "levels_restore": (
        "RESTORE NO_RETURN", "right", "a restore, without nodes that come back"),
    "levels_restore_moves": (
        "RESTORE MOVES NO_PUT", "right", "a restore, and ranks that change places"),
    "levels_restore_no_protection": (
        "RESTORE NO_RETURN NO_PROTECTION_AFTER_RESTORE", "wrong",
        "the version that was restored is lost with a node"),
    "levels_restore_not_cleared_at_restart": (
        "RESTORE NO_RETURN NO_CLEARING_AT_RESTART", "wrong",
        "a crash in a restore leaves the abandoned version on the rank that had not cleared it"),
    "levels_restore_no_clearing": (
        "RESTORE NO_RETURN NO_CLEARING NO_CLEARING_AT_RESTART", "wrong",
        "an abandoned version is brought back"),
}


# In which order of processes and of their choices the search meets a counterexample in a tenth of
# the time.
ORDERS = {
    "levels_moves_put_pool": ("REVERSE", "T_REVERSE"),
    "levels_source_not_kept": ("T_REVERSE",),
    "levels_take_early": ("T_REVERSE",),
}


# Right ones with a short search, besides the long one of `make soak`; whose only search takes long.
# Right without steps that the property does not need: of `make soak`.
NOT_NEEDED = ("twin_with_data_fence", "twin_without_reopen_barrier", "twin_without_open",
              "copy_older_opened_at_commit", "twin_fault")
LEVELS_QUICK = {"levels": 3, "levels_restore": 2}  # epochs
RANKS_QUICK = ("ranks_names_first", "ranks_no_commit_fence", "ranks_names_not_checked",
               "ranks_nodes_no_agreement", "ranks_nodes_not_settled")  # of the wrong ones
LONG = ("evict_death", "lease_given_up", "lease_late_counts",
        "levels_restore_not_cleared_at_restart")


def searches_of(variant, expected):
    """Yields (suffix, whether of `make soak` only, words) for each search that ctest has.

    Of commit.pml and ring.pml with 2 ranks and two crashes, the three schemes also with 3 and one.
    ranks.pml has jobs of up to 2 ranks, and one failure of the power.
    What is wrong is found with 2 ranks, so that 3 are searched on request only, as is what takes
    gigabytes and minutes. Two of three of what is wrong are of `make soak`, as models change
    seldom. 4 ranks with two crashes are out of reach: more than 6e7 states after 2 epochs.
    """
    model = model_of(variant)
    right = expected == "right"
    if model == "levels.pml" and (right or variant in LONG):
        yield "n2.e4", True, "2"
        if variant in LEVELS_QUICK:
            epochs = LEVELS_QUICK[variant]
            yield f"n2.e{epochs}", False, f"2 --epochs {epochs}"
        return
    if model == "lease.pml" and right and variant not in LONG:
        yield "n2.e2", False, "2 --epochs 2"
    if variant == "ranks":
        yield "n2.e2", False, "2 --epochs 2 --crashes 1"
        yield "n2.e3", True, "2 --epochs 3 --crashes 1 --compact"
        return
    if variant == "ranks_nodes":
        yield "n2.e3", False, "2"
        yield "n2.e4", True, "2 --epochs 4"
        return
    if variant == "ring":
        yield "n3.one_crash", True, "3 --crashes 1"
        yield "n2.e3", False, "2 --epochs 3 --crashes 1"
    slow = variant in LONG or variant == "ring" or (model == "lease.pml" and right)
    slow = slow or (model.startswith("ranks") and variant not in RANKS_QUICK)
    slow = slow or variant in NOT_NEEDED or (not right and place_of(variant) % 3 != 0)
    yield "n2", slow, "2"
    if variant == "lease":
        yield "n2.e4", True, "2 --epochs 4"
    if model in ("commit.pml", "ring.pml") and variant != "ring":
        yield "n3", True, "3"
    if variant in ("twin", "copy", "local"):
        yield "n3.one_crash", False, "3 --crashes 1"
        yield "n4.e4.one_crash", True, "4 --epochs 4 --crashes 1"
        yield "n3.e4", True, "3 --epochs 4 --compact"


def place_of(variant):
    """Among what is wrong, from 0."""
    wrong = [name for name, (_, expected, _) in VARIANTS.items() if expected == "wrong"]
    return wrong.index(variant)


def model_of(variant):
    for model in ("levels", "lease", "ranks_nodes", "ranks"):
        if variant.startswith(model):
            return f"{model}.pml"
    if variant.startswith("evict"):
        return "evict.pml"
    return "ring.pml" if variant.startswith("ring") else "commit.pml"


def run(command, folder):
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    return done.stdout + done.stderr, done.returncode


def build(folder, variant, defines, big, compact):
    flags = [f"-D{name}" for name in defines]
    output, failed = run(["spin", "-a", *flags, str(FOLDER / model_of(variant))], folder)
    if failed or not (folder / "pan.c").exists():
        sys.exit(f"spin -a failed:\n{output}")
    # Optimising takes longer than a small search. Clang takes half of GCC's time without it.
    level = "-O2" if big else "-O0"
    compiler = shutil.which("clang-19") or "cc"
    flags = [level, "-DSAFETY", *(f"-D{word}" for word in ORDERS.get(variant, ())),
             *(["-DHC4"] if compact else [])]
    output, failed = run([compiler, "-w", *flags, "-o", "pan", "pan.c"], folder)
    if failed:
        sys.exit(f"compiling the verifier failed:\n{output}")


def number(pattern, text):
    found = re.search(pattern, text)
    return int(found.group(1)) if found else -1


def verify(folder, compact, may_stop):
    """Returns (verdict, states, seconds); 'unfinished' when the search was cut short."""
    start = time.monotonic()
    # A process that has died stands where it stood.
    options = ["-m1000000", "-w28" if compact else "-w23"] + (["-E"] if may_stop else [])
    output, code = run(["./pan", *options], folder)
    seconds = time.monotonic() - start
    errors = number(r"errors: (\d+)", output)
    cut_short = re.search("too small|out of memory|Search not completed", output)
    if errors > 0 and "assertion violated" in output:
        verdict = "wrong"
    elif errors == 0 and not cut_short:
        verdict = "right"
    else:
        verdict = "unfinished"
        print(f"{output}\nexit code of the search: {code}")
    stored = re.search(r"([\d.e+]+) states, stored", output)
    return verdict, int(float(stored.group(1))) if stored else -1, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("variant", nargs="?", choices=VARIANTS)
    parser.add_argument("ranks", nargs="?", type=int, default=2)
    parser.add_argument("--epochs", type=int,
                        help="default: 3; 2 of ring.pml and ranks.pml, 4 of levels.pml, "
                        "1 of evict.pml")
    parser.add_argument("--crashes", type=int, default=2)
    parser.add_argument("--compact", action="store_true", help="store hashes of states")
    parser.add_argument("--trace", action="store_true", help="print the counterexample")
    parser.add_argument("--list", action="store_true", help="print the variants")
    parser.add_argument("--searches", action="store_true", help="print the entries of ctest")
    options = parser.parse_args()
    if options.searches:
        for name, (_, expected, _) in VARIANTS.items():
            for suffix, soak, words in searches_of(name, expected):
                print(f"{name}.{suffix} {'SOAK' if soak else 'TEST'} {name} {words}")
        return 0
    if options.list or not options.variant:
        for name, (_, expected, reason) in VARIANTS.items():
            print(f"{name};{expected};{reason}")
        return 0
    names, expected, _ = VARIANTS[options.variant]
    model = model_of(options.variant)
    steps, usual = {"ring.pml": ("OPS", 2), "evict.pml": ("OPS", 1),
                    "levels.pml": ("LAST", 4), "lease.pml": ("LIVES", 3),
                    "ranks.pml": ("LIVES", 2),
                    "ranks_nodes.pml": ("LIVES", 3)}.get(model, ("E", 3))
    if model in ("levels.pml", "evict.pml", "lease.pml", "ranks_nodes.pml") and options.ranks != 2:
        parser.error(f"{model} is a model of 2 ranks")
    epochs = options.epochs or usual
    defines = names.split()
    given = {name.split("=")[0] for name in defines}
    defines += [f"{name}={value}" for name, value in (
        ("N", options.ranks), (steps, epochs), ("CRASHES", options.crashes)) if name not in given]
    if expected == "wrong":
        defines.append("WRONG")
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        big = expected == "right" and (
            options.ranks > 3 or options.ranks > 2 and options.crashes > 1
            or options.variant == "evict_death" or options.compact
            or model == "lease.pml" and epochs > 2
            or model in ("levels.pml", "ranks_nodes.pml") and epochs > 3)
        build(folder, options.variant, defines, big, options.compact)
        may_stop = model in ("evict.pml", "lease.pml", "ranks.pml", "ranks_nodes.pml")
        verdict, states, seconds = verify(folder, options.compact, may_stop)
        if options.trace and verdict == "wrong":
            flags = [f"-D{define}" for define in defines]
            replay = ["spin", "-k", f"{model}.trail", "-p", *flags, str(FOLDER / model)]
            print(run(replay, folder)[0])
    print(f"{options.variant} ranks={options.ranks} epochs={epochs} "
          f"crashes={options.crashes}: {verdict}, {states} states, {seconds:.2f} s")
    if verdict != expected:
        print(f"expected: {expected}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
