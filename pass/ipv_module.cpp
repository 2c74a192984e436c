// SPDX-License-Identifier: BSD-3-Clause
#include "ipv_module.hpp"

#include <llvm/ADT/StringMap.h>
#include <llvm/ADT/StringSwitch.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/InstrTypes.h>
#include <llvm/IR/Instructions.h>

#include <vector>

namespace perdure::ipv {

using llvm::Function;
using llvm::GlobalVariable;
using llvm::Module;

namespace {

constexpr uint64_t page = 4096;
constexpr uint64_t large_page = uint64_t{2} << 20;
constexpr uint64_t large_array = uint64_t{4} << 20;  // from here on, large pages
constexpr uint64_t worth_pages = uint64_t{64} << 10;

// What is annotated, by any file's attribute annotate("perdure_ipv").
std::vector<const llvm::GlobalValue*> annotated(const Module& module) {
  std::vector<const llvm::GlobalValue*> found;
  const GlobalVariable* list = module.getNamedGlobal("llvm.global.annotations");
  if (list == nullptr || !list->hasInitializer()) return found;
  for (const llvm::Use& use : list->getInitializer()->operands()) {
    const auto* entry = llvm::dyn_cast<llvm::ConstantStruct>(use.get());
    if (entry == nullptr || entry->getNumOperands() < 2) continue;
    const auto* text = llvm::dyn_cast<GlobalVariable>(entry->getOperand(1)->stripPointerCasts());
    if (text == nullptr || !text->hasInitializer()) continue;
    const auto* words = llvm::dyn_cast<llvm::ConstantDataSequential>(text->getInitializer());
    if (words == nullptr || !words->isCString() || words->getAsCString() != "perdure_ipv") continue;
    const auto* value =
        llvm::dyn_cast<llvm::GlobalValue>(entry->getOperand(0)->stripPointerCasts());
    if (value != nullptr) found.push_back(value);
  }
  return found;
}

bool can_move(const GlobalVariable& array) {
  return array.hasInitializer() && !array.isConstant() && !array.isThreadLocal() &&
         !array.hasSection() && !array.hasAppendingLinkage() && array.getAddressSpace() == 0 &&
         !array.hasAvailableExternallyLinkage() && !array.getName().starts_with("llvm.");
}

// The same array, as the first field of a struct of whole pages.
void give_pages(GlobalVariable& array, const llvm::DataLayout& layout) {
  const uint64_t bytes = layout.getTypeAllocSize(array.getValueType()).getFixedValue();
  const uint64_t unit = bytes > large_array ? large_page : page;
  const llvm::Align align(std::max<uint64_t>(unit, array.getAlign().valueOrOne().value()));
  const uint64_t rest = llvm::alignTo(bytes, page) - bytes;
  array.setAlignment(align);
  if (rest == 0) return;
  llvm::LLVMContext& context = array.getContext();
  llvm::Type* padding = llvm::ArrayType::get(llvm::Type::getInt8Ty(context), rest);
  auto* type = llvm::StructType::get(context, {array.getValueType(), padding}, true);
  llvm::Constant* value =
      array.getInitializer()->isNullValue()
          ? llvm::Constant::getNullValue(type)
          : llvm::ConstantStruct::get(
                type, {array.getInitializer(), llvm::Constant::getNullValue(padding)});
  auto* padded =
      new GlobalVariable(*array.getParent(), type, false, array.getLinkage(), value, "", &array);
  padded->copyAttributesFrom(&array);
  padded->setComdat(array.getComdat());
  padded->setAlignment(align);
  padded->copyMetadata(&array, 0);
  padded->takeName(&array);
  array.replaceAllUsesWith(padded);
  array.eraseFromParent();
}

struct Writer {
  const char* name;
  unsigned buffer;
};

// Functions of the C library and of MPI, and which argument they store to.
const Writer writers[] = {{"read", 1},
                          {"pread", 1},
                          {"pread64", 1},
                          {"recv", 1},
                          {"recvfrom", 1},
                          {"fread", 0},
                          {"fread_unlocked", 0},
                          {"MPI_Recv", 0},
                          {"MPI_Irecv", 0},
                          {"MPI_Mrecv", 0},
                          {"MPI_Imrecv", 0},
                          {"MPI_Recv_init", 0},
                          {"MPI_Sendrecv", 5},
                          {"MPI_Sendrecv_replace", 0},
                          {"MPI_Bcast", 0},
                          {"MPI_Ibcast", 0},
                          {"MPI_Reduce", 1},
                          {"MPI_Ireduce", 1},
                          {"MPI_Allreduce", 1},
                          {"MPI_Iallreduce", 1},
                          {"MPI_Reduce_scatter", 1},
                          {"MPI_Reduce_scatter_block", 1},
                          {"MPI_Scan", 1},
                          {"MPI_Exscan", 1},
                          {"MPI_Gather", 3},
                          {"MPI_Igather", 3},
                          {"MPI_Gatherv", 3},
                          {"MPI_Allgather", 3},
                          {"MPI_Iallgather", 3},
                          {"MPI_Allgatherv", 3},
                          {"MPI_Iallgatherv", 3},
                          {"MPI_Scatter", 3},
                          {"MPI_Iscatter", 3},
                          {"MPI_Scatterv", 4},
                          {"MPI_Alltoall", 3},
                          {"MPI_Ialltoall", 3},
                          {"MPI_Alltoallv", 4},
                          {"MPI_Ialltoallv", 4},
                          {"MPI_Alltoallw", 4},
                          {"MPI_Neighbor_alltoall", 3},
                          {"MPI_Neighbor_alltoallv", 4},
                          {"MPI_Neighbor_allgather", 3},
                          {"MPI_Get", 0},
                          {"MPI_Rget", 0},
                          {"MPI_File_read", 1},
                          {"MPI_File_read_all", 1},
                          {"MPI_File_read_at", 2},
                          {"MPI_File_read_at_all", 2},
                          {"MPI_File_read_shared", 1}};

// Fortran's compilers write mpi_recv_ or mpi_recv__.
const Writer* writer(llvm::StringRef name) {
  const llvm::StringRef stem = name.starts_with("mpi_") ? name.rtrim('_') : name;
  for (const Writer& known : writers) {
    const llvm::StringRef of = known.name;
    if (stem == of || (name.starts_with("mpi_") && stem.equals_insensitive(of)) ||
        (name.starts_with("PMPI_") && name.drop_front(1) == of)) {
      return &known;
    }
  }
  return nullptr;
}

}  // namespace

bool is_marked(const Module& module) {
  for (const Function& function : module) {
    const llvm::StringRef name = function.getName();
    if (name.starts_with("perdure_ipv_") && !function.use_empty()) return true;
  }
  return !annotated(module).empty();
}

bool is_parallel_body(const Function& function) {
  const llvm::StringRef name = function.getName();
  if (name.contains(".omp_outlined") || name.contains("..omp_par")) return true;
  for (const llvm::User* user : function.users()) {
    const auto* call = llvm::dyn_cast<llvm::CallBase>(user);
    const Function* callee = call == nullptr ? nullptr : call->getCalledFunction();
    if (callee != nullptr && callee != &function && callee->getName().starts_with("__kmpc_")) {
      return true;
    }
  }
  return false;
}

bool place_arrays(Module& module, bool all) {
  const llvm::DataLayout& layout = module.getDataLayout();
  std::vector<GlobalVariable*> arrays;
  for (GlobalVariable& global : module.globals()) {
    const uint64_t bytes = global.getValueType()->isSized()
                               ? layout.getTypeAllocSize(global.getValueType()).getFixedValue()
                               : 0;
    bool wanted = all && bytes >= worth_pages && global.getValueType()->isAggregateType();
    for (const llvm::GlobalValue* value : annotated(module)) wanted |= value == &global;
    for (const llvm::User* user : global.users()) {
      const auto* call = llvm::dyn_cast<llvm::CallBase>(user);
      const Function* callee = call == nullptr ? nullptr : call->getCalledFunction();
      wanted |= callee != nullptr && callee->getName() == "perdure_ipv_object" &&
                call->arg_size() > 1 && call->getArgOperand(1) == &global;
    }
    if (wanted && can_move(global)) arrays.push_back(&global);
  }
  for (GlobalVariable* array : arrays) give_pages(*array, layout);
  return !arrays.empty();
}

bool announce_kernel_writers(Module& module) {
  std::vector<std::pair<llvm::CallBase*, unsigned>> calls;
  for (Function& function : module) {
    const Writer* known = function.isDeclaration() ? writer(function.getName()) : nullptr;
    if (known == nullptr) continue;
    for (llvm::User* user : function.users()) {
      auto* call = llvm::dyn_cast<llvm::CallBase>(user);
      if (call == nullptr || call->getCalledFunction() != &function) continue;
      if (call->arg_size() > known->buffer &&
          call->getArgOperand(known->buffer)->getType()->isPointerTy()) {
        calls.emplace_back(call, known->buffer);
      }
    }
  }
  if (calls.empty()) return false;
  llvm::LLVMContext& context = module.getContext();
  const llvm::FunctionCallee plain = module.getOrInsertFunction(
      "perdure_ipv_plain", llvm::Type::getVoidTy(context), llvm::PointerType::getUnqual(context));
  for (const auto& [call, buffer] : calls) {
    llvm::IRBuilder<> builder(call);
    builder.CreateCall(plain, {call->getArgOperand(buffer)});
  }
  return true;
}

}  // namespace perdure::ipv
