/* SPDX-License-Identifier: BSD-3-Clause
 *
 * lease.pml: two runs of one job and a drain (src/levels/lease.hpp, lineage.hpp, choice.hpp
 * levels.A6).
 *
 * Each run has nodes of its own. It may be killed, lose its nodes, and start again; or be cut off,
 * so that the other one takes it for dead while it goes on. A version is a number and, as a ghost,
 * the branch whose bytes it has: a branch begins whenever a pool is made of a drained version.
 * Asserted is that
 *
 *   - a start on whole nodes has all that was acknowledged on them, of its own bytes
 *   - a run is refused while the other lives and is not cut off
 *   - a run that ended in order, and was not fenced off, has its last version
 *     there for whoever starts next without nodes
 *   - a run removes versions of its own history only
 *
 * Beats are not modelled: a run that is cut off may be taken for gone at any time, one that is
 * not never is. Wrong variants leave out one part each.
 *
 * HALVES: the nodes of a run that is not alive may part, each half with what it guards of a
 * version; the other half is the other run's nodes then (lineage.hpp). GIVEN_UP: nodes that a run
 * lost may come back beside a part of those with which it went on from the drain, with all of the
 * versions that were given up (levels.hpp, levels.K3; recovery_plan.hpp). Asserted is
 * that these do not come back with them.
 */
#ifndef LAST
#define LAST 2      /* versions */
#endif
#ifndef LIVES
#define LIVES 4     /* starts of both runs together */
#endif
#define LINES 5     /* lineages, and branches; 0: not one */
#define NONE 0

#define DR(l, v) dr[(l) * (LAST + 1) + (v)]

/* The drain: the newest lease, and which branch's bytes each lineage has of each version. */
byte top, holder, held, cur;
byte dr[LINES * (LAST + 1)];
byte par[LINES], until[LINES];    /* of lineages */
byte gpar[LINES], guntil[LINES];  /* of branches */
byte lines, branches, lives;

/* Runs: their pools, and what they know. */
byte pl[2], pv[2], pb[2];  /* lineage, version, branch; lineage NONE: no pool */
byte alive[2], cut[2], num[2], fenced[2];
byte was_cut[2];  /* in this life */
#ifdef HALVES
byte images[2];  /* it has images of its version, and no files that are whole */
byte begins[2];  /* it has looked for a version */
#define IMAGES(x) images[x]
#else
#define IMAGES(x) 0
#endif
#ifdef GIVEN_UP
byte gl[2], gv[2], gb[2];  /* what nodes have that are away: as pl, pv, pb */
byte mixed[2];             /* some are back, and some of the others gone; 2: theirs was given up */
#define MIXED(x) mixed[x]
#else
#define MIXED(x) 0
#endif
byte result, result_branch, result_due;  /* of the run that ended in order last */

/* Not part of a state: of one step each. */
hidden byte i, bl, bv, wl, wu, hb, hv, whose, yes, kin;

/* In `yes`: (ob, ov) is in the history of branch b at version v. */
inline in_history(b, v, ob, ov) {
  whose = ob;
  do  /* the bytes of a version that a branch was made from are of the branch before */
  :: gpar[whose] != NONE && ov <= guntil[whose] -> whose = gpar[whose]
  :: else -> break
  od;
  hb = b; hv = v; yes = 0;
  do
  :: hb == whose -> yes = (ov <= hv); break
  :: hb != whose && gpar[hb] != NONE -> hv = guntil[hb]; hb = gpar[hb]
  :: else -> break
  od
}

/* In `bl`, `bv`: the newest version in the history of lineage l. */
inline find_newest(l) {
  bl = NONE; bv = 0; wl = l; wu = LAST;
  do
  :: wl != NONE ->
     for (i : 1 .. LAST) {
       if
       :: i <= wu && DR(wl, i) != NONE && i > bv -> bl = wl; bv = i
       :: else
       fi
     }
     if
#ifdef LATE_COUNTS
     :: par[wl] != NONE -> wl = par[wl]
#else
     :: par[wl] != NONE -> wu = until[wl]; wl = par[wl]
#endif
     :: else -> wl = NONE
     fi
  :: else -> break
  od
}

/* In `kin`: what the nodes hold, pl and pv, is in the history of lineage l, or after it. */
inline find_kinship(l, x) {
  kin = 0; wl = l;
  do
  :: wl != NONE && par[wl] == pl[x] -> kin = (pv[x] <= until[wl]); break
  :: wl != NONE && par[wl] != pl[x] -> wl = par[wl]
  :: else -> break
  od
}

