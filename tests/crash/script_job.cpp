// SPDX-License-Identifier: BSD-3-Clause
#include "script_job.hpp"

#include <algorithm>
#include <cstring>

#include "base/agreement.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t device_bytes_max = 32768;
constexpr std::uint64_t other_bytes = 1536;  // for each slot, with its pages of the tree

// Whole numbers of neither lines nor blocks.
std::uint64_t words_of(const std::string& name) {
  return name == "a" ? 5 : name == "b" ? 12 : name == "c" ? 7 : 3;
}

// Whose entry has a page of the tree to itself.
std::string other_name(std::uint32_t index) {
  return std::string(240, 'x') + std::to_string(index);
}
bool is_other(const std::string& name) {
  return name.size() > 1;
}

ArrayShape shape_of(const ScriptOptions& options, const std::string& name) {
  ArrayMode mode = options.mode;
  if (name == "c" && !options.staged) mode = ArrayMode::twin;
  if (name == "f") mode = ArrayMode::flush;
  if (is_other(name)) mode = ArrayMode::log;
  return {ArrayType::int64, mode, mode != ArrayMode::flush, {words_of(name)}};
}

ArrayOptions options_of(const ScriptOptions& options, const std::string& name) {
  ArrayOptions array;
  const bool log = shape_of(options, name).mode == ArrayMode::log;
  array.compare = log && options.compare && !is_other(name);
  array.marks = log && !array.compare;
  array.staged = options.staged;
  array.of_program = !options.staged;
  return array;
}

std::vector<std::string> first_arrays(const ScriptOptions& options) {
  std::vector<std::string> names = {"a", "b"};
  if (!options.staged) names.emplace_back("f");
  for (std::uint32_t i = 0; i < options.others; ++i) names.push_back(other_name(i));
  return names;
}

std::vector<std::uint64_t> words_in(const VersionedArray& array) {
  std::vector<std::uint64_t> words(array.size_bytes() / 8);
  if (!words.empty()) std::memcpy(words.data(), array.consistent(), 8 * words.size());
  return words;
}

// As the pool has it, or as it is at first.
Result<VersionedArray*> open_in(Pool& pool, const ScriptOptions& options, const std::string& name) {
  ArrayShape shape = shape_of(options, name);
  if (const ArrayShape* held = pool.held_shape(name)) shape = *held;
  return pool.open_array(name, shape, options_of(options, name));
}

Result<std::unique_ptr<Pool>> attach(std::unique_ptr<CrashDevice> device, Group& group,
                                     const ScriptOptions& options) {
  Result<Region> region = Status(Code::not_found, "");
  if (device->size_bytes() == 0) {
    const Geometry geometry{options.slot_bytes, 64, 16, options.keep + 1};
    region = format_region(*device, {{{7, 9}}, "script", group.rank(), group.ranks()}, geometry);
    if (region.ok()) PERDURE_TRY(format_slots(*device, region.value()));
  } else {
    region = check_region(*device);
  }
  if (!region.ok()) return region.status();
  return Pool::attach(std::move(device), region.value(), group, {});
}

std::uint64_t device_bytes(const ScriptOptions& options) {
  return device_bytes_max + options.others * (options.keep + 1) * other_bytes;
}

}  // namespace

std::unique_ptr<CrashDevice> script_device(const ScriptOptions& options) {
  return std::make_unique<CrashDevice>(device_bytes(options), options.line_bytes);
}

ScriptJob::ScriptJob(std::unique_ptr<CrashDevice> device, Group& group,
                     const ScriptOptions& options)
    : options_(options), rank_(group.rank()), medium_(device.get()), ledger_(options.keep + 1) {
  auto pool = attach(std::move(device), group, options);
  attached_ = pool.status();
  if (pool.ok()) pool_ = pool.take();
}

VersionedArray* ScriptJob::find(const std::string& name) const {
  const auto found = std::find_if(opened_.begin(), opened_.end(),
                                  [&name](const Opened& o) { return o.name == name; });
  return found == opened_.end() ? nullptr : found->array;
}

Status ScriptJob::open(const std::string& name) {
  PERDURE_TRY_ASSIGN(auto array, open_in(*pool_, options_, name));
  opened_.push_back({name, array});
  if (name != "f" && !now_.arrays.contains(name)) now_.arrays[name].resize(words_of(name));
  return Status::success();
}

Status ScriptJob::start() {
  PERDURE_TRY(attached_);
  for (const std::string& name : first_arrays(options_)) PERDURE_TRY(open(name));
  PERDURE_TRY(pool_->bind_scalar("iteration", &iteration_, sizeof iteration_));
  return pool_->restart().status();
}

Knowledge ScriptJob::knowledge() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return ledger_.now();
}

// The next contents: all of a and c, two words of b, and one of the others; or all of a.
void ScriptJob::compute(bool all) {
  ++stamp_;
  const std::uint64_t word = stamp_ * 1000 + rank_ * 100;
  iteration_ = now_.iteration = word;
  const std::string chosen =
      options_.others == 0 ? "" : other_name(static_cast<std::uint32_t>(stamp_ % options_.others));
  for (const Opened& opened : opened_) {
    if (opened.name == "f" || (!all && opened.name != "a")) continue;
    if (is_other(opened.name) && opened.name != chosen) continue;
    std::vector<std::uint64_t>& words = now_.arrays[opened.name];
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (opened.name != "b" || i == stamp_ % 12 || i == stamp_ * 5 % 12) words[i] = word + i;
    }
  }
  show();
}

