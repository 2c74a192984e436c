// SPDX-License-Identifier: BSD-3-Clause
#include "levels/lease.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include "base/clock.hpp"
#include "base/environment.hpp"
#include "base/guests.hpp"
#include "base/process_place.hpp"
#include "base/quantity.hpp"
#include "base/this_thread.hpp"
#include "levels/format_bytes.hpp"
#include "levels/lease_format.hpp"
#include "levels/lineage.hpp"
#include "levels/sealed.hpp"
#include "parts/file_stamp.hpp"
#include "pool/array_entry.hpp"

namespace perdure {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* lease_prefix = "lease-";
constexpr std::uint64_t lease_bytes_max = 16384;  // a newer format may be longer
constexpr std::uint64_t beats_of_patience = 10;
constexpr std::chrono::milliseconds look_time{50};
constexpr std::uint64_t leases_kept = 2;  // below the newest

std::string name_of(std::uint64_t number) {
  return lease_prefix + std::to_string(number);
}

std::optional<std::uint64_t> number_of(const std::string& name) {
  if (!name.starts_with(lease_prefix)) return std::nullopt;
  const auto number = number_in<std::uint64_t>(name.substr(std::strlen(lease_prefix)));
  return number && name == name_of(*number) ? number : std::nullopt;
}

template <std::size_t size>
void put_text(char (&to)[size], const std::string& text) {
  std::memcpy(to, text.data(), std::min(text.size(), size - 1));
}

template <std::size_t size>
std::string text_in(const char (&from)[size]) {
  return {from, ::strnlen(from, size)};
}

std::string bytes_of(const LeaseRecord& record) {
  LeaseFormat format{};
  format.number = record.number;
  format.beats = record.beats;
  format.patience_ms = static_cast<std::uint64_t>(record.patience.count());
  format.held = record.held ? 1 : 0;
  format.since_ns = record.holder.since_ns;
  format.pid = record.holder.pid;
  format.start_ticks = record.holder.start_ticks;
  format.pid_space = record.holder.pid_space;
  put_text(format.boot_id, record.holder.boot_id);
  put_text(format.host, record.holder.host);
  put_text(format.batch_job, record.holder.batch_job);
  std::string payload;
  append(payload, format);
  return sealed({SealedKind::lease, record.job, 0, {}}, payload);
}

Result<LeaseRecord> parse_lease(const std::string& path, const std::string& bytes) {
  const auto whole = unseal(path, bytes, SealedKind::lease, 0);
  if (whole.status().code() == Code::newer_format) return whole.status();
  LeaseFormat format{};
  std::string_view rest = whole.ok() ? whole.value().payload : std::string_view();
  if (!take(rest, format) || !rest.empty()) {
    return Status(Code::damaged, path,
                  " does not say who uses this level: it is damaged; remove it when no run of "
                  "the job is left");
  }
  LeaseRecord record;
  record.number = format.number;
  record.job = whole.value().header.job;
  record.holder = {
      text_in(format.host), text_in(format.batch_job), text_in(format.boot_id), format.pid_space,
      format.pid,           format.start_ticks,        format.since_ns};
  record.beats = format.beats;
  record.patience = std::chrono::milliseconds(format.patience_ms);
  record.held = format.held != 0;
  return record;
}

std::string host_name() {
  std::array<char, holder_text_bytes> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) return "a host without a name";
  return name.data();
}

std::string batch_job_name() {
  for (const char* name : {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "JOB_ID"}) {
    if (const std::string job = environment(name); !job.empty()) return job;
  }
  return "";
}

