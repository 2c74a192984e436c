/* SPDX-License-Identifier: BSD-3-Clause
 *
 * levels.pml: versions that are kept beside the pool and on another node, and brought back, for the
 * model checker Spin. run.py names the variants.
 *
 * Two ranks, each on a node of its own, guard each other's images (partner). They commit versions
 * up to LAST into a ring of SLOTS slots; every version is due. The machine crashes up to CRASHES
 * times, at any step, also while versions are brought back. After a crash nothing more happens, or
 * a node is lost for good, or is replaced, with what it has, by one that was lost before. A step is
 * durable when it is done: what lies inside a commit is checked by commit.pml and ring.pml.
 *
 * State of a node (x = 0, 1: that of a rank; 2: one that was lost)
 *   slot    OPEN(v, parent) or COMPLETE(id, parent), an id being {incarnation, version}
 *   pa, pb  the place of that slot: what the rank stored itself, and what the other rank put
 *   iid, gid  whole image and guard files by id, 0: none; with both halves of what is in them
 *
 * Steps of levels.hpp and bring_back.hpp: a version is copied in two halves beside the program;
 * release() waits for it before the agreement; the guard follows when both images are there; words
 * travel with the agreement. Bringing back: the newest id that both can have; the lost image is
 * rebuilt; a new file on each rank; renames; protection of what was brought back.
 *
 * Tags are ghosts: {life, version}, what a version holds; unlike ids, never given twice. Checked
 * after each crash: what is chosen is one tag on both ranks and in both halves, of a version that
 * was not given up; nothing acknowledged is lost if no node is; and no version older than the last
 * that was whole on all ranks is chosen, nor is the job refused, if one node was lost since.
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

#define VER(id) ((id) % 8)
#define INC(id) ((id) / 8)
#define SLOT(x, k) ((x) * SLOTS + (k))
#define FILE(x, k) ((x) * FILES + (k))
#define OPEN 1
#define COMPLETE 2

byte state[3 * SLOTS];
byte sid[3 * SLOTS];
byte parent[3 * SLOTS];
byte pa[3 * SLOTS];
byte pb[3 * SLOTS];
bit has[3];
byte iid[3 * FILES];
byte ia[3 * FILES];
byte ib[3 * FILES];
byte gid[3 * FILES];
byte ga[3 * FILES];
byte gb[3 * FILES];
bit old; /* node 2 is that of old_rank */
bit old_rank;

/* The run. */
bit alive;
byte inc;
byte clock; /* no incarnation was higher */
byte op;    /* what comes next: 0 not drawn, 1 commit, 2 restore; drawn by the first to get there */

/* A rank in the run. */
byte pc[2];
byte v[2];
byte head[2];
byte taking[2];
byte file[2];
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

/* at_last is done once, when both have arrived. */
#define ARRIVE(at_last) \
  at[r] = 1; \
  if \
  :: at[0] && at[1] -> at_last; at[0] = 0; at[1] = 0; go[0] = 1; go[1] = 1 \
  :: else \
  fi

#define READS(x, n) \
  ((phase[x] == COPY || phase[x] == COPY2) && VER(taking[x]) % SLOTS == (n) % SLOTS)

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

/* K2: files that what is whole on all ranks is not in. */
#define FREE(x, n, kept) (iid[FILE(x, n)] != (kept) && gid[FILE(x, n)] != (kept))
#if FILES == 3
#define HAS_FREE(x, kept) \
  ((kept) == 0 || FREE(x, 0, kept) || FREE(x, 1, kept) || FREE(x, 2, kept))
#else
#define HAS_FREE(x, kept) true
#endif
inline choose_file(x, kept) {
#if FILES == 1
  file[x] = 0
#elif FILES == 2
  file[x] = (FREE(x, 0, kept) -> 0 : 1)
#else
  file[x] = (FREE(x, 0, kept) -> 0 : (FREE(x, 1, kept) -> 1 : 2));
  assert(kept == 0 || FREE(x, file[x], kept))
#endif
}

#ifdef TAKE_EARLY
#define MAY_TAKE (taking[r] == 0 || phase[r] == WHOLE)
#else
#define MAY_TAKE (taking[r] == 0)
#endif

