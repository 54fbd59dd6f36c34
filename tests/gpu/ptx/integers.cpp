// Integers: arithmetic wraps; moves and selections of any type.

#include "gpu/ptx/lane_ops.h"

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace mr::ptx {
namespace {

template <typename T>
using Unsigned = std::make_unsigned_t<T>;

template <typename T>
T remainderOf(T a, T b)
{
    if (b == 0 || (std::signed_integral<T> && b == static_cast<T>(-1)))
        return b == 0 ? a : T(0);
    return static_cast<T>(a % b);
}

template <typename T, typename Wide>
Wide widened(T a, T b)
{
    return static_cast<Wide>(static_cast<Wide>(a) * static_cast<Wide>(b));
}

// The upper half of a product of up to 32 bits each.
template <typename T>
T highProduct(T a, T b)
{
    return static_cast<T>((std::int64_t{a} * std::int64_t{b}) >> (8 * sizeof(T)));
}

template <typename T>
T shiftedLeft(T a, std::uint32_t by)
{
    return by >= 8 * sizeof(T) ? T(0) : static_cast<T>(a << by);
}

template <typename T>
T shiftedRight(T a, std::uint32_t by)
{
    if (by >= 8 * sizeof(T))
        return std::signed_integral<T> && a < 0 ? static_cast<T>(-1) : T(0);
    return static_cast<T>(a >> by);
}

// The funnel of two words, by the amount modulo 32 (.wrap) or at most 32 (.clamp).
template <bool kLeft, bool kWraps>
std::uint32_t funnel(std::uint32_t low, std::uint32_t high, std::uint32_t by)
{
    const std::uint32_t n = kWraps ? by & 31U : std::min(by, 32U);
    const std::uint64_t both = (static_cast<std::uint64_t>(high) << 32) | low;
    return static_cast<std::uint32_t>(kLeft ? (both << n) >> 32 : both >> n);
}

std::uint32_t permuted(std::uint32_t a, std::uint32_t b, std::uint32_t selector)
{
    const std::uint64_t bytes = (static_cast<std::uint64_t>(b) << 32) | a;
    std::uint32_t out = 0;
    for (unsigned i = 0; i < 4; ++i) {
        const std::uint32_t pick = (selector >> (4 * i)) & 15U;
        auto byte = static_cast<std::uint32_t>((bytes >> (8 * (pick & 7U))) & 0xffU);
        if ((pick & 8U) != 0) // the sign, copied
            byte = (byte & 0x80U) != 0 ? 0xffU : 0;
        out |= byte << (8 * i);
    }
    return out;
}

template <typename T>
void insertField(Warp& warp, const Step& step, Mask lanes) // bfi d, field, base, at, length
{
    constexpr std::uint32_t kBits = 8 * sizeof(T);
    auto* const d = warp.lanes<T>(step.slots[0]);
    const auto* const field = warp.lanes<T>(step.slots[1]);
    const auto* const base = warp.lanes<T>(step.slots[2]);
    const auto* const at = warp.lanes<std::uint32_t>(step.slots[3]);
    const auto* const length = warp.lanes<std::uint32_t>(step.slots[4]);
    forLanes(lanes, [&](int i) {
        const std::uint32_t from = at[i] & 0xffU;
        const std::uint32_t count = length[i] & 0xffU;
        const T ones = count >= kBits ? ~T{0} : (T{1} << count) - T{1};
        const T mask = from >= kBits ? T{0} : ones << from;
        d[i] = (base[i] & ~mask) | (from >= kBits ? T{0} : (field[i] << from) & mask);
    });
}

template <typename T>
T extractedField(T a, std::uint32_t at, std::uint32_t length)
{
    constexpr std::uint32_t kBits = 8 * sizeof(T);
    at &= 0xffU;
    length &= 0xffU;
    if (length == 0)
        return 0;
    T out = 0;
    const std::uint32_t sign = std::min(at + length - 1, kBits - 1);
    const bool fill = std::signed_integral<T> && ((a >> sign) & 1) != 0;
    for (std::uint32_t i = 0; i < kBits; ++i) {
        const bool bit = i < length && at + i < kBits ? ((a >> (at + i)) & 1) != 0 : fill;
        if (bit)
            out = static_cast<T>(static_cast<Unsigned<T>>(out) | (Unsigned<T>(1) << i));
    }
    return out;
}

template <typename T>
void extractField(Warp& warp, const Step& step, Mask lanes)
{
    auto* const d = warp.lanes<T>(step.slots[0]);
    const auto* const a = warp.lanes<T>(step.slots[1]);
    const auto* const at = warp.lanes<std::uint32_t>(step.slots[2]);
    const auto* const length = warp.lanes<std::uint32_t>(step.slots[3]);
    forLanes(lanes, [&](int i) { d[i] = extractedField(a[i], at[i], length[i]); });
}

template <typename T>
T same(T a)
{
    return a;
}

template <typename T>
T both(T a, T b)
{
    return static_cast<T>(a & b);
}

template <typename T>
T either(T a, T b)
{
    return static_cast<T>(a | b);
}

template <typename T>
T differing(T a, T b)
{
    return static_cast<T>(a ^ b);
}

template <typename T>
T inverted(T a)
{
    return static_cast<T>(~a);
}

template <typename T>
T madLow(T a, T b, T c)
{
    return added<T>(multiplied<T>(a, b), c);
}

template <typename T, typename Wide>
Wide madWide(T a, T b, Wide c)
{
    return added<Wide>(widened<T, Wide>(a, b), c);
}

template <typename T>
void select(Warp& warp, const Step& step, Mask lanes)
{
    T* const d = warp.lanes<T>(step.slots[0]);
    const T* const a = warp.lanes<T>(step.slots[1]);
    const T* const b = warp.lanes<T>(step.slots[2]);
    const Mask p = warp.predicate(step.slots[3]);
    forLanes(lanes, [&](int i) { d[i] = ((p >> i) & 1U) != 0 ? a[i] : b[i]; });
}

} // namespace

Execute integerOp(const OpName& op)
{
    const std::string_view type = op.last();
    if (op.is("mul.lo") || op.is("mad.lo")) {
        const bool isMad = op.first() == "mad";
        return byInteger(type, [&]<typename T>() -> Execute {
            return isMad ? ternary<madLow<T>, T, T> : binary<multiplied<T>, T, T>;
        });
    }
    if (op.is("mul.hi"))
        return byInteger(type, []<typename T>() -> Execute {
            if constexpr (sizeof(T) > 4)
                return nullptr;
            else
                return binary<highProduct<T>, T, T>;
        });
    if (op.is("mul.wide") || op.is("mad.wide")) {
        const bool isMad = op.first() == "mad";
        const auto wide = [&]<typename T, typename W>() -> Execute {
            return isMad ? ternary<madWide<T, W>, W, T, W> : binary<widened<T, W>, W, T>;
        };
        if (type == "s16")
            return wide.template operator()<std::int16_t, std::int32_t>();
        if (type == "u16")
            return wide.template operator()<std::uint16_t, std::uint32_t>();
        if (type == "s32")
            return wide.template operator()<std::int32_t, std::int64_t>();
        return type == "u32" ? wide.template operator()<std::uint32_t, std::uint64_t>() : nullptr;
    }
    const std::string_view name = op.first();
    return byInteger(type, [&]<typename T>() -> Execute {
        if (const Execute found = sumOf<T>(name))
            return found;
        if (const Execute found = orderOf<T>(name))
            return found;
        if (name == "div")
            return binary<divided<T>, T, T>;
        if (name == "rem")
            return binary<remainderOf<T>, T, T>;
        if (name == "and")
            return binary<both<T>, T, T>;
        if (name == "or")
            return binary<either<T>, T, T>;
        if (name == "xor")
            return binary<differing<T>, T, T>;
        if (name == "not")
            return unary<inverted<T>, T, T>;
        if (name == "shl")
            return binary<shiftedLeft<T>, T, T, std::uint32_t>;
        if (name == "shr")
            return binary<shiftedRight<T>, T, T, std::uint32_t>;
        if (name == "bfe" && sizeof(T) >= 4)
            return extractField<T>;
        return nullptr;
    });
}

Execute wordOp(const OpName& op)
{
    if (op.is("prmt.b32"))
        return ternary<permuted, std::uint32_t, std::uint32_t>;
    if (op.is("bfi.b32"))
        return insertField<std::uint32_t>;
    if (op.is("bfi.b64"))
        return insertField<std::uint64_t>;
    if (op.is("shf.l.wrap.b32"))
        return ternary<funnel<true, true>, std::uint32_t, std::uint32_t>;
    if (op.is("shf.r.wrap.b32"))
        return ternary<funnel<false, true>, std::uint32_t, std::uint32_t>;
    if (op.is("shf.l.clamp.b32"))
        return ternary<funnel<true, false>, std::uint32_t, std::uint32_t>;
    if (op.is("shf.r.clamp.b32"))
        return ternary<funnel<false, false>, std::uint32_t, std::uint32_t>;
    if (op.first() == "selp")
        return byType(op.last(), []<typename T>() -> Execute { return select<T>; });
    if (op.first() == "mov" && op.parts.size() == 2)
        return byType(op.last(), []<typename T>() -> Execute { return unary<same<T>, T, T>; });
    return nullptr;
}

} // namespace mr::ptx