std::string boot_text() {
  std::string text = read_kernel_text("/proc/sys/kernel/random/boot_id");
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

// 0 where the kernel does not say.
std::uint64_t own_pid_space() {
  struct stat found{};
  return ::stat("/proc/self/ns/pid", &found) == 0 ? found.st_ino : 0;
}

LeaseHolder this_process() {
  LeaseHolder holder;
  holder.host = host_name();
  holder.batch_job = batch_job_name();
  holder.boot_id = boot_text();
  holder.pid_space = own_pid_space();
  holder.pid = static_cast<std::uint64_t>(::getpid());
  const auto stat = read_process_stat("/proc/self");
  holder.start_ticks = stat ? stat->start_ticks : 0;
  holder.since_ns = wall_clock_ns();
  return holder;
}

// A process of this machine that this process could see.
bool has_ended(const LeaseHolder& holder) {
  const bool comparable = !holder.boot_id.empty() && holder.pid_space != 0 &&
                          holder.start_ticks != 0 && holder.boot_id == boot_text() &&
                          holder.pid_space == own_pid_space();
  if (!comparable) return false;
  const auto stat = read_process_stat("/proc/" + std::to_string(holder.pid));
  return !stat || stat->has_ended() || stat->start_ticks != holder.start_ticks;
}

Result<std::uint64_t> highest_number(const LevelDirectory& directory) {
  PERDURE_TRY_ASSIGN(const auto names, directory.names());
  std::uint64_t highest = 0;
  for (const std::string& name : names) highest = std::max(highest, number_of(name).value_or(0));
  return highest;
}

Result<LeaseRecord> read_lease(const LevelDirectory& directory, std::uint64_t number) {
  const std::string path = directory.path_of(name_of(number));
  PERDURE_TRY_ASSIGN(const auto bytes, directory.read_file(name_of(number), lease_bytes_max));
  PERDURE_TRY_ASSIGN(auto record, parse_lease(path, bytes));
  if (record.number == number) return record;
  return Status(Code::damaged, path, " is lease ", record.number,
                " under another's name; remove it when no run of the job is left");
}

Status used_by_other(const std::string& place, const LeaseRecord& record) {
  return Status(
      Code::busy, place, " is used by ", record.text(),
      ": two runs of a job can't drain to one directory, so this one is refused; wait until that "
      "one has ended, end it, or give this one another drain (a run that is gone counts as gone "
      "when it has been silent for ",
      record.patience.count(), " ms)");
}

// Over nothing, or Code::wrong_state.
Status publish(const LevelDirectory& directory, const LeaseRecord& record) {
  const std::string bytes = bytes_of(record);
  return directory.publish_file(name_of(record.number), [&bytes](LevelWriter& file) {
    return file.append(std::as_bytes(std::span(bytes)));
  });
}

}  // namespace

std::string LeaseRecord::text() const {
  std::string text = "job " + quoted(job.job_name) + " (" + job_id_text(job.job_id) + ") on host " +
                     holder.host + ", process " + std::to_string(holder.pid);
  if (!holder.batch_job.empty()) text += ", batch job " + quoted(holder.batch_job);
  return text + ", since " + utc_text(holder.since_ns);
}

// A lease that is gone when it is read has a successor.
Result<std::optional<LeaseRecord>> newest_lease(const std::string& place) {
  const auto directory = LevelDirectory::open(place);
  if (directory.status().code() == Code::not_found) return std::optional<LeaseRecord>();
  if (!directory.ok()) return directory.status();
  for (std::uint64_t last = 0;;) {
    PERDURE_TRY_ASSIGN(const std::uint64_t number, highest_number(directory.value()));
    if (number == 0) return std::optional<LeaseRecord>();
    auto record = read_lease(directory.value(), number);
    if (record.ok()) return std::optional<LeaseRecord>(record.take());
    if (record.status().code() != Code::not_found || number == last) return record.status();
    last = number;
  }
}

// By this host's clock.
Status wait_until_gone(const std::string& place, const LeaseRecord& record) {
  if (!record.held || has_ended(record.holder)) return Status::success();
  const auto until = Clock::now() + record.patience;
  while (Clock::now() < until) {
    std::this_thread::sleep_for(std::min(look_time, record.patience));
    PERDURE_TRY_ASSIGN(const auto now, newest_lease(place));
    if (!now) return Status::success();  // somebody removed it
    if (now->number != record.number || (now->held && now->beats != record.beats)) {
      return used_by_other(place, *now);
    }
    if (!now->held || has_ended(now->holder)) return Status::success();
  }
  return Status::success();
}

Status check_lease(const std::string& place, std::uint64_t number) {
  PERDURE_TRY_ASSIGN(const auto directory, LevelDirectory::open(place));
  PERDURE_TRY_ASSIGN(const std::uint64_t highest, highest_number(directory));
  if (highest <= number) return Status::success();
  const auto other = read_lease(directory, highest);
  return Status(Code::busy, place, " was taken over by ",
                other.ok() ? other.value().text() : "another run",
                ", while this run was silent: nothing of it is drained there any more, and what "
                "it commits stays on its nodes, where its next start finds it");
}

Status check_name(const std::string& place, const LeaseRecord& record,
                  const std::string& job_name) {
  if (record.job.job_name == job_name) return Status::success();
  return Status(Code::foreign, place, " belongs to job ", quoted(record.job.job_name), ", this is ",
                quoted(job_name), "; choose another directory for the level");
}

