// Rows of a matrix that AdamW steps: which are chosen, that the others keep their bits, cuts,
// threads, refusals.

#include "core/device/light_weight.h"
#include "core/device/op_checks.h"
#include "support/rig.h"
#include "support/test_room.h"

#include <QTest>

#include <algorithm>
#include <array>
#include <limits>

namespace mr::test::tst_chosen_rows {

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

AdamwFactors factorsAt(std::int64_t count)
{
    AdamwSettings settings;
    settings.weightDecay = 0.2;
    return adamwFactors(settings, 1e-2, count);
}

// Chooses `count` rows by a first gradient, and makes two updates.
Status train(
    LightWeight& weight, Device& device, std::int64_t rows, std::int64_t cols, std::int64_t count)
{
    const std::int64_t elements = rows * cols;
    const std::vector<float> grad = normals(elements, 11);
    MR_TRY(weight.chooseRows(device, grad, count));
    MR_TRY(weight.updateRows(device, factorsAt(1), true, grad, 0, elements));
    return weight.updateRows(device, factorsAt(2), false, normals(elements, 12), 0, elements);
}

std::vector<float> chosenBy(const std::vector<float>& squares, std::size_t count)
{
    const auto device = deviceOf(1);
    auto stream = device->createStream("test").value();
    std::vector<float> given = squares;
    std::vector<float> ranked(count);
    std::vector<float> numbers(count);
    StepScalars scalars;
    const TensorView scalarsView =
        vectorView(reinterpret_cast<std::byte*>(&scalars), DType::U8, sizeof scalars);
    const Status status =
        device->ops().selectRows({viewOf(given, DType::F32), viewOf(ranked, DType::F32),
                                     viewOf(numbers, DType::F32), scalarsView},
            *stream);
    if (!status.ok())
        qFatal("%s", status.message().c_str());
    return numbers;
}

} // namespace

