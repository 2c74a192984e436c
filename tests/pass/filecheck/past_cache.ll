; RUN: %opt -passes=perdure-past-cache %s | %FileCheck %s
; The second step alone: a copy of a loop is trusted if all that it stores between its marks is what
; it stored before.
target triple = "x86_64-pc-linux-gnu"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"

declare void @perdure_ipv_past_cache.begin(i64)
declare void @perdure_ipv_past_cache.end()
declare i1 @perdure_ipv_past_cache.trusted(i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @taken(i1)

; CHECK-LABEL: define void @kept(
; CHECK-NEXT: call void @taken(i1 true)
; CHECK: bitcast <2 x double> %v to <2 x i64>
; CHECK-COUNT-2: call void asm sideeffect "movntiq $1, ($0)"
; CHECK: call void asm sideeffect "movntiq $1, ($0)", "r,r,~{memory}"(ptr {{%.*}}, i64 {{%.*}})
; CHECK: store double %d, ptr %other, align 8{{$}}
; CHECK: ret void
define void @kept(ptr %u, ptr %other, <2 x double> %v, double %d) {
  %trusted = call i1 @perdure_ipv_past_cache.trusted(i64 0)
  call void @taken(i1 %trusted)
  call void @perdure_ipv_past_cache.begin(i64 0)
  %at = getelementptr i8, ptr %u, i64 32
  store <2 x double> %v, ptr %at, align 8, !alias.scope !3
  %next = getelementptr i8, ptr %u, i64 48
  store double %d, ptr %next, align 8, !alias.scope !3
  store double %d, ptr %other, align 8, !alias.scope !4
  call void @perdure_ipv_past_cache.end()
  ret void
}

; Four bytes, and a pointer.
; CHECK-LABEL: define void @others_than_double(
; CHECK-NEXT: call void @taken(i1 true)
; CHECK: asm sideeffect "movntil $1, ($0)", "r,r,~{memory}"(ptr {{%.*}}, i32 {{%.*}})
; CHECK: asm sideeffect "movntiq $1, ($0)", "r,r,~{memory}"(ptr {{%.*}}, ptr %p)
; CHECK-NOT: store
; CHECK: ret void
define void @others_than_double(ptr %u, ptr %p, float %f) {
  %trusted = call i1 @perdure_ipv_past_cache.trusted(i64 1)
  call void @taken(i1 %trusted)
  call void @perdure_ipv_past_cache.begin(i64 1)
  store float %f, ptr %u, align 4, !alias.scope !3
  %next = getelementptr i8, ptr %u, i64 8
  store ptr %p, ptr %next, align 8, !alias.scope !3
  call void @perdure_ipv_past_cache.end()
  ret void
}

; A store that is in no scope any more may be one to the row.
; CHECK-LABEL: define void @forgotten(
; CHECK-NEXT: call void @taken(i1 false)
; CHECK-NOT: movnti
; CHECK: ret void
define void @forgotten(ptr %u, <2 x double> %v, double %d) {
  %trusted = call i1 @perdure_ipv_past_cache.trusted(i64 2)
  call void @taken(i1 %trusted)
  call void @perdure_ipv_past_cache.begin(i64 2)
  store <2 x double> %v, ptr %u, align 8, !alias.scope !3
  %next = getelementptr i8, ptr %u, i64 16
  store double %d, ptr %next, align 8
  call void @perdure_ipv_past_cache.end()
  ret void
}

; One of a row and of something else at once.
; CHECK-LABEL: define void @merged(
; CHECK-NEXT: call void @taken(i1 false)
; CHECK-NOT: movnti
; CHECK: ret void
define void @merged(ptr %u, <2 x double> %v) {
  %trusted = call i1 @perdure_ipv_past_cache.trusted(i64 3)
  call void @taken(i1 %trusted)
  call void @perdure_ipv_past_cache.begin(i64 3)
  store <2 x double> %v, ptr %u, align 8, !alias.scope !5
  call void @perdure_ipv_past_cache.end()
  ret void
}

; A loop became a memset; and a path leaves without the mark. Both copies of the site are refused.
; CHECK-LABEL: define void @cleared(
; CHECK-NEXT: call void @taken(i1 false)
; CHECK-NOT: movnti
; CHECK: ret void
define void @cleared(ptr %u, <2 x double> %v, i1 %which) {
  %trusted = call i1 @perdure_ipv_past_cache.trusted(i64 4)
  call void @taken(i1 %trusted)
  br i1 %which, label %one, label %two
one:
  call void @perdure_ipv_past_cache.begin(i64 4)
  call void @llvm.memset.p0.i64(ptr %u, i8 0, i64 64, i1 false), !alias.scope !3
  call void @perdure_ipv_past_cache.end()
  ret void
two:
  call void @perdure_ipv_past_cache.begin(i64 4)
  store <2 x double> %v, ptr %u, align 8, !alias.scope !3
  call void @perdure_ipv_past_cache.end()
  ret void
}

; CHECK-LABEL: define void @open(
; CHECK-NEXT: call void @taken(i1 false)
; CHECK-NOT: movnti
; CHECK: ret void
define void @open(ptr %u, <2 x double> %v) {
  %trusted = call i1 @perdure_ipv_past_cache.trusted(i64 5)
  call void @taken(i1 %trusted)
  call void @perdure_ipv_past_cache.begin(i64 5)
  store <2 x double> %v, ptr %u, align 8, !alias.scope !3
  ret void
}

; The store is after two marks: it is replaced once.
; CHECK-LABEL: define void @shared(
; CHECK-COUNT-2: movntiq
; CHECK-NOT: movntiq
; CHECK: ret void
define void @shared(ptr %u, ptr %w, <2 x double> %v, i1 %which) {
  %trusted = call i1 @perdure_ipv_past_cache.trusted(i64 6)
  call void @taken(i1 %trusted)
  br i1 %which, label %one, label %two
one:
  call void @perdure_ipv_past_cache.begin(i64 6)
  br label %both
two:
  call void @perdure_ipv_past_cache.begin(i64 7)
  br label %both
both:
  store <2 x double> %v, ptr %u, align 8, !alias.scope !3
  call void @perdure_ipv_past_cache.end()
  ret void
}

; What a program says of scopes stays.
; CHECK-LABEL: define void @others(
; CHECK: store double %d, ptr %u, align 8, !alias.scope
define void @others(ptr %u, double %d) {
  call void @perdure_ipv_past_cache.end()
  store double %d, ptr %u, align 8, !alias.scope !7
  ret void
}

!perdure_ipv_past_cache.scopes = !{!0, !1}
!0 = distinct !{!0, !2}
!1 = distinct !{!1, !2}
!2 = distinct !{!2, !"perdure"}
!3 = !{!0}
!4 = !{!1}
!5 = !{!0, !1}
!6 = distinct !{!6, !2}
!7 = !{!6, !1}
