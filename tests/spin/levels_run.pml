/* SPDX-License-Identifier: BSD-3-Clause
 *
 * levels_run.pml: commits, restores and taking of versions in levels.pml.
 */

/* at_last is done once, when both have arrived. */
#define ARRIVE(at_last) \
  at[r] = 1; \
  if \
  :: at[0] && at[1] -> at_last; at[0] = 0; at[1] = 0; go[0] = 1; go[1] = 1 \
  :: else \
  fi

#define HERE(n) SLOT(HOME(r), (n) % SLOTS)
#define THERE(n) SLOT(HOME(1 - r), (n) % SLOTS)
#define IMAGE(x) FILE(HOME(x), image[x])
#define GUARDED FILE(HOME(r), guard[r])

#define READS(x, n) \
  ((phase[x] == COPY || phase[x] == COPY2) && VER(taking[x]) % SLOTS == (n) % SLOTS)

#ifdef TAKE_EARLY
#define MAY_TAKE (taking[r] == 0 || phase[r] == WHOLE)
#else
#define MAY_TAKE (taking[r] == 0)
#endif

inline take(number) {
  taking[r] = inc * 8 + (number);
  CHOOSE_FILE(iid, r, whole[r], 0, image[r]);
  CHOOSE_FILE(gid, r, whole[r], 0, guard[r]);
  phase[r] = COPY
}

inline end_taking_and_take() {
  if
  :: taking[r] != 0 && said[0] >= taking[r] && said[1] >= taking[r] ->
     whole[r] = taking[r];
     taking[r] = 0;
     phase[r] = IDLE
  :: else
  fi;
  if
  :: MAY_TAKE -> /* otherwise it is skipped */
#ifdef TAKE_EARLY
     if
     :: taking[r] != 0 -> whole[r] = taking[r]
     :: else
     fi;
#endif
     take(v[r])
  :: else
  fi
}

#define IN_STEP3_SAID (phase[r] == WHOLE && taking[r] != 0 -> taking[r] : whole[r])

/* What both say is promised from now on. */
inline acknowledge() {
  acknowledged = TAG(v[r]);
  give_up();
  least = (said[0] < said[1] -> said[0] : said[1]);
  for (j : 0 .. FILES - 1) {
    if
    :: least != 0 && iid[FILE(HOME(0), j)] == least && ia[FILE(HOME(0), j)] > promised ->
       promised = ia[FILE(HOME(0), j)];
       hurt = 0
    :: else
    fi
  }
  j = 0;
  least = 0;
  op = 0
}

#ifdef NO_RELEASE
#define RELEASED(n) true
#else
#define RELEASED(n) (!(phase[r] == COPY || phase[r] == COPY2) || VER(taking[r]) > (n))
#endif

#ifdef NO_PROTECTION_AFTER_RESTORE
#define AT_ONCE promised = base; hurt = 0
#else
#define AT_ONCE skip
#endif
#ifdef RESTORE
#define BACK (v[r] - 2) /* the version to which a restore goes */
#define MAY_RESTORE \
  (!did_restore && v[r] > 2 && v[r] == head[r] + 1 && state[HERE(BACK)] == COMPLETE && \
   state[THERE(BACK)] == COMPLETE && VER(sid[HERE(BACK)]) == BACK)
#endif

