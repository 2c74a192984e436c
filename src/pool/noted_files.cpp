// SPDX-License-Identifier: BSD-3-Clause
#include "pool/noted_files.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/checksum.hpp"
#include "pool/file_note_format.hpp"
#include "pool/open_pools.hpp"

namespace perdure {
namespace {

constexpr std::uint32_t lock_wait_ms = 1000;  // for a process that is ending
constexpr std::string_view first_note_prefix = "noted-";

// CRC-64 of the last bytes before `end`.
Result<std::uint64_t> checksum_before(int fd, std::uint64_t end, const std::string& path) {
  std::array<std::byte, file_tail_bytes> tail;
  const std::uint64_t wanted = std::min(end, file_tail_bytes);
  std::uint64_t got = 0;
  while (got < wanted) {
    const ssize_t count =
        ::pread(fd, tail.data() + got, wanted - got, static_cast<off_t>(end - wanted + got));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_status("read " + path, errno);
    if (count == 0) break;  // it became shorter: the checksum will say so
    got += static_cast<std::uint64_t>(count);
  }
  return crc64(tail.data(), got);
}

bool is_same_file(int fd, const struct stat& other) {
  struct stat own{};
  return ::fstat(fd, &own) == 0 && own.st_ino == other.st_ino && own.st_dev == other.st_dev;
}

std::string first_note_name(std::uint32_t rank, const std::string& path) {
  return std::string(first_note_prefix) + std::to_string(rank) + "." + file_note_digits(path);
}

}  // namespace

bool is_first_note_file(std::string_view name) {
  const std::size_t dot = name.find('.');
  if (!name.starts_with(first_note_prefix) || dot == std::string_view::npos) return false;
  const auto rank = name.substr(first_note_prefix.size(), dot - first_note_prefix.size());
  const auto digits = name.substr(dot + 1, 16);
  const auto rest = name.substr(std::min(name.size(), dot + 17));
  return !rank.empty() && digits.size() == 16 && (rest.empty() || rest == ".new") &&
         rank.find_first_not_of("0123456789") == std::string_view::npos &&
         digits.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

Result<NotedFile> NotedFile::open(const std::string& path, std::FILE* stream) {
  const PathParts parts = split_path(path);
  const bool named = !parts.name.empty() && parts.name != "." && parts.name != "..";
  if (!named || path.size() > file_path_bytes_max) {
    return Status(Code::invalid_argument, quoted(path), " is no path of a file of 1 to ",
                  file_path_bytes_max, " bytes");
  }
  NotedFile file;
  file.path_ = path;
  file.place_ = canonical(parts.directory);
  if (file.place_.size() > file_path_bytes_max) {
    return Status(Code::invalid_argument, "the directory of ", quoted(path), " has a path of ",
                  file.place_.size(), " bytes; at most ", file_path_bytes_max, " can be noted");
  }
  file.full_path_ = FileNote{path, file.place_}.full_path();
  struct stat found{};
  if (::stat(file.place_.c_str(), &found) != 0 || !S_ISDIR(found.st_mode)) {
    return Status(Code::not_found, "there is no directory ", file.place_, " for ", quoted(path),
                  "; make it first");
  }
  PERDURE_TRY(file.set_stream(stream));
  return file;
}

Status NotedFile::set_stream(std::FILE* stream) {
  PERDURE_TRY(find());
  struct stat found{};
  if (stream != nullptr && (::fstat(::fileno(stream), &found) != 0 || handle_.fd() < 0 ||
                            !is_same_file(handle_.fd(), found))) {
    return Status(Code::invalid_argument, "the stream is not open on ", full_path_,
                  ": give the one that writes it, or none");
  }
  stream_ = stream;
  return Status::success();
}

// Opens what the name leads to now, if that is another file than before.
Status NotedFile::find() {
  struct stat found{};
  const bool there = ::lstat(full_path_.c_str(), &found) == 0;
  if (there && handle_.fd() >= 0 && is_same_file(handle_.fd(), found)) return Status::success();
  if (!there && errno != ENOENT) return errno_status("look at " + full_path_, errno);
  if (handle_.fd() >= 0) {
    if (!there) {
      return Status(Code::not_found, full_path_,
                    " was removed while the job writes it: a restart would lack its lines; bring "
                    "it back");
    }
    PERDURE_TRY(make_durable());  // a version may be under way that notes what it was
  }
  if (!there) return Status::success();
  PERDURE_TRY_ASSIGN(auto opened, open_output_again(full_path_));
  Status locked =
      lock_file(opened.fd(), full_path_, {.wait_ms = lock_wait_ms, .own_at_once = true});
  if (locked.code() == Code::busy) {
    return Status(Code::busy, locked.message(),
                  ". Each rank has files of its own: two can't be cut back in one");
  }
  if (!locked.ok() && locked.code() != Code::unsupported) return locked;
  handle_ = std::move(opened);
  is_named_ = false;
  durable_bytes_ = 0;
  return Status::success();
}

Result<std::uint64_t> NotedFile::size() const {
  struct stat found{};
  if (handle_.fd() < 0) return std::uint64_t{0};
  if (::fstat(handle_.fd(), &found) != 0) return errno_status("fstat " + full_path_, errno);
  return static_cast<std::uint64_t>(found.st_size);
}

Result<FileNote> NotedFile::measure() {
  PERDURE_TRY(lost_);
  PERDURE_TRY(find());
  FileNote note{path_, place_};
  PERDURE_TRY_ASSIGN(note.bytes, size());
  if (handle_.fd() < 0) return note;
  PERDURE_TRY_ASSIGN(note.checksum, checksum_before(handle_.fd(), note.bytes, full_path_));
  return note;
}

Status NotedFile::make_durable() {
  PERDURE_TRY(lost_);
  if (handle_.fd() < 0) return Status::success();
  PERDURE_TRY_ASSIGN(const std::uint64_t bytes, size());
  if (bytes == durable_bytes_ && is_named_) return Status::success();
  while (::fdatasync(handle_.fd()) != 0) {
    if (errno == EINTR) continue;
    // The kernel forgets pages that it could not write: the next call would find nothing to do.
    lost_ = Status(Code::io_error, "fdatasync ", full_path_, ": ", std::strerror(errno),
                   "; what was written to it last may be lost. End the job: it goes back to the "
                   "last version");
    return lost_;
  }
  if (!is_named_) PERDURE_TRY(sync_directory_of(full_path_));
  is_named_ = true;
  durable_bytes_ = bytes;
  return Status::success();
}

// A stream that is positioned beyond the new end would leave a hole of zeros.
Status NotedFile::check_writers(std::uint64_t bytes) const {
  struct stat own{};
  if (::fstat(handle_.fd(), &own) != 0) return errno_status("fstat " + full_path_, errno);
  for (const std::string& name : kernel_names("/proc/self/fd")) {
    int fd = -1;
    std::from_chars(name.data(), name.data() + name.size(), fd);
    if (fd < 0 || fd == handle_.fd() || !is_same_file(fd, own)) continue;
    const int flags = ::fcntl(fd, F_GETFL);
    if (flags < 0 || (flags & O_APPEND) != 0 || (flags & O_ACCMODE) == O_RDONLY) continue;
    if (const off_t at = ::lseek(fd, 0, SEEK_CUR); at > static_cast<off_t>(bytes)) {
      return Status(Code::wrong_state, full_path_, " goes back to ", bytes,
                    " bytes, and descriptor ", fd, " of this process would write at byte ", at,
                    " of it and leave a hole: open it to append, or after the restart");
    }
  }
  return Status::success();
}

Status NotedFile::check(const FileNote& note, const std::string& whose) {
  constexpr const char* remedy = "; bring it back, restore another version, or name another file";
  PERDURE_TRY(find());
  PERDURE_TRY_ASSIGN(const std::uint64_t bytes, size());
  const std::string noted =
      sentence(whose, " notes ", note.bytes, " bytes of ", perdure::quoted(path_),
               note.place == place_ ? "" : " in " + note.place, ", and ");
  if (handle_.fd() < 0 && note.bytes > 0) {
    return Status(Code::not_found, noted, full_path_, " is not there", remedy);
  }
  if (bytes < note.bytes) {
    return Status(Code::damaged, noted, full_path_, " has ", bytes,
                  ": it was cut, or is another one (opening it with \"w\" empties it)", remedy);
  }
  if (note.bytes == 0 && bytes > 0 && note.place != place_) {
    return Status(Code::foreign, noted, full_path_, " has ", bytes,
                  ": it may be another one; start in the directory of before, or move it away");
  }
  if (note.bytes > 0) {
    PERDURE_TRY_ASSIGN(const auto sum, checksum_before(handle_.fd(), note.bytes, full_path_));
    if (sum != note.checksum) {
      return Status(Code::damaged, noted, full_path_, " has others before byte ", note.bytes,
                    ": it was changed, or is another one", remedy);
    }
  }
  return bytes > note.bytes ? check_writers(note.bytes) : Status::success();
}

Status NotedFile::cut(const FileNote& note) {
  PERDURE_TRY_ASSIGN(const std::uint64_t bytes, size());
  if (bytes <= note.bytes) return Status::success();
  while (::ftruncate(handle_.fd(), static_cast<off_t>(note.bytes)) != 0) {
    if (errno != EINTR) return errno_status("cut " + full_path_, errno);
  }
  durable_bytes_ = 0;
  return Status::success();
}

void NotedFiles::set_place(const std::string& directory, std::uint32_t rank, const JobId& job) {
  directory_ = directory;
  rank_ = rank;
  job_ = job;
}

bool NotedFiles::has(const std::string& full_path) const {
  return std::ranges::find(files_, full_path, &NotedFile::full_path) != files_.end();
}

bool NotedFiles::names(const std::string& path) const {
  return std::ranges::find(files_, path, &NotedFile::path) != files_.end();
}

NotedFile* NotedFiles::find(const std::string& path) {
  const auto found = std::ranges::find(files_, path, &NotedFile::path);
  return found == files_.end() ? nullptr : &*found;
}

void NotedFiles::put(const FileNote& note) {
  const std::string name = file_note_name(note.path);
  auto found = std::ranges::find(next_.scalars, name, &ScalarEntry::name);
  if (found == next_.scalars.end()) {
    found = next_.scalars.insert(next_.scalars.end(), {name, {}});
  }
  found->bytes = file_note_bytes(note);
}

// pool.N4.
Result<bool> NotedFiles::note_newest() {
  NotedFile& file = files_.back();
  PERDURE_TRY_ASSIGN(const auto held, find_file_note(next_, file.path()));
  if (held) return false;
  PERDURE_TRY(flush());
  PERDURE_TRY_ASSIGN(const FileNote now, file.measure());
  const auto first = first_note(file);
  PERDURE_TRY(first.status());
  if (!first.value()) PERDURE_TRY(keep_first_note(now));
  put(now);
  return true;
}

void NotedFiles::undo_note() {
  next_.scalars.pop_back();
}

// Of this rank; or of another one that had the file then, in a run of other ranks too.
Result<std::optional<FileNote>> NotedFiles::first_note(const NotedFile& file) const {
  std::optional<FileNote> first;
  if (directory_.empty()) return first;
  PERDURE_TRY_ASSIGN(const auto directory, Directory::open(directory_, Trust::anyone));
  PERDURE_TRY_ASSIGN(first, read_first_note(directory, first_note_name(rank_, file.path()), file));
  if (first) return first;
  PERDURE_TRY_ASSIGN(const auto names, directory.names());
  for (const std::string& name : names) {
    if (!is_first_note_file(name) || !name.ends_with("." + file_note_digits(file.path()))) continue;
    PERDURE_TRY_ASSIGN(const auto note, read_first_note(directory, name, file));
    const bool is_its = note && note->place == file.place();
    if (is_its && (!first || note->bytes < first->bytes)) first = note;
  }
  return first;
}

Result<std::optional<FileNote>> NotedFiles::read_first_note(const Directory& directory,
                                                            const std::string& name,
                                                            const NotedFile& of) const {
  auto file = directory.open_file(name, FileAccess::read);
  if (file.status().code() == Code::not_found) return std::optional<FileNote>();
  PERDURE_TRY(file.status());
  PERDURE_TRY_ASSIGN(const auto text,
                     read_rest(file.value(), directory.path_of(name), 4 * file_path_bytes_max));
  FirstNoteFormat head{};
  constexpr std::size_t summed = sizeof head.checksum;
  const auto bytes = std::as_bytes(std::span(text));
  if (bytes.size() >= sizeof head) std::memcpy(&head, bytes.data(), sizeof head);
  const bool whole = bytes.size() >= sizeof head &&
                     crc64(bytes.data() + summed, bytes.size() - summed) == head.checksum;
  const auto note = whole ? file_note_of(bytes.subspan(sizeof head)) : std::nullopt;
  if (!note || note->path != of.path()) {
    return Status(Code::damaged, directory.path_of(name), " says no more how long ",
                  quoted(of.path()),
                  " was at first; remove it, and the file stays as long as it is");
  }
  if (head.job_id[0] != job_.words[0] || head.job_id[1] != job_.words[1]) {
    return std::optional<FileNote>();  // of a pool that was here before
  }
  return note;
}

Status NotedFiles::keep_first_note(const FileNote& note) const {
  if (directory_.empty()) return Status::success();
  FirstNoteFormat head{0, {job_.words[0], job_.words[1]}};
  const std::vector<std::byte> bytes = file_note_bytes(note);
  std::string text(sizeof head, '\0');
  std::memcpy(text.data(), &head, sizeof head);
  text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  head.checksum = crc64(text.data() + sizeof head.checksum, text.size() - sizeof head.checksum);
  std::memcpy(text.data(), &head.checksum, sizeof head.checksum);
  PERDURE_TRY_ASSIGN(const auto directory, Directory::open(directory_, Trust::anyone));
  return directory.replace_file(first_note_name(rank_, note.path), text);
}

// What a stream holds back is not lost if it can't be written, but it is not in the file.
Status NotedFiles::flush() const {
  const auto failed = [](const char* what) {
    const int error = errno;
    return Status(error == ENOSPC || error == EDQUOT ? Code::no_space : Code::io_error, what, ": ",
                  std::strerror(error),
                  "; make room, or say by perdure_file() which stream writes the file if it is "
                  "another that fails");
  };
  bool all = false;
  for (const NotedFile& file : files_) {
    if (file.stream() == nullptr) {
      all = true;
    } else if (std::fflush(file.stream()) != 0) {
      return failed(file.full_path().c_str());
    }
  }
  if (all && std::fflush(nullptr) != 0) return failed("a stream of C can't be flushed");
  return Status::success();
}

Status NotedFiles::note() {
  if (files_.empty()) return Status::success();
  PERDURE_TRY(flush());
  for (NotedFile& file : files_) {
    PERDURE_TRY_ASSIGN(const FileNote now, file.measure());
    put(now);
  }
  return Status::success();
}

Status NotedFiles::make_durable() {
  for (NotedFile& file : files_) PERDURE_TRY(file.make_durable());
  return Status::success();
}

Status NotedFiles::check_one(NotedFile& file, const Catalogue& held, std::uint64_t number) const {
  PERDURE_TRY_ASSIGN(const auto note, find_file_note(held, file.path()));
  if (note) return file.check(*note, sentence("version ", number));
  PERDURE_TRY_ASSIGN(const auto first, first_note(file));
  if (!first) return Status::success();
  // No version says that these bytes are there.
  const Status fits = file.check(*first, "the pool");
  return fits.code() == Code::wrong_state ? fits : Status::success();
}

Status NotedFiles::cut_one(NotedFile& file, const Catalogue& held) const {
  PERDURE_TRY_ASSIGN(const auto note, find_file_note(held, file.path()));
  if (note) return file.cut(*note);
  PERDURE_TRY_ASSIGN(const auto first, first_note(file));
  if (first && file.check(*first, "the pool").ok()) return file.cut(*first);
  if (!first) return Status::success();
  PERDURE_TRY_ASSIGN(const FileNote now, file.measure());
  return keep_first_note(now);
}

Status NotedFiles::check(const Catalogue& version) {
  if (files_.empty()) return Status::success();
  PERDURE_TRY(flush());
  for (NotedFile& file : files_) PERDURE_TRY(check_one(file, version, version.version));
  return Status::success();
}

Status NotedFiles::bring_back_newest() {
  PERDURE_TRY(flush());
  PERDURE_TRY(check_one(files_.back(), next_, next_.parent));
  return cut_one(files_.back(), next_);
}

Status NotedFiles::cut(const Catalogue& version) {
  for (NotedFile& file : files_) PERDURE_TRY(cut_one(file, version));
  return Status::success();
}

}  // namespace perdure
