// SPDX-License-Identifier: BSD-3-Clause
//
// Crash program: a whole program of apps/ whose pool lies on a device that crashes. It is linked
// with --wrap for main, perdure_open and perdure_ipv_persist, and is otherwise as it was compiled:
// what it carries, and where its persistence points are, it says itself.
//
//   PROGRAM_crash [--images N] [--every-model] [--seed S] [--forget F] -- OPTION …
//
// runs it without protection, and then with --protect ipv; at each fence of the second run, up to N
// images that a crash at that moment could leave are each given to a process of its own, which
// restarts the program from it and goes on to the end. The models of what a crash leaves
// (crash_device.hpp) take turns, or each has its images at every fence. Counts
//
//   wrong    other digits at the end than those of the run without protection
//   lost     it went on from before what was acknowledged, or from beyond what was begun
//   refused  it did not end, or printed nothing
//
// and fails if there is any of them. With --forget each F-th flush is left out: that must be found.
// The process of an image is the same program with PERDURE_CRASH_IMAGE, the image's file, which is
// its pool. Threads: fences may come from the helper; the device lets one of
// them in at a time.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "base/group.hpp"
#include "perdure/perdure_ipv.h"
#include "pmem/file_device.hpp"
#include "pmem/testing/crash_device.hpp"
#include "pool/pool.hpp"
#include "pool_handle.hpp"

extern "C" {
int __real_main(int argc, char** argv);
int __real_perdure_ipv_persist(std::uint64_t* version);
[[gnu::visibility("default")]] int __wrap_main(int argc, char** argv);
[[gnu::visibility("default")]] int __wrap_perdure_open(const char* path,
                                                       const perdure_options* options,
                                                       perdure_pool** pool);
[[gnu::visibility("default")]] int __wrap_perdure_ipv_persist(std::uint64_t* version);
}

