/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ranks.pml: a pool goes on with another number of ranks (src/pool/rank_change.hpp, whose steps 1
 * to 6 these are).
 *
 * Two jobs start on one directory, one after the other and beside each other, LIVES times in all,
 * each time with a number of ranks of 1 to N that is drawn. A job opens the pool if it is of its
 * number of ranks, and changes it otherwise. It may be killed at any step of any rank, or leave
 * before its first commit, or between two ranks' arrivals at an agreement; and the power may fail,
 * up to CRASHES times.
 *
 * State
 *   names     own[r] and next[r], of rank r: which file has the name rank-r, and rank-r.next. A
 *             name has a cached and a durable value; a sync of the directory makes all durable.
 *   record    "job": a number of ranks and a generation, cached and durable
 *   file      the number of ranks and the generation in its header; the newest version that is
 *             whole in it, cached and durable; whether R is called complete in it and lacks
 *             something (pool.R5); who has it locked. It lives as long as it has a name, or is open.
 *   version   a number that no other one has, in all files that one commit stored to
 *
 * Steps and where they are
 *   settle    settle_name()                    rank_files.cpp
 *   look      look(), agree_on_situation()     pool_directory.cpp
 *   open      open_checked()                   pool_directory.cpp
 *   remains   remove_remains()                 rank_files.cpp
 *   1         OldRanks::open()                 old_ranks.cpp
 *   2         RankChange::make_file()          rank_change.cpp
 *   3, 4      Pool::restart_changed(), Pool::commit()   pool_ranks.cpp, pool.cpp
 *   5, 6      Pool::finish_change(), RankChange::finish()
 *   leave     RankChange::~RankChange()
 *
 * Between two agreements the ranks of a job do their steps in every order. Commits of a pool that
 * is not changed are one step: commit.pml is about them. Asserted is that
 *
 *   - a start that is alone is not refused, so the old or the new pool is there, whole
 *   - the files that it opens are of one version, of its number of ranks, and that version is not
 *     older than the newest that was acknowledged
 *   - nothing else has a name when remains were removed
 *   - no file that is the pool's calls a version complete that lacks something
 *   - not two jobs have a version chosen at a time
 *
 * After a power failure the names of each rank are the cached or the durable ones, as is the
 * record, in every combination; a file's bytes likewise. Cached files (pool.R9) are not modelled.
 * Nodes with directories of their own are in ranks_nodes.pml.
 */
#ifndef N
#define N 2       /* ranks of a job at most */
#endif
#ifndef LIVES
#define LIVES 3   /* starts of both jobs together */
#endif
#ifndef CRASHES
#define CRASHES 1 /* failures of the power */
#endif
#define FILES 4   /* of a rank at a time */
#define NONE 0

#define AT(r, k) file[(r) * FILES + (k) - 1]

typedef File {
  byte ranks;    /* in its header; 0: it is not whole */
  byte gen;
  byte version, durable;
  bit hollow, durable_hollow;
  byte lock      /* 1 + which job; 0: nobody */
};
File file[N * FILES];

byte own[N], next[N], dur_own[N], dur_next[N];
byte rec_ranks, rec_gen, dur_ranks, dur_gen;

byte versions;      /* that were begun */
byte acknowledged;
byte lives, crashes;

/* Jobs. */
bit alive[2], alone[2], chosen[2], killed[2];
byte open_file[2 * N];  /* of its ranks */
byte sub[2 * N];        /* steps that a rank has done since the last agreement */
bit made[2 * N];        /* its new file, which it removes if it leaves */

/* Not part of a state: of one step each. */
hidden byte i, k, yes;

inline sync() {
  for (i : 0 .. N - 1) {
    dur_own[i] = own[i];
    dur_next[i] = next[i]
  };
  dur_ranks = rec_ranks;
  dur_gen = rec_gen
}

#define OPENS(x, f, k) (open_file[(x) * N + (f)] == (k))
#define NAMED(f, k) (own[f] == (k) || next[f] == (k))
#define KNOWN(f, k) (NAMED(f, k) || dur_own[f] == (k) || dur_next[f] == (k) || \
                     OPENS(0, f, k) || OPENS(1, f, k) || AT(f, k).lock)

