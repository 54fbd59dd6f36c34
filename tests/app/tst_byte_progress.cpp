#include "app/cli/byte_progress.h"
#include "core/data/data_files.h"
#include "support/test_room.h"

#include <QTest>

#include <vector>

namespace mr::test::tst_byte_progress {

using app::ByteProgress;
using app::ByteProgressKind;

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::uint64_t kMiB = 1U << 20;

class TestByteProgress : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void aLineASecondWithRateAndTimeLeft()
    {
        std::vector<std::string> lines;
        ByteProgress progress(
            ByteProgressKind::Terminal, [&](std::string_view text) { lines.emplace_back(text); });

        progress.show(0, {100 * kMiB, 300 * kMiB, 0, 2}); // of an earlier download
        progress.show(kSecond / 2, {101 * kMiB, 300 * kMiB, 0, 2});
        progress.show(2 * kSecond, {104 * kMiB, 300 * kMiB, 1, 2});
        progress.show(2 * kSecond + 1, {300 * kMiB, 300 * kMiB, 2, 2});
        progress.end();
        progress.end();

        QCOMPARE(lines.size(), std::size_t{4});
        QCOMPARE(lines[0], std::string("\r100.0 MiB of 300.0 MiB, 0 of 2 files\x1b[K"));
        QCOMPARE(
            lines[1], std::string("\r104.0 MiB of 300.0 MiB, 1 of 2 files, 2.0 MiB/s, 1 min 38 s "
                                  "left\x1b[K"));
        QVERIFY(contains(lines[2], "300.0 MiB of 300.0 MiB, 2 of 2 files"));
        QCOMPARE(lines[3], std::string("\n"));
    }

    void bytesThatAreLostMakeNoRate()
    {
        std::vector<std::string> lines;
        ByteProgress progress(
            ByteProgressKind::Json, [&](std::string_view text) { lines.emplace_back(text); });
        progress.show(0, {10 * kMiB, 20 * kMiB, 0, 1});
        progress.show(kSecond, {1 * kMiB, 20 * kMiB, 0, 1});
        progress.show(2 * kSecond, {2 * kMiB, 20 * kMiB, 0, 1});
        QCOMPARE(lines.size(), std::size_t{3});
        QVERIFY(lines[1].find("bytes_per_second") == std::string::npos);
        QVERIFY(contains(lines[2], "\"bytes_per_second\":1048576"));
        QVERIFY(contains(lines[2], "\"seconds_left\":18"));
    }
};

MR_TEST(TestByteProgress)

} // namespace mr::test::tst_byte_progress

#include "tst_byte_progress.moc"
