// Parts of laneOp, and the loops over lanes that they share.

#pragma once

#include "gpu/ptx/decode.h"
#include "gpu/ptx/warp.h"

#include <cmath>
#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <string_view>
#include <type_traits>

namespace mr::ptx {

// Null if the instruction is of another kind.
Execute integerOp(const OpName& op);
Execute wordOp(const OpName& op); // bits of a register, moves, selections
Execute floatOp(const OpName& op);
Execute predicateOp(const OpName& op);
Execute compareOp(const OpName& op);
Execute conversionOp(const OpName& op, int sourceBytes);

template <auto F, typename D, typename A>
void unary(Warp& warp, const Step& step, Mask lanes)
{
    D* const d = warp.lanes<D>(step.slots[0]);
    const A* const a = warp.lanes<A>(step.slots[1]);
    forLanes(lanes, [&](int i) { d[i] = F(a[i]); });
}

template <auto F, typename D, typename A, typename B = A>
void binary(Warp& warp, const Step& step, Mask lanes)
{
    D* const d = warp.lanes<D>(step.slots[0]);
    const A* const a = warp.lanes<A>(step.slots[1]);
    const B* const b = warp.lanes<B>(step.slots[2]);
    forLanes(lanes, [&](int i) { d[i] = F(a[i], b[i]); });
}

template <auto F, typename D, typename A, typename C = A>
void ternary(Warp& warp, const Step& step, Mask lanes)
{
    D* const d = warp.lanes<D>(step.slots[0]);
    const A* const a = warp.lanes<A>(step.slots[1]);
    const A* const b = warp.lanes<A>(step.slots[2]);
    const C* const c = warp.lanes<C>(step.slots[3]);
    forLanes(lanes, [&](int i) { d[i] = F(a[i], b[i], c[i]); });
}

// f(a, b); integers wrap.
template <typename T, typename F>
T wrapping(T a, T b, F f)
{
    if constexpr (std::floating_point<T>)
        return f(a, b);
    else
        return static_cast<T>(f(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b)));
}

template <typename T>
T added(T a, T b)
{
    return wrapping(a, b, std::plus<>());
}

template <typename T>
T subtracted(T a, T b)
{
    return wrapping(a, b, std::minus<>());
}

template <typename T>
T multiplied(T a, T b)
{
    return wrapping(a, b, std::multiplies<>());
}

// Division by zero of integers is undefined on a card; all ones is what cards give.
template <typename T>
T divided(T a, T b)
{
    if constexpr (std::floating_point<T>)
        return a / b;
    else if (b == 0)
        return static_cast<T>(-1);
    else if (std::signed_integral<T> && a == std::numeric_limits<T>::min() &&
             b == static_cast<T>(-1))
        return a;
    else
        return static_cast<T>(a / b);
}

// A NaN loses against a number; -0 is less than +0.
template <typename T>
T smaller(T a, T b)
{
    if constexpr (std::floating_point<T>) {
        if (std::isnan(a) || std::isnan(b))
            return std::isnan(a) ? b : a;
        if (a == b)
            return std::signbit(a) ? a : b;
    }
    return b < a ? b : a;
}

template <typename T>
T larger(T a, T b)
{
    if constexpr (std::floating_point<T>) {
        if (std::isnan(a) || std::isnan(b))
            return std::isnan(a) ? b : a;
        if (a == b)
            return std::signbit(a) ? b : a;
    }
    return a < b ? b : a;
}

template <typename T>
T negated(T a)
{
    if constexpr (std::floating_point<T>)
        return -a;
    else
        return subtracted<T>(0, a);
}

template <typename T>
T absolute(T a)
{
    if constexpr (std::floating_point<T>)
        return std::fabs(a);
    else
        return a < 0 ? negated(a) : a;
}

// Instructions that integers and floating point have alike; null if `name` is none of them.
template <typename T>
Execute sumOf(std::string_view name)
{
    if (name == "add")
        return binary<added<T>, T, T>;
    return name == "sub" ? binary<subtracted<T>, T, T> : Execute(nullptr);
}

template <typename T>
Execute orderOf(std::string_view name)
{
    if (name == "min")
        return binary<smaller<T>, T, T>;
    if (name == "max")
        return binary<larger<T>, T, T>;
    if (name == "neg")
        return unary<negated<T>, T, T>;
    return name == "abs" ? unary<absolute<T>, T, T> : Execute(nullptr);
}

// f.template operator()<T>() for the type that a suffix names; null if it is none of these.
template <typename F>
Execute byInteger(std::string_view type, F f)
{
    if (type == "s16")
        return f.template operator()<std::int16_t>();
    if (type == "u16" || type == "b16")
        return f.template operator()<std::uint16_t>();
    if (type == "s32")
        return f.template operator()<std::int32_t>();
    if (type == "u32" || type == "b32")
        return f.template operator()<std::uint32_t>();
    if (type == "s64")
        return f.template operator()<std::int64_t>();
    if (type == "u64" || type == "b64")
        return f.template operator()<std::uint64_t>();
    return nullptr;
}

template <typename F>
Execute byFloat(std::string_view type, F f)
{
    if (type == "f32")
        return f.template operator()<float>();
    if (type == "f64")
        return f.template operator()<double>();
    return nullptr;
}

template <typename F>
Execute byType(std::string_view type, F f)
{
    Execute found = byInteger(type, f);
    return found ? found : byFloat(type, f);
}

} // namespace mr::ptx
