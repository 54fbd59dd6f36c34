// Edits of the history by people: the history keeps an edit, search finds it, and it can be undone.
// Erasing for good removes the runs and files agreed to and nothing beside them.

#include "core/base/folder_lock.h"
#include "core/store/store_rig.h"
#include "support/test_room.h"

#include <millrace/run_edits.h>

#include <QDir>
#include <QFile>
#include <QtTest>

namespace mr::test::tst_store_edits {

namespace {

using Ids = std::vector<std::int64_t>;
using Words = std::vector<std::string>;

// A run that has ended.
std::int64_t endedRun(const StoreRig& rig, const std::string& uuid)
{
    const std::int64_t id = rig.begin(uuid);
    return rig.store->endRun(id, RunStatus::Done, 0, "").ok() ? id : 0;
}

// One that has ended and keeps its files in the folder of the rig.
std::int64_t runWithFolder(const StoreRig& rig, const std::string& uuid)
{
    NewRun run = StoreRig::newRun(uuid);
    run.dir = rig.folder.filePath(QString::fromStdString(uuid)).toStdString();
    const std::int64_t id = rig.store->beginRun(run).value();
    return rig.store->endRun(id, RunStatus::Done, 0, "").ok() ? id : 0;
}

void write(const QString& path, const QByteArray& content)
{
    QDir().mkpath(QFileInfo(path).path());
    QFile file(path);
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.write(content);
}

void fillFolder(const QString& folder, const char* uuid)
{
    write(folder + "/run.json", QByteArray("{\"uuid\":\"") + uuid + "\"}"); // 13 bytes
    write(folder + "/steps.jsonl", QByteArray(100, 'x'));
    write(folder + "/trace-50.json", QByteArray(10, 'x'));
    write(folder + "/model/model.safetensors", QByteArray(1000, 'x'));
    write(folder + "/checkpoints/step-00000005/state/state.json", QByteArray(2000, 'x'));
}

constexpr std::uint64_t kFilled = 13 + 100 + 10 + 1000 + 2000;

std::int64_t found(const StoreRig& rig, const char* words)
{
    return rig.number(
        std::string("SELECT count(*) FROM run_fts WHERE run_fts MATCH '") + words + "'");
}

} // namespace

class TestStoreEdits : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void aNameIsTrimmedFoundAndGivesBackTheOldOne()
    {
        StoreRig rig;
        const std::int64_t id = endedRun(rig, "u1");

        Result<std::string> before = rig.store->edits().rename(id, "  Übung \n");

        QVERIFY(before.ok());
        QCOMPARE(before.value(), std::string("run u1"));
        QCOMPARE(rig.openReader()->run(id).value().name, std::string("Übung"));
        QCOMPARE(found(rig, "ubung"), 1);
        QCOMPARE(found(rig, "name:u1"), 0);
    }

    void aNameOrTagThatCannotBeTakenIsRefusedInWords_data()
    {
        QTest::addColumn<QString>("text");
        QTest::addColumn<QString>("reason");
        QTest::newRow("empty") << " \t "
                               << "is empty";
        QTest::newRow("two lines") << "a\nb"
                                   << "more than one line";
        QTest::newRow("long") << QString(201, 'x') << "201 bytes; at most";
    }

    void aNameOrTagThatCannotBeTakenIsRefusedInWords()
    {
        QFETCH(const QString, text);
        QFETCH(const QString, reason);
        StoreRig rig;
        const std::int64_t id = endedRun(rig, "u1");

        const Status name = rig.store->edits().rename(id, text.toStdString()).status();
        const Status tag = rig.store->edits().addTag(Ids{id}, text.toStdString()).status();

        QCOMPARE(name.kind(), ErrorKind::InvalidArgument);
        QVERIFY2(
            name.message().find(reason.toStdString()) != std::string::npos, name.message().c_str());
        QVERIFY2(
            tag.message().find(reason.toStdString()) != std::string::npos, tag.message().c_str());
        QCOMPARE(rig.openReader()->run(id).value().name, std::string("run u1"));
        QCOMPARE(rig.number("SELECT count(*) FROM tag"), 0);
    }

