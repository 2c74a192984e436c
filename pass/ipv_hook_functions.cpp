// SPDX-License-Identifier: BSD-3-Clause
//
// What happens with a slot: small functions in LLVM's language, linked into the module, inlined,
// and gone; what few rows need stays a function of its own, whose code a module has once.
//
// A slot is two words on the stack: the object's ends, or 0 at least as the upper one. It stays
// there, as those functions are given its address: as values in registers the slots of all nests
// would be merged wherever two ways meet, and keep the compiler's register allocation busy.
#include <llvm/AsmParser/Parser.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/Linker/Linker.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include "ipv_hook.hpp"

namespace perdure::ipv {

namespace {

const char* const hook_functions = R"(
declare void @perdure_ipv_nest_end(ptr) nounwind
declare { i64, i64 } @perdure_ipv_row_begin(ptr, i64) nounwind
declare void @perdure_ipv_row_end(ptr, i64) nounwind
declare void @perdure_ipv_row_end_past_cache(ptr, i64) nounwind
declare { i64, i64 } @perdure_ipv_box_begin(ptr, i32, ptr, ptr) nounwind
declare void @perdure_ipv_box_end(ptr, i32, ptr, ptr) nounwind
declare void @perdure_ipv_box_end_past_cache(ptr, i32, ptr, ptr) nounwind
declare void @perdure_ipv_box_part(ptr, i64) nounwind
declare void @perdure_ipv_box_fence() nounwind
declare { i64, i64 } @perdure_ipv_extent(ptr) nounwind
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
@perdure_ipv_low = external global i64
@perdure_ipv_high = external global i64

; The nest of the slot's object ends, if it has one.
define void @perdure_ipv.leave(ptr %slot) nounwind {
  %top = getelementptr i8, ptr %slot, i64 8
  %high = load i64, ptr %top
  %open = icmp ne i64 %high, 0
  br i1 %open, label %end, label %out
end:
  call void @perdure_ipv_out_of_line.leave(ptr %slot)
  br label %out
out:
  ret void
}

define internal void @perdure_ipv_out_of_line.leave(ptr nocapture %slot)
    noinline nounwind disable_sanitizer_instrumentation {
  %top = getelementptr i8, ptr %slot, i64 8
  %low = load i64, ptr %slot
  %object = inttoptr i64 %low to ptr
  call void @perdure_ipv_nest_end(ptr %object)
  store i64 0, ptr %slot
  store i64 0, ptr %top
  ret void
}

; Something else is about to touch the object, which the slot has.
define void @perdure_ipv.close(ptr %slot, i1 %touched) nounwind {
  br i1 %touched, label %end, label %out
end:
  call void @perdure_ipv_out_of_line.leave(ptr %slot)
  br label %out
out:
  ret void
}

; The slot has the object in which the whole row lies, or none. Only what most rows need is inlined:
; a row of the slot's object, or one that is no object's while the slot has none.
define void @perdure_ipv.enter(ptr %slot, ptr %first, i64 %bytes, i1 %alone) nounwind {
  %address = ptrtoint ptr %first to i64
  %begin = freeze i64 %address
  %length = freeze i64 %bytes
  %end = add i64 %begin, %length
  %top = getelementptr i8, ptr %slot, i64 8
  %low = load i64, ptr %slot
  %high = load i64, ptr %top
  %above = icmp uge i64 %begin, %low
  %below = icmp ule i64 %end, %high
  %within = and i1 %above, %below
  %open = icmp ne i64 %high, 0
  %in = and i1 %within, %open
  br i1 %in, label %out, label %other
other:
  %lowest = load i64, ptr @perdure_ipv_low
  %highest = load i64, ptr @perdure_ipv_high
  %upper = icmp ugt i64 %end, %lowest
  %lower = icmp ult i64 %begin, %highest
  %near = and i1 %upper, %lower
  %some = or i1 %near, %open
  br i1 %some, label %move, label %out
move:
  call void @perdure_ipv_out_of_line.move(ptr %slot, i64 %begin, i64 %length, i1 %alone)
  br label %out
out:
  ret void
}

; Ends the nest of the slot's object, if it has one. Then the slot has the object in which the whole
; row lies, or none. A row that is its whole nest is worth it for a quarter of the object and more.
define internal void @perdure_ipv_out_of_line.move(ptr nocapture %slot, i64 %begin, i64 %length,
    i1 %alone) noinline nounwind disable_sanitizer_instrumentation {
  call void @perdure_ipv.leave(ptr %slot)
  %end = add i64 %begin, %length
  %lowest = load i64, ptr @perdure_ipv_low
  %highest = load i64, ptr @perdure_ipv_high
  %upper = icmp ugt i64 %end, %lowest
  %lower = icmp ult i64 %begin, %highest
  %near = and i1 %upper, %lower
  br i1 %near, label %ask, label %none
ask:
  %first = inttoptr i64 %begin to ptr
  %extent = call { i64, i64 } @perdure_ipv_extent(ptr %first)
  %object = extractvalue { i64, i64 } %extent, 0
  %behind = extractvalue { i64, i64 } %extent, 1
  %after = icmp uge i64 %begin, %object
  %before = icmp ule i64 %end, %behind
  %inside = and i1 %after, %before
  %size = sub i64 %behind, %object
  %four = shl i64 %length, 2
  %large = icmp uge i64 %four, %size
  %many = xor i1 %alone, true
  %worth = or i1 %large, %many
  %set = and i1 %inside, %worth
  br i1 %set, label %found, label %none
found:
  %top = getelementptr i8, ptr %slot, i64 8
  store i64 %object, ptr %slot
  store i64 %behind, ptr %top
  br label %none
none:
  ret void
}

; A row of an object, and not empty.
define i1 @perdure_ipv.is_announced(ptr %slot, i64 %bytes) nounwind {
  %top = getelementptr i8, ptr %slot, i64 8
  %high = load i64, ptr %top
  %open = icmp ne i64 %high, 0
  %some = icmp ne i64 %bytes, 0
  %row = and i1 %open, %some
  ret i1 %row
}

define { i64, i64 } @perdure_ipv.begin(ptr %slot, ptr %first, i64 %bytes) nounwind {
  %row = call i1 @perdure_ipv.is_announced(ptr %slot, i64 %bytes)
  br i1 %row, label %begin, label %out
begin:
  %answer = call { i64, i64 } @perdure_ipv_row_begin(ptr %first, i64 %bytes)
  br label %out
out:
  %result = phi { i64, i64 } [ zeroinitializer, %0 ], [ %answer, %begin ]
  ret { i64, i64 } %result
}

define void @perdure_ipv.end(ptr %slot, ptr %first, i64 %bytes, i1 %past_cache) nounwind {
  %row = call i1 @perdure_ipv.is_announced(ptr %slot, i64 %bytes)
  br i1 %row, label %end, label %out
end:
  call void @perdure_ipv.end_announced(ptr %first, i64 %bytes, i1 %past_cache)
  br label %out
out:
  ret void
}

define void @perdure_ipv.end_announced(ptr %first, i64 %bytes, i1 %past_cache) nounwind {
  br i1 %past_cache, label %past, label %through
past:
  call void @perdure_ipv_row_end_past_cache(ptr %first, i64 %bytes)
  br label %out
through:
  call void @perdure_ipv_row_end(ptr %first, i64 %bytes)
  br label %out
out:
  ret void
}
)";

// A box is 14 words in the frame of the function that calls the team: the object's first byte, or 0
// if the box is not announced; the difference for loads; whether to store past the cache; whether a
// thread did not; the box's first byte; its dimensions, four counts and four strides.
const char* const box_functions = R"(
; The object that holds the box's first byte, if the box is worth it; or nothing.
define { i64, i64 } @perdure_ipv.box_extent(ptr %first, i64 %total) nounwind {
  %address = ptrtoint ptr %first to i64
  %begin = freeze i64 %address
  %length = freeze i64 %total
  %lowest = load i64, ptr @perdure_ipv_low
  %highest = load i64, ptr @perdure_ipv_high
  %upper = icmp uge i64 %begin, %lowest
  %lower = icmp ult i64 %begin, %highest
  %near = and i1 %upper, %lower
  br i1 %near, label %ask, label %out
ask:
  %extent = call { i64, i64 } @perdure_ipv_extent(ptr %first)
  %object = extractvalue { i64, i64 } %extent, 0
  %behind = extractvalue { i64, i64 } %extent, 1
  %size = sub i64 %behind, %object
  %four = shl i64 %length, 2
  %worth = icmp uge i64 %four, %size
  br i1 %worth, label %found, label %out
found:
  br label %out
out:
  %result = phi { i64, i64 } [ zeroinitializer, %0 ], [ zeroinitializer, %ask ], [ %extent, %found ]
  ret { i64, i64 } %result
}

define void @perdure_ipv.box_open(ptr %box, i64 %object, i1 %wanted) nounwind {
  br i1 %wanted, label %begin, label %out
begin:
  %first_at = getelementptr i8, ptr %box, i64 32
  %first = load ptr, ptr %first_at
  %dimensions_at = getelementptr i8, ptr %box, i64 40
  %dimensions = load i32, ptr %dimensions_at
  %counts = getelementptr i8, ptr %box, i64 48
  %strides = getelementptr i8, ptr %box, i64 80
  %answer = call { i64, i64 } @perdure_ipv_box_begin(ptr %first, i32 %dimensions, ptr %counts,
                                                     ptr %strides)
  %load = extractvalue { i64, i64 } %answer, 0
  %past = extractvalue { i64, i64 } %answer, 1
  store i64 %object, ptr %box
  %load_at = getelementptr i8, ptr %box, i64 8
  store i64 %load, ptr %load_at
  %past_at = getelementptr i8, ptr %box, i64 16
  store i64 %past, ptr %past_at
  br label %out
out:
  ret void
}

define void @perdure_ipv.box_close(ptr %box) nounwind {
  %low = load i64, ptr %box
  %open = icmp ne i64 %low, 0
  br i1 %open, label %end, label %out
end:
  %first_at = getelementptr i8, ptr %box, i64 32
  %first = load ptr, ptr %first_at
  %dimensions_at = getelementptr i8, ptr %box, i64 40
  %dimensions = load i32, ptr %dimensions_at
  %counts = getelementptr i8, ptr %box, i64 48
  %strides = getelementptr i8, ptr %box, i64 80
  %past_at = getelementptr i8, ptr %box, i64 16
  %past = load i64, ptr %past_at
  %through_at = getelementptr i8, ptr %box, i64 24
  %through = load atomic i64, ptr %through_at monotonic, align 8
  %wanted = icmp ne i64 %past, 0
  %all = icmp eq i64 %through, 0
  %trusted = and i1 %wanted, %all
  br i1 %trusted, label %past_cache, label %cached
past_cache:
  call void @perdure_ipv_box_end_past_cache(ptr %first, i32 %dimensions, ptr %counts, ptr %strides)
  br label %nest
cached:
  call void @perdure_ipv_box_end(ptr %first, i32 %dimensions, ptr %counts, ptr %strides)
  br label %nest
nest:
  %object = inttoptr i64 %low to ptr
  call void @perdure_ipv_nest_end(ptr %object)
  br label %out
out:
  ret void
}

; A thread has stored to a row of the box.
define void @perdure_ipv.box_row(ptr %box, i64 %wanted, ptr %first, i64 %bytes,
                                 i1 %past_cache) nounwind {
  %asked = icmp ne i64 %wanted, 0
  br i1 %asked, label %tell, label %out
tell:
  br i1 %past_cache, label %past, label %through
past:
  call void @perdure_ipv_box_part(ptr %first, i64 %bytes)
  br label %out
through:
  %through_at = getelementptr i8, ptr %box, i64 24
  store atomic i64 1, ptr %through_at monotonic, align 8
  br label %out
out:
  ret void
}

; A thread leaves the region.
define void @perdure_ipv.box_leave(i64 %wanted) nounwind {
  %asked = icmp ne i64 %wanted, 0
  br i1 %asked, label %fence, label %out
fence:
  call void @perdure_ipv_box_fence()
  br label %out
out:
  ret void
}
)";

