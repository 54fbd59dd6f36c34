// Exports in the history: a run's has a row with its verdict; a history that is not there, or does
// not have the run, costs the row and nothing else.

// The engine's headers come before those of Qt.
// clang-format off
#include "app/export_record.h"
#include "app/exports.h"
#include "core/run/run_rig.h"
#include "core/store/sqlite.h"
#include "core/telemetry/run_folder.h"
#include "support/test_room.h"
// clang-format on

#include <QTest>

#include <filesystem>
#include <future>
#include <thread>

namespace mr::test::tst_export_record {

namespace {

namespace fs = std::filesystem;

ExportOutcome outcomeAt(const std::string& path)
{
    return {path, 1000, "q8_0", {"read back equal"}, {}, {"a note"}};
}

// A run folder with a model, a checkpoint and a history that has it.
struct Rig {
    Folder folder;
    std::string database = folder.path("history.db");
    fs::path run = folder.path("run");
    std::int64_t id = 0;

    explicit Rig(const std::string& uuid = "u1")
    {
        for (const char* part : {"run/adapter", "run/checkpoints/step-00000005/model", "model"})
            fs::create_directories(folder.path(part));
        RunSpec spec;
        spec.database = database;
        NewRun record;
        record.uuid = uuid;
        record.name = "run";
        record.configJson = toJson(spec);
        record.dir = run.string();
        if (!saveRunRecord(run.string(), record).ok())
            qFatal("the record of a test run cannot be written");
        id = enter(database, record);
    }

    static std::int64_t enter(const std::string& history, const NewRun& record)
    {
        auto store = RunStore::open(history);
        return store.ok() ? store.value()->beginRun(record).value() : 0;
    }

    static std::vector<ExportRow> exportsIn(const std::string& history, std::int64_t id)
    {
        auto reader = RunReader::open(history);
        return reader.ok() ? reader.value()->exports(id).value() : std::vector<ExportRow>();
    }

    std::vector<ExportRow> exports() const { return exportsIn(database, id); }

    // The history of the record becomes another one.
    void nameHistory(const std::string& path) const
    {
        NewRun record = readRunRecord(run.string()).value();
        RunSpec spec;
        spec.database = path;
        record.configJson = toJson(spec);
        if (!saveRunRecord(run.string(), record).ok())
            qFatal("the record of a test run cannot be written");
    }

    ExportOrder order(const std::string& model) const
    {
        ExportOrder order;
        order.model = model;
        order.form = ExportForm::Gguf;
        order.out = folder.path("out.gguf");
        return order;
    }

    Status record() const
    {
        return app::recordExport(order(run.string()), outcomeAt(folder.path("out.gguf")));
    }
};

} // namespace

class TestExportRecord : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void anExportedRunHasARowWithItsVerdict();
    void whatLiesInARunIsTheRuns_data();
    void whatLiesInARunIsTheRuns();
    void aFailedCheckIsKept();
    void withoutItsHistoryTheExportIsWhole();
    void aHistoryThatDoesNotHaveTheRunIsLeftAlone_data();
    void aHistoryThatDoesNotHaveTheRunIsLeftAlone();
    void aRunFromElsewhereIsFoundInTheUsersHistory();
    void anotherWriterIsWaitedFor();
};

void TestExportRecord::anExportedRunHasARowWithItsVerdict()
{
    const Rig rig;
    const Folder model;
    writeSmallModel(model);
    fs::copy(model.path(), rig.run / "model", fs::copy_options::recursive);
    ExportOrder order = rig.order(rig.run.string());
    order.form = ExportForm::Safetensors;
    order.out = rig.folder.path("beside/../exported");

    const Result<ExportOutcome> done = app::writeExport(order);

    QVERIFY2(done.ok(), done.status().message().c_str());
    const ExportOutcome said = Result(done).value();
    QVERIFY(said.passed() && said.notes.empty());
    const auto rows = rig.exports();
    QCOMPARE(rows.size(), std::size_t{1});
    QCOMPARE(rows[0].form, std::string("safetensors"));
    QCOMPARE(rows[0].type, std::string("fp32"));
    QCOMPARE(rows[0].path, rig.folder.path("exported"));
    QCOMPARE(rows[0].bytes, static_cast<std::int64_t>(said.bytes));
    QVERIFY(rows[0].passed && rows[0].bytes > 0 && rows[0].createdMs > 1'600'000'000'000);
    QVERIFY(!rows[0].facts.empty());
    QCOMPARE(rows[0].facts, said.facts);
}

void TestExportRecord::whatLiesInARunIsTheRuns_data()
{
    QTest::addColumn<QString>("model"); // in the folder of the rig
    QTest::addColumn<QString>("adapter");
    QTest::addColumn<int>("rows");
    QTest::newRow("run") << "run"
                         << "" << 1;
    QTest::newRow("checkpoint") << "run/checkpoints/step-00000005"
                                << "" << 1;
    QTest::newRow("its model") << "run/checkpoints/step-00000005/model/"
                               << "" << 1;
    QTest::newRow("adapter beside a model") << "model"
                                            << "run/adapter" << 1;
    QTest::newRow("model") << "model"
                           << "" << 0;
    QTest::newRow("another adapter on its model") << "run/adapter"
                                                  << "model" << 0;
    QTest::newRow("not there") << "nowhere"
                               << "" << 0;
}

