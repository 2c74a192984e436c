/* SPDX-License-Identifier: BSD-3-Clause
 *
 * levels.pml: versions that are kept beside the pool and on another node, and brought back, for the
 * model checker Spin. run.py names the variants. levels_run.pml is the job, levels_restart.pml what
 * happens between its runs.
 *
 * Two ranks, each on a node of its own, guard each other's images (partner). They commit versions
 * up to LAST into a ring of SLOTS slots; every version is due. The machine crashes up to CRASHES
 * times, at any step, also while versions are brought back. After a crash nothing more happens, or
 * a node is lost for good, or is replaced, with what it has, by one that was lost before. With
 * -DMOVES ranks may also change places; none comes back then. A step is durable when it is done:
 * what lies inside a commit is checked by commit.pml and ring.pml.
 *
 * Sets of files: what is one rank's on one node
 *   0, 1  of rank 0 and 1 on the nodes where they begin; 2, 3: on the other's node (-DMOVES)
 *   2     otherwise: on the node that was lost last
 * State of a set
 *   gen     generation of the rank's file of the pool, 0: it has none
 *   slot    OPEN(v, parent) or COMPLETE(id, parent), an id being {incarnation, version}
 *   pa, pb  the place of that slot: what the rank stored itself, and what the other rank put
 *   iid, gid  whole image and guard files by id, 0: none; with both halves of what is in them
 *
 * Steps of levels.hpp, restart.hpp and bring_back.hpp: a version is copied in two halves beside the
 * program; release() waits for it before the agreement; the guard follows when both images are
 * there; words travel with the agreement. A restart: the newest file of each rank moves to its
 * node; the newest id that both can have takes the pool's place if it is newer; what a restore gave
 * up is cleared; what has no redundancy gets it.
 *
 * Tags are ghosts: {life, version}, what a version holds; unlike ids, never given twice. Checked
 * after each crash: what is chosen is one tag on both ranks and in both halves, of a version that
 * was not given up; nothing acknowledged is lost if no node is; no version older than the last
 * that was whole on all ranks is chosen, nor is the job refused, if one node was lost since; and
 * when a run begins, its version or a newer one bears the loss of a node.
 */
#ifndef CRASHES
#define CRASHES 2
#endif
#ifndef LAST
#define LAST 4
#endif
#ifdef RESTORE
#define SLOTS 3
#else
#define SLOTS 2
#endif
#ifdef ONE_FILE
#define FILES 1
#elif defined(TWO_FILES)
#define FILES 2
#else
#define FILES 3
#endif

#ifdef MOVES
#define SETS 4
bit changed; /* places */
#define HOME(x) ((x) + 2 * changed)
#define AWAY(x) ((x) + 2 - 2 * changed)
#else
#define SETS 3
#define HOME(x) (x)
bit old; /* set 2 is that of old_rank */
bit old_rank;
#endif

#define VER(id) ((id) % 8)
#define INC(id) ((id) / 8)
#define SLOT(set, k) ((set) * SLOTS + (k))
#define FILE(set, k) ((set) * FILES + (k))
#define NEWER(id, held) ((id) > (held) && VER(id) != VER(held))
#define OPEN 1
#define COMPLETE 2

byte gen[SETS];
byte state[SETS * SLOTS];
byte sid[SETS * SLOTS];
byte parent[SETS * SLOTS];
byte pa[SETS * SLOTS];
byte pb[SETS * SLOTS];
byte iid[SETS * FILES];
byte ia[SETS * FILES];
byte ib[SETS * FILES];
byte gid[SETS * FILES];
byte ga[SETS * FILES];
byte gb[SETS * FILES];

/* The run. */
bit alive;
byte inc;
byte clock; /* no incarnation and no generation is higher */
byte op;    /* what comes next: 0 not drawn, 1 commit, 2 restore; drawn by the first to get there */

/* A rank in the run. */
byte pc[2];
byte v[2];
byte head[2];
byte taking[2];
byte image[2]; /* the file that is made */
byte guard[2];
byte phase[2];
byte half[2];
byte said[2];
byte whole[2];
bit at[2]; /* has entered the barrier or agreement */
bit go[2]; /* may leave it */

/* Ghosts. */
byte life;
byte cut[8];       /* by life: the newest version that was not given up */
byte base;         /* what this life began with */
byte acknowledged;
byte promised; /* what was last whole on all ranks */
byte hurt;     /* nodes lost since */
bit lost_any;  /* a node was lost since the last restart that came to its end */
byte crashes;
bit did_restore;

#define IDLE 0
#define COPY 1
#define COPY2 2
#define COPIED 3
#define GUARD 4
#define WHOLE 5

#define TAG(n) (life * 8 + (n))
#define VALID(tag) ((tag) % 8 <= cut[(tag) / 8])

/* What this life did not begin from is given up, as soon as it acknowledges something. */
inline give_up() {
  for (j : 0 .. 7) {
    if
    :: j < life && j > base / 8 -> cut[j] = 0
    :: j < life && j == base / 8 && cut[j] > base % 8 -> cut[j] = base % 8
    :: else
    fi
  }
  j = 0
}

#if FILES == 3
#define MUST_FIND(file) assert((file) < FILES)
#else
#define MUST_FIND(file) file = ((file) == FILES -> FILES - 1 : (file))
#endif