// A nest whose rows may be announced as one box has one besides its slot. Nothing is tested in the
// nest while the box is open: the slot has the object of all rows.
const char* const nest_box_functions = R"(
; The object of the box, if the box lies in it and its rows do not overlap; or nothing.
define internal { i64, i64 } @perdure_ipv_out_of_line.box_find(ptr %box, i1 %wanted)
    noinline nounwind disable_sanitizer_instrumentation {
  call void @llvm.memset.p0.i64(ptr align 8 %box, i8 0, i64 32, i1 false)
  %first_at = getelementptr i8, ptr %box, i64 32
  %first = load ptr, ptr %first_at
  %begin = ptrtoint ptr %first to i64
  br i1 %wanted, label %look, label %none
look:
  %lowest = load i64, ptr @perdure_ipv_low
  %highest = load i64, ptr @perdure_ipv_high
  %upper = icmp uge i64 %begin, %lowest
  %lower = icmp ult i64 %begin, %highest
  %near = and i1 %upper, %lower
  br i1 %near, label %measure, label %none
measure:
  %dimensions_at = getelementptr i8, ptr %box, i64 40
  %dimensions = load i64, ptr %dimensions_at
  br label %dimension
dimension:
  %d = phi i64 [ 0, %measure ], [ %after, %wider ]
  %bytes = phi i64 [ 1, %measure ], [ %wide, %wider ]
  %place = shl i64 %d, 3
  %count_place = add i64 %place, 48
  %count_at = getelementptr i8, ptr %box, i64 %count_place
  %count = load i64, ptr %count_at
  %stride_place = add i64 %place, 80
  %stride_at = getelementptr i8, ptr %box, i64 %stride_place
  %stride = load i64, ptr %stride_at
  %times = sub i64 %count, 1
  %reach = mul i64 %times, %stride
  %once = icmp eq i64 %times, 0
  %apart = icmp uge i64 %stride, %bytes
  %good = or i1 %once, %apart
  %some = icmp ne i64 %count, 0
  %shaped = and i1 %good, %some
  br i1 %shaped, label %wider, label %none
wider:
  %wide = add i64 %bytes, %reach
  %after = add i64 %d, 1
  %more = icmp ult i64 %after, %dimensions
  br i1 %more, label %dimension, label %ask
ask:
  %extent = call { i64, i64 } @perdure_ipv_extent(ptr %first)
  %object = extractvalue { i64, i64 } %extent, 0
  %behind = extractvalue { i64, i64 } %extent, 1
  %rest = sub i64 %behind, %begin
  %holds = icmp ule i64 %wide, %rest
  %is_one = icmp ne i64 %behind, 0
  %inside = and i1 %holds, %is_one
  br i1 %inside, label %found, label %none
found:
  ret { i64, i64 } %extent
none:
  ret { i64, i64 } zeroinitializer
}

