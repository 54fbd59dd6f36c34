#include "gpu/ptx/instruction_cases.h"

#include <bit>
#include <limits>

namespace mr::ptx {
namespace {

constexpr std::uint64_t f(float x)
{
    return std::bit_cast<std::uint32_t>(x);
}

constexpr std::uint64_t e(double x)
{
    return std::bit_cast<std::uint64_t>(x);
}

// A negative number in so many bits.
constexpr std::uint64_t h(int x)
{
    return static_cast<std::uint16_t>(x);
}

constexpr std::uint64_t r(int x)
{
    return static_cast<std::uint32_t>(x);
}

constexpr std::uint64_t d(std::int64_t x)
{
    return static_cast<std::uint64_t>(x);
}

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kTiny = std::numeric_limits<float>::denorm_min();
constexpr float kEps = std::numeric_limits<float>::epsilon(); // 2^-23
constexpr std::uint64_t kNanBits = 0x7fc00000;
constexpr std::uint64_t kWideNan = 0x7ff8000000000000;

using Cases = std::vector<InstructionCase>;

void addIntegers(Cases& cases)
{
    cases.insert(
        cases.end(), {
                         {"add.s16", 'h', "hh", {0x7fff, 2}, 0x8001}, // wraps
                         {"min.u32", 'r', "rr", {0x80000000, 7}, 7},
                         {"rem.s32", 'r', "rr", {r(-7), 3}, r(-1)},
                         {"selp.s32", 'r', "rrp", {r(-7), 3, 1}, r(-7)},
                         {"selp.s32", 'r', "rrp", {r(-7), 3, 0}, 3},
                         {"setp.gt.u16", 'p', "hh", {0x8000, 7}, 1},
                         {"setp.gt.u16", 'p', "hh", {7, 7}, 0},
                         {"add.s32", 'r', "rr", {r(-5), 3}, r(-2)},
                         {"add.s32", 'r', "rr", {0x7fffffff, 1}, 0x80000000},
                         {"add.s64", 'd', "dd", {d(-1), 0x100000000}, 0xffffffff},
                         {"sub.s16", 'h', "hh", {2, 5}, h(-3)},
                         {"sub.s32", 'r', "rr", {2, 5}, r(-3)},
                         {"sub.s64", 'd', "dd", {0, 1}, d(-1)},
                         {"mul.lo.s16", 'h', "hh", {300, 300}, 0x5f90}, // 90,000 = 0x15f90
                         {"mul.lo.s32", 'r', "rr", {0x10001, 0x10001}, 0x20001},
                         {"mul.lo.s64", 'd', "dd", {d(-3), 5}, d(-15)},
                         {"mul.hi.u16", 'h', "hh", {300, 300}, 1},
                         {"mul.wide.s32", 'd', "rr", {r(-2), 3}, d(-6)},
                         {"mul.wide.u32", 'd', "rr", {0xffffffff, 2}, 0x1fffffffe},
                         {"mul.wide.u16", 'r', "hh", {0xffff, 0xffff}, 0xfffe0001},
                         {"mad.lo.s32", 'r', "rrr", {r(-2), 3, 10}, 4},
                         {"mad.lo.s64", 'd', "ddd", {0x100000000, 3, 1}, 0x300000001},
                         {"div.s32", 'r', "rr", {r(-7), 2}, r(-3)}, // towards zero
                         {"div.u32", 'r', "rr", {0xfffffff9, 2}, 0x7ffffffc},
                         {"div.s64", 'd', "dd", {d(-9), 4}, d(-2)},
                         {"div.u64", 'd', "dd", {d(-1), 2}, 0x7fffffffffffffff},
                         {"rem.u32", 'r', "rr", {0xfffffff9, 10}, 9}, // 4,294,967,289
                         {"rem.s64", 'd', "dd", {d(-9), 4}, d(-1)},   // the sign of the dividend
                         {"min.s32", 'r', "rr", {r(-1), 1}, r(-1)},
                         {"min.s64", 'd', "dd", {d(-1), 1}, d(-1)},
                         {"max.s32", 'r', "rr", {r(-1), 1}, 1},
                         {"max.s64", 'd', "dd", {d(-1), 1}, 1},
                         {"max.u32", 'r', "rr", {0xffffffff, 1}, 0xffffffff},
                         {"max.u64", 'd', "dd", {d(-1), 1}, d(-1)},
                         {"neg.s32", 'r', "r", {5}, r(-5)},
                         {"neg.s64", 'd', "d", {5}, d(-5)},
                     });
}

void addBits(Cases& cases)
{
    cases.insert(cases.end(),
        {
            {"and.b16", 'h', "hh", {0x0ff0, 0x3c3c}, 0x0c30},
            {"and.b32", 'r', "rr", {0x0ff00ff0, 0x3c3c3c3c}, 0x0c300c30},
            {"and.b64", 'd', "dd", {0xff00ff00ff00ff00, 0x0ff00ff00ff00ff0}, 0x0f000f000f000f00},
            {"or.b16", 'h', "hh", {0x0ff0, 0x300c}, 0x3ffc},
            {"or.b32", 'r', "rr", {0x0ff00000, 0x300c}, 0x0ff0300c},
            {"or.b64", 'd', "dd", {0xff00000000000000, 0x0f}, 0xff0000000000000f},
            {"xor.b32", 'r', "rr", {0xffff0000, 0x0ff00ff0}, 0xf00f0ff0},
            {"xor.b64", 'd', "dd", {0xffff0000ffff0000, 0x0ff000000ff00ff0}, 0xf00f0000f00f0ff0},
            {"not.b32", 'r', "r", {0x0000ffff}, 0xffff0000},
            {"not.b64", 'd', "d", {0xffff}, 0xffffffffffff0000},
            {"shl.b16", 'h', "hr", {0x0101, 8}, 0x0100},
            {"shl.b32", 'r', "rr", {1, 31}, 0x80000000},
            {"shl.b32", 'r', "rr", {1, 32}, 0}, // clamped, not modulo
            {"shl.b64", 'd', "dr", {1, 63}, 0x8000000000000000},
            {"shr.s16", 'h', "hr", {0xFFF8, 1}, 0xFFFC},
            {"shr.s32", 'r', "rr", {r(-8), 1}, r(-4)},
            {"shr.s32", 'r', "rr", {r(-8), 99}, r(-1)},
            {"shr.s64", 'd', "dr", {d(-8), 2}, d(-2)},
            {"shr.u16", 'h', "hr", {0x8000, 15}, 1},
            {"shr.u32", 'r', "rr", {0x80000000, 31}, 1},
            {"shr.u32", 'r', "rr", {0x80000000, 32}, 0},
            {"shr.u64", 'd', "dr", {0x8000000000000000, 63}, 1},
            {"bfe.u32", 'r', "rrr", {0xabcd1234, 8, 8}, 0x12},
            {"bfe.u32", 'r', "rrr", {0xabcd1234, 28, 8}, 0x0a},
            {"bfi.b32", 'r', "rrrr", {0x1ff, 0xffffffff, 8, 4}, 0xffffffff},
            {"bfi.b32", 'r', "rrrr", {0x5, 0, 8, 4}, 0x500},
            {"bfi.b64", 'd', "ddrr", {d(-1), 0xff, 8, 56}, d(-1)},
            {"bfi.b64", 'd', "ddrr", {0x5, 0xf0000000000000ff, 40, 4}, 0xf0000500000000ff},
            {"prmt.b32", 'r', "rrr", {0x33221100, 0x77665544, 0x5410}, 0x55441100},
            {"prmt.b32", 'r', "rrr", {0x33221180, 0, 0x3218}, 0x332211ff}, // the sign of byte 0
            {"selp.b16", 'h', "hhp", {1, 2, 1}, 1},
            {"selp.b32", 'r', "rrp", {1, 2, 0}, 2},
            {"selp.b64", 'd', "ddp", {1, 2, 1}, 1},
            {"selp.f32", 'f', "ffp", {f(1), f(2), 0}, f(2)},
            {"selp.u16", 'h', "hhp", {1, 2, 0}, 2},
            {"selp.u32", 'r', "rrp", {1, 2, 1}, 1},
            {"selp.u64", 'd', "ddp", {1, 2, 0}, 2},
            {"mov.b16", 'h', "h", {0x1234}, 0x1234},
            {"mov.u16", 'h', "h", {0x1234}, 0x1234},
            {"mov.b32", 'f', "r", {0x3f800000}, f(1)},
            {"mov.u32", 'r', "r", {7}, 7},
            {"mov.f32", 'f', "f", {f(-2)}, f(-2)},
            {"mov.b64", 'd', "d", {d(-3)}, d(-3)},
            {"mov.u64", 'd', "d", {d(-3)}, d(-3)},
            {"mov.f64", 'e', "e", {e(0.1)}, e(0.1)},
            {"cvta.to.global.u64", 'd', "d", {0x123456789}, 0x123456789},
        });
}

void addFloats(Cases& cases)
{
    cases.insert(cases.end(),
        {
            {"abs.f32", 'f', "f", {f(-0.0F)}, f(0.0F)}, {"abs.f64", 'e', "e", {e(-2.5)}, e(2.5)},
            {"neg.f32", 'f', "f", {f(0.0F)}, f(-0.0F)},
            {"add.rn.f32", 'f', "ff", {f(1.0F), f(kEps / 2)}, f(1.0F)}, // a tie, even
            {"add.rn.f32", 'f', "ff", {f(1.0F + kEps), f(kEps / 2)},
                f(1.0F + 2 * kEps)},                            // a tie, up
            {"add.rn.f32", 'f', "ff", {f(kTiny), f(kTiny)}, 2}, // denormals are kept
            {"add.rn.f64", 'e', "ee", {e(0.1), e(0.2)}, 0x3fd3333333333334},
            {"sub.rn.f32", 'f', "ff", {f(1.0F), f(1.0F)}, f(0.0F)},
            {"mul.rn.f32", 'f', "ff", {f(1.0F + kEps), f(1.0F + kEps)}, f(1.0F + 2 * kEps)},
            {"fma.rn.f32", 'f', "fff", {f(1.0F + kEps), f(1.0F + kEps), f(-1.0F - 2 * kEps)},
                f(kEps * kEps)}, // one rounding
            {"fma.rm.f32", 'f', "fff", {f(1.0F), f(1.0F), f(kEps / 4)}, f(1.0F)},
            {"fma.rm.f32", 'f', "fff", {f(1.0F), f(-1.0F), f(-kEps / 4)}, f(-1.0F - kEps)},
            {"div.rn.f32", 'f', "ff", {f(1.0F), f(3.0F)}, 0x3eaaaaab},
            {"div.rn.f32", 'f', "ff", {f(1.0F), f(-0.0F)}, f(-kInfinity)},
            {"div.rn.f64", 'e', "ee", {e(1.0), e(3.0)}, 0x3fd5555555555555},
            {"sqrt.rn.f32", 'f', "f", {f(2.0F)}, 0x3fb504f3},
            {"sqrt.rn.f64", 'e', "e", {e(2.0)}, 0x3ff6a09e667f3bcd},
            {"rcp.rn.f32", 'f', "f", {f(3.0F)}, 0x3eaaaaab},
            {"rcp.approx.ftz.f32", 'f', "f", {f(4.0F)}, f(0.25F)},
            {"rcp.approx.ftz.f32", 'f', "f", {f(kTiny)}, f(kInfinity)}, // a denormal is 0
            {"ex2.approx.ftz.f32", 'f', "f", {f(3.0F)}, f(8.0F)},
            {"ex2.approx.ftz.f32", 'f', "f", {f(-130.0F)}, f(0.0F)}, // 2^-130 is a denormal
            {"ex2.approx.ftz.f32", 'f', "f", {f(-kInfinity)}, f(0.0F)},
            {"min.f32", 'f', "ff", {kNanBits, f(1.0F)}, f(1.0F)}, // a NaN loses
            {"min.f32", 'f', "ff", {f(0.0F), f(-0.0F)}, f(-0.0F)},
            {"min.f64", 'e', "ee", {e(2.0), e(1.0)}, e(1.0)},
            {"max.f32", 'f', "ff", {f(-3.0F), kNanBits}, f(-3.0F)},
            {"max.f32", 'f', "ff", {f(-0.0F), f(0.0F)}, f(0.0F)},
            {"copysign.f32", 'f', "ff", {f(-1.0F), f(5.0F)}, f(-5.0F)}, // the sign of the first
        });
}

void addConversions(Cases& cases)
{
    cases.insert(cases.end(),
        {
            {"cvt.f64.f32", 'e', "f", {f(0.1F)}, 0x3fb99999a0000000},
            {"cvt.rn.f32.f64", 'f', "e", {e(0.1)}, 0x3dcccccd},
            {"cvt.rn.bf16x2.f32", 'r', "ff", {f(1.0F), f(-2.0F)}, 0x3f80c000}, // the first is high
            {"cvt.rn.bf16x2.f32", 'r', "ff", {0x3f808000, 0x3f818000}, 0x3f803f82}, // ties to even
            {"cvt.rn.bf16x2.f32", 'r', "ff", {0x7f800001, f(kInfinity)}, 0x7fff7f80},
            {"cvt.rn.f32.s16", 'f', "h", {h(-5)}, f(-5.0F)},
            {"cvt.rn.f32.u16", 'f', "h", {0xffff}, f(65535.0F)},
            {"cvt.rn.f32.s32", 'f', "r", {0x01000001}, f(16777216.0F)}, // a tie, even
            {"cvt.rn.f32.s64", 'f', "d", {d(-1)}, f(-1.0F)},
            {"cvt.rni.s32.f32", 'r', "f", {f(2.5F)}, 2},
            {"cvt.rni.s32.f32", 'r', "f", {f(3.0e9F)}, 0x7fffffff},
            {"cvt.rni.s32.f32", 'r', "f", {kNanBits}, 0},
            {"cvt.rzi.s32.f32", 'r', "f", {f(-2.9F)}, r(-2)},
            {"cvt.sat.f32.f32", 'f', "f", {f(1.5F)}, f(1.0F)},
            {"cvt.sat.f32.f32", 'f', "f", {kNanBits}, f(0.0F)},
            {"cvt.s8.s32", 'h', "r", {0x12345680}, h(-128)},
            {"cvt.s8.s64", 'h', "d", {0x1234567f}, 0x7f},
            {"cvt.s16.s8", 'h', "h", {0x12fe}, h(-2)},
            {"cvt.s32.s16", 'r', "h", {h(-2)}, r(-2)},
            {"cvt.s64.s32", 'd', "r", {r(-2)}, d(-2)},
            {"cvt.s64.s32", 'd', "d", {0x1fffffffe}, d(-2)}, // of a wider register its low half
            {"cvt.u16.u32", 'h', "r", {0x12345678}, 0x5678},
            {"cvt.u16.u64", 'h', "d", {0x1234567887654321}, 0x4321},
            {"cvt.u32.u16", 'r', "h", {0xfffe}, 0xfffe},
            {"cvt.u32.u64", 'r', "d", {0x1234567887654321}, 0x87654321},
            {"cvt.u64.u16", 'd', "h", {0xfffe}, 0xfffe},
            {"cvt.u64.u32", 'd', "r", {0xfffffffe}, 0xfffffffe},
        });
}

// Ordered comparisons are false with a NaN, unordered ones true.
void addComparisons(Cases& cases)
{
    cases.insert(cases.end(), {
                                  {"setp.eq.b32", 'p', "rr", {5, 5}, 1},
                                  {"setp.eq.s16", 'p', "hh", {5, 6}, 0},
                                  {"setp.eq.s32", 'p', "rr", {r(-1), r(-1)}, 1},
                                  {"setp.eq.s64", 'p', "dd", {0x100000001, 1}, 0},
                                  {"setp.eq.b64", 'p', "dd", {0x100000001, 1}, 0},
                                  {"setp.eq.b64", 'p', "dd", {0x100000001, 0x100000001}, 1},
                                  {"setp.ne.s16", 'p', "hh", {5, 6}, 1},
                                  {"setp.ne.s32", 'p', "rr", {5, 5}, 0},
                                  {"setp.ne.s64", 'p', "dd", {0x100000001, 1}, 1},
                                  {"setp.lt.s32", 'p', "rr", {r(-1), 1}, 1},
                                  {"setp.lt.u32", 'p', "rr", {r(-1), 1}, 0},
                                  {"setp.lt.s64", 'p', "dd", {d(-1), 1}, 1},
                                  {"setp.lt.u64", 'p', "dd", {d(-1), 1}, 0},
                                  {"setp.le.s32", 'p', "rr", {1, 1}, 1},
                                  {"setp.le.u32", 'p', "rr", {r(-1), 1}, 0},
                                  {"setp.le.s64", 'p', "dd", {d(-1), 1}, 1},
                                  {"setp.le.u64", 'p', "dd", {d(-1), 1}, 0},
                                  {"setp.gt.s32", 'p', "rr", {r(-1), 1}, 0},
                                  {"setp.gt.u32", 'p', "rr", {r(-1), 1}, 1},
                                  {"setp.gt.s64", 'p', "dd", {d(-1), 1}, 0},
                                  {"setp.gt.u64", 'p', "dd", {d(-1), 1}, 1},
                                  {"setp.ge.s32", 'p', "rr", {r(-1), r(-1)}, 1},
                                  {"setp.ge.u32", 'p', "rr", {r(-1), 1}, 1},
                                  {"setp.ge.s64", 'p', "dd", {d(-1), 1}, 0},
                                  {"setp.ge.u64", 'p', "dd", {d(-1), 1}, 1},
                                  {"setp.eq.f32", 'p', "ff", {f(0.0F), f(-0.0F)}, 1},
                                  {"setp.eq.f32", 'p', "ff", {kNanBits, kNanBits}, 0},
                                  {"setp.lt.f32", 'p', "ff", {f(1.0F), kNanBits}, 0},
                                  {"setp.le.f32", 'p', "ff", {f(1.0F), f(1.0F)}, 1},
                                  {"setp.le.f32", 'p', "ff", {f(1.0F), kNanBits}, 0},
                                  {"setp.gt.f32", 'p', "ff", {f(2.0F), f(1.0F)}, 1},
                                  {"setp.ge.f32", 'p', "ff", {f(1.0F), f(1.0F)}, 1},
                                  {"setp.ge.f32", 'p', "ff", {kNanBits, f(1.0F)}, 0},
                                  {"setp.equ.f32", 'p', "ff", {kNanBits, f(1.0F)}, 1},
                                  {"setp.equ.f32", 'p', "ff", {f(2.0F), f(1.0F)}, 0},
                                  {"setp.neu.f32", 'p', "ff", {kNanBits, kNanBits}, 1},
                                  {"setp.neu.f32", 'p', "ff", {f(1.0F), f(1.0F)}, 0},
                                  {"setp.geu.f32", 'p', "ff", {kNanBits, f(1.0F)}, 1},
                                  {"setp.geu.f32", 'p', "ff", {f(0.0F), f(1.0F)}, 0},
                                  {"setp.leu.f32", 'p', "ff", {kNanBits, f(1.0F)}, 1},
                                  {"setp.leu.f32", 'p', "ff", {f(2.0F), f(1.0F)}, 0},
                                  {"setp.lt.f64", 'p', "ee", {e(1.0), e(2.0)}, 1},
                                  {"setp.lt.f64", 'p', "ee", {kWideNan, e(2.0)}, 0},
                                  {"setp.ne.f64", 'p', "ee", {e(1.0), e(2.0)}, 1},
                                  {"setp.ne.f64", 'p', "ee", {kWideNan, e(2.0)}, 0},
                                  {"setp.equ.f64", 'p', "ee", {kWideNan, e(2.0)}, 1},
                                  {"setp.geu.f64", 'p', "ee", {kWideNan, e(2.0)}, 1},
                                  {"setp.geu.f64", 'p', "ee", {e(1.0), e(2.0)}, 0},
                                  {"setp.leu.f64", 'p', "ee", {kWideNan, e(2.0)}, 1},
                                  {"and.pred", 'p', "pp", {1, 0}, 0},
                                  {"or.pred", 'p', "pp", {1, 0}, 1},
                                  {"xor.pred", 'p', "pp", {1, 1}, 0},
                                  {"not.pred", 'p', "p", {1}, 0},
                                  {"mov.pred", 'p', "p", {1}, 1},
                              });
}

} // namespace

const std::vector<InstructionCase>& instructionCases()
{
    static const Cases all = [] {
        Cases cases;
        addIntegers(cases);
        addBits(cases);
        addFloats(cases);
        addConversions(cases);
        addComparisons(cases);
        return cases;
    }();
    return all;
}

} // namespace mr::ptx