class TestChosenRows : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void theLargestRowsAreChosenAndOfEqualOnesTheFirst()
    {
        using Numbers = std::vector<float>;
        QCOMPARE(chosenBy({1, 4, 2, 3}, 2), (Numbers{1, 3}));
        QCOMPARE(chosenBy({2, 5, 2, 5, 2, 7}, 2), (Numbers{1, 5}));
        QCOMPARE(chosenBy({2, 5, 2, 5, 2, 7}, 3), (Numbers{1, 3, 5}));
        QCOMPARE(chosenBy({2, 5, 2, 5, 2, 7}, 5), (Numbers{0, 1, 2, 3, 5}));
        QCOMPARE(chosenBy({0, 0, 0, 0}, 3), (Numbers{0, 1, 2}));
        QCOMPARE(chosenBy({0, 0, 1e-45F, 0}, 1), (Numbers{2}));
        constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();
        for (const std::vector<float>& squares :
            {std::vector<float>{kNaN, 1, kNaN, -kNaN}, std::vector<float>{-1, -0.0F, -2, kNaN}})
            for (std::size_t count = 1; count <= squares.size(); ++count) {
                const Numbers chosen = chosenBy(squares, count);
                QVERIFY(chosen.front() >= 0 && chosen.back() < 4);
                for (std::size_t i = 1; i < count; ++i)
                    QVERIFY(chosen[i] > chosen[i - 1]);
            }
    }

    void otherRowsKeepTheirBits_data()
    {
        QTest::addColumn<int>("format");
        for (const MasterPlanes format : kAllFormats)
            QTest::addRow("format %d", static_cast<int>(format)) << static_cast<int>(format);
    }

    void otherRowsKeepTheirBits()
    {
        QFETCH(const int, format);
        constexpr std::int64_t kRows = 16;
        constexpr std::int64_t kCols = 33;
        const auto device = deviceOf(1);
        LightWeight weight(
            kRows, kCols, normals(kRows * kCols, 3), static_cast<MasterPlanes>(format));
        // A rest that no step would write: a code that is rounded again changes it.
        std::fill(weight.low8.begin(), weight.low8.end(), std::int8_t{-128});
        const LightWeight start = weight;
        QVERIFY(train(weight, *device, kRows, kCols, 2).ok());
        std::int64_t moved = 0;
        for (std::size_t i = 0; i < weight.high.size(); ++i) {
            const bool isSame = weight.high[i] == start.high[i] &&
                                (weight.low16.empty() || weight.low16[i] == start.low16[i]) &&
                                (weight.low8.empty() || weight.low8[i] == start.low8[i]);
            const auto row = static_cast<float>(i / kCols);
            if (row == weight.numbers[0] || row == weight.numbers[1])
                moved += isSame ? 0 : 1;
            else
                QVERIFY(isSame);
        }
        QVERIFY(moved > kCols);
    }

    void everyCutGivesTheBitsOfTheWhole_data() { otherRowsKeepTheirBits_data(); }

    void everyCutGivesTheBitsOfTheWhole()
    {
        QFETCH(const int, format);
        constexpr std::int64_t kRows = 9;
        constexpr std::int64_t kCols = 21;
        constexpr std::int64_t kAll = kRows * kCols;
        const auto device = deviceOf(1);
        LightWeight start(kRows, kCols, normals(kAll, 4), static_cast<MasterPlanes>(format));
        QVERIFY(train(start, *device, kRows, kCols, 3).ok());
        for (const bool isFirst : {false, true}) {
            const std::vector<float> grad = normals(kAll, 5);
            LightWeight whole = start;
            QVERIFY(whole.updateRows(*device, factorsAt(3), isFirst, grad, 0, kAll).ok());
            QVERIFY(!whole.equals(start));
            for (std::int64_t cut = 0; cut <= kAll; ++cut) {
                LightWeight parts = start;
                QVERIFY(parts.updateRows(*device, factorsAt(3), isFirst, grad, 0, cut).ok());
                QVERIFY(
                    parts.updateRows(*device, factorsAt(3), isFirst, grad, cut, kAll - cut).ok());
                QVERIFY2(parts.equals(whole), qPrintable(QString::number(cut)));
            }
        }
    }

    void threadsChangeNoBit_data() { otherRowsKeepTheirBits_data(); }

    void threadsChangeNoBit()
    {
        QFETCH(const int, format);
        for (const auto& [rows, cols] : {std::pair{1100, 130}, std::pair{3, 50'000}}) {
            const LightWeight start(
                rows, cols, normals(rows * cols, 6), static_cast<MasterPlanes>(format));
            LightWeight one = start;
            LightWeight two = start;
            LightWeight seven = start;
            QVERIFY(train(one, *deviceOf(1), rows, cols, rows / 3).ok());
            QVERIFY(train(two, *deviceOf(2), rows, cols, rows / 3).ok());
            QVERIFY(train(seven, *deviceOf(7), rows, cols, rows / 3).ok());
            QVERIFY(!one.equals(start));
            QVERIFY(two.equals(one));
            QVERIFY(seven.equals(one));
        }
    }

    void aChoiceBeginsWithMomentsOfZero()
    {
        const auto device = deviceOf(1);
        const std::vector<float> grad = normals(64, 8);
        LightWeight old(8, 8, normals(64, 7), MasterPlanes::Halves);
        QVERIFY(old.chooseRows(*device, grad, 2).ok());
        LightWeight fresh = old;
        std::fill(old.firstMoments.begin(), old.firstMoments.end(), 3.0F);
        std::fill(old.secondMoments.begin(), old.secondMoments.end(),
            std::numeric_limits<float>::quiet_NaN());

        QVERIFY(old.updateRows(*device, factorsAt(1), true, grad, 0, 64).ok());
        QVERIFY(fresh.updateRows(*device, factorsAt(1), false, grad, 0, 64).ok());

        QVERIFY(old.equals(fresh));
    }

    void whatDoesNotFitIsRefused()
    {
        std::vector<float> squares(6);
        std::vector<float> ranked(2);
        std::vector<float> numbers(2);
        StepScalars scalars;
        SelectRowsArgs select{viewOf(squares, DType::F32), viewOf(ranked, DType::F32),
            viewOf(numbers, DType::F32),
            vectorView(reinterpret_cast<std::byte*>(&scalars), DType::U8, sizeof scalars)};
        QVERIFY(checkSelectRows(select).ok());
        SelectRowsArgs wrong = select;
        wrong.ranked = select.squares;
        QCOMPARE(checkSelectRows(wrong).message(),
            std::string("selectRows: ranked is F32 (6), want F32 (2)"));
        wrong = select;
        wrong.ranked = select.numbers;
        QCOMPARE(checkSelectRows(wrong).message(),
            std::string("selectRows: ranked is numbers, want memory of its own"));
        wrong = select;
        wrong.squares.dims[0] = 1;
        QCOMPARE(checkSelectRows(wrong).message(),
            std::string("selectRows: at least one row is chosen, at most all"));
        wrong = select;
        wrong.squares.dims[0] = kMostNumberedRows + 1;
        QCOMPARE(checkSelectRows(wrong).message(),
            std::string("selectRows: a number of a row must be exact in F32"));

        std::vector<float> moments(6);
        std::vector<float> others(6);
        RowAdamwArgs update;
        update.high = vectorView(select.squares.data, DType::U16, 6);
        update.grad = select.squares;
        update.numbers = select.numbers;
        update.m = matrixView(viewOf(moments, DType::F32).data, DType::F32, 2, 3);
        update.v = matrixView(viewOf(others, DType::F32).data, DType::F32, 2, 3);
        update.scalars = select.scalars;
        update.cols = 3;
        QVERIFY(checkRowAdamw(update).ok());
        RowAdamwArgs bad = update;
        bad.cols = 2;
        QCOMPARE(checkRowAdamw(bad).message(),
            std::string("rowAdamw: m is F32 (2, 3), want F32 (2, 2)"));
        bad = update;
        bad.v = update.m;
        QCOMPARE(
            checkRowAdamw(bad).message(), std::string("rowAdamw: m is v, want memory of its own"));
        bad = update;
        bad.first = -1;
        QCOMPARE(checkRowAdamw(bad).message(),
            std::string("rowAdamw: first is at least 0 and cols above it"));
        bad = update;
        bad.low = vectorView(select.squares.data, DType::I16, 5);
        QCOMPARE(
            checkRowAdamw(bad).message(), std::string("rowAdamw: low is I16 (5), want I16 (6)"));
        bad = update;
        bad.numbers.dims[0] = bad.m.dims[0] = bad.v.dims[0] = 0;
        QCOMPARE(checkRowAdamw(bad).message(), std::string("rowAdamw: at least one row is chosen"));
    }
};

MR_TEST(TestChosenRows)

} // namespace mr::test::tst_chosen_rows

#include "tst_chosen_rows.moc"