void TestExportRecord::whatLiesInARunIsTheRuns()
{
    QFETCH(const QString, model);
    QFETCH(const QString, adapter);
    QFETCH(const int, rows);
    const Rig rig;
    ExportOrder order = rig.order(rig.folder.path(model.toStdString()));
    if (!adapter.isEmpty())
        order.adapter = rig.folder.path(adapter.toStdString());

    const Status entered = app::recordExport(order, outcomeAt("/out.gguf"));

    QVERIFY2(entered.ok(), entered.message().c_str());
    QCOMPARE(static_cast<int>(rig.exports().size()), rows);
}

void TestExportRecord::aFailedCheckIsKept()
{
    const Rig rig;
    ExportOutcome outcome = outcomeAt("/out.failed.gguf");
    outcome.faults = {"the end of an answer is another"};

    QVERIFY(app::recordExport(rig.order(rig.run.string()), outcome).ok());

    const auto rows = rig.exports();
    QCOMPARE(rows.size(), std::size_t{1});
    QVERIFY(!rows[0].passed);
    QCOMPARE(rows[0].form, std::string("gguf"));
    QCOMPARE(rows[0].faults, outcome.faults);
    QCOMPARE(rows[0].facts, outcome.facts);
    QCOMPARE(rows[0].notes, outcome.notes);
    auto opened = Database::open(rig.database, OpenMode::ReadOnly);
    QCOMPARE(
        opened.value()->integer("SELECT count(*) FROM export WHERE status='failed'").value(), 1);
}

void TestExportRecord::withoutItsHistoryTheExportIsWhole()
{
    const Rig rig;
    const Folder model;
    writeSmallModel(model);
    fs::copy(model.path(), rig.run / "model", fs::copy_options::recursive);
    fs::remove(rig.database);
    ExportOrder order = rig.order(rig.run.string());
    order.form = ExportForm::Safetensors;

    const Result<ExportOutcome> done = app::writeExport(order);

    QVERIFY2(done.ok(), done.status().message().c_str());
    const ExportOutcome said = Result(done).value();
    QVERIFY(said.passed());
    QVERIFY(fs::exists(fs::path(said.path) / "model.safetensors"));
    QCOMPARE(said.notes.size(), std::size_t{1});
    for (const std::string& part : {std::string("The history has no entry of this export: "),
             rig.database, "millrace runs rebuild " + rig.run.string()})
        QVERIFY2(contains(said.notes[0], part), said.notes[0].c_str());
    QVERIFY(!fs::exists(rig.database));
}

void TestExportRecord::aHistoryThatDoesNotHaveTheRunIsLeftAlone_data()
{
    QTest::addColumn<QString>("history"); // in the folder of the rig
    QTest::newRow("not there") << "none.db";
    QTest::newRow("a folder") << "model";
    QTest::newRow("a text") << "text";
    QTest::newRow("of other runs") << "other.db";
}

void TestExportRecord::aHistoryThatDoesNotHaveTheRunIsLeftAlone()
{
    QFETCH(const QString, history);
    const Rig rig;
    rig.folder.write("text", "no database");
    NewRun other;
    other.uuid = "another";
    other.configJson = "{}";
    QVERIFY(Rig::enter(rig.folder.path("other.db"), other) > 0);
    // Its format is an earlier one, so a writer would change it.
    QVERIFY(Database::open(rig.folder.path("other.db"), OpenMode::ReadWriteCreate)
                .value()
                ->script("DROP INDEX export_run; ALTER TABLE export DROP COLUMN verdict_json;"
                         "PRAGMA user_version=2")
                .ok());
    const std::string named = rig.folder.path(history.toStdString());
    const auto before = fs::is_regular_file(named) ? readFile(named) : std::string();
    rig.nameHistory(named);

    const Status entered = rig.record();

    QCOMPARE(entered.kind(), ErrorKind::InvalidArgument);
    QVERIFY2(contains(entered.message(), named), entered.message().c_str());
    QVERIFY2(contains(entered.message(), "does not have the run"), entered.message().c_str());
    QCOMPARE(fs::is_regular_file(named) ? readFile(named) : std::string(), before);
    QVERIFY(rig.exports().empty());
}

void TestExportRecord::aRunFromElsewhereIsFoundInTheUsersHistory()
{
    const Rig rig("moved");
    const std::int64_t id =
        Rig::enter(defaultDatabasePath(), readRunRecord(rig.run.string()).value());
    QVERIFY(id > 0);
    rig.nameHistory(rig.folder.path("home-of-another/history.db"));

    const Status entered = rig.record();

    QVERIFY2(entered.ok(), entered.message().c_str());
    QCOMPARE(Rig::exportsIn(defaultDatabasePath(), id).size(), std::size_t{1});
}

// As a run that trains in another process is one.
void TestExportRecord::anotherWriterIsWaitedFor()
{
    const Rig rig;
    std::promise<void> locked;
    std::thread writer([&] {
        auto database = Database::open(rig.database, OpenMode::ReadWriteCreate);
        auto transaction = Transaction::begin(*database.value());
        locked.set_value();
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
    });
    locked.get_future().wait();
    const Status entered = rig.record();
    writer.join();
    QVERIFY2(entered.ok(), entered.message().c_str());
    QCOMPARE(rig.exports().size(), std::size_t{1});
}

MR_TEST(TestExportRecord)

} // namespace mr::test::tst_export_record

#include "tst_export_record.moc"