// Brings the contents to where the application writes.
void ScriptJob::show() {
  for (const Opened& opened : opened_) {
    if (opened.name == "f") {
      const std::lock_guard<std::mutex> lock(mutex_);
      ledger_.write_flushed(stamp_);
      std::fill_n(reinterpret_cast<std::uint64_t*>(opened.array->working()), 3, stamp_);
      continue;
    }
    const std::vector<std::uint64_t>& words = now_.arrays[opened.name];
    auto* to = reinterpret_cast<std::uint64_t*>(opened.array->working());
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (options_of(options_, opened.name).marks && to[i] != words[i])
        (void)opened.array->mark(8 * i, 8);
      to[i] = words[i];
    }
  }
}

void ScriptJob::scribble() {
  for (const Opened& opened : opened_) {
    std::memset(opened.array->working(), 0xee, opened.array->size_bytes());
  }
  iteration_ = 0xee;
}

Status ScriptJob::commit(const Line& line) {
  const auto noting = [this](auto&& function) {
    const std::lock_guard<std::mutex> lock(mutex_);
    function();
  };
  if (line.act == Act::wait) {
    noting([&] { ledger_.begin_staged(); });
    PERDURE_TRY(pool_->commit_wait().status());
    noting([&] { ledger_.end_commit(); });
    return Status::success();
  }
  compute(line.act != Act::rest);
  erased_ = false;
  if (line.act == Act::staged) {
    noting([&] { ledger_.begin_staged(); });
    PERDURE_TRY(pool_->commit_staged().status());
    scribble();
    noting([&] { ledger_.end_staged(now_); });
    return Status::success();
  }
  noting([&] { ledger_.begin_commit(now_); });
  PERDURE_TRY(pool_->commit().status());
  noting([&] {
    ledger_.end_commit();
    ledger_.end_flush();
  });
  return Status::success();
}

Status ScriptJob::restore(std::uint64_t version) {
  ledger_.begin_restore(version);
  PERDURE_TRY(pool_->restore(version));
  erased_ = false;
  ledger_.end_restore(version);
  now_ = ledger_.now().held.at(version);
  for (const Opened& opened : opened_) {
    if (opened.name == "f") continue;
    std::vector<std::uint64_t>& words = now_.arrays[opened.name];
    words.resize(opened.array->size_bytes() / 8);
    if (words_in(*opened.array) == words) continue;
    return {Code::damaged, "restore gave array " + opened.name + " other contents"};
  }
  return Status::success();
}

// In twin mode it may be read where it was committed and where it is written.
Status ScriptJob::resize(std::uint64_t words) {
  VersionedArray& array = *find("a");
  PERDURE_TRY(pool_->resize_array(array, {words}, nullptr));
  std::vector<std::uint64_t>& now = now_.arrays["a"];
  now.resize(words);
  if (array.size_bytes() == 8 * words && words_in(array) == now) return Status::success();
  return {Code::damaged, "resizing gave array a other contents"};
}

Status ScriptJob::change_arrays(const Line& line) {
  if (line.act == Act::open) {
    const auto before = now_.arrays;
    PERDURE_TRY(open("c"));
    const auto shown = words_in(*find("c"));
    if (shown == now_.arrays["c"]) return Status::success();
    return {Code::damaged, "opening gave array c other contents"};
  }
  PERDURE_TRY(pool_->close_array(find("c"), line.act == Act::erase));
  std::erase_if(opened_, [](const Opened& o) { return o.name == "c"; });
  const auto& held = ledger_.now().held.at(*ledger_.now().heads.begin()).arrays;
  now_.arrays.erase("c");
  erased_ = erased_ || line.act == Act::erase;
  if (!erased_ && held.contains("c")) now_.arrays["c"] = held.at("c");
  return Status::success();
}

Status ScriptJob::perform(const Line& line) {
  Status status;
  switch (line.act) {
    case Act::commit:
    case Act::rest:
    case Act::staged:
    case Act::wait:
      status = commit(line);
      break;
    case Act::restore:
      status = restore(line.version);
      break;
    case Act::erase_version:
      ledger_.begin_delete(line.version);
      status = pool_->delete_version(line.version);
      if (status.ok()) ledger_.end_delete(line.version);
      break;
    case Act::resize:
      status = resize(line.version);
      break;
    case Act::open:
    case Act::close:
    case Act::erase:
      status = change_arrays(line);
      break;
  }
  ++performed_;
  if (status.ok() && on_return) on_return();
  return status;
}

namespace {

class Recovery {
 public:
  Recovery(const ScriptOptions& options, Group& group, std::span<const std::byte> image)
      : options_(options), group_(group) {
    auto device = CrashDevice::unrecorded(device_bytes(options), options.line_bytes);
    device->load(image);
    auto pool = attach(std::move(device), group, options);
    found_.status = pool.status();
    if (pool.ok()) pool_ = pool.take();
  }

