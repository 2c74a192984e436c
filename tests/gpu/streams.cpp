// SPDX-License-Identifier: BSD-3-Clause
#include <algorithm>

#include "driver.hpp"

namespace fake {
namespace {

// The work of a stream, one piece after the other, each after a delay that is drawn.
void run_stream(const std::shared_ptr<CudaStream>& stream) {
  Driver& all = driver();
  Lock lock(all.lock);
  while (true) {
    all.changed.wait(lock, [&] {
      if (stream->queue.empty()) return stream->is_gone;
      const Work& first = stream->queue.front();
      return stream->context->broken != CUDA_OK ||
             (!all.is_held && (!first.may_begin || first.may_begin()));
    });
    if (stream->queue.empty()) {
      all.streams.erase(stream.get());
      return;
    }
    {
      const Work work = std::move(stream->queue.front());
      stream->queue.pop_front();
      if (stream->context->broken == CUDA_OK) {
        stream->is_running = true;
        lock.unlock();
        settings().delay();
        work.run();
        lock.lock();
        stream->is_running = false;
      }
    }
    stream->done++;
    all.changed.notify_all();
  }
}

// Done, or never to be.
bool has_done(const CudaStream& stream, std::uint64_t ticket) {
  return stream.done >= ticket || stream.context->broken != CUDA_OK;
}

// What the null stream and the streams that block with it wait for.
std::function<bool()> by_default_order(const CudaStream& stream) {
  std::vector<std::pair<std::shared_ptr<CudaStream>, std::uint64_t>> before;
  if (stream.is_null) {
    for (const auto& [handle, other] : driver().streams) {
      if (other->is_blocking && other->context == stream.context) {
        before.emplace_back(other, other->submitted);
      }
    }
  } else if (stream.is_blocking && stream.context->null_stream != nullptr) {
    before.emplace_back(stream.context->null_stream, stream.context->null_stream->submitted);
  }
  if (before.empty()) return nullptr;
  return [before] {
    return std::all_of(before.begin(), before.end(),
                       [](const auto& one) { return has_done(*one.first, one.second); });
  };
}

// The null stream may not be used while one that blocks with it is captured.
int spoil_implicit_captures(const CudaStream& stream) {
  int code = CUDA_OK;
  for (const auto& [handle, other] : driver().streams) {
    if (!other->is_blocking || other->context != stream.context || !other->capture) continue;
    other->capture->is_invalid = true;
    code = CUDA_CAPTURE_IMPLICIT;
  }
  return code;
}

}  // namespace

std::shared_ptr<CudaStream> make_stream(CudaContext& context) {
  auto stream = std::make_shared<CudaStream>();
  stream->context = &context;
  driver().streams_made++;
  // Nobody waits for it at the end of the process: the driver's state stays.
  std::thread(run_stream, stream).detach();
  return stream;
}

CudaStream* stream_of(CudaStreamHandle handle) {
  const auto number = reinterpret_cast<std::uintptr_t>(handle);
  CudaContext* const context = current_context();
  if (number <= 1) {  // null, or the name for the same
    if (context == nullptr) return nullptr;
    if (!context->null_stream) {
      context->null_stream = make_stream(*context);
      context->null_stream->is_null = true;
    }
    return context->null_stream.get();
  }
  if (number == 2) {  // this thread's
    thread_local std::map<CudaContext*, std::shared_ptr<CudaStream>> of_thread;
    if (context == nullptr) return nullptr;
    auto& stream = of_thread[context];
    if (!stream) {
      stream = make_stream(*context);
      stream->is_blocking = true;
      driver().streams[stream.get()] = stream;
    }
    return stream.get();
  }
  const auto found = driver().streams.find(handle);
  if (found == driver().streams.end() || found->second->is_gone) return nullptr;
  return found->second.get();
}

int submit(CudaStream& stream, Work work) {
  if (stream.context->broken != CUDA_OK) return stream.context->broken;
  if (stream.capture) {
    if (stream.capture->is_invalid) return CUDA_CAPTURE_INVALIDATED;
    stream.capture->nodes++;
    return CUDA_OK;
  }
  if (stream.is_null) {
    const int code = spoil_implicit_captures(stream);
    if (code != CUDA_OK) return code;
  }
  if (auto ordered = by_default_order(stream)) {
    work.may_begin = [ordered, own = std::move(work.may_begin)] {
      return ordered() && (!own || own());
    };
  }
  stream.queue.push_back(std::move(work));
  stream.submitted++;
  driver().changed.notify_all();
  return CUDA_OK;
}

int wait_for(Lock& lock, CudaStream& stream) {
  const std::shared_ptr<CudaStream> kept =
      stream.is_null ? stream.context->null_stream : driver().streams.at(&stream);
  const std::uint64_t ticket = stream.submitted;
  driver().changed.wait(lock, [&] { return has_done(*kept, ticket); });
  return kept->context->broken;
}

int wait_for_all(Lock& lock, const CudaContext& context) {
  std::vector<std::pair<std::shared_ptr<CudaStream>, std::uint64_t>> before;
  for (const auto& [handle, stream] : driver().streams) {
    if (stream->context == &context) before.emplace_back(stream, stream->submitted);
  }
  if (context.null_stream) {
    before.emplace_back(context.null_stream, context.null_stream->submitted);
  }
  driver().changed.wait(lock, [&] {
    return std::all_of(before.begin(), before.end(),
                       [](const auto& one) { return has_done(*one.first, one.second); });
  });
  return context.broken;
}

int& capture_mode_of_thread() {
  thread_local int mode = 0;
  return mode;
}

int unsafe_while_capturing() {
  constexpr int of_this_thread = 1;
  constexpr int relaxed = 2;
  const int allowed = capture_mode_of_thread();
  if (allowed == relaxed) return CUDA_OK;
  int code = CUDA_OK;
  auto& captures = driver().captures;
  for (const auto& weak : captures) {
    const auto capture = weak.lock();
    if (!capture) continue;
    const bool forbids =
        capture->mode == 0 || (capture->mode == 1 && capture->by == std::this_thread::get_id());
    if (!forbids) continue;
    if (allowed == of_this_thread && capture->by != std::this_thread::get_id()) continue;
    capture->is_invalid = true;
    code = CUDA_CAPTURE_UNSUPPORTED;
  }
  return code;
}

int refuse_while_captured(CudaStream& stream) {
  if (!stream.capture) return CUDA_OK;
  stream.capture->is_invalid = true;
  return CUDA_CAPTURE_UNSUPPORTED;
}

void break_context(CudaContext& context, int code) {
  if (context.broken == CUDA_OK) context.broken = code;
  driver().changed.notify_all();
}

void end_streams(Lock& lock, const CudaContext& context) {
  std::vector<std::shared_ptr<CudaStream>> ended;
  for (const auto& [handle, stream] : driver().streams) {
    if (stream->context == &context) ended.push_back(stream);
  }
  if (context.null_stream) ended.push_back(context.null_stream);
  for (const auto& stream : ended) {
    stream->done += stream->queue.size();
    stream->queue.clear();
    stream->is_gone = true;
  }
  driver().changed.notify_all();
  driver().changed.wait(lock, [&] {
    return std::none_of(ended.begin(), ended.end(),
                        [](const auto& one) { return one->is_running; });
  });
}

}  // namespace fake