inline end_taking_and_take() {
  if
  :: taking[r] != 0 && said[0] >= taking[r] && said[1] >= taking[r] ->
     whole[r] = taking[r];
     taking[r] = 0;
     phase[r] = IDLE
  :: else
  fi;
  if
  :: MAY_TAKE && HAS_FREE(r, whole[r]) -> /* otherwise it is skipped */
#ifdef TAKE_EARLY
     if
     :: taking[r] != 0 -> whole[r] = taking[r]
     :: else
     fi;
#endif
     taking[r] = inc * 8 + v[r];
     choose_file(r, whole[r]);
     phase[r] = COPY
  :: else
  fi
}

#define IN_STEP3_SAID(r) (phase[r] == WHOLE && taking[r] != 0 -> taking[r] : whole[r])

/* What both say is promised from now on. */
inline acknowledge() {
  acknowledged = TAG(v[r]);
  give_up();
  least = (said[0] < said[1] -> said[0] : said[1]);
  for (j : 0 .. FILES - 1) {
    if
    :: least != 0 && iid[FILE(0, j)] == least && ia[FILE(0, j)] > promised ->
       promised = ia[FILE(0, j)];
       hurt = 0
    :: else
    fi
  }
  j = 0;
  least = 0;
  op = 0
}

inline clear_newer_images() {
  for (j : 0 .. FILES - 1) {
    if
    :: VER(iid[FILE(r, j)]) > v[r] - 2 -> iid[FILE(r, j)] = 0
    :: else
    fi
  }
  j = 0
}

inline clear_newer_guards() {
  for (j : 0 .. FILES - 1) {
    if
    :: VER(gid[FILE(r, j)]) > v[r] - 2 -> gid[FILE(r, j)] = 0
    :: else
    fi
  }
  j = 0
}

#ifdef NO_RELEASE
#define RELEASED(n) true
#else
#define RELEASED(n) (!(phase[r] == COPY || phase[r] == COPY2) || VER(taking[r]) > (n))
#endif

