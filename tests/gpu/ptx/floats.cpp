// F32 and F64. Rounding is to nearest even unless the instruction says otherwise; denormals are
// kept except where it says .ftz.

#include "gpu/ptx/block.h"
#include "gpu/ptx/lane_ops.h"

#include <cfenv>
#include <cmath>
#include <string_view>

namespace mr::ptx {
namespace {

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

// An approximate function and its documented error: relative, 2^-kErrorBits.
template <auto F, int kErrorBits>
void approximate(Warp& warp, const Step& step, Mask lanes)
{
    float* const d = warp.lanes<float>(step.slots[0]);
    const float* const a = warp.lanes<float>(step.slots[1]);
    forLanes(
        lanes, [&](int i) { d[i] = warp.block->blurred(F(a[i]), std::ldexp(1.0F, -kErrorBits)); });
}

} // namespace

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
        // Without a rounding it is .rn, which may be contracted.
        if (const Execute found = sumOf<T>(name))
            return found;
        if (name == "mul")
            return binary<multiplied<T>, T, T>;
        if (isNearest) {
            if (name == "fma")
                return ternary<fusedNearest<T>, T, T>;
            if (name == "div")
                return binary<divided<T>, T, T>;
            if (name == "sqrt")
                return unary<root<T>, T, T>;
            return name == "rcp" ? unary<inverse<T>, T, T> : Execute(nullptr);
        }
        if (const Execute found = orderOf<T>(name))
            return found;
        return name == "copysign" ? binary<signFrom<T>, T, T> : Execute(nullptr);
    });
}

} // namespace mr::ptx
