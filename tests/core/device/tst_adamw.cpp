#include "core/device/adamw.h"
#include "core/device/adamw_state.h"
#include "support/test_room.h"

#include <QTest>

#include <hwy/highway.h>
#include <hwy/targets.h>

#include <numeric>

namespace mr::test::tst_adamw {

class TestAdamw : public QObject
{
    Q_OBJECT

    static constexpr AdamwSettings kSettings{0.9, 0.999, 1e-8, 0.01};

private Q_SLOTS:

    void cleanup()
    {
        hwy::SetSupportedTargetsForTest(0);
        hwy::GetChosenTarget().DeInit();
    }

    void everyInstructionSetGivesTheBitsOfOneElementAtATime_data()
    {
        QTest::addColumn<std::int64_t>("target");
        const std::int64_t supported = hwy::SupportedTargets();
        // The last: a virtual machine may hide AES, and Highway then takes it for no better.
        for (const std::int64_t target :
            {std::int64_t{HWY_AVX2}, std::int64_t{HWY_AVX3}, std::int64_t{HWY_SSSE3}})
            if ((supported & target) != 0)
                QTest::newRow(hwy::TargetName(target)) << target;
    }

    // Every length up to a few vectors, so every tail; then a long one.
    void everyInstructionSetGivesTheBitsOfOneElementAtATime()
    {
        QFETCH(const std::int64_t, target);
        hwy::SetSupportedTargetsForTest(target);
        hwy::GetChosenTarget().DeInit();
        std::vector<std::size_t> lengths(68);
        std::iota(lengths.begin(), lengths.end(), std::size_t{0});
        lengths.push_back(5000);
        for (const DType type : {DType::BF16, DType::F32}) {
            for (const bool decayed : {false, true}) {
                for (const std::size_t n : lengths) {
                    const AdamwFactors factors = adamwFactors(kSettings, 1e-3, 3);
                    AdamwState fast(n, static_cast<unsigned>(n));
                    AdamwState slow = fast;

                    adamwUpdate(fast.range(type, 0, n), factors, 0.37F, decayed);
                    referenceUpdate(slow, type, factors, 0.37F, decayed, 0, n);

                    QVERIFY2(fast.equals(slow), qPrintable(QString::number(n)));
                }
            }
        }
    }

    void everyCutGivesTheSameBits()
    {
        constexpr std::size_t kCount = 257;
        const AdamwFactors factors = adamwFactors(kSettings, 1e-3, 1);
        const AdamwState start(kCount, 1);
        AdamwState whole = start;
        adamwUpdate(whole.range(DType::BF16, 0, kCount), factors, 1.0F, true);
        for (std::size_t cut = 0; cut <= kCount; ++cut) {
            AdamwState parts = start;
            adamwUpdate(parts.range(DType::BF16, 0, cut), factors, 1.0F, true);
            adamwUpdate(parts.range(DType::BF16, cut, kCount - cut), factors, 1.0F, true);
            QVERIFY(parts.equals(whole));
        }
    }

    void nothingOutsideTheRangeIsTouched()
    {
        const AdamwState start(100, 2);
        AdamwState state = start;
        adamwUpdate(state.range(DType::F32, 33, 34), adamwFactors(kSettings, 0.1, 1), 1.0F, true);
        for (std::size_t i = 0; i < 100; ++i) {
            if (i >= 33 && i < 67)
                continue;
            QCOMPARE(state.high[i], start.high[i]);
            QCOMPARE(state.low[i], start.low[i]);
            QCOMPARE(state.m[i], start.m[i]);
            QCOMPARE(state.v[i], start.v[i]);
        }
    }

    void aMasterIsItsTwoHalvesWithoutLoss()
    {
        // A prime step visits every exponent, the denormals, infinities and NaNs among them.
        for (std::uint64_t bits = 0; bits <= UINT32_MAX; bits += 8191) {
            const auto pattern = static_cast<std::uint32_t>(bits);
            const auto value = std::bit_cast<float>(pattern);
            const float back = joinHalves(highHalf(value), lowHalf(value));
            QCOMPARE(std::bit_cast<std::uint32_t>(back), pattern);
        }
        QCOMPARE(highHalf(std::bit_cast<float>(0x3F808000U)), std::uint16_t{0x3F81}); // half: up
        QCOMPARE(highHalf(std::bit_cast<float>(0x3F807FFFU)), std::uint16_t{0x3F80});
    }

