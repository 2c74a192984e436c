#include "energy/level_copy.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <vector>

#include "base/agreement.hpp"
#include "energy/sysfs.hpp"

namespace perdure::energy {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t chunk_bytes = std::size_t{4} << 20U;
constexpr const char* link_name = "current";
constexpr const char* copy_prefix = "version-";

class Descriptor {
 public:
  Descriptor(const std::string& path, int flags) : fd_(::open(path.c_str(), flags, 0666)) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int fd() const { return fd_; }

 private:
  int fd_;
};

Status sync_directory(const std::string& path) {
  const Descriptor directory(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory.fd() < 0 || ::fsync(directory.fd()) != 0) {
    return errno_status("sync " + path, errno);
  }
  return Status::success();
}

Status write_all(int fd, const char* bytes, std::size_t count, const std::string& path) {
  while (count > 0) {
    const ssize_t written = ::write(fd, bytes, count);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno_status("write " + path, errno);
    bytes += written;
    count -= static_cast<std::size_t>(written);
  }
  return Status::success();
}

// Durable under a name that others see only when it is whole.
Status copy_file(const std::string& from, const std::string& to) {
  const std::string fresh = to + ".new-" + std::to_string(::getpid());
  const Descriptor source(from, O_RDONLY | O_CLOEXEC);
  if (source.fd() < 0) return errno_status("open " + from, errno);
  const Descriptor target(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC);
  if (target.fd() < 0) return errno_status("make " + fresh, errno);
  std::vector<char> chunk(chunk_bytes);
  for (;;) {
    const ssize_t count = ::read(source.fd(), chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_status("read " + from, errno);
    if (count == 0) break;
    PERDURE_TRY(write_all(target.fd(), chunk.data(), static_cast<std::size_t>(count), fresh));
  }
  if (::fsync(target.fd()) != 0) return errno_status("sync " + fresh, errno);
  if (::rename(fresh.c_str(), to.c_str()) != 0) return errno_status("rename " + fresh, errno);
  return Status::success();
}

Status make_directories(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  return error ? errno_status("make " + path, error.value()) : Status::success();
}

Status copy_files(const LevelFiles& files, const std::string& copy, IoPermit* permit) {
  const PermitScope scope(permit, IoKind::write);
  PERDURE_TRY(make_directories(copy));
  const std::string name = fs::path(files.rank_file).filename();
  PERDURE_TRY(copy_file(files.rank_file, copy + "/" + name));
  PERDURE_TRY(copy_file(files.pool + "/job", copy + "/job"));
  return sync_directory(copy);
}

Status point_to(const std::string& place, const std::string& copy_name) {
  const std::string link = place + "/" + link_name;
  const std::string fresh = link + ".new-" + std::to_string(::getpid());
  ::unlink(fresh.c_str());
  if (::symlink(copy_name.c_str(), fresh.c_str()) != 0) return errno_status("link " + fresh, errno);
  if (::rename(fresh.c_str(), link.c_str()) != 0) return errno_status("rename " + fresh, errno);
  return sync_directory(place);
}

// Older ones only: another rank may be at a newer one already. Ranks that share the directory do
// this at a time: what another has removed is no failure.
void remove_older(const std::string& place, std::uint64_t version) {
  std::error_code error;
  std::vector<fs::path> old;
  for (const auto& entry : fs::directory_iterator(place, error)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(copy_prefix)) continue;
    const auto number = number_of(name.substr(std::char_traits<char>::length(copy_prefix)));
    if (number && *number < version) old.push_back(entry.path());
  }
  for (const fs::path& copy : old) fs::remove_all(copy, error);
}

}  // namespace

Status copy_to_level(Group& group, const LevelFiles& files, const std::string& level,
                     std::uint64_t version, IoPermit* permit) {
  const std::string place = level + "/" + fs::path(files.pool).filename().string();
  const std::string copy_name = copy_prefix + std::to_string(version);
  const std::string copy = place + "/" + copy_name;
  PERDURE_TRY(agree(group, copy_files(files, copy, permit)));
  PERDURE_TRY(agree(group, point_to(place, copy_name)));
  remove_older(place, version);
  return Status::success();
}

}  // namespace perdure::energy
