// SPDX-License-Identifier: BSD-3-Clause
#include "energy/keeper.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <vector>

#include "base/environment.hpp"
#include "base/quantity.hpp"
#include "energy/frequency.hpp"
#include "energy/sysfs.hpp"

extern char** environ;

namespace perdure::energy {
namespace {

// Near the file that holds this function: libperdure.so, in a wheel perdure/lib/libperdure.so.0.1,
// perdure/_core.so or a program.
std::string find_keeper() {
  if (const std::string given = environment("PERDURE_KEEPER"); !given.empty()) return given;
  Dl_info here{};
  if (::dladdr(reinterpret_cast<void*>(&run_keeper), &here) == 0) return {};
  std::error_code error;
  const std::filesystem::path folder =
      std::filesystem::canonical(here.dli_fname, error).parent_path();
  for (const char* place : {".", "..", "../libexec/perdure", "../../libexec/perdure", "../energy",
                            "../../src/energy", "../../../src/energy"}) {
    const std::string path = folder / place / "perdure-keeper";
    if (::access(path.c_str(), X_OK) == 0) return path;
  }
  return {};
}

Status missing(const std::string& what) {
  return Status(Code::not_found, what,
                ": after a kill the clock is restored only by the next run or by `perdure energy "
                "restore --stale`");
}

// What the keeper holds: the pipe as its input, and nothing of the owner's.
int spawn(const std::string& program, int input, const std::vector<std::string>& words,
          pid_t& child) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_adddup2(&actions, input, 0);
  posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  posix_spawn_file_actions_addchdir_np(&actions, "/");
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);
  const int failed =
      ::posix_spawn(&child, program.c_str(), &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return failed;
}

}  // namespace

Status Keeper::start(const std::string& state_directory, const Owner& owner) {
  if (running()) return Status::success();
  const std::string program = find_keeper();
  if (program.empty() || program == "off") return missing("there is no perdure-keeper");
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return errno_status("make a pipe", errno);
  FileHandle input(ends[0]);
  FileHandle kept(ends[1]);
  if (input.fd() < 0 || kept.fd() < 0) return errno_status("make a pipe", errno);
  pid_t child = 0;
  const int failed =
      spawn(program, input.fd(),
            {program, state_directory, std::to_string(owner.pid), std::to_string(owner.start_ticks),
             std::to_string(owner.pid_namespace), std::to_string(owner.serial)},
            child);
  input = FileHandle();
  if (failed != 0) return missing(errno_status("start " + program, failed).message());
  // It forks and goes on as nobody's child, so that the application never meets it in wait().
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  pipe_ = std::move(kept);
  return Status::success();
}

int run_keeper(int argc, char** argv) {
  if (argc != 6) return 2;
  const std::string directory = argv[1];
  std::array<std::uint64_t, 4> numbers{};
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto number = number_in<std::uint64_t>(argv[i + 2]);
    if (!number) return 2;
    numbers[i] = *number;
  }
  const Owner owner{static_cast<std::int64_t>(numbers[0]), numbers[1], numbers[2], numbers[3],
                    false};
  if (::fork() != 0) return 0;
  for (const int ignored : {SIGHUP, SIGINT, SIGTERM, SIGQUIT}) std::signal(ignored, SIG_IGN);
  char byte = 0;
  ssize_t count = 0;
  do {
    count = ::read(0, &byte, 1);
  } while (count > 0 || (count < 0 && errno == EINTR));
  FrequencyControl control(machine(), directory, 10'000);
  return control.release(owner).reason.empty() ? 0 : 1;
}

}  // namespace perdure::energy
