// SPDX-License-Identifier: BSD-3-Clause
//
// Files: a level on a file system that all nodes share.
//
// A file has another name until it is whole, NAME.new- and random digits: no two writers, of any
// node, have the same. It is written past the page cache where the file system can do that, as
// nobody reads it soon.
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/files.hpp"
#include "base/random.hpp"
#include "levels/level_directory.hpp"
#include "pmem/region.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t direct_align_bytes = 4096;  // of O_DIRECT, on any file system

Result<std::string> fresh_name(const std::string& name) {
  JobId drawn;
  PERDURE_TRY(fill_random(&drawn, sizeof drawn));
  return name + ".new-" + job_id_text(drawn);
}

class FileReader final : public LevelReader {
 public:
  FileReader(FileHandle file, std::string path) : file_(std::move(file)), path_(std::move(path)) {}
  Result<std::uint64_t> size_bytes() const override {
    const off_t end = ::lseek(file_.fd(), 0, SEEK_END);
    if (end < 0) return errno_status("seek in " + path_, errno);
    return static_cast<std::uint64_t>(end);
  }
  Status read(std::uint64_t offset, std::span<std::byte> out) const override {
    for (std::uint64_t done = 0; done < out.size();) {
      const ssize_t got = ::pread(file_.fd(), out.data() + done, out.size() - done,
                                  static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return errno_status("read " + path_, errno);
      if (got == 0) {
        return Status(Code::damaged, path_, " ends at byte ", offset + done,
                      ", in the middle of what it should hold");
      }
      done += static_cast<std::uint64_t>(got);
    }
    return Status::success();
  }

 private:
  FileHandle file_;
  std::string path_;
};

class FileWriter final : public LevelWriter {
 public:
  FileWriter(const FileHandle& file, std::string path)
      : file_(file), path_(std::move(path)), direct_(set_direct(true)) {}
  Status append(std::span<const std::byte> bytes) override {
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    const bool aligned = reinterpret_cast<std::uintptr_t>(bytes.data()) % direct_align_bytes == 0;
    if (!aligned || bytes.size() % direct_align_bytes != 0) end_direct();
    Status status = write_all(file_, path_, text);
    if (!status.ok() && direct_) {  // on some file systems only the first write says so
      end_direct();
      if (::lseek(file_.fd(), static_cast<off_t>(written_), SEEK_SET) < 0) return status;
      status = write_all(file_, path_, text);
    }
    PERDURE_TRY(status);
    written_ += bytes.size();
    return Status::success();
  }

 private:
  void end_direct() {
    if (std::exchange(direct_, false)) (void)set_direct(false);
  }
  bool set_direct(bool on) const {
    const int flags = ::fcntl(file_.fd(), F_GETFL);
    return ::fcntl(file_.fd(), F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT) == 0;
  }

  const FileHandle& file_;
  std::string path_;
  bool direct_;
  std::uint64_t written_ = 0;
};

class FileFolder final : public LevelFolder {
 public:
  explicit FileFolder(Directory directory) : directory_(std::move(directory)) {}

  Result<std::vector<std::string>> names() const override { return directory_.names(); }
  Result<std::unique_ptr<LevelReader>> open(const std::string& name) const override {
    PERDURE_TRY_ASSIGN(auto file, directory_.open_file(name, FileAccess::read));
    return std::unique_ptr<LevelReader>(
        std::make_unique<FileReader>(std::move(file), directory_.path_of(name)));
  }
  Status publish(const std::string& name, const FillLevelFile& fill) const override {
    PERDURE_TRY_ASSIGN(const std::string fresh, fresh_name(name));
    PERDURE_TRY_ASSIGN(const auto file, directory_.create_file(fresh));
    const std::string path = directory_.path_of(fresh);
    FileWriter writer(file, path);
    Status status = fill(writer);
    if (status.ok() && ::fsync(file.fd()) != 0) status = errno_status("fsync " + path, errno);
    if (status.ok()) status = directory_.publish_file(fresh, name);
    if (!status.ok()) (void)directory_.remove_file(fresh);  // the first failure counts
    return status;
  }
  Status replace(const std::string& name, std::string_view bytes) const override {
    PERDURE_TRY_ASSIGN(const std::string fresh, fresh_name(name));
    return directory_.replace_file(name, bytes, fresh.substr(name.size() + unfinished.size()));
  }
  Status remove(const std::string& name) const override { return directory_.remove_file(name); }
  Status sync() const override { return directory_.sync(); }

 private:
  static constexpr std::string_view unfinished = ".new";

  Directory directory_;
};

Result<std::unique_ptr<LevelFolder>> folder_of(Result<Directory> opened) {
  if (!opened.ok()) return opened.status();
  return std::unique_ptr<LevelFolder>(std::make_unique<FileFolder>(opened.take()));
}

class Files final : public LevelKind {
 public:
  std::string_view prefix() const override { return ""; }
  Result<std::unique_ptr<LevelFolder>> open(const std::string& path) const override {
    return folder_of(Directory::open(path, trust_unless(false)));
  }
  Result<std::unique_ptr<LevelFolder>> make_below(const std::string& upper,
                                                  const std::string& below) const override {
    return folder_of(Directory::make_below(upper, below, trust_unless(false)));
  }
  Result<bool> exists(const std::string& path) const override {
    const auto opened = Directory::open(path, Trust::anyone);
    if (opened.status().code() == Code::not_found) return false;
    if (!opened.ok()) return opened.status();
    return true;
  }
  bool remove_folder(const std::string& path) const override { return remove_directory(path); }
};

}  // namespace

const LevelKind& files_kind() {
  static const Files& kind = *new Files;  // levels are used until the process ends
  return kind;
}

}  // namespace perdure
