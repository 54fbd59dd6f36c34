// Folders of checkpoints: which are whole, which is the best, which are kept and which set aside.

#include "core/run/damage.h"
#include "core/save/checkpoint.h"
#include "support/test_room.h"

#include <QTemporaryDir>
#include <QTest>

#include <algorithm>
#include <fstream>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace mr::test::tst_checkpoint_folder {

namespace fs = std::filesystem;

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

} // namespace

class TestCheckpointFolder : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void init() { m_run = std::make_unique<QTemporaryDir>(); }
    void everyBitOfAManifestCounts();
    void whatIsWrongIsNamed_data();
    void whatIsWrongIsNamed();
    void aManifestOfAnEarlierProgramIsTaken();
    void aCheckpointOfAnotherRunOrStepIsNoneOfThisRun();
    void theNewestAndTheBestAreKept();
    void ofEqualOnesTheNewestIsTheBest();
    void foldersOfOtherNamesAreLeftAlone();
    void aBrokenOneStaysUntilANewerOneIsThere();
    void whatSomebodyPutThereIsNeverRemoved();
    void aStepThatIsWrittenAgainTakesThePlaceOfTheFormerOne();
    void whatAnotherRunHasThereIsSetAsideForTheNewOne();

private:
    fs::path run() const { return m_run->path().toStdString(); }
    fs::path folder() const { return run() / "checkpoints"; }

    // A sealed one, of tensors that are text.
    fs::path write(const fs::path& place, std::int64_t step, double evalLoss,
        const std::string& runId = "this") const
    {
        for (const char* part : {"model", "state"})
            fs::create_directories(place / part);
        RunProgress progress;
        progress.step = step;
        progress.evalLoss = evalLoss;
        progress.runId = runId;
        std::ofstream(place / "state" / "state.json") << toJson(progress);
        std::ofstream(place / "state" / "state.safetensors") << "state of " << step;
        std::ofstream(place / "model" / "model.safetensors") << "weights of " << step;
        std::ofstream(place / "model" / "config.json") << "{}";
        if (const auto sealed = sealCheckpoint(place); !sealed.ok())
            qFatal("%s", sealed.status().message().c_str());
        return place;
    }

    fs::path add(std::int64_t step, double evalLoss = kNone) const
    {
        return write(folder() / checkpointName(step), step, evalLoss);
    }

    std::string names() const
    {
        std::vector<std::string> found;
        for (const auto& entry : fs::directory_iterator(folder()))
            found.push_back(entry.path().filename().string());
        std::sort(found.begin(), found.end());
        std::string text;
        for (const std::string& name : found)
            text += name + " ";
        return text;
    }

    std::unique_ptr<QTemporaryDir> m_run;
};

void TestCheckpointFolder::everyBitOfAManifestCounts()
{
    const fs::path checkpoint = add(8);
    const fs::path manifest = checkpoint / kManifestFile;
    QVERIFY(verifyCheckpoint(checkpoint, VerifyDepth::Bytes).ok());

    for (std::uintmax_t at = 0; at < fs::file_size(manifest); ++at)
        for (int bit = 0; bit < 8; ++bit) {
            flipBit(manifest, at, bit);
            const Status seen = verifyCheckpoint(checkpoint, VerifyDepth::Bytes);
            flipBit(manifest, at, bit);
            QVERIFY2(!seen.ok(), QByteArray::number(qulonglong(at)).constData());
        }

    QVERIFY(verifyCheckpoint(checkpoint, VerifyDepth::Bytes).ok());
}