/* A file without a name that nobody has open is gone. */
inline forget_files(f) {
  for (k : 1 .. FILES) {
    if
    :: !KNOWN(f, k) ->
       AT(f, k).ranks = 0; AT(f, k).gen = 0; AT(f, k).version = 0; AT(f, k).durable = 0;
       AT(f, k).hollow = 0; AT(f, k).durable_hollow = 0
    :: else
    fi
  };
  k = 0
}

/* In `k`: one that is free. */
inline find_free(f) {
  k = 1;
  do
  :: KNOWN(f, k) -> k++
  :: else -> break
  od;
  assert(k <= FILES)
}

/* current_rank_file(): the file under the second name is the rank's. */
#define IS_NEXT(f) \
  (rec_gen != 0 && next[f] != NONE && AT(f, next[f]).ranks == rec_ranks && \
   AT(f, next[f]).gen >= rec_gen)

inline release(x) {
  for (i : 0 .. N * FILES - 1) {
    if
    :: file[i].lock == x + 1 -> file[i].lock = 0
    :: else
    fi
  };
  for (i : 0 .. N - 1) {
    open_file[x * N + i] = NONE;
    made[x * N + i] = 0;
    sub[x * N + i] = 0
  };
  for (i : 0 .. N - 1) { forget_files(i) };
  chosen[x] = 0;
  alive[x] = 0;
  alone[x] = 0
}

/* In `r`: one of the first n ranks that has not done this many steps. */
#define LACKS(q, n, steps) ((n) > (q) && sub[x * N + (q)] < (steps))
#if N == 2
#define ALL_DID(n, steps) (!LACKS(0, n, steps) && !LACKS(1, n, steps))
inline choose(n, steps) {
  if
  :: LACKS(0, n, steps) -> r = 0
  :: LACKS(1, n, steps) -> r = 1
  fi
}
#else
#define ALL_DID(n, steps) (!LACKS(0, n, steps) && !LACKS(1, n, steps) && !LACKS(2, n, steps))
inline choose(n, steps) {
  if
  :: LACKS(0, n, steps) -> r = 0
  :: LACKS(1, n, steps) -> r = 1
  :: LACKS(2, n, steps) -> r = 2
  fi
}
#endif
#define SUB sub[x * N + r]
#define FILE open_file[x * N + r]
#define MADE made[x * N + r]
#if N == 2
#define MADE_ANY (made[x * N] || made[x * N + 1])
#else
#define MADE_ANY (made[x * N] || made[x * N + 1] || made[x * N + 2])
#endif

inline agree() {
  for (i : 0 .. N - 1) { sub[x * N + i] = 0 };
  r = 0
}

#define FREE_FOR(l) ((l) == 0 || (l) == x + 1)

/* A rank that waits for a lock may give up. */
#define REFUSE goto refused

/* is_remains() of the names of rank f. */
inline remove_remains_of(f) {
  if
  :: next[f] != NONE && !(f < rec_ranks && IS_NEXT(f)) -> next[f] = NONE
  :: else
  fi;
  if
  :: own[f] != NONE && rec_gen != 0 && AT(f, own[f]).ranks != rec_ranks &&
     AT(f, own[f]).gen < rec_gen -> own[f] = NONE
  :: else
  fi;
  forget_files(f)
}

/* In one step, as none of what it leaves if it is killed is looked at. */
inline remove_remains_of_all() {
  for (r : 0 .. N - 1) { remove_remains_of(r) };
  r = 0
}

inline remove_remains() {
  remove_remains_of_all();
  for (i : 0 .. N - 1) {
    assert(next[i] == NONE);
    assert(i < rec_ranks || own[i] == NONE)
  }
}

/* Which version the files named `own` have. In `base`. */
inline choose_version(n) {
  base = AT(0, own[0]).version;
  for (i : 0 .. n - 1) {
    assert(own[i] != NONE && AT(i, own[i]).ranks == n);
    assert(AT(i, own[i]).version == base);
    assert(!AT(i, own[i]).hollow)
  };
  assert(base >= acknowledged);
  assert(!chosen[1 - x]);
  chosen[x] = 1
}

