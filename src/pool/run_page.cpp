// SPDX-License-Identifier: BSD-3-Clause
#include "pool/run_page.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <sstream>

#include "base/clock.hpp"
#include "base/environment.hpp"
#include "base/files.hpp"

namespace perdure {
namespace {

std::atomic<bool> page_taken{false};
std::atomic<bool> page_left{false};  // by an earlier pool of this process, which it says is closed

constexpr std::uint64_t look_ns = 1'000'000'000;

std::string page_name(std::uint32_t rank) {
  std::array<char, 32> name{};
  std::snprintf(name.data(), name.size(), "page-%05u", rank);
  return name.data();
}

// A page of an earlier run, or what is left of one whose making was cut short.
Status check_is_page(const FileHandle& file, const std::string& path) {
  struct stat found{};
  if (::fstat(file.fd(), &found) != 0) return errno_status("fstat " + path, errno);
  std::array<std::uint64_t, run_page_bytes / sizeof(std::uint64_t)> words{};
  const ssize_t count = ::pread(file.fd(), words.data(), run_page_bytes, 0);
  const bool unborn = std::ranges::all_of(words, [](std::uint64_t word) { return word == 0; });
  if (count == found.st_size && (unborn || words[0] == run_page_magic)) return Status::success();
  return Status(Code::foreign, path,
                " is no run page, and is left as it is; PERDURE_RUN_DIR and PERDURE_RUN_SHARED are "
                "directories of `perdure run`");
}

Result<FileHandle> open_page_file(const std::string& path, std::uint32_t rank) {
  PERDURE_TRY_ASSIGN(auto directory, Directory::open(path, trust_unless(false)));
  const std::string name = page_name(rank);
  PERDURE_TRY_ASSIGN(auto file, directory.open_or_create(name));
  PERDURE_TRY(check_is_page(file, directory.path_of(name)));
  return file;
}

Status leave_page_in(const std::string& path, const RunPageFormat& page) {
  PERDURE_TRY_ASSIGN(const auto directory, Directory::open(path, trust_unless(false)));
  const std::string name = page_name(page.rank);
  if (directory.holds(name)) {
    PERDURE_TRY_ASSIGN(const auto file, directory.open_file(name, FileAccess::read));
    PERDURE_TRY(check_is_page(file, directory.path_of(name)));
  }
  return directory.replace_file(name, {reinterpret_cast<const char*>(&page), sizeof page});
}

RunPageFormat* map_page(const FileHandle& file) {
  if (::ftruncate(file.fd(), run_page_bytes) != 0) return nullptr;
  void* mapped = ::mmap(nullptr, run_page_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd(), 0);
  return mapped == MAP_FAILED ? nullptr : new (mapped) RunPageFormat{};
}

// The same pool and the same program meet it again.
bool is_lasting(Code code) {
  return code == Code::foreign || code == Code::rank_mismatch || code == Code::shape_mismatch ||
         code == Code::damaged || code == Code::newer_format;
}

KillPoint kill_point_named(const std::string& name) {
  constexpr std::array<const char*, 6> names = {"none", "copy", "data", "slot", "state", "agreed"};
  for (std::uint32_t i = 0; i < names.size(); ++i) {
    if (name == names[i]) return static_cast<KillPoint>(i);
  }
  return KillPoint::none;
}

struct RehearsedKill {
  KillPoint point = KillPoint::none;
  std::uint64_t iteration = 0;
};

// PERDURE_KILL=rank=R,iteration=N,point=P; anything else is said once and ignored.
RehearsedKill parse_kill(const std::string& text, std::uint32_t rank) {
  RehearsedKill kill{KillPoint::copy, 0};
  bool mine = false;
  std::stringstream items{text};
  for (std::string item; std::getline(items, item, ',');) {
    const std::size_t equals = item.find('=');
    const std::string key = item.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : item.substr(equals + 1);
    if (key == "rank") {
      mine = std::strtoul(value.c_str(), nullptr, 10) == rank;
    } else if (key == "iteration") {
      kill.iteration = std::strtoull(value.c_str(), nullptr, 10);
    } else if (key == "point") {
      kill.point = kill_point_named(value);
    } else {
      std::fprintf(stderr, "perdure: PERDURE_KILL: unknown key '%s' is ignored\n", key.c_str());
    }
  }
  return mine ? kill : RehearsedKill{};
}

}  // namespace

RunPage::RunPage(std::uint32_t rank, std::uint32_t ranks) {
  if (const std::string kill = environment("PERDURE_KILL"); !kill.empty()) {
    const RehearsedKill parsed = parse_kill(kill, rank);
    kill_point_ = parsed.point;
    kill_iteration_ = parsed.iteration;
  }
  const std::string directory = environment("PERDURE_RUN_DIR");
  if (directory.empty() || page_taken.exchange(true)) return;
  shared_ = environment("PERDURE_RUN_SHARED");
  open_page(directory, rank);
  if (page_ == nullptr) {
    page_taken = false;
    return;
  }
  if (rank == 0) stop_directory_ = own_page_ ? shared_ : directory;
  page_->pid = static_cast<std::uint32_t>(::getpid());
  page_->rank = rank;
  page_->ranks = ranks;
  page_->iteration = no_iteration;
  page_->magic.store(run_page_magic, std::memory_order_release);
}

void RunPage::open_page(const std::string& directory, std::uint32_t rank) {
  auto file = open_page_file(directory, rank);
  if (file.ok()) {
    file_ = file.take();
    page_ = map_page(file_);
  } else if (shared_.empty()) {
    std::fprintf(stderr, "perdure: no run page: %s\n", file.status().message().c_str());
  } else {
    own_page_ = std::make_unique<RunPageFormat>();
    page_ = own_page_.get();
  }
}

void RunPage::end() {
  if (page_ == nullptr) return;
  const auto phase = static_cast<RunPhase>(page_->phase.load());
  if (phase == RunPhase::closed) return;
  if (phase != RunPhase::refused) set_phase(RunPhase::closed);
  // One that was refused while it was opened may be opened again, after it was brought back.
  if (phase != RunPhase::opening) leave_page();
}

RunPage::~RunPage() {
  if (page_ == nullptr) return;
  end();
  if (!own_page_) ::munmap(page_, run_page_bytes);
  page_taken = false;
}

void RunPage::leave_page() const {
  if (shared_.empty()) return;
  page_left = true;
  const Status left = leave_page_in(shared_, *page_);
  if (left.ok()) return;
  std::fprintf(stderr, "perdure: rank %u: `perdure run` will not see that the pool is closed: %s\n",
               page_->rank.load(), left.message().c_str());
}

bool RunPage::stop_asked() {
  const std::uint64_t now = monotonic_ns();
  if (stop_asked_ || stop_directory_.empty() || now - looked_ns_ < look_ns) return stop_asked_;
  looked_ns_ = now;
  const auto directory = Directory::open(stop_directory_, trust_unless(false));
  stop_asked_ = directory.ok() && directory.value().holds("stop");
  // The launcher only wants to know that it was seen.
  if (stop_asked_) (void)directory.value().rename_file("stop", "stopping");
  return stop_asked_;
}

void RunPage::set_phase(RunPhase phase) {
  if (page_ == nullptr) return;
  page_->phase = static_cast<std::uint32_t>(phase);
  if (phase == RunPhase::restarting && (page_->rank == 0 || page_left)) leave_page();
}

void RunPage::set_refused(const Status& why) {
  if (page_ == nullptr || !is_lasting(why.code())) return;
  const std::string& sentence = why.message();
  const std::size_t bytes = std::min(sentence.size(), refusal_bytes - 1);
  std::memcpy(page_->refusal, sentence.data(), bytes);
  page_->refusal[bytes] = '\0';
  set_phase(RunPhase::refused);
}

void RunPage::report_refusal(std::uint32_t rank, std::uint32_t ranks, const Status& why) {
  if (is_lasting(why.code())) RunPage(rank, ranks).set_refused(why);
}

void RunPage::set_restored(std::uint64_t version, std::uint64_t iteration,
                           std::uint64_t restart_ns) {
  if (page_ == nullptr) return;
  page_->restored_version = version;
  page_->version = version;
  page_->iteration = iteration;
  page_->restart_ns = restart_ns;
}

void RunPage::set_committed(const CommitFacts& facts) {
  if (page_ == nullptr) return;
  page_->version = facts.version;
  page_->iteration = facts.iteration;
  page_->commit_ns_last = facts.commit_ns;
  page_->commit_ns_total += facts.commit_ns;
  page_->commit_bytes_last = facts.bytes;
  page_->commit_bytes_total += facts.bytes;
  page_->model_ns_total = facts.model_ns;
  page_->commits += 1;
  check_page();
}

void RunPage::check_page() {
  struct stat found{};
  if (file_.fd() < 0 || ::fstat(file_.fd(), &found) != 0 || found.st_nlink > 0) return;
  file_ = FileHandle();
  std::fprintf(
      stderr,
      "perdure: rank %u: its run page was removed from PERDURE_RUN_DIR; `perdure run` sees "
      "no more of it. Keep cleaners away from that directory\n",
      page_->rank.load());
}

void RunPage::rehearse(KillPoint point, std::uint64_t version, std::uint64_t iteration) const {
  if (point != kill_point_) return;
  const std::uint64_t now = iteration == no_iteration ? version : iteration;
  if (now >= kill_iteration_) ::kill(::getpid(), SIGKILL);
}

}  // namespace perdure
