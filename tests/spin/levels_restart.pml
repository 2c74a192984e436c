/* SPDX-License-Identifier: BSD-3-Clause
 *
 * levels_restart.pml: losses and restarts in levels.pml, as parts of its process Machine.
 */

inline clear_pool(set) {
  for (k : 0 .. SLOTS - 1) {
    state[SLOT(set, k)] = 0;
    sid[SLOT(set, k)] = 0;
    parent[SLOT(set, k)] = 0;
    pa[SLOT(set, k)] = 0;
    pb[SLOT(set, k)] = 0
  }
  gen[set] = 0
}

inline clear_set(set) {
  clear_pool(set);
  for (k : 0 .. FILES - 1) {
    iid[FILE(set, k)] = 0;
    ia[FILE(set, k)] = 0;
    ib[FILE(set, k)] = 0;
    gid[FILE(set, k)] = 0;
    ga[FILE(set, k)] = 0;
    gb[FILE(set, k)] = 0
  }
}

inline copy_pool(from, to) {
  for (k : 0 .. SLOTS - 1) {
    state[SLOT(to, k)] = state[SLOT(from, k)];
    sid[SLOT(to, k)] = sid[SLOT(from, k)];
    parent[SLOT(to, k)] = parent[SLOT(from, k)];
    pa[SLOT(to, k)] = pa[SLOT(from, k)];
    pb[SLOT(to, k)] = pb[SLOT(from, k)]
  }
  gen[to] = gen[from]
}

inline note_loss() {
  hurt = (hurt == 2 -> 2 : hurt + 1);
  lost_any = 1
}

#ifdef MOVES
inline lose() {
  if
  :: skip
  :: changed = 1 - changed
  fi;
  if
  :: skip
  :: clear_set(HOME(0)); clear_set(AWAY(1)); note_loss()
  :: clear_set(HOME(1)); clear_set(AWAY(0)); note_loss()
  fi
}
#else
inline move_set(from, to) {
  copy_pool(from, to);
  for (k : 0 .. FILES - 1) {
    iid[FILE(to, k)] = iid[FILE(from, k)];
    ia[FILE(to, k)] = ia[FILE(from, k)];
    ib[FILE(to, k)] = ib[FILE(from, k)];
    gid[FILE(to, k)] = gid[FILE(from, k)];
    ga[FILE(to, k)] = ga[FILE(from, k)];
    gb[FILE(to, k)] = gb[FILE(from, k)]
  };
  clear_set(from)
}

inline lose() {
  if
  :: skip
  :: move_set(0, 2); old = 1; old_rank = 0; note_loss()
  :: move_set(1, 2); old = 1; old_rank = 1; note_loss()
#ifndef NO_RETURN
  :: old && old_rank == 0 -> move_set(2, 0); old = 0; note_loss()
  :: old && old_rank == 1 -> move_set(2, 1); old = 0; note_loss()
#endif
  fi
}
#endif

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
    image[x] = 0;
    guard[x] = 0;
    phase[x] = IDLE;
    half[x] = 0;
    said[x] = 0;
    whole[x] = 0;
    at[x] = 0;
    go[x] = 0
  }
}

inline draw(one) {
  if
  :: one = 0
  :: one = 1
  fi
}

#ifdef MOVES
/* Census::files_in_use(): in `highest` the age of the rank's file, or 0. */
inline find_age(set) {
  top = SLOT(set, 0);
  for (k : 1 .. SLOTS - 1) {
    if
    :: state[SLOT(set, k)] == COMPLETE &&
       (state[top] != COMPLETE || VER(sid[SLOT(set, k)]) > VER(sid[top])) -> top = SLOT(set, k)
    :: else
    fi
  }
  highest = (state[top] == COMPLETE && INC(sid[top]) > gen[set] -> INC(sid[top]) : gen[set]);
  highest = (gen[set] == 0 -> 0 : highest)
}

/* In `found`: the newest file of the rank is on the other node. */
inline find_newest(x) {
  find_age(AWAY(x));
  lowest = highest;
  find_age(HOME(x));
#ifdef ANY_FILE
  found = (highest == 0 && lowest != 0)
#else
  found = (lowest > highest)
#endif
}

/* In `next`: every rank has a file, and some rank's is to be moved. */
inline find_moves() {
  find_newest(0);
  next = found;
  number = (lowest != 0 || highest != 0);
  find_newest(1);
  next = ((next || found) && number && (lowest != 0 || highest != 0))
}

inline move_file(x) {
  find_newest(x);
  if
  :: found ->
     copy_pool(AWAY(x), HOME(x));
#ifndef KEEPS_GENERATION
     gen[HOME(x)] = clock
#endif
  :: else
  fi
}
#endif

/* recover.cpp: R as the minimum of the heads, if both hold it. In `chosen` as an id, or 0. In
 * `ahead`: some rank has completed a newer one. */