proctype Rank(bit r) {
  byte j;
  byte least;
end:
  do
  :: atomic {
       alive && pc[r] == 0 && op == 0 && v[r] <= LAST ->
       if
       :: op = 1
#ifdef RESTORE
       :: !did_restore && v[r] > 2 && v[r] == head[r] + 1 &&
          state[SLOT(0, (v[r] - 2) % SLOTS)] == COMPLETE &&
          state[SLOT(1, (v[r] - 2) % SLOTS)] == COMPLETE &&
          VER(sid[SLOT(r, (v[r] - 2) % SLOTS)]) == v[r] - 2 -> op = 2; did_restore = 1
#endif
       fi
     }
  /* Commit. */
  :: atomic {
       alive && pc[r] == 0 && op == 1 && v[r] <= LAST ->
       assert(!READS(r, v[r]));
       pa[SLOT(r, v[r] % SLOTS)] = TAG(v[r]);
       pc[r] = 1
     }
  :: atomic {
       alive && pc[r] == 1 ->
       assert(!READS(1 - r, v[r]));
       pb[SLOT(1 - r, v[r] % SLOTS)] = TAG(v[r]);
       pc[r] = 2;
       ARRIVE(skip)
     }
  :: atomic {
       alive && pc[r] == 2 && go[r] ->
       go[r] = 0;
       sid[SLOT(r, v[r] % SLOTS)] = inc * 8 + v[r];
       parent[SLOT(r, v[r] % SLOTS)] = head[r];
       state[SLOT(r, v[r] % SLOTS)] = COMPLETE;
       pc[r] = 3
     }
  :: atomic {
       alive && pc[r] == 3 && RELEASED(v[r] + 1 - SLOTS) ->
       said[r] = IN_STEP3_SAID(r);
       pc[r] = 4;
       ARRIVE(acknowledge())
     }
  :: atomic {
       alive && pc[r] == 4 && go[r] ->
       go[r] = 0;
       end_taking_and_take();
       pc[r] = 5
     }
  :: atomic {
       alive && pc[r] == 5 ->
       state[SLOT(r, (v[r] + 1) % SLOTS)] = OPEN;
       sid[SLOT(r, (v[r] + 1) % SLOTS)] = v[r] + 1;
       parent[SLOT(r, (v[r] + 1) % SLOTS)] = v[r];
       head[r] = v[r];
       v[r]++;
       pc[r] = 0
     }
#ifdef RESTORE
  /* Restore of v - 2, when nothing is under way. Its promise begins anew. */
  :: atomic {
       alive && pc[r] == 0 && op == 2 && (taking[r] == 0 || phase[r] == WHOLE) ->
       taking[r] = 0;
       phase[r] = IDLE;
       pc[r] = 6;
       ARRIVE(promised = 0; acknowledged = pa[SLOT(r, (v[r] - 2) % SLOTS)])
     }
  :: atomic {
       alive && pc[r] == 6 && go[r] ->
       go[r] = 0;
#ifndef NO_CLEARING
       clear_newer_images();
#endif
       pc[r] = 7
     }
  :: atomic {
       alive && pc[r] == 7 ->
#ifndef NO_CLEARING
       clear_newer_guards();
#endif
       whole[r] = (VER(whole[r]) > v[r] - 2 -> 0 : whole[r]);
       pc[r] = 8
     }
  :: atomic {
       alive && pc[r] == 8 ->
       parent[SLOT(r, v[r] % SLOTS)] = v[r] - 2;
       head[r] = v[r] - 2;
       pc[r] = 9;
       ARRIVE(base = pa[SLOT(r, (v[r] - 2) % SLOTS)]; life++; inc++; acknowledged = base;
              give_up(); op = 1)
     }
  :: atomic { alive && pc[r] == 9 && go[r] -> go[r] = 0; pc[r] = 0 }
#endif
  /* Beside the program. */
  :: atomic {
       alive && phase[r] == COPY ->
#ifdef STATE_FIRST
       iid[FILE(r, file[r])] = taking[r];
#else
       iid[FILE(r, file[r])] = 0;
#endif
       half[r] = pa[SLOT(r, VER(taking[r]) % SLOTS)];
       phase[r] = COPY2
     }
  :: atomic {
       alive && phase[r] == COPY2 ->
       ia[FILE(r, file[r])] = half[r];
       ib[FILE(r, file[r])] = pb[SLOT(r, VER(taking[r]) % SLOTS)];
       iid[FILE(r, file[r])] = taking[r];
       half[r] = 0;
       phase[r] = COPIED
     }
  :: atomic {
       alive && phase[r] == COPIED && taking[1 - r] == taking[r] && phase[1 - r] >= COPIED ->
       gid[FILE(r, file[r])] = 0;
       phase[r] = GUARD
     }
  :: atomic {
       alive && phase[r] == GUARD && iid[FILE(1 - r, file[1 - r])] == taking[r] ->
       ga[FILE(r, file[r])] = ia[FILE(1 - r, file[1 - r])];
       gb[FILE(r, file[r])] = ib[FILE(1 - r, file[1 - r])];
       gid[FILE(r, file[r])] = taking[r];
       phase[r] = WHOLE
     }
  od
}

/* Losses and restarts. */

inline move_node(from, to) {
  for (k : 0 .. SLOTS - 1) {
    state[SLOT(to, k)] = state[SLOT(from, k)];
    sid[SLOT(to, k)] = sid[SLOT(from, k)];
    parent[SLOT(to, k)] = parent[SLOT(from, k)];
    pa[SLOT(to, k)] = pa[SLOT(from, k)];
    pb[SLOT(to, k)] = pb[SLOT(from, k)]
  }
  has[to] = has[from];
  for (k : 0 .. FILES - 1) {
    iid[FILE(to, k)] = iid[FILE(from, k)];
    ia[FILE(to, k)] = ia[FILE(from, k)];
    ib[FILE(to, k)] = ib[FILE(from, k)];
    gid[FILE(to, k)] = gid[FILE(from, k)];
    ga[FILE(to, k)] = ga[FILE(from, k)];
    gb[FILE(to, k)] = gb[FILE(from, k)]
  }
}

inline clear_pool(x) {
  for (k : 0 .. SLOTS - 1) {
    state[SLOT(x, k)] = 0;
    sid[SLOT(x, k)] = 0;
    parent[SLOT(x, k)] = 0;
    pa[SLOT(x, k)] = 0;
    pb[SLOT(x, k)] = 0
  }
  has[x] = 0
}

