/* SPDX-License-Identifier: BSD-3-Clause
 *
 * ring.pml: versions in a ring of three slots, commits and restores of older versions, for the
 * model checker Spin. commit.pml says how a commit is made durable with two slots, and tries its
 * parts; this model is about what a ring adds: lineage, and working copies. run.py names the
 * variants.
 *
 * N ranks begin with versions 1 and 2 (of 1) and do OPS operations in each life: commits, and
 * restores of any version that is retained. What they do is drawn by the first to get there. A
 * commit writes the own line of the working copy and puts into the neighbour's, by the number of
 * its own working copy. The machine crashes up to CRASHES times, at any step.
 *
 * State of a rank, version v in slot v mod 3:
 *   STATE(s)  OPEN(v, p) or COMPLETE(v, p), p the version that v was made from
 *   BODY(s)   version, attempt, and the copy that holds it
 *   OWN(c), PUT(c)  the two lines of copy c
 * A line has a cached and a durable value; see commit.pml.
 *
 * Checked after each crash: the minimum R of the heads is the acknowledged head, or what was under
 * way; it is complete on all ranks; and every version that all hold, and that is not in the
 * slot of the next one, is whole, in one copy and of one attempt on all ranks.
 */
#ifndef N
#define N 2
#endif
#ifndef OPS
#define OPS 2
#endif
#ifndef CRASHES
#define CRASHES 2
#endif

#define SLOTS 3
#define LINES 12
#define STATE(r, s) ((r) * LINES + (s))
#define BODY(r, s) ((r) * LINES + 3 + (s))
#define OWN(r, c) ((r) * LINES + 6 + (c))
#define PUT(r, c) ((r) * LINES + 9 + (c))
#define IS_BODY(i) ((i) % LINES >= 3 && (i) % LINES < 6)

/* A state word: 1 complete, 2 open. Versions are below 8 as long as a crash can ask for them. */
#define WORD(kind, v, p) ((kind) * 64 + (v) * 8 + (p))
#define IS_COMPLETE(word) ((word) / 64 == 1)
#define VERSION(word) ((word) / 8 % 8)
#define PARENT(word) ((word) % 8)

/* What attempt `attempt` at version v writes; a body also says which copy. */
#define TAG(v) (attempt * 8 + (v))
#define BODY_OF(v, c) (TAG(v) + (c) * 64)
#define TAG_OF(body) ((body) % 64)
#define COPY_OF(body) ((body) / 64)
#define TORN 255

#define NOTHING 255
#define COMMIT 0 /* in ops; otherwise the version to restore */

typedef Line {
  byte cached;
  byte durable;
  bit flushed
};
Line line[N * LINES];

byte ops[OPS];
byte attempt;
byte acknowledged; /* the head that some rank has learnt of */
byte under_way;    /* the head that the operation going on will lead to */
byte crashes;
byte recovered; /* R */
byte next;
bit restarting[N];

/* One barrier at a time: the last rank to arrive turns the door. */
byte arrived;
bit door;
bit side[N];
bit waits[N];

inline write(i, value) {
#ifndef WRONG
  assert(line[i].cached == line[i].durable);
#endif
  line[i].cached = value;
  line[i].flushed = 0
}

inline flush(i) { line[i].flushed = 1 }

inline fence() {
  i = r * LINES;
  do
  :: i < (r + 1) * LINES ->
     if
     :: line[i].flushed -> line[i].durable = line[i].cached; line[i].flushed = 0
     :: else
     fi;
     i++
  :: else -> break
  od;
  i = 0
}

#define ARRIVE(at_last) \
  arrived++; \
  waits[r] = 1; \
  if \
  :: arrived == N -> at_last; arrived = 0; door = !door \
  :: else \
  fi

#define MAY_PASS (!waits[r] || door != side[r])
#define PASS \
  MAY_PASS -> \
  side[r] = door; \
  waits[r] = 0

