// Columns of compact state: out of groups of 32 and into them.

#include "core/device/compact_arrays.h"
#include "core/step/column_state.h"
#include "support/test_room.h"

#include <QTest>

#include <algorithm>
#include <set>

namespace mr::test::tst_column_state {

namespace {

// Rows of 24: groups lie in two of them.
constexpr std::size_t kRows = 12;
constexpr std::size_t kCols = 24;
const std::vector<std::int32_t> kColumns = {2, 3, 17};

ComplementRows rowsOf(CompactArrays& state)
{
    ComplementRows rows;
    rows.compact = state.all();
    rows.high = rows.compact.weight;
    rows.rows = kRows;
    rows.cols = kCols;
    return rows;
}

bool isOf(const std::vector<std::int32_t>& columns, std::size_t element)
{
    return std::binary_search(
        columns.begin(), columns.end(), static_cast<std::int32_t>(element % kCols));
}

// Elements of the columns, in the order of the values.
std::vector<std::size_t> elementsOf(const std::vector<std::int32_t>& columns)
{
    std::vector<std::size_t> elements;
    for (std::size_t i = 0; i < kRows * kCols; ++i)
        if (isOf(columns, i))
            elements.push_back(i);
    return elements;
}

ColumnValues someValues(std::size_t count, unsigned seed)
{
    const Plain plain = somePlain(count, seed);
    ColumnValues values;
    values.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
        values.high[i] = highHalf(plain.master[i]);
        values.low[i] = lowHalf(plain.master[i]);
        values.m[i] = plain.m[i];
        values.v[i] = plain.v[i];
    }
    return values;
}

} // namespace

class TestColumnState : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void whatIsTakenIsWhatIsDecoded();
    void whatIsPutIsEncodedWithItsGroup();
    void weightsNeverChangeWhenTheirColumnMoves();
    void neighboursKeepWeightsAndRemainders();
    void groupsWithoutThemStayAsTheyAre();
    void clearedColumnsLeaveTheirNeighboursAlone();
    void plainColumnsMoveToTheBit();
};

void TestColumnState::whatIsTakenIsWhatIsDecoded()
{
    CompactArrays state = someState(kRows * kCols, 6);
    const Plain plain = decoded(state);
    ColumnValues values;

    takeColumns(rowsOf(state), kColumns, {0.5F, 0.25F}, values);

    const auto elements = elementsOf(kColumns);
    QCOMPARE(values.m.size(), elements.size());
    for (std::size_t i = 0; i < elements.size(); ++i) {
        const std::size_t at = elements[i];
        QVERIFY(values.m[i] == 0.5F * plain.m[at]);
        QVERIFY(values.v[i] == 0.25F * plain.v[at]);
        QCOMPARE(values.high[i], state.weight[at]);
        // A remainder of 127 is a tie: halves are off by one step of F32 at most.
        const float master = joinHalves(values.high[i], values.low[i]);
        if (std::abs(state.remainder[at]) < 127)
            QVERIFY(master == plain.master[at]);
        else
            QVERIFY(std::fabs(master / plain.master[at] - 1.0F) < 0x1p-22F);
    }
}

// Against the reference, with the others as they were decoded.
void TestColumnState::whatIsPutIsEncodedWithItsGroup()
{
    CompactArrays state = someState(kRows * kCols, 6);
    CompactArrays expected = state;
    const auto elements = elementsOf(kColumns);
    const ColumnValues values = someValues(elements.size(), 8);
    std::vector<CompactValue> all;
    for (std::size_t i = 0; i < kRows * kCols; ++i)
        all.push_back(decodeReference(state.all(), i));
    for (std::size_t i = 0; i < elements.size(); ++i)
        all[elements[i]] = {joinHalves(values.high[i], values.low[i]), 2.0F * values.m[i],
            std::sqrt(0.5F * values.v[i])};
    for (std::size_t first = 0; first < all.size(); first += kCompactGroup)
        encodeReferenceGroup(all.data(), first, first + kCompactGroup, expected.all());

    putColumns(values, kColumns, {2.0F, 0.5F}, rowsOf(state));

    std::set<std::size_t> groups;
    for (const std::size_t at : elements) {
        groups.insert(at / kCompactGroup);
        QCOMPARE(state.weight[at], expected.weight[at]);
        QCOMPARE(int(state.remainder[at]), int(expected.remainder[at]));
    }
    for (const std::size_t group : groups) {
        QVERIFY(state.mScale[group] == expected.mScale[group]);
        QVERIFY(state.vScale[group] == expected.vScale[group]);
        for (std::size_t i = group * kCompactGroup; i < (group + 1) * kCompactGroup; ++i) {
            QCOMPARE(int(state.m[i]), int(expected.m[i]));
            QCOMPARE(int(state.v[i]), int(expected.v[i]));
        }
    }
}

