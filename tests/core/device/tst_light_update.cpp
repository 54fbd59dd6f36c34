#include "core/device/light_weight.h"
#include "support/rig.h"
#include "support/test_room.h"

#include <QTest>

#include <algorithm>
#include <array>
#include <limits>

namespace mr::test::tst_light_update {

namespace {

constexpr std::array kAllFormats{
    MasterPlanes::Halves, MasterPlanes::Bits24, MasterPlanes::Random16};

std::unique_ptr<Device> deviceOf(int threads)
{
    CpuDeviceOptions options;
    options.memoryBytes = std::size_t{1} << 20;
    options.threads = threads;
    return std::move(makeCpuDevice(options).value());
}

// sqrt of the mean of (g * clipFactor / (rowRoot * columnRoot))^2, in double.
double rmsOfUpdate(const LightWeight& weight, const std::vector<float>& grad, bool hasRoots)
{
    const std::size_t cols = weight.columnRoots.size();
    double squares = 0.0;
    for (std::size_t i = 0; i < grad.size(); ++i) {
        double u = static_cast<double>(grad[i]) * static_cast<double>(weight.scalars.clipFactor);
        if (hasRoots)
            u /= static_cast<double>(weight.rowRoots[i / cols]) *
                 static_cast<double>(weight.columnRoots[i % cols]);
        squares += u * u;
    }
    return std::sqrt(squares / static_cast<double>(grad.size()));
}

// `count` BF16 weights of 1, or -1, after a step by `distance` away from 0.
std::vector<float> movedOnes(Device& device, std::size_t count, float sign, float distance)
{
    auto stream = device.createStream("test").value();
    LightWeight weight(1, static_cast<std::int64_t>(count), std::vector<float>(count, sign),
        MasterPlanes::Random16);
    weight.size[0] = distance;
    std::vector<float> grad(count, -sign);
    LightSettings settings;
    settings.rule = StepRule::Normalised;
    if (!weight.update(device.ops(), *stream, settings, grad, 0, static_cast<std::int64_t>(count))
             .ok())
        return {};
    return weight.masters();
}

} // namespace

class TestLightUpdate : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void noUpdateIsLargerThanItsLimit_data()
    {
        QTest::addColumn<double>("scale");
        for (const double scale : {1e-8, 1e-3, 30.0})
            QTest::addRow("gradients of %g", scale) << scale;
    }

    // Gradients grow tenfold a step, so that the averages lag behind.
    void noUpdateIsLargerThanItsLimit()
    {
        QFETCH(const double, scale);
        const auto device = deviceOf(1);
        for (const auto& [rows, cols] : {std::pair{1, 300}, std::pair{70, 33}, std::pair{3, 2000}})
            for (const StepRule rule : {StepRule::Limited, StepRule::Normalised}) {
                LightWeight weight(rows, cols, normals(rows * cols, 1), MasterPlanes::Halves);
                LightSettings settings;
                settings.rule = rule;
                settings.limit = rule == StepRule::Limited ? 0.5F : 1.0F;
                weight.scalars.clipFactor = 0.7F;
                for (int time = 1; time <= 4; ++time) {
                    std::vector<float> grad = normals(rows * cols, static_cast<unsigned>(time));
                    for (float& g : grad)
                        g *= static_cast<float>(scale * std::pow(10.0, time - 1));

                    QVERIFY(weight.step(*device, settings, time, grad).ok());

                    const double length = rmsOfUpdate(weight, grad, rule == StepRule::Limited) *
                                          static_cast<double>(weight.size[0] / settings.rate);
                    QVERIFY(length > 0.1);
                    QVERIFY2(length <= static_cast<double>(settings.limit) * (1.0 + 1e-6),
                        qPrintable(QString::number(length, 'g', 12)));
                }
            }
    }

    void randomRoundingIsRightInTheMean_data()
    {
        QTest::addColumn<float>("sign");
        QTest::addColumn<double>("share");
        for (const float sign : {1.0F, -1.0F})
            for (const double share : {0.03125, 0.3, 0.5, 0.9})
                QTest::addRow("%g of a step from %g", share, static_cast<double>(sign))
                    << sign << share;
    }

    // A step of BF16 at 1 is 2^-7. Within 4 sigma of a million draws.
    void randomRoundingIsRightInTheMean()
    {
        QFETCH(const float, sign);
        QFETCH(const double, share);
        constexpr std::size_t kDraws = 1'000'000;
        const auto device = deviceOf(2);
        const auto distance = static_cast<float>(share * 0x1p-7);
        const std::vector<float> ones = movedOnes(*device, kDraws, sign, distance);
        QCOMPARE(ones.size(), kDraws);
        // 1 + distance was rounded to a float first.
        const double exact = static_cast<double>((1.0F + distance) - 1.0F) * 0x1p7;
        double moved = 0.0;
        for (const float one : ones) {
            QVERIFY(one == sign || one == sign * (1.0F + 0x1p-7F));
            moved += one == sign ? 0.0 : 1.0;
        }
        const double sigma = std::sqrt(exact * (1.0 - exact) / static_cast<double>(kDraws));
        const double difference = moved / static_cast<double>(kDraws) - exact;
        QVERIFY2(
            std::abs(difference) <= 4.0 * sigma, qPrintable(QString::number(difference / sigma)));
    }

