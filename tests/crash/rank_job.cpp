// SPDX-License-Identifier: BSD-3-Clause
#include "rank_job.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "base/testing/thread_group.hpp"
#include "levels/levels.hpp"
#include "pool/box_note.hpp"

namespace perdure {
namespace {

using Random = std::mt19937_64;
const std::vector<std::uint64_t> global_cells{17, 13};
constexpr std::uint64_t columns = 3;
constexpr std::uint64_t hand_elements = 5;

std::int64_t value(std::uint64_t kind, std::uint64_t index, std::uint64_t version,
                   std::uint64_t rank = 0) {
  return static_cast<std::int64_t>(((kind * 1000 + index) * 1000 + version) * 16 + rank);
}

std::uint64_t below(Random& random, std::uint64_t end) {
  return end == 0 ? 0 : random() % end;
}

void split(const CellBox& box, std::uint32_t parts, Random& random, std::vector<CellBox>& boxes) {
  if (parts == 1) return boxes.push_back(box);
  const std::size_t dimension = box.extents[0] >= box.extents[1] ? 0 : 1;
  const auto left = static_cast<std::uint32_t>(1 + below(random, parts - 1));
  CellBox one = box;
  CellBox other = box;
  one.extents[dimension] = 1 + below(random, box.extents[dimension] - 1);
  other.first[dimension] += one.extents[dimension];
  other.extents[dimension] -= one.extents[dimension];
  split(one, left, random, boxes);
  split(other, parts - left, random, boxes);
}

void add_halo(CellBox& box, std::uint64_t width) {
  for (std::size_t i = 0; i < box.first.size(); ++i) {
    const std::uint64_t begin = box.first[i] - std::min(box.first[i], width);
    const std::uint64_t end = std::min(global_cells[i], box.first[i] + box.extents[i] + width);
    box.first[i] = begin;
    box.extents[i] = end - begin;
  }
}

std::vector<std::uint64_t> rows_of_run(std::uint64_t seed, std::uint32_t ranks) {
  Random random(seed * 77 + ranks);
  std::vector<std::uint64_t> rows(ranks);
  for (std::uint64_t row = 0; row < job_rows; ++row) ++rows[below(random, ranks)];
  return rows;
}

// One rank of a run.
class Member {
 public:
  Member(const JobRun& run, ThreadJob& job, ThreadGroup& group, JobResult& result,
         std::mutex& mutex)
      : run_(run),
        job_(job),
        group_(group),
        result_(result),
        mutex_(mutex),
        random_(run.seed + group.rank()),
        memory_(run.memory ? run.memory(group.rank()) : nullptr) {}

  void live(std::uint64_t commits) {
    if (run_.late) group_.on_enter = [this] { wait(); };
    Status opened = open();
    if (opened.ok()) opened = restart();
    if (!opened.ok()) {
      job_.end();  // as MPI_Abort() does: a local call may have failed
      const std::lock_guard<std::mutex> lock(mutex_);
      const bool own = opened.code() != Code::peer_failed;
      if (result_.opened.ok() || own) result_.opened = opened;
      return;
    }
    if (run_.before_commit && group_.rank() == 0) run_.before_commit();
    for (std::uint64_t i = 0; i < commits; ++i) {
      store_all(version_ + 1);
      const auto made = pool_->commit();
      if (!made.ok()) return wrong("commit: " + made.status().message());
      if (made.value() != version_ + 1) wrong("the commit made another version");
      version_ = made.value();
      if (levels_ && !levels_->wait().ok()) wrong("a level did not get the version");
    }
    if (commits > 0 && pool_->status().old_ranks != group_.ranks()) wrong("old_ranks stays");
    const std::string path = pool_->device().file().path;
    if (commits > 0 && !std::filesystem::exists(path)) wrong("the device's file is not " + path);
    if (levels_) levels_->close();
    const std::lock_guard<std::mutex> lock(mutex_);
    result_.newest = version_;
  }

