// SPDX-License-Identifier: BSD-3-Clause
#include "levels/level_directory.hpp"

#include "base/assert.hpp"

namespace perdure {
namespace {

const LevelKind& kind_of(const std::string& path) {
  const LevelKind* found = nullptr;
  for (const LevelKind* const kind : level_kinds()) {
    const std::string_view prefix = kind->prefix();
    if (!path.starts_with(prefix)) continue;
    if (found == nullptr || found->prefix().size() < prefix.size()) found = kind;
  }
  PERDURE_ASSERT(found != nullptr);  // one has no prefix
  return *found;
}

}  // namespace

Result<LevelDirectory> LevelDirectory::open(const std::string& path) {
  PERDURE_TRY_ASSIGN(auto folder, kind_of(path).open(path));
  return LevelDirectory(std::move(folder), path);
}

Result<LevelDirectory> LevelDirectory::make_below(const std::string& upper,
                                                  const std::string& below) {
  PERDURE_TRY_ASSIGN(auto folder, kind_of(upper).make_below(upper, below));
  std::string path = upper + "/" + below;
  while (path.ends_with('/')) path.pop_back();
  return LevelDirectory(std::move(folder), std::move(path));
}

Result<bool> LevelDirectory::exists(const std::string& path) {
  return kind_of(path).exists(path);
}

bool LevelDirectory::remove_folder(const std::string& path) {
  return kind_of(path).remove_folder(path);
}

Result<std::string> LevelDirectory::read_file(const std::string& name,
                                              std::uint64_t bytes_max) const {
  PERDURE_TRY_ASSIGN(const auto file, folder_->open(name));
  PERDURE_TRY_ASSIGN(const std::uint64_t bytes, file->size_bytes());
  if (bytes > bytes_max) {
    return Status(Code::damaged, path_of(name), " is larger than the ", bytes_max,
                  " bytes that a file of its kind may have");
  }
  std::string text(bytes, '\0');
  PERDURE_TRY(file->read(0, std::as_writable_bytes(std::span(text))));
  return text;
}

}  // namespace perdure