inline judge() {
  lowest = 255;
  next = 255;
  ahead = 0;
  highest = 0;
  for (x : 0 .. 1) {
    top = SLOT(HOME(x), 0);
    for (k : 1 .. SLOTS - 1) {
      if
      :: state[SLOT(HOME(x), k)] != 0 && VER(sid[SLOT(HOME(x), k)]) > VER(sid[top]) ->
         top = SLOT(HOME(x), k)
      :: else
      fi
    }
    number = (state[top] == COMPLETE -> VER(sid[top]) : parent[top]);
    ahead = (lowest != 255 && number != lowest -> 1 : ahead);
    lowest = (number < lowest -> number : lowest);
    number = (state[top] == COMPLETE -> VER(sid[top]) + 1 : VER(sid[top]));
    next = (number < next -> number : next);
    highest = (VER(sid[top]) > highest -> VER(sid[top]) : highest)
  }
  chosen = 0;
  k = SLOT(HOME(0), lowest % SLOTS);
  top = SLOT(HOME(1), lowest % SLOTS);
  if
  :: gen[HOME(0)] != 0 && gen[HOME(1)] != 0 && highest <= next && state[k] == COMPLETE &&
     state[top] == COMPLETE && VER(sid[k]) == lowest && sid[k] == sid[top] -> chosen = sid[k]
  :: else
  fi;
  k = 0;
  top = 0;
  number = 0;
  highest = 0;
  lowest = 0
}

#define LOOK_FOR(ids, set, guards) \
  for (k : 0 .. FILES - 1) { \
    if \
    :: !found && ids[FILE(set, k)] == number -> \
       found = 1; \
       in_guard = guards; \
       place = FILE(set, k) \
    :: else \
    fi \
  }

/* Where what rank x had in its image of `number` is: place is a file, of guards if in_guard. */
inline find_image(x) {
  found = 0;
  LOOK_FOR(iid, HOME(x), 0);
#ifdef MOVES
  LOOK_FOR(iid, AWAY(x), 0);
#endif
  LOOK_FOR(gid, HOME(1 - (x)), 1);
#ifdef MOVES
  LOOK_FOR(gid, AWAY(1 - (x)), 1)
#endif
}

#define ID_AT(n) (n < SETS * FILES -> iid[n] : gid[(n) - SETS * FILES])

/* The files of node 2 are not there. */
#ifdef MOVES
#define IS_THERE(n) true
#else
#define IS_THERE(n) (((n) / FILES) % SETS != 2)
#endif

