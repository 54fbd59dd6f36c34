// Conversions between types, and registers put together from halves.

#include "gpu/ptx/lane_ops.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>

namespace mr::ptx {
namespace {

template <typename Whole, typename Half>
void pack(Warp& warp, const Step& step, Mask lanes)
{
    auto* const whole = warp.lanes<Whole>(step.slots[0]);
    const auto* const low = warp.lanes<Half>(step.slots[1]);
    const auto* const high = warp.lanes<Half>(step.slots[2]);
    forLanes(lanes, [&](int i) {
        whole[i] = static_cast<Whole>(low[i] | (static_cast<Whole>(high[i]) << (8 * sizeof(Half))));
    });
}

template <typename Whole, typename Half>
void unpack(Warp& warp, const Step& step, Mask lanes)
{
    const auto* const whole = warp.lanes<Whole>(step.slots[0]);
    auto* const low = warp.lanes<Half>(step.slots[1]);
    auto* const high = warp.lanes<Half>(step.slots[2]);
    forLanes(lanes, [&](int i) {
        const Whole value = whole[i];
        if (step.slots[1] != 0)
            low[i] = static_cast<Half>(value);
        if (step.slots[2] != 0)
            high[i] = static_cast<Half>(value >> (8 * sizeof(Half)));
    });
}

enum class Rounding : std::uint8_t { None, Nearest, Zero, Down, Up };

template <Rounding kRounding, typename F>
F integral(F x)
{
    if constexpr (kRounding == Rounding::Nearest)
        return std::nearbyint(x);
    else if constexpr (kRounding == Rounding::Zero)
        return std::trunc(x);
    else if constexpr (kRounding == Rounding::Down)
        return std::floor(x);
    else
        return std::ceil(x);
}

// Saturates, as cvt does from floating point to integers; a NaN becomes 0.
template <typename I, typename F>
I clampedTo(F x)
{
    if (std::isnan(x))
        return 0;
    if (x <= static_cast<F>(std::numeric_limits<I>::min()))
        return std::numeric_limits<I>::min();
    if (x >= static_cast<F>(std::numeric_limits<I>::max()))
        return std::numeric_limits<I>::max();
    return static_cast<I>(x);
}

template <Rounding kRounding, typename D, typename A>
D toInteger(A x)
{
    return clampedTo<D>(integral<kRounding>(x));
}

template <Rounding kRounding, typename A>
A toIntegral(A x)
{
    return integral<kRounding>(x);
}

template <typename D, typename A>
D converted(A x)
{
    return static_cast<D>(x);
}

// To [0, 1]; a NaN becomes 0.
float saturated(float x)
{
    return x > 0.0F ? std::min(x, 1.0F) : 0.0F;
}

std::uint16_t bf16Of(float x)
{
    const auto bits = std::bit_cast<std::uint32_t>(x);
    if (std::isnan(x))
        return 0x7fff; // cvt writes this for every NaN
    return static_cast<std::uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}

std::uint32_t bf16Pair(float high, float low)
{
    return (static_cast<std::uint32_t>(bf16Of(high)) << 16) | bf16Of(low);
}

// A: the type that is read, R: of the register, which may be wider.
template <typename D, typename A, typename R>
D narrowed(R x)
{
    return static_cast<D>(static_cast<A>(x));
}

template <typename D, typename A>
Execute narrowedOf(int registerBytes)
{
    if (registerBytes == 2)
        return unary<narrowed<D, A, std::uint16_t>, D, std::uint16_t>;
    if (registerBytes == 4)
        return unary<narrowed<D, A, std::uint32_t>, D, std::uint32_t>;
    return unary<narrowed<D, A, std::uint64_t>, D, std::uint64_t>;
}

template <typename D>
Execute fromInteger(std::string_view type, int registerBytes)
{
    if (type == "s8")
        return narrowedOf<D, std::int8_t>(registerBytes);
    if (type == "u8")
        return narrowedOf<D, std::uint8_t>(registerBytes);
    return byInteger(
        type, [&]<typename A>() -> Execute { return narrowedOf<D, A>(registerBytes); });
}

template <Rounding kRounding>
Execute fromFloat(std::string_view to, std::string_view from)
{
    return byFloat(from, [&]<typename A>() -> Execute {
        if (to == from)
            return unary<toIntegral<kRounding, A>, A, A>;
        return byInteger(
            to, []<typename D>() -> Execute { return unary<toInteger<kRounding, D, A>, D, A>; });
    });
}

// To 8 bits, with its sign in the other 8 of the register.
template <typename A>
std::int16_t lowByte(A x)
{
    return static_cast<std::int8_t>(x);
}

} // namespace

Execute conversionOp(const OpName& op, int sourceBytes)
{
    if (op.first() != "cvt")
        return nullptr;
    if (op.is("cvt.rn.bf16x2.f32"))
        return binary<bf16Pair, std::uint32_t, float>;
    if (op.is("cvt.rn.bf16.f32"))
        return unary<bf16Of, std::uint16_t, float>;
    if (op.is("cvt.sat.f32.f32"))
        return unary<saturated, float, float>;
    if (op.is("cvt.f64.f32"))
        return unary<converted<double, float>, double, float>;
    if (op.is("cvt.rn.f32.f64"))
        return unary<converted<float, double>, float, double>;
    const std::string_view from = op.last();
    const std::string_view to = op.parts[op.parts.size() - 2];
    if (op.parts.size() == 3 && to == "s8")
        return byInteger(
            from, []<typename A>() -> Execute { return unary<lowByte<A>, std::int16_t, A>; });
    if (op.parts.size() == 3) // between integers
        return byInteger(
            to, [&]<typename D>() -> Execute { return fromInteger<D>(from, sourceBytes); });
    if (op.parts.size() != 4)
        return nullptr;
    const std::string_view how = op.parts[1];
    if (how == "rn")
        return byFloat(
            to, [&]<typename D>() -> Execute { return fromInteger<D>(from, sourceBytes); });
    if (how == "rni")
        return fromFloat<Rounding::Nearest>(to, from);
    if (how == "rzi")
        return fromFloat<Rounding::Zero>(to, from);
    if (how == "rmi")
        return fromFloat<Rounding::Down>(to, from);
    return how == "rpi" ? fromFloat<Rounding::Up>(to, from) : nullptr;
}

Execute packOp(bool unpacks, int wholeBytes)
{
    if (wholeBytes == 8)
        return unpacks ? unpack<std::uint64_t, std::uint32_t> : pack<std::uint64_t, std::uint32_t>;
    return unpacks ? unpack<std::uint32_t, std::uint16_t> : pack<std::uint32_t, std::uint16_t>;
}

} // namespace mr::ptx
