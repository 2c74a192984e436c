// SPDX-License-Identifier: BSD-3-Clause
#include "ipv_module.hpp"

#include <llvm/ADT/StringExtras.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/InstrTypes.h>
#include <llvm/IR/Instructions.h>

#include <optional>
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

// Functions of the C library and of MPI, by the argument that they store to.
constexpr llvm::StringLiteral writers[] = {
    "fread fread_unlocked MPI_Recv MPI_Irecv MPI_Mrecv MPI_Imrecv MPI_Recv_init "
    "MPI_Sendrecv_replace MPI_Bcast MPI_Ibcast MPI_Get MPI_Rget",
    "read pread pread64 recv recvfrom MPI_Reduce MPI_Ireduce MPI_Allreduce MPI_Iallreduce "
    "MPI_Reduce_scatter MPI_Reduce_scatter_block MPI_Scan MPI_Exscan MPI_File_read "
    "MPI_File_read_all MPI_File_read_shared",
    "MPI_File_read_at MPI_File_read_at_all",
    "MPI_Gather MPI_Igather MPI_Gatherv MPI_Allgather MPI_Iallgather MPI_Allgatherv "
    "MPI_Iallgatherv MPI_Scatter MPI_Iscatter MPI_Alltoall MPI_Ialltoall MPI_Neighbor_alltoall "
    "MPI_Neighbor_allgather",
    "MPI_Scatterv MPI_Alltoallv MPI_Ialltoallv MPI_Alltoallw MPI_Neighbor_alltoallv",
    "MPI_Sendrecv"};

// Fortran's compilers write mpi_recv_ or mpi_recv__.
std::optional<unsigned> buffer_of(llvm::StringRef name) {
  const bool fortran = name.starts_with("mpi_");
  if (fortran) name = name.rtrim('_');
  if (name.starts_with("PMPI_")) name = name.drop_front();
  for (unsigned argument = 0; argument < std::size(writers); ++argument) {
    llvm::SmallVector<llvm::StringRef, 16> names;
    writers[argument].split(names, ' ');
    for (const llvm::StringRef known : names) {
      if (name == known || (fortran && name.equals_insensitive(known))) return argument;
    }
  }
  return std::nullopt;
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
    const auto buffer = function.isDeclaration() ? buffer_of(function.getName()) : std::nullopt;
    if (!buffer) continue;
    for (llvm::User* user : function.users()) {
      auto* call = llvm::dyn_cast<llvm::CallBase>(user);
      if (call == nullptr || call->getCalledFunction() != &function) continue;
      if (call->arg_size() > *buffer && call->getArgOperand(*buffer)->getType()->isPointerTy()) {
        calls.emplace_back(call, *buffer);
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
