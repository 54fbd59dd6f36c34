#include "bench/ptx_rig.h"

#include "gpu/ptx/ptx_device.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <numeric>
#include <random>
#include <utility>

namespace mr::bench {
namespace {

constexpr std::size_t kPatternBytes = std::size_t{4} << 20;
constexpr std::size_t kPageBytes = 4096;

Pattern patternOf(DType type)
{
    return type == DType::F32 ? Pattern::F32 : type == DType::BF16 ? Pattern::BF16 : Pattern::Zeros;
}

std::vector<std::byte> randomFloats(std::size_t size)
{
    std::mt19937 random(1); // NOLINT: the same in every run
    std::uniform_real_distribution<float> values(-1.0F, 1.0F);
    std::vector<std::byte> bytes(kPatternBytes);
    for (std::size_t at = 0; at < bytes.size(); at += size) {
        // The upper half of an F32 is a BF16.
        const auto bits = std::bit_cast<std::array<std::byte, 4>>(values(random));
        std::copy_n(bits.end() - static_cast<std::ptrdiff_t>(size), size,
            bytes.begin() + static_cast<std::ptrdiff_t>(at));
    }
    return bytes;
}

std::vector<std::byte> randomBytes()
{
    std::mt19937 random(1); // NOLINT: the same in every run
    std::vector<std::byte> bytes(kPatternBytes);
    std::ranges::generate(bytes, [&] { return static_cast<std::byte>(random()); });
    return bytes;
}

// A file in memory whose pages many mappings share until they are written.
int fileOf(const std::vector<std::byte>& bytes)
{
    const int file = memfd_create("pattern", 0);
    return file >= 0 && write(file, bytes.data(), bytes.size()) == std::ssize(bytes) ? file : -1;
}

// `bytes` of addresses that repeat the pattern.
std::byte* mapped(Pattern pattern, std::size_t bytes)
{
    void* const begin = mmap(
        nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (begin == MAP_FAILED)
        return nullptr;
    auto* const data = static_cast<std::byte*>(begin);
    if (pattern == Pattern::Zeros)
        return data;
    static const std::array files = {// by Pattern
        fileOf(randomFloats(4)), fileOf(randomFloats(2)), fileOf(randomBytes())};
    for (std::size_t at = 0; at < bytes; at += kPatternBytes)
        if (mmap(data + at, std::min(kPatternBytes, bytes - at), PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, files[static_cast<std::size_t>(pattern)],
                0) == MAP_FAILED)
            return nullptr;
    return data;
}

// `wanted` of [0, count), spread evenly.
std::vector<std::uint32_t> spread(std::uint32_t count, std::uint32_t wanted)
{
    const std::uint32_t taken = std::min(count, wanted);
    std::vector<std::uint32_t> places;
    for (std::uint32_t i = 0; i < taken; ++i)
        places.push_back((2 * i + 1) * count / (2 * taken));
    return places;
}

std::vector<std::uint32_t> sampled(const ptx::Dims& grid, const BlockSample& sample)
{
    const std::uint32_t rows = grid.y * grid.z;
    std::vector<std::uint32_t> blocks;
    for (const std::uint32_t row : spread(rows, sample.rows == 0 ? rows : sample.rows))
        for (const std::uint32_t group : spread(grid.x / sample.adjacent, sample.groups))
            for (std::uint32_t i = 0; i < sample.adjacent; ++i)
                blocks.push_back(row * grid.x + group * sample.adjacent + i);
    if (blocks.empty()) { // rows that are shorter than a group
        blocks.resize(grid.count());
        std::iota(blocks.begin(), blocks.end(), 0U);
    }
    return blocks;
}

} // namespace

OpRig::OpRig(const std::string& target, const gpu::AttentionCard& card, const BlockSample& sample)
    : m_device(ptx::makePtxDevice(kPageBytes, gpu::AttentionChoice(card)))
    , m_stream(m_device->createStream("compute").value())
{
    ptx::Runtime& runtime = ptx::runtime();
    runtime.target = target;
    runtime.failure = {};
    runtime.counters = &m_counters;
    runtime.sample = [sample](const ptx::Dims& grid) { return sampled(grid, sample); };
    runtime.onLaunch = [this](const ptx::Launch& launch) { note(launch); };
}

OpRig::~OpRig()
{
    ptx::Runtime& runtime = ptx::runtime();
    runtime.counters = nullptr;
    runtime.sample = nullptr;
    runtime.onLaunch = nullptr;
    for (const auto& [data, bytes] : m_memory) {
        runtime.memory.remove(data, bytes);
        munmap(data, bytes);
    }
}

TensorView OpRig::scratch(DType type, std::int64_t rows, std::int64_t cols)
{
    return owned(matrixView(nullptr, type, rows, cols), patternOf(type));
}

TensorView OpRig::owned(TensorView view, Pattern pattern)
{
    const std::size_t bytes = (view.bytes() + kPageBytes - 1) / kPageBytes * kPageBytes;
    view.data = mapped(pattern, bytes);
    m_memory.emplace_back(view.data, bytes);
    ptx::runtime().memory.add(view.data, view.bytes(), std::to_string(m_memory.size()), true);
    return view;
}

TensorView OpRig::read(DType type, std::int64_t rows, std::int64_t cols)
{
    const TensorView view = scratch(type, rows, cols);
    addLeastBytes(static_cast<std::int64_t>(view.bytes()));
    return view;
}

TensorView OpRig::written(DType type, std::int64_t rows, std::int64_t cols)
{
    return read(type, rows, cols);
}

TensorView OpRig::updated(DType type, std::int64_t rows, std::int64_t cols)
{
    const TensorView view = read(type, rows, cols);
    addLeastBytes(static_cast<std::int64_t>(view.bytes()));
    return view;
}

TensorView OpRig::integers(const std::vector<std::int32_t>& values)
{
    const TensorView view = flat(read(DType::I32, 1, std::ssize(values)));
    std::memcpy(view.data, values.data(), view.bytes());
    return view;
}

TensorView OpRig::bytes(std::int64_t count)
{
    addLeastBytes(count);
    return owned(vectorView(nullptr, DType::U8, count), Pattern::Bytes);
}

void OpRig::note(const ptx::Launch& launch)
{
    const auto blocks = static_cast<double>(launch.blocks->size());
    m_launches.push_back({launch.program, launch.grid, launch.block,
        launch.program->sharedBytes + launch.dynamicShared,
        static_cast<double>(launch.grid.count()) / blocks, std::exchange(m_counters, {}),
        launch.memory->touched()});
}

TensorView flat(const TensorView& view)
{
    return vectorView(view.data, view.dtype, view.count());
}

std::vector<std::int32_t> ascending(std::int64_t count)
{
    std::vector<std::int32_t> values(static_cast<std::size_t>(count));
    std::iota(values.begin(), values.end(), 0);
    return values;
}

} // namespace mr::bench
