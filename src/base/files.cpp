// SPDX-License-Identifier: BSD-3-Clause
#include "base/files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/openat2.h>
#include <pwd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include "base/environment.hpp"

namespace perdure {
namespace {

constexpr mode_t file_mode = 0600;
constexpr mode_t shared_file_mode = 0660;
constexpr mode_t directory_mode = 0700;
constexpr int create_attempts = 100;
constexpr const char* unfinished_suffix = ".new";

int open_flags(FileAccess access) {
  constexpr int safe = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY;
  switch (access) {
    case FileAccess::read:
      return O_RDONLY | safe;
    case FileAccess::write:
      return O_WRONLY | safe;
    case FileAccess::read_write:
      return O_RDWR | safe;
  }
  return O_RDONLY | safe;
}

int open_at(int directory, const std::string& path, int flags, mode_t mode = 0) {
  int fd = -1;
  do {
    fd = ::openat(directory, path.c_str(), flags, mode);
  } while (fd < 0 && errno == EINTR);
  return above_standard(fd);
}

// A new file. A umask would keep the others of a group out, or this user.
int make_at(int directory, const std::string& path, int flags, mode_t mode) {
  const int made = open_at(directory, path, flags | O_CREAT | O_EXCL, mode);
  struct stat found{};
  if (made < 0 || ::fstat(made, &found) != 0 || (found.st_mode & mode) == mode) return made;
  if (::fchmod(made, mode) == 0) return made;
  const int failed = errno;
  ::close(made);
  errno = failed;
  return -1;
}

int open_without_links(const std::string& path, std::uint64_t flags) {
  open_how how{};
  how.flags = flags;
  how.resolve = RESOLVE_NO_SYMLINKS;
  long fd = -1;
  do {
    fd = ::syscall(SYS_openat2, AT_FDCWD, path.c_str(), &how, sizeof how);
  } while (fd < 0 && errno == EINTR);
  return above_standard(static_cast<int>(fd));
}

std::string user_name(uid_t uid) {
  std::array<char, 4096> room{};
  passwd entry{};
  passwd* found = nullptr;
  const int failed = ::getpwuid_r(uid, &entry, room.data(), room.size(), &found);
  return failed == 0 && found != nullptr ? entry.pw_name : "";
}

// Whether the group is this user's alone, as systems make one for each user: then what the group
// may write, only the user may.
bool is_private_group(gid_t gid) {
  std::array<char, 4096> room{};
  group entry{};
  group* found = nullptr;
  if (::getgrgid_r(gid, &entry, room.data(), room.size(), &found) != 0 || found == nullptr) {
    return false;
  }
  const std::string own = user_name(::geteuid());
  if (own.empty() || own != entry.gr_name) return false;
  for (char** member = entry.gr_mem; *member != nullptr; ++member) {
    if (own != *member) return false;
  }
  return true;
}

std::string mode_text(mode_t mode) {
  std::array<char, 8> text{};
  std::snprintf(text.data(), text.size(), "%04o", static_cast<unsigned>(mode & 07777U));
  return text.data();
}

constexpr const char* remedy =
    "; have it removed or choose another path, or set PERDURE_ANY_OWNER=1 if it is meant";

Status check_owner(const struct stat& found, const std::string& path) {
  if (found.st_uid == ::geteuid() || found.st_uid == 0) return Status::success();
  return Status(Code::foreign, path, " belongs to ", user_text(found.st_uid),
                ", and this process runs as ", user_text(::geteuid()),
                ": its owner can put anything there", remedy);
}

Status check_writers(const struct stat& found, const std::string& path) {
  const bool others = (found.st_mode & S_IWOTH) != 0;
  const bool group = (found.st_mode & S_IWGRP) != 0;
  if (!others && !(group && !is_private_group(found.st_gid))) return Status::success();
  return Status(Code::foreign, path, " may be written by ", (others ? "every user" : "its group"),
                " (mode ", mode_text(found.st_mode), "); chmod ", (others ? "go-w" : "g-w"), " ",
                path, ", choose another path, or set PERDURE_ANY_OWNER=1 if it is meant");
}

const char* kind_text(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a FIFO";
  if (S_ISSOCK(mode)) return "a socket";
  if (S_ISCHR(mode) || S_ISBLK(mode)) return "a device";
  if (S_ISLNK(mode)) return "a symbolic link";
  return "of no known kind";
}

Status not_regular(const std::string& path, mode_t mode) {
  return Status(Code::foreign, path, " is ", kind_text(mode),
                ", not a regular file; have it removed, or choose another path");
}

// The error of an open that failed; `directory` and `name` are looked at for what is there.
Status open_failed(int directory, const std::string& name, const std::string& path, int error) {
  if (error == ENOENT) return Status(Code::not_found, path, " does not exist");
  if (error == EEXIST) {
    return {Code::wrong_state, path + " exists already; have it removed, or choose another path"};
  }
  struct stat found{};
  const bool seen = ::fstatat(directory, name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0;
  if (seen && !S_ISREG(found.st_mode)) return not_regular(path, found.st_mode);
  if (seen && (error == EACCES || error == EPERM)) {
    return Status(Code::io_error, "open ", path, ": ", std::strerror(error), "; it belongs to ",
                  user_text(found.st_uid), " and has mode ", mode_text(found.st_mode));
  }
  return errno_status("open " + path, error);
}

// A regular file under one name, and `unfinished` others (base.N5).
Status check_kind(const struct stat& found, const std::string& path, std::uint64_t unfinished = 0) {
  if (!S_ISREG(found.st_mode)) return not_regular(path, found.st_mode);
  if (found.st_nlink <= 1 + unfinished) return Status::success();
  return Status(Code::foreign, path, " has ", found.st_nlink,
                " names (hard links): another one may be a file that must stay as it is; remove "
                "this name, or choose another path");
}

// base.N3 and base.N4, of a file.
Status check_file(int fd, const std::string& path, Trust trust, std::uint64_t unfinished = 0) {
  struct stat found{};
  if (::fstat(fd, &found) != 0) return errno_status("fstat " + path, errno);
  if (trust == Trust::anyone && S_ISREG(found.st_mode)) return Status::success();
  PERDURE_TRY(check_kind(found, path, unfinished));
  if (trust == Trust::group) return Status::success();
  PERDURE_TRY(check_owner(found, path));
  return check_writers(found, path);
}

// Nobody but its owner, root and the group may make names in it, sticky or not.
Status check_group_directory(const struct stat& found, const std::string& path) {
  if ((found.st_mode & S_IWOTH) == 0) return Status::success();
  return Status(Code::foreign, path, " may be written by every user (mode ",
                mode_text(found.st_mode), "), not only by a group; chmod o-w ", path,
                ", or choose another path");
}

// base.N3, of what is above a directory: where every user may write, he may also exchange it.
Status check_above(int fd, const std::string& path) {
  struct stat below{};
  if (::fstat(fd, &below) != 0) return errno_status("fstat " + path, errno);
  for (std::string up = ".."; up.size() < PATH_MAX; up += "/..") {
    struct stat above{};
    if (::fstatat(fd, up.c_str(), &above, 0) != 0) return Status::success();  // not ours to see
    if (above.st_ino == below.st_ino && above.st_dev == below.st_dev) return Status::success();
    if ((above.st_mode & S_IWOTH) != 0 && (above.st_mode & S_ISVTX) == 0) {
      return Status(Code::foreign, path, ": its directory ", path, "/", up,
                    " may be written by every user (mode ", mode_text(above.st_mode),
                    "), who could put another one in the place of this; chmod o-w or chmod +t it, "
                    "choose another path, or set PERDURE_ANY_OWNER=1 if it is meant");
    }
    below = above;
  }
  return Status::success();
}

// base.N3, of a directory: in a sticky one nobody but their owners removes or renames files.
Status check_directory(int fd, const std::string& path, Trust trust) {
  struct stat found{};
  if (::fstat(fd, &found) != 0) return errno_status("fstat " + path, errno);
  if (trust == Trust::anyone) return Status::success();
  PERDURE_TRY(check_owner(found, path));
  if (trust == Trust::group) return check_group_directory(found, path);
  if ((found.st_mode & S_ISVTX) == 0) PERDURE_TRY(check_writers(found, path));
  return check_above(fd, path);
}

std::string without_trailing_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path.empty() ? "." : path;
}

// The pipe or device of this user's under that name, or fd -1: there is none. What was looked at is
// what is opened: by its descriptor.
FileHandle open_stream(const std::string& path, int access) {
  const FileHandle place(open_at(AT_FDCWD, path, O_PATH | O_CLOEXEC));
  struct stat found{};
  if (place.fd() < 0 || ::fstat(place.fd(), &found) != 0) return FileHandle();
  const bool pipe = S_ISFIFO(found.st_mode) && found.st_uid == ::geteuid();
  if (!pipe && !S_ISCHR(found.st_mode)) return FileHandle();
  const std::string own = "/proc/self/fd/" + std::to_string(place.fd());
  return FileHandle(open_at(AT_FDCWD, own, access | O_CLOEXEC | O_NOCTTY));
}

// The directory that a link leads to, if this user or root made the link.
Result<FileHandle> open_linked_directory(const std::string& path, Trust trust) {
  struct stat link{};
  if (::lstat(path.c_str(), &link) != 0) return errno_status("stat " + path, errno);
  if (!S_ISLNK(link.st_mode)) {
    return Status(Code::invalid_argument, path, " is not a directory; name one");
  }
  if (trust != Trust::anyone) PERDURE_TRY(check_owner(link, path));
  const int fd = open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno_status("open directory " + path, errno);
  return FileHandle(fd);
}

Result<FileHandle> open_directory(const std::string& path, Trust trust) {
  const int fd = open_at(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  if (fd >= 0) return FileHandle(fd);
  if (errno == ELOOP || errno == ENOTDIR) return open_linked_directory(path, trust);
  if (errno == ENOENT) return Status(Code::not_found, path, " does not exist");
  return errno_status("open directory " + path, errno);
}

// A directory is no more durable than its name in the one above.
Status make_one(const std::string& path) {
  if (::mkdir(path.c_str(), directory_mode) != 0) {
    if (errno == EEXIST) return Status::success();
    if (errno != ENOENT) return errno_status("make the directory " + path, errno);
    const std::string above = split_path(path).directory;
    return Status(Code::io_error, "can't make the directory ", path, ": there is no ", above,
                  "; make it (mkdir -p ", above,
                  ") if the path has no slip and the file system is mounted");
  }
  struct stat made{};
  const bool seen = ::lstat(path.c_str(), &made) == 0 && S_ISDIR(made.st_mode);
  if (seen && (made.st_mode & directory_mode) != directory_mode &&
      ::fchmodat(AT_FDCWD, path.c_str(), directory_mode, AT_SYMLINK_NOFOLLOW) != 0) {
    return errno_status("give the directory " + path + " the mode that the umask took", errno);
  }
  return sync_directory_of(path);
}

// It is this user's matter who else may write the file of results that this user names.
Result<FileHandle> output_of(int fd, const std::string& path, bool append) {
  FileHandle handle(fd);
  struct stat found{};
  if (::fstat(fd, &found) != 0) return errno_status("fstat " + path, errno);
  PERDURE_TRY(check_kind(found, path));
  if (trust_unless(false) == Trust::own) PERDURE_TRY(check_owner(found, path));
  if (!append && ::ftruncate(fd, 0) != 0) return errno_status("empty " + path, errno);
  return handle;
}

}  // namespace

std::string user_text(std::uint32_t uid) {
  const std::string name = user_name(uid);
  return "user " + (name.empty() ? std::to_string(uid) : name + " (" + std::to_string(uid) + ")");
}

Trust trust_unless(bool meant) {
  const std::string given = environment("PERDURE_ANY_OWNER");
  return meant || (!given.empty() && given != "0") ? Trust::anyone : Trust::own;
}

Result<Directory> Directory::open(const std::string& path, Trust trust) {
  const std::string place = without_trailing_slashes(path);
  PERDURE_TRY_ASSIGN(auto handle, open_directory(place, trust));
  PERDURE_TRY(check_directory(handle.fd(), place, trust));
  return Directory(std::move(handle), place, trust);
}

Result<Directory> Directory::make(const std::string& path, Trust trust) {
  const std::string place = without_trailing_slashes(path);
  for (int attempt = 0; attempt < create_attempts; ++attempt) {
    // A directory that exists but can't be written to, such as /dev, is not made again.
    if (::access(place.c_str(), F_OK) != 0) PERDURE_TRY(make_one(place));
    auto opened = open(place, trust);
    if (opened.status().code() != Code::not_found) return opened;
  }
  return Status(Code::busy, place, " is being made and removed all the time");
}

Result<Directory> Directory::make_below(const std::string& upper, const std::string& below,
                                        Trust trust) {
  auto made = make(upper, trust);
  for (std::size_t begin = 0; made.ok() && begin < below.size();) {
    const std::size_t end = std::min(below.find('/', begin), below.size());
    made = make(made.value().path_of(below.substr(begin, end - begin)), trust);
    begin = end + 1;
  }
  return made;
}

std::uint32_t Directory::owner() const {
  struct stat found{};
  return ::fstat(fd(), &found) == 0 ? found.st_uid : ~std::uint32_t{0};
}

bool Directory::exists() const {
  struct stat found{};
  return ::fstat(fd(), &found) == 0 && found.st_nlink > 0;
}

// base.N5. Those that were there: one that goes meanwhile is one of ours, as nobody else can take
// names away.
std::uint64_t Directory::unfinished_names_of(int fd, const std::string& name) const {
  const auto all = names();
  if (!all.ok()) return 0;
  return static_cast<std::uint64_t>(std::ranges::count_if(all.value(), [&](const auto& other) {
    return other.starts_with(name + unfinished_suffix) && is_file(fd, other);
  }));
}

Result<FileHandle> Directory::checked(int fd, const std::string& name) const {
  FileHandle handle(fd);
  struct stat found{};
  std::uint64_t unfinished = 0;
  if (trust_ == Trust::own && ::fstat(fd, &found) == 0 && found.st_nlink > 1) {
    unfinished = unfinished_names_of(fd, name);
  }
  PERDURE_TRY(check_file(fd, path_of(name), trust_, unfinished));
  return handle;
}

Result<FileHandle> Directory::open_file(const std::string& name, FileAccess access) const {
  const int opened = open_at(fd(), name, open_flags(access));
  if (opened < 0) return open_failed(fd(), name, path_of(name), errno);
  return checked(opened, name);
}

int Directory::make_new(const std::string& name) const {
  const mode_t mode = trust_ == Trust::group ? shared_file_mode : file_mode;
  return make_at(fd(), name, open_flags(FileAccess::read_write), mode);
}

Result<FileHandle> Directory::create_file(const std::string& name) const {
  const int made = make_new(name);
  if (made < 0) return open_failed(fd(), name, path_of(name), errno);
  return FileHandle(made);
}

Result<FileHandle> Directory::open_or_create(const std::string& name) const {
  for (int attempt = 0; attempt < create_attempts; ++attempt) {
    const int opened = open_at(fd(), name, open_flags(FileAccess::read_write));
    if (opened >= 0) return checked(opened, name);
    if (errno != ENOENT) return open_failed(fd(), name, path_of(name), errno);
    const int made = make_new(name);
    if (made >= 0) return FileHandle(made);
    if (errno != EEXIST) return open_failed(fd(), name, path_of(name), errno);
  }
  return Status(Code::busy, path_of(name), " is being made and removed all the time");
}

Status Directory::replace_file(const std::string& name, std::string_view bytes,
                               const std::string& writer) const {
  const std::string fresh = name + unfinished_suffix + writer;
  PERDURE_TRY(remove_file(fresh));
  PERDURE_TRY_ASSIGN(auto file, create_file(fresh));
  Status status = write_all(file, path_of(fresh), bytes);
  if (status.ok() && ::fsync(file.fd()) != 0) {
    status = errno_status("fsync " + path_of(fresh), errno);
  }
  if (status.ok()) status = rename_file(fresh, name);
  if (!status.ok()) (void)remove_file(fresh);  // report the first failure
  return status;
}

Status Directory::rename_file(const std::string& from, const std::string& to) const {
  if (::renameat(fd(), from.c_str(), fd(), to.c_str()) != 0) {
    return errno_status("rename " + path_of(from) + " to " + to, errno);
  }
  return sync();
}

Status Directory::publish_file(const std::string& from, const std::string& to) const {
  if (::renameat2(fd(), from.c_str(), fd(), to.c_str(), RENAME_NOREPLACE) == 0) return sync();
  const int failed = errno;
  if (failed == EINVAL || failed == ENOSYS || failed == EOPNOTSUPP) {
    return publish_by_link(from, to);
  }
  if (failed == EEXIST) return open_failed(fd(), to, path_of(to), failed);
  return errno_status("rename " + path_of(from) + " to " + to, failed);
}

// base.N5. NFS may say that the name is taken where it has done what it was asked for twice.
Status Directory::publish_by_link(const std::string& from, const std::string& to) const {
  if (::linkat(fd(), from.c_str(), fd(), to.c_str(), 0) != 0) {
    const int failed = errno;
    if (failed == EPERM || failed == ENOSYS || failed == EOPNOTSUPP) {
      return Status(Code::unsupported, path_of(to),
                    ": this file system can neither rename a file over nothing nor give it a "
                    "second name (link: ",
                    std::strerror(failed),
                    "), so two runs could take one name; choose a directory on another one");
    }
    if (failed != EEXIST) return errno_status("link " + path_of(from) + " to " + to, failed);
    struct stat made{};
    struct stat taken{};
    const bool same = ::fstatat(fd(), from.c_str(), &made, AT_SYMLINK_NOFOLLOW) == 0 &&
                      ::fstatat(fd(), to.c_str(), &taken, AT_SYMLINK_NOFOLLOW) == 0 &&
                      made.st_ino == taken.st_ino && made.st_dev == taken.st_dev;
    if (!same) return open_failed(fd(), to, path_of(to), failed);
  }
  (void)remove_file(from);  // a name too many: check_kind() counts it
  return sync();
}

Status Directory::remove_file(const std::string& name) const {
  if (::unlinkat(fd(), name.c_str(), 0) == 0 || errno == ENOENT) return Status::success();
  return errno_status("remove " + path_of(name), errno);
}

bool Directory::remove_directory(const std::string& name) const {
  return ::unlinkat(fd(), name.c_str(), AT_REMOVEDIR) == 0;
}

bool Directory::holds(const std::string& name) const {
  struct stat found{};
  return ::fstatat(fd(), name.c_str(), &found, AT_SYMLINK_NOFOLLOW) == 0;
}

Result<std::vector<std::string>> Directory::names() const {
  // A descriptor of its own: closedir() closes it, and it has a position of its own.
  const int own = open_at(fd(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* entries = own < 0 ? nullptr : ::fdopendir(own);
  if (entries == nullptr) return errno_status("read the directory " + path_, errno);
  std::vector<std::string> found;
  while (const dirent* entry = ::readdir(entries)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") found.push_back(name);
  }
  ::closedir(entries);
  std::ranges::sort(found);
  return found;
}

Status Directory::sync() const {
  while (::fsync(fd()) != 0) {
    if (errno == EINVAL) break;  // this file system has nothing to sync for a directory
    if (errno != EINTR) return errno_status("fsync of the directory " + path_, errno);
  }
  return Status::success();
}

bool Directory::is_file(int file, const std::string& name) const {
  struct stat held{};
  struct stat named{};
  return ::fstat(file, &held) == 0 &&
         ::fstatat(fd(), name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

PathParts split_path(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  if (slash == std::string::npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

Result<FileHandle> open_file(const std::string& path, FileAccess access, Trust trust) {
  const PathParts parts = split_path(path);
  PERDURE_TRY_ASSIGN(auto directory, Directory::open(parts.directory, trust));
  return directory.open_file(parts.name, access);
}

Result<FileHandle> create_file(const std::string& path, Trust trust) {
  const PathParts parts = split_path(path);
  PERDURE_TRY_ASSIGN(auto directory, Directory::open(parts.directory, trust));
  return directory.create_file(parts.name);
}

Status remove_file(const std::string& path, Trust trust) {
  const PathParts parts = split_path(path);
  auto directory = Directory::open(parts.directory, trust);
  if (directory.status().code() == Code::not_found) return Status::success();
  if (!directory.ok()) return directory.status();
  return directory.value().remove_file(parts.name);
}

bool remove_directory(const std::string& path) {
  return ::rmdir(path.c_str()) == 0;
}

Result<FileHandle> open_input(const std::string& path) {
  const int fd = open_at(AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) return open_failed(AT_FDCWD, path, path, errno);
  FileHandle handle(fd);
  PERDURE_TRY(check_file(fd, path, Trust::anyone));
  return handle;
}

Result<FileHandle> open_output(const std::string& path, bool append) {
  const int flags = open_flags(FileAccess::write) | (append ? O_APPEND : 0);
  for (int attempt = 0; attempt < create_attempts; ++attempt) {
    const int made = make_at(AT_FDCWD, path, flags, file_mode);
    if (made >= 0) return FileHandle(made);
    if (errno == ENOENT) {
      return Status(Code::io_error, path, " can't be made: its directory does not exist");
    }
    if (errno != EEXIST) return open_failed(AT_FDCWD, path, path, errno);
    const int found = open_at(AT_FDCWD, path, flags);
    if (found >= 0) return output_of(found, path, append);
    if (errno != ENOENT) return open_failed(AT_FDCWD, path, path, errno);
  }
  return Status(Code::busy, path, " is being made and removed all the time");
}

Result<FileHandle> open_output_again(const std::string& path) {
  const int found = open_at(AT_FDCWD, path, open_flags(FileAccess::read_write));
  if (found < 0) return open_failed(AT_FDCWD, path, path, errno);
  return output_of(found, path, true);
}

Status write_output(const std::string& path, std::string_view text, bool append) {
  auto file = open_output(path, append);
  return file.ok() ? write_all(file.value(), path, text) : file.status();
}

Result<FileHandle> open_input_stream(const std::string& path) {
  FileHandle stream = open_stream(path, O_RDONLY);
  return stream.fd() >= 0 ? Result<FileHandle>(std::move(stream)) : open_input(path);
}

Result<FileHandle> open_output_stream(const std::string& path) {
  FileHandle stream = open_stream(path, O_WRONLY);
  return stream.fd() >= 0 ? Result<FileHandle>(std::move(stream)) : open_output(path);
}

Result<ApplicationFile> open_application_file(const std::string& path, int flags, Links links) {
  const int all = flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
  const int fd = links == Links::refused ? open_without_links(path, static_cast<std::uint64_t>(all))
                                         : open_at(AT_FDCWD, path, all, 0666);
  if (fd < 0) return errno_status("open " + path, errno);
  FileHandle handle(fd);
  struct stat found{};
  if (::fstat(fd, &found) != 0) return errno_status("fstat " + path, errno);
  if (!S_ISREG(found.st_mode)) {
    return Status(Code::unsupported, path, " is ", kind_text(found.st_mode),
                  ", not a regular file");
  }
  return ApplicationFile{std::move(handle), found.st_dev, found.st_ino,
                         static_cast<std::uint64_t>(found.st_size)};
}

Result<FileHandle> open_measured(const std::string& path, FileAccess access) {
  const int fd = open_at(AT_FDCWD, path, open_flags(access));
  if (fd < 0) return open_failed(AT_FDCWD, path, path, errno);
  FileHandle handle(fd);
  struct stat found{};
  if (::fstat(fd, &found) != 0) return errno_status("fstat " + path, errno);
  if (!S_ISREG(found.st_mode) && !S_ISBLK(found.st_mode)) return not_regular(path, found.st_mode);
  return handle;
}

FileHandle open_kernel_file(const std::string& path, int flags) {
  return FileHandle(open_at(AT_FDCWD, path, flags | O_CLOEXEC));
}

std::string read_kernel_text(const std::string& path) {
  const FileHandle file = open_kernel_file(path, O_RDONLY);
  if (file.fd() < 0) return {};
  auto text = read_rest(file, path, std::uint64_t{64} << 20U);
  return text.ok() ? text.take() : std::string();
}

std::optional<ProcessStat> read_process_stat(const std::string& directory) {
  const std::string line = read_kernel_text(directory + "/stat");
  const std::size_t name_end = line.rfind(')');  // the name before it may hold anything
  if (name_end == std::string::npos) return std::nullopt;
  ProcessStat stat;
  std::size_t blank = name_end + 1;  // before the field
  for (int field = 3; field <= 22 && blank < line.size(); ++field) {
    const char* const word = line.c_str() + blank + 1;
    if (field == 3) stat.state = *word;
    if (field == 9) stat.flags = std::strtoull(word, nullptr, 10);
    if (field == 22) stat.start_ticks = std::strtoull(word, nullptr, 10);
    blank = line.find(' ', blank + 1);
  }
  return stat;
}

std::vector<std::string> kernel_names(const std::string& path) {
  auto folder = Directory::open(path, Trust::anyone);
  if (!folder.ok()) return {};
  auto names = folder.value().names();
  return names.ok() ? names.take() : std::vector<std::string>();
}

int beyond_file_limit(std::uint64_t bytes) {
  rlimit limit{};
  const bool known = ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  return known && bytes > limit.rlim_cur ? EFBIG : 0;
}

Result<std::string> read_rest(const FileHandle& file, const std::string& path,
                              std::uint64_t bytes_max) {
  std::string text;
  std::array<char, 8192> chunk{};
  for (;;) {
    const ssize_t count = ::read(file.fd(), chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_status("read " + path, errno);
    if (count == 0) return text;
    text.append(chunk.data(), static_cast<std::size_t>(count));
    if (text.size() > bytes_max) {
      return Status(Code::damaged, path, " is larger than the ", bytes_max,
                    " bytes that a file of its kind may have");
    }
  }
}

Status write_all(const FileHandle& file, const std::string& path, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file.fd(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_status("write " + path, errno);
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return Status::success();
}

}  // namespace perdure
