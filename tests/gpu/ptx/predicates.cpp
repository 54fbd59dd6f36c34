// Predicates, a mask of 32 bits each, and comparisons, which make them.

#include "gpu/ptx/lane_ops.h"

#include <cmath>
#include <cstdint>
#include <string_view>

namespace mr::ptx {
namespace {

enum class Logic : std::uint8_t { And, Or, Xor, Not, Move };

template <Logic kLogic>
void predicates(Warp& warp, const Step& step, Mask lanes)
{
    const Mask a = warp.predicate(step.slots[1]);
    const Mask b =
        kLogic == Logic::Not || kLogic == Logic::Move ? 0 : warp.predicate(step.slots[2]);
    Mask out = a;
    if constexpr (kLogic == Logic::And)
        out = a & b;
    else if constexpr (kLogic == Logic::Or)
        out = a | b;
    else if constexpr (kLogic == Logic::Xor)
        out = a ^ b;
    else if constexpr (kLogic == Logic::Not)
        out = ~a;
    Mask& d = warp.predicate(step.slots[0]);
    d = (d & ~lanes) | (out & lanes);
}

enum class Compare : std::uint8_t { Eq, Ne, Lt, Le, Gt, Ge };

template <Compare kCompare, typename T>
bool holds(T a, T b)
{
    if constexpr (kCompare == Compare::Eq)
        return a == b;
    else if constexpr (kCompare == Compare::Ne)
        return a < b || a > b; // false for a NaN
    else if constexpr (kCompare == Compare::Lt)
        return a < b;
    else if constexpr (kCompare == Compare::Le)
        return a <= b;
    else if constexpr (kCompare == Compare::Gt)
        return a > b;
    else
        return a >= b;
}

// kUnordered: also true if one is a NaN.
template <Compare kCompare, typename T, bool kUnordered>
void compare(Warp& warp, const Step& step, Mask lanes)
{
    const T* const a = warp.lanes<T>(step.slots[1]);
    const T* const b = warp.lanes<T>(step.slots[2]);
    Mask out = 0;
    forLanes(lanes, [&](int i) {
        bool is = holds<kCompare>(a[i], b[i]);
        if constexpr (kUnordered)
            is = is || std::isnan(a[i]) || std::isnan(b[i]);
        out |= static_cast<Mask>(is) << i;
    });
    Mask& d = warp.predicate(step.slots[0]);
    d = (d & ~lanes) | out;
}

template <Compare kCompare, bool kUnordered>
Execute compareOf(std::string_view type)
{
    if constexpr (kUnordered)
        return byFloat(type, []<typename T>() -> Execute { return compare<kCompare, T, true>; });
    else
        return byType(type, []<typename T>() -> Execute { return compare<kCompare, T, false>; });
}

} // namespace

Execute predicateOp(const OpName& op)
{
    if (op.is("and.pred"))
        return predicates<Logic::And>;
    if (op.is("or.pred"))
        return predicates<Logic::Or>;
    if (op.is("xor.pred"))
        return predicates<Logic::Xor>;
    if (op.is("not.pred"))
        return predicates<Logic::Not>;
    return op.is("mov.pred") ? predicates<Logic::Move> : nullptr;
}

Execute compareOp(const OpName& op)
{
    if (op.first() != "setp" || op.parts.size() != 3)
        return nullptr;
    const std::string_view how = op.parts[1];
    const std::string_view type = op.last();
    if (how == "eq")
        return compareOf<Compare::Eq, false>(type);
    if (how == "ne")
        return compareOf<Compare::Ne, false>(type);
    if (how == "lt" || how == "lo")
        return compareOf<Compare::Lt, false>(type);
    if (how == "le" || how == "ls")
        return compareOf<Compare::Le, false>(type);
    if (how == "gt" || how == "hi")
        return compareOf<Compare::Gt, false>(type);
    if (how == "ge" || how == "hs")
        return compareOf<Compare::Ge, false>(type);
    if (how == "equ")
        return compareOf<Compare::Eq, true>(type);
    if (how == "neu")
        return compareOf<Compare::Ne, true>(type);
    if (how == "ltu")
        return compareOf<Compare::Lt, true>(type);
    if (how == "leu")
        return compareOf<Compare::Le, true>(type);
    if (how == "gtu")
        return compareOf<Compare::Gt, true>(type);
    return how == "geu" ? compareOf<Compare::Ge, true>(type) : nullptr;
}

} // namespace mr::ptx