define { i64, i64 } @perdure_ipv.find_box(ptr %box, i1 %wanted) nounwind {
  %extent = call { i64, i64 } @perdure_ipv_out_of_line.box_find(ptr %box, i1 %wanted)
  ret { i64, i64 } %extent
}

; In front of the nest. `touched`: by something else in it, or the object is open in another slot.
define void @perdure_ipv.enter_box(ptr %slot, ptr %box, i64 %low, i64 %high,
                                   i1 %touched) nounwind {
  %some = icmp ne i64 %high, 0
  %apart = xor i1 %touched, true
  %wanted = and i1 %some, %apart
  br i1 %wanted, label %open, label %out
open:
  call void @perdure_ipv_out_of_line.box_begin(ptr %slot, ptr %box, i64 %low, i64 %high)
  br label %out
out:
  ret void
}

define internal void @perdure_ipv_out_of_line.box_begin(ptr nocapture %slot, ptr %box, i64 %low,
    i64 %high) noinline nounwind disable_sanitizer_instrumentation {
  call void @perdure_ipv.box_open(ptr %box, i64 %low, i1 true)
  store i64 %low, ptr %slot
  %top = getelementptr i8, ptr %slot, i64 8
  store i64 %high, ptr %top
  ret void
}

; The answer for each row: the box's, or, while no box is open, in which it is 0, the row's own.
define { i64, i64 } @perdure_ipv.begin_in_box(ptr %slot, ptr %first, i64 %bytes, i64 %object,
                                              i64 %load, i64 %past) nounwind {
  %top = getelementptr i8, ptr %slot, i64 8
  %high = load i64, ptr %top
  %of_load = insertvalue { i64, i64 } zeroinitializer, i64 %load, 0
  %of_box = insertvalue { i64, i64 } %of_load, i64 %past, 1
  %open = icmp ne i64 %high, 0
  br i1 %open, label %known, label %out
known:
  %alone = icmp eq i64 %object, 0
  %some = icmp ne i64 %bytes, 0
  %row = and i1 %alone, %some
  br i1 %row, label %begin, label %out
begin:
  %of_row = call { i64, i64 } @perdure_ipv_row_begin(ptr %first, i64 %bytes)
  br label %out
out:
  %result = phi { i64, i64 } [ zeroinitializer, %0 ], [ %of_box, %known ], [ %of_row, %begin ]
  ret { i64, i64 } %result
}