proctype Job(byte x) {
  byte m, r;
  byte seen_ranks, seen_gen;
  byte gens[N];   /* that each rank has read in the record */
  byte gen;       /* of the new pool */
  byte base;      /* R */
  byte fresh;     /* the version of the first commit */
end_of_lives:
  do
  :: {
       atomic {
         lives < LIVES ->
         lives++;
         if
         :: m = 1
         :: m = 2
#if N > 2
         :: m = 3
#endif
         fi;
         alive[x] = 1;
         alone[x] = !alive[1 - x];
         alone[1 - x] = 0;
         seen_ranks = rec_ranks;
         seen_gen = rec_gen
       };
       /* settle: names that are not their own yet. The record is what was read before. */
       do
       :: atomic {
            choose(seen_ranks, 2);
            if
            :: SUB == 0 ->
               if
               :: rec_ranks == seen_ranks && rec_gen == seen_gen && IS_NEXT(r) ->
                  gens[r] = next[r];
                  SUB = 1
               :: else -> SUB = 2
               fi
            :: SUB == 1 ->
               if
               :: FREE_FOR(AT(r, gens[r]).lock) ->
                  if
                  :: rec_ranks == seen_ranks && rec_gen == seen_gen && next[r] == gens[r] ->
                     own[r] = next[r]; next[r] = NONE; sync()
                  :: else
                  fi;
                  SUB = 2;
                  gens[r] = 0;
                  forget_files(r)
               :: !FREE_FOR(AT(r, gens[r]).lock) -> REFUSE
               fi
            fi
          }
       :: atomic { ALL_DID(seen_ranks, 2) -> agree(); break }
       od;
       /* look */
       atomic {
         seen_ranks = rec_ranks;
         seen_gen = rec_gen;
         for (i : 0 .. N - 1) { gens[i] = 0 }
         if
         :: seen_ranks != m -> goto change
         :: else
         fi
       };
       /* open, of this number of ranks */
       do
       :: atomic {
            choose(m, 2);
            if
            :: SUB == 0 ->
               if
               :: rec_ranks != m || own[r] == NONE -> REFUSE
               :: else -> gens[r] = rec_gen; FILE = own[r]; SUB = 1
               fi
            :: SUB == 1 ->
               if
               :: AT(r, FILE).lock == 0 ->
                  if
                  :: !NAMED(r, FILE) -> REFUSE
                  :: AT(r, FILE).ranks != m || AT(r, FILE).gen < gens[r] -> REFUSE
#ifndef NO_SECOND_READ
                  :: gens[r] != rec_gen -> REFUSE
#endif
                  :: else -> AT(r, FILE).lock = x + 1; SUB = 2
                  fi
               :: AT(r, FILE).lock != 0 -> REFUSE
               fi
            fi
          }
       :: atomic {
            ALL_DID(m, 2) ->
            agree();
            for (i : 0 .. N - 1) { gens[i] = 0 };
            break
          }
       od;
       atomic {
         remove_remains();
         choose_version(m)
       };
       goto commits;

change:
       /* 1: all old files are locked, the first one before the others. */
       do
       :: atomic {
            choose((sub[x * N] < 2 -> 1 : seen_ranks), 2);
            if
            :: SUB == 0 ->
               if
               :: own[r] == NONE -> REFUSE
               :: else -> gens[r] = own[r]; SUB = 1
               fi
            :: SUB == 1 ->
               if
               :: AT(r, gens[r]).lock == 0 && own[r] == gens[r] ->
                  AT(r, gens[r]).lock = x + 1;
                  gens[r] = 0;
                  SUB = 2
               :: AT(r, gens[r]).lock != 0 || own[r] != gens[r] -> REFUSE
               fi
            fi
          }
       :: atomic { sub[x * N] == 2 && ALL_DID(seen_ranks, 2) -> agree(); break }
       od;
       atomic {
         yes = 0;
         for (i : 0 .. seen_ranks - 1) { yes = yes || IS_NEXT(i) };
         if
#ifndef NO_RECORD_CHECK
         :: rec_ranks != seen_ranks || rec_gen != seen_gen -> REFUSE
#endif
#ifndef NO_NAME_CHECK
         :: yes -> REFUSE
#endif
         :: else
         fi
       };
       atomic {
         yes = 0;
         for (i : 0 .. seen_ranks - 1) {
           yes = yes || own[i] == NONE;
           if
           :: own[i] != NONE -> yes = yes || AT(i, own[i]).lock != x + 1
           :: else
           fi
         };
         if
#ifndef NO_LOCK_CHECK
         :: yes -> REFUSE
#endif
         :: else
         fi
       };
       atomic {
         remove_remains();
         choose_version(seen_ranks);
#ifdef SAME_GENERATION
         gen = 1;
#else
         gen = seen_gen;
         for (i : 0 .. seen_ranks - 1) {
           gen = (AT(i, own[i]).gen > gen -> AT(i, own[i]).gen : gen)
         };
         gen++;
#endif
         versions++;
         fresh = versions
       };
       /* 2: the new files, and 3: R in them. */
       do
       :: atomic {
            choose(m, 4);
            if
            :: SUB == 0 ->
               next[r] = NONE;
               forget_files(r);
               find_free(r);
               next[r] = k;
               FILE = k;
               AT(r, k).lock = x + 1;
               MADE = 1;
               k = 0
            :: SUB == 1 ->
               AT(r, FILE).ranks = m;
               AT(r, FILE).gen = gen;
               AT(r, FILE).version = base;
               AT(r, FILE).durable = base
            :: SUB == 2 ->
#ifndef NAMES_NOT_SYNCED
               sync()
#endif
            :: SUB == 3 ->
               AT(r, FILE).hollow = 1;
               AT(r, FILE).durable_hollow = 1
            fi;
            SUB++
          }
       :: MADE_ANY -> goto leave
       :: atomic { ALL_DID(m, 4) -> agree(); break }
       od;
#ifdef RECORD_EARLY
       goto record;
first_commit:
#endif
       /* 4: the first commit. The record follows the agreement that all have done it. */
       do
       :: atomic {
            choose(m, 2);
            if
            :: SUB == 0 -> AT(r, FILE).version = fresh
            :: SUB == 1 ->
#ifndef NO_COMMIT_FENCE
               AT(r, FILE).durable = fresh
#endif
            fi;
            SUB++
          }
       :: MADE_ANY -> goto leave
       :: atomic { ALL_DID(m, 2) -> agree(); break }
       od;
#ifdef ACKNOWLEDGED_EARLY
       atomic { acknowledged = fresh };
#endif
#ifdef RECORD_EARLY
       goto names;
#endif
       /* R goes; pool.R6: the file stays from here on. */
       do
       :: atomic {
            choose(m, 2);
            if
            :: SUB == 0 ->
               AT(r, FILE).hollow = 0;
#ifndef HOLLOW_STAYS
               AT(r, FILE).durable_hollow = 0
#endif
            :: SUB == 1 ->
#ifndef LEAVES_LATE
               MADE = 0
#endif
            fi;
            SUB++
          }
       :: MADE_ANY -> goto leave
       :: atomic { ALL_DID(m, 2) -> agree(); break }
       od;
#ifdef NAMES_FIRST
       goto names;
#endif
record:
       /* 5 */
       atomic { rec_ranks = m; rec_gen = gen };
#ifdef LEAVES_LATE
       if
       :: skip
       :: MADE_ANY -> goto leave
       fi;
#endif
#ifdef RECORD_NOT_SYNCED
       skip;
#else
       atomic { sync() };
#endif
#ifdef NAMES_FIRST
       goto done;
#endif
#ifdef RECORD_EARLY
       goto first_commit;
#endif
names:
       /* 6 */
       do
       :: atomic {
            choose(m, 2);
            if
            :: SUB == 0 -> own[r] = next[r]; next[r] = NONE; forget_files(r)
            :: SUB == 1 ->
#ifndef RECORD_NOT_SYNCED
               sync()
#endif
            fi;
            SUB++
          }
       :: atomic { ALL_DID(m, 2) -> agree(); break }
       od;
#ifdef NAMES_FIRST
       goto record;
done:
#endif
       atomic { remove_remains_of_all() };
       atomic {
         /* The first commit returns. The old files have their locks until here. */
         acknowledged = fresh;
         base = fresh;
         for (i : 0 .. N * FILES - 1) {
           yes = 0;
           for (k : 0 .. m - 1) {
             yes = yes || i == k * FILES + open_file[x * N + k] - 1
           };
           if
           :: file[i].lock == x + 1 && !yes -> file[i].lock = 0
           :: else
           fi
         };
         k = 0;
         for (i : 0 .. N - 1) { forget_files(i); made[x * N + i] = 0 }
       };

commits:
       if
       :: atomic {
            versions++;
            for (i : 0 .. m - 1) {
              AT(i, open_file[x * N + i]).version = versions;
              AT(i, open_file[x * N + i]).durable = versions
            };
            acknowledged = versions
          }
       :: skip
       fi;
       goto over;

leave:
       /* Some rank has left, so no agreement follows. Each removes its file, or is killed. */
       do
       :: atomic {
            if
            :: made[x * N] -> r = 0
            :: made[x * N + 1] -> r = 1
#if N > 2
            :: made[x * N + 2] -> r = 2
#endif
            fi;
            next[r] = NONE;
            MADE = 0
          }
       :: !MADE_ANY -> break
       od;
       goto over;
refused:
       atomic { assert(!alone[x]) };
over:
       atomic {
         release(x);
         m = 0; r = 0; seen_ranks = 0; seen_gen = 0; gen = 0; base = 0; fresh = 0;
         for (i : 0 .. N - 1) { gens[i] = 0 }
       }
     } unless {
       atomic {
         killed[x] ->
         killed[x] = 0;
         m = 0; r = 0; seen_ranks = 0; seen_gen = 0; gen = 0; base = 0; fresh = 0;
         for (i : 0 .. N - 1) { gens[i] = 0 }
       }
     }
  od
}

