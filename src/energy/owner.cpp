#include "energy/owner.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <sstream>

namespace perdure::energy {
namespace {

// Field 22 of /proc/PID/stat; the name in field 2 may hold spaces and parentheses. 0: no process,
// or one that is dead and was not waited for.
std::uint64_t start_ticks_of(std::int64_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(line.substr(name_end + 1));
  std::string state;
  fields >> state;
  if (state == "Z" || state == "X") return 0;
  std::string skipped;
  for (int field = 4; field < 22; ++field) fields >> skipped;
  std::uint64_t ticks = 0;
  fields >> ticks;
  return ticks;
}

std::uint64_t own_namespace() {
  struct stat status{};
  return ::stat("/proc/self/ns/pid", &status) == 0 ? status.st_ino : 0;
}

}  // namespace

Owner this_process() {
  static std::atomic<std::uint64_t> serial{0};
  Owner owner = process_of(::getpid());
  owner.serial = ++serial;
  return owner;
}

Owner process_of(std::int64_t pid) {
  const std::uint64_t ticks = start_ticks_of(pid);
  if (ticks == 0) return {};
  return {pid, ticks, own_namespace(), 0, false};
}

bool is_alive(const Owner& owner) {
  if (owner.lasting || owner.pid_namespace != own_namespace()) return true;
  return start_ticks_of(owner.pid) == owner.start_ticks;
}

}  // namespace perdure::energy
