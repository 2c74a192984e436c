#include "disk_state.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "job/collective.hpp"

namespace hpccg {
namespace {

constexpr std::uint64_t magic = 0x314b534447434350U;  // "PCCGDSK1"

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

class File {
 public:
  File(const std::string& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0644)) {
    if (fd_ < 0) fail("open " + path);
  }
  ~File() { ::close(fd_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  void write(const void* from, std::size_t count) {
    for (const char* at = static_cast<const char*>(from); count > 0;) {
      const ssize_t written = ::write(fd_, at, count);
      if (written < 0) fail("write");
      at += written;
      count -= static_cast<std::size_t>(written);
    }
  }
  void read(void* to, std::size_t count) {
    for (char* at = static_cast<char*>(to); count > 0;) {
      const ssize_t got = ::read(fd_, at, count);
      if (got < 0) fail("read");
      if (got == 0) throw std::runtime_error("a checkpoint file is too short");
      at += got;
      count -= static_cast<std::size_t>(got);
    }
  }
  void sync() {
    if (::fsync(fd_) != 0) fail("fsync");
  }

 private:
  int fd_;
};

RehearsedKill rehearsed_kill(int rank) {
  const char* text = std::getenv("PERDURE_KILL");
  int victim = -1;
  unsigned long long iteration = 0;
  char point[16] = "";
  if (text == nullptr ||
      std::sscanf(text, "rank=%d,iteration=%llu,point=%15s", &victim, &iteration, point) != 3 ||
      victim != rank) {
    return {};
  }
  return {iteration, point};
}

}  // namespace

DiskState::DiskState(const Grid& grid, const std::string& directory)
    : MemoryState(grid), grid_(grid), directory_(directory), kill_(rehearsed_kill(grid.rank)) {
  if (::mkdir(directory.c_str(), 0755) != 0 && errno != EEXIST) fail("mkdir " + directory);
}

DiskState::Header DiskState::header_of(std::uint64_t version) const {
  return {magic,
          version,
          scalars_.iteration,
          scalars_.rtrans,
          grid_.nx,
          grid_.ny,
          grid_.nz,
          static_cast<std::uint32_t>(grid_.rank),
          static_cast<std::uint32_t>(grid_.ranks),
          0};
}

std::string DiskState::path_of(std::uint64_t version) const {
  return directory_ + "/rank-" + std::to_string(grid_.rank) + "." + std::to_string(version % 2);
}

bool DiskState::read_header(std::uint64_t parity, Header& header) const {
  if (::access(path_of(parity).c_str(), F_OK) != 0) return false;
  File(path_of(parity), O_RDONLY).read(&header, sizeof header);
  const Header expected = header_of(0);
  if (header.magic != magic || header.nx != expected.nx || header.ny != expected.ny ||
      header.nz != expected.nz || header.rank != expected.rank || header.ranks != expected.ranks) {
    throw std::runtime_error(path_of(parity) + " is a checkpoint of another problem");
  }
  return true;
}

std::uint64_t DiskState::newest_version() const {
  std::uint64_t newest = 0;
  for (std::uint64_t parity = 0; parity < 2; ++parity) {
    Header header{};
    if (read_header(parity, header) && header.version > newest) newest = header.version;
  }
  return newest;
}

std::uint64_t DiskState::restore() {
  version_ = job::min_over_ranks(newest_version());
  if (version_ > 0) read_version(version_);
  if (::unlink(path_of(version_ + 1).c_str()) != 0 && errno != ENOENT) fail("unlink");
  File(directory_, O_RDONLY | O_DIRECTORY).sync();
  MPI_Barrier(MPI_COMM_WORLD);
  return version_;
}

void DiskState::read_version(std::uint64_t version) {
  File file(path_of(version), O_RDONLY);
  Header header{};
  file.read(&header, sizeof header);
  if (header.version != version) {
    throw std::runtime_error("rank " + std::to_string(grid_.rank) + " lacks version " +
                             std::to_string(version));
  }
  const Vectors to = target();
  file.read(to.x, grid_.points() * sizeof(double));
  file.read(to.r, grid_.points() * sizeof(double));
  file.read(to.p, grid_.points_with_halo() * sizeof(double));
  scalars_ = {header.iteration, header.rtrans};
}

void DiskState::write_version(std::uint64_t version) {
  const std::string path = path_of(version);
  const Vectors from = source();
  const Header header = header_of(version);
  {
    File file(path + ".new", O_WRONLY | O_CREAT | O_TRUNC);
    file.write(&header, sizeof header);
    file.write(from.x, grid_.points() * sizeof(double));
    die_if_rehearsed("copy");
    file.write(from.r, grid_.points() * sizeof(double));
    file.write(from.p, grid_.points_with_halo() * sizeof(double));
    file.sync();
  }
  die_if_rehearsed("data");
  if (::rename((path + ".new").c_str(), path.c_str()) != 0) fail("rename " + path);
  File(directory_, O_RDONLY | O_DIRECTORY).sync();
  die_if_rehearsed("state");
  committed_bytes_ +=
      sizeof header + (2 * grid_.points() + grid_.points_with_halo()) * sizeof(double);
}

void DiskState::die_if_rehearsed(const char* point) const {
  if (scalars_.iteration >= kill_.iteration && kill_.point == point) ::raise(SIGKILL);
}

void DiskState::commit() {
  const job::Stopwatch watch;
  write_version(++version_);
  MPI_Barrier(MPI_COMM_WORLD);
  blocking_s_.push_back(watch.seconds());
}

}  // namespace hpccg
