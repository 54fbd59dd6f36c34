// Which sequences share a row: each once, none too many, the same every time, and few rows.

#include "core/data/packed_rows.h"
#include "support/test_room.h"

#include <QtTest>

#include <algorithm>
#include <random>
#include <vector>

namespace mr::test::tst_packed_rows {

namespace {

using Row = std::vector<std::uint32_t>;

// Sequences that take so many places of a row: one token more each.
SequenceStore makeStore(const std::vector<std::size_t>& inputs)
{
    SequenceStore store;
    for (const std::size_t count : inputs) {
        const std::vector<TokenId> tokens(count + 1, 7);
        if (!store.add(tokens, std::vector<std::uint8_t>(count + 1, 1)).ok())
            qFatal("a set in memory");
    }
    return store;
}

std::vector<Row> rowsOf(const PackedRows& packed)
{
    std::vector<Row> rows;
    for (std::int64_t r = 0; r < packed.count(); ++r)
        rows.emplace_back(packed.row(r).begin(), packed.row(r).end());
    return rows;
}

// Rows that the first fit takes, in the order of the file.
std::size_t firstFit(const std::vector<std::size_t>& inputs, std::size_t room)
{
    std::vector<std::size_t> left;
    for (const std::size_t count : inputs) {
        const auto row = std::find_if(
            left.begin(), left.end(), [&](std::size_t places) { return places >= count; });
        if (row == left.end())
            left.push_back(room - count);
        else
            *row -= count;
    }
    return left.size();
}

// Short ones and long ones, as answers and documents are.
std::vector<std::size_t> someLengths(std::mt19937& random, std::size_t room)
{
    std::vector<std::size_t> lengths(1 + random() % 600);
    const std::size_t most = 1 + random() % room;
    for (std::size_t& length : lengths)
        length = random() % 8 == 0 ? 1 + random() % room : 1 + random() % most;
    return lengths;
}

} // namespace

class TstPackedRows : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void longestComeFirstAndGoWhereTheyFitBest();
    void equalLengthsKeepTheOrderOfTheFile();
    void everySequenceIsInOneRowAndNoRowIsTooLong();
    void noRowsMoreThanTheFirstFit();
    void fullSequencesStayAlone();
    void aPartOfASetIsPackedByItself();
    void nothingMakesNoRows();
};

void TstPackedRows::longestComeFirstAndGoWhereTheyFitBest()
{
    // 9 | 6 4 | 5 5: the 4 goes where exactly 4 are left, not to the row of the first 5.
    const PackedRows packed = PackedRows::pack(makeStore({5, 6, 4, 9, 5}), 10);

    QCOMPARE(rowsOf(packed), (std::vector<Row>{{3}, {1, 2}, {0, 4}}));
}

void TstPackedRows::equalLengthsKeepTheOrderOfTheFile()
{
    const PackedRows packed = PackedRows::pack(makeStore({4, 4, 4, 4, 4}), 8);

    QCOMPARE(rowsOf(packed), (std::vector<Row>{{0, 1}, {2, 3}, {4}}));
}

void TstPackedRows::everySequenceIsInOneRowAndNoRowIsTooLong()
{
    std::mt19937 random(5);
    for (int round = 0; round < 200; ++round) {
        const std::size_t room = 1 + random() % 300;
        const std::vector<std::size_t> lengths = someLengths(random, room);
        std::vector<int> seen(lengths.size(), 0);

        const std::vector<Row> rows =
            rowsOf(PackedRows::pack(makeStore(lengths), static_cast<std::int64_t>(room)));

        for (const Row& row : rows) {
            std::size_t used = 0;
            for (const std::uint32_t sequence : row) {
                used += lengths.at(sequence);
                ++seen.at(sequence);
            }
            QVERIFY(!row.empty() && used <= room);
            QVERIFY(std::is_sorted(row.begin(), row.end()));
        }
        QVERIFY(std::all_of(seen.begin(), seen.end(), [](int times) { return times == 1; }));
    }
}

void TstPackedRows::noRowsMoreThanTheFirstFit()
{
    std::mt19937 random(6);
    for (int round = 0; round < 300; ++round) {
        const std::size_t room = 8 + random() % 500;
        const std::vector<std::size_t> lengths = someLengths(random, room);

        const PackedRows packed =
            PackedRows::pack(makeStore(lengths), static_cast<std::int64_t>(room));

        QVERIFY(static_cast<std::size_t>(packed.count()) <= firstFit(lengths, room));
    }
}

void TstPackedRows::fullSequencesStayAlone()
{
    const PackedRows packed = PackedRows::pack(makeStore({8, 8, 8}), 8);

    QCOMPARE(rowsOf(packed), (std::vector<Row>{{0}, {1}, {2}}));
}

void TstPackedRows::aPartOfASetIsPackedByItself()
{
    const std::vector<std::uint32_t> held{1, 3};
    const auto parts = makeStore({5, 6, 4, 9, 5}).split(held);

    QCOMPARE(rowsOf(PackedRows::pack(parts.first, 10)), (std::vector<Row>{{0, 2}, {1}}));
    QCOMPARE(rowsOf(PackedRows::pack(parts.second, 10)), (std::vector<Row>{{1}, {0}}));
}

void TstPackedRows::nothingMakesNoRows()
{
    QCOMPARE(PackedRows::pack(SequenceStore(), 8).count(), 0);
    QCOMPARE(PackedRows().count(), 0);
}

MR_TEST(TstPackedRows)

} // namespace mr::test::tst_packed_rows

#include "tst_packed_rows.moc"
