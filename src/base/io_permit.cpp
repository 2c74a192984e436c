#include "base/io_permit.hpp"

namespace perdure {
namespace {

thread_local unsigned permits_held = 0;

}  // namespace

bool holds_permit() {
  return permits_held > 0;
}

PermitScope::PermitScope(IoPermit* permit, IoKind kind) : permit_(permit) {
  if (permit_ == nullptr) return;
  permit_->acquire(kind);
  ++permits_held;
}

PermitScope::~PermitScope() {
  if (permit_ == nullptr) return;
  --permits_held;
  permit_->release();
}

}  // namespace perdure
