// SPDX-License-Identifier: BSD-3-Clause
//
// Files: the one place where Perdure opens, makes, replaces and removes them.
//
// Other users of the node can write to /dev/shm and /tmp, and names can be guessed. So what a
// name leads to is not trusted: it may be a link to a file of the user's, a FIFO that nobody writes
// to, or a whole pool that somebody planted. docs/security.md has the threats.
//
// Invariants
//   base.N1  A name in a directory is resolved relative to the open directory, without following a
//       link.
//   base.N2  What is made is new (O_EXCL) and only for this user: 0600, directories 0700, whatever
//       the umask. The mode of what was found is never changed.
//   base.N3  What was opened is a regular file with one link (or base.N5). Unless Trust::anyone was
//       asked for, it and its directory belong to this user or to root, and nobody else may write
//       to them; in a directory others may make files if it is sticky, as they can't replace ours
//       there. Nor may every user exchange the directory, or one above it: each of those is sticky,
//       too, or no place where all may write. With Trust::group the directory's group may write it,
//       and its files are any member's: what they hold is not believed but checked.
//   base.N4  No call waits for what it opens: a FIFO, a device or a socket is an error at once.
//   base.N5  What is published takes its name in one step that fails if the name is taken: a rename
//       over nothing, or a second link where the file system (NFS, Ceph, 9p, some FUSE) lacks that.
//       Then the file has two names for a moment, or until it is replaced if its writer is killed
//       in between. It is as whole as it will be, so names that begin with NAME.new, in the same
//       directory, are no other file's. Not with Trust::group, where others could take them away
//       again while they are counted, and a foreign file's name would pass.
//
// A path's last component may be a link of this user's or root's, if it leads to a directory; links
// further up are followed, as what they lead to is checked.
//
// Threads: any; a Directory is not changed by its calls. Failure: a Status whose sentence names the
// path, what was seen, and the remedy. Code::not_found only if there is nothing under the name.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file_handle.hpp"
#include "base/status.hpp"

namespace perdure {

enum class Trust : std::uint8_t {
  own,     // base.N3
  group,   // a directory that an administrator gave to a group; what is made there is 0660
  anyone,  // whoever may write it: the user said so, or it is not read as truth
};

// Trust::anyone if `meant`, or if PERDURE_ANY_OWNER is set to anything but 0.
Trust trust_unless(bool meant);

enum class FileAccess : std::uint8_t { read, write, read_write };

class Directory {
 public:
  static Result<Directory> open(const std::string& path, Trust trust = Trust::own);
  // Makes it if there is none. What is above it must be there: a path with a slip of the keys, or
  // on a file system that is not mounted, is no directory of the root's.
  static Result<Directory> make(const std::string& path, Trust trust = Trust::own);
  // The same of `upper`, and in it `below`, with all that is missing between them.
  static Result<Directory> make_below(const std::string& upper, const std::string& below,
                                      Trust trust = Trust::own);

  const std::string& path() const { return path_; }
  std::string path_of(const std::string& name) const { return path_ + "/" + name; }
  int fd() const { return handle_.fd(); }
  std::uint32_t owner() const;
  // Whether it still has a name.
  bool exists() const;

  Result<FileHandle> open_file(const std::string& name, FileAccess access) const;
  // For reading and writing. Code::wrong_state if there is something under that name.
  Result<FileHandle> create_file(const std::string& name) const;
  // For files that several processes share and any of them makes.
  Result<FileHandle> open_or_create(const std::string& name) const;
  // Whole and durable, or as before. Writers at the same time need different `writer`s: the name
  // is NAME.newWRITER meanwhile, and a file of that name is removed first.
  Status replace_file(const std::string& name, std::string_view bytes,
                      const std::string& writer = "") const;
  // Renames, also over an existing file, and makes it durable.
  Status rename_file(const std::string& from, const std::string& to) const;
  // As rename_file(), but Code::wrong_state if there is something under the name: of several that
  // publish it one succeeds (base.N5). `from` begins with TO.new. Code::unsupported where the file
  // system can do that in no way.
  Status publish_file(const std::string& from, const std::string& to) const;
  // What is not there is removed.
  Status remove_file(const std::string& name) const;
  // Only an empty one; false if it is not, or can't be.
  bool remove_directory(const std::string& name) const;

