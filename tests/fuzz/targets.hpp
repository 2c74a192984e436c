// What is fuzzed. Each returns whether the bytes were accepted, and aborts if an invariant is
// broken.
#pragma once

#include <cstddef>
#include <span>

namespace perdure::trace {

// Reads a trace to its end, as a file and as a pipe.
bool fuzz_trace(std::span<const std::byte> bytes);

// Imports the bytes behind the first one, which chooses the format, and reads the trace that it
// made.
bool fuzz_import(std::span<const std::byte> bytes);

}  // namespace perdure::trace