inline clear_node(x) {
  clear_pool(x);
  for (k : 0 .. FILES - 1) {
    iid[FILE(x, k)] = 0;
    ia[FILE(x, k)] = 0;
    ib[FILE(x, k)] = 0;
    gid[FILE(x, k)] = 0;
    ga[FILE(x, k)] = 0;
    gb[FILE(x, k)] = 0
  }
}

inline note_loss(count) {
  hurt = (hurt + count > 2 -> 2 : hurt + count);
  lost_any = 1
}

inline lose() {
  if
  :: skip
  :: move_node(0, 2); old = 1; old_rank = 0; clear_node(0); note_loss(1)
  :: move_node(1, 2); old = 1; old_rank = 1; clear_node(1); note_loss(1)
#ifndef NO_RETURN
  :: old && old_rank == 0 -> move_node(2, 0); clear_node(2); old = 0; note_loss(1)
  :: old && old_rank == 1 -> move_node(2, 1); clear_node(2); old = 0; note_loss(1)
#endif
  fi
}

inline stop() {
  alive = 0;
  inc = 0;
  op = 0;
  crashes++;
  life++;
  for (x : 0 .. 1) {
    pc[x] = 0;
    v[x] = 0;
    head[x] = 0;
    taking[x] = 0;
    file[x] = 0;
    phase[x] = IDLE;
    half[x] = 0;
    said[x] = 0;
    whole[x] = 0;
    at[x] = 0;
    go[x] = 0
  }
}

/* recover.cpp: R as the minimum of the heads, if both hold it. In `chosen` as an id, or 0. */
inline judge() {
  lowest = 255;
  next = 255;
  highest = 0;
  for (x : 0 .. 1) {
    top = SLOT(x, 0);
    for (k : 1 .. SLOTS - 1) {
      if
      :: state[SLOT(x, k)] != 0 && VER(sid[SLOT(x, k)]) > VER(sid[top]) -> top = SLOT(x, k)
      :: else
      fi
    }
    number = (state[top] == COMPLETE -> VER(sid[top]) : parent[top]);
    lowest = (number < lowest -> number : lowest);
    number = (state[top] == COMPLETE -> VER(sid[top]) + 1 : VER(sid[top]));
    next = (number < next -> number : next);
    highest = (VER(sid[top]) > highest -> VER(sid[top]) : highest)
  }
  chosen = 0;
  if
  :: has[0] && has[1] && highest <= next && state[SLOT(0, lowest % SLOTS)] == COMPLETE &&
     state[SLOT(1, lowest % SLOTS)] == COMPLETE &&
     VER(sid[SLOT(0, lowest % SLOTS)]) == lowest &&
     sid[SLOT(0, lowest % SLOTS)] == sid[SLOT(1, lowest % SLOTS)] ->
     chosen = sid[SLOT(0, lowest % SLOTS)]
  :: else
  fi;
  top = 0;
  number = 0;
  highest = 0;
  lowest = 0
}

/* Where what rank x had in its image of `number` is: place is a file, of guards if in_guard. */
inline find_image(x) {
  found = 0;
  in_guard = 0;
  for (k : 0 .. FILES - 1) {
    if
    :: !found && gid[FILE(1 - (x), k)] == number ->
       found = 1;
       in_guard = 1;
       place = FILE(1 - (x), k)
    :: else
    fi
  }
  for (k : 0 .. FILES - 1) {
    if
    :: (!found || in_guard) && iid[FILE(x, k)] == number ->
       found = 1;
       in_guard = 0;
       place = FILE(x, k)
    :: else
    fi
  }
}

/* recovery_plan.hpp: the newest id of which both can have the image; 0: none. */
inline plan() {
  best = 0;
  for (i : 0 .. 4 * FILES - 1) {
    number = (i < 2 * FILES -> iid[i] : gid[i - 2 * FILES]);
    if
    :: number > best ->
       find_image(0);
       if
       :: found ->
          find_image(1);
          if
          :: found -> best = number
          :: else
          fi
       :: else
       fi
    :: else
    fi
  }
  number = 0
}

inline check_tag(part) {
  highest = part;
  assert(highest == tag && VER(tag) == VER(chosen));
  assert(VALID(tag));
  assert(hurt > 1 || tag >= promised);
  assert(lost_any || tag >= acknowledged)
}

/* Both halves of what find_image() found. */
inline check_found() {
  if
  :: in_guard -> check_tag(ga[place]); check_tag(gb[place])
  :: else -> check_tag(ia[place]); check_tag(ib[place])
  fi
}

