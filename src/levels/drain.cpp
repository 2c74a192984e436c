// SPDX-License-Identifier: BSD-3-Clause
#include "levels/drain.hpp"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include "base/guests.hpp"
#include "base/this_thread.hpp"
#include "levels/lease.hpp"
#include "levels/manifest.hpp"
#include "levels/node_file.hpp"

namespace perdure {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds own_poll_time{10};
constexpr std::chrono::milliseconds shared_poll_time{200};  // of a file system that many share
constexpr std::chrono::milliseconds destructor_patience{5'000};
constexpr std::chrono::milliseconds grace_time{200};  // for a thread that was asked to end

std::string text_of(VersionId id) {
  return "version " + std::to_string(id.version);
}

Status ended(VersionId id, const std::string& place) {
  return Status(
      Code::busy, text_of(id), " is not in ", place,
      ": the drain was ended before it was done; `perdure pool drain` does it from the pool");
}

// Image files that were opened for reading. They stay open and mapped for the next version: to map
// one anew costs as much as to read half of it.
class OpenImages {
 public:
  // Null: this rank has no whole image of that version yet. It stays as long as this, or until it
  // is asked for again.
  Result<const LevelFile*> find(const Directory& pool, const std::vector<std::string>& names,
                                std::uint32_t rank, VersionId id, const DrainRequest& request) {
    for (const std::string& name : names) {
      const auto parsed = parse_level_file_name(name);
      if (!parsed || parsed->kind != SealedKind::image || parsed->rank != rank) continue;
      const auto is_it = [&](const LevelFile& file) {
        return file.whole() && same_lineage(file.header().job, request.job) &&
               file.header().id == id;
      };
      const auto known = files_.find(name);
      const bool whole =
          known != files_.end() && known->second.read_again(*parsed).ok() && known->second.whole();
      if (whole && is_it(known->second)) return &known->second;
      if (whole) continue;  // of another version
      files_.erase(name);
      auto file = LevelFile::open(pool, *parsed, request.trust);
      if (file.status().code() == Code::not_found) continue;  // removed since
      if (!file.ok()) return file.status();
      const LevelFile& opened = files_.emplace(name, file.take()).first->second;
      if (is_it(opened)) return &opened;
    }
    return nullptr;
  }

 private:
  std::map<std::string, LevelFile> files_;  // by name
};

}  // namespace

struct NodeDrain::Shared {
  explicit Shared(DrainRequest wanted) : request(std::move(wanted)) {
    std::ranges::sort(request.ranks);
  }

  Result<std::vector<const LevelFile*>> wait_for_images(VersionId id);
  Status drain_version(VersionId id);
  void try_manifests();
  void note_failure(const Status& status);
  // Whether this run may still write there.
  Status check_fence() const {
    return request.lease == 0 ? Status::success() : check_lease(request.place, request.lease);
  }
  bool is_idle() const { return !due && !under_way && manifests.empty(); }
  // Whether the work must end, which is asked between two writes.
  bool must_end() const {
    const std::lock_guard<std::mutex> lock(mutex);
    return ending;
  }
  std::vector<VersionId> unfinished() const;

  DrainRequest request;    // not changed once the thread runs
  OpenImages open_images;  // the thread's

  struct WaitingManifest {
    ManifestWriter writer;
    Clock::time_point until;
  };

