// SPDX-License-Identifier: BSD-3-Clause
//
// Memory: a level in the memory of this process, as an object store would be: bytes under names,
// put at once, and folders that are nothing but what names begin with.
#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "levels/level_directory.hpp"

namespace perdure {
namespace {

constexpr std::string_view memory_prefix = "memory:";

struct Store {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<const std::string>> files;  // by path
  std::set<std::string> folders;
};

Store& store() {
  static auto& all = *new Store;
  return all;
}

Status missing(const std::string& path) {
  return Status(Code::not_found, "there is no ", path);
}

class MemoryReader final : public LevelReader {
 public:
  MemoryReader(std::shared_ptr<const std::string> bytes, std::string path)
      : bytes_(std::move(bytes)), path_(std::move(path)) {}
  Result<std::uint64_t> size_bytes() const override { return bytes_->size(); }
  Status read(std::uint64_t offset, std::span<std::byte> out) const override {
    if (offset > bytes_->size() || out.size() > bytes_->size() - offset) {
      return Status(Code::damaged, path_, " ends at byte ", bytes_->size());
    }
    std::ranges::copy(std::as_bytes(std::span(*bytes_)).subspan(offset, out.size()), out.begin());
    return Status::success();
  }

 private:
  std::shared_ptr<const std::string> bytes_;
  std::string path_;
};

class MemoryWriter final : public LevelWriter {
 public:
  Status append(std::span<const std::byte> bytes) override {
    text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return Status::success();
  }
  std::string text;
};

class MemoryFolder final : public LevelFolder {
 public:
  explicit MemoryFolder(const std::string& path) : begin_(path + "/") {}

  Result<std::vector<std::string>> names() const override {
    const std::lock_guard<std::mutex> lock(store().mutex);
    std::set<std::string> names;
    const auto note = [&](const std::string& path) {
      if (path.starts_with(begin_))
        names.insert(path.substr(begin_.size(), path.find('/', begin_.size()) - begin_.size()));
    };
    for (const auto& [path, bytes] : store().files) note(path);
    for (const std::string& path : store().folders) note(path);
    return std::vector<std::string>(names.begin(), names.end());
  }
  Result<std::unique_ptr<LevelReader>> open(const std::string& name) const override {
    const std::lock_guard<std::mutex> lock(store().mutex);
    const auto found = store().files.find(begin_ + name);
    if (found == store().files.end()) return missing(begin_ + name);
    return std::unique_ptr<LevelReader>(
        std::make_unique<MemoryReader>(found->second, begin_ + name));
  }
  Status publish(const std::string& name, const FillLevelFile& fill) const override {
    MemoryWriter writer;
    PERDURE_TRY(fill(writer));
    const std::lock_guard<std::mutex> lock(store().mutex);
    auto bytes = std::make_shared<const std::string>(std::move(writer.text));
    if (store().files.emplace(begin_ + name, std::move(bytes)).second) return Status::success();
    return Status(Code::wrong_state, begin_ + name, " is there already");
  }
  Status replace(const std::string& name, std::string_view bytes) const override {
    const std::lock_guard<std::mutex> lock(store().mutex);
    store().files[begin_ + name] = std::make_shared<const std::string>(bytes);
    return Status::success();
  }
  Status remove(const std::string& name) const override {
    const std::lock_guard<std::mutex> lock(store().mutex);
    store().files.erase(begin_ + name);
    return Status::success();
  }
  Status sync() const override { return Status::success(); }

 private:
  std::string begin_;  // of the paths of what is in it
};

class Memory final : public LevelKind {
 public:
  std::string_view prefix() const override { return memory_prefix; }
  Result<std::unique_ptr<LevelFolder>> open(const std::string& path) const override {
    PERDURE_TRY_ASSIGN(const bool there, exists(path));
    if (!there) return missing(path);
    return std::unique_ptr<LevelFolder>(std::make_unique<MemoryFolder>(path));
  }
  Result<std::unique_ptr<LevelFolder>> make_below(const std::string& upper,
                                                  const std::string& below) const override {
    std::string path = upper;
    const auto add = [&path](const std::string& name) {
      if (!name.empty()) path += "/" + name;
      const std::lock_guard<std::mutex> lock(store().mutex);
      store().folders.insert(path);
    };
    std::size_t begin = 0;
    for (std::size_t end = 0; end != std::string::npos; begin = end + 1) {
      end = below.find('/', begin);
      add("");
      add(below.substr(begin, end - begin));
    }
    return open(path);
  }
  Result<bool> exists(const std::string& path) const override {
    const std::lock_guard<std::mutex> lock(store().mutex);
    return path == memory_prefix || store().folders.contains(path);
  }
  bool remove_folder(const std::string& path) const override {
    const std::lock_guard<std::mutex> lock(store().mutex);
    const auto is_in = [&path](const std::string& other) { return other.starts_with(path + "/"); };
    for (const auto& [file, bytes] : store().files) {
      if (is_in(file)) return false;
    }
    return std::ranges::none_of(store().folders, is_in) && store().folders.erase(path) > 0;
  }
};

}  // namespace

const LevelKind& memory_kind() {
  static const Memory& kind = *new Memory;  // levels are used until the process ends
  return kind;
}

}  // namespace perdure
