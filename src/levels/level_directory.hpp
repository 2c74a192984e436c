// SPDX-License-Identifier: BSD-3-Clause
//
// Level directory: a directory of a level that outlives the nodes, to which versions are drained,
// and the verbs that the drain needs of it. What it is made of has a kind, one file for each in
// kinds/: a directory of a file system, or whatever else keeps bytes under names, as an object
// store does. A path begins with the prefix of its kind; that of a file system has none.
//
// What a kind has to give
//   levels.L1  What was published or replaced is whole and durable when the call returns success,
//       and whole or as before at any other time, for every process that sees the level. After
//       sync() all names that names() has shown are durable, whoever gave them.
//   levels.L2  Of several that publish one name at a time one succeeds, without a lock.
//
// Threads: any; a directory is not changed by its calls. Failure: a Status with the path and the
// remedy. Code::not_found only if there is nothing under the name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"

namespace perdure {

// A file of a level that was opened: what it held then.
class LevelReader {
 public:
  LevelReader() = default;
  LevelReader(const LevelReader&) = delete;
  LevelReader& operator=(const LevelReader&) = delete;
  virtual ~LevelReader() = default;
  virtual Result<std::uint64_t> size_bytes() const = 0;
  // Code::damaged if it ends before.
  virtual Status read(std::uint64_t offset, std::span<std::byte> out) const = 0;
};

// A file that is being made: what is appended follows what was.
class LevelWriter {
 public:
  LevelWriter() = default;
  LevelWriter(const LevelWriter&) = delete;
  LevelWriter& operator=(const LevelWriter&) = delete;
  virtual ~LevelWriter() = default;
  virtual Status append(std::span<const std::byte> bytes) = 0;
};
using FillLevelFile = std::function<Status(LevelWriter& file)>;

// An open directory, as a kind gives it.
class LevelFolder {
 public:
  LevelFolder() = default;
  LevelFolder(const LevelFolder&) = delete;
  LevelFolder& operator=(const LevelFolder&) = delete;
  virtual ~LevelFolder() = default;
  virtual Result<std::vector<std::string>> names() const = 0;
  virtual Result<std::unique_ptr<LevelReader>> open(const std::string& name) const = 0;
  virtual Status publish(const std::string& name, const FillLevelFile& fill) const = 0;
  virtual Status replace(const std::string& name, std::string_view bytes) const = 0;
  virtual Status remove(const std::string& name) const = 0;
  virtual Status sync() const = 0;
};

class LevelKind {
 public:
  LevelKind() = default;
  LevelKind(const LevelKind&) = delete;
  LevelKind& operator=(const LevelKind&) = delete;
  virtual ~LevelKind() = default;
  virtual std::string_view prefix() const = 0;  // "NAME:"; never that of another one
  virtual Result<std::unique_ptr<LevelFolder>> open(const std::string& path) const = 0;
  virtual Result<std::unique_ptr<LevelFolder>> make_below(const std::string& upper,
                                                          const std::string& below) const = 0;
  virtual Result<bool> exists(const std::string& path) const = 0;
  virtual bool remove_folder(const std::string& path) const = 0;
};
// All of them, in any order. A path is of the one with the longest prefix that it has.
std::span<const LevelKind* const> level_kinds();

class LevelDirectory {
 public:
  static Result<LevelDirectory> open(const std::string& path);
  // `upper`, and in it `below`, with all that is missing between them; but not what is above.
  static Result<LevelDirectory> make_below(const std::string& upper, const std::string& below);
  // Whoever may write there.
  static Result<bool> exists(const std::string& path);
  // Only an empty one; false if it is not, or can't be.
  static bool remove_folder(const std::string& path);

  const std::string& path() const { return path_; }
  std::string path_of(const std::string& name) const { return path_ + "/" + name; }
  // Sorted.
  Result<std::vector<std::string>> names() const { return folder_->names(); }
  Result<std::unique_ptr<LevelReader>> open_file(const std::string& name) const {
    return folder_->open(name);
  }
  // All of a small one. Code::damaged if it has more bytes than that.
  Result<std::string> read_file(const std::string& name, std::uint64_t bytes_max) const;
  // Made by `fill`, whose failure leaves nothing. Code::wrong_state if there is something under the
  // name.
  Status publish_file(const std::string& name, const FillLevelFile& fill) const {
    return folder_->publish(name, fill);
  }
  // Whatever is there.
  Status replace_file(const std::string& name, std::string_view bytes) const {
    return folder_->replace(name, bytes);
  }
  // What is not there is removed.
  Status remove_file(const std::string& name) const { return folder_->remove(name); }
  Status sync() const { return folder_->sync(); }

 private:
  LevelDirectory(std::shared_ptr<const LevelFolder> folder, std::string path)
      : folder_(std::move(folder)), path_(std::move(path)) {}

  std::shared_ptr<const LevelFolder> folder_;
  std::string path_;
};

}  // namespace perdure
