// The host machine itself: the faults it must notice, and the layouts it must keep.

#include "gpu/sample_kernels.h"
#include "gpu/simt/grid.h"
#include "support/test_room.h"

#include <QObject>
#include <QTest>

#include <bit>
#include <numeric>
#include <vector>

namespace mr::test::tst_simt {

using namespace mr::gpu;
using simt::Order;
using simt::Schedule;

namespace {

constexpr int kReversed = 200;

std::vector<float> ascending(std::size_t count)
{
    std::vector<float> values(count);
    std::iota(values.begin(), values.end(), 0.0F);
    return values;
}

std::vector<float> reversed(const Schedule& schedule, bool barrier, bool dynamic)
{
    simt::setSchedule(schedule);
    const std::vector<float> values = ascending(kReversed);
    std::vector<float> out(kReversed);
    const Status status = launchReverse(values.data(), out.data(), kReversed, barrier, dynamic);
    if (!status.ok())
        qFatal("%s", status.message().c_str());
    return out;
}

std::uint16_t bf16(float x)
{
    return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(x) >> 16);
}

// Small whole numbers: exact in BF16, and so is every sum.
std::vector<std::uint16_t> wholeNumbers(std::size_t count, int step)
{
    std::vector<std::uint16_t> values(count);
    for (std::size_t i = 0; i < count; ++i)
        values[i] = bf16(static_cast<float>(static_cast<int>(i) * step % 17 - 8));
    return values;
}

float valueOf(std::uint16_t bits)
{
    return std::bit_cast<float>(std::uint32_t{bits} << 16);
}

} // namespace