  mutable std::mutex mutex;
  std::condition_variable changed;
  std::optional<VersionId> due;
  std::optional<VersionId> under_way;
  std::vector<WaitingManifest> manifests;  // used by the thread; its size by all
  bool ending = false;
  bool running = false;
  DrainState state;
  std::thread thread;
};

// Polls, because the images are made by other processes.
Result<std::vector<const LevelFile*>> NodeDrain::Shared::wait_for_images(VersionId id) {
  const auto until = Clock::now() + request.image_patience;
  PERDURE_TRY_ASSIGN(const auto pool, Directory::open(request.pool, request.trust));
  std::vector<const LevelFile*> images;
  for (;;) {
    PERDURE_TRY_ASSIGN(const auto names, pool.names());
    while (images.size() < request.ranks.size()) {
      const std::uint32_t rank = request.ranks[images.size()];
      PERDURE_TRY_ASSIGN(const LevelFile* const image,
                         open_images.find(pool, names, rank, id, request));
      if (image == nullptr) break;
      images.push_back(image);
    }
    if (images.size() == request.ranks.size()) return images;
    if (Clock::now() >= until) {
      return Status(Code::not_found, text_of(id), " is not in ", request.place, ": rank ",
                    request.ranks[images.size()], " has no image of it in ", request.pool,
                    " after ", request.image_patience.count(), " ms");
    }
    if (must_end()) return ended(id, request.place);
    std::this_thread::sleep_for(own_poll_time);
  }
}

Status NodeDrain::Shared::drain_version(VersionId id) {
  PERDURE_TRY_ASSIGN(const auto files, wait_for_images(id));
  std::vector<DrainedImage> images;
  for (const LevelFile* const file : files) {
    PERDURE_TRY_ASSIGN(auto image, image_of_file(*file));
    images.push_back(std::move(image));
  }
  const TokenScope scope(request.token.get(), IoKind::write);
  PERDURE_TRY(check_fence());
  PERDURE_TRY_ASSIGN(const auto directory,
                     make_version(request.place, lineage_of(request.job), id));
  return write_node_file(directory, request.job, id, images, [&](std::uint64_t bytes) {
    const std::lock_guard<std::mutex> lock(mutex);
    state.bytes += bytes;
    return ending ? ended(id, request.place) : Status::success();
  });
}

void NodeDrain::Shared::note_failure(const Status& status) {
  const std::lock_guard<std::mutex> lock(mutex);
  state.failure = status;
  ++state.failed;
}

// Writes those whose node files are all there; gives up what failed, is late, or is older than what
// is there.
void NodeDrain::Shared::try_manifests() {
  std::optional<VersionId> newest;
  std::vector<WaitingManifest> waiting;
  for (WaitingManifest& each : manifests) {
    const Status mine = check_fence();
    const auto written = mine.ok() ? each.writer.try_write() : Result<bool>(mine);
    if (written.ok() && written.value()) {
      newest = std::max(newest.value_or(each.writer.id()), each.writer.id());
    } else if (written.ok() && Clock::now() < each.until) {
      waiting.push_back(std::move(each));
    } else {
      note_failure(written.ok()
                       ? Status(Code::not_found, text_of(each.writer.id()), " is not whole in ",
                                request.place, ": ", each.writer.missing(),
                                " ranks are missing; their nodes did not drain it")
                       : written.status());
    }
  }
  if (newest && check_fence().ok()) {
    const Status removed =
        remove_old_versions(request.place, lineage_of(request.job), request.keep);
    if (!removed.ok()) note_failure(removed);
  }
  const std::lock_guard<std::mutex> lock(mutex);
  manifests = std::move(waiting);
  if (!newest) return;
  std::erase_if(manifests, [&](const auto& each) { return each.writer.id() < *newest; });
  state.completed = std::max(state.completed.value_or(*newest), *newest);
}

std::vector<VersionId> NodeDrain::Shared::unfinished() const {
  std::vector<VersionId> ids;
  for (const WaitingManifest& each : manifests) ids.push_back(each.writer.id());
  if (under_way) ids.push_back(*under_way);
  if (due) ids.push_back(*due);
  return ids;
}

NodeDrain::NodeDrain(DrainRequest request)
    : shared_(std::make_shared<Shared>(std::move(request))) {}

NodeDrain::~NodeDrain() {
  (void)stop(destructor_patience);  // nobody is left to hear of it
}

bool NodeDrain::start(VersionId id) {
  const std::lock_guard<std::mutex> lock(shared_->mutex);
  if (shared_->ending || shared_->due || shared_->under_way) {
    ++shared_->state.skipped;
    return false;
  }
  shared_->due = id;
  if (!shared_->thread.joinable()) {
    shared_->running = true;
    shared_->thread = start_own_thread([shared = shared_] { work(shared); });
  }
  shared_->changed.notify_all();
  return true;
}

DrainState NodeDrain::state() const {
  const std::lock_guard<std::mutex> lock(shared_->mutex);
  return shared_->state;
}

void NodeDrain::work(const std::shared_ptr<Shared>& shared) {
  leave_signals_to_others();
  std::unique_lock<std::mutex> lock(shared->mutex);
  while (!shared->ending) {
    if (shared->due) {
      const VersionId id = *std::exchange(shared->due, std::nullopt);
      shared->under_way = id;
      lock.unlock();
      const Status drained = shared->drain_version(id);
      if (!drained.ok()) shared->note_failure(drained);
      lock.lock();
      shared->under_way.reset();
      ++shared->state.ended;
      if (drained.ok()) {
        ++shared->state.drained;
        shared->state.finished = id;
      }
      if (drained.ok() && shared->request.writes_manifests) {
        shared->manifests.push_back({{shared->request.place, shared->request.job, id},
                                     Clock::now() + shared->request.manifest_patience});
      }
    }
    if (!shared->manifests.empty()) {
      lock.unlock();
      shared->try_manifests();
      lock.lock();
    }
    shared->changed.notify_all();
    const auto has_work = [&] { return shared->ending || shared->due; };
    if (shared->manifests.empty()) {
      shared->changed.wait(lock, has_work);
    } else {
      shared->changed.wait_for(lock, shared_poll_time, has_work);
    }
  }
  shared->running = false;
  shared->changed.notify_all();
}

// With the mutex held.
Status NodeDrain::late(std::chrono::milliseconds patience, const std::string& and_so) const {
  const std::string waited = patience.count() == 0 ? " in the time that was left"
                                                   : sentence(" within ", patience.count(), " ms");
  return Status(Code::busy, listed(shared_->unfinished(), text_of), " did not come to ",
                shared_->request.place, waited, and_so);
}

Status NodeDrain::wait(std::chrono::milliseconds patience, std::chrono::milliseconds waited) {
  std::unique_lock<std::mutex> lock(shared_->mutex);
  const bool done = shared_->changed.wait_for(lock, patience, [&] { return shared_->is_idle(); });
  return done ? Status::success() : late(waited + patience, "");
}

Status NodeDrain::stop(std::chrono::milliseconds patience, std::chrono::milliseconds waited) {
  const auto in_all = waited + patience;
  Shared& shared = *shared_;
  std::unique_lock<std::mutex> lock(shared.mutex);
  if (!shared.thread.joinable()) return Status::success();
  const bool done = shared.changed.wait_for(lock, patience, [&] { return shared.is_idle(); });
  const Status unfinished = late(in_all, "; `perdure pool drain` does it from the pool");
  const Status stuck = late(in_all,
                            ", and its writer is stuck there: it is left alone; `perdure pool "
                            "drain` does it from the pool");
  shared.ending = true;
  shared.changed.notify_all();
  const bool stopped = shared.changed.wait_for(lock, grace_time, [&] { return !shared.running; });
  std::thread thread = std::move(shared.thread);
  lock.unlock();
  if (stopped) {
    thread.join();
  } else {
    thread.detach();  // all that it uses is its own
  }
  if (done) return Status::success();
  return stopped ? unfinished : stuck;
}

}  // namespace perdure
