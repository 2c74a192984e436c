; Which calls the pass puts in front of each kind of access.
; RUN: opt-19 -load-pass-plugin=PerdurePass.so -passes=perdure-ipv-check -S

target datalayout = "e-m:e-i64:64-n8:16:32:64-S128"
target triple = "x86_64-unknown-linux-gnu"

; CHECK: @llvm.global_ctors = {{.*}} @perdure_ipv_check_module
; CHECK: @perdure_ipv_check_site{{[.0-9]*}} = private global { ptr, ptr, i32, i32, i32, i32, ptr, i64, [4 x i64] }
@field = global [64 x double] zeroinitializer
@count = internal global i32 0
@table = constant [4 x double] zeroinitializer

declare void @keep(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i32(ptr, i8, i32, i1)
declare ptr @memmove(ptr, ptr, i64)
declare <4 x double> @llvm.masked.load.v4f64.p0(ptr, i32, <4 x i1>, <4 x double>)
declare void @llvm.masked.scatter.v2f64.v2p0(<2 x double>, <2 x ptr>, i32, <2 x i1>)
declare void @perdure_ipv_nest_end(ptr)

; CHECK-LABEL: define void @scalars(
define void @scalars(ptr %p) {
; CHECK: call void @perdure_ipv_check_load(i64 %{{.*}}, i64 8, ptr @perdure_ipv_check_site
; CHECK-NEXT: load double, ptr %p
  %v = load double, ptr %p
; CHECK: call void @perdure_ipv_check_store(i64 %{{.*}}, i64 4, ptr
; CHECK-NEXT: store i32 1
  store i32 1, ptr %p
; CHECK: call void @perdure_ipv_check_load(i64 %{{.*}}, i64 8
; CHECK: call void @perdure_ipv_check_store(i64 %{{.*}}, i64 8
; CHECK-NEXT: atomicrmw
  %old = atomicrmw add ptr %p, i64 1 seq_cst
; CHECK: call void @perdure_ipv_check_load(i64 %{{.*}}, i64 32
; CHECK-NEXT: load <4 x double>
  %w = load <4 x double>, ptr %p
; CHECK: ret void
  ret void
}

; CHECK-LABEL: define void @transfers(
define void @transfers(ptr %p, ptr %q, i64 %n, i32 %m) {
; CHECK: call void @perdure_ipv_check_copy(i64 %{{.*}}, i64 %{{.*}}, i64 %n, ptr
; CHECK-NEXT: call void @llvm.memcpy
  call void @llvm.memcpy.p0.p0.i64(ptr %p, ptr %q, i64 %n, i1 false)
; CHECK: call void @perdure_ipv_check_store(i64 %{{.*}}, i64 %{{.*}}, ptr
; CHECK-NEXT: call void @llvm.memset
  call void @llvm.memset.p0.i32(ptr %p, i8 0, i32 %m, i1 false)
; CHECK: call void @perdure_ipv_check_copy(
; CHECK-NEXT: call ptr @memmove
  call ptr @memmove(ptr %p, ptr %q, i64 %n)
; CHECK: ret void
  ret void
}

; CHECK-LABEL: define void @masks(
define void @masks(ptr %p, <2 x ptr> %places, <4 x i1> %mask, <2 x i1> %some) {
; CHECK: call void @perdure_ipv_check_load_lanes(i64 %{{.*}}, i64 8, i64 %{{.*}}, ptr
; CHECK-NEXT: call <4 x double> @llvm.masked.load
  %v = call <4 x double> @llvm.masked.load.v4f64.p0(ptr %p, i32 8, <4 x i1> %mask,
                                                    <4 x double> zeroinitializer)
; CHECK-COUNT-2: call void @perdure_ipv_check_store(
; CHECK-NEXT: call void @llvm.masked.scatter
  call void @llvm.masked.scatter.v2f64.v2p0(<2 x double> zeroinitializer, <2 x ptr> %places, i32 8,
                                            <2 x i1> %some)
; CHECK: ret void
  ret void
}

; Own variables can be no object's, but where others have their address.
; CHECK-LABEL: define double @locals(
define double @locals(ptr %p) {
  %own = alloca double
  %shared = alloca double
; CHECK-NOT: perdure_ipv_check
; CHECK: store double 1.000000e+00, ptr %own
  store double 1.0, ptr %own
; CHECK: call void @perdure_ipv_check_store(
; CHECK-NEXT: store double 2.000000e+00, ptr %shared
  store double 2.0, ptr %shared
  call void @keep(ptr %shared)
; CHECK-NOT: perdure_ipv_check_copy
; CHECK: call void @perdure_ipv_check_load(i64 %{{.*}}, i64 8
; CHECK-NEXT: call void @llvm.memcpy
  call void @llvm.memcpy.p0.p0.i64(ptr %own, ptr %p, i64 8, i1 false)
; CHECK-NOT: perdure_ipv_check
; CHECK: load double, ptr @table
  %c = load double, ptr @table
  %v = load double, ptr %own
  %sum = fadd double %c, %v
; CHECK: ret double
  ret double %sum
}

; CHECK-LABEL: define void @hooks(
define void @hooks(ptr %p) {
; CHECK: call void @perdure_ipv_check_here(ptr
; CHECK-NEXT: call void @perdure_ipv_nest_end
  call void @perdure_ipv_nest_end(ptr %p)
; CHECK-NOT: perdure_ipv_check
; CHECK: ret void
  ret void
}

; CHECK-LABEL: define void @alone(
define void @alone(ptr %p) disable_sanitizer_instrumentation {
; CHECK-NOT: perdure_ipv_check
; CHECK: ret void
  store double 1.0, ptr %p
  ret void
}

; CHECK: define internal void @perdure_ipv_check_module()
; CHECK: call void @perdure_ipv_check_globals(ptr @perdure_ipv_check_variables, i64 2)
