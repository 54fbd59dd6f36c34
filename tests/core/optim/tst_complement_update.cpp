// The host's half of a weight with compact state: against whole ranges and against the written
// order, element by element.

#include "core/device/compact_arrays.h"
#include "core/optim/complement_update.h"
#include "support/test_room.h"

#include <QTest>

#include <algorithm>
#include <numeric>

namespace mr::test::tst_complement_update {

namespace {

constexpr AdamwSettings kSettings{0.9, 0.99, 1e-8, 0.1};
constexpr float kScale = 0.375F;

// A weight of which the host owns some columns, and the sums of a window for them.
struct Weight {
    std::size_t rows;
    std::size_t cols;
    std::vector<std::int32_t> columns;
    CompactArrays state;
    Gradients sums; // packed
    std::vector<std::byte> bytes;

    Weight(std::size_t rowCount, std::size_t colCount, std::vector<std::int32_t> hosts, bool bf16)
        : rows(rowCount)
        , cols(colCount)
        , columns(std::move(hosts))
        , state(someState(rows * cols, 3))
        , sums(rows * columns.size(), 4, bf16)
        , bytes(sums.wide.size() * sizeOf(sums.type()))
    {
        std::memcpy(bytes.data(), sums.from(0), bytes.size());
    }

    ComplementRows all()
    {
        ComplementRows out;
        out.compact = state.all();
        out.high = out.compact.weight;
        out.sums = bytes.data();
        out.sumType = sums.type();
        out.columns = columns;
        out.rows = rows;
        out.cols = cols;
        return out;
    }

    // The sums in model layout, 0 where the device owns.
    std::vector<float> gradient() const
    {
        std::vector<float> whole(rows * cols);
        for (std::size_t r = 0; r < rows; ++r)
            for (std::size_t j = 0; j < columns.size(); ++j)
                whole[r * cols + static_cast<std::size_t>(columns[j])] =
                    sums.wide[r * columns.size() + j];
        return whole;
    }

    bool isHosts(std::size_t element) const
    {
        return std::binary_search(
            columns.begin(), columns.end(), static_cast<std::int32_t>(element % cols));
    }
};

std::vector<std::int32_t> everyColumn(std::size_t cols)
{
    std::vector<std::int32_t> columns(cols);
    std::iota(columns.begin(), columns.end(), 0);
    return columns;
}

std::vector<std::int32_t> twoOfThree(std::size_t cols)
{
    std::vector<std::int32_t> columns;
    for (std::size_t c = 0; c < cols; ++c)
        if (c % 3 != 1)
            columns.push_back(static_cast<std::int32_t>(c));
    return columns;
}

void update(const ComplementRows& rows)
{
    std::vector<float> scratch(scratchCount(rows));
    updateComplement(rows, adamwFactors(kSettings, 1e-3, 5), kScale, scratch);
}

// Weights that the update packed over the sums.
std::vector<std::uint16_t> packed(const std::vector<std::byte>& bytes, std::size_t count)
{
    std::vector<std::uint16_t> weights(count);
    std::memcpy(weights.data(), bytes.data(), count * sizeof(std::uint16_t));
    return weights;
}

std::vector<std::uint16_t> hostWeights(const Weight& weight)
{
    std::vector<std::uint16_t> weights;
    for (std::size_t i = 0; i < weight.rows * weight.cols; ++i)
        if (weight.isHosts(i))
            weights.push_back(weight.state.weight[i]);
    return weights;
}

} // namespace

class TestComplementUpdate : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void allColumnsAreTheUpdateOfAWholeRange_data() { addSizes(); }
    void allColumnsAreTheUpdateOfAWholeRange();
    void columnsOfTheDeviceAreGradientsOfZero_data() { addSizes(); }
    void columnsOfTheDeviceAreGradientsOfZero();
    void clearedColumnsOfTheDeviceRaiseNoScale();
    void piecesOfWholeGroupsAreTheWhole_data() { addSizes(); }
    void piecesOfWholeGroupsAreTheWhole();
    void packedWeightsComeBackIntoThePlane();

private:
    static void addSizes()
    {
        QTest::addColumn<int>("rows");
        QTest::addColumn<int>("cols");
        QTest::addColumn<bool>("bf16");
        for (const bool bf16 : {false, true})
            for (const auto& [rows, cols] :
                {std::pair{9, 64}, {70, 24}, {40, 33}, {7, 100}, {1, 45}})
                QTest::addRow("%d rows of %d, %s", rows, cols, bf16 ? "bf16" : "f32")
                    << rows << cols << bf16;
    }
};

