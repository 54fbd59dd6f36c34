#include "gpu/ptx/block.h"
#include "gpu/ptx/decode.h"
#include "gpu/ptx/warp.h"

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <concepts>
#include <cstring>
#include <functional>
#include <limits>
#include <type_traits>

// Instructions of one lane: integers, F32 and F64, predicates, conversions. Rounding is to nearest
// even unless the instruction says otherwise; denormals are kept except where it says .ftz.

namespace mr::ptx {
namespace {

template <typename T>
using Unsigned = std::make_unsigned_t<T>;

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

template <typename T>
T remainderOf(T a, T b)
{
    if (b == 0 || (std::signed_integral<T> && b == static_cast<T>(-1)))
        return b == 0 ? a : T(0);
    return static_cast<T>(a % b);
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
T fusedNearest(T a, T b, T c)
{
    return std::fma(a, b, c);
}

// fma under a rounding of the host's; volatile, so that nothing is computed before it is set.
template <int kRounding>
float fusedRounded(float a, float b, float c)
{
    const int before = std::fegetround();
    std::fesetround(kRounding);
    volatile float x = a;
    volatile float result = std::fma(x, b, c);
    std::fesetround(before);
    return result;
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

void insertField(Warp& warp, const Step& step, Mask lanes) // bfi.b32 d, field, base, at, length
{
    auto* const d = warp.lanes<std::uint32_t>(step.slots[0]);
    const auto* const field = warp.lanes<std::uint32_t>(step.slots[1]);
    const auto* const base = warp.lanes<std::uint32_t>(step.slots[2]);
    const auto* const at = warp.lanes<std::uint32_t>(step.slots[3]);
    const auto* const length = warp.lanes<std::uint32_t>(step.slots[4]);
    forLanes(lanes, [&](int i) {
        const std::uint32_t from = at[i] & 0xffU;
        const std::uint32_t count = length[i] & 0xffU;
        const std::uint32_t ones = count >= 32 ? ~0U : (1U << count) - 1U;
        const std::uint32_t mask = from >= 32 ? 0 : ones << from;
        d[i] = (base[i] & ~mask) | (from >= 32 ? 0 : (field[i] << from) & mask);
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

float flushed(float x)
{
    return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0F, x) : x;
}

// Approximate functions, correctly rounded here.
float exp2Flushed(float x)
{
    return flushed(std::exp2(flushed(x)));
}

float exp2Kept(float x)
{
    return std::exp2(x);
}

template <bool kFlush>
float reciprocal(float x)
{
    const float y = 1.0F / (kFlush ? flushed(x) : x);
    return kFlush ? flushed(y) : y;
}

template <typename T>
T inverse(T x)
{
    return T(1) / x;
}

template <typename T>
T root(T x)
{
    return std::sqrt(x);
}

template <typename T>
T signFrom(T sign, T magnitude)
{
    return std::copysign(magnitude, sign);
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

// An approximate function and its documented error: relative, 2^-kErrorBits.
template <auto F, int kErrorBits>
void approximate(Warp& warp, const Step& step, Mask lanes)
{
    float* const d = warp.lanes<float>(step.slots[0]);
    const float* const a = warp.lanes<float>(step.slots[1]);
    forLanes(
        lanes, [&](int i) { d[i] = warp.block->blurred(F(a[i]), std::ldexp(1.0F, -kErrorBits)); });
}

// --- predicates: one word a register -----------------------------------------------------------

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

template <typename T>
void select(Warp& warp, const Step& step, Mask lanes)
{
    T* const d = warp.lanes<T>(step.slots[0]);
    const T* const a = warp.lanes<T>(step.slots[1]);
    const T* const b = warp.lanes<T>(step.slots[2]);
    const Mask p = warp.predicate(step.slots[3]);
    forLanes(lanes, [&](int i) { d[i] = ((p >> i) & 1U) != 0 ? a[i] : b[i]; });
}

// --- conversions -------------------------------------------------------------------------------

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

// --- from names to functions -------------------------------------------------------------------

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
        if (name == "add")
            return binary<added<T>, T, T>;
        if (name == "sub")
            return binary<subtracted<T>, T, T>;
        if (name == "div")
            return binary<divided<T>, T, T>;
        if (name == "rem")
            return binary<remainderOf<T>, T, T>;
        if (name == "min")
            return binary<smaller<T>, T, T>;
        if (name == "max")
            return binary<larger<T>, T, T>;
        if (name == "neg")
            return unary<negated<T>, T, T>;
        if (name == "abs")
            return unary<absolute<T>, T, T>;
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

// Only what rounds to nearest and keeps denormals, and what is listed by name.
Execute floatOp(const OpName& op)
{
    if (op.is("fma.rm.f32"))
        return ternary<fusedRounded<FE_DOWNWARD>, float, float>;
    if (op.is("fma.rp.f32"))
        return ternary<fusedRounded<FE_UPWARD>, float, float>;
    if (op.is("ex2.approx.ftz.f32"))
        return approximate<exp2Flushed, 22>;
    if (op.is("ex2.approx.f32"))
        return approximate<exp2Kept, 22>;
    if (op.is("rcp.approx.ftz.f32"))
        return approximate<reciprocal<true>, 23>;
    const std::string_view name = op.first();
    const bool isNearest = op.parts.size() == 3 && op.parts[1] == "rn";
    if (!isNearest && op.parts.size() != 2)
        return nullptr;
    return byFloat(op.last(), [&]<typename T>() -> Execute {
        if (isNearest) {
            if (name == "fma")
                return ternary<fusedNearest<T>, T, T>;
            if (name == "add")
                return binary<added<T>, T, T>;
            if (name == "sub")
                return binary<subtracted<T>, T, T>;
            if (name == "mul")
                return binary<multiplied<T>, T, T>;
            if (name == "div")
                return binary<divided<T>, T, T>;
            if (name == "sqrt")
                return unary<root<T>, T, T>;
            return name == "rcp" ? unary<inverse<T>, T, T> : Execute(nullptr);
        }
        if (name == "add") // without a rounding it is .rn, which may be contracted
            return binary<added<T>, T, T>;
        if (name == "sub")
            return binary<subtracted<T>, T, T>;
        if (name == "mul")
            return binary<multiplied<T>, T, T>;
        if (name == "min")
            return binary<smaller<T>, T, T>;
        if (name == "max")
            return binary<larger<T>, T, T>;
        if (name == "neg")
            return unary<negated<T>, T, T>;
        if (name == "abs")
            return unary<absolute<T>, T, T>;
        return name == "copysign" ? binary<signFrom<T>, T, T> : Execute(nullptr);
    });
}

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

template <Compare kCompare, bool kUnordered>
Execute compareOf(std::string_view type)
{
    if constexpr (kUnordered)
        return byFloat(type, []<typename T>() -> Execute { return compare<kCompare, T, true>; });
    else
        return byType(type, []<typename T>() -> Execute { return compare<kCompare, T, false>; });
}

Execute setpOp(const OpName& op)
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

Execute wordOp(const OpName& op)
{
    if (op.is("prmt.b32"))
        return ternary<permuted, std::uint32_t, std::uint32_t>;
    if (op.is("bfi.b32"))
        return insertField;
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

Execute cvtOp(const OpName& op, int sourceBytes)
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

} // namespace

Execute laneOp(const OpName& op, int sourceBytes)
{
    if (const Execute found = cvtOp(op, sourceBytes))
        return found;
    for (const auto decode : {predicateOp, setpOp, wordOp, floatOp, integerOp})
        if (const Execute found = decode(op))
            return found;
    return nullptr;
}

Execute packOp(bool unpacks, int wholeBytes)
{
    if (wholeBytes == 8)
        return unpacks ? unpack<std::uint64_t, std::uint32_t> : pack<std::uint64_t, std::uint32_t>;
    return unpacks ? unpack<std::uint32_t, std::uint16_t> : pack<std::uint32_t, std::uint16_t>;
}

} // namespace mr::ptx
