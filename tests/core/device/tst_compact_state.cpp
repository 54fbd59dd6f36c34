#include "core/device/compact_arrays.h"
#include "core/device/side_by_side.h"
#include "support/test_room.h"

#include <QTest>

#include <hwy/highway.h>
#include <hwy/targets.h>

#include <numeric>

namespace mr::test::tst_compact_state {

namespace {

constexpr AdamwSettings kSettings{0.9, 0.999, 1e-8, 0.01};

} // namespace

class TestCompactState : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void cleanup()
    {
        hwy::SetSupportedTargetsForTest(0);
        hwy::GetChosenTarget().DeInit();
    }

    void everyInstructionSetGivesTheWrittenBits_data()
    {
        QTest::addColumn<std::int64_t>("target");
        const std::int64_t supported = hwy::SupportedTargets();
        // The last: a virtual machine may hide AES, and Highway then takes it for no better.
        for (const std::int64_t target :
            {std::int64_t{HWY_AVX2}, std::int64_t{HWY_AVX3}, std::int64_t{HWY_SSSE3}})
            if ((supported & target) != 0)
                QTest::newRow(hwy::TargetName(target)) << target;
    }

    // Every length up to two groups and a bit, so every short group; then a long one.
    void everyInstructionSetGivesTheWrittenBits()
    {
        QFETCH(const std::int64_t, target);
        hwy::SetSupportedTargetsForTest(target);
        hwy::GetChosenTarget().DeInit();
        std::vector<std::size_t> lengths(68);
        std::iota(lengths.begin(), lengths.end(), std::size_t{0});
        lengths.push_back(5000);
        for (const bool isBf16 : {false, true})
            for (const bool decayed : {false, true})
                for (const std::size_t n : lengths) {
                    const AdamwFactors factors = adamwFactors(kSettings, 1e-3, 3);
                    const Gradients grad(n, static_cast<unsigned>(n) + 1, isBf16);
                    CompactArrays fast = someState(n, static_cast<unsigned>(n));
                    CompactArrays slow = fast;

                    adamwCompactUpdate(
                        fast.all(), grad.from(0), grad.type(), factors, 0.37F, decayed);
                    updateInOrder(slow, grad.wide, factors, 0.37F, decayed);

                    QVERIFY2(fast.equals(slow), qPrintable(QString::number(n)));
                }
    }

    void everyInstructionSetEncodesAndDecodesAlike_data()
    {
        everyInstructionSetGivesTheWrittenBits_data();
    }

    void everyInstructionSetEncodesAndDecodesAlike()
    {
        QFETCH(const std::int64_t, target);
        hwy::SetSupportedTargetsForTest(target);
        hwy::GetChosenTarget().DeInit();
        for (const std::size_t n : {std::size_t{1}, std::size_t{31}, std::size_t{1000}}) {
            const Plain plain = somePlain(n, 5);
            CompactArrays fast(n);
            CompactArrays slow(n);
            std::vector<CompactValue> values(n);
            for (std::size_t i = 0; i < n; ++i)
                values[i] = {plain.master[i], plain.m[i], std::sqrt(plain.v[i])};

            encodeCompact(plain.master.data(), plain.m.data(), plain.v.data(), fast.all());
            const Plain back = decoded(fast);

            for (std::size_t first = 0; first < n; first += kCompactGroup)
                encodeReferenceGroup(
                    values.data(), first, std::min(n, first + kCompactGroup), slow.all());
            QVERIFY(fast.equals(slow));
            for (std::size_t i = 0; i < n; ++i) {
                const CompactValue want = decodeReference(slow.all(), i);
                QVERIFY(back.master[i] == want.p && back.m[i] == want.m);
                QVERIFY(back.v[i] == want.root * want.root);
            }
        }
    }

    void everyCutAtABlockGivesTheSameBits()
    {
        constexpr std::size_t kCount = 5000;
        const AdamwFactors factors = adamwFactors(kSettings, 1e-3, 1);
        const Gradients grad(kCount, 8, true);
        const CompactArrays start = someState(kCount, 1);
        CompactArrays whole = start;
        adamwCompactUpdate(whole.all(), grad.from(0), grad.type(), factors, 1.0F, true);
        for (std::size_t cut = 0; cut <= kCount; cut += 1024) {
            CompactArrays parts = start;
            adamwCompactUpdate(parts.range(0, cut), grad.from(0), grad.type(), factors, 1.0F, true);
            adamwCompactUpdate(
                parts.range(cut, kCount - cut), grad.from(cut), grad.type(), factors, 1.0F, true);
            QVERIFY(parts.equals(whole));
        }
    }