define void @perdure_ipv.end_in_box(ptr %slot, ptr %first, i64 %bytes, i1 %past_cache,
                                    ptr %box) nounwind {
  %row = call i1 @perdure_ipv.is_announced(ptr %slot, i64 %bytes)
  br i1 %row, label %end, label %out
end:
  call void @perdure_ipv_out_of_line.row_end(ptr %box, ptr %first, i64 %bytes, i1 %past_cache)
  br label %out
out:
  ret void
}

; What was stored through the cache of a box that wanted it past is told when the box ends.
define internal void @perdure_ipv_out_of_line.row_end(ptr %box, ptr %first, i64 %bytes,
    i1 %past_cache) noinline nounwind disable_sanitizer_instrumentation {
  %object = load i64, ptr %box
  %in_box = icmp ne i64 %object, 0
  br i1 %in_box, label %box_row, label %single
box_row:
  %past_at = getelementptr i8, ptr %box, i64 16
  %past = load i64, ptr %past_at
  %asked = icmp ne i64 %past, 0
  br i1 %asked, label %tell, label %out
tell:
  br i1 %past_cache, label %part, label %through
part:
  call void @perdure_ipv_box_part(ptr %first, i64 %bytes)
  br label %out
through:
  %through_at = getelementptr i8, ptr %box, i64 24
  store i64 1, ptr %through_at
  br label %out
single:
  call void @perdure_ipv.end_announced(ptr %first, i64 %bytes, i1 %past_cache)
  br label %out
out:
  ret void
}

