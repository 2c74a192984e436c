#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
#
# gpu_check.sh [BUILD]: what only a machine with a GPU can show, in two minutes at most. BUILD is a
# build tree (build/dev), which may have been made elsewhere.
#
#   1. The kernels' checksums of 100,000 random blocks, and of their pages, against the processor's.
#   2. What the driver refuses, and with which code, against what the tests' driver was written for.
#   3. Jobs with arrays on the GPU that are killed 8 times within a transfer, and restarted.
#   4. A solver and a stencil in CUDA C++ (apps/gpu), killed and back, where the build has them.
#   5. Tensors of PyTorch that are changed while they are saved, by the Python that
#      PERDURE_TORCH_PYTHON names (python3), if it has PyTorch with CUDA.
#   6. perdure bench gpu --quick.
#
# Says what it runs and prints the facts, one line of JSON each. Ends with 1 if one of 1 to 5 does
# not hold or 6 fails, with 0 and a sentence where there is no GPU.
set -u
root=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "${1:-$root/build/dev}" && pwd) || exit 2
installed=$(ldconfig -p | sed -n 's/.*libcuda\.so\.1 .*x86-64.* => //p' | head -n 1)
driver=${BENCH_CUDA_DRIVER:-$installed}
if [ -z "$driver" ]; then
  echo "gpu_check: skipped, because no NVIDIA driver (libcuda.so.1) is installed here"
  exit 0
fi
for program in tests/gpu/gpu_sums tests/gpu/gpu_rules tests/gpu/gpu_job bench/bench_gpu; do
  if [ ! -x "$build/$program" ]; then
    echo "gpu_check: $build/$program is not built: cmake --build $build" >&2
    exit 2
  fi
done
export BENCH_CUDA_DRIVER="$driver" PERDURE_BUILD="$build"
if ! found=$("$build/bench/bench_gpu" driver 2>&1); then
  echo "gpu_check: skipped: $found"
  exit 0
fi
echo "gpu_check: $found, by $driver"

failed=0
end=$(($(date +%s) + 120))
# step SECONDS WHAT COMMAND…: stopped after that, or at the end of the two minutes.
step() {
  left=$((end - $(date +%s)))
  seconds=$((left < $1 ? left : $1))
  echo "gpu_check: $2"
  shift 2
  if [ "$seconds" -le 0 ]; then
    echo "gpu_check: not run, because the two minutes are over"
    failed=1
    return
  fi
  timeout "$seconds" "$@"
  code=$?
  if [ $code -eq 124 ]; then
    echo "gpu_check: stopped after $seconds seconds"
  fi
  if [ $code -ne 0 ]; then
    failed=1
  fi
}

# With the real driver in the place of the tests', which these two are linked with.
blocks=${GPU_CHECK_BLOCKS:-100000}
step 20 "checksums of $blocks blocks" env LD_PRELOAD="$driver" "$build/tests/gpu/gpu_sums" "$blocks"
step 10 "what the driver refuses" env LD_PRELOAD="$driver" "$build/tests/gpu/gpu_rules"
bytes=${GPU_CHECK_BYTES:-1000000000}
step 30 "8 kills in a transfer of $bytes bytes" \
  python3 "$root/tests/gpu/kill.py" "$build" --gpu 8 "$bytes"
if [ -x "$build/apps/gpu/gpu_cg" ]; then
  step 12 "a solver, killed 3 times" \
    python3 "$root/apps/gpu/check.py" "$build/apps/gpu/gpu_cg" 200 600 5 3
  step 12 "a stencil, killed 3 times" \
    python3 "$root/apps/gpu/check.py" "$build/apps/gpu/gpu_stencil" 4000 3000 10 3
else
  echo "gpu_check: no programs in CUDA C++, because the build found neither nvcc nor CUDA for clang"
fi
step 30 "tensors of PyTorch, changed while they are saved" \
  env PYTHONPATH="$root/python:$build/python" "${PERDURE_TORCH_PYTHON:-python3}" \
  "$root/tests/gpu/torch_check.py" cuda
step 36 "perdure bench gpu --quick" "$root/perdure" bench gpu --quick --json
if [ $failed -ne 0 ]; then
  echo "gpu_check: something above does not hold"
fi
exit $failed
