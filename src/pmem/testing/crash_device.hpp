// SPDX-License-Identifier: BSD-3-Clause
//
// Crash device: the test double that knows what is durable, and yields every legal image that a
// crash could leave behind.
//
// It keeps the volatile image (what base() shows), the durable one, and per line the stores that
// are in the volatile image only. Stores through the device are known in order; stores made
// directly through base() are found by comparison and taken as one store per changed word. With
// `on_fence` each verb compares the whole device; without, where nobody asks for images between
// verbs, a verb compares its own lines only: what is durable is the same.
//
// At each fence, before it takes effect, `on_fence` is called: a crash at that moment, or at any
// moment since the fence before, leaves the durable image plus some of the pending stores:
//
//   prefix  per line, the first k of its stores, in order (x86 writes a line back as it is)
//   words   per aligned 8-byte word, any of the values it had since it was last durable
//   lines   per line, all of its pending stores or none
//
// What was flushed is still pending until the fence. A fence makes the stores durable that the same
// thread flushed before it. All combinations over lines (words) are legal, as any line may be
// evicted at any time: exhaustive up to a bound, beyond it sampled by a seed, none and all of them
// included.
//
// Most images are only recovered from, and nobody asks what a second crash would leave. A device
// that is made by unrecorded() is spared the bookkeeping: its stores take effect at once and for
// good, and it has no images.
//
// Threads: the verbs lock each other out, so that a thread may flush beside the one that stores; a
// store through base() that meets a verb is taken by it or by the next one. The line size is a
// parameter, so that small cases are exhaustive.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "base/file_handle.hpp"
#include "base/status.hpp"
#include "pmem/device.hpp"

namespace perdure {

enum class AtomicityModel { prefix, words, lines };
const char* atomicity_name(AtomicityModel model);

struct ImageCount {
  std::uint64_t images = 0;
  bool exhaustive = true;
};

class CrashDevice final : public Device {
 public:
  // `size_bytes_max` bytes are reserved; the device starts empty. With `as_file` what base() shows
  // is a file in memory, so that it can be mapped again (shared_view.hpp).
  CrashDevice(std::uint64_t size_bytes_max, std::size_t line_bytes, bool as_file = false)
      : CrashDevice(size_bytes_max, line_bytes, as_file, true) {}
  ~CrashDevice() override;
  static std::unique_ptr<CrashDevice> unrecorded(std::uint64_t size_bytes_max,
                                                 std::size_t line_bytes);

  // Starts from an image in which everything is durable.
  void load(std::span<const std::byte> image);

  DeviceDescription describe() const override;
  DeviceFile file() const override;
  std::byte* base() const override { return volatile_; }
  std::uint64_t size_bytes() const override { return size_bytes_; }
  // Any thread, also one that holds what on_fence waits for: without the lock.
  DeviceCounters counters() const override {
    return {stored_bytes_, copied_bytes_, flushed_bytes_, flush_calls_, fence_calls_, 0};
  }
  Status resize(std::uint64_t size_bytes) override;
  void store(std::uint64_t offset, const void* source, std::size_t count) override;
  void store_word(std::uint64_t offset, std::uint64_t word) override;
  void copy(std::uint64_t offset, const void* source, std::size_t count) override;
  void flush(std::uint64_t offset, std::size_t count) override;
  Status fence() override;

  // Called at the beginning of every fence.
  std::function<void(CrashDevice&)> on_fence;
  // The fence with this number (from 1) fails with an I/O error and makes nothing durable: what its
  // thread flushed before it counts as not flushed. 0: none.
  std::atomic<std::uint64_t> failing_fence = 0;
  std::uint64_t failing_fences = 1;  // from that one on
  // Each flush with a multiple of this number (from 1) does nothing, as if the caller had forgotten
  // it; 0: none. For tests of tests.
  std::uint64_t forgotten_flushes = 0;

  using ImageFunction = std::function<void(std::span<const std::byte> image)>;
  // Calls `function` with each image that a crash now could leave; at most `bound` of them.
  ImageCount for_each_image(AtomicityModel model, std::uint64_t bound, std::uint64_t seed,
                            const ImageFunction& function);

  std::span<const std::byte> durable() const { return {durable_.data(), size_bytes_}; }

 private:
  struct WordStore {
    std::uint64_t word;  // index of the 8-byte word
    std::uint64_t value;
  };
  struct Line {
    std::vector<WordStore> pending;
    std::size_t flushed = 0;  // the first so many of them were flushed,
    std::thread::id flusher;  // by this thread, whose fence alone counts (device.hpp, pmem.D4)
  };
  // Something that a crash decides independently of the rest: choice 0 leaves the durable bytes.
  struct Unit {
    std::vector<std::vector<WordStore>> choices;
  };

  CrashDevice(std::uint64_t size_bytes_max, std::size_t line_bytes, bool as_file, bool records);

  void note_direct_stores(std::uint64_t begin, std::uint64_t end);
  void note_direct_stores_before(std::uint64_t offset, std::size_t count);
  void log_word(std::uint64_t word);
  std::vector<Unit> units(AtomicityModel model);
  void apply(const std::vector<Unit>& units, const std::vector<std::uint32_t>& chosen,
             std::vector<std::byte>& image) const;

  mutable std::recursive_mutex mutex_;  // recursive: on_fence asks for images
  std::size_t line_bytes_;
  std::uint64_t size_bytes_max_;
  std::uint64_t size_bytes_ = 0;
  std::vector<std::byte> own_;  // what volatile_ points into, if it is no file
  std::byte* volatile_ = nullptr;
  FileHandle file_;
  bool records_;                   // otherwise the following are empty
  std::vector<std::byte> shadow_;  // durable_ with all logged stores applied
  std::vector<std::byte> durable_;
  std::vector<Line> lines_;
  std::vector<std::uint64_t> unfenced_;  // lines that were flushed since their thread's last fence
  std::atomic<std::uint64_t> stored_bytes_{0};
  std::atomic<std::uint64_t> copied_bytes_{0};
  std::atomic<std::uint64_t> flushed_bytes_{0};
  std::atomic<std::uint64_t> flush_calls_{0};
  std::atomic<std::uint64_t> fence_calls_{0};
};

}  // namespace perdure
