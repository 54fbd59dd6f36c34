#include "gpu/ptx/block.h"
#include "gpu/ptx/decode.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <string>

// Loads, stores and asynchronous copies.
//
// Slots: the base of the address (U64; U32 for shared memory), then the elements.

namespace mr::ptx {
namespace {

enum class Space : std::uint8_t { Global, Shared, Local, Parameters };

std::uint64_t addressOf(Warp& warp, const Step& step, int lane)
{
    const std::uint64_t base = step.isWideAddress ? warp.lanes<std::uint64_t>(step.slots[0])[lane]
                                                  : warp.lanes<std::uint32_t>(step.slots[0])[lane];
    const std::uint64_t address = base + static_cast<std::uint64_t>(step.offset);
    return step.isWideAddress ? address : address & 0xffffffffU;
}

template <Space kSpace>
auto reach(Warp& warp, const Step& step, int lane, std::size_t bytes, bool writes)
{
    const std::uint64_t address = addressOf(warp, step, lane);
    if constexpr (kSpace == Space::Global)
        return warp.block->global(warp, step, lane, address, bytes, writes);
    else if constexpr (kSpace == Space::Shared)
        return warp.block->shared(warp, step, lane, address, bytes, writes);
    else if constexpr (kSpace == Space::Local)
        return warp.block->local(warp, step, lane, address, bytes, writes);
    else
        return warp.block->parameter(warp, step, lane, address, bytes);
}

template <Space kSpace>
void count(Warp& warp, const Step& step, Mask lanes)
{
    StepCount* const counted = warp.block->counted(step);
    if (!counted || (kSpace != Space::Global && kSpace != Space::Shared))
        return;
    LaneAddresses addresses = {};
    forLanes(lanes,
        [&](int lane) { addresses[static_cast<std::size_t>(lane)] = addressOf(warp, step, lane); });
    const std::uint64_t bytes = static_cast<std::uint64_t>(step.bytes) * step.count;
    (kSpace == Space::Global ? countSectors : countWaves)(*counted, addresses, lanes, bytes);
}

// M: in memory, R: of the register, as wide or wider.
template <Space kSpace, typename M, typename R>
void load(Warp& warp, const Step& step, Mask lanes)
{
    count<kSpace>(warp, step, lanes);
    forLanes(lanes, [&](int lane) {
        const std::byte* const from =
            reach<kSpace>(warp, step, lane, sizeof(M) * step.count, false);
        if (!from)
            return;
        for (std::size_t i = 0; i < step.count; ++i) {
            M value;
            std::memcpy(&value, from + i * sizeof(M), sizeof(M));
            if (step.slots[1 + i] != 0)
                warp.lanes<R>(step.slots[1 + i])[lane] = static_cast<R>(value);
        }
    });
}

template <Space kSpace, typename M, typename R>
void store(Warp& warp, const Step& step, Mask lanes)
{
    count<kSpace>(warp, step, lanes);
    forLanes(lanes, [&](int lane) {
        std::byte* const to = reach<kSpace>(warp, step, lane, sizeof(M) * step.count, true);
        if (!to)
            return;
        for (std::size_t i = 0; i < step.count; ++i) {
            const auto value = static_cast<M>(warp.lanes<R>(step.slots[1 + i])[lane]);
            std::memcpy(to + i * sizeof(M), &value, sizeof(M));
        }
    });
}

// cp.async.cg.shared.global [shared], [global], 16, bytes: slots shared (U32), global (U64), bytes
void copyAsync(Warp& warp, const Step& step, Mask lanes)
{
    const auto* const shared = warp.lanes<std::uint32_t>(step.slots[0]);
    const auto* const global = warp.lanes<std::uint64_t>(step.slots[1]);
    const auto* const read =
        step.slots[2] != 0 ? warp.lanes<std::uint32_t>(step.slots[2]) : nullptr;
    if (StepCount* const counted = warp.block->counted(step)) {
        LaneAddresses from = {};
        LaneAddresses to = {};
        Mask reading = 0;
        forLanes(lanes, [&](int lane) {
            const auto i = static_cast<std::size_t>(lane);
            from[i] = global[lane] + static_cast<std::uint64_t>(step.secondOffset);
            to[i] = shared[lane] + static_cast<std::uint64_t>(step.offset);
            reading |= static_cast<Mask>(!read || read[lane] > 0) << lane;
        });
        countSectors(*counted, from, reading, step.bytes);
        countWaves(*counted, to, lanes, step.bytes);
    }
    forLanes(lanes, [&](int lane) {
        const std::size_t bytes = read ? std::min<std::size_t>(read[lane], step.bytes) : step.bytes;
        warp.block->copyLater(warp, step, lane,
            shared[lane] + static_cast<std::uint64_t>(step.offset),
            global[lane] + static_cast<std::uint64_t>(step.secondOffset), step.bytes, bytes);
    });
}

void commitCopies(Warp& warp, const Step& /*step*/, Mask lanes)
{
    forLanes(lanes, [&](int lane) { warp.block->commitCopies(warp, lane); });
}

void waitForCopies(Warp& warp, const Step& step, Mask lanes)
{
    forLanes(lanes, [&](int lane) {
        warp.block->waitForCopies(warp, step, lane, static_cast<std::size_t>(step.offset));
    });
}

struct Access {
    bool isLoad = false;
    Space space = Space::Global;
};

template <typename M, typename R>
Execute accessOf(const Access& access)
{
    if (access.space == Space::Parameters)
        return access.isLoad ? load<Space::Parameters, M, R> : nullptr;
    if (access.space == Space::Global)
        return access.isLoad ? load<Space::Global, M, R> : store<Space::Global, M, R>;
    if (access.space == Space::Shared)
        return access.isLoad ? load<Space::Shared, M, R> : store<Space::Shared, M, R>;
    return access.isLoad ? load<Space::Local, M, R> : store<Space::Local, M, R>;
}

template <typename M>
Execute byRegister(const Access& access, int registerBytes)
{
    if constexpr (sizeof(M) <= 2)
        if (registerBytes == 2)
            return accessOf<M,
                std::conditional_t<std::is_signed_v<M>, std::int16_t, std::uint16_t>>(access);
    if constexpr (sizeof(M) <= 4)
        if (registerBytes == 4)
            return accessOf<M,
                std::conditional_t<std::is_signed_v<M>, std::int32_t, std::uint32_t>>(access);
    if (registerBytes == 8)
        return accessOf<M, std::conditional_t<std::is_signed_v<M>, std::int64_t, std::uint64_t>>(
            access);
    return nullptr;
}

Execute byMemory(const Access& access, std::string_view type, int registerBytes)
{
    const bool isSigned = type.starts_with("s");
    const std::string_view size = type.substr(1);
    if (size == "8")
        return isSigned ? byRegister<std::int8_t>(access, registerBytes)
                        : byRegister<std::uint8_t>(access, registerBytes);
    if (size == "16")
        return isSigned ? byRegister<std::int16_t>(access, registerBytes)
                        : byRegister<std::uint16_t>(access, registerBytes);
    if (size == "32")
        return isSigned ? byRegister<std::int32_t>(access, registerBytes)
                        : byRegister<std::uint32_t>(access, registerBytes);
    return size == "64" ? byRegister<std::uint64_t>(access, registerBytes) : nullptr;
}

} // namespace

Execute memoryOp(const OpName& op, int registerBytes)
{
    if (op.is("cp.async.commit_group"))
        return commitCopies;
    if (op.is("cp.async.wait_group"))
        return waitForCopies;
    if (op.is("cp.async.cg.shared.global") || op.is("cp.async.ca.shared.global"))
        return copyAsync;
    if (op.first() != "ld" && op.first() != "st")
        return nullptr;
    Access access;
    access.isLoad = op.first() == "ld";
    if (op.has("shared"))
        access.space = Space::Shared;
    else if (op.has("local"))
        access.space = Space::Local;
    else if (op.has("param"))
        access.space = Space::Parameters;
    else if (!op.has("global"))
        return nullptr; // generic addresses
    return byMemory(access, op.last(), registerBytes);
}

} // namespace mr::ptx