/* Is copy c named by a complete slot other than that of v? */
#define NAMES(s, c) \
  ((s) != v % SLOTS && IS_COMPLETE(line[STATE(r, s)].cached) && \
   COPY_OF(line[BODY(r, s)].cached) == (c))
#define NAMED(c) (NAMES(0, c) || NAMES(1, c) || NAMES(2, c))

/* The working copy: the lowest that no retained version names. */
inline choose() {
#ifdef PARITY
  w = (COPY_OF(line[BODY(r, h % SLOTS)].cached) + 1) % SLOTS
#else
  if
  :: !NAMED(0) -> w = 0
  :: NAMED(0) && !NAMED(1) -> w = 1
  :: NAMED(0) && NAMED(1) -> assert(!NAMED(2)); w = 2
  fi
#endif
}

/* May this rank restore t? */
#define RETAINED(t) \
  ((t) != h && (t) % SLOTS != v % SLOTS && \
   IS_COMPLETE(line[STATE(r, (t) % SLOTS)].cached) && \
   VERSION(line[STATE(r, (t) % SLOTS)].cached) == (t))

inline draw() {
  if
  :: ops[k] == NOTHING ->
     if
     :: ops[k] = COMMIT
     :: RETAINED(v - 1) -> ops[k] = v - 1
     :: RETAINED(v - 2) -> ops[k] = v - 2
     fi;
     under_way = (ops[k] == COMMIT -> v : ops[k])
  :: else
  fi
}

inline commit() {
  atomic {
    PASS;
    assert(v < 8 || crashes == CRASHES);
    write(OWN(r, w), TAG(v));
    write(PUT((r + 1) % N, w), TAG(v));
    ARRIVE(skip)
  };
  atomic {
    PASS;
    flush(OWN(r, w));
    flush(PUT(r, w));
    write(BODY(r, v % SLOTS), BODY_OF(v, w))
  };
  atomic {
    flush(BODY(r, v % SLOTS));
    fence();
    write(STATE(r, v % SLOTS), WORD(1, v, h))
  };
  atomic {
    flush(STATE(r, v % SLOTS));
    fence();
    ARRIVE(acknowledged = v)
  };
  atomic {
    PASS;
    write(STATE(r, (v + 1) % SLOTS), WORD(2, v + 1, v))
  };
  atomic {
    flush(STATE(r, (v + 1) % SLOTS));
    fence();
    h = v;
    v++;
    choose()
  }
}

inline restore() {
  atomic { PASS; ARRIVE(skip) };
  atomic {
    PASS;
#ifdef NO_LINEAGE
    write(STATE(r, v % SLOTS), WORD(2, v, v - 1))
#else
    write(STATE(r, v % SLOTS), WORD(2, v, ops[k]))
#endif
  };
  atomic {
    flush(STATE(r, v % SLOTS));
    fence();
    h = ops[k];
#ifdef NO_SECOND_AGREEMENT
    acknowledged = h;
    choose()
#else
    ARRIVE(acknowledged = h)
#endif
  };
#ifndef NO_SECOND_AGREEMENT
  atomic { PASS; choose() }
#endif
}

proctype Rank(byte r) {
  byte v; /* the next version */
  byte h; /* the head */
  byte w; /* the working copy */
  byte k; /* operations done in this life */
  byte i;
  do
  :: {
       v > 0; /* not before recovery, which is the escape below */
       atomic {
         flush(STATE(r, v % SLOTS));
         fence();
         ARRIVE(skip)
       };
       atomic { PASS; choose() };
       do
       :: atomic { k < OPS && MAY_PASS -> draw() };
          if
          :: ops[k] == COMMIT -> commit()
          :: else -> restore()
          fi;
          k++
       :: k >= OPS ->
#ifdef NEVER_ENDS
          assert(crashes < CRASHES);
#endif
        end_of_work:
          false
       od
     } unless {
       d_step {
         restarting[r] ->
         restarting[r] = 0;
         v = next;
         h = recovered;
         k = 0;
         w = 0;
         i = 0;
#ifndef NO_REOPEN
         write(STATE(r, v % SLOTS), WORD(2, v, h))
#endif
       }
     }
  od
}