/* levels.K2: a file that holds neither `kept` nor `source`, or one of them a second time. */
#define CHOOSE_FILE(ids, x, kept, source, file) \
  file = FILES; \
  least = kept; \
  other = ((source) != (kept) -> (source) : 0); \
  for (j : 0 .. FILES - 1) { \
    if \
    :: least != 0 && ids[FILE(HOME(x), j)] == least -> least = 0 \
    :: other != 0 && ids[FILE(HOME(x), j)] == other -> other = 0 \
    :: else -> file = (file == FILES -> j : file) \
    fi \
  } \
  MUST_FIND(file); \
  j = 0; \
  least = 0; \
  other = 0

#define CLEAR_NEWER(ids, x, held) \
  for (j : 0 .. FILES - 1) { \
    if \
    :: NEWER(ids[FILE(HOME(x), j)], held) -> ids[FILE(HOME(x), j)] = 0 \
    :: else \
    fi \
  } \
  j = 0

#include "levels_run.pml"
#include "levels_restart.pml"

#ifndef POOL_IF_AHEAD
#define AHEAD ahead
#else
#define AHEAD false
#endif

#define MAY_CRASH \
  if \
  :: skip \
  :: crashes < CRASHES -> goto crash \
  fi

active proctype Machine() {
  byte x;
  byte j;
  byte k;
  byte i;
  byte least;
  byte other;
  byte top;
  byte number;
  byte lowest;
  byte highest;
  byte next;
  byte chosen;
  byte best;
  byte place;
  byte tag;
  byte source;
  byte kept;
  bit found;
  bit ahead;
  bit in_guard;
  bit first;
  atomic {
    for (x : 0 .. 7) { cut[x] = 7 }
    for (x : 0 .. 1) {
      gen[x] = 1;
      state[SLOT(x, 1)] = COMPLETE;
      sid[SLOT(x, 1)] = 8 + 1;
      pa[SLOT(x, 1)] = 1;
      pb[SLOT(x, 1)] = 1;
      state[SLOT(x, 2 % SLOTS)] = OPEN;
      sid[SLOT(x, 2 % SLOTS)] = 2;
      parent[SLOT(x, 2 % SLOTS)] = 1
    }
    clock = 2;
    chosen = 9;
    next = 2;
    run Rank(0);
    run Rank(1);
    begin_run();
    forget()
  };
end_of_crashes:
  atomic { crashes < CRASHES -> skip };
crash:
  atomic { stop(); forget(); chosen = 0; best = 0; next = 0; tag = 0; kept = 0; first = 0 };
  atomic { lose(); forget() };
recover:
  atomic { draw(first) };
#ifdef MOVES
  atomic { find_moves(); forget() };
  if
  :: next != 0 ->
     atomic { next = 0; clock++; move_file(first); forget() };
     MAY_CRASH;
     atomic { move_file((1 - first)); forget() };
     MAY_CRASH
  :: else
  fi;
#endif
  atomic {
    judge();
    best = 0;
    if
    :: chosen == 0 || next == VER(chosen) + 1 -> plan()
    :: else
    fi;
    if
    :: chosen != 0 && !NEWER(best, chosen) && !(AHEAD && best > chosen) -> best = 0; check_pool(); goto settle
    :: else
    fi;
    assert(lost_any || AHEAD);
    ahead = 0;
    chosen = best;
    best = 0;
    if
    :: chosen == 0 ->
       assert(hurt > 1 || promised == 0);
       forget();
       goto end_refused
    :: else
    fi;
    check_images();
    clock++;
    rebuild(first);
    forget()
  };
#ifdef RENAME_EARLY
  atomic { take_place(first); forget() };
#endif
  MAY_CRASH;
  atomic { rebuild((1 - first)); forget() };
  MAY_CRASH;
  atomic { take_place(first); forget() };
  MAY_CRASH;
  atomic { take_place((1 - first)); chosen = 0; next = 0; forget() };
  MAY_CRASH;
  goto recover;
settle:
  atomic { forget(); ahead = 0; new_incarnation() };
#ifndef NO_CLEARING_AT_RESTART
  if
  :: next != VER(chosen) + 1 ->
     atomic { CLEAR_NEWER(iid, first, chosen); CLEAR_NEWER(gid, first, chosen) };
     MAY_CRASH;
     atomic { CLEAR_NEWER(iid, 1 - first, chosen); CLEAR_NEWER(gid, 1 - first, chosen) };
     MAY_CRASH
  :: else
  fi;
#endif
  atomic { find_whole(); forget() };
  if
  :: best != 0 && (next == VER(chosen) + 1 || VER(best) == VER(chosen)) -> skip
  :: else ->
     atomic { begin_protection(); forget() };
     MAY_CRASH;
     atomic { protect_image(first); forget() };
     MAY_CRASH;
     atomic { protect_image((1 - first)); clear_guards(); forget() };
     MAY_CRASH;
     atomic { protect_guard(first); forget() };
     MAY_CRASH;
     atomic { protect_guard((1 - first)); best = inc * 8 + VER(chosen); forget() };
     MAY_CRASH
  fi;
  atomic { open_next(first); forget() };
  MAY_CRASH;
  atomic { open_next((1 - first)); forget() };
  MAY_CRASH;
  atomic {
    redundant();
    begin_run();
    forget();
    first = 0;
    goto end_of_crashes
  };
end_refused:
  false
}