namespace {

using Json = nlohmann::json;
using perdure::AtomicityModel;
using perdure::CrashDevice;

constexpr std::uint64_t line_bytes = 64;
constexpr std::uint64_t rest_bytes = std::uint64_t{2} << 20U;  // of a device, beside the objects

struct Sweep {
  std::uint64_t images_per_fence = 4;
  std::uint64_t seed = 1;
  bool every_model = false;
  std::uint64_t forget = 0;
  std::string command;  // of a process for an image
  std::filesystem::path image_file;
  Json digits;
  std::uint64_t fences = 0, images = 0, wrong = 0, lost = 0, refused = 0;
};

Sweep sweep;
std::uint64_t device_bytes = 0;
// Persistence points whose version was reported as durable, and those that were reached.
std::atomic<std::uint64_t> acknowledged{0}, begun{0};

Json digits_of(const Json& facts) {
  if (facts.contains("checks")) return facts["checks"];
  Json digits = Json::array();
  for (const char* name : {"error_vx", "error_vy", "error_pr", "divergence"}) {
    digits.push_back(facts.at(name));
  }
  return digits;
}

// What the program prints in a process of its own; null if it fails.
Json run_apart(const std::string& assignments, const std::string& words) {
  const std::string command = assignments + " exec " + sweep.command + words;
  FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return nullptr;
  std::string said;
  char buffer[4096];
  for (std::size_t n = 0; (n = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) {
    said.append(buffer, n);
  }
  const int code = ::pclose(pipe);
  Json facts = Json::parse(said, nullptr, false);
  if (code == 0 && !facts.is_discarded()) return facts;
  std::fprintf(stderr, "%s: exit code %d\n%s\n", command.c_str(), code, said.c_str());
  return nullptr;
}

void check_image(std::span<const std::byte> image) {
  ++sweep.images;
  {
    std::ofstream file(sweep.image_file, std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char*>(image.data()),
               static_cast<std::streamsize>(image.size()));
  }
  const Json facts =
      run_apart("PERDURE_CRASH_IMAGE=" + sweep.image_file.string(), " --protect ipv --pool crash");
  const auto complain = [](std::uint64_t& count, const std::string& what) {
    if (count++ == 0) {
      std::fprintf(stderr, "fence %llu: %s\n", static_cast<unsigned long long>(sweep.fences),
                   what.c_str());
    }
  };
  if (facts.is_null()) return complain(sweep.refused, "the program did not end");
  const auto restored = facts.at("restored_iteration").get<std::uint64_t>();
  if (restored < acknowledged || restored > begun) {
    complain(sweep.lost, "iteration " + std::to_string(restored) + " came back, " +
                             std::to_string(acknowledged) + " was acknowledged");
  }
  if (digits_of(facts) != sweep.digits) complain(sweep.wrong, facts.dump());
}

// At the beginning of a fence.
void crash_here(CrashDevice& device) {
  ++sweep.fences;
  for (const auto model : {AtomicityModel::prefix, AtomicityModel::words, AtomicityModel::lines}) {
    if (!sweep.every_model && static_cast<std::uint64_t>(model) != sweep.fences % 3) continue;
    device.for_each_image(model, sweep.images_per_fence, sweep.seed + sweep.fences, check_image);
  }
}

std::unique_ptr<perdure::Device> make_device() {
  if (const char* image = std::getenv("PERDURE_CRASH_IMAGE")) {
    auto file = perdure::open_file_device(image, {.kind = perdure::FileKind::tmpfs});
    PERDURE_ASSERT(file.ok());
    return file.take();
  }
  auto device = std::make_unique<CrashDevice>(device_bytes, line_bytes, true);
  const auto region = format_region(*device, {{{1, 2}}, "crash", 0, 1}, perdure::Geometry{});
  PERDURE_ASSERT(region.ok() && format_slots(*device, region.value()).ok());
  device->on_fence = crash_here;
  device->forgotten_flushes = sweep.forget;
  return device;
}

// Sets the sweep up; what the program is called with.
std::vector<std::string> parse(int argc, char** argv) {
  std::vector<std::string> words;
  CLI::App app("Restarts a program from what a crash could leave at each fence of its run");
  app.add_option("--images", sweep.images_per_fence, "at each fence");
  app.add_flag("--every-model", sweep.every_model, "images of each model at each fence");
  app.add_option("--seed", sweep.seed, "of the images");
  app.add_option("--forget", sweep.forget, "each F-th flush is left out");
  app.add_option("options", words, "of the program, after --");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    std::exit(app.exit(error));
  }
  sweep.command = "'" + std::filesystem::read_symlink("/proc/self/exe").string() + "'";
  words.emplace_back("--json");
  for (const std::string& word : words) sweep.command += " '" + word + "'";
  sweep.image_file = "/dev/shm/perdure-crash-program-" + std::to_string(::getpid());
  return words;
}

// The run that crashes, in this process; what it prints.
Json run_here(const char* name, std::vector<std::string> words) {
  for (const char* word : {"--protect", "ipv", "--pool", "crash"}) words.emplace_back(word);
  std::vector<char*> argv{const_cast<char*>(name)};
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::fflush(stdout);
  const int terminal = ::dup(STDOUT_FILENO);
  FILE* output = std::tmpfile();
  PERDURE_ASSERT(terminal >= 0 && output != nullptr);
  ::dup2(::fileno(output), STDOUT_FILENO);
  const int code = __real_main(static_cast<int>(argv.size()) - 1, argv.data());
  std::fflush(stdout);
  ::dup2(terminal, STDOUT_FILENO);
  ::close(terminal);
  std::rewind(output);
  std::string said;
  char buffer[4096];
  while (std::fgets(buffer, sizeof buffer, output) != nullptr) said += buffer;
  std::fclose(output);
  return code == 0 ? Json::parse(said, nullptr, false) : nullptr;
}

int report(const char* name, bool same) {
  const bool right = same && sweep.wrong + sweep.lost + sweep.refused == 0 && acknowledged > 0;
  const nlohmann::ordered_json line{
      {"bench", "ipv_crash"},    {"case", std::filesystem::path(name).filename().string()},
      {"seed", sweep.seed},      {"persistence_points", begun.load()},
      {"fences", sweep.fences},  {"images", sweep.images},
      {"wrong", sweep.wrong},    {"lost", sweep.lost},
      {"refused", sweep.refused}};
  std::printf("%s\n", line.dump().c_str());
  return right && sweep.images >= sweep.fences && sweep.fences >= 2 * begun ? 0 : 1;
}

}  // namespace

int __wrap_main(int argc, char** argv) {
  if (std::getenv("PERDURE_CRASH_IMAGE") != nullptr) return __real_main(argc, argv);
  const std::vector<std::string> words = parse(argc, argv);
  const Json plain = run_apart("PERDURE_CRASH_IMAGE=", "");  // it opens no pool
  if (plain.is_null()) return 1;
  sweep.digits = digits_of(plain);
  device_bytes =
      perdure::align_up(3 * plain.at("state_bytes").get<std::uint64_t>() + rest_bytes, line_bytes);
  const Json facts = run_here(argv[0], words);
  std::filesystem::remove(sweep.image_file);
  const bool same = facts.is_object() && digits_of(facts) == sweep.digits;
  if (!same) std::fprintf(stderr, "without a crash it gives %s\n", facts.dump().c_str());
  return report(argv[0], same);
}

int __wrap_perdure_open(const char* /*path*/, const perdure_options* /*options*/,
                        perdure_pool** pool) {
  return perdure::guarded([&]() -> perdure::Status {
    auto handle = std::make_unique<perdure_pool>();
    handle->group = std::make_unique<perdure::SoloGroup>();
    auto device = make_device();
    PERDURE_TRY_ASSIGN(const auto region, check_region(*device));
    auto attached = perdure::Pool::attach(std::move(device), region, *handle->group, {});
    if (!attached.ok()) return attached.status();
    handle->pool = attached.take();
    *pool = handle.release();
    return perdure::Status::success();
  });
}

int __wrap_perdure_ipv_persist(std::uint64_t* version) {
  ++begun;
  const int code = __real_perdure_ipv_persist(version);
  if (code == PERDURE_OK) acknowledged = *version;
  return code;
}
