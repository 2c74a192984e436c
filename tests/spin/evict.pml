/* SPDX-License-Identifier: BSD-3-Clause
 *
 * evict.pml: a cache block whose room is taken away, and given back, while processes read and write
 * it (cache.P17 of src/cache/evictor.hpp, cache.U1 to cache.U3 of part_users.hpp), for the model
 * checker Spin. run.py names the variants.
 *
 * N users make OPS accesses each, to a word of their own in one block: a mark, a look at
 * `evicting`, a look at the block's state, and then the bytes, here or in the file. A mark is a
 * plain store: it stays in the processor's buffer until that drains, which it does at any time, in
 * a fence, or before a later store of the same user. The evicter sets `evicting`, has all buffers
 * drained, takes the block, looks at the marks, and then takes its room away or brings it back. It
 * may lose patience at any look. Up to CRASHES processes die, at any step; the cleaner comes after
 * them.
 *
 * Checked: nobody touches a block without room, or reads anything but what it wrote last; and at
 * the end the block has what each user wrote last, done or in the middle of it.
 */
#ifndef N
#define N 2
#endif
#ifndef OPS
#define OPS 2
#endif
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef TURNS
#define TURNS 2
#endif

#define PRESENT 0
#define PRESENT_HELD 1
#define THROUGH 2
#define THROUGH_HELD 3
#define IS_HERE (state == PRESENT || state == PRESENT_HELD)

byte state = PRESENT;
byte evicting = 0;
bit room = 1;
bit dirty = 0;
byte here[N];    /* the block's bytes, a word for each user */
byte in_file[N]; /* the file's */

bit mark[N];       /* as others see it */
bit buffered[N];   /* a mark that they do not see yet */
byte done_last[N];      /* what the user's last write was that is done */
byte intended[N];  /* in its journal; 0: nothing */
bit dead[N];
bit cleaner_mark;
bit evicter_dead;
byte deaths = 0;
bit settled[N + 1]; /* done, or cleaned up after; the last is the evicter */

#if N != 1 && N != 2
#error two users at most
#endif

#define DRAIN(u)             \
  d_step {                   \
    if                       \
    :: buffered[u] ->        \
       mark[u] = 1;          \
       buffered[u] = 0       \
    :: else                  \
    fi                       \
  }

proctype Buffer(byte u) {
  do
  :: buffered[u] -> DRAIN(u)
  :: settled[u] -> break
  od
}

proctype Use(byte u) provided (!dead[u]) {
  byte ops = 0;
  byte seen = 0;
again:
  do
  :: ops == OPS -> break
  :: ops < OPS ->
#ifdef LOOKS_FIRST
     seen = state;
#endif
     buffered[u] = 1;
     if
     :: evicting == 0 -> skip
#ifdef NO_EXCHANGE
     :: evicting != 0 -> skip
#else
     :: evicting != 0 -> DRAIN(u)
#endif
     fi;
#ifndef LOOKS_FIRST
     seen = state;
#endif
     if
     :: seen == PRESENT ->
        if
        :: d_step {
             DRAIN(u);
             intended[u] = done_last[u] + 1
           };
           d_step {
             assert(room);
             here[u] = intended[u]
           };
           dirty = 1;
           d_step {
             done_last[u] = intended[u];
             intended[u] = 0
           }
        :: assert(room && here[u] == done_last[u])
        fi
     :: seen == THROUGH ->
        if
        :: d_step {
             DRAIN(u);
             intended[u] = done_last[u] + 1
           };
           in_file[u] = intended[u];
           d_step {
             done_last[u] = intended[u];
             intended[u] = 0
           }
        :: assert(in_file[u] == done_last[u])
        fi
     :: else ->
        d_step {
          DRAIN(u);
          mark[u] = 0
        };
        (state == PRESENT || state == THROUGH);
        goto again
     fi;
     d_step {
       DRAIN(u);
       mark[u] = 0
     };
     ops++
  od;
  settled[u] = 1
}

/* Goes on when nobody has the block marked, or to `otherwise`. */
#define AWAIT_USERS(otherwise)              \
  user = 0;                                 \
  do                                        \
  :: user == N -> break                     \
  :: user < N && !mark[user] -> user++      \
  :: user < N && mark[user] -> goto otherwise \
  od;                                       \
  if                                        \
  :: cleaner_mark -> goto otherwise         \
  :: else                                   \
  fi