; The box ends even if something closed the slot meanwhile.
define void @perdure_ipv.leave_box(ptr %slot, ptr %box) nounwind {
  %top = getelementptr i8, ptr %slot, i64 8
  %high = load i64, ptr %top
  %object = load i64, ptr %box
  %any = or i64 %high, %object
  %open = icmp ne i64 %any, 0
  br i1 %open, label %end, label %out
end:
  call void @perdure_ipv_out_of_line.box_end(ptr %slot, ptr %box)
  br label %out
out:
  ret void
}

define internal void @perdure_ipv_out_of_line.box_end(ptr nocapture %slot, ptr %box)
    noinline nounwind disable_sanitizer_instrumentation {
  %object = load i64, ptr %box
  %in_box = icmp ne i64 %object, 0
  br i1 %in_box, label %all, label %single
all:
  %past_at = getelementptr i8, ptr %box, i64 16
  %past = load i64, ptr %past_at
  call void @perdure_ipv.box_leave(i64 %past)
  call void @perdure_ipv.box_close(ptr %box)
  call void @llvm.memset.p0.i64(ptr align 8 %slot, i8 0, i64 16, i1 false)
  ret void
single:
  call void @perdure_ipv.leave(ptr %slot)
  ret void
}
)";

bool is_hook_function(const llvm::Function& function) {
  return function.getName().starts_with("perdure_ipv.");
}

llvm::CallBase* first_call(llvm::Function& function) {
  for (llvm::User* user : function.users()) {
    if (auto* call = llvm::dyn_cast<llvm::CallBase>(user)) return call;
  }
  return nullptr;
}

}  // namespace

void link_hook_functions(llvm::Module& module) {
  llvm::SMDiagnostic error;
  llvm::LLVMContext& context = module.getContext();
  // The parser needs names, which clang does without.
  const bool discards_names = context.shouldDiscardValueNames();
  context.setDiscardValueNames(false);
  const std::string text = std::string(hook_functions) + box_functions + nest_box_functions;
  auto functions = llvm::parseAssemblyString(text, error, context);
  context.setDiscardValueNames(discards_names);
  if (functions == nullptr) llvm::report_fatal_error("perdure: " + error.getMessage());
  functions->setDataLayout(module.getDataLayout());
  functions->setTargetTriple(module.getTargetTriple());
  if (llvm::Linker::linkModules(module, std::move(functions))) {
    llvm::report_fatal_error("perdure: the module names functions of its own perdure_ipv_…");
  }
  for (llvm::Function& function : module) {
    if (is_hook_function(function)) function.setLinkage(llvm::GlobalValue::InternalLinkage);
  }
}

void inline_hook_functions(llvm::Module& module) {
  std::vector<llvm::Function*> functions;
  for (llvm::Function& function : module) {
    if (is_hook_function(function)) functions.push_back(&function);
  }
  // A function that another one calls goes into it, too: `leave`, `begin`, `box_close` and so on.
  for (llvm::Function* function : functions) {
    while (llvm::CallBase* call = first_call(*function)) {
      llvm::InlineFunctionInfo unused;
      if (!llvm::InlineFunction(*call, unused).isSuccess()) {
        llvm::report_fatal_error("perdure: a hook can't be inlined");
      }
    }
  }
  for (llvm::Function* function : functions) function->eraseFromParent();
}

bool is_out_of_line(const llvm::Function& function) {
  return function.getName().starts_with("perdure_ipv_out_of_line.");
}

}  // namespace perdure::ipv