inline check_images() {
  number = chosen;
  find_image(0);
  tag = (in_guard -> ga[place] : ia[place]);
  check_found();
  find_image(1);
  check_found();
  number = 0
}

/* The file beside its guard, or else the oldest (bring_back.cpp). */
inline free_image(x) {
  place = FILE(x, 0);
  for (k : 1 .. FILES - 1) {
    if
    :: gid[place] != chosen &&
       (gid[FILE(x, k)] == chosen || iid[FILE(x, k)] < iid[place]) -> place = FILE(x, k)
    :: else
    fi
  }
}

inline rebuild(x) {
  number = chosen;
  find_image(x);
  assert(found);
  if
  :: in_guard ->
     lowest = place;
     free_image(x);
     iid[place] = number;
     ia[place] = ga[lowest];
     ib[place] = gb[lowest]
  :: else
  fi;
  lowest = 0;
  number = 0
}

/* The new file's place is taken: all of it is there, or nothing. */
inline take_place(x) {
  number = chosen;
  find_image(x);
  clear_pool(x);
  has[x] = 1;
  k = VER(chosen) % SLOTS;
  state[SLOT(x, k)] = COMPLETE;
#ifdef NO_GENERATION
  sid[SLOT(x, k)] = chosen;
#else
  sid[SLOT(x, k)] = clock * 8 + VER(chosen);
#endif
  parent[SLOT(x, k)] = VER(chosen) - 1;
  pa[SLOT(x, k)] = (in_guard -> ga[place] : ia[place]);
  pb[SLOT(x, k)] = (in_guard -> gb[place] : ib[place]);
  k = (VER(chosen) + 1) % SLOTS;
  state[SLOT(x, k)] = OPEN;
  sid[SLOT(x, k)] = VER(chosen) + 1;
  parent[SLOT(x, k)] = VER(chosen);
  number = 0
}

inline open_next(x) {
  for (k : 0 .. SLOTS - 1) {
    if
    :: k != VER(chosen) % SLOTS && k != next % SLOTS &&
       (state[SLOT(0, k)] != COMPLETE || state[SLOT(1, k)] != COMPLETE ||
        sid[SLOT(0, k)] != sid[SLOT(1, k)]) -> state[SLOT(x, k)] = 0; sid[SLOT(x, k)] = 0
    :: else
    fi
  }
#ifndef NO_CLEARING_AT_RESTART
  /* A restore may have cleared them on one rank only. */
  for (k : 0 .. FILES - 1) {
    if
    :: VER(iid[FILE(x, k)]) > VER(chosen) -> iid[FILE(x, k)] = 0
    :: else
    fi;
    if
    :: VER(gid[FILE(x, k)]) > VER(chosen) -> gid[FILE(x, k)] = 0
    :: else
    fi
  }
#endif
  state[SLOT(x, next % SLOTS)] = OPEN;
  sid[SLOT(x, next % SLOTS)] = next;
  parent[SLOT(x, next % SLOTS)] = VER(chosen)
}

inline check_pool() {
  tag = pa[SLOT(0, VER(chosen) % SLOTS)];
  check_tag(pb[SLOT(0, VER(chosen) % SLOTS)]);
  check_tag(pa[SLOT(1, VER(chosen) % SLOTS)]);
  check_tag(pb[SLOT(1, VER(chosen) % SLOTS)])
}

/* find_whole() of levels.cpp. */
inline find_whole() {
  best = 0;
  for (i : 0 .. FILES - 1) {
    for (k : 0 .. FILES - 1) {
      if
      :: iid[FILE(0, i)] == gid[FILE(0, i)] && iid[FILE(0, i)] == iid[FILE(1, k)] &&
         iid[FILE(1, k)] == gid[FILE(1, k)] && iid[FILE(0, i)] > best -> best = iid[FILE(0, i)]
      :: else
      fi
    }
  }
  i = 0
}

