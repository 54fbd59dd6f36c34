// Tensors of the sizes of models for kernels that the PTX machine runs in part: their memory takes
// no room before it is touched. And what each launch asked of a card.
//
// Threads  One, and one rig at a time.
// Errors   fail() and status(): the first stays.

#pragma once

#include "core/device/device.h"
#include "core/device/ops.h"
#include "gpu/ops/attention_choice.h"
#include "gpu/ptx/counters.h"
#include "gpu/ptx/memory.h"
#include "gpu/ptx/ptx_runtime.h"

#include <millrace/status.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace mr::bench {

// Blocks of a launch that run: of `rows` rows of the grid (y, z), `groups` times `adjacent` blocks
// each, spread evenly. 0 rows: all.
struct BlockSample {
    unsigned groups = 4;
    unsigned adjacent = 1;
    unsigned rows = 0;
};

struct CountedLaunch {
    const ptx::Program* program = nullptr;
    ptx::Dims grid;
    ptx::Dims block;
    std::size_t sharedBytes = 0;
    double scale = 1.0; // blocks of the grid for each that ran
    ptx::Counters counters;
    std::vector<ptx::TouchedMemory> touched; // by the blocks that ran
};

// The content of memory that nobody has written.
enum class Pattern : std::uint8_t { F32, BF16, Bytes, Zeros };

class OpRig
{
public:
    OpRig(const std::string& target, const gpu::AttentionCard& card, const BlockSample& sample);
    ~OpRig();
    OpRig(const OpRig&) = delete;
    OpRig& operator=(const OpRig&) = delete;

    // Floats are random in (-1, 1), all else of these is 0. The op reads or writes each element
    // once, or both; or memory is no part of what it has to move.
    TensorView read(DType type, std::int64_t rows, std::int64_t cols);
    TensorView written(DType type, std::int64_t rows, std::int64_t cols);
    TensorView updated(DType type, std::int64_t rows, std::int64_t cols);
    TensorView scratch(DType type, std::int64_t rows, std::int64_t cols);
    TensorView integers(const std::vector<std::int32_t>& values); // read
    TensorView bytes(std::int64_t count);                         // U8, random, read
    void addLeastBytes(std::int64_t bytes) { m_leastBytes += bytes; }

    Ops& ops() { return m_device->ops(); }
    Stream& stream() { return *m_stream; }

    std::int64_t leastBytes() const { return m_leastBytes; }
    std::vector<CountedLaunch> takeLaunches() { return std::move(m_launches); }

private:
    void note(const ptx::Launch& launch);
    TensorView owned(TensorView view, Pattern pattern);

    std::unique_ptr<Device> m_device;
    std::unique_ptr<Stream> m_stream;
    std::vector<std::pair<std::byte*, std::size_t>> m_memory;
    std::int64_t m_leastBytes = 0;
    ptx::Counters m_counters;
    std::vector<CountedLaunch> m_launches;
};

// A row of numbers as a vector.
TensorView flat(const TensorView& view);

// 0, 1, ...
std::vector<std::int32_t> ascending(std::int64_t count);

} // namespace mr::bench
