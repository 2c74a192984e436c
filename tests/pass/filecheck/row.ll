; RUN: %opt -passes=perdure-ipv %s | %FileCheck %s
; One row: where it may lie in an object it is announced, a second version of the loop runs with the
; difference for loads, and the box ends on the way out. The third version is in past_cache.c; this
; module names no processor.

; CHECK-LABEL: define void @add(
; CHECK: load i64, ptr @perdure_ipv_low
; CHECK: load i64, ptr @perdure_ipv_high
; CHECK: call { i64, i64 } @perdure_ipv_box_begin(ptr %ipv.box)
; CHECK: %ipv.how = phi i64
; CHECK: %ipv.load = phi i64
; The copy of the loop.
; CHECK: loop.ipv:
; CHECK: [[FROM:%.*]] = getelementptr i8, ptr {{%.*}}, i64 %ipv.load
; CHECK: load double, ptr [[FROM]]
; CHECK: store double {{%.*}}, ptr %at.ipv
; The loop as it was.
; CHECK: loop:
; CHECK-NOT: getelementptr i8
; CHECK: store double
; CHECK: call void @perdure_ipv_box_end(ptr %ipv.box, i32
; CHECK: ret void
define void @add(ptr %u, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = getelementptr inbounds double, ptr %u, i64 %i
  %old = load double, ptr %at
  %new = fadd double %old, 1.0
  store double %new, ptr %at
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %out
out:
  ret void
}

; Vectors, and two stores that share an iteration.
; CHECK-LABEL: define void @vectors(
; CHECK: call { i64, i64 } @perdure_ipv_box_begin
define void @vectors(ptr %u, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = getelementptr inbounds double, ptr %u, i64 %i
  %second = getelementptr inbounds i8, ptr %at, i64 32
  %old = load <4 x double>, ptr %second
  store <4 x double> %old, ptr %at
  store <4 x double> <double 0.0, double 1.0, double 2.0, double 3.0>, ptr %second
  %next = add nuw nsw i64 %i, 8
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %out
out:
  ret void
}

; Nothing of the row is read: there is no second version.
; CHECK-LABEL: define void @clear(
; CHECK: call { i64, i64 } @perdure_ipv_box_begin
; CHECK-NOT: .ipv:
; CHECK: ret void
define void @clear(ptr %u, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = getelementptr inbounds double, ptr %u, i64 %i
  store double 1.0, ptr %at
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %out
out:
  ret void
}

; The versions of a row run only when `r` is known to lie outside of the object: they need no tests
; of the vectoriser's. The loop as it was does.
; CHECK-LABEL: define void @from_another(
; CHECK: loop.ipv:
; CHECK: load double, {{.*}}!llvm.access.group [[GROUP:![0-9]+]]
; CHECK: store double {{.*}}!llvm.access.group [[GROUP]]
; CHECK: br {{.*}}!llvm.loop [[COPY:![0-9]+]]
; CHECK: loop:
; CHECK-NOT: !llvm.access.group
; CHECK: ret void
define void @from_another(ptr %u, ptr %r, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = getelementptr inbounds double, ptr %u, i64 %i
  %from = getelementptr inbounds double, ptr %r, i64 %i
  %old = load double, ptr %at
  %more_of = load double, ptr %from
  %new = fadd double %old, %more_of
  store double %new, ptr %at
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %out
out:
  ret void
}

; A load on a condition must not come before it: the vectoriser is promised nothing.
; CHECK-LABEL: define void @sometimes(
; CHECK: call { i64, i64 } @perdure_ipv_box_begin
; CHECK-NOT: !llvm.access.group
; CHECK: ret void
define void @sometimes(ptr %u, ptr %r, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %rest ]
  %at = getelementptr inbounds double, ptr %u, i64 %i
  %old = load double, ptr %at
  %positive = fcmp ogt double %old, 0.0
  br i1 %positive, label %read, label %rest
read:
  %from = getelementptr inbounds double, ptr %r, i64 %i
  %loaded = load double, ptr %from
  br label %rest
rest:
  %value = phi double [ 0.0, %loop ], [ %loaded, %read ]
  %new = fadd double %old, %value
  store double %new, ptr %at
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %out
out:
  ret void
}

; Not every byte of the step is stored to.
; CHECK-LABEL: define void @gap(
; CHECK-NOT: perdure_ipv
; CHECK: ret void
define void @gap(ptr %u, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = getelementptr inbounds double, ptr %u, i64 %i
  store float 1.0, ptr %at
  %next = add nuw nsw i64 %i, 1
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %out
out:
  ret void
}

; The load comes before the exit, the store after it: it reads one element more.
; CHECK-LABEL: define void @one_more(
; CHECK-NOT: perdure_ipv
; CHECK: ret void
define void @one_more(ptr %u, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %at = getelementptr inbounds double, ptr %u, i64 %i
  %old = load double, ptr %at
  %more = icmp ult i64 %i, %n
  br i1 %more, label %body, label %out
body:
  %new = fadd double %old, 1.0
  store double %new, ptr %at
  %next = add nuw nsw i64 %i, 1
  br label %loop
out:
  ret void
}

; Volatile and atomic accesses stay as they are.
; CHECK-LABEL: define void @atomic(
; CHECK-NOT: perdure_ipv
; CHECK: ret void
define void @atomic(ptr %u, ptr %flag, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %at = getelementptr inbounds double, ptr %u, i64 %i
  store double 1.0, ptr %at
  store atomic i64 %i, ptr %flag release, align 8
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %out
out:
  ret void
}

; CHECK: [[COPY]] = distinct !{[[COPY]], {{.*}}[[PARALLEL:![0-9]+]], {{.*}}}
; CHECK: [[PARALLEL]] = !{!"llvm.loop.parallel_accesses", [[GROUP]]}
