#include "core/prove/product_samples.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <random>

namespace mr {
namespace {

constexpr std::size_t kPeriod = 65'521;
constexpr std::size_t kPhase = 7'919; // numbers between two phases
constexpr std::size_t kPieceBytes = std::size_t{64} << 10;
constexpr std::size_t kPieces = 64;

// First bytes of the pieces of a tensor that are looked at, at whole elements.
std::vector<std::size_t> pieceStarts(std::size_t bytes)
{
    if (bytes <= kPieces * kPieceBytes)
        return {0};
    std::vector<std::size_t> starts(kPieces);
    for (std::size_t i = 0; i < kPieces; ++i)
        starts[i] = (bytes - kPieceBytes) / (kPieces - 1) * i / sizeof(float) * sizeof(float);
    starts.back() = bytes - kPieceBytes;
    return starts;
}

std::size_t pieceBytes(std::size_t bytes)
{
    return bytes <= kPieces * kPieceBytes ? bytes : kPieceBytes;
}

void writeNumbers(std::byte* to)
{
    auto* wide = reinterpret_cast<float*>(to);
    auto* narrow = reinterpret_cast<std::uint16_t*>(wide + 2 * kPeriod);
    std::mt19937 random; // the standard's own seed
    for (std::size_t i = 0; i < 2 * kPeriod; ++i) {
        const float number = i < kPeriod ? static_cast<float>(random() >> 8) / float{1 << 23} - 1.0F
                                         : wide[i - kPeriod];
        wide[i] = number;
        narrow[i] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(number) >> 16);
    }
}

} // namespace

Result<std::unique_ptr<ProductSamples>> ProductSamples::create(Device& device)
{
    auto samples = std::unique_ptr<ProductSamples>(new ProductSamples(device));
    MR_ASSIGN(samples->m_stream, device.createStream("product check"));
    MR_ASSIGN(samples->m_event, device.createEvent());
    const auto pinned = [&](std::size_t bytes) {
        return device.allocate(bytes, MemoryKind::PinnedHost, "product samples");
    };
    MR_ASSIGN(samples->m_numbers, pinned(2 * kPeriod * (sizeof(float) + sizeof(std::uint16_t))));
    MR_ASSIGN(samples->m_landing, pinned(kPieces * kPieceBytes));
    writeNumbers(samples->m_numbers.data());
    return samples;
}

// One period.
std::span<const std::byte> ProductSamples::numbers(DType type, int phase) const
{
    const std::byte* first = m_numbers.data();
    if (type == DType::BF16)
        first += 2 * kPeriod * sizeof(float);
    const std::size_t start = static_cast<std::size_t>(phase) * kPhase % kPeriod;
    return {first + start * sizeOf(type), kPeriod * sizeOf(type)};
}

void ProductSamples::fill(const TensorView& view, int phase)
{
    const std::span<const std::byte> period = numbers(view.dtype, phase);
    const std::size_t bytes = view.bytes();
    std::size_t done = std::min(bytes, period.size());
    if (m_status.ok() && done > 0)
        m_status = m_stream->copy(view.data, period.first(done));
    while (m_status.ok() && done < bytes) { // whole periods, twice as many each time
        const std::size_t next = std::min(done, bytes - done);
        m_status = m_stream->copy(view.data + done, {view.data, next});
        done += next;
    }
}

Status ProductSamples::take(const TensorView& view, std::vector<std::byte>& samples)
{
    MR_TRY(m_status);
    const std::size_t each = pieceBytes(view.bytes());
    std::byte* to = m_landing.data();
    for (const std::size_t start : pieceStarts(view.bytes())) {
        MR_TRY(m_stream->copy(to, {view.data + start, each}));
        to += each;
    }
    MR_TRY(m_stream->record(*m_event));
    m_device.submit();
    MR_TRY(m_event->wait());
    samples.assign(m_landing.data(), to);
    return {};
}

void ProductSamples::addFilled(
    const TensorView& view, int phase, std::vector<std::byte>& samples) const
{
    const std::span<const std::byte> period = numbers(DType::F32, phase);
    const std::size_t each = pieceBytes(view.bytes());
    std::byte* at = samples.data();
    for (const std::size_t start : pieceStarts(view.bytes()))
        for (std::size_t i = start; i < start + each; i += sizeof(float), at += sizeof(float)) {
            float sum = 0.0F;
            float number = 0.0F;
            std::memcpy(&sum, at, sizeof sum);
            std::memcpy(&number, period.data() + i % period.size(), sizeof number);
            sum = number + sum;
            std::memcpy(at, &sum, sizeof sum);
        }
}

} // namespace mr
