#include "core/prove/bench_rig.h"

#include "core/base/philox.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace mr {
namespace {

// A batch of this length holds the gap before its first kernel, some microseconds, under 0.2 %.
constexpr double kBatchSeconds = 4e-3;
constexpr int kMostCalls = 200;
constexpr int kBatches = 21;
// Long calls: a few will do. 7 batches have a median too.
constexpr int kFewestBatches = 7;
constexpr double kMostSeconds = 0.8;

constexpr std::size_t kStagingBytes = std::size_t{8} << 20;
// Tensors are filled with copies of one block. Its length is odd, so that rows differ.
constexpr std::size_t kBlockElements = (std::size_t{1} << 20) - 3;
// More than the L2 cache of any card so far (126 MB).
constexpr std::size_t kBeyondCaches = std::size_t{256} << 20;
constexpr int kMostSets = 16;

// Calls put(i, word) for count random words.
template <typename Put>
void randomWords(std::uint64_t seed, std::size_t count, Put&& put)
{
    for (std::size_t i = 0; i < count; i += 4) {
        const auto words = philox(seed, i / 4);
        for (std::size_t j = 0; j < 4 && i + j < count; ++j)
            put(i + j, words[j]);
    }
}

std::uint32_t bitsOf(float value)
{
    std::uint32_t bits = 0;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

// The bits of an element of `type`, in the low bytes.
std::uint32_t element(DType type, std::uint32_t word, float least, float most)
{
    const float unit = static_cast<float>(word >> 8) * 0x1p-24F;
    const std::uint32_t bits = bitsOf(least + (most - least) * unit);
    switch (type) {
    case DType::F32:
        return bits;
    case DType::BF16:
    case DType::U16:
        return bits >> 16;
    default:
        return word;
    }
}

} // namespace

BenchRig::BenchRig(Device& device)
    : m_device(device)
{
    const auto take = [this](auto made, auto& to) {
        keep(made.status());
        if (made.ok())
            to = std::move(made).value();
    };
    for (int i = 0; i < 2; ++i) {
        take(device.createStream(i == 0 ? "bench" : "bench 2"), m_streams[i]);
        take(device.createEvent(), m_ends[i]);
    }
    take(device.createEvent(), m_begin);
    m_staging = memory(kStagingBytes, MemoryKind::PinnedHost);
}

void BenchRig::keep(Status status)
{
    if (m_status.ok())
        m_status = std::move(status);
}

std::byte* BenchRig::memory(std::size_t bytes, MemoryKind kind)
{
    if (!m_status.ok())
        return nullptr;
    // Skewed starts: arrays an exact power of two apart alias in the caches of a processor.
    const std::size_t skew = 4096 * (m_buffers.size() % 16 + 1);
    auto buffer = m_device.allocate(bytes + skew, kind, "bench");
    keep(buffer.status());
    if (!buffer.ok())
        return nullptr;
    m_buffers.push_back(std::move(buffer).value());
    return m_buffers.back().data() + skew;
}

void BenchRig::upload(const TensorView& view, const Fill& fill)
{
    if (!m_status.ok())
        return;
    const std::size_t block = kBlockElements * sizeOf(view.dtype);
    const std::size_t piece = std::min({view.bytes(), block, kStagingBytes});
    if (piece == 0)
        return;
    fill({m_staging, piece});
    for (std::size_t at = 0; m_status.ok() && at < view.bytes(); at += piece)
        keep(stream().copy(view.data + at, {m_staging, std::min(piece, view.bytes() - at)}));
    if (m_status.ok())
        keep(stream().record(*m_ends[0]));
    wait(*m_ends[0]);
}

TensorView BenchRig::tensor(DType type, std::int64_t rows, std::int64_t cols, const Fill& fill)
{
    TensorView view = matrixView(nullptr, type, rows, cols);
    view.data = memory(view.bytes(), MemoryKind::Device);
    upload(view, fill);
    return view;
}

TensorView BenchRig::random(
    DType type, std::int64_t rows, std::int64_t cols, float least, float most)
{
    const std::uint64_t seed = ++m_seed;
    return tensor(type, rows, cols, [&](std::span<std::byte> piece) {
        const std::size_t size = sizeOf(type);
        randomWords(seed, piece.size() / size, [&](std::size_t i, std::uint32_t word) {
            const std::uint32_t bits = element(type, word, least, most);
            std::memcpy(piece.data() + i * size, &bits, size);
        });
    });
}

TensorView BenchRig::randomVector(DType type, std::int64_t count, float least, float most)
{
    return vectorView(random(type, 1, count, least, most).data, type, count);
}

TensorView BenchRig::given(DType type, std::int64_t rows, std::int64_t cols, const void* bytes)
{
    if (matrixView(nullptr, type, rows, cols).bytes() > kBlockElements) // would repeat itself
        keep(Status::error(ErrorKind::Internal, "bench: too many given bytes"));
    return tensor(type, rows, cols,
        [&](std::span<std::byte> piece) { std::memcpy(piece.data(), bytes, piece.size()); });
}

TensorView BenchRig::zeros(DType type, std::int64_t rows, std::int64_t cols)
{
    return tensor(type, rows, cols,
        [](std::span<std::byte> piece) { std::memset(piece.data(), 0, piece.size()); });
}

TensorView BenchRig::ids(std::int64_t count, std::int64_t below)
{
    const std::uint64_t seed = ++m_seed;
    const TensorView view = tensor(DType::I32, 1, count, [&](std::span<std::byte> piece) {
        randomWords(seed, piece.size() / 4, [&](std::size_t i, std::uint32_t word) {
            const std::uint32_t id = word % static_cast<std::uint32_t>(below);
            std::memcpy(piece.data() + i * 4, &id, 4);
        });
    });
    return vectorView(view.data, DType::I32, count);
}

int BenchRig::setsOf(std::size_t bytes) const noexcept
{
    const std::size_t most = std::min(kBeyondCaches, memoryBytes() / 4);
    const std::size_t sets = most / std::max<std::size_t>(bytes, 1);
    return static_cast<int>(std::clamp<std::size_t>(sets, 1, kMostSets));
}

void BenchRig::wait(Event& event)
{
    m_device.submit();
    if (m_status.ok())
        keep(event.wait());
}

// Seconds of one call out of `calls` in a row.
double BenchRig::sample(const Enqueue& enqueue, int firstCall, int calls)
{
    if (!m_status.ok())
        return 1.0;
    keep(stream().record(*m_begin));
    for (int i = 0; i < calls && m_status.ok(); ++i)
        keep(enqueue(firstCall + i));
    if (m_status.ok())
        keep(stream().record(*m_ends[0]));
    wait(*m_ends[0]);
    if (!m_status.ok())
        return 1.0;
    return 1e-9 * static_cast<double>(m_ends[0]->timeNs() - m_begin->timeNs()) / calls;
}

double BenchRig::sampleBoth(const Enqueue& first, const Enqueue& second, int call)
{
    if (!m_status.ok())
        return 1.0;
    keep(stream().record(*m_begin));
    keep(secondStream().waitFor(*m_begin));
    keep(first(call));
    keep(second(call));
    for (int i = 0; i < 2; ++i)
        keep(m_streams[i]->record(*m_ends[i]));
    wait(*m_ends[0]);
    wait(*m_ends[1]);
    if (!m_status.ok())
        return 1.0;
    const std::int64_t end = std::max(m_ends[0]->timeNs(), m_ends[1]->timeNs());
    return 1e-9 * static_cast<double>(end - m_begin->timeNs());
}

BenchTime BenchRig::collect(const std::function<double(int)>& sampleNumber)
{
    std::vector<double> seconds;
    double spent = 0.0;
    for (int i = 0; i < kBatches && m_status.ok(); ++i) {
        if (i >= kFewestBatches && spent > kMostSeconds)
            break;
        seconds.push_back(sampleNumber(i));
        spent += seconds.back();
    }
    if (!m_status.ok() || seconds.empty())
        return {1.0, 1.0};
    std::sort(seconds.begin(), seconds.end());
    // A clock that has not moved between two events gives 0; no rate is infinite.
    constexpr double kLeastSeconds = 1e-9;
    return {std::max(seconds[seconds.size() / 2], kLeastSeconds),
        std::max(seconds.front(), kLeastSeconds)};
}

BenchTime BenchRig::time(const Enqueue& enqueue)
{
    sample(enqueue, 0, 1); // loads code, chooses algorithms
    const double once = std::max(sample(enqueue, 1, 1), 1e-7);
    const int calls = std::clamp(static_cast<int>(kBatchSeconds / once), 1, kMostCalls);
    BenchTime time = collect([&](int i) { return calls * sample(enqueue, i * calls, calls); });
    time.median /= calls;
    time.best /= calls;
    return time;
}

BenchTime BenchRig::timeBoth(const Enqueue& first, const Enqueue& second)
{
    sampleBoth(first, second, 0);
    return collect([&](int i) { return sampleBoth(first, second, i); });
}

BenchRow benchRow(
    std::string name, double amount, double seconds, double limitPerSecond, const char* unit)
{
    BenchRow row;
    row.name = std::move(name);
    row.ours = amount / seconds * 1e-9;
    row.limit = limitPerSecond * 1e-9;
    row.unit = unit;
    row.ratio = limitPerSecond > 0.0 ? row.ours / row.limit : 0.0;
    return row;
}

std::vector<DType> benchTypes(const DeviceInfo& info)
{
    if (info.instructionSet.starts_with("sm_7"))
        return {DType::F32};
    return {DType::F32, DType::BF16};
}

const char* benchName(DType type) noexcept
{
    return type == DType::BF16 ? "bf16" : "f32";
}

} // namespace mr
