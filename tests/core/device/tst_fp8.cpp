// The two FP8 formats and the scale of a tensor, over every code and every BF16.

#include "core/device/fp8.h"
#include "support/test_room.h"

#include <QTest>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace mr::test::tst_fp8 {

namespace {

float bf16(std::uint32_t bits)
{
    return std::bit_cast<float>(bits << 16);
}

// By the definition: (-1)^s 2^(e - bias) (1 + m / 2^M), without the 1 and with e = 1 where e is 0.
template <typename Code>
double valueOf(std::uint32_t code)
{
    const int mantissa = static_cast<int>(code) & ((1 << Code::kMantissa) - 1);
    const int exponent = (static_cast<int>(code) & 0x7F) >> Code::kMantissa;
    const double fraction = std::ldexp(mantissa, -Code::kMantissa);
    const double size = exponent == 0 ? std::ldexp(fraction, 1 - Code::kBias)
                                      : std::ldexp(1.0 + fraction, exponent - Code::kBias);
    return (code & 0x80U) == 0 ? size : -size;
}

// The code of sign 0 nearest to `size`: of two the one that is even; past the largest, the largest.
template <typename Code>
std::uint32_t nearest(double size)
{
    if (size > valueOf<Code>(Code::kLargest)) // distances of huge numbers do not differ
        return Code::kLargest;
    std::uint32_t best = 0;
    for (std::uint32_t code = 1; code <= Code::kLargest; ++code) {
        const double distance = std::abs(size - valueOf<Code>(code));
        const double least = std::abs(size - valueOf<Code>(best));
        if (distance < least || (distance == least && code % 2 == 0))
            best = code;
    }
    return best;
}

template <typename Code>
void checkEveryCode()
{
    for (std::uint32_t sign : {0U, 0x80U})
        for (std::uint32_t code = 0; code <= Code::kLargest; ++code) {
            const Code written{static_cast<std::uint8_t>(sign | code)};
            const float value = toFloat(written);
            QCOMPARE(static_cast<double>(value), valueOf<Code>(sign | code));
            QCOMPARE(std::signbit(value), sign != 0);
            QCOMPARE(fp8Of<Code>(value).bits, written.bits);
            QCOMPARE(std::bit_cast<std::uint32_t>(value) & 0xFFFFU, 0U); // exact in BF16
        }
}

template <typename Code>
void checkEveryBf16()
{
    for (std::uint32_t bits = 0; bits < 0x7F80U; ++bits) {
        const std::uint32_t want = nearest<Code>(static_cast<double>(bf16(bits)));
        QCOMPARE(std::uint32_t{fp8Of<Code>(bf16(bits)).bits}, want);
        QCOMPARE(std::uint32_t{fp8Of<Code>(bf16(bits | 0x8000U)).bits}, want | 0x80U);
    }
}

// Halves of steps, and the numbers next to them.
template <typename Code>
void checkEveryHalf()
{
    for (std::uint32_t code = 0; code < Code::kLargest; ++code) {
        const double half = (valueOf<Code>(code) + valueOf<Code>(code + 1)) / 2.0;
        const auto middle = static_cast<float>(half);
        QCOMPARE(static_cast<double>(middle), half);
        QCOMPARE(std::uint32_t{fp8Of<Code>(middle).bits}, code + code % 2);
        QCOMPARE(std::uint32_t{fp8Of<Code>(std::nextafter(middle, 0.0F)).bits}, code);
        QCOMPARE(std::uint32_t{fp8Of<Code>(std::nextafter(middle, 1e6F)).bits}, code + 1);
    }
}

template <typename Code>
void checkEveryScale()
{
    const double most = valueOf<Code>(Code::kLargest);
    for (std::uint32_t bits = 1; bits < 0x7F80U; ++bits) {
        const Fp8Scale scale = fp8Scale<Code>(bits);
        const auto factor = static_cast<double>(scale.factor);
        const auto largest = static_cast<double>(bf16(bits));
        QCOMPARE(factor * static_cast<double>(scale.scale), 1.0);
        QCOMPARE(std::exp2(std::round(std::log2(factor))), factor);
        QVERIFY(largest * factor <= most);
        QVERIFY(largest * factor * 2.0 > most || factor == std::exp2(126.0));
    }
}

} // namespace

class TestFp8 : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void largestNumbersAreThoseOfTheFormats()
    {
        QCOMPARE(toFloat(E4m3{E4m3::kLargest}), 448.0F);
        QCOMPARE(toFloat(E5m2{E5m2::kLargest}), 57344.0F);
        QCOMPARE(toFloat(E4m3{1}), std::ldexp(1.0F, -9));
        QCOMPARE(toFloat(E5m2{1}), std::ldexp(1.0F, -16));
    }

    void everyCodeIsTheNumberOfItsBitsAndComesBack()
    {
        checkEveryCode<E4m3>();
        checkEveryCode<E5m2>();
    }

    void everyNumberGetsTheNearestCode()
    {
        checkEveryBf16<E4m3>();
        checkEveryBf16<E5m2>();
        checkEveryHalf<E4m3>();
        checkEveryHalf<E5m2>();
        const float infinity = std::numeric_limits<float>::infinity();
        QCOMPARE(std::uint32_t{fp8Of<E4m3>(infinity).bits}, E4m3::kLargest);
        QCOMPARE(std::uint32_t{fp8Of<E5m2>(-infinity).bits}, E5m2::kLargest | 0x80U);
    }

    void theScaleIsTheSmallestPowerOfTwoThatKeepsAllWithinTheFormat()
    {
        checkEveryScale<E4m3>();
        checkEveryScale<E5m2>();
        QCOMPARE(fp8Scale<E4m3>(0).scale, 1.0F);
        for (const std::uint32_t bits : {0x7F80U, 0x7FC0U, 0x7FFFU}) // infinity, NaN
            QVERIFY(
                std::isnan(fp8Scale<E4m3>(bits).scale) && std::isnan(fp8Scale<E5m2>(bits).scale));
    }
};

MR_TEST_WITH_APP(TestFp8)

} // namespace mr::test::tst_fp8

#include "tst_fp8.moc"