    void aNoteIsFoundAndGivesBackTheOldOne()
    {
        StoreRig rig;
        const std::int64_t id = endedRun(rig, "u1");
        QVERIFY(rig.store->edits().setNote(id, "first\nsecond line").ok());

        QCOMPARE(rig.store->edits().setNote(id, "").value(), std::string("first\nsecond line"));

        QCOMPARE(rig.openReader()->run(id).value().notes, std::string());
        QCOMPARE(found(rig, "second"), 0);
        QCOMPARE(rig.store->edits().setNote(id, std::string(70'000, 'x')).status().kind(),
            ErrorKind::InvalidArgument);
    }

    void tagsAreOfManyRunsAndTellWhatTheyChanged()
    {
        StoreRig rig;
        const std::int64_t a = endedRun(rig, "u1");
        const std::int64_t b = endedRun(rig, "u2");
        RunEdits& edits = rig.store->edits();
        QCOMPARE(edits.addTag(Ids{a}, "Keep").value(), Ids{a});
        QVERIFY(edits.addTag(Ids{a}, "baseline").ok());

        QCOMPARE(edits.addTag(Ids{a, b}, " keep ").value(), Ids{b}); // one tag, however written

        QCOMPARE(edits.tags().value(), (Words{"baseline", "Keep"}));
        QCOMPARE(rig.openReader()->run(a).value().tags, (Words{"baseline", "Keep"}));
        QCOMPARE(rig.openReader()->run(b).value().tags, Words{"Keep"});
        QCOMPARE(found(rig, "tags:keep"), 2);
        QCOMPARE(edits.removeTag(Ids{a, b}, "baseline").value(), Ids{a});
        QCOMPARE(edits.tags().value(), Words{"Keep"}); // nobody has the other
        QCOMPARE(found(rig, "tags:baseline"), 0);
        QCOMPARE(edits.addTag(Ids{a}, "one, two").status().kind(), ErrorKind::InvalidArgument);
    }

    void tagsOfAnUnknownRunChangeNothing()
    {
        StoreRig rig;
        const std::int64_t id = endedRun(rig, "u1");

        QCOMPARE(rig.store->edits().addTag(Ids{id, 77}, "keep").status().kind(),
            ErrorKind::InvalidArgument);

        QVERIFY(rig.openReader()->run(id).value().tags.empty());
        QCOMPARE(rig.number("SELECT count(*) FROM tag"), 0);
    }

    void deletedRunsAreHiddenUntilTheyAreRestored()
    {
        StoreRig rig;
        const std::int64_t a = endedRun(rig, "u1");
        const std::int64_t b = endedRun(rig, "u2");
        RunEdits& edits = rig.store->edits();
        const auto reader = rig.openReader();

        QCOMPARE(edits.remove(Ids{b, a}).value(), (Ids{b, a}));

        QVERIFY(reader->runs().value().empty());
        QVERIFY(!reader->run(a).ok());
        QCOMPARE(reader->deletedRuns().value().size(), std::size_t{2});
        QVERIFY(reader->deletedRuns().value()[0].deletedMs > 0);
        QVERIFY(edits.remove(Ids{a}).value().empty()); // it is deleted already
        QVERIFY(edits.restore(Ids{a}).ok());
        QCOMPARE(reader->runs().value().size(), std::size_t{1});
        QCOMPARE(reader->run(a).value().deletedMs, 0);
        QCOMPARE(reader->deletedRuns().value()[0].id, b);
    }

    void aRunThatGoesOnIsNotDeletedNorAnythingWithIt()
    {
        StoreRig rig;
        const std::int64_t ended = endedRun(rig, "u1");
        const std::int64_t active = rig.begin("u2");
        QVERIFY(rig.store->beginSegment(active, 0).ok());

        const Status refused = rig.store->edits().remove(Ids{ended, active}).status();

        QCOMPARE(refused.kind(), ErrorKind::InvalidArgument);
        QVERIFY2(refused.message().find("\"run u2\" is going on") != std::string::npos,
            refused.message().c_str());
        QCOMPARE(rig.openReader()->runs().value().size(), std::size_t{2});
    }

    void aRunWhoseProcessDiedCanBeDeleted()
    {
        StoreRig rig;
        const std::int64_t id = rig.begin("u1");
        QVERIFY(rig.store->beginSegment(id, 0).ok());
        QVERIFY(rig.change("UPDATE segment SET boot_id='another boot:1'").ok());

        QCOMPARE(rig.store->edits().remove(Ids{id}).value(), Ids{id});
    }

    void erasingTakesWhatTheRunLeftAndNothingElse()
    {
        StoreRig rig;
        const std::int64_t gone = runWithFolder(rig, "u1");
        const std::int64_t kept = runWithFolder(rig, "u2");
        const QString folder = rig.folder.filePath("u1");
        fillFolder(folder, "u1");
        fillFolder(rig.folder.filePath("u2"), "u2");
        write(folder + "/thesis.txt", "mine");
        write(rig.folder.filePath("elsewhere/weights"), "mine");
        QVERIFY(QFile::link(rig.folder.filePath("elsewhere"), folder + "/model/linked"));
        QVERIFY(rig.store->append(gone, StoreRig::steps(1, 6000)).ok()); // more than one batch
        QVERIFY(rig.store->edits().addTag(Ids{gone}, "old").ok());
        QVERIFY(rig.store->edits().remove(Ids{gone}).ok());

        const RunFiles files = rig.store->edits().filesOf(Ids{gone}).value();
        QCOMPARE(files.bytes, kFilled);
        QCOMPARE(files.files, 5);
        QCOMPARE(files.folders, Words{folder.toStdString()});
        QVERIFY2(rig.store->edits().erase(Ids{gone}, files.bytes).ok(), "erase");

        QCOMPARE(QDir(folder).entryList(QDir::AllEntries | QDir::NoDotAndDotDot),
            QStringList{"thesis.txt"});
        QVERIFY(QFile::exists(rig.folder.filePath("elsewhere/weights")));
        QVERIFY(QFile::exists(rig.folder.filePath("u2/model/model.safetensors")));
        QCOMPARE(rig.number("SELECT count(*) FROM run"), 1);
        QCOMPARE(rig.number("SELECT count(*) FROM step"), 0);
        QCOMPARE(rig.number("SELECT count(*) FROM run_fts"), 1);
        QCOMPARE(rig.number("SELECT count(*) FROM tag"), 0);
        QVERIFY(rig.openReader()->run(kept).ok());
    }

    void aFolderThatOnlyHeldTheRunGoesWithIt()
    {
        StoreRig rig;
        const std::int64_t id = runWithFolder(rig, "u1");
        fillFolder(rig.folder.filePath("u1"), "u1");
        QVERIFY(rig.store->edits().remove(Ids{id}).ok());

        QVERIFY(rig.store->edits().erase(Ids{id}, kFilled).ok());

        QVERIFY(!QFile::exists(rig.folder.filePath("u1")));
    }

    // By a run that another history knows, or that a restored one has forgotten.
    void aFolderThatIsWrittenIsNotErased()
    {
        StoreRig rig;
        const std::int64_t id = runWithFolder(rig, "u1");
        const QString folder = rig.folder.filePath("u1");
        fillFolder(folder, "u1");
        QVERIFY(rig.store->edits().remove(Ids{id}).ok());
        auto lock = FolderLock::take(folder.toStdString());
        QVERIFY(lock.ok());

        const Status refused = rig.store->edits().erase(Ids{id}, 2 * kFilled);

        QVERIFY(!refused.ok());
        QCOMPARE(refused.kind(), ErrorKind::InvalidArgument);
        QVERIFY2(refused.message().find(folder.toStdString()) != std::string::npos,
            refused.message().c_str());
        QVERIFY(QFile::exists(folder + "/model/model.safetensors"));
        lock.value() = FolderLock();
        QVERIFY(rig.store->edits().erase(Ids{id}, 2 * kFilled).ok());
        QVERIFY(!QFile::exists(folder));
    }

    void moreThanWasAgreedToIsNotErased()
    {
        StoreRig rig;
        const std::int64_t id = runWithFolder(rig, "u1");
        fillFolder(rig.folder.filePath("u1"), "u1");
        QVERIFY(rig.store->edits().remove(Ids{id}).ok());

        const Status refused = rig.store->edits().erase(Ids{id}, kFilled - 1);

        QCOMPARE(refused.kind(), ErrorKind::InvalidArgument);
        QVERIFY2(refused.message().find("3122 were agreed to") != std::string::npos,
            refused.message().c_str());
        QVERIFY(QFile::exists(rig.folder.filePath("u1/model/model.safetensors")));
        QCOMPARE(rig.openReader()->deletedRuns().value().size(), std::size_t{1});
    }

    void onlyWhatIsInTheBinIsErased()
    {
        StoreRig rig;
        const std::int64_t id = runWithFolder(rig, "u1");
        fillFolder(rig.folder.filePath("u1"), "u1");

        const Status refused = rig.store->edits().erase(Ids{id}, kFilled);

        QVERIFY2(refused.message().find("is not in the bin") != std::string::npos,
            refused.message().c_str());
        QVERIFY(QFile::exists(rig.folder.filePath("u1/run.json")));
    }

    // The folder was given to another run, or is one of the user's by now.
    void aFolderOfAnotherRunIsLeftAlone()
    {
        StoreRig rig;
        const std::int64_t id = runWithFolder(rig, "u1");
        fillFolder(rig.folder.filePath("u1"), "another");
        QVERIFY(rig.store->edits().remove(Ids{id}).ok());

        QCOMPARE(rig.store->edits().filesOf(Ids{id}).value().bytes, std::uint64_t{0});
        QVERIFY(rig.store->edits().erase(Ids{id}, 0).ok());

        QVERIFY(QFile::exists(rig.folder.filePath("u1/model/model.safetensors")));
        QCOMPARE(rig.number("SELECT count(*) FROM run"), 0);
    }

    void checkpointsInAnotherFolderGoToo()
    {
        StoreRig rig;
        const std::int64_t id = runWithFolder(rig, "u1");
        const QString moved = rig.folder.filePath("other/checkpoints/step-00000009");
        write(moved + "/state/state.json", QByteArray(50, 'x'));
        QVERIFY(
            rig.store->addCheckpoint(id, {9, moved.toStdString(), 50, "complete", 1, 1}, "").ok());
        QVERIFY(rig.store->edits().remove(Ids{id}).ok());

        QCOMPARE(rig.store->edits().filesOf(Ids{id}).value().bytes, std::uint64_t{50});
        QVERIFY(rig.store->edits().erase(Ids{id}, 50).ok());

        QVERIFY(!QFile::exists(rig.folder.filePath("other")));
    }

    void runsThatNeedTheModelAreNamed()
    {
        StoreRig rig;
        const std::int64_t id = runWithFolder(rig, "u1");
        fillFolder(rig.folder.filePath("u1"), "u1");
        NewRun later = StoreRig::newRun("u2");
        later.modelPath = rig.folder.filePath("u1/model").toStdString();
        QVERIFY(rig.store->beginRun(later).ok());

        QCOMPARE(rig.store->edits().filesOf(Ids{id}).value().neededBy, Words{"run u2"});
    }

    void whatWasDeletedLongAgoIsForgotten()
    {
        StoreRig rig;
        const std::int64_t gone = endedRun(rig, "u1");
        const std::int64_t young = endedRun(rig, "u2");
        const std::int64_t kept = endedRun(rig, "u3");
        StoreBatch batch = StoreRig::steps(1, 6000); // more than one batch
        batch.scalars.push_back({"eval_loss", {1, 1, 2.0}});
        batch.events.push_back({0, 1, 1, EventLevel::Info, "a", "b"});
        for (const std::int64_t id : {gone, young, kept})
            QVERIFY(rig.store->append(id, batch).ok());
        QVERIFY(rig.change("INSERT INTO chunk VALUES(1,1,0,0,1000,1,0,0,0,x'00')").ok());
        QVERIFY(rig.store->edits().remove(Ids{gone, young}).ok());
        QVERIFY(rig.change("UPDATE run SET deleted_at=deleted_at-2592000001 WHERE uuid='u1'").ok());
        const std::int64_t pagesBefore = rig.number("PRAGMA page_count");

        QVERIFY(rig.store->edits().expire(kBinMs).ok());

        QCOMPARE(rig.number("SELECT count(*) FROM step"), 12000);
        QCOMPARE(rig.number("SELECT count(*) FROM scalar"), 2);
        QCOMPARE(rig.number("SELECT count(*) FROM chunk"), 0);
        QCOMPARE(rig.number("SELECT count(*) FROM event"), 2);
        QCOMPARE(rig.number("SELECT count(*) FROM run_fts"), 2);
        QCOMPARE(rig.openReader()->deletedRuns().value().size(), std::size_t{1});
        QCOMPARE(rig.number("PRAGMA freelist_count"), 0);
        QVERIFY(rig.number("PRAGMA page_count") < pagesBefore);
        QVERIFY(rig.openReader()->run(kept).ok());
    }

    void aRunThatIsBeingTrainedIsNotForgotten()
    {
        StoreRig rig;
        const std::int64_t id = rig.begin("u1");
        QVERIFY(rig.store->beginSegment(id, 0).ok());
        QVERIFY(rig.store->append(id, StoreRig::steps(1, 3)).ok());
        QVERIFY(rig.change("UPDATE run SET deleted_at=1").ok());

        QVERIFY(rig.store->edits().expire(0).ok());

        QCOMPARE(rig.number("SELECT count(*) FROM step"), 3);
        QVERIFY(rig.store->edits().restore(Ids{id}).ok());
        QCOMPARE(rig.openReader()->runs().value().size(), std::size_t{1});
    }

    void forgettingKeepsTheRecordOfCheckpointsOnDisk()
    {
        StoreRig rig;
        const std::int64_t id = rig.begin("u1");
        const std::string there = rig.folder.path().toStdString();
        QVERIFY(rig.store->addCheckpoint(id, {1, there, 1, "complete", 1, 1}, "").ok());
        QVERIFY(rig.store->addCheckpoint(id, {2, there + "/gone", 1, "complete", 1, 1}, "").ok());
        QVERIFY(rig.store->endRun(id, RunStatus::Done, 0, "").ok());
        QVERIFY(rig.store->edits().remove(Ids{id}).ok());

        QVERIFY(rig.store->edits().expire(0).ok());

        QCOMPARE(rig.number("SELECT count(*) FROM run"), 1);
        QCOMPARE(rig.number("SELECT count(*) FROM checkpoint"), 1);
        QVERIFY(QFile::exists(rig.folder.path()));
    }
};

MR_TEST_WITH_APP(TestStoreEdits)

} // namespace mr::test::tst_store_edits

#include "tst_store_edits.moc"
