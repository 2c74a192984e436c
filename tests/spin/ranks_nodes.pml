/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ranks_nodes.pml: another number of ranks where each node has a directory of its own
 * (src/levels/other_ranks.hpp; src/pool/rank_change.hpp, pool.R7). ranks.pml has the steps within
 * one directory, and failures of the power.
 *
 * Two nodes, of which a job has one, or both, with a rank on each; and a drain. Jobs follow each
 * other, LIVES of them. Each may be killed at any step of any rank, and between them a node may be
 * lost, or not be one of the next job's and come back later.
 *
 * State
 *   node      a record (ranks, generation); the rank's file and its next one (ranks, generation,
 *             newest version); the image and the guard that it has, of the version `image`
 *   drain     the newest version whose manifest is there, of how many ranks, and which of their
 *             images are there
 *   version   a number that no other one has
 *
 * Steps and where they are
 *   settle    settle_records()                       other_ranks.cpp
 *   choose    Restart::change_ranks(), fetch_files()  restart.cpp
 *   bring     drain_held()                           other_ranks.cpp, into the drain
 *   2 to 6    as in ranks.pml; 5 is a rename on each node
 *   protect   Levels::changed()                      levels_open.cpp, before the commit returns
 *
 * What images and leases do by themselves is in levels.pml and lease.pml; here bringing back a pool
 * of the same number of ranks is one step, as are later commits. Two jobs at a time are not here:
 * the lease of the drain excludes them. Asserted is that
 *
 *   - a version is found, of which all ranks have what belongs to it
 *   - it is not older than the newest that was acknowledged, unless a node was lost since; than
 *     the newest that was on both nodes, if one was; than the newest that was drained
 *   - a start with both nodes is refused only if one of them has gone on without the other
 */
#ifndef LIVES
#define LIVES 4
#endif
#define NONE 0

typedef Node {
  byte rec_ranks, rec_gen;
  byte ranks, gen, version;                 /* of the file */
  byte age;                                 /* of the life that stored it */
  byte next_ranks, next_gen, next_version;
  byte image
};
Node node[2];
byte drained, drained_ranks;
byte safe;                   /* the newest that was ever drained */
bit piece[2];                /* image of each rank in the drain, of the version that is brought */
byte bringing;               /* which one that is */
bit stale[2];                /* the others have gone on without the node */

byte versions, clock, lives;
byte acknowledged, guarded;
byte losses;                 /* since `guarded` was; 2: or more */
bit lost_any;                /* since `acknowledged` was */

byte m, first;               /* the job's ranks, and the node of its rank 0 */
byte base, fresh, gen;
byte sub[2];
bit alive, killed;
hidden byte i, n, newest, rr, gg, held, yes;

#define HAS(q) (alive && (m == 2 || (q) == first))
#define RANK(q) ((q) == first -> 0 : 1)

inline note_loss() {
  losses = (losses == 2 -> 2 : losses + 1);
  lost_any = 1
}

inline clear_node(q) {
  node[q].rec_ranks = 0; node[q].rec_gen = 0;
  node[q].ranks = 0; node[q].gen = 0; node[q].version = 0; node[q].age = 0;
  node[q].next_ranks = 0; node[q].next_gen = 0; node[q].next_version = 0;
  node[q].image = 0;
  stale[q] = 0
}

inline choose_node(steps) {
  if
  :: HAS(0) && sub[0] < steps -> n = 0
  :: HAS(1) && sub[1] < steps -> n = 1
  fi
}
#define ALL_DID(steps) (!(HAS(0) && sub[0] < (steps)) && !(HAS(1) && sub[1] < (steps)))
inline agree() { sub[0] = 0; sub[1] = 0 }

/* In rr, gg: the record of the highest generation on the job's nodes. */
inline find_record() {
  rr = 0; gg = 0;
  for (i : 0 .. 1) {
    if
    :: HAS(i) && node[i].rec_ranks != 0 && (rr == 0 || node[i].rec_gen > gg) ->
       rr = node[i].rec_ranks; gg = node[i].rec_gen
    :: else
    fi
  }
}

/* The same of the lowest rank that has one; all have the same when they are settled. */
inline own_record() {
  rr = 0; gg = 0;
  for (i : 0 .. 1) {
    if
    :: HAS(i) && node[i].rec_ranks != 0 && rr == 0 ->
       rr = node[i].rec_ranks; gg = node[i].rec_gen
    :: else
    fi
  }
}

#ifdef TAKES_YOUNGER
#define IS_YOUNGER(q, than) false
#else
#define IS_YOUNGER(q, than) (node[q].age > (than))
#endif
#define IS_FILE(q) (HAS(q) && node[q].ranks == rr && rr != 0 && node[q].gen >= gg)

/* In `held`: the version of the pool's files, if all are there; else NONE. In `yes` that they
 * are. */