 private:
  void wait() {
    if (random_() % 4 == 0) std::this_thread::sleep_for(std::chrono::microseconds(random_() % 300));
  }
  void wrong(const std::string& what) {
    const std::lock_guard<std::mutex> lock(mutex_);
    result_.wrong.push_back("rank " + std::to_string(group_.rank()) + ": " + what);
  }
  bool changes() const { return pool_->status().old_ranks != group_.ranks(); }

  Result<VersionedArray*> array(const std::string& name, const std::vector<std::uint64_t>& extents,
                                RankRule rule, bool marks = false,
                                const std::optional<GlobalBox>& box = std::nullopt) {
    ArrayOptions options;
    options.ranks = rule;
    options.marks = marks && run_.mode == ArrayMode::log && memory_ == nullptr;
    options.of_program = true;
    const ArrayShape shape{ArrayType::int64, run_.mode, run_.checksums, extents};
    OnDevice device;
    if (memory_) {
      std::uint64_t elements = 1;
      for (const std::uint64_t extent : extents) elements *= extent;
      device.contents.resize(elements);
      options.buffer = device.buffer = memory_->allocate(8 * elements);
      options.device = memory_->functions();
    }
    auto opened = run_.one_by_one
                      ? pool_->open_array_on_all(name, shape, options, Status::success(), box)
                      : pool_->open_array(name, shape, options);
    if (opened.ok() && memory_) devices_[opened.value()] = std::move(device);
    return opened;
  }

  Status open() {
    OpenOptions options;
    options.any_ranks = run_.any_ranks;
    options.job_name = "rank job";
    options.geometry = {2048, 64, memory_ ? std::uint32_t{64} << 10U : 1024};
    options.keep = run_.keep;
    options.around = run_.around;
    options.lock_wait_ms = 50;
    PERDURE_TRY_ASSIGN(pool_, open_with_levels(options));
    PERDURE_TRY_ASSIGN(box_, make_box());
    PERDURE_TRY(choose_rows());
    return run_.one_by_one ? Status::success() : open_arrays();
  }

  Status open_arrays() {
    const GlobalBox box{global_cells, box_.first};
    if (run_.one_by_one) {
      PERDURE_TRY_ASSIGN(cells_, array("cells", box_.extents, RankRule::none, false, box));
    } else {
      PERDURE_TRY_ASSIGN(cells_, array("cells", box_.extents, RankRule::none));
      PERDURE_TRY(pool_->set_box(*cells_, box));
    }
    PERDURE_TRY_ASSIGN(rows_, array("rows", {own_rows_, columns}, RankRule::rows, true));
    PERDURE_TRY_ASSIGN(table_, array("table", {run_.table_elements}, RankRule::same));
    PERDURE_TRY_ASSIGN(hand_, array("hand", {hand_elements}, RankRule::by_hand));
    return pool_->bind_scalar("step", &step_, sizeof step_, ScalarType::uint64);
  }

  Result<std::unique_ptr<Pool>> open_with_levels(OpenOptions& options) {
    const std::string directory =
        run_.nodes.empty() ? run_.directory : pool_on(run_, run_.nodes[group_.rank()]);
    if (run_.levels.empty()) return open_pool(directory, group_, options);
    PERDURE_TRY_ASSIGN(const auto settings, parse_level_settings(run_.levels));
    PERDURE_TRY_ASSIGN(levels_, Levels::create(group_, directory, settings, Trust::own));
    options.pool.taker = levels_.get();
    return levels_ ? levels_->open(options) : open_pool(directory, group_, options);
  }

  // Where the number of ranks is as before, the parts must be.
  Result<CellBox> make_box() {
    CellBox box = boxes_of_run(run_.seed, group_.ranks())[group_.rank()];
    const auto boxes = boxes_of(pool_->chosen());
    const auto held = boxes.find({"cells", 0});
    const ArrayShape* const shape = pool_->held_shape("cells");
    if (held != boxes.end() && shape != nullptr && !changes()) {
      box = CellBox{held->second.first, shape->extents};
    }
    return box;
  }