/* recovery_plan.hpp: the newest id of which both can have the image; 0: none. */
inline plan() {
  best = 0;
  for (i : 0 .. 2 * SETS * FILES - 1) {
    number = ID_AT(i);
    if
    :: number > best && IS_THERE(i) ->
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
  i = 0;
  number = 0
}

/* best_guarded(): in `kept` the newest id of those that bear most losses; 0: none. */
inline find_guarded() {
  kept = 0;
  other = 0; /* image and guard of both ranks: 2, of one: 1 */
  for (i : 0 .. 2 * SETS * FILES - 1) {
    number = ID_AT(i);
    if
    :: number != 0 && IS_THERE(i) ->
       lowest = 0;
       for (x : 0 .. 1) {
         found = 0;
         LOOK_FOR(iid, HOME(x), 0);
#ifdef MOVES
         LOOK_FOR(iid, AWAY(x), 0);
#endif
         highest = found;
         found = 0;
         LOOK_FOR(gid, HOME(x), 1);
#ifdef MOVES
         LOOK_FOR(gid, AWAY(x), 1);
#endif
         lowest = lowest + (highest && found -> 1 : 0)
       }
       if
       :: lowest > other || (lowest != 0 && lowest == other && number > kept) ->
          other = lowest;
          kept = number
       :: else
       fi
    :: else
    fi
  }
}

inline check_tag(part) {
  assert((part) == tag && VER(tag) == VER(chosen));
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
  place = FILE(HOME(x), 0);
  for (k : 1 .. FILES - 1) {
    if
    :: gid[place] != chosen && (gid[FILE(HOME(x), k)] == chosen ||
                                iid[FILE(HOME(x), k)] < iid[place]) -> place = FILE(HOME(x), k)
    :: else
    fi
  }
}

/* Its image on its node: moved, or made from the guard. */
inline rebuild(x) {
  number = chosen;
  find_image(x);
  assert(found);
  if
  :: in_guard || place / FILES != HOME(x) ->
     lowest = (in_guard -> ga[place] : ia[place]);
     highest = (in_guard -> gb[place] : ib[place]);
     free_image(x);
     iid[place] = number;
     ia[place] = lowest;
     ib[place] = highest
  :: else
  fi
}

/* The new file's place is taken: all of it is there, or nothing. */
inline take_place(x) {
  number = chosen;
  find_image(x);
  clear_pool(HOME(x));
  gen[HOME(x)] = clock;
  k = SLOT(HOME(x), VER(chosen) % SLOTS);
  state[k] = COMPLETE;
#ifdef NO_GENERATION
  sid[k] = chosen;
#else
  sid[k] = clock * 8 + VER(chosen);
#endif
  parent[k] = VER(chosen) - 1;
  pa[k] = (in_guard -> ga[place] : ia[place]);
  pb[k] = (in_guard -> gb[place] : ib[place]);
  k = SLOT(HOME(x), (VER(chosen) + 1) % SLOTS);
  state[k] = OPEN;
  sid[k] = VER(chosen) + 1;
  parent[k] = VER(chosen)
}

inline new_incarnation() {
#ifdef NO_GENERATION
  inc = INC(chosen) + 1
#else
  clock++;
  inc = clock
#endif
}

inline open_next(x) {
  for (k : 0 .. SLOTS - 1) {
    lowest = SLOT(HOME(0), k);
    highest = SLOT(HOME(1), k);
    if
    :: k != VER(chosen) % SLOTS && k != next % SLOTS &&
       (state[lowest] != COMPLETE || state[highest] != COMPLETE || sid[lowest] != sid[highest]) ->
       state[SLOT(HOME(x), k)] = 0;
       sid[SLOT(HOME(x), k)] = 0
    :: else
    fi
  }
  k = SLOT(HOME(x), next % SLOTS);
  state[k] = OPEN;
  sid[k] = next;
  parent[k] = VER(chosen)
}

inline check_pool() {
  k = SLOT(HOME(0), VER(chosen) % SLOTS);
  tag = pa[k];
  check_tag(pb[k]);
  k = SLOT(HOME(1), VER(chosen) % SLOTS);
  check_tag(pa[k]);
  check_tag(pb[k])
}

/* find_whole() of levels_open.cpp: image and guard of both ranks on their nodes. */
inline find_whole() {
  best = 0;
  for (i : 0 .. FILES - 1) {
    number = iid[FILE(HOME(0), i)];
    lowest = number != 0;
    found = 0;
    LOOK_FOR(iid, HOME(1), 0);
    lowest = lowest + found;
    found = 0;
    LOOK_FOR(gid, HOME(0), 1);
    lowest = lowest + found;
    found = 0;
    LOOK_FOR(gid, HOME(1), 1);
    lowest = lowest + found;
    best = (lowest == 4 && number > best -> number : best)
  }
}

/* What the version can be had from stays until it is protected. */
inline begin_protection() {
  plan();
  source = best;
  find_guarded();
#ifdef SOURCE_NOT_KEPT
  source = 0;
  kept = 0;
#endif
  for (x : 0 .. 1) {
    CHOOSE_FILE(iid, x, kept, source, image[x]);
    CHOOSE_FILE(gid, x, kept, source, guard[x]);
    iid[FILE(HOME(x), image[x])] = 0
  }
}

inline protect_image(x) {
  iid[FILE(HOME(x), image[x])] = inc * 8 + VER(chosen);
  ia[FILE(HOME(x), image[x])] = pa[SLOT(HOME(x), VER(chosen) % SLOTS)];
  ib[FILE(HOME(x), image[x])] = pb[SLOT(HOME(x), VER(chosen) % SLOTS)]
}

inline clear_guards() {
  for (x : 0 .. 1) { gid[FILE(HOME(x), guard[x])] = 0 }
}

inline protect_guard(x) {
  gid[FILE(HOME(x), guard[x])] = inc * 8 + VER(chosen);
  ga[FILE(HOME(x), guard[x])] = ia[FILE(HOME(1 - (x)), image[1 - (x)])];
  gb[FILE(HOME(x), guard[x])] = ib[FILE(HOME(1 - (x)), image[1 - (x)])]
}

/* `best` is whole on all ranks. It must be no older than what a loss since could have spared. */
inline redundant() {
  for (k : 0 .. FILES - 1) {
    if
    :: iid[FILE(HOME(0), k)] == best -> lowest = ia[FILE(HOME(0), k)]
    :: else
    fi
  }
  tag = pa[SLOT(HOME(0), VER(chosen) % SLOTS)];
  assert(hurt == 0 || lowest >= promised || promised > tag);
  if
  :: lowest >= promised || promised > tag -> promised = lowest; hurt = 0
  :: else
  fi
}

inline begin_run() {
  inc = (inc == 0 -> clock : inc);
  base = pa[SLOT(HOME(0), VER(chosen) % SLOTS)];
  acknowledged = base;
  lost_any = 0;
  for (x : 0 .. 1) {
    v[x] = next;
    head[x] = VER(chosen);
    whole[x] = best;
    image[x] = 0;
    guard[x] = 0
  }
  chosen = 0;
  best = 0;
  next = 0;
  tag = 0;
  kept = 0;
  alive = 1
}

inline forget() {
  x = 0; k = 0; i = 0; top = 0; number = 0; lowest = 0; highest = 0; place = 0; found = 0;
  in_guard = 0; other = 0; source = 0; least = 0; j = 0
}