proctype Rank(bit r) {
  byte j;
  byte least;
  byte other;
end:
  do
  :: atomic {
       alive && pc[r] == 0 && op == 0 && v[r] <= LAST ->
       if
       :: op = 1
#ifdef RESTORE
       :: MAY_RESTORE -> op = 2; did_restore = 1
#endif
       fi
     }
  /* Commit. */
  :: atomic {
       alive && pc[r] == 0 && op == 1 && v[r] <= LAST ->
       assert(!READS(r, v[r]));
       pa[HERE(v[r])] = TAG(v[r]);
#ifdef NO_PUT
       pb[HERE(v[r])] = TAG(v[r]);
#endif
       pc[r] = 1
     }
  :: atomic {
       alive && pc[r] == 1 ->
#ifndef NO_PUT
       assert(!READS(1 - r, v[r]));
       pb[THERE(v[r])] = TAG(v[r]);
#endif
       pc[r] = 2;
       ARRIVE(skip)
     }
  :: atomic {
       alive && pc[r] == 2 && go[r] ->
       go[r] = 0;
       sid[HERE(v[r])] = inc * 8 + v[r];
       parent[HERE(v[r])] = head[r];
       state[HERE(v[r])] = COMPLETE;
       pc[r] = 3
     }
  :: atomic {
       alive && pc[r] == 3 && RELEASED(v[r] + 1 - SLOTS) ->
       said[r] = IN_STEP3_SAID;
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
       state[HERE(v[r] + 1)] = OPEN;
       sid[HERE(v[r] + 1)] = v[r] + 1;
       parent[HERE(v[r] + 1)] = v[r];
       head[r] = v[r];
       v[r]++;
       pc[r] = 0
     }
#ifdef RESTORE
  /* Restore, when nothing is under way. Its promise begins anew. */
  :: atomic {
       alive && pc[r] == 0 && op == 2 && (taking[r] == 0 || phase[r] == WHOLE) ->
       taking[r] = 0;
       phase[r] = IDLE;
       pc[r] = 6;
       ARRIVE(promised = 0; acknowledged = pa[HERE(BACK)])
     }
  :: atomic {
       alive && pc[r] == 6 && go[r] ->
       go[r] = 0;
#ifndef NO_CLEARING
       CLEAR_NEWER(iid, r, sid[HERE(BACK)]);
#endif
       pc[r] = 7
     }
  :: atomic {
       alive && pc[r] == 7 ->
#ifndef NO_CLEARING
       CLEAR_NEWER(gid, r, sid[HERE(BACK)]);
#endif
       whole[r] = (NEWER(whole[r], sid[HERE(BACK)]) -> 0 : whole[r]);
       pc[r] = 8
     }
  :: atomic {
       alive && pc[r] == 8 ->
       parent[HERE(v[r])] = BACK;
       head[r] = BACK;
       pc[r] = 9;
       ARRIVE(base = pa[HERE(BACK)]; life++; clock++; inc = clock; acknowledged = base;
              give_up(); op = 1; AT_ONCE)
     }
  :: atomic {
       alive && pc[r] == 9 && go[r] ->
       go[r] = 0;
#ifdef NO_PROTECTION_AFTER_RESTORE
       pc[r] = 0
#else
       take(BACK);
       pc[r] = 10
#endif
     }
  :: atomic {
       alive && pc[r] == 10 && phase[r] == WHOLE ->
       pc[r] = 11;
       ARRIVE(promised = base; hurt = 0)
     }
  :: atomic {
       alive && pc[r] == 11 && go[r] ->
       go[r] = 0;
       whole[r] = taking[r];
       taking[r] = 0;
       phase[r] = IDLE;
       pc[r] = 0
     }
#endif
  /* Beside the program. */
  :: atomic {
       alive && phase[r] == COPY ->
#ifdef STATE_FIRST
       iid[IMAGE(r)] = taking[r];
#else
       iid[IMAGE(r)] = 0;
#endif
       half[r] = pa[HERE(VER(taking[r]))];
       phase[r] = COPY2
     }
  :: atomic {
       alive && phase[r] == COPY2 ->
       ia[IMAGE(r)] = half[r];
       ib[IMAGE(r)] = pb[HERE(VER(taking[r]))];
       iid[IMAGE(r)] = taking[r];
       half[r] = 0;
       phase[r] = COPIED
     }
  :: atomic {
       alive && phase[r] == COPIED && taking[1 - r] == taking[r] && phase[1 - r] >= COPIED ->
#ifdef GUARD_FIRST
       gid[GUARDED] = taking[r];
#elif defined(GUARD_NOT_CLEARED)
       ga[GUARDED] = 0; /* half stored over */
#else
       gid[GUARDED] = 0;
#endif
       phase[r] = GUARD
     }
  :: atomic {
       alive && phase[r] == GUARD && iid[IMAGE(1 - r)] == taking[r] ->
       ga[GUARDED] = ia[IMAGE(1 - r)];
       gb[GUARDED] = ib[IMAGE(1 - r)];
       gid[GUARDED] = taking[r];
       phase[r] = WHOLE
     }
  od
}