  Found run() {
    if (found_.status.ok()) found_.status = recover();
    return std::move(found_);
  }

 private:
  Status recover() {
    std::vector<std::string> names = first_arrays(options_);
    names.emplace_back("c");
    for (const std::string& name : names) {
      PERDURE_TRY_ASSIGN(arrays_[name], open_in(*pool_, options_, name));
    }
    PERDURE_TRY(pool_->bind_scalar("iteration", &iteration_, sizeof iteration_));
    PERDURE_TRY_ASSIGN(found_.version, pool_->restart());
    found_.newest = contents();
    for (const auto& [name, array] : arrays_)
      found_.working_copies.push_back(array->working_copy());
    if (arrays_.contains("f")) found_.flushed = words_in(*arrays_["f"]);
    PERDURE_TRY(restore_others());
    return go_on();
  }
  Contents contents() {
    Contents contents;
    contents.iteration = iteration_;
    for (const auto& [name, array] : arrays_) {
      if (name != "f") contents.arrays[name] = words_in(*array);
    }
    return contents;
  }
  // Both ranks offer the same versions; otherwise they would not keep step.
  Status restore_others() {
    const auto versions = pool_->versions();
    std::uint64_t set = 0;
    for (const VersionInfo& info : versions) set |= std::uint64_t{1} << (info.version % 64);
    std::uint64_t values[] = {set, ~set};
    PERDURE_TRY(agree_max(group_, Status::success(), values));
    if (values[0] != ~values[1]) return {Code::damaged, "the ranks offer different versions"};
    for (const VersionInfo& info : versions) {
      PERDURE_TRY(pool_->restore(info.version));
      found_.others[info.version] = contents();
    }
    return Status::success();
  }
  // From the newest one, with other contents, under a number that was never used.
  Status go_on() {
    if (found_.version != 0) PERDURE_TRY(pool_->restore(found_.version));
    for (const auto& [name, array] : arrays_) {
      if (name == "a" && !options_.staged) {
        PERDURE_TRY(pool_->resize_array(*array, {array->size_bytes() / 8 + 3}, nullptr));
      }
      std::fill_n(reinterpret_cast<std::uint64_t*>(array->working()), array->size_bytes() / 8,
                  0x77);
      if (options_of(options_, name).marks) (void)array->mark(0, array->size_bytes());
    }
    iteration_ = 0x77;
    PERDURE_TRY_ASSIGN(const auto committed, pool_->commit());
    for (const auto& [version, held] : found_.others) {
      if (version >= committed) return {Code::damaged, "a number was given again"};
    }
    for (const auto& [name, array] : arrays_) {
      const std::vector<std::uint64_t> expected(array->size_bytes() / 8, 0x77);
      if (words_in(*array) == expected) continue;
      return {Code::damaged, "the version after recovery has other contents"};
    }
    return Status::success();
  }

  const ScriptOptions& options_;
  Group& group_;
  std::unique_ptr<Pool> pool_;
  std::map<std::string, VersionedArray*> arrays_;
  std::uint64_t iteration_ = 0;
  Found found_;
};

// An array that the version lacks comes back as zeros, and a scalar as what a restore before left.
bool same(const Contents& found, const Contents& expected) {
  for (const auto& [name, words] : found.arrays) {
    const auto held = expected.arrays.find(name);
    const bool zeros = std::all_of(words.begin(), words.end(), [](auto w) { return w == 0; });
    if (held == expected.arrays.end() ? !zeros : held->second != words) return false;
  }
  return found.iteration == expected.iteration;
}

}  // namespace

Found recover_script(const ScriptOptions& options, Group& group, std::span<const std::byte> image) {
  return Recovery(options, group, image).run();
}

std::string complaint(const Found& found, const Knowledge& knowledge) {
  if (!found.status.ok()) return "recovery failed: " + found.status.message();
  const std::string version = std::to_string(found.version);
  if (!knowledge.heads.contains(found.version)) {
    return "version " + version + " came back, the newest is " +
           std::to_string(*knowledge.heads.begin()) + " or " +
           std::to_string(*knowledge.heads.rbegin());
  }
  if (!same(found.newest, knowledge.held.at(found.version))) {
    return "version " + version + " came back with other contents";
  }
  for (const std::uint64_t must : knowledge.must) {
    if (!found.others.contains(must)) return "version " + std::to_string(must) + " is gone";
  }
  for (const auto& [other, contents] : found.others) {
    const std::string text = "version " + std::to_string(other);
    if (!knowledge.may.contains(other)) return text + " should be gone";
    if (!same(contents, knowledge.held.at(other))) return text + " was restored wrongly";
  }
  for (const std::uint64_t word : found.flushed) {
    if (word < knowledge.flushed_min || word > knowledge.flushed_max) {
      return "the flushed array holds " + std::to_string(word) + ", not " +
             std::to_string(knowledge.flushed_min) + " to " + std::to_string(knowledge.flushed_max);
    }
  }
  return "";
}

}  // namespace perdure