    void nothingOutsideTheRangeIsTouched()
    {
        const CompactArrays start = someState(160, 2);
        CompactArrays state = start;
        CompactArrays inside = start;
        const Gradients grad(160, 3, false);
        const AdamwFactors factors = adamwFactors(kSettings, 0.1, 1);

        adamwCompactUpdate(state.range(64, 45), grad.from(64), DType::F32, factors, 1.0F, true);

        QVERIFY(!state.equals(start));
        const auto restore = [&](auto& got, const auto& was, std::size_t first, std::size_t end) {
            for (std::size_t i = first; i < end; ++i)
                got[i] = was[i];
        };
        restore(state.weight, inside.weight, 64, 109);
        restore(state.remainder, inside.remainder, 64, 109);
        restore(state.m, inside.m, 64, 109);
        restore(state.v, inside.v, 64, 109);
        restore(state.mScale, inside.mScale, 2, 4);
        restore(state.vScale, inside.vScale, 2, 4);
        QVERIFY(state.equals(start));
    }

    // Half a step of each code. p: 1 / 254 of half a unit in the last place. m: 1 / 254 of y, where
    // dx / dy = (1 + x)^2 / 2; 1.01 for the curve over half a step. root: 1 / 510 of the largest,
    // and 1 / 255 below code 1. Plus a few roundings (2^-20), and for the smallest masters 127
    // times the rounding of a denormal step, 2^-150.
    void aRoundTripStaysWithinHalfAStep()
    {
        constexpr std::size_t kCount = 20000;
        const Plain plain = somePlain(kCount, 4);
        CompactArrays state(kCount);
        encodeCompact(plain.master.data(), plain.m.data(), plain.v.data(), state.all());
        const Plain back = decoded(state);
        for (std::size_t i = 0; i < kCount; ++i) {
            const double p = wide(plain.master[i]);
            const double unit = wide(exponentUnit(bf16Value(state.weight[i])));
            QVERIFY(std::fabs(wide(back.master[i]) - p) <=
                    unit / 65024.0 + std::fabs(p) * 0x1p-24 + 0x1p-143);
            const double mScale = wide(state.mScale[i / kCompactGroup]);
            const double share = 1.01 + std::fabs(wide(plain.m[i])) / mScale;
            QVERIFY(std::fabs(wide(back.m[i]) - wide(plain.m[i])) <=
                    mScale * (share * share / 508.0 + 0x1p-20));
            const double vScale = wide(state.vScale[i / kCompactGroup]);
            const double root = std::sqrt(wide(plain.v[i]));
            const double step = root < vScale / 255.0 ? 1.0 / 255.0 : 1.0 / 510.0;
            QVERIFY(std::fabs(std::sqrt(wide(back.v[i])) - root) <= vScale * (step + 0x1p-20));
        }
    }

    void whatWasDecodedEncodesToTheSameCodes()
    {
        constexpr std::size_t kCount = 20000;
        CompactArrays state = someState(kCount, 6);
        const Plain plain = decoded(state);
        CompactArrays again(kCount);
        encodeCompact(plain.master.data(), plain.m.data(), plain.v.data(), again.all());
        QCOMPARE(again.m, state.m);
        QCOMPARE(again.v, state.v);
        QCOMPARE(decoded(again).master, plain.master);
    }

    // The master against algorithm 2 of the paper in double: half a step of the codec, two
    // roundings of p and four of an update, which is at most lr / (1 - beta1) * sqrt(1 - beta2^t)
    // times m / root.
    void oneUpdateOfTheMasterFollowsTheFormula()
    {
        constexpr std::size_t kCount = 5000;
        const AdamwFactors f = adamwFactors(kSettings, 1e-3, 7);
        const Gradients grad(kCount, 11, false);
        CompactArrays state = someState(kCount, 12);
        const Plain before = decoded(state);

        adamwCompactUpdate(state.all(), grad.from(0), DType::F32, f, 1.0F, true);

        const Plain after = decoded(state);
        for (std::size_t i = 0; i < kCount; ++i) {
            const double g = wide(grad.wide[i]);
            const double oldM = 0.9 * wide(before.m[i]);
            const double m = oldM + 0.1 * g;
            const double v = 0.999 * wide(before.v[i]) + 0.001 * g * g;
            const double d = std::sqrt(v / (1.0 - std::pow(0.999, 7.0))) + 1e-8;
            const double rate = 1e-3 / (1.0 - std::pow(0.9, 7.0));
            const double want = wide(before.master[i]) * (1.0 - 1e-3 * 0.01) - rate * m / d;
            const double terms = rate * (std::fabs(oldM) + std::fabs(0.1 * g)) / d;
            const double unit = wide(exponentUnit(bf16Value(state.weight[i])));
            const double tolerance =
                unit / 65024.0 + 0x1p-143 +
                0x1p-24 * (4.0 * std::fabs(wide(before.master[i])) + 16.0 * terms);
            QVERIFY(std::fabs(wide(after.master[i]) - want) <= tolerance);
        }
    }