Status note_job(const std::string& place, const JobRecord& job) {
  PERDURE_TRY_ASSIGN(const auto directory, make_in_place(place, ""));
  PERDURE_TRY_ASSIGN(const auto newest, newest_lease(place));
  if (newest) PERDURE_TRY(check_name(place, *newest, job.job_name));
  const bool stays = newest && (newest->job.job_id == job.job_id || newest->held ||
                                newest->job.created_ns > job.created_ns);
  if (stays) return Status::success();
  LeaseRecord record;
  record.number = newest ? newest->number + 1 : 1;
  record.job = job;
  record.holder = this_process();
  const Status published = publish(directory, record);
  return published.code() == Code::wrong_state ? Status::success() : published;  // by another node
}

struct Lease::Shared {
  explicit Shared(LevelDirectory opened) : directory(std::move(opened)) {}
  Status write();

  LevelDirectory directory;
  std::function<void(const Status&)> fenced;
  std::mutex writing;  // of the record and its file
  LeaseRecord record;

  std::mutex mutex;
  std::condition_variable changed;
  bool ending = false;
  bool running = false;
  std::thread thread;
};

// With `writing` held.
Status Lease::Shared::write() {
  PERDURE_TRY(check_lease(directory.path(), record.number));
  ++record.beats;
  return directory.replace_file(name_of(record.number), bytes_of(record));
}

Lease::Lease(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

Status Lease::set_job(const JobRecord& job) {
  const std::lock_guard<std::mutex> lock(shared_->writing);
  if (same_lineage(shared_->record.job, job)) return Status::success();
  shared_->record.job = job;
  return shared_->write();
}

std::uint64_t Lease::number() const {
  return shared_->record.number;
}

Result<std::unique_ptr<Lease>> Lease::take(const std::string& place, const JobRecord& job,
                                           std::uint64_t above, std::chrono::milliseconds patience,
                                           std::function<void(const Status&)> fenced) {
  PERDURE_TRY_ASSIGN(auto directory, make_in_place(place, ""));
  auto shared = std::make_shared<Shared>(std::move(directory));
  shared->record.number = above + 1;
  shared->record.job = job;
  shared->record.holder = this_process();
  shared->record.patience = patience;
  shared->record.held = true;
  shared->fenced = std::move(fenced);
  const Status published = publish(shared->directory, shared->record);
  if (!published.ok() && published.code() != Code::wrong_state) return published;
  PERDURE_TRY_ASSIGN(const auto newest, newest_lease(place));
  if (!published.ok() || !newest || newest->number != above + 1) {  // levels.L2
    if (newest) return used_by_other(place, *newest);
    return Status(Code::io_error, place, " lost the lease that was just made there");
  }
  if (above > leases_kept) (void)shared->directory.remove_file(name_of(above - leases_kept));
  shared->running = true;
  shared->thread = start_own_thread([shared] { beat(shared); });
  return std::unique_ptr<Lease>(new Lease(std::move(shared)));
}

// What can't be written is tried again: if it can't be for long, another run may take the level.
void Lease::beat(const std::shared_ptr<Shared>& shared) {
  leave_signals_to_others();
  std::unique_lock<std::mutex> lock(shared->mutex);
  bool ended = false;
  while (!ended) {
    shared->changed.wait_for(lock, shared->record.patience / beats_of_patience,
                             [&] { return shared->ending; });
    ended = shared->ending;
    lock.unlock();
    {
      const std::lock_guard<std::mutex> writing(shared->writing);
      shared->record.held = !ended;
      const Status written = shared->write();
      if (written.code() == Code::busy) {
        if (!ended) shared->fenced(written);
        ended = true;
      }
    }
    lock.lock();
  }
  shared->running = false;
  shared->changed.notify_all();
}

void Lease::give_back(std::chrono::milliseconds patience) {
  std::unique_lock<std::mutex> lock(shared_->mutex);
  if (!shared_->thread.joinable()) return;
  shared_->ending = true;
  shared_->changed.notify_all();
  const bool stopped = shared_->changed.wait_for(lock, patience, [&] { return !shared_->running; });
  std::thread thread = std::move(shared_->thread);
  lock.unlock();
  if (stopped) {
    thread.join();
  } else {
    thread.detach();  // all that it uses is its own
  }
}

Lease::~Lease() {
  give_back(std::chrono::seconds(1));
}

}  // namespace perdure
