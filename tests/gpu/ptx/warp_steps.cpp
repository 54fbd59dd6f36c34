#include "gpu/ptx/block.h"
#include "gpu/ptx/decode.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

// Instructions of a whole warp: exchanges between lanes, fragments, products of matrices.

namespace mr::ptx {
namespace {

enum class Shuffle : std::uint8_t { Butterfly, Index, Down, Up };

// shfl.sync d|p, a, b, c, mask: slots d, p (or 0), a, b, c
template <Shuffle kShuffle>
void shuffle(Warp& warp, const Step& step, Mask lanes)
{
    std::array<std::uint32_t, kLanes> source = {};
    std::memcpy(source.data(), warp.lanes<std::uint32_t>(step.slots[2]), sizeof source);
    auto* const d = warp.lanes<std::uint32_t>(step.slots[0]);
    const auto* const b = warp.lanes<std::uint32_t>(step.slots[3]);
    const auto* const c = warp.lanes<std::uint32_t>(step.slots[4]);
    Mask inside = 0;
    forLanes(lanes, [&](int i) {
        const auto lane = static_cast<std::uint32_t>(i);
        const std::uint32_t by = b[i] & 31U;
        const std::uint32_t clamp = c[i] & 31U;
        const std::uint32_t segment = (c[i] >> 8) & 31U;
        const std::uint32_t low = lane & segment;
        const std::uint32_t high = low | (clamp & ~segment);
        std::uint32_t from = lane;
        bool is = true;
        if constexpr (kShuffle == Shuffle::Butterfly)
            is = (from = lane ^ by) <= high;
        else if constexpr (kShuffle == Shuffle::Index)
            is = (from = low | (by & ~segment)) <= high;
        else if constexpr (kShuffle == Shuffle::Down)
            is = (from = lane + by) <= high;
        else {
            is = lane >= by + high; // for .up the clamp is the lower bound
            from = lane - by;
        }
        if (!is)
            from = lane;
        if (((lanes >> from) & 1U) == 0) {
            warp.block->fail(warp, step, i, "reads a lane that does not take part");
            return;
        }
        inside |= static_cast<Mask>(is) << i;
        d[i] = source[from];
    });
    if (step.slots[1] != 0) {
        Mask& p = warp.predicate(step.slots[1]);
        p = (p & ~lanes) | inside;
    }
}

void ballot(Warp& warp, const Step& step, Mask lanes)
{
    const Mask p = warp.predicate(step.slots[1]);
    auto* const d = warp.lanes<std::uint32_t>(step.slots[0]);
    forLanes(lanes, [&](int i) { d[i] = p & lanes; });
}

// ldmatrix.x4: lane l gives the address of row l % 8 of matrix l / 8; each row is 8 elements of
// 16 bits. Slots: address, then the four registers.
template <bool kTransposed>
void loadMatrix(Warp& warp, const Step& step, Mask lanes)
{
    std::array<std::array<std::uint16_t, 8>, kLanes> rows = {};
    const auto* const address = warp.lanes<std::uint32_t>(step.slots[0]);
    forLanes(lanes, [&](int i) {
        const std::uint64_t at = address[i] + static_cast<std::uint64_t>(step.offset);
        if (const std::byte* const from = warp.block->shared(warp, step, i, at, 16, false))
            std::memcpy(rows[static_cast<std::size_t>(i)].data(), from, 16);
    });
    for (std::size_t matrix = 0; matrix < 4; ++matrix) {
        auto* const d = warp.lanes<std::uint32_t>(step.slots[1 + matrix]);
        for (std::size_t lane = 0; lane < kLanes; ++lane) {
            const std::size_t major = lane / 4;
            const std::size_t minor = 2 * (lane % 4);
            const auto element = [&](std::size_t row, std::size_t column) {
                return static_cast<std::uint32_t>(rows[8 * matrix + row][column]);
            };
            d[lane] = kTransposed ? element(minor, major) | (element(minor + 1, major) << 16)
                                  : element(major, minor) | (element(major, minor + 1) << 16);
        }
    }
    if (StepCount* const counted = warp.block->counted(step)) {
        LaneAddresses addresses = {};
        for (std::size_t i = 0; i < kLanes; ++i)
            addresses[i] = address[i] + static_cast<std::uint64_t>(step.offset);
        countWaves(*counted, addresses, lanes, 16);
    }
}

float half(std::uint32_t pair, std::size_t which)
{
    return std::bit_cast<float>(which == 0 ? pair << 16 : pair & 0xffff0000U);
}

// A sum of tensor cores, which the ISA leaves open: rounded to nearest or cut.
float summed(double sum, bool truncates)
{
    auto out = static_cast<float>(sum);
    if (truncates && std::isfinite(out) && std::fabs(static_cast<double>(out)) > std::fabs(sum))
        out = std::nextafter(out, 0.0F);
    return out;
}

using Row = std::array<double, 8>;

// The fragments of a (16, 16), by rows, and b (16, 8), by rows.
void readFragments(
    Warp& warp, const Step& step, std::array<std::array<double, 16>, 16>& a, std::array<Row, 16>& b)
{
    const auto pair = [&](std::size_t slot, std::size_t lane) {
        return warp.lanes<std::uint32_t>(step.slots[slot])[lane];
    };
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
        const std::size_t group = lane / 4;
        const std::size_t column = 2 * (lane % 4);
        for (std::size_t i = 0; i < 2; ++i) {
            a[group][column + i] = half(pair(4, lane), i);
            a[group + 8][column + i] = half(pair(5, lane), i);
            a[group][column + 8 + i] = half(pair(6, lane), i);
            a[group + 8][column + 8 + i] = half(pair(7, lane), i);
            b[column + i][group] = half(pair(8, lane), i);
            b[column + 8 + i][group] = half(pair(9, lane), i);
        }
    }
}

// d = a b + c, a (16, 16) by rows, b (16, 8) by columns. Slots: d 4, a 4, b 2, c 4.
//
// Products of BF16 are exact in F32; the sum of each eight is taken before it is rounded.
void multiplyBf16(Warp& warp, const Step& step, Mask /*lanes*/)
{
    std::array<std::array<double, 16>, 16> a;
    std::array<Row, 16> b;
    readFragments(warp, step, a, b);
    std::array<Row, 16> sums;
    const auto eachElement = [&](auto f) {
        for (std::size_t lane = 0; lane < kLanes; ++lane)
            for (std::size_t i = 0; i < 4; ++i)
                f(sums[lane / 4 + (i < 2 ? 0 : 8)][2 * (lane % 4) + i % 2], i, lane);
    };
    eachElement([&](double& sum, std::size_t i, std::size_t lane) {
        sum = warp.lanes<float>(step.slots[10 + i])[lane];
    });
    const Freedom& freedom = warp.block->launch().freedom;
    for (std::size_t part = 0; part < 2; ++part) {
        const std::size_t first = 8 * (freedom.descendingProducts ? 1 - part : part);
        for (std::size_t row = 0; row < 16; ++row) {
            Row& sum = sums[row];
            for (std::size_t k = first; k < first + 8; ++k)
                for (std::size_t column = 0; column < 8; ++column)
                    sum[column] += a[row][k] * b[k][column];
            for (double& element : sum)
                element = summed(element, freedom.truncatesProducts);
        }
    }
    eachElement([&](double& sum, std::size_t i, std::size_t lane) {
        warp.lanes<float>(step.slots[i])[lane] = static_cast<float>(sum);
    });
}

} // namespace

Execute warpOp(const OpName& op)
{
    if (op.is("shfl.sync.bfly.b32"))
        return shuffle<Shuffle::Butterfly>;
    if (op.is("shfl.sync.idx.b32"))
        return shuffle<Shuffle::Index>;
    if (op.is("shfl.sync.down.b32"))
        return shuffle<Shuffle::Down>;
    if (op.is("shfl.sync.up.b32"))
        return shuffle<Shuffle::Up>;
    if (op.is("vote.sync.ballot.b32"))
        return ballot;
    if (op.is("ldmatrix.sync.aligned.m8n8.x4.shared.b16"))
        return loadMatrix<false>;
    if (op.is("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16"))
        return loadMatrix<true>;
    return op.is("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32") ? multiplyBf16 : nullptr;
}

} // namespace mr::ptx
