#include "core/answer/asking_choice.h"
#include "support/test_room.h"

#include <QtTest>

namespace mr::test::tst_asking_choice {

class TestAskingChoice : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void theWidestThatFitsIsChosen_data();
    void theWidestThatFitsIsChosen();
    void theNoteNamesBothNumbers();
};

void TestAskingChoice::theWidestThatFitsIsChosen_data()
{
    QTest::addColumn<qulonglong>("freeF32");
    QTest::addColumn<qulonglong>("freeBf16");
    QTest::addColumn<int>("chosen"); // -1: none
    const int f32 = static_cast<int>(DType::F32);
    const int bf16 = static_cast<int>(DType::BF16);
    QTest::newRow("both fit") << 2000ULL << 2000ULL << f32;
    QTest::newRow("F32 fits to the byte") << 1000ULL << 1000ULL << f32;
    QTest::newRow("a byte is missing") << 999ULL << 999ULL << bf16;
    QTest::newRow("BF16 fits to the byte") << 500ULL << 500ULL << bf16;
    QTest::newRow("none fits") << 499ULL << 499ULL << -1;
    QTest::newRow("nothing is free") << 0ULL << 0ULL << -1;
    // A card without BF16.
    QTest::newRow("F32 alone is computed") << 1000ULL << 0ULL << f32;
    QTest::newRow("and does not fit") << 999ULL << 0ULL << -1;
}

void TestAskingChoice::theWidestThatFitsIsChosen()
{
    QFETCH(qulonglong, freeF32);
    QFETCH(qulonglong, freeBf16);
    QFETCH(int, chosen);

    const AskingChoice choice = chooseAsking({1000, freeF32}, {500, freeBf16});

    QCOMPARE(choice.compute ? static_cast<int>(*choice.compute) : -1, chosen);
    const bool isWide = choice.compute == DType::F32;
    QCOMPARE(choice.room.neededBytes, std::uint64_t{isWide ? 1000U : 500U});
    QCOMPARE(choice.room.freeBytes, std::uint64_t{isWide ? freeF32 : freeBf16});
}

void TestAskingChoice::theNoteNamesBothNumbers()
{
    constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
    QCOMPARE(unaskedNote({16 * kGiB, 6 * kGiB}),
        std::string("It was not asked: asking needs 16.0 GiB of memory, and 6.0 GiB are free. "
                    "Close other programs and export again, or ask it on a PC with more memory."));
}

MR_TEST(TestAskingChoice)

} // namespace mr::test::tst_asking_choice

#include "tst_asking_choice.moc"