void TestCheckpointFolder::whatIsWrongIsNamed_data()
{
    QTest::addColumn<QString>("damage");
    QTest::addColumn<QString>("file");
    QTest::addColumn<QString>("why");
    QTest::addColumn<bool>("isQuick"); // seen without reading tensors
    for (const char* file :
        {"state/state.json", "state/state.safetensors", "model/model.safetensors"}) {
        QTest::addRow("a bit of %s", file) << "bit" << file << "the bytes are not those" << false;
        QTest::addRow("%s is cut", file) << "cut" << file << "were written" << true;
        QTest::addRow("%s is gone", file) << "gone" << file << "is missing" << true;
    }
    QTest::newRow("the manifest is cut") << "cut"
                                         << "manifest.json"
                                         << "not JSON" << true;
    QTest::newRow("the manifest is gone") << "gone"
                                          << "manifest.json"
                                          << "is missing" << true;
    QTest::newRow("the manifest is empty") << "empty"
                                           << "manifest.json"
                                           << "not JSON" << true;
    QTest::newRow("an empty folder") << "emptied"
                                     << ""
                                     << "manifest.json: is missing" << true;
    QTest::newRow("tensors that came later") << "added"
                                             << "model/more.safetensors"
                                             << "was added" << true;
}

void TestCheckpointFolder::whatIsWrongIsNamed()
{
    QFETCH(QString, damage);
    QFETCH(QString, file);
    QFETCH(QString, why);
    QFETCH(bool, isQuick);
    const fs::path checkpoint = add(8);
    const fs::path path = checkpoint / file.toStdString();
    if (damage == QLatin1String("bit"))
        flipMiddleBit(path);
    if (damage == QLatin1String("cut"))
        cutByOneByte(path);
    if (damage == QLatin1String("gone"))
        fs::remove(path);
    if (damage == QLatin1String("empty"))
        fs::resize_file(path, 0);
    if (damage == QLatin1String("emptied"))
        emptyFolder(checkpoint);
    if (damage == QLatin1String("added"))
        std::ofstream(path) << "weights of somebody else";

    const Status seen = verifyCheckpoint(checkpoint, VerifyDepth::Bytes);
    const Status seenQuickly = verifyCheckpoint(checkpoint, VerifyDepth::Lengths);

    QCOMPARE(seen.kind(), ErrorKind::DataCorrupt);
    const QString message = QString::fromStdString(seen.message());
    QVERIFY2(message.contains(file) && message.contains(why), seen.message().c_str());
    QCOMPARE(seenQuickly.ok(), !isQuick);
}

void TestCheckpointFolder::aManifestOfAnEarlierProgramIsTaken()
{
    const fs::path checkpoint = add(8);
    const fs::path manifest = checkpoint / kManifestFile;
    QFile file(QString::fromStdString(manifest.string()));
    QVERIFY(file.open(QIODevice::ReadOnly));
    QByteArray text = file.readAll();
    const auto begin = text.indexOf(" \"manifest\"");
    text.remove(begin, text.indexOf(" \"version\"") - begin);
    text.replace("\"version\": 2", "\"version\": 1");
    std::ofstream(manifest, std::ios::trunc) << text.toStdString();

    const Status seen = verifyCheckpoint(checkpoint, VerifyDepth::Bytes);

    QVERIFY2(seen.ok(), seen.message().c_str());
}

void TestCheckpointFolder::aCheckpointOfAnotherRunOrStepIsNoneOfThisRun()
{
    const fs::path checkpoint = add(8);
    fs::copy(checkpoint, folder() / checkpointName(12), fs::copy_options::recursive);

    const auto whole = examineCheckpoint(checkpoint, "this", VerifyDepth::Bytes);
    const auto other = examineCheckpoint(checkpoint, "that", VerifyDepth::Bytes);
    const auto renamed =
        examineCheckpoint(folder() / checkpointName(12), "this", VerifyDepth::Bytes);

    QVERIFY2(whole.ok(), whole.status().message().c_str());
    QCOMPARE(other.status().kind(), ErrorKind::InvalidArgument);
    QCOMPARE(renamed.status().kind(), ErrorKind::InvalidArgument);
}