    void zerosStayZeros()
    {
        constexpr std::size_t kCount = 100;
        CompactArrays state(kCount);
        const std::vector<float> grad(kCount, 0.0F);
        for (int step = 1; step <= 5; ++step)
            adamwCompactUpdate(state.all(), grad.data(), DType::F32,
                adamwFactors(kSettings, 1e-3, step), 1.0F, true);
        const Plain plain = decoded(state);
        const std::vector<float> zeros(kCount, 0.0F);
        QCOMPARE(plain.master, zeros);
        QCOMPARE(plain.m, zeros);
        QCOMPARE(plain.v, zeros);
        QCOMPARE(state.v, std::vector<std::uint8_t>(kCount, 0));
        QCOMPARE(state.remainder, std::vector<std::int8_t>(kCount, 0));
    }

    void tiesGoToTheEvenCode()
    {
        Plain plain(kCompactGroup);
        plain.master[0] = std::bit_cast<float>(0x3F808000U); // half way, and 0x3F80 is even
        plain.master[1] = std::bit_cast<float>(0x3F818000U);
        plain.master[2] = std::bit_cast<float>(0x3F808001U);
        plain.v[0] = 255.0F * 255.0F; // a root is its code
        plain.v[1] = 2.5F * 2.5F;
        plain.v[2] = 3.5F * 3.5F;
        CompactArrays state(kCompactGroup);
        encodeCompact(plain.master.data(), plain.m.data(), plain.v.data(), state.all());
        QCOMPARE(state.weight[0], std::uint16_t{0x3F80});
        QCOMPARE(int{state.remainder[0]}, 127);
        QCOMPARE(state.weight[1], std::uint16_t{0x3F82});
        QCOMPARE(int{state.remainder[1]}, -127);
        QCOMPARE(state.weight[2], std::uint16_t{0x3F81});
        QCOMPARE(int{state.v[1]}, 2);
        QCOMPARE(int{state.v[2]}, 4);
    }

    void theLargestMastersKeepTheirWeightOnly()
    {
        Plain plain(kCompactGroup);
        plain.master[0] = 0x1.012p127F;
        plain.master[1] = 0x1.012p126F;
        plain.master[2] = 0x1.012p-126F;
        CompactArrays state(kCompactGroup);
        encodeCompact(plain.master.data(), plain.m.data(), plain.v.data(), state.all());
        QCOMPARE(int{state.remainder[0]}, 0);
        QVERIFY(int{state.remainder[1]} != 0);
        QCOMPARE(state.remainder[2], state.remainder[1]);
        QCOMPARE(decoded(state).master[0], 0x1.02p127F);
    }

    void aRootAboveZeroNeverGetsCodeZero()
    {
        Plain plain(kCompactGroup);
        plain.v = std::vector<float>(kCompactGroup, 1e-30F);
        plain.v[3] = 1.0F;
        plain.v[4] = 0.0F;
        CompactArrays state(kCompactGroup);
        encodeCompact(plain.master.data(), plain.m.data(), plain.v.data(), state.all());
        for (std::size_t i = 0; i < kCompactGroup; ++i)
            QCOMPARE(int{state.v[i]}, i == 3 ? 255 : i == 4 ? 0 : 1);
    }

    void updatesFollowThoseOfThePlainState_data()
    {
        QTest::addColumn<double>("scale");
        for (const double scale : {1e-2, 1e-4, 1e-7, 1e-8})
            QTest::addRow("gradients of %g", scale) << scale;
    }

    // The bounds leave half as much again as a simulation measured: 0.13 and 1.96
    // (optimizers_and_schedules of the reference, 9.4). This test: 0.12 and 1.9.
    void updatesFollowThoseOfThePlainState()
    {
        QFETCH(const double, scale);
        SideBySide both(scale);
        both.run(300, RootCodes::AtLeastOne);
        qInfo("largest update %.3f lr, error %.4f", both.largestUpdate(), both.error());
        QVERIFY(both.largestUpdate() < 3.0);
        QVERIFY(both.error() < 0.2);
    }

    void withoutTheLeastCodeUpdatesBlowUp()
    {
        SideBySide both(1e-2);
        both.run(300, RootCodes::Any);
        qInfo("largest update %.1f lr", both.largestUpdate());
        QVERIFY(both.largestUpdate() > 30.0);
    }

    void theBytesAreCounted()
    {
        QCOMPARE(compactStateBytes(0), std::size_t{0});
        QCOMPARE(compactStateBytes(1), std::size_t{13});
        QCOMPARE(compactStateBytes(1024), std::size_t{5376});
        QCOMPARE(compactStateBytes(1025), std::size_t{5376 + 13});
    }
};

MR_TEST(TestCompactState)

} // namespace mr::test::tst_compact_state

#include "tst_compact_state.moc"