class TestSimt : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void init() { simt::setSchedule({}); }

    void everyOrderGivesTheSameBitsWithABarrier()
    {
        for (const bool dynamic : {false, true})
            for (const Order order : {Order::Ascending, Order::Descending, Order::Random}) {
                const std::vector<float> out = reversed({order, 3, false}, true, dynamic);
                for (std::size_t i = 0; i < out.size(); ++i)
                    QCOMPARE(out[i], static_cast<float>(kReversed - 1 - static_cast<int>(i)));
            }
    }

    void aMissingBarrierShowsUnderAnotherOrder()
    {
        for (const bool dynamic : {false, true}) {
            const auto first = reversed({Order::Ascending, 1, false}, false, dynamic);
            const auto second = reversed({Order::Descending, 1, false}, false, dynamic);
            const auto third = reversed({Order::Random, 5, false}, false, dynamic);
            // Not as numbers: elements read too early are NaN.
            QVERIFY(std::memcmp(first.data(), second.data(), first.size() * sizeof(float)) != 0);
            QVERIFY(std::memcmp(first.data(), third.data(), first.size() * sizeof(float)) != 0);
        }
    }

    void sharedMemoryHoldsNaNBeforeABlock()
    {
        // Twice: the second block must not see the values of the first one.
        for (int run = 0; run < 2; ++run)
            for (const bool dynamic : {false, true}) {
                const auto out = reversed({Order::Ascending, 1, false}, false, dynamic);
                QCOMPARE(std::bit_cast<std::uint32_t>(out[0]), 0xffffffffU);
            }
    }

    void aMisuseIsReportedAndTheNextKernelRuns_data()
    {
        QTest::addColumn<int>("misuse");
        QTest::addColumn<QString>("said");
        const auto row = [](const char* name, Misuse misuse, const char* said) {
            QTest::addRow("%s", name) << static_cast<int>(misuse) << QString::fromLatin1(said);
        };
        row("a barrier after half have left", Misuse::BarrierAfterReturn, "divergent barrier");
        row("a barrier in two places", Misuse::BarrierInTwoPlaces, "divergent barrier");
        row("a shuffle after a lane has left", Misuse::ShuffleAfterReturn,
            "waits at __shfl_xor_sync sample_kernels.cu:");
        row("a shuffle in two places", Misuse::ShuffleInTwoPlaces, "deadlock");
        row("a shuffle from outside", Misuse::ShuffleFromOutside, "not in the mask");
        row("a lane outside its mask", Misuse::LaneOutsideItsMask, "not in its own mask");
        row("a misaligned copy", Misuse::MisalignedCopy, "not aligned to 16 bytes");
        row("no dynamic memory", Misuse::NoDynamicMemory, "the launch asked for none");
    }

    void aMisuseIsReportedAndTheNextKernelRuns()
    {
        QFETCH(const int, misuse);
        QFETCH(const QString, said);
        std::vector<float> out(64);
        for (const Order order : {Order::Ascending, Order::Descending, Order::Random}) {
            simt::setSchedule({order, 11, false});

            const Status status = launchMisuse(static_cast<Misuse>(misuse), out.data());

            const QString message = QString::fromStdString(status.message());
            QVERIFY(!status.ok());
            QCOMPARE(status.kind(), ErrorKind::DeviceLost);
            QVERIFY2(message.contains(said), qPrintable(message));
            QVERIFY2(message.startsWith(QStringLiteral("misuse: ")), qPrintable(message));
            QVERIFY2(message.contains(QStringLiteral("block (0, 0, 0)")), qPrintable(message));
            QCOMPARE(reversed({order, 2, false}, true, true)[0], kReversed - 1.0F);
        }
    }

    void warpFunctionsFollowTheProgrammingGuide()
    {
        std::vector<float> out(32 * 8);
        QVERIFY(launchWarpFunctions(out.data()).ok());
        for (int lane = 0; lane < 32; ++lane) {
            const float* row = out.data() + lane * 8;
            QCOMPARE(row[0], 3.0F);
            QCOMPARE(row[1], static_cast<float>(lane ^ 1));
            QCOMPARE(row[2], static_cast<float>(lane < 2 ? lane : lane - 2));
            QCOMPARE(row[3], static_cast<float>(lane > 29 ? lane : lane + 2));
            QCOMPARE(row[4], static_cast<float>(lane ^ 3));
            QCOMPARE(row[5], 1.0F);
            QCOMPARE(row[6], 1.0F);
            QCOMPARE(row[7], 0.0F);
        }
    }

    void fragmentsGiveThePlainProduct()
    {
        const auto a = wholeNumbers(16 * 16, 5);
        const auto b = wholeNumbers(16 * 8, 7);
        for (const bool byLoad : {false, true}) {
            std::vector<float> d(16 * 8);
            QVERIFY(launchProduct(a.data(), b.data(), d.data(), byLoad).ok());
            for (std::size_t row = 0; row < 16; ++row)
                for (std::size_t column = 0; column < 8; ++column) {
                    float sum = 0.0F;
                    for (std::size_t k = 0; k < 16; ++k)
                        sum += valueOf(a[row * 16 + k]) * valueOf(b[k * 8 + column]);
                    QCOMPARE(d[row * 8 + column], sum);
                }
        }
    }

    void loadedMatricesHaveTheDocumentedLayout()
    {
        std::vector<std::uint16_t> tiles(4 * 64);
        std::iota(tiles.begin(), tiles.end(), std::uint16_t{1});
        for (const bool transpose : {false, true}) {
            std::vector<std::uint32_t> r(32 * 4);
            QVERIFY(launchLoad(tiles.data(), r.data(), transpose).ok());
            for (std::size_t lane = 0; lane < 32; ++lane)
                for (std::size_t i = 0; i < 4; ++i) {
                    const std::size_t fixed = lane / 4;
                    const std::size_t pair = 2 * (lane % 4);
                    const std::uint32_t low =
                        tiles[i * 64 + (transpose ? pair * 8 + fixed : fixed * 8 + pair)];
                    const std::uint32_t high =
                        tiles[i * 64 + (transpose ? (pair + 1) * 8 + fixed : fixed * 8 + pair + 1)];
                    QCOMPARE(r[lane * 4 + i], low | high << 16);
                }
        }
    }

    void aCopyArrivesWithItsGroup()
    {
        const std::vector<float> values = ascending(32 * 8);
        for (int pending = 0; pending <= 2; ++pending) {
            std::vector<float> out(32 * 8);
            QVERIFY(launchCopies(values.data(), out.data(), pending, true).ok());
            for (std::size_t i = 0; i < out.size(); ++i) {
                const bool arrived = pending == 0 || (pending == 1 && i % 8 < 4);
                QCOMPARE(out[i], arrived ? values[i] : -1.0F);
            }
        }
    }

    void copiesCanBeMadeToArriveAtOnce()
    {
        simt::setSchedule({Order::Ascending, 1, true});
        const std::vector<float> values = ascending(32 * 8);
        std::vector<float> out(32 * 8);
        QVERIFY(launchCopies(values.data(), out.data(), 2, true).ok());
        QCOMPARE(out, values);
    }

    void anInvalidCopyGivesZeros()
    {
        const std::vector<float> values = ascending(32 * 8);
        std::vector<float> out(32 * 8, 1.0F);
        QVERIFY(launchCopies(values.data(), out.data(), 0, false).ok());
        QCOMPARE(out, std::vector<float>(32 * 8, 0.0F));
    }

    void shapesBeyondACardAreRefused()
    {
        std::vector<float> out(4, -1.0F);
        QCOMPARE(launchShape(1, 65536, 32, 0, out.data()).kind(), ErrorKind::Internal);
        QCOMPARE(launchShape(1, 1, 1025, 0, out.data()).kind(), ErrorKind::Internal);
        QCOMPARE(launchShape(1, 1, 32, 99 * 1024 + 1, out.data()).kind(), ErrorKind::Internal);
        QCOMPARE(out, std::vector<float>(4, -1.0F));
    }

    void shapesAtTheLimitRunAndAnEmptyGridDoesNothing()
    {
        std::vector<float> out(4, -1.0F);
        QVERIFY(launchShape(0, 1, 32, 0, out.data()).ok());
        QCOMPARE(out[0], -1.0F);
        QVERIFY(launchShape(3, 2, 1024, 99 * 1024, out.data()).ok());
        QCOMPARE(out, std::vector<float>({0.0F, 1.0F, 2.0F, -1.0F}));
    }
};

MR_TEST(TestSimt)

} // namespace mr::test::tst_simt

#include "tst_simt.moc"