  Status choose_rows() {
    const bool stored = !changes() || run_.seed % 2 == 0;
    const auto held = pool_->stored_extents("rows", RankRule::rows);
    std::uint64_t mine = rows_of_run(run_.seed, group_.ranks())[group_.rank()];
    if (stored && held.ok()) mine = held.value().front();
    own_rows_ = mine;
    std::vector<std::uint64_t> all(group_.ranks());
    all[group_.rank()] = mine;
    PERDURE_TRY(group_.all_max(all));
    for (std::uint32_t rank = 0; rank < group_.rank(); ++rank) first_row_ += all[rank];
    return Status::success();
  }

  Status restart() {
    const bool changed = changes();
    if (run_.one_by_one) pool_->take_arrays_late();
    PERDURE_TRY_ASSIGN(version_, pool_->restart());
    if (run_.one_by_one) PERDURE_TRY(open_arrays());
    if (group_.rank() == 0) {
      const std::lock_guard<std::mutex> lock(mutex_);
      result_.restored = version_;
    }
    if (version_ == 0) return Status::success();
    for (auto& [array, device] : devices_) {
      device.contents = memory_->read(device.buffer, device.contents.size());
    }
    if (step_ != version_) wrong("step is " + std::to_string(step_));
    if (pool_->status().version != version_) wrong("the status has another version");
    const auto versions = pool_->versions();
    if (versions.empty() || versions.front().version != version_) wrong("versions() lacks it");
    judge(changed);
    if (changed) judge_by_hand();
    return Status::success();
  }

  std::int64_t cell(std::uint64_t index, std::uint64_t version, std::uint32_t rank) const {
    return value(1, index, version, run_.cells_of_ranks ? rank : 0);
  }
  std::uint64_t global_index(std::uint64_t local) const {
    const std::uint64_t row = box_.first[0] + local / box_.extents[1];
    return row * global_cells[1] + box_.first[1] + local % box_.extents[1];
  }
  // The lowest of the ranks before that had the cell.
  std::uint32_t owner(std::uint64_t index) const {
    const CellBox one{{index / global_cells[1], index % global_cells[1]}, {1, 1}};
    const auto& boxes = *run_.before;
    const auto found = std::ranges::find_if(
        boxes, [&](const CellBox& box) { return shared_cells(box, one).has_value(); });
    return static_cast<std::uint32_t>(found - boxes.begin());
  }

  const std::int64_t* read(const VersionedArray& array) const {
    if (memory_) return devices_.at(&array).contents.data();
    return reinterpret_cast<const std::int64_t*>(array.consistent());
  }
  std::int64_t* write(VersionedArray& array) {
    if (memory_) return devices_.at(&array).contents.data();
    return reinterpret_cast<std::int64_t*>(array.working());
  }

  void judge(bool changed) {
    for (std::uint64_t i = 0; i < cells_of(box_); ++i) {
      const std::uint64_t index = global_index(i);
      const std::uint32_t had = changed && run_.before ? owner(index) : group_.rank();
      if (read(*cells_)[i] != cell(index, version_, had)) {
        return wrong("cell " + std::to_string(index) + " of version " + std::to_string(version_) +
                     " is " + std::to_string(read(*cells_)[i]));
      }
    }
    for (std::uint64_t i = 0; i < rows_->size_bytes() / 8; ++i) {
      if (read(*rows_)[i] != value(2, first_row_ * columns + i, version_)) {
        return wrong("element " + std::to_string(i) + " of rows");
      }
    }
    for (std::uint64_t i = 0; i < run_.table_elements; ++i) {
      if (read(*table_)[i] != value(3, i, version_)) return wrong("the table");
    }
    for (std::uint64_t i = 0; !changed && i < hand_elements; ++i) {
      if (read(*hand_)[i] != by_hand(i, version_, group_.rank())) return wrong("hand");
    }
  }