  // Whether anything has that name.
  bool holds(const std::string& name) const;
  // All but "." and "..", sorted.
  Result<std::vector<std::string>> names() const;
  // Makes names durable.
  Status sync() const;
  // Whether `fd` is the file of that name.
  bool is_file(int fd, const std::string& name) const;

 private:
  Directory(FileHandle handle, std::string path, Trust trust)
      : handle_(std::move(handle)), path_(std::move(path)), trust_(trust) {}
  Result<FileHandle> checked(int fd, const std::string& name) const;
  Status publish_by_link(const std::string& from, const std::string& to) const;
  std::uint64_t unfinished_names_of(int fd, const std::string& name) const;
  int make_new(const std::string& name) const;

  FileHandle handle_;
  std::string path_;
  Trust trust_ = Trust::own;
};

// A path as the directory and the name in it: "a/b" is {"a", "b"}, "b" is {".", "b"}.
struct PathParts {
  std::string directory;
  std::string name;
};
PathParts split_path(const std::string& path);

// A file by its path, with its directory checked as well.
Result<FileHandle> open_file(const std::string& path, FileAccess access, Trust trust = Trust::own);
Result<FileHandle> create_file(const std::string& path, Trust trust = Trust::own);
Status remove_file(const std::string& path, Trust trust = Trust::own);
// An empty directory; false if it is not removed.
bool remove_directory(const std::string& path);

// A file that the user named for reading, whoever's it is: links are followed.
Result<FileHandle> open_input(const std::string& path);
// A file that the user named for results: made, or emptied if it is this user's regular file. Its
// directory may be anyone's. `append` keeps what it holds.
Result<FileHandle> open_output(const std::string& path, bool append = false);
// As open_output() of a file that is there, for reading too. Code::not_found.
Result<FileHandle> open_output_again(const std::string& path);
// All of it at once; for reports.
Status write_output(const std::string& path, std::string_view text, bool append = false);
// As open_input() and open_output(), or a pipe or terminal of this user's: its other end is waited
// for, as that is what pipes are for. Somebody else's FIFO is an error at once.
Result<FileHandle> open_input_stream(const std::string& path);
Result<FileHandle> open_output_stream(const std::string& path);
// The application's own file, with the flags of open(2): whatever the application may open,
// except for what base.N4 says. Links::refused: no name in the path may be a link, which is an
// error where the kernel can't tell, too (before Linux 5.6). Then a path that was opened is what
// realpath(3) would make of it, if it is absolute and no name in it is empty, "." or "..".
enum class Links : std::uint8_t { followed, refused };
struct ApplicationFile {
  FileHandle handle;
  std::uint64_t device;  // and inode: as stat(2) says
  std::uint64_t inode;
  std::uint64_t bytes;  // its size when it was opened
};
Result<ApplicationFile> open_application_file(const std::string& path, int flags,
                                              Links links = Links::followed);

// A regular file or a block device that the user named to be measured.
Result<FileHandle> open_measured(const std::string& path, FileAccess access);

// A file of /proc or /sys. The handle is -1, and errno set, where it can't be opened.
FileHandle open_kernel_file(const std::string& path, int flags);
// All of one, "" where it can't be read.
std::string read_kernel_text(const std::string& path);
// What DIRECTORY/stat says of a process or thread (proc_pid_stat(5)); none: there is no such one.
struct ProcessStat {
  char state = 0;
  std::uint64_t flags = 0;
  std::uint64_t start_ticks = 0;                                   // since boot
  bool has_ended() const { return state == 'Z' || state == 'X'; }  // and was not waited for
};
std::optional<ProcessStat> read_process_stat(const std::string& directory);
// The names in a folder of /proc or /sys, sorted; none where it can't be read.
std::vector<std::string> kernel_names(const std::string& path);

// EFBIG where a file of this process may not have `bytes` (ulimit -f), else 0: the kernel would not
// only refuse more, but send SIGXFSZ, which ends the process.
int beyond_file_limit(std::uint64_t bytes);

// All that follows in the file. Code::damaged if that is more than `bytes_max`.
Result<std::string> read_rest(const FileHandle& file, const std::string& path,
                              std::uint64_t bytes_max);
Status write_all(const FileHandle& file, const std::string& path, std::string_view bytes);

// "user alice (1000)".
std::string user_text(std::uint32_t uid);

}  // namespace perdure
