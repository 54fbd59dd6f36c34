#include "gpu/simt/thread_side.h"

#include "gpu/simt/machine.h"

#include <bit>

namespace mr::simt {

namespace {

constexpr unsigned kAllLanes = ~0U;
constexpr std::uintptr_t kRowBytes = 16; // for ldmatrix and cp.async

struct ShuffleOperand {
    std::uint64_t bits;
    int source;
    std::uint64_t result;
};

struct BallotOperand {
    bool predicate;
    unsigned result;
};

struct LoadOperand {
    const void* row;
    bool transpose;
    std::uint32_t* r;
};

struct MultiplyOperand {
    float* d;
    const std::uint32_t* a;
    const std::uint32_t* b;
};

template <typename T>
T& operand(void* const* operands, int lane)
{
    return *static_cast<T*>(operands[lane]);
}

template <typename Each>
void forEachLane(unsigned mask, const Each& each)
{
    for (unsigned left = mask; left != 0; left &= left - 1)
        each(std::countr_zero(left));
}

void exchange(void* const* operands, unsigned mask)
{
    forEachLane(mask, [=](int lane) {
        auto& mine = operand<ShuffleOperand>(operands, lane);
        if (mine.source < 0 || mine.source >= kLanes || (mask >> mine.source & 1U) == 0) {
            std::string text = "lane " + std::to_string(lane) + " shuffles from lane " +
                               std::to_string(mine.source) + ", which is not in the mask";
            machine().stop(std::move(text));
        }
        mine.result = operand<ShuffleOperand>(operands, mine.source).bits;
    });
}

void vote(void* const* operands, unsigned mask)
{
    unsigned votes = 0;
    forEachLane(mask, [&](int lane) {
        if (operand<BallotOperand>(operands, lane).predicate)
            votes |= 1U << lane;
    });
    forEachLane(mask, [=](int lane) { operand<BallotOperand>(operands, lane).result = votes; });
}

std::uint16_t elementOf(const void* row, int column)
{
    std::uint16_t bits;
    std::memcpy(&bits, static_cast<const unsigned char*>(row) + 2 * column, sizeof bits);
    return bits;
}

// Lane l gets of matrix i elements (l / 4, 2 (l % 4)) and the one after it, or, transposed, those
// of (2 (l % 4), l / 4) and the row after it.
void loadForWarp(void* const* operands, unsigned mask)
{
    forEachLane(mask, [=](int lane) {
        auto& mine = operand<LoadOperand>(operands, lane);
        for (int matrix = 0; matrix < 4; ++matrix) {
            const auto element = [&](int row, int column) -> std::uint32_t {
                return elementOf(operand<LoadOperand>(operands, matrix * 8 + row).row, column);
            };
            const int major = lane / 4;
            const int minor = 2 * (lane % 4);
            mine.r[matrix] = mine.transpose
                                 ? element(minor, major) | element(minor + 1, major) << 16
                                 : element(major, minor) | element(major, minor + 1) << 16;
        }
    });
}

float halfOf(std::uint32_t pair, int which)
{
    return std::bit_cast<float>(which == 0 ? pair << 16 : pair & 0xffff0000U);
}

// Fragments of all lanes to whole matrices and back. With g = lane / 4, t = lane % 4, as in
// gpu/ptx.cuh. The products, exact in float, are added in ascending order with one rounding each,
// and their sum to d: a kernel that cuts a long sum at other places gets other bits, as on a card.
// The order of the hardware is not documented.
void multiplyForWarp(void* const* operands, unsigned mask)
{
    float a[16][16];
    float b[16][8];
    forEachLane(mask, [&](int lane) {
        const auto& from = operand<MultiplyOperand>(operands, lane);
        const int g = lane / 4;
        const int t = lane % 4;
        for (int half = 0; half < 2; ++half) {
            const int k = 2 * t + half;
            a[g][k] = halfOf(from.a[0], half);
            a[g + 8][k] = halfOf(from.a[1], half);
            a[g][k + 8] = halfOf(from.a[2], half);
            a[g + 8][k + 8] = halfOf(from.a[3], half);
            b[k][g] = halfOf(from.b[0], half);
            b[k + 8][g] = halfOf(from.b[1], half);
        }
    });
    forEachLane(mask, [&](int lane) {
        float* d = operand<MultiplyOperand>(operands, lane).d;
        for (int i = 0; i < 4; ++i) {
            const int row = lane / 4 + (i < 2 ? 0 : 8);
            const int column = 2 * (lane % 4) + i % 2;
            float sum = 0.0F;
            for (int k = 0; k < 16; ++k)
                sum = sum + a[row][k] * b[k][column];
            d[i] = d[i] + sum;
        }
    });
}

void requireAligned(const char* what, const void* address)
{
    if (reinterpret_cast<std::uintptr_t>(address) % kRowBytes != 0)
        machine().stop(std::string(what) + ": an address is not aligned to 16 bytes");
}

void arriveAt(const AsyncCopy& copy)
{
    if (copy.valid)
        std::memcpy(copy.to, copy.from, kRowBytes);
    else
        std::memset(copy.to, 0, kRowBytes);
}

} // namespace

int laneIndex() noexcept
{
    return machine().currentIndex() % kLanes;
}

unsigned char* dynamicSharedMemory()
{
    if (machine().sharedBytes() == 0)
        machine().stop("dynamic shared memory is used, but the launch asked for none");
    return machine().shared();
}

void syncBlock(const CallSite& where)
{
    machine().waitForBlock(where);
}

void meet(const Meeting& meeting, void* operand, Apply apply)
{
    machine().waitForWarp(meeting, operand, apply);
}

void syncWarp(unsigned mask, const CallSite& where)
{
    meet({"__syncwarp", mask, where}, nullptr, [](void* const*, unsigned) {});
}

unsigned ballot(const Meeting& meeting, bool predicate)
{
    BallotOperand mine{predicate, 0};
    meet(meeting, &mine, &vote);
    return mine.result;
}

std::uint64_t shuffleBits(const Meeting& meeting, std::uint64_t bits, int source)
{
    ShuffleOperand mine{bits, source, 0};
    meet(meeting, &mine, &exchange);
    return mine.result;
}

void loadMatrices(std::uint32_t* r, const void* row, bool transpose, const CallSite& where)
{
    requireAligned("ldmatrix", row);
    LoadOperand mine{row, transpose, r};
    meet({transpose ? "ldmatrix.trans" : "ldmatrix", kAllLanes, where}, &mine, &loadForWarp);
}

void multiplyFragments(
    float* d, const std::uint32_t* a, const std::uint32_t* b, const CallSite& where)
{
    MultiplyOperand mine{d, a, b};
    meet({"mma", kAllLanes, where}, &mine, &multiplyForWarp);
}

void copyAsync(void* to, const void* from, bool valid)
{
    requireAligned("cp.async", to);
    requireAligned("cp.async", from);
    Thread& thread = machine().current();
    const AsyncCopy copy{to, from, valid, thread.closedGroups};
    if (machine().schedule().copiesAtOnce)
        arriveAt(copy);
    else
        thread.copies.push_back(copy);
}

void closeCopies()
{
    ++machine().current().closedGroups;
}

void waitForCopies(int pendingGroups)
{
    Thread& thread = machine().current();
    const int open = thread.closedGroups - pendingGroups;
    std::size_t done = 0;
    while (done < thread.copies.size() && thread.copies[done].group < open)
        arriveAt(thread.copies[done++]);
    thread.copies.erase(
        thread.copies.begin(), thread.copies.begin() + static_cast<std::ptrdiff_t>(done));
}

} // namespace mr::simt