inline find_held() {
  yes = 0; held = NONE;
  if
  :: rr == 2 && IS_FILE(0) && IS_FILE(1) ->
     yes = 1;
     assert(node[0].version == node[1].version);
     held = node[0].version
  :: rr == 1 && (IS_FILE(0) || IS_FILE(1)) ->
     yes = 1;
     held = (IS_FILE(0) && (!IS_FILE(1) || node[0].gen > node[1].gen) -> node[0].version :
                                                                         node[1].version)
  :: else
  fi
}

/* In `base`: what counts. */
inline choose_version() {
  own_record();
  find_held();
  newest = (yes -> held : 0);
  for (i : 0 .. 1) {
    newest = (HAS(i) && rr == 2 && node[i].image > newest -> node[i].image : newest)
  };
  newest = (drained > newest -> drained : newest);
  base = newest;
  assert(base >= safe);
  assert(losses > 1 || base >= guarded);
  assert(lost_any || base >= acknowledged)
}

/* Others that a job which makes something does not have are of an older life from now on. */
inline leave_behind() {
  if
  :: m == 1 -> stale[1 - first] = 1
  :: else -> stale[0] = 0; stale[1] = 0
  fi
}

inline acknowledge(version) {
  acknowledged = version;
  lost_any = 0
}

/* Image and guard on both nodes. */
inline guard(version) {
  node[0].image = version;
  node[1].image = version;
  guarded = version;
  losses = 0
}

inline forget() { rr = 0; gg = 0; held = 0; yes = 0; newest = 0; n = 0; i = 0 }

inline end_job() {
  alive = 0; m = 0; first = 0; base = 0; fresh = 0; gen = 0;
  agree();
  forget()
}