#ifdef GIVEN_UP
/* Files of two histories: only images in that of the one that went on last count. */
inline take_what_counts(x) {
  yes = 0; wl = pl[x];
  do
  :: wl != NONE && par[wl] == gl[x] -> yes = (gv[x] <= until[wl]); break
  :: wl != NONE && par[wl] != gl[x] -> wl = par[wl]
  :: else -> break
  od;
#ifdef GIVEN_UP_COUNTS
  yes = 1;
#endif
  if
  :: yes -> pv[x] = gv[x]; pb[x] = gb[x]
  :: else -> pv[x] = 0; pb[x] = NONE
  fi
}
#endif

inline remove(l, v) {
  in_history(pb[x], next, DR(l, v), v);
  assert(yes);
  DR(l, v) = NONE
}

proctype Run(byte x) {
  byte seen, lin, from, fv, ob, ov, next;
  do
  :: lives < LIVES ->
     /* A start. */
     atomic {
       lives++;
       fenced[x] = 0;
       seen = top;
       ob = pb[x]; ov = pv[x];
#ifdef HALVES
       begins[x] = 1;
#endif
#ifdef GIVEN_UP
       if
       :: mixed[x] -> take_what_counts(x); ob = NONE; ov = (pv[x] > 0)
       :: else
       fi;
#endif
       if
#ifndef NO_LEASE
       :: held && holder != x && alive[holder] && !cut[holder] -> goto over  /* refused */
#endif
       :: else
       fi;
       /* 2: a version is chosen; `from` is NONE if the pool stays. */
       from = NONE;
       if
       :: cur == NONE || (pl[x] != NONE && cur == pl[x]) -> lin = pl[x]
       :: pl[x] == NONE && cur != NONE -> lin = cur
       :: MIXED(x) && pv[x] == 0 && cur != NONE && cur != pl[x] -> lin = cur
       :: cur != NONE && pl[x] != NONE && cur != pl[x] && !(MIXED(x) && pv[x] == 0) ->
          find_kinship(cur, x);
#ifdef NEWEST_WINS
          kin = 1;
#endif
          lin = (kin -> cur : pl[x])
       fi;
       find_newest(lin);
       if
       :: bv > pv[x] || (pl[x] == NONE && bv > 0) -> from = bl; fv = bv
#ifdef NEWEST_WINS
       :: cur != pl[x] && pl[x] != NONE && cur != NONE && bv > 0 && bv <= pv[x] ->
          from = bl; fv = bv
#endif
       :: else
       fi;
       if
       :: pl[x] == NONE && from == NONE && cur != NONE && par[cur] != NONE -> goto over
       :: else
       fi;
       if
       :: from != NONE && lines + 1 >= LINES -> goto over  /* the model ends */
       :: pl[x] == NONE && from == NONE && lines + 1 >= LINES -> goto over
       :: (IMAGES(x) || MIXED(x)) && from == NONE && lines + 1 >= LINES -> goto over
       :: MIXED(x) && from == NONE && pv[x] == 0 -> goto over  /* nothing counts: refused */
       :: else
       fi
     }
     /* 3: the lease, and all that follows until the pool is there. */
     atomic {
       if
#ifndef REPLACE
       :: top != seen -> goto over  /* somebody else was faster */
#endif
       :: else
       fi;
       top = seen + 1; holder = x; held = 1; num[x] = top; alive[x] = 1;
#ifndef NO_SECOND_LOOK
       if
       :: from != NONE || pl[x] == NONE -> find_newest(lin); from = bl; fv = bv
       :: else
       fi;
#endif
       if
       :: from != NONE ->
          branches++;
          gpar[branches] = DR(from, fv); guntil[branches] = fv;
          pb[x] = branches;
          if
          :: gpar[branches] == NONE -> alive[x] = 0; held = 0; goto over  /* was removed meanwhile */
          :: else
          fi;
#ifdef NO_LINEAGE
          pl[x] = from;
#else
          lines++;
          par[lines] = from; until[lines] = fv;
          pl[x] = lines;
#endif
          pv[x] = fv
       :: from == NONE && pl[x] == NONE ->
          lines++; branches++;
          pl[x] = lines; pb[x] = branches; pv[x] = 0
       :: from == NONE && pl[x] != NONE && (IMAGES(x) || MIXED(x)) ->
          branches++;
          gpar[branches] = pb[x]; guntil[branches] = pv[x];
          pb[x] = branches;
#ifndef ONE_LINEAGE
          lines++;
          par[lines] = pl[x]; until[lines] = pv[x];
          pl[x] = lines
#endif
       :: else
       fi;
#ifdef HALVES
       images[x] = 0; begins[x] = 0;
#endif
#ifdef GIVEN_UP
       if
       :: mixed[x] == 2 ->
          in_history(pb[x], pv[x], gb[x], gv[x]);
          assert(!yes)
       :: else
       fi;
       if
       :: mixed[x] -> mixed[x] = 0; gl[x] = NONE; gv[x] = 0; gb[x] = NONE
       :: else
       fi;
#endif
       cur = pl[x];
       /* Whole nodes: what was acknowledged is there, with their bytes. */
       if
       :: ob != NONE && ov > 0 ->
          in_history(pb[x], pv[x], ob, ov);
          assert(yes)
       :: else
       fi;
       /* No nodes: what a run that ended in order left. */
       if
       :: ob == NONE && ov == 0 && result_due ->
          in_history(pb[x], pv[x], result_branch, result);
          assert(yes)
       :: else
       fi;
       result_due = 0; result = 0; result_branch = 0;
       seen = 0; lin = 0; from = 0; fv = 0; ob = 0; ov = 0;
       assert(!alive[1 - x] || was_cut[1 - x])
     }
     /* The run goes on. */
     do
     :: atomic { pv[x] < LAST -> pv[x]++ }  /* a commit, acknowledged */
     :: atomic {  /* 4: the check and the publication, between which others act */
          true;
          if
#ifndef NO_FENCE
          :: top != num[x] -> fenced[x] = 1; next = 0
#endif
          :: else -> next = pv[x]
          fi
        }
        atomic {
          if
          :: next > 0 -> DR(pl[x], next) = pb[x]
          :: else
          fi
        }
        /* Versions of its history that are older go. */
        atomic {
          if
          :: next > 0 && top == num[x] ->
             wl = pl[x]; wu = next - 1;
             do
             :: wl != NONE ->
                for (i : 1 .. LAST) {
                  if
                  :: i <= wu && DR(wl, i) != NONE -> remove(wl, i)
                  :: else
                  fi
                };
                if
                :: par[wl] != NONE -> wu = (until[wl] < wu -> until[wl] : wu); wl = par[wl]
                :: else -> wl = NONE
                fi
             :: else -> break
             od;
#ifdef CLEAN_ALL
             for (wl : 1 .. lines) {
               for (i : 1 .. LAST) {
                 if
                 :: wl != pl[x] && i < next && DR(wl, i) != NONE -> remove(wl, i)
                 :: else
                 fi
               }
             }
#endif
          :: else
          fi;
          next = 0
        }
     :: atomic { !cut[x] && top == num[x] -> cut[x] = 1; was_cut[x] = 1 }
     :: atomic { cut[x] && top == num[x] -> cut[x] = 0 }
     :: atomic {  /* it ends in order: the last version is published */
          true;
          if
#ifndef NO_FENCE
          :: top != num[x] -> fenced[x] = 1
#endif
          :: else ->
             if
             :: pv[x] > 0 ->
                DR(pl[x], pv[x]) = pb[x];
                result = pv[x]; result_branch = pb[x]; result_due = !fenced[x]
             :: else
             fi
          fi;
          alive[x] = 0;
          if
          :: top == num[x] -> held = 0
          :: else
          fi
        };
        break
     :: atomic { alive[x] = 0 }; break  /* killed */
     od;
over:
     atomic {
       seen = 0; lin = 0; from = 0; fv = 0; ob = 0; ov = 0; next = 0; cut[x] = 0; fenced[x] = 0; was_cut[x] = 0;
#ifdef HALVES
       begins[x] = 0;
#endif
       if
       :: skip
       :: !alive[x] ->  /* the nodes are lost */
#ifdef GIVEN_UP
          if
          :: pl[x] != NONE && !mixed[x] && pv[x] > 0 -> gl[x] = pl[x]; gv[x] = pv[x]; gb[x] = pb[x]
          :: else
          fi;
          mixed[x] = 0;
#endif
#ifdef HALVES
          images[x] = 0;
#endif
          pl[x] = NONE; pv[x] = 0; pb[x] = NONE
#ifdef GIVEN_UP
       :: !alive[x] && pl[x] != NONE && gl[x] != NONE && !mixed[x] ->
          in_history(pb[x], pv[x], gb[x], gv[x]);
          mixed[x] = 2 - yes
#endif
#ifdef HALVES
       :: !alive[x] && pv[x] > 0 && !alive[1 - x] && !begins[1 - x] && pl[1 - x] == NONE ->
          if
          :: pv[x] > 1 -> pv[x]--  /* the newest was not guarded */
          :: skip
          fi;
          pl[1 - x] = pl[x]; pv[1 - x] = pv[x]; pb[1 - x] = pb[x];
          images[x] = 1; images[1 - x] = 1
#endif
       fi
     }
  :: lives >= LIVES -> break
  od
}

init {
  atomic {
    run Run(0);
    run Run(1)
  }
}