    void randomRoundingKeepsWhatBf16Holds()
    {
        const auto device = deviceOf(1);
        for (const float sign : {1.0F, -1.0F})
            for (const float distance : {0.0F, 0x1p-7F, 0x5p-7F}) {
                const std::vector<float> ones = movedOnes(*device, 70'000, sign, distance);
                const std::vector<float> want(70'000, sign * (1.0F + distance));
                QCOMPARE(ones, want);
            }
    }

    void rowsThatWereNeverSeenKeepTheirBits_data()
    {
        QTest::addColumn<int>("format");
        for (const MasterPlanes format : kAllFormats)
            QTest::addRow("format %d", static_cast<int>(format)) << static_cast<int>(format);
    }

    // An embedding, in which every third row gets gradients, of 1e-8. Masters are compared: one of
    // 24 bits half way between two weights may be kept beside either.
    void rowsThatWereNeverSeenKeepTheirBits()
    {
        QFETCH(const int, format);
        constexpr std::int64_t kRows = 50;
        constexpr std::int64_t kCols = 33;
        const auto device = deviceOf(1);
        LightWeight weight(
            kRows, kCols, normals(kRows * kCols, 3), static_cast<MasterPlanes>(format));
        const LightWeight start = weight;
        for (int time = 1; time <= 20; ++time) {
            std::vector<float> grad = normals(kRows * kCols, static_cast<unsigned>(time));
            for (std::size_t i = 0; i < grad.size(); ++i)
                grad[i] = i / kCols % 3 == 0 ? 1e-8F * grad[i] : 0.0F;
            QVERIFY(weight.step(*device, {}, time, grad).ok());
        }
        const std::vector<float> before = start.masters();
        const std::vector<float> after = weight.masters();
        std::size_t moved = 0;
        for (std::size_t i = 0; i < after.size(); ++i) {
            QVERIFY(std::isfinite(after[i]));
            if (i / kCols % 3 == 0)
                moved += after[i] == before[i] ? 0 : 1;
            else
                QCOMPARE(after[i], before[i]);
        }
        QVERIFY(moved > after.size() / 4); // of a third; in 16 bits some come back
    }

    void everyCutGivesTheBitsOfTheWhole_data() { rowsThatWereNeverSeenKeepTheirBits_data(); }

    void everyCutGivesTheBitsOfTheWhole()
    {
        QFETCH(const int, format);
        constexpr std::int64_t kRows = 5;
        constexpr std::int64_t kCols = 37;
        const auto device = deviceOf(1);
        auto stream = device->createStream("test").value();
        Ops& ops = device->ops();
        std::vector<float> grad = normals(kRows * kCols, 5);
        LightWeight start(
            kRows, kCols, normals(kRows * kCols, 4), static_cast<MasterPlanes>(format));
        const LightSettings settings;
        QVERIFY(start.average(ops, *stream, 1, grad).ok());
        QVERIFY(start.setSize(ops, *stream, settings, grad).ok());
        LightWeight whole = start;
        QVERIFY(whole.update(ops, *stream, settings, grad, 0, kRows * kCols).ok());
        QVERIFY(!whole.equals(start));
        for (std::int64_t cut = 0; cut <= kRows * kCols; ++cut) {
            LightWeight parts = start;
            QVERIFY(parts.update(ops, *stream, settings, grad, 0, cut).ok());
            QVERIFY(parts.update(ops, *stream, settings, grad, cut, kRows * kCols - cut).ok());
            QVERIFY2(parts.equals(whole), qPrintable(QString::number(cut)));
        }
    }

    void threadsChangeNoBit_data() { rowsThatWereNeverSeenKeepTheirBits_data(); }

    void threadsChangeNoBit()
    {
        QFETCH(const int, format);
        for (const auto& [rows, cols] : {std::pair{1100, 130}, std::pair{3, 50'000}}) {
            const LightWeight start(
                rows, cols, normals(rows * cols, 6), static_cast<MasterPlanes>(format));
            LightWeight one = start;
            LightWeight two = start;
            LightWeight seven = start;
            for (int time = 1; time <= 2; ++time) {
                const std::vector<float> grad =
                    normals(rows * cols, static_cast<unsigned>(10 + time));
                QVERIFY(one.step(*deviceOf(1), {}, time, grad).ok());
                QVERIFY(two.step(*deviceOf(2), {}, time, grad).ok());
                QVERIFY(seven.step(*deviceOf(7), {}, time, grad).ok());
            }
            QVERIFY(!one.equals(start));
            QVERIFY(two.equals(one));
            QVERIFY(seven.equals(one));
        }
    }

    void aGradientThatIsNotFiniteChangesNothing_data()
    {
        rowsThatWereNeverSeenKeepTheirBits_data();
    }

    void aGradientThatIsNotFiniteChangesNothing()
    {
        QFETCH(const int, format);
        constexpr std::int64_t kRows = 9;
        constexpr std::int64_t kCols = 70;
        const auto device = deviceOf(1);
        LightWeight weight(
            kRows, kCols, normals(kRows * kCols, 7), static_cast<MasterPlanes>(format));
        QVERIFY(weight.step(*device, {}, 1, normals(kRows * kCols, 8)).ok());
        const LightWeight before = weight;
        std::vector<float> grad = normals(kRows * kCols, 9);
        grad[100] = std::numeric_limits<float>::quiet_NaN();
        weight.scalars.finite = 0;

        QVERIFY(weight.step(*device, {}, 2, grad).ok());

        QVERIFY(weight.equals(before));
    }
};

MR_TEST(TestLightUpdate)

} // namespace mr::test::tst_light_update

#include "tst_light_update.moc"
