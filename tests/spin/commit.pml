/* SPDX-License-Identifier: BSD-3-Clause
 *
 * commit.pml: the commit and recovery protocol of Perdure, for the model checker Spin.
 *
 * N ranks commit versions 1..E of data that they and their neighbours write; the machine crashes up
 * to CRASHES times, at any step, also during recovery. run.py names the variants, says which of
 * them must pass and which must not, and why.
 *
 * State of a rank
 *   copy[0..1]  the data: a line of its own part and a line that a neighbour puts
 *   slot[0..1]  a body {version, attempt} and a state word {OPEN(v) | COMPLETE(v)}
 *   Version v lives in copy and slot v mod 2. A line has a cached and a durable value. A write
 *   changes the cached one; a fence makes durable what the same rank flushed before it.
 *
 * Epoch v on every rank
 *   a. write the own part of copy v mod 2; put into the neighbour's. With -DCOPY both go to a
 *      buffer in DRAM, and step 1 copies it to the copy.
 *   b. the fence that closes the one-sided epoch (a barrier)
 *   1. flush the copy, also what others put into it; write the slot's body; flush; fence
 *   2. state word := COMPLETE(v); flush; fence
 *   3. all ranks agree (a barrier): v is acknowledged
 *   4. state word of the other slot := OPEN(v+1); flush; fence
 * Recovery on every rank: newest = the highest COMPLETE slot with a whole body of that version;
 * R = the minimum of newest over the ranks; state word of slot R+1 := OPEN(R+1); flush; fence;
 * barrier; epoch R+1.
 * With -DLAG, which wants -DLOCAL, epoch v + 1 is computed between a and 1 of epoch v (in-place
 * versioning, src/ipv/object.cpp): there are three copies, version v lives in copy v mod 3, and a
 * crash loses two epochs at most.
 * With -DFAULT one rank may once fail in commit (a device error): all learn it in step 3, re-open
 * the slot as recovery does, and repeat the epoch with other data.
 *
 * A crash leaves each line whose values differ old or new (a body also torn: it is longer than the
 * 8 bytes that are stored at once), in every combination. Checked after each crash: every rank
 * has R; copy R and slot R are, in both lines and on all ranks, of version R and of one attempt;
 * acknowledged <= R <= begun; newest differ by at most 1. With -DOLDER also: if every rank calls
 * R-1 complete, copy R-1 is whole (PERDURE_ALLOW_OLDER relies on it). The attempt is a ghost: it
 * shows what a repeated epoch wrote and what the abandoned one did, so that a mixture is found
 * although all of it is version v.
 *
 * What keeps it small, without loss
 *   - A fence and the write that follows are one step: a crash between them is a crash after the
 *     write of which nothing became durable. The same holds for a fence and the arrival at a
 *     barrier, and for a rank's own writes and its put, which nobody sees before a barrier.
 *   - Recovery only reads until R is agreed, so Machine reads for all ranks at the crash; a crash
 *     while they read finds what the previous crash left.
 *   - The right variants write a line once between two fences (asserted), so old and new are the
 *     only values that it can have.
 */
#ifndef N
#define N 2
#endif
#ifndef E
#define E 3
#endif
#ifndef CRASHES
#define CRASHES 2
#endif

#ifdef LOCAL /* nothing is put, and nothing but commit synchronises the ranks */
#define NO_PUT
#define NO_CLOSING_FENCE
#endif

#define OPEN(v) ((v) * 2)
#define COMPLETE(v) ((v) * 2 + 1)
#define TAG(v) (attempt * 16 + (v))
#define VERSION_OF(tag) ((tag) % 16)
#define TORN 255

#ifndef COPIES
#ifdef LAG
#define COPIES 3
#else
#define COPIES 2
#endif
#endif

/* Lines of rank r; k is the index of a copy or slot. */
#define LINES (COPIES + 6)
#define OWN(r, k) ((r) * LINES + (k))
#define PUT(r, k) ((r) * LINES + COPIES + (k))
#define STATE(r, k) ((r) * LINES + COPIES + 2 + (k))
#define BODY(r, k) ((r) * LINES + COPIES + 4 + (k))
#define IS_BODY(i) ((i) % LINES >= COPIES + 4)

typedef Line {
  byte cached;
  byte durable;
  bit flushed
};
Line line[N * LINES];
#ifdef COPY
byte buffer_own[N];
byte buffer_put[N];
#endif

