// Measured peaks of the host's processor: the limits of bench.h.
//
// Threads  Each starts `threads` threads and joins them.

#pragma once

#include "core/device/tensor.h"

namespace mr {

// Operations per second of independent fused multiply-adds: in F32 lanes, or BF16 by matrix tiles
// (AMX) or pairs (AVX-512 BF16) where the processor has them (elsewhere the F32 figure: BF16 is
// widened there).
double peakFlops(DType type, int threads);

// The widest multiply-add this processor has for `type`: "AMX BF16", "AVX-512 BF16", "AVX-512",
// "AVX2".
const char* peakName(DType type);

// Bytes read plus bytes written per second: y[i] = x[i] + y[i] over arrays that no cache holds.
double peakBytes(int threads);

} // namespace mr