proctype Evict() provided (!evicter_dead) {
  byte turn = 0;
  byte user = 0;
  evicting = 1;
#ifndef NO_BARRIER
  do
  :: user == N -> break
  :: user < N ->
     DRAIN(user);
     user++
  od;
#endif
  evicting = 2;
  do
  :: turn == TURNS -> break
  :: turn < TURNS ->
     turn++;
     if
     :: state == PRESENT ->
#ifdef MARKS_FIRST
        AWAIT_USERS(kept);
#endif
        atomic {
          if
          :: state == PRESENT -> state = PRESENT_HELD
          :: else -> goto kept
          fi
        };
#ifndef MARKS_FIRST
        AWAIT_USERS(back);
#endif
        if
        :: dirty ->
           dirty = 0;
           user = 0;
           do
           :: user == N -> break
           :: user < N ->
              in_file[user] = here[user];
              user++
           od
        :: else
        fi;
#ifdef ROOM_FIRST
        room = 0;
        state = THROUGH_HELD;
#else
        state = THROUGH_HELD;
        room = 0;
#endif
        state = THROUGH;
        goto kept;
back:
        state = PRESENT;
kept:
        skip
     :: state == THROUGH ->
        atomic {
          if
          :: state == THROUGH -> state = THROUGH_HELD
          :: else -> goto passed
          fi
        };
#ifndef PASSING_NOT_AWAITED
        AWAIT_USERS(passes);
#endif
        room = 1;
        user = 0;
        do
        :: user == N -> break
        :: user < N ->
           here[user] = in_file[user];
           user++
        od;
        state = PRESENT;
        goto passed;
passes:
        state = THROUGH;
passed:
        skip
     :: else -> skip
     fi
  od;
  settled[N] = 1
}

/* What its last store left in a buffer is seen by all, some time. */
#define KILL(which, done)                      \
  d_step {                                     \
    deaths < CRASHES && !which && !done ->     \
    which = 1;                                 \
    deaths++                                   \
  }

proctype Kill() {
  do
  :: KILL(dead[0], settled[0])
  :: KILL(dead[N - 1], settled[N - 1])
  :: KILL(evicter_dead, settled[N])
  :: break
  od
}

/* After a dead user: what it intended, then its mark. The cleaner can't go on while the block is
 * held, and so tries again. */
#define CLEAN(u)                                                        \
  dead[u] && !settled[u] && intended[u] != 0 && state == PRESENT ->     \
     cleaner_mark = 1;                                                  \
     if                                                                 \
     :: state == PRESENT ->                                             \
        d_step {                                                        \
          assert(room);                                                 \
          here[u] = intended[u]                                         \
        };                                                              \
        dirty = 1;                                                      \
        done_last[u] = intended[u];                                          \
        intended[u] = 0                                                 \
     :: else                                                            \
     fi;                                                                \
     cleaner_mark = 0                                                   \
  :: dead[u] && !settled[u] && intended[u] != 0 && state == THROUGH ->  \
     cleaner_mark = 1;                                                  \
     if                                                                 \
     :: state == THROUGH ->                                             \
        in_file[u] = intended[u];                                       \
        done_last[u] = intended[u];                                          \
        intended[u] = 0                                                 \
     :: else                                                            \
     fi;                                                                \
     cleaner_mark = 0                                                   \
  :: d_step {                                                           \
       dead[u] && !settled[u] && intended[u] == 0 ->                    \
       buffered[u] = 0;                                                 \
       mark[u] = 0;                                                     \
       settled[u] = 1                                                   \
     }

proctype Clean() {
  do
  :: evicter_dead && state == PRESENT_HELD ->
     dirty = 1;
     state = PRESENT
  :: evicter_dead && state == THROUGH_HELD ->
     room = 0;
     state = THROUGH
  :: d_step {
       evicter_dead && !settled[N] && state != PRESENT_HELD && state != THROUGH_HELD ->
       settled[N] = 1
     }
  :: CLEAN(0)
  :: CLEAN(N - 1)
  :: settled[0] && settled[N - 1] && settled[N] -> break
  od
}

init {
  byte user = 0;
  atomic {
    do
    :: user == N -> break
    :: user < N ->
       run Buffer(user);
       run Use(user);
       user++
    od;
    run Evict();
    run Kill();
    run Clean()
  };
  (settled[0] && settled[N - 1] && settled[N]);
  user = 0;
  do
  :: user == N -> break
  :: user < N ->
     assert((IS_HERE && room && here[user] == done_last[user]) ||
            (!IS_HERE && in_file[user] == done_last[user]));
     user++
  od;
#ifdef NEVER_ENDS
  assert(false)
#endif
}
