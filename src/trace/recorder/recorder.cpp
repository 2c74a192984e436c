#include "trace/recorder/recorder.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bit>

#include "base/clock.hpp"

namespace perdure::trace {

void barrier_of_all_threads() {
  constexpr useconds_t longer_than_any_store_is_held_back_us = 10'000;
  static const bool is_ready =
      ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
  if (is_ready && ::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0) return;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  ::usleep(longer_than_any_store_is_held_back_us);  // a kernel without it
}

Result<std::unique_ptr<Recorder>> Recorder::create(const RecorderOptions& options,
                                                   const std::string& path) {
  auto writer = Writer::create(path, options.header);
  if (!writer.ok()) return writer.status();
  return std::unique_ptr<Recorder>(new Recorder(options, writer.take()));
}

Recorder::Recorder(const RecorderOptions& options, std::unique_ptr<Writer> writer)
    : options_(options),
      page_shift_(static_cast<unsigned>(std::countr_zero(options.header.page_bytes))),
      process_(::getpid()),
      writer_(std::move(writer)),
      began_ns_(monotonic_ns()) {}

Stream& Recorder::begin_thread() {
  const std::lock_guard lock(mutex_);
  if (!idle_.empty()) {
    Stream& stream = *idle_.back();
    idle_.pop_back();
    return stream;
  }
  const auto number = static_cast<std::uint32_t>(streams_.size());
  streams_.push_back(std::make_unique<Stream>(options_.header, page_shift_, number,
                                              Stream::Host{make_room, wait, this}));
  return *streams_.back();
}

void Recorder::end_thread(Stream& stream) {
  make_room(this, stream);
  const std::lock_guard lock(mutex_);
  idle_.push_back(&stream);
}

void Recorder::make_room(void* context, Stream& stream) {
  auto& self = *static_cast<Recorder*>(context);
  const std::lock_guard lock(self.mutex_);
  const bool is_wanted = self.is_wanted();
  stream.flush_own([&](std::uint64_t page, std::uint32_t reads, std::uint32_t writes) {
    if (is_wanted) self.writer_->append(page, reads, writes, stream.number());
  });
}

// Who flushes another thread's window holds the lock.
void Recorder::wait(void* context) {
  const std::lock_guard lock(static_cast<Recorder*>(context)->mutex_);
}

void Recorder::flush_all() {
  const bool wanted = is_wanted();
  for (const auto& stream : streams_) {
    stream->flush([&](std::uint64_t page, std::uint32_t reads, std::uint32_t writes) {
      if (wanted) writer_->append(page, reads, writes, stream->number());
    });
  }
}

// A child that was made past fork() (vfork, clone) has the file, but no business in it.
bool Recorder::is_ours() const {
  return is_open_ && ::getpid() == process_;
}

// What is in the windows now belongs to the trace.
bool Recorder::is_wanted() const {
  return is_ours() && !(options_.marked_only && region_.empty());
}

Status Recorder::begin_region(const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (!is_ours()) return Status::success();
  if (!region_.empty()) {
    return {Code::wrong_state, "region '" + name + "' begins inside of '" + region_ + "'"};
  }
  if (name.empty() || name.size() > 255) {
    return {Code::invalid_argument, "a region's name has 1 to 255 bytes"};
  }
  flush_all();
  writer_->begin_region(name);
  region_ = name;
  return Status::success();
}

Status Recorder::end_region() {
  const std::lock_guard lock(mutex_);
  if (!is_ours()) return Status::success();
  if (region_.empty()) return {Code::wrong_state, "no region is there to be ended"};
  flush_all();
  writer_->end_region();
  region_.clear();
  return Status::success();
}

Status Recorder::finish() {
  const std::lock_guard lock(mutex_);
  if (!is_ours()) return Status::success();
  flush_all();
  is_open_ = false;
  if (!region_.empty()) writer_->end_region();
  Ending ending;
  ending.compute_ns = options_.compute_ns;
  if (options_.times) ending.elapsed_ns = monotonic_ns() - began_ns_;
  return writer_->finish(ending);
}

}  // namespace perdure::trace
