// ScratchLine: seldom, and only where somebody looks.

#include "app/cli/scratch_line.h"
#include "support/test_room.h"

#include <QtTest>

#include <string>
#include <vector>

namespace mr::test::tst_scratch_line {

using namespace mr::app;

namespace {

constexpr std::int64_t kMs = 1'000'000;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

// Collects the lines written while a file of 12 GiB fills, one GiB every `everyMs`.
struct Filling {
    std::vector<std::string> written;
    ScratchLine line;

    explicit Filling(ScratchLineKind kind)
        : line(kind, [this](std::string_view text) { written.emplace_back(text); })
    {
    }

    void fill(std::uint64_t from, std::uint64_t upTo, std::int64_t everyMs)
    {
        for (std::uint64_t g = from; g <= upTo; ++g)
            line.show(static_cast<std::int64_t>(g) * everyMs * kMs, g * kGiB, 12 * kGiB);
    }
};

} // namespace

class TestScratchLine : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void aTerminalSeesOneLineThatIsWrittenOver()
    {
        Filling filling(ScratchLineKind::Terminal);

        filling.fill(1, 12, 400);

        QCOMPARE(filling.written.size(), std::size_t{4}); // at 3 s of 4.4, and the end
        QCOMPARE(filling.written[0],
            std::string("\rPreparing files on disk: 4.0 GiB of 12.0 GiB\x1b[K"));
        QCOMPARE(filling.written[1],
            std::string("\rPreparing files on disk: 7.0 GiB of 12.0 GiB\x1b[K"));
        QCOMPARE(filling.written[3],
            std::string("\rPreparing files on disk: 12.0 GiB of 12.0 GiB\x1b[K\n"));
        filling.line.end();
        QCOMPARE(filling.written.size(), std::size_t{4}); // it has ended already
    }

    void scriptsSeeEvents()
    {
        Filling filling(ScratchLineKind::Json);

        filling.fill(1, 12, 1000);
        filling.line.end();

        QCOMPARE(filling.written.size(), std::size_t{11});
        QCOMPARE(filling.written[0],
            std::string(
                R"({"done_bytes":2147483648,"event":"scratch","total_bytes":12884901888})"));
    }

    void aFileThatTakesLessThanASecondIsNotMentioned()
    {
        for (const auto kind : {ScratchLineKind::Terminal, ScratchLineKind::Json}) {
            Filling filling(kind);
            filling.fill(1, 12, 80);
            filling.line.end();
            QVERIFY(filling.written.empty());
        }
    }

    void nobodyLooksAtAPipe()
    {
        Filling filling(ScratchLineKind::Silent);
        filling.fill(1, 12, 5000);
        filling.line.end();
        QVERIFY(filling.written.empty());
    }

    void whatIsStoppedLeavesItsLine()
    {
        Filling filling(ScratchLineKind::Terminal);

        filling.fill(1, 5, 1000);
        filling.line.end();
        filling.line.end();

        QCOMPARE(filling.written.size(), std::size_t{5});
        QCOMPARE(filling.written.back(), std::string("\n"));
    }

    void aSecondFileHasItsOwnSecond()
    {
        Filling filling(ScratchLineKind::Json);
        filling.fill(1, 12, 80);
        filling.line.show(90'000 * kMs, kGiB, 12 * kGiB);
        QVERIFY(filling.written.empty());
        filling.line.show(91'000 * kMs, 2 * kGiB, 12 * kGiB);
        QCOMPARE(filling.written.size(), std::size_t{1});
    }
};

MR_TEST(TestScratchLine)

} // namespace mr::test::tst_scratch_line

#include "tst_scratch_line.moc"
