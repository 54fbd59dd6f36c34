// Numbers of a few bits, by the examples of the format's own text and by hand.

#include "core/parquet/bit_runs.h"
#include "support/test_room.h"

#include <QtTest>

#include <string>
#include <vector>

namespace mr::test::tst_bit_runs {

using namespace std::string_literals;
using namespace std::string_view_literals;

namespace {

std::vector<std::uint32_t> numbersOf(std::string_view bytes, unsigned width, int count)
{
    HybridRuns runs(bytes, width);
    std::vector<std::uint32_t> out;
    std::uint32_t value = 0;
    while (static_cast<int>(out.size()) < count && runs.next(value))
        out.push_back(value);
    return out;
}

std::vector<std::int64_t> deltasOf(std::string_view bytes)
{
    DeltaRuns runs;
    std::vector<std::int64_t> out;
    if (!runs.open(bytes))
        return {-1};
    std::int64_t value = 0;
    while (runs.next(value))
        out.push_back(value);
    return out;
}

} // namespace

class TstBitRuns : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void packedGroupsHaveTheirLowestBitFirst();
    void runsRepeatTheirValue();
    void runsThatEndEarlyGiveNoMore();
    void differencesAddUp();
    void differencesThatEndEarlyGiveNoMore();
};

// Encodings.md: the numbers 0 to 7 of three bits are 0x88 0xC6 0xFA.
void TstBitRuns::packedGroupsHaveTheirLowestBitFirst()
{
    const std::vector<std::uint32_t> wanted{0, 1, 2, 3, 4, 5, 6, 7};
    QCOMPARE(numbersOf("\x03\x88\xC6\xFA"sv, 3, 8), wanted);
    QCOMPARE(bitsAt("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01"sv, 1, 64), ~std::uint64_t{0});
}

void TstBitRuns::runsRepeatTheirValue()
{
    QCOMPARE(numbersOf("\x06\x02\x04\x01"sv, 2, 9), (std::vector<std::uint32_t>{2, 2, 2, 1, 1}));
    QCOMPARE(numbersOf("\x04\x01\x02"sv, 9, 9), (std::vector<std::uint32_t>{513, 513}));
    QCOMPARE(numbersOf(""sv, 0, 3), (std::vector<std::uint32_t>{0, 0, 0}));
}

void TstBitRuns::runsThatEndEarlyGiveNoMore()
{
    QCOMPARE(numbersOf("\x03\x88"sv, 3, 8), (std::vector<std::uint32_t>{0, 1}));
    QVERIFY(numbersOf("\x06"sv, 2, 8).empty());
    QVERIFY(numbersOf("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F\x01"sv, 2, 8).empty());
    QVERIFY(numbersOf(std::string(100, '\0'), 2, 8).empty());
}

// Encodings.md, example 2: 7, 5, 3, 1, 2, 3, 4, 5 in blocks of 128 of four parts.
void TstBitRuns::differencesAddUp()
{
    const std::string bytes = "\x80\x01\x04\x08\x0E\x03\x02"s + std::string(3, '\0') + "\xC0\x3F"s +
                              std::string(6, '\0') + "behind";
    QCOMPARE(deltasOf(bytes), (std::vector<std::int64_t>{7, 5, 3, 1, 2, 3, 4, 5}));
    DeltaRuns runs;
    std::string_view behind;
    QVERIFY(runs.open(bytes) && runs.skipAll(behind));
    QCOMPARE(std::string(behind), std::string("behind"));
}

void TstBitRuns::differencesThatEndEarlyGiveNoMore()
{
    QCOMPARE(deltasOf("\x80\x01\x04\x08\x0E"sv), (std::vector<std::int64_t>{7}));
    QCOMPARE(deltasOf("\x80\x01\x04"sv), (std::vector<std::int64_t>{-1}));
    QCOMPARE(deltasOf("\x80\x01\x00\x08\x0E"sv), (std::vector<std::int64_t>{-1})); // no parts
    QCOMPARE(deltasOf("\x81\x01\x04\x08\x0E"sv), (std::vector<std::int64_t>{-1})); // of a block
    DeltaRuns runs;
    std::string_view behind;
    QVERIFY(runs.open("\x80\x01\x04\xFF\xFF\xFF\xFF\x0F\x0E\x03\0\0\0\0"sv));
    QVERIFY(!runs.skipAll(behind));
}

MR_TEST(TstBitRuns)

} // namespace mr::test::tst_bit_runs

#include "tst_bit_runs.moc"