proctype Job() {
end_of_lives:
  do
  :: {
       atomic {
         lives < LIVES && !alive ->
         lives++;
         alive = 1;
         clock++;
         gen = clock;
         if
         :: m = 2
         :: !stale[0] -> m = 1; first = 0
         :: !stale[1] -> m = 1; first = 1
         fi;
         /* A node with something that this job has not got counts as lost. */
         if
         :: m == 1 && node[1 - first].rec_ranks != 0 -> note_loss()
         :: else
         fi
       };
       /* settle */
#ifndef NO_SETTLING
       do
       :: atomic {
            choose_node(2);
            find_record();
            if
            :: sub[n] == 0 ->
               /* The highest generation is the same whoever has been given it already. */
               if
               :: node[n].rec_ranks != 0 && node[n].rec_gen < gg && IS_YOUNGER(n, gg) ->
                  /* pool.R7: it went on without those that have the newer record: refused. */
                  assert(stale[1 - n]);
                  forget();
                  goto over
               :: node[n].rec_ranks != 0 && node[n].rec_gen < gg && !IS_YOUNGER(n, gg) ->
                  if
                  :: stale[n] -> node[n].image = 0
                  :: else
                  fi;
                  node[n].rec_ranks = rr;
                  node[n].rec_gen = gg
               :: else
               fi
            :: sub[n] == 1 ->
               if
               :: node[n].next_ranks == node[n].rec_ranks && node[n].next_ranks != 0 &&
                  node[n].next_gen >= node[n].rec_gen ->
                  node[n].ranks = node[n].next_ranks; node[n].gen = node[n].next_gen;
                  node[n].version = node[n].next_version;
                  node[n].age = node[n].next_gen;
                  node[n].next_ranks = 0; node[n].next_gen = 0; node[n].next_version = 0
               :: else
               fi
            fi;
            sub[n]++;
            forget()
          }
       :: atomic { ALL_DID(2) -> agree(); break }
       od;
#endif
       /* choose */
       atomic {
         choose_version();
         if
         :: rr == m && yes && held == base -> forget(); goto commits
         :: rr == m && !(yes && held == base) && base != NONE -> goto rebuild
         :: rr == 0 && base != NONE && drained_ranks == m -> goto rebuild
         :: base == NONE -> goto over  /* all was lost: refused, or a new job */
         :: else
         fi
       };
       /* bring: what is not in the drain goes there. */
       if
       :: atomic {
            drained != base ->
            own_record(); find_held();
            bringing = base; piece[0] = 0; piece[1] = 0;
            for (i : 0 .. 1) {
              /* Of its file, or of its image, or of the guard that the other node has. */
              yes = yes && held == base || node[0].image == base && HAS(0) ||
                    node[1].image == base && HAS(1)
            };
            assert(yes);
            forget()
          };
          do
          :: atomic { !piece[0] -> piece[0] = 1 }
          :: atomic { own_record(); rr == 2 && !piece[1] -> piece[1] = 1; forget() }
#ifdef MANIFEST_EARLY
          :: piece[0] || piece[1] -> break
#else
          :: atomic { own_record(); piece[0] && (piece[1] || rr == 1) -> forget(); break }
#endif
          od;
          atomic { own_record(); drained = bringing; drained_ranks = rr; safe = drained; forget() }
       :: drained == base
       fi;
       atomic {
         assert(drained != bringing || piece[0] && (piece[1] || drained_ranks == 1));
         versions++;
         fresh = versions
       };
#ifdef OLD_GOES_EARLY
       atomic {
         for (i : 0 .. 1) {
           if
           :: HAS(i) -> node[i].image = 0; node[i].ranks = 0; node[i].gen = 0; node[i].version = 0;
              node[i].age = 0
           :: else
           fi
         };
         drained = NONE; drained_ranks = 0; forget()
       };
#endif
       /* 2 to 4 */
       do
       :: atomic {
            choose_node(2);
            if
            :: sub[n] == 0 ->
               node[n].next_ranks = m; node[n].next_gen = gen; node[n].next_version = base
            :: sub[n] == 1 -> node[n].next_version = fresh
            fi;
            sub[n]++;
            forget()
          }
#ifdef NO_AGREEMENT
       :: atomic { (HAS(0) && sub[0] == 2) || (HAS(1) && sub[1] == 2) -> agree(); break }
#else
       :: atomic { ALL_DID(2) -> agree(); break }
#endif
       od;
       /* 5, on each node */
       do
       :: atomic {
            choose_node(1);
#ifdef SAME_GENERATION
            node[n].next_gen = node[n].rec_gen;
            gen = node[n].rec_gen;
#endif
            node[n].rec_ranks = m; node[n].rec_gen = gen;
            leave_behind();
            sub[n]++;
            forget()
          }
       :: atomic { ALL_DID(1) -> agree(); break }
       od;
#ifdef ACKNOWLEDGED_EARLY
       atomic { acknowledge(fresh); if :: m == 2 -> guarded = fresh; losses = 0 :: else fi };
#endif
       /* 6, and what the old ranks had goes */
       do
       :: atomic {
            choose_node(2);
            if
            :: sub[n] == 0 ->
               node[n].ranks = m; node[n].gen = gen; node[n].version = node[n].next_version;
               node[n].age = gen;
               node[n].next_ranks = 0; node[n].next_gen = 0; node[n].next_version = 0
            :: sub[n] == 1 -> node[n].image = 0
            fi;
            sub[n]++;
            forget()
          }
       :: atomic { ALL_DID(2) -> agree(); break }
       od;
#ifdef DRAINED_GOES_EARLY
       atomic { drained = NONE; drained_ranks = 0 };
#endif
       /* protect */
       if
       :: m == 2 ->
          do
          :: atomic { choose_node(1); node[n].image = fresh; sub[n]++; forget() }
          :: atomic { ALL_DID(1) -> agree(); break }
          od;
          atomic { guarded = fresh; losses = 0 }
       :: m == 1
       fi;
       atomic { acknowledge(fresh); base = fresh };
       goto commits;

rebuild:
       /* bring_back.hpp, in one step: files of a later generation. */
       atomic {
         for (i : 0 .. 1) {
           if
           :: HAS(i) ->
              node[i].ranks = m; node[i].gen = gen; node[i].version = base;
              node[i].age = gen;
              if
              :: node[i].rec_ranks != m -> node[i].rec_ranks = m; node[i].rec_gen = gen
              :: else
              fi
           :: else
           fi
         };
         leave_behind();
         forget()
       };
commits:
       atomic {
         /* Levels::start(): redundancy before anything else. */
         if
         :: m == 2 -> guard(base)
         :: else
         fi
       };
       if
       :: atomic {
            versions++;
            for (i : 0 .. 1) {
              if
              :: HAS(i) -> node[i].version = versions; node[i].age = gen
              :: else
              fi
            };
            acknowledge(versions);
            leave_behind();
            forget()
          };
          if
          :: atomic { m == 2 -> guard(versions) }
          :: atomic { drained = versions; drained_ranks = m; safe = drained; bringing = NONE }
          :: skip
          fi
       :: skip
       fi;
over:
       atomic { end_job() }
     } unless {
       atomic { killed -> killed = 0; end_job() }
     }
  od
}

active proctype Machine() {
  atomic {
    for (i : 0 .. 1) {
      node[i].rec_ranks = 2;
      node[i].ranks = 2;
      node[i].version = 1;
      node[i].image = 1
    };
    versions = 1;
    acknowledged = 1;
    guarded = 1;
    i = 0;
    run Job()
  };
end_of_losses:
  do
  :: atomic { alive && !killed -> killed = 1 }
  :: atomic { !alive && node[0].rec_ranks != 0 -> clear_node(0); note_loss() }
  :: atomic { !alive && node[1].rec_ranks != 0 -> clear_node(1); note_loss() }
#ifdef NEVER_ENDS
  :: atomic { lives == LIVES && !alive && losses > 1 -> assert(false) }
#endif
  od
}
