// SPDX-License-Identifier: BSD-3-Clause
//
// Calls of the library by programs that end where one fails. Errors are std::runtime_error, with
// the sentence of the library.
#pragma once

#include <stdexcept>
#include <string>

#include "perdure/perdure.h"

namespace job {

// Throws unless `code` is that of success; `call` is the name of the call that gave it.
inline void check(int code, const char* call) {
  if (code == PERDURE_OK) return;
  throw std::runtime_error(std::string(call) + ": " + perdure_strerror(code) + ": " +
                           perdure_last_error());
}

// Whether a commit is due; `ends` gets whether the job is to end after it. Collective.
inline bool commit_due(perdure_pool* pool, bool& ends) {
  int due = PERDURE_NOT_DUE;
  check(perdure_commit_due(pool, &due), "perdure_commit_due");
  ends = due == PERDURE_DUE_LAST;
  return due != PERDURE_NOT_DUE;
}

inline perdure_pool_status status_of(const perdure_pool* pool) {
  perdure_pool_status status{};
  check(perdure_status(pool, &status), "perdure_status");
  return status;
}

}  // namespace job