    // Against algorithm 2 of the paper in double precision, ten steps. Each step adds at most a few
    // roundings of the update and of the weight: 10 * 8 ulp of a number near 1 is 1e-5.
    void tenStepsFollowTheFormula()
    {
        constexpr double kLr = 0.01;
        constexpr std::size_t kCount = 19;
        AdamwState state(kCount, 3);
        std::vector<double> p(kCount);
        std::vector<double> m(kCount, 0.0);
        std::vector<double> v(kCount, 0.0);
        for (std::size_t i = 0; i < kCount; ++i) {
            const float start = 0.1F * static_cast<float>(i) - 0.9F;
            p[i] = static_cast<double>(start);
            state.high[i] = highHalf(start);
            state.low[i] = lowHalf(start);
            state.m[i] = state.v[i] = 0.0F;
            state.grad32[i] = std::sin(static_cast<float>(i) + 1.0F);
        }
        for (int step = 1; step <= 10; ++step) {
            adamwUpdate(
                state.range(DType::F32, 0, kCount), adamwFactors(kSettings, kLr, step), 1.0F, true);
            for (std::size_t i = 0; i < kCount; ++i) {
                const auto g = static_cast<double>(state.grad32[i]);
                m[i] = 0.9 * m[i] + 0.1 * g;
                v[i] = 0.999 * v[i] + 0.001 * g * g;
                const double mHat = m[i] / (1.0 - std::pow(0.9, step));
                const double vHat = v[i] / (1.0 - std::pow(0.999, step));
                p[i] -= kLr * 0.01 * p[i];
                p[i] -= kLr * mHat / (std::sqrt(vHat) + 1e-8);
            }
        }
        for (std::size_t i = 0; i < kCount; ++i) {
            const auto got = static_cast<double>(joinHalves(state.high[i], state.low[i]));
            QVERIFY(std::fabs(got - p[i]) < 1e-5);
        }
    }

    // A constant gradient leaves the same m and v either way, and each step is as long as the rate:
    // one update in place of four, with four times the rate, ends where four do. It follows 120
    // steps, so that the bias of m is gone and that of v is not.
    void oneUpdateInThePlaceOfFourEndsWhereTheyDo()
    {
        constexpr std::size_t kCount = 33;
        const AdamwSettings noDecay = {0.9, 0.999, 1e-8, 0.0};
        AdamwState each(kCount, 4);
        std::fill(each.m.begin(), each.m.end(), 0.0F);
        std::fill(each.v.begin(), each.v.end(), 0.0F);
        const auto update = [&](AdamwState& state, const AdamwFactors& factors) {
            adamwUpdate(state.range(DType::F32, 0, kCount), factors, 1.0F, true);
        };
        for (int step = 1; step <= 120; ++step)
            update(each, adamwFactors(noDecay, 1e-3, step));
        AdamwState once = each;
        for (int step = 121; step <= 124; ++step)
            update(each, adamwFactors(noDecay, 1e-3, step));
        update(once, adamwFactors(noDecay, 4e-3, 124, 4));

        for (std::size_t i = 0; i < kCount; ++i) {
            QVERIFY(std::fabs(once.m[i] - each.m[i]) <= 1e-5F * std::fabs(each.m[i]));
            QVERIFY(std::fabs(once.v[i] - each.v[i]) <= 1e-5F * std::fabs(each.v[i]));
            const float difference =
                joinHalves(once.high[i], once.low[i]) - joinHalves(each.high[i], each.low[i]);
            QVERIFY2(std::fabs(difference) < 4e-6F, qPrintable(QString::number(difference)));
        }
    }
};

MR_TEST(TestAdamw)

} // namespace mr::test::tst_adamw

#include "tst_adamw.moc"
