// Exports of a run in the history: as they were entered, newest first, and gone with their run.

#include "core/store/schema.h"
#include "core/store/store_rig.h"
#include "support/test_room.h"

#include <QDir>
#include <QtTest>

namespace mr::test::tst_export_rows {

namespace {

using Ids = std::vector<std::int64_t>;

ExportRow passedExport(std::int64_t createdMs)
{
    ExportRow row;
    row.form = "gguf";
    row.type = "q8_0";
    row.path = "/out/a.gguf";
    row.bytes = std::int64_t{5} << 30;
    row.passed = true;
    row.facts = {"Q8_0: 12 weights, read back equal", "200 of 200 texts"};
    row.notes = {"\"Quoted\", and 水車"};
    row.createdMs = createdMs;
    return row;
}

ExportRow failedExport(std::int64_t createdMs)
{
    ExportRow row;
    row.form = "ollama";
    row.type = "q4_0";
    row.path = "/out/b.failed";
    row.faults = {"3 of 200 texts become other tokens\xFF"};
    row.createdMs = createdMs;
    return row;
}

} // namespace

class TestExportRows : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void anExportComesBackAsItWasEntered()
    {
        StoreRig rig;
        const std::int64_t id = rig.begin("u1");
        const std::int64_t other = rig.begin("u2");
        RunEdits& edits = rig.store->edits();

        QVERIFY(edits.addExport(id, failedExport(2000)).ok());
        QVERIFY(edits.addExport(id, passedExport(3000)).ok());
        QVERIFY(edits.addExport(id, passedExport(1000)).ok()); // a clock that was set back

        const auto rows = rig.openReader()->exports(id).value();
        QCOMPARE(rows.size(), std::size_t{3});
        QCOMPARE(rows[0].createdMs, 3000);
        QCOMPARE(rows[1].createdMs, 2000);
        QCOMPARE(rows[2].createdMs, 1000);
        const ExportRow asked = passedExport(3000);
        QCOMPARE(rows[0].form, asked.form);
        QCOMPARE(rows[0].type, asked.type);
        QCOMPARE(rows[0].path, asked.path);
        QCOMPARE(rows[0].bytes, asked.bytes);
        QVERIFY(rows[0].passed && rows[0].faults.empty());
        QCOMPARE(rows[0].facts, asked.facts);
        QCOMPARE(rows[0].notes, asked.notes);
        QVERIFY(!rows[1].passed && rows[1].facts.empty());
        QVERIFY(rows[1].faults[0].starts_with("3 of 200 texts become other tokens"));
        QCOMPARE(rig.number("SELECT count(*) FROM export WHERE status='failed'"), 1);
        QVERIFY(rig.openReader()->exports(other).value().empty());
    }

    void onlyARunHasExports()
    {
        StoreRig rig;
        rig.begin("u1");
        QCOMPARE(
            rig.store->edits().addExport(77, passedExport(1)).kind(), ErrorKind::InvalidArgument);
        QCOMPARE(rig.openReader()->exports(77).status().kind(), ErrorKind::InvalidArgument);
        QCOMPARE(rig.number("SELECT count(*) FROM export"), 0);
    }

    void aVerdictThatCannotBeReadHasNoSentences()
    {
        StoreRig rig;
        const std::int64_t id = rig.begin("u1");
        for (const char* json :
            {"'{'", "'[1]'", "'{\"facts\":7,\"notes\":[1,\"kept\"]}'", "NULL"}) {
            QVERIFY(rig.store->edits().addExport(id, passedExport(1)).ok());
            QVERIFY(rig.change((std::string("UPDATE export SET verdict_json=") + json +
                                   " WHERE id=(SELECT max(id) FROM export)")
                                   .c_str())
                        .ok());
        }

        const auto rows = rig.openReader()->exports(id).value(); // the last one first
        QCOMPARE(rows.size(), std::size_t{4});
        QCOMPARE(rows[1].notes, std::vector<std::string>{"kept"});
        for (const ExportRow& row : rows)
            QVERIFY(row.passed && row.facts.empty());
    }

    void exportsGoWithTheirRun()
    {
        StoreRig rig;
        const std::int64_t gone = rig.begin("u1");
        const std::int64_t kept = rig.begin("u2");
        RunEdits& edits = rig.store->edits();
        for (const std::int64_t id : {gone, kept}) {
            QVERIFY(rig.store->endRun(id, RunStatus::Done, 0, "").ok());
            QVERIFY(edits.addExport(id, passedExport(1)).ok());
        }
        QVERIFY(edits.remove(Ids{gone}).ok());
        QVERIFY(!rig.openReader()->exports(gone).ok()); // hidden with it
        QCOMPARE(rig.number("SELECT count(*) FROM export"), 2);

        QVERIFY(edits.erase(Ids{gone}, 0).ok());

        QCOMPARE(rig.number("SELECT count(*) FROM export"), 1);
        QCOMPARE(rig.openReader()->exports(kept).value().size(), std::size_t{1});
    }

    // A reader stays open meanwhile, as the window's does.
    void aHistoryOfFormatTwoHasNoneUntilItIsMigrated()
    {
        StoreRig rig;
        const std::int64_t id = rig.begin("u1");
        rig.store.reset();
        QVERIFY(rig.change("DROP INDEX export_run; ALTER TABLE export DROP COLUMN verdict_json;"
                           "PRAGMA user_version=2")
                    .ok());
        const auto reader = rig.openReader();
        QVERIFY(reader != nullptr);
        Result<std::vector<ExportRow>> before = reader->exports(id);
        QVERIFY2(before.ok(), before.status().message().c_str());
        QVERIFY(before.value().empty());

        rig.store = rig.openStore();
        QVERIFY(rig.store != nullptr);
        QCOMPARE(rig.number("PRAGMA user_version"), std::int64_t{kSchemaVersion});
        QCOMPARE(
            QDir(rig.folder.filePath("data")).entryList({"history-v2-*.db"}).size(), qsizetype{1});
        QVERIFY(rig.store->edits().addExport(id, passedExport(1)).ok());

        Result<std::vector<ExportRow>> after = reader->exports(id);
        QVERIFY2(after.ok(), after.status().message().c_str());
        QCOMPARE(after.value().size(), std::size_t{1});
        QCOMPARE(after.value()[0].facts, passedExport(1).facts);
    }
};

MR_TEST(TestExportRows)

} // namespace mr::test::tst_export_rows

#include "tst_export_rows.moc"
