; RUN: %opt -passes=perdure-ipv %s | %FileCheck %s
; One row: its object is looked up, the row announced, a second version of the loop runs with the
; difference for loads, and the nest ends on the way out. The third version is in past_cache.c; this
; module names no processor.

; CHECK-LABEL: define void @add(
; CHECK: load i64, ptr @perdure_ipv_low
; CHECK: load i64, ptr @perdure_ipv_high
; CHECK: call { i64, i64 } @perdure_ipv_extent(ptr %u)
; CHECK: [[ROW:%.*]] = call { i64, i64 } @perdure_ipv_row_begin(ptr %u, i64 [[BYTES:%.*]])
; CHECK: [[LOAD:%.*]] = extractvalue { i64, i64 } {{%.*}}, 0
; The copy of the loop.
; CHECK: loop.ipv:
; CHECK: [[FROM:%.*]] = getelementptr i8, ptr {{%.*}}, i64 [[LOAD]]
; CHECK: load double, ptr [[FROM]]
; CHECK: store double {{%.*}}, ptr %at.ipv
; The loop as it was.
; CHECK: loop:
; CHECK-NOT: getelementptr i8
; CHECK: store double
; CHECK: call void @perdure_ipv_row_end(ptr %u, i64 [[BYTES]])
; CHECK: call void @perdure_ipv_nest_end(
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
; CHECK: call { i64, i64 } @perdure_ipv_row_begin
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