// Ties too, of either sign, where the codec would take the even weight; and their master is kept.
void TestColumnState::weightsNeverChangeWhenTheirColumnMoves()
{
    CompactArrays state = someState(kRows * kCols, 6);
    const std::size_t count = elementsOf(kColumns).size();
    ColumnValues values = someValues(count, 9);
    for (std::size_t i = 0; i < count; ++i) {
        const float tie = std::ldexp(1.0F + static_cast<float>(2 * i + 1) / 256.0F, int(i % 5));
        values.high[i] = highHalf(i % 2 == 0 ? tie : -tie);
        values.low[i] = lowHalf(i % 2 == 0 ? tie : -tie);
    }

    putColumns(values, kColumns, {}, rowsOf(state));

    const auto elements = elementsOf(kColumns);
    int odd = 0;
    for (std::size_t i = 0; i < count; ++i) {
        QCOMPARE(state.weight[elements[i]], values.high[i]);
        QVERIFY(decoded(state).master[elements[i]] == joinHalves(values.high[i], values.low[i]));
        odd += values.high[i] % 2;
    }
    QVERIFY(odd > 5);
    ColumnValues back;
    takeColumns(rowsOf(state), kColumns, {}, back);
    QVERIFY(back.high == values.high);
    QVERIFY(back.low == values.low);
}

void TestColumnState::neighboursKeepWeightsAndRemainders()
{
    CompactArrays state = someState(kRows * kCols, 6);
    // The codec would carry this one to the next weight, which is even.
    state.weight[0] = 0x3F81;
    state.remainder[0] = 127;
    const CompactArrays before = state;

    putColumns(someValues(elementsOf(kColumns).size(), 8), kColumns, {}, rowsOf(state));

    for (std::size_t i = 0; i < kRows * kCols; ++i) {
        if (isOf(kColumns, i))
            continue;
        QCOMPARE(state.weight[i], before.weight[i]);
        QCOMPARE(int(state.remainder[i]), int(before.remainder[i]));
    }
}

void TestColumnState::groupsWithoutThemStayAsTheyAre()
{
    CompactArrays state = someState(2 * kCompactGroup, 6);
    const CompactArrays before = state;
    ComplementRows rows = rowsOf(state);
    rows.rows = 1;
    rows.cols = 2 * kCompactGroup;

    putColumns(someValues(1, 8), std::vector<std::int32_t>{40}, {}, rows);

    const CompactRange first = state.range(0, kCompactGroup);
    QVERIFY(std::equal(first.m, first.m + kCompactGroup, before.m.begin()));
    QVERIFY(std::equal(first.v, first.v + kCompactGroup, before.v.begin()));
    QVERIFY(state.mScale[0] == before.mScale[0]);
    QVERIFY(state.vScale[0] == before.vScale[0]); // times 255 / 255 it may differ
    QVERIFY(state.m != before.m);
}

void TestColumnState::clearedColumnsLeaveTheirNeighboursAlone()
{
    CompactArrays state = someState(kRows * kCols, 6);
    CompactArrays expected = state;
    for (const std::size_t at : elementsOf(kColumns))
        expected.m[at] = 0, expected.v[at] = 0;

    clearMoments(rowsOf(state), kColumns);

    QVERIFY(state.equals(expected));
}

void TestColumnState::plainColumnsMoveToTheBit()
{
    ColumnValues state = someValues(kRows * kCols, 10);
    ComplementRows rows;
    rows.high = state.high.data();
    rows.low = state.low.data();
    rows.m = state.m.data();
    rows.v = state.v.data();
    rows.rows = kRows;
    rows.cols = kCols;
    const ColumnValues before = state;
    ColumnValues values;
    takeColumns(rows, kColumns, {}, values);
    clearMoments(rows, kColumns);
    QVERIFY(state.m != before.m);
    for (const std::size_t at : elementsOf(kColumns))
        state.high[at] = 0, state.low[at] = 0;

    putColumns(values, kColumns, {}, rows);

    QVERIFY(state.high == before.high && state.low == before.low);
    QVERIFY(state.m == before.m && state.v == before.v);
}

MR_TEST(TestColumnState)

} // namespace mr::test::tst_column_state

#include "tst_column_state.moc"