byte attempt;      /* how often the machine crashed or a commit failed */
byte acknowledged; /* highest version that commit returned on any rank */
byte begun;        /* highest version that any rank began */
byte crashes;
byte recovered;    /* R */
bit restarting[N];

/* One barrier at a time: the last rank to arrive turns the door. */
byte arrived;
bit door;
bit side[N];
bit waits[N];
bit fault;   /* some rank failed in the commit that is going on */
bit verdict; /* of the newest step 3: was there a fault? */
bit fault_used;

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

/* `at_last` is done once, when all ranks have arrived and none has left. */
#define ARRIVE(at_last) \
  arrived++; \
  waits[r] = 1; \
  if \
  :: arrived == N -> at_last; arrived = 0; door = !door \
  :: else \
  fi

/* First in every step: the rank may still be waiting at a barrier. */
#define MAY_PASS (!waits[r] || door != side[r])
#define PASS \
  MAY_PASS -> \
  side[r] = door; \
  waits[r] = 0

inline compute(w) {
  if
  :: w > begun -> begun = w
  :: else
  fi;
#ifdef COPY
  buffer_own[r] = TAG(w);
#ifndef NO_PUT
  buffer_put[(r + 1) % N] = TAG(w);
#endif
#else
  write(OWN(r, (w) % COPIES), TAG(w));
#ifndef NO_PUT
  write(PUT((r + 1) % N, (w) % 2), TAG(w));
#endif
#endif
#ifndef NO_CLOSING_FENCE
  ARRIVE(skip)
#endif
}

inline flush_copy() {
  flush(OWN(r, v % COPIES));
#ifndef NO_REMOTE_FLUSH
  flush(PUT(r, v % 2));
#endif
#ifdef DATA_FENCE
  fence()
#endif
}

inline flush_body() {
  flush(BODY(r, v % 2));
#ifndef NO_BODY_FENCE
  fence()
#endif
}

inline flush_state() {
  flush(STATE(r, v % 2));
#ifndef NO_STATE_FENCE
  fence()
#endif
}

/* -DFAULT: a rank may fail here. Its own peers go on and learn it in step 3. */
inline may_fail() {
#ifdef FAULT
  if
  :: !fault_used -> fault_used = 1; fault = 1
  :: skip
  fi
#else
  skip
#endif
}

/* What the last rank that arrives in step 3 finds. */
inline decide() {
  verdict = fault;
  fault = 0;
  if
  :: verdict -> attempt++
  :: else ->
     if
     :: v > acknowledged -> acknowledged = v
     :: else
     fi
  fi
}

/* Step 3. Without it nothing is acknowledged, so that only what is recovered counts. */
inline agree() {
#ifdef NO_AGREEMENT
  skip
#else
  ARRIVE(decide())
#endif
}

/* Steps 1 to 3. */
inline save() {
#ifdef COPY
  atomic { PASS; write(OWN(r, v % COPIES), buffer_own[r]); write(PUT(r, v % 2), buffer_put[r]) };
#endif
#ifdef AGREE_EARLY
  atomic { PASS; flush_copy(); fence(); ARRIVE(skip) };
  atomic { PASS; write(BODY(r, v % 2), TAG(v)) };
#elif defined(STATE_FIRST)
  atomic { PASS; flush_copy(); write(STATE(r, v % 2), COMPLETE(v)) };
  atomic { flush_state(); write(BODY(r, v % 2), TAG(v)) };
  atomic { flush_body(); agree() }
#else
  atomic {
    PASS;
    flush_copy();
    may_fail();
    if
    :: fault -> agree(); goto decided
    :: else -> write(BODY(r, v % 2), TAG(v))
    fi
  };
#endif
#ifndef STATE_FIRST
  atomic { flush_body(); write(STATE(r, v % 2), COMPLETE(v)) };
  atomic { flush_state(); may_fail(); agree() }
#endif
}

/* Step 4, or after a fault the way back to the same epoch. */
inline open_slot() {
  atomic {
    PASS;
    if
    :: verdict ->
#ifndef NO_REOPEN_AFTER_FAULT
       write(STATE(r, v % 2), OPEN(v));
#endif
       goto reopened
    :: else -> skip
    fi;
#if !defined(NEVER_OPEN) && !defined(OPEN_LATE)
    write(STATE(r, (v + 1) % 2), OPEN(v + 1))
#endif
  };
  atomic {
    flush(STATE(r, (v + 1) % 2));
    fence();
    v++
  }
}

inline open_late() {
  atomic { PASS; write(STATE(r, v % 2), OPEN(v)) };
  atomic { flush(STATE(r, v % 2)); fence() }
}

