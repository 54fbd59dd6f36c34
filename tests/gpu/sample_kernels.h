// Small kernels, right and wrong ones, to test the host machine with.
//
// Errors  Those of gpu::launchKernel().

#pragma once

#include <millrace/status.h>

#include <cstdint>

namespace mr::gpu {

// out[i] = values[n - 1 - i] through shared memory, with one barrier between, or none. n at most
// 256.
Status launchReverse(const float* values, float* out, int n, bool barrier, bool dynamic);

enum class Misuse : std::uint8_t {
    BarrierAfterReturn, // half of the threads have left before
    BarrierInTwoPlaces, // each half has one of its own
    ShuffleAfterReturn, // lane 5 has left before
    ShuffleInTwoPlaces, // each half calls on a line of its own
    ShuffleFromOutside, // from a lane that the mask does not name
    LaneOutsideItsMask,
    MisalignedCopy,
    NoDynamicMemory, // uses it without having asked
};

// 64 threads. out (64).
Status launchMisuse(Misuse misuse, float* out);

// One warp. out (32 lanes, 8): shuffle from 3, xor 1, up 2, down 2, xor 3 within 8 lanes, ballot of
// odd lanes, any of lane 7, all.
Status launchWarpFunctions(float* out);

// d (16, 8) = a (16, 16) b (16, 8), a and b BF16 row-major; fragments by their documented indices,
// or by ldmatrix (b transposed on the way).
Status launchProduct(const std::uint16_t* a, const std::uint16_t* b, float* d, bool byLoad);

// tiles (4, 8, 8) of 16 bits; r (32 lanes, 4).
Status launchLoad(const std::uint16_t* tiles, std::uint32_t* r, bool transpose);

// Two groups of copies of 16 bytes per thread from `values` (32 threads, 8 floats), then a wait for
// all but `pending` of them. out (32, 8); -1 for values that did not arrive. `valid` false: zeros.
Status launchCopies(const float* values, float* out, int pending, bool valid);

// out (grid.x blocks): each writes its index. Block (threads).
Status launchShape(
    unsigned gridX, unsigned gridY, unsigned threads, std::size_t sharedBytes, float* out);

} // namespace mr::gpu