  static std::int64_t by_hand(std::uint64_t i, std::uint64_t version, std::uint32_t rank) {
    return rank == 0 ? value(4, i, version) : static_cast<std::int64_t>(version);
  }

  void judge_by_hand() {
    for (std::uint32_t old = 0; old < pool_->status().old_ranks; ++old) {
      std::array<std::int64_t, hand_elements> got{};
      const Status status = pool_->read_old("hand", old, 1, hand_elements - 1, &got[1]);
      if (!status.ok()) return wrong("read by hand: " + status.message());
      for (std::uint64_t i = 1; i < hand_elements; ++i) {
        if (got[i] != by_hand(i, version_, old)) return wrong("by hand, of " + std::to_string(old));
      }
    }
  }

  void store_all(std::uint64_t version) {
    step_ = version;
    for (std::uint64_t i = 0; i < cells_of(box_); ++i) {
      write(*cells_)[i] = cell(global_index(i), version, group_.rank());
    }
    for (std::uint64_t i = 0; i < rows_->size_bytes() / 8; ++i) {
      write(*rows_)[i] = value(2, first_row_ * columns + i, version);
    }
    if (rows_->is_marked()) (void)rows_->mark(0, rows_->size_bytes());
    for (std::uint64_t i = 0; i < run_.table_elements; ++i)
      write(*table_)[i] = value(3, i, version);
    for (std::uint64_t i = 0; i < hand_elements; ++i) {
      write(*hand_)[i] = by_hand(i, version, group_.rank());
    }
    for (const auto& [array, device] : devices_) memory_->write(device.buffer, device.contents);
  }

  const JobRun& run_;
  ThreadJob& job_;
  ThreadGroup& group_;
  JobResult& result_;
  std::mutex& mutex_;
  Random random_;
  // What the program knows of an array in memory of a device, which it copies there and back.
  struct OnDevice {
    std::byte* buffer = nullptr;
    std::vector<std::int64_t> contents;
  };
  std::unique_ptr<RankMemory> memory_;  // goes last
  std::map<const VersionedArray*, OnDevice> devices_;
  std::unique_ptr<Levels> levels_;
  std::unique_ptr<Pool> pool_;
  CellBox box_;
  std::uint64_t own_rows_ = 0;
  std::uint64_t first_row_ = 0;
  std::uint64_t version_ = 0;
  std::uint64_t step_ = 0;
  VersionedArray* cells_ = nullptr;
  VersionedArray* rows_ = nullptr;
  VersionedArray* table_ = nullptr;
  VersionedArray* hand_ = nullptr;
};

}  // namespace

std::string pool_on(const JobRun& run, std::uint32_t node) {
  return run.directory + "/" + std::to_string(run.one_directory ? 0 : node) + "/pool";
}

std::vector<CellBox> boxes_of_run(std::uint64_t seed, std::uint32_t ranks) {
  Random random(seed * 31 + ranks);
  std::vector<CellBox> boxes;
  do {  // until no part is too small to be split
    boxes.clear();
    split({{0, 0}, global_cells}, ranks, random, boxes);
  } while (std::ranges::any_of(boxes, [](const CellBox& box) { return cells_of(box) == 0; }));
  std::ranges::shuffle(boxes, random);
  for (CellBox& box : boxes) add_halo(box, below(random, 3));
  return boxes;
}

JobResult run_job(const JobRun& run, std::uint64_t commits) {
  JobResult result;
  std::mutex mutex;
  ThreadJob job(run.nodes.empty() ? std::vector<std::uint32_t>(run.ranks, 0) : run.nodes);
  for (const std::uint32_t node : run.nodes) {
    std::filesystem::create_directories(split_path(pool_on(run, node)).directory);
  }
  job.run([&](ThreadGroup& group) {
    Member member(run, job, group, result, mutex);
    member.live(commits);
  });
  return result;
}

}  // namespace perdure