/* The power fails. */
inline lose_caches() {
  for (i : 0 .. N * FILES - 1) {
    if
    :: file[i].version != file[i].durable ->
       if
       :: file[i].version = file[i].durable
       :: file[i].durable = file[i].version
       fi
    :: else
    fi;
    if
    :: file[i].hollow != file[i].durable_hollow ->
       if
       :: file[i].hollow = file[i].durable_hollow
       :: file[i].durable_hollow = file[i].hollow
       fi
    :: else
    fi
  };
  for (i : 0 .. N - 1) {
    if
    :: own[i] != dur_own[i] || next[i] != dur_next[i] ->
       if
       :: own[i] = dur_own[i]; next[i] = dur_next[i]
       :: dur_own[i] = own[i]; dur_next[i] = next[i]
       fi
    :: else
    fi
  };
  if
  :: rec_ranks != dur_ranks || rec_gen != dur_gen ->
     if
     :: rec_ranks = dur_ranks; rec_gen = dur_gen
     :: dur_ranks = rec_ranks; dur_gen = rec_gen
     fi
  :: else
  fi
}

active proctype Machine() {
  atomic {
    rec_ranks = 2;
    dur_ranks = 2;
    for (i : 0 .. 1) {
      own[i] = 1;
      dur_own[i] = 1;
      AT(i, 1).ranks = 2
    };
    run Job(0);
    run Job(1)
  };
end_of_crashes:
  do
  :: atomic { alive[0] && !killed[0] -> killed[0] = 1; release(0) }
  :: atomic { alive[1] && !killed[1] -> killed[1] = 1; release(1) }
  :: atomic {
       crashes < CRASHES && (alive[0] || alive[1]) && !killed[0] && !killed[1] ->
       crashes++;
       killed[0] = alive[0];
       killed[1] = alive[1];
       lose_caches();
       release(0);
       release(1)
     }
#ifdef NEVER_ENDS
  :: atomic { lives == LIVES && crashes == CRASHES && !alive[0] && !alive[1] -> assert(false) }
#endif
  od
}
