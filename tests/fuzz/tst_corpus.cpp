// Every committed input of every target, in every build: a fixed fault stays fixed.

#include "fuzz/targets.h"
#include "support/test_room.h"

#include <QtTest>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

namespace mr::test::tst_corpus {

namespace fs = std::filesystem;

namespace {

fs::path corpus()
{
    return fs::path(qEnvironmentVariable("MILLRACE_SOURCE").toStdString()) / "tests/fuzz/corpus";
}

std::vector<fs::path> inputsOf(const std::string& target)
{
    std::vector<fs::path> files;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(corpus() / target, error))
        files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    return files;
}

std::string contents(const fs::path& file)
{
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

} // namespace

class TestCorpus : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void everyInputEndsInAnAnswer_data()
    {
        QTest::addColumn<int>("index");
        for (std::size_t i = 0; i < fuzz::kTargets.size(); ++i)
            QTest::newRow(fuzz::kTargets[i].name) << static_cast<int>(i);
    }

    // A target that dies takes the program with it: the last line names its input.
    void everyInputEndsInAnAnswer()
    {
        QFETCH(int, index);
        const fuzz::Target& target = fuzz::kTargets[static_cast<std::size_t>(index)];
        const std::vector<fs::path> files = inputsOf(target.name);
        QVERIFY2(!files.empty(), "no inputs");
        target.run({});
        for (const fs::path& file : files) {
            const std::string bytes = contents(file);
            qInfo("%s/%s, %zu bytes", target.name, file.filename().c_str(), bytes.size());
            QElapsedTimer timer;
            timer.start();

            target.run(bytes);

            QVERIFY2(
                timer.elapsed() < 30'000, file.c_str()); // seconds are a hang, not a busy machine
        }
    }

    void everyFolderHasATarget()
    {
        for (const auto& entry : fs::directory_iterator(corpus()))
            QVERIFY2(std::any_of(fuzz::kTargets.begin(), fuzz::kTargets.end(),
                         [&](const auto& t) { return entry.path().filename() == t.name; }),
                entry.path().c_str());
    }
};

MR_TEST(TestCorpus)

} // namespace mr::test::tst_corpus

#include "tst_corpus.moc"