inline lose_cache() {
  for (i : 0 .. N * LINES - 1) {
    if
    :: line[i].cached != line[i].durable ->
       if
       :: line[i].durable = line[i].cached
       :: skip
       :: IS_BODY(i) -> line[i].durable = TORN
       fi;
       line[i].cached = line[i].durable
    :: else
    fi;
    line[i].flushed = 0
  }
}

/* The head and the next number of each rank, from its highest number. */
inline read_slots() {
  recovered = 255;
  next = 255;
  for (rank : 0 .. N - 1) {
    top = 0;
    for (i : 0 .. SLOTS - 1) {
      if
      :: VERSION(line[STATE(rank, i)].durable) > VERSION(top) -> top = line[STATE(rank, i)].durable
      :: else
      fi
    }
    head = (IS_COMPLETE(top) -> VERSION(top) : PARENT(top));
    number = (IS_COMPLETE(top) -> VERSION(top) + 1 : VERSION(top));
#ifdef RECOVER_MAX
    recovered = ((recovered == 255 || head > recovered) -> head : recovered);
#else
    recovered = (head < recovered -> head : recovered);
#endif
    next = (number < next -> number : next)
  }
}

#define HOLDS(rank, x) \
  (line[STATE(rank, (x) % SLOTS)].durable / 8 == 8 + (x) && \
   line[BODY(rank, (x) % SLOTS)].durable != TORN && \
   TAG_OF(line[BODY(rank, (x) % SLOTS)].durable) % 8 == (x))

inline check_versions() {
  assert(recovered == acknowledged || recovered == under_way);
  assert(recovered % SLOTS != next % SLOTS);
  for (number : 1 .. next - 1) {
    held = number % SLOTS != next % SLOTS;
    for (rank : 0 .. N - 1) { held = held && HOLDS(rank, number) }
    assert(held || number != recovered);
    if
    :: held ->
       top = line[BODY(0, number % SLOTS)].durable;
       for (rank : 0 .. N - 1) {
         assert(line[BODY(rank, number % SLOTS)].durable == top);
         assert(line[OWN(rank, COPY_OF(top))].durable == TAG_OF(top));
         assert(line[PUT(rank, COPY_OF(top))].durable == TAG_OF(top))
       }
    :: else
    fi
  }
}

inline restart_ranks() {
  arrived = 0;
  door = 0;
  acknowledged = recovered;
  under_way = recovered;
  for (i : 0 .. OPS - 1) { ops[i] = NOTHING }
  for (rank : 0 .. N - 1) {
    side[rank] = 0;
    waits[rank] = 0;
    restarting[rank] = 1
  }
}

inline set(i, value) {
  line[i].cached = value;
  line[i].durable = value
}

/* Version 1 in copy 0 and version 2 in copy 1. */
inline begin_with_two() {
  for (rank : 0 .. N - 1) {
    set(STATE(rank, 1), WORD(1, 1, 0));
    set(BODY(rank, 1), 1);
    set(OWN(rank, 0), 1);
    set(PUT(rank, 0), 1);
    set(STATE(rank, 2), WORD(1, 2, 1));
    set(BODY(rank, 2), 2 + 64);
    set(OWN(rank, 1), 2);
    set(PUT(rank, 1), 2);
    set(STATE(rank, 0), WORD(2, 3, 2))
  }
}

active proctype Machine() {
  byte i;
  byte rank;
  byte top;
  byte head;
  byte number;
  bit held;
  atomic {
    begin_with_two();
    recovered = 2;
    next = 3;
    for (rank : 0 .. N - 1) { run Rank(rank) }
    restart_ranks()
  }
end_of_crashes:
  do
  :: atomic {
       crashes < CRASHES ->
       crashes++;
       attempt++;
       lose_cache();
       read_slots();
       check_versions();
       restart_ranks();
       i = 0;
       rank = 0;
       top = 0;
       head = 0;
       number = 0;
       held = 0
     }
  od
}