void TestCheckpointFolder::theNewestAndTheBestAreKept()
{
    add(2, 3.0);
    add(4, 1.0);
    add(6, 2.0);
    add(8);
    add(10, 1.5);

    const Pruned pruned = pruneCheckpoints(run(), 2);

    QCOMPARE(names(), std::string("step-00000004 step-00000008 step-00000010 "));
    QCOMPARE(pruned.older.size(), std::size_t{2});
    QCOMPARE(bestEvalLoss(run()), 1.0);
    add(12, 0.5); // better: the best so far need not stay
    (void)pruneCheckpoints(run(), 2);
    QCOMPARE(names(), std::string("step-00000010 step-00000012 "));
    QCOMPARE(describeCheckpoints(run()).front().isBest, true);
}

void TestCheckpointFolder::ofEqualOnesTheNewestIsTheBest()
{
    add(2, 1.0);
    add(4, 1.0);
    add(6, std::numeric_limits<double>::infinity());

    const auto found = describeCheckpoints(run());

    QCOMPARE(found[0].isBest, false);
    QCOMPARE(found[1].isBest, true);
    QCOMPARE(found[2].isBest, false);
}

void TestCheckpointFolder::foldersOfOtherNamesAreLeftAlone()
{
    for (const char* name : {"step-copy", "step-8", "step-000000x8", "notes", "step-00000004.bak"})
        write(folder() / name, 8, 0.1);
    add(6);
    add(8);

    (void)pruneCheckpoints(run(), 1);

    QCOMPARE(names(), std::string("notes step-00000004.bak step-00000008 step-000000x8 step-8 "
                                  "step-copy "));
    QCOMPARE(namedCheckpoints(run()).size(), std::size_t{1});
}

void TestCheckpointFolder::aBrokenOneStaysUntilANewerOneIsThere()
{
    const auto aside = setAside(add(8), SetAside::Broken);
    const auto again = setAside(add(8), SetAside::Broken);
    QVERIFY(aside.ok() && again.ok());
    add(4);
    (void)pruneCheckpoints(run(), 2);
    QCOMPARE(names(), std::string("broken-step-00000008 broken-step-00000008.2 step-00000004 "));
    add(8);

    const Pruned pruned = pruneCheckpoints(run(), 2);

    QCOMPARE(names(), std::string("step-00000004 step-00000008 "));
    QCOMPARE(pruned.broken.size(), std::size_t{2});
}

void TestCheckpointFolder::whatSomebodyPutThereIsNeverRemoved()
{
    std::ofstream(add(8) / "thesis.txt") << "the only copy";
    auto mixed = setAside(folder() / checkpointName(8), SetAside::Broken);
    const auto other = setAside(add(6), SetAside::Other);
    QVERIFY(mixed.ok() && other.ok());
    add(10);

    (void)pruneCheckpoints(run(), 1);

    QCOMPARE(names(), std::string("other-step-00000006 other-step-00000008 step-00000010 "));
    QVERIFY(fs::exists(mixed.value() / "thesis.txt"));
}

void TestCheckpointFolder::aStepThatIsWrittenAgainTakesThePlaceOfTheFormerOne()
{
    add(8);
    const fs::path sealed = write(folder() / ".step-00000008", 8, 1.25);

    const Status installed = installCheckpoint(sealed, folder() / checkpointName(8));

    QVERIFY2(installed.ok(), installed.message().c_str());
    QCOMPARE(names(), std::string("step-00000008 "));
    QCOMPARE(bestEvalLoss(run()), 1.25);
}

void TestCheckpointFolder::whatAnotherRunHasThereIsSetAsideForTheNewOne()
{
    const fs::path place = folder() / checkpointName(8);
    write(place, 8, 3.0, "that");
    const fs::path sealed = write(folder() / ".step-00000008", 8, 1.25);

    const Status installed = installCheckpoint(sealed, place);

    QVERIFY2(installed.ok(), installed.message().c_str());
    QCOMPARE(names(), std::string("other-step-00000008 step-00000008 "));
    QVERIFY(examineCheckpoint(place, "this", VerifyDepth::Bytes).ok());
}

MR_TEST(TestCheckpointFolder)

} // namespace mr::test::tst_checkpoint_folder

#include "tst_checkpoint_folder.moc"