proctype Rank(byte r) {
  byte v;
  byte i;
  bit is_ahead; /* the epoch after v is computed */
  do
  :: {
       v > 0; /* not before recovery, which is the escape below */
     reopened:
       atomic {
         flush(STATE(r, v % 2));
         fence();
#ifndef NO_REOPEN_BARRIER
         ARRIVE(skip)
#endif
       };
       do
#ifdef LAG
       :: atomic {
            v <= E && MAY_PASS ->
            PASS;
            if
            :: !is_ahead -> compute(v)
            :: else -> is_ahead = 0
            fi
          };
          atomic {
            flush_copy();
            if
            :: v + 1 <= E -> compute(v + 1); is_ahead = 1
            :: else
            fi
          };
#else
       :: atomic { v <= E && MAY_PASS -> PASS; compute(v) };
#endif
#ifdef OPEN_LATE
          open_late();
#endif
          save();
        decided:
          open_slot()
       :: v > E ->
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
         v = recovered + 1;
         is_ahead = 0;
         i = 0;
#ifndef NO_REOPEN
         write(STATE(r, v % 2), OPEN(v))
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

inline read_slot(k) {
  if
  :: line[STATE(rank, k)].durable % 2 == 1 && line[BODY(rank, k)].durable != TORN &&
     VERSION_OF(line[BODY(rank, k)].durable) == line[STATE(rank, k)].durable / 2 &&
     (!has_newest || line[STATE(rank, k)].durable / 2 > newest) ->
     newest = line[STATE(rank, k)].durable / 2;
     has_newest = 1
  :: else
  fi
}

inline read_slots() {
  lowest = 255;
  highest = 0;
  for (rank : 0 .. N - 1) {
    has_newest = 0;
    newest = 0;
    read_slot(0);
    read_slot(1);
    assert(has_newest);
    lowest = (newest < lowest -> newest : lowest);
    highest = (newest > highest -> newest : highest)
  }
  assert(highest - lowest <= 1);
#ifdef RECOVER_MAX
  recovered = highest
#else
  recovered = lowest
#endif
}

/* Half and slot of version w: there, whole, and of one attempt on all ranks. */
inline check_version(w) {
  for (i : 0 .. N - 1) {
    assert(line[STATE(i, (w) % 2)].durable == COMPLETE(w));
    assert(VERSION_OF(line[BODY(i, (w) % 2)].durable) == (w));
    assert(line[BODY(i, (w) % 2)].durable == line[BODY(0, (w) % 2)].durable);
    assert(line[BODY(i, (w) % 2)].durable == line[OWN(i, (w) % COPIES)].durable);
#ifndef NO_PUT
    assert(line[BODY(i, (w) % 2)].durable == line[PUT(i, (w) % 2)].durable);
#endif
  }
}

inline check_older(w) {
  has_newest = 1;
  for (i : 0 .. N - 1) {
    has_newest = has_newest && line[STATE(i, (w) % 2)].durable == COMPLETE(w) &&
                 VERSION_OF(line[BODY(i, (w) % 2)].durable) == (w)
  }
  if
  :: has_newest -> check_version(w)
  :: else
  fi
}

inline check_recovery() {
  assert(acknowledged <= recovered && recovered <= begun);
#ifdef LAG
  assert(begun <= recovered + 2);
#endif
  check_version(recovered);
#ifdef OLDER
  if
  :: recovered > 0 -> check_older(recovered - 1)
  :: else
  fi
#endif
}

inline restart_ranks() {
  arrived = 0;
  door = 0;
  fault = 0;
  verdict = 0;
  for (rank : 0 .. N - 1) {
    side[rank] = 0;
    waits[rank] = 0;
    restarting[rank] = 1;
#ifdef COPY
    buffer_own[rank] = 0;
    buffer_put[rank] = 0;
#endif
  }
}

inline format() {
  for (rank : 0 .. N - 1) {
    line[STATE(rank, 0)].cached = COMPLETE(0);
    line[STATE(rank, 0)].durable = COMPLETE(0);
    line[STATE(rank, 1)].cached = OPEN(1);
    line[STATE(rank, 1)].durable = OPEN(1)
  }
}

active proctype Machine() {
  byte i;
  byte rank;
  byte newest;
  byte lowest;
  byte highest;
  bit has_newest;
  atomic {
    format();
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
       check_recovery();
       restart_ranks();
       i = 0;
       rank = 0;
       newest = 0;
       lowest = 0;
       highest = 0;
       has_newest = 0
     }
  od
}
