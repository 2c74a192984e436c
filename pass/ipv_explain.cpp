// SPDX-License-Identifier: BSD-3-Clause
#include "ipv_explain.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <llvm/BinaryFormat/Dwarf.h>
#include <llvm/Demangle/Demangle.h>
#include <llvm/IR/DebugInfo.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/DebugProgramInstruction.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Support/Path.h>
#include <llvm/Support/raw_ostream.h>

#include <cerrno>
#include <cstring>

namespace perdure::ipv {

namespace json = llvm::json;

namespace {

json::Value place_of(const llvm::DIScope& scope, unsigned line) {
  llvm::SmallString<128> file = scope.getFilename();
  if (!llvm::sys::path::is_absolute(file)) {
    file = scope.getDirectory();
    llvm::sys::path::append(file, scope.getFilename());
  }
  return json::Object{{"file", file.str().str()}, {"line", line}};
}

json::Value place_of(const llvm::DebugLoc& at) {
  if (!at) return nullptr;
  return place_of(*llvm::cast<llvm::DIScope>(at.getScope()), at.getLine());
}

json::Value place_of(const llvm::Loop* loop) {
  return loop == nullptr ? json::Value(nullptr) : place_of(loop->getStartLoc());
}

// Its name in the source, if that is known.
std::string name_of(const llvm::Value* base) {
  if (llvm::isa<llvm::GlobalValue>(base)) return base->getName().str();
  llvm::SmallVector<llvm::DbgVariableIntrinsic*, 4> intrinsics;
  llvm::SmallVector<llvm::DbgVariableRecord*, 4> records;
  llvm::findDbgUsers(intrinsics, const_cast<llvm::Value*>(base), &records);
  for (const llvm::DbgVariableRecord* record : records)
    return record->getVariable()->getName().str();
  for (const auto* intrinsic : intrinsics) return intrinsic->getVariable()->getName().str();
  if (const auto* argument = llvm::dyn_cast<llvm::Argument>(base)) {
    return "argument " + std::to_string(argument->getArgNo() + 1);
  }
  return llvm::isa<llvm::LoadInst>(base) ? "a pointer in memory" : "a pointer";
}

json::Object refusal_of(const Refusal& refusal) {
  return json::Object{{"obligation", refusal.obligation},
                      {"why", refusal.why},
                      {"at", place_of(refusal.at->getStableDebugLoc())}};
}

void merge(json::Object& into, json::Object&& from) {
  for (auto& [key, value] : from) into[key] = std::move(value);
}

}  // namespace

json::Object Explanation::entry(const char* kind, const llvm::Function& function) const {
  const llvm::DISubprogram* subprogram = function.getSubprogram();
  return json::Object{
      {"kind", kind},
      {"module", module_.getSourceFileName()},
      {"function", llvm::demangle(function.getName())},
      {"function_at", subprogram == nullptr ? json::Value(nullptr)
                                            : place_of(*subprogram, subprogram->getLine())}};
}

void Explanation::left_alone(const llvm::Function& function, llvm::StringRef why) {
  json::Object told = entry("function", function);
  told["why"] = why.str();
  entries_.emplace_back(std::move(told));
}

void Explanation::left_alone(llvm::StringRef why) {
  entries_.emplace_back(json::Object{
      {"kind", "module"}, {"module", module_.getSourceFileName()}, {"function", ""}, {"why", why}});
}

void Explanation::function(const llvm::Function& function, const Finder& finder,
                           const NestChooser& chooser) {
  for (const Box& box : chooser.boxes) {
    json::Object told = entry("nest", function);
    told["base"] = name_of(box.row->base);
    told["tier"] = "box";
    told["nest"] = place_of(box.nest);
    told["alone"] = box.nest == box.site->loop;
    told["tests"] = static_cast<int64_t>(box.others.size() + box.conditions.size());
    told["rows"] = json::Array{place_of(box.row->stores.front().at->getStableDebugLoc())};
    entries_.emplace_back(std::move(told));
  }
  for (const NestRefusal& refusal : chooser.refused) refused(function, refusal);
  for (const auto& [loop, refusal] : finder.refused()) {
    json::Object told = entry("loop", function);
    told["nest"] = place_of(loop);
    merge(told, refusal_of(refusal));
    entries_.emplace_back(std::move(told));
  }
}

void Explanation::refused(const llvm::Function& function, const NestRefusal& refusal) {
  json::Object told = entry("refused", function);
  told["base"] = name_of(refusal.row->base);
  told["nest"] = place_of(refusal.nest);
  told["row"] = place_of(refusal.row->stores.front().at->getStableDebugLoc());
  merge(told, refusal_of(refusal.refusal));
  entries_.emplace_back(std::move(told));
}

void Explanation::write(const std::string& file) const {
  std::string text;
  llvm::raw_string_ostream stream(text);
  for (const json::Value& value : entries_) stream << value << '\n';
  stream.flush();
  // As base/files.hpp does: no link is followed, nothing is waited for.
  const int descriptor =
      open(file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
  struct stat found{};
  const bool regular =
      descriptor >= 0 && ::fstat(descriptor, &found) == 0 && S_ISREG(found.st_mode);
  const auto bytes = static_cast<ssize_t>(text.size());
  const bool written = regular && ::write(descriptor, text.data(), text.size()) == bytes;
  if (!written) {
    llvm::errs() << "perdure: can't write the explanation " << file << ": " << std::strerror(errno)
                 << "; name another file by --ipv-explain\n";
  }
  if (descriptor >= 0) close(descriptor);
}

}  // namespace perdure::ipv