void TestComplementUpdate::allColumnsAreTheUpdateOfAWholeRange()
{
    QFETCH(int, rows);
    QFETCH(int, cols);
    QFETCH(bool, bf16);
    const auto width = static_cast<std::size_t>(cols);
    Weight weight(static_cast<std::size_t>(rows), width, everyColumn(width), bf16);
    CompactArrays expected = weight.state;
    adamwCompactUpdate(expected.all(), weight.sums.wide.data(), DType::F32,
        adamwFactors(kSettings, 1e-3, 5), kScale, true);

    update(weight.all());

    QVERIFY(weight.state.equals(expected));
    QVERIFY(packed(weight.bytes, weight.rows * width) == weight.state.weight);
}

// In the written order, one element after the other.
void TestComplementUpdate::columnsOfTheDeviceAreGradientsOfZero()
{
    QFETCH(int, rows);
    QFETCH(int, cols);
    QFETCH(bool, bf16);
    const auto width = static_cast<std::size_t>(cols);
    Weight weight(static_cast<std::size_t>(rows), width, twoOfThree(width), bf16);
    CompactArrays expected = weight.state;
    updateInOrder(expected, weight.gradient(), adamwFactors(kSettings, 1e-3, 5), kScale,
        weight.all().decayed);

    update(weight.all());

    QVERIFY(weight.state.equals(expected));
    QVERIFY(packed(weight.bytes, weight.rows * weight.columns.size()) == hostWeights(weight));
}

// Their codes stay 0, and scales are those of the host's columns alone.
void TestComplementUpdate::clearedColumnsOfTheDeviceRaiseNoScale()
{
    Weight weight(8, 24, twoOfThree(24), false);
    const std::vector<float> gradient = weight.gradient();
    for (std::size_t i = 0; i < gradient.size(); ++i)
        if (!weight.isHosts(i))
            weight.state.m[i] = 0, weight.state.v[i] = 0;
    const Plain before = decoded(weight.state);

    update(weight.all());

    const AdamwFactors f = adamwFactors(kSettings, 1e-3, 5);
    for (std::size_t first = 0; first < gradient.size(); first += kCompactGroup) {
        float most = 1e-12F;
        for (std::size_t i = first; i < first + kCompactGroup; ++i) {
            if (weight.isHosts(i)) {
                most = std::max(most, std::fabs(std::fma(f.oneMinusBeta1, gradient[i] * kScale,
                                          f.beta1 * before.m[i])));
                continue;
            }
            QCOMPARE(int(weight.state.m[i]), 0);
            QCOMPARE(int(weight.state.v[i]), 0);
        }
        QVERIFY(weight.state.mScale[first / kCompactGroup] == most);
    }
}

void TestComplementUpdate::piecesOfWholeGroupsAreTheWhole()
{
    QFETCH(int, rows);
    QFETCH(int, cols);
    QFETCH(bool, bf16);
    const auto width = static_cast<std::size_t>(cols);
    Weight whole(static_cast<std::size_t>(rows), width, twoOfThree(width), bf16);
    Weight cut(static_cast<std::size_t>(rows), width, twoOfThree(width), bf16);
    update(whole.all());

    const std::size_t atOnce = rowsOfWholeGroups(width);
    for (std::size_t first = 0; first < cut.rows; first += atOnce)
        update(rowsFrom(cut.all(), first, std::min(atOnce, cut.rows - first)));

    QVERIFY(cut.state.equals(whole.state));
}

void TestComplementUpdate::packedWeightsComeBackIntoThePlane()
{
    Weight weight(6, 40, twoOfThree(40), false);
    const CompactArrays before = weight.state;
    packWeights(weight.all());
    std::fill(weight.state.weight.begin(), weight.state.weight.end(), std::uint16_t{0x4242});

    unpackWeights(weight.all());

    for (std::size_t i = 0; i < weight.state.weight.size(); ++i)
        QCOMPARE(
            weight.state.weight[i], weight.isHosts(i) ? before.weight[i] : std::uint16_t{0x4242});
    weight.state.weight = before.weight;
    QVERIFY(weight.state.equals(before));
}

MR_TEST(TestComplementUpdate)

} // namespace mr::test::tst_complement_update

#include "tst_complement_update.moc"
