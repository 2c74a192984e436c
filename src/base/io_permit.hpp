// Permit: what who writes to a device, or reads from it, asks first, so that not all processes of a
// node do so at a time.
//
// A permit is held around local work only: never in a call that waits for other ranks, as those may
// wait for the permit. PermitScope says so to agree() and its like, which assert it.
//
// Threads: acquire and release come from the same thread; a permit is used by one at a time.
// Failure: none; who gets no permit goes ahead (energy/tokens.hpp).
#pragma once

#include <cstdint>

namespace perdure {

enum class IoKind : std::uint8_t { read, write };

class IoPermit {
 public:
  IoPermit() = default;
  IoPermit(const IoPermit&) = delete;
  IoPermit& operator=(const IoPermit&) = delete;
  virtual ~IoPermit() = default;
  virtual void acquire(IoKind kind) = 0;
  virtual void release() = 0;
};

// Whether this thread is in a PermitScope.
bool holds_permit();

// Holds `permit`, which may be null, until its end.
class PermitScope {
 public:
  PermitScope(IoPermit* permit, IoKind kind);
  ~PermitScope();
  PermitScope(const PermitScope&) = delete;
  PermitScope& operator=(const PermitScope&) = delete;

 private:
  IoPermit* permit_;
};

}  // namespace perdure