inline protect_image(x) {
  choose_file(x, best);
  iid[FILE(x, file[x])] = 0
}
inline protect_image_end(x) {
  iid[FILE(x, file[x])] = chosen;
  ia[FILE(x, file[x])] = pa[SLOT(x, VER(chosen) % SLOTS)];
  ib[FILE(x, file[x])] = pb[SLOT(x, VER(chosen) % SLOTS)]
}
inline protect_guard(x) {
  gid[FILE(x, file[x])] = chosen;
  ga[FILE(x, file[x])] = ia[FILE(1 - (x), file[1 - (x)])];
  gb[FILE(x, file[x])] = ib[FILE(1 - (x), file[1 - (x)])]
}

#define GHOST_OF(id) \
  for (k : 0 .. FILES - 1) { \
    if \
    :: iid[FILE(0, k)] == id -> tag = ia[FILE(0, k)] \
    :: else \
    fi \
  }

inline redundant() {
  GHOST_OF(best);
  promised = tag;
  hurt = 0
}

inline begin_run() {
  inc = INC(chosen) + 1;
  clock = (inc > clock -> inc : clock);
  base = pa[SLOT(0, VER(chosen) % SLOTS)];
  acknowledged = base;
  lost_any = 0;
  for (x : 0 .. 1) {
    v[x] = next;
    head[x] = VER(chosen);
    whole[x] = best;
    file[x] = 0
  }
  chosen = 0;
  best = 0;
  next = 0;
  tag = 0;
  alive = 1
}

inline forget() {
  x = 0; k = 0; i = 0; top = 0; number = 0; lowest = 0; highest = 0; place = 0; found = 0;
  in_guard = 0
}

#define MAY_CRASH \
  if \
  :: skip \
  :: crashes < CRASHES -> goto crash \
  fi

active proctype Machine() {
  byte x;
  byte k;
  byte i;
  byte top;
  byte number;
  byte lowest;
  byte highest;
  byte next;
  byte chosen;
  byte best;
  byte place;
  byte tag;
  bit found;
  bit in_guard;
  bit first;
  atomic {
    for (x : 0 .. 7) { cut[x] = 7 }
    for (x : 0 .. 1) {
      has[x] = 1;
      state[SLOT(x, 1)] = COMPLETE;
      sid[SLOT(x, 1)] = 8 + 1;
      pa[SLOT(x, 1)] = 1;
      pb[SLOT(x, 1)] = 1;
      state[SLOT(x, 2 % SLOTS)] = OPEN;
      sid[SLOT(x, 2 % SLOTS)] = 2;
      parent[SLOT(x, 2 % SLOTS)] = 1
    }
    clock = 1;
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
  atomic { stop(); forget(); chosen = 0; best = 0; next = 0; tag = 0; first = 0 };
  atomic { lose(); forget() };
recover:
  atomic {
    judge();
    if
    :: chosen != 0 -> check_pool(); goto settle
    :: else
    fi;
    assert(lost_any);
    plan();
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
    if
    :: first = 0
    :: first = 1
    fi;
    rebuild(first);
    forget()
  };
#ifdef RENAME_EARLY
  atomic { take_place(first); forget() };
#endif
  MAY_CRASH;
  atomic { rebuild((1 - first)); forget() };
  MAY_CRASH;
#ifdef RENAME_FIRST
  MAY_CRASH;
#endif
  atomic { take_place(first); forget() };
  MAY_CRASH;
  atomic { take_place((1 - first)); chosen = 0; forget() };
  MAY_CRASH;
  goto recover;
settle:
  atomic {
    forget();
    if
    :: first = 0
    :: first = 1
    fi;
    open_next(first);
    forget()
  };
  MAY_CRASH;
  atomic { open_next((1 - first)); find_whole(); forget() };
  MAY_CRASH;
  if
  :: best == 0 && (promised != 0 || lost_any) ->
     atomic { plan(); forget(); protect_image(first); protect_image((1 - first)) };
     MAY_CRASH;
     atomic { protect_image_end(first); forget() };
     MAY_CRASH;
     atomic {
       protect_image_end((1 - first));
       gid[FILE(0, file[0])] = 0;
       gid[FILE(1, file[1])] = 0
     };
     MAY_CRASH;
     atomic { protect_guard(first); forget() };
     MAY_CRASH;
     atomic { protect_guard((1 - first)); best = chosen }
  :: else
  fi;
  atomic {
    if
    :: best != 0 -> redundant()
    :: else
    fi;
    begin_run();
    forget();
    first = 0;
    goto end_of_crashes
  };
end_refused:
  false
}
