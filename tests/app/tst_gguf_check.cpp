// The check of a GGUF file: in which precision it is asked by the memory there is, and a stop while
// it is asked.

// The engine's headers come before those of Qt.
// clang-format off
#include "app/export_questions.h"
#include "app/exports.h"
#include "app/gguf_export.h"
#include "core/run/run_rig.h"
#include "support/test_room.h"
// clang-format on

#include <QTest>

#include <filesystem>
#include <nlohmann/json.hpp>

namespace mr::test::tst_gguf_check {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

} // namespace

class TestGgufCheck : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void initTestCase();
    void memoryChoosesThePrecision_data();
    void memoryChoosesThePrecision();
    void withoutMemoryItIsNotAsked();
    void bf16JudgesEveryForm_data();
    void bf16JudgesEveryForm();
    void aStopAmongTheQuestionsLeavesNothing();

private:
    app::GgufRequest request(GgufForm form = GgufForm::F32) const
    {
        app::GgufRequest made;
        made.model = m_model.path();
        made.out = m_out->path("model.gguf");
        made.form = form;
        made.device = DeviceChoice::Cpu;
        made.threads = 1;
        return made;
    }
    // In that precision.
    std::uint64_t needed(DType compute) const
    {
        app::AskingRequest asking{m_model.path(), {m_model.path()}, DeviceChoice::Cpu, 1, 1};
        const auto least = app::prepareAsking(asking).value().choice.room.neededBytes;
        if (compute == DType::BF16)
            return least;
        asking.memoryBytes = 1'000'000'000;
        return app::prepareAsking(asking).value().choice.room.neededBytes;
    }
    json kept() const { return json::parse(readFile(m_out->path("model.gguf.check.json"))); }
    static QStringList listed(const std::string& folder)
    {
        return QDir(QString::fromStdString(folder))
            .entryList(QDir::AllEntries | QDir::Hidden | QDir::NoDotAndDotDot);
    }
    QStringList files() const { return listed(m_out->path()); }
    // Folders that GGUF files stand for.
    QStringList cachedModels() const { return listed(m_cache.path("millrace/gguf")); }

    Folder m_model;
    Folder m_cache;
    std::unique_ptr<Folder> m_out;

private Q_SLOTS:
    void init() { m_out = std::make_unique<Folder>(); }
};

void TestGgufCheck::initTestCase()
{
    qputenv("XDG_CACHE_HOME", QByteArray::fromStdString(m_cache.path()));
    writeSmallModel(m_model);
}

void TestGgufCheck::memoryChoosesThePrecision_data()
{
    QTest::addColumn<qulonglong>("memory");
    QTest::addColumn<QString>("precision");
    QTest::newRow("free memory") << 0ULL << "fp32";
    QTest::newRow("enough") << qulonglong{needed(DType::F32)} << "fp32";
    QTest::newRow("a byte less") << qulonglong{needed(DType::F32)} - 1 << "bf16";
    QTest::newRow("just enough") << qulonglong{needed(DType::BF16)} << "bf16";
}

void TestGgufCheck::memoryChoosesThePrecision()
{
    QFETCH(qulonglong, memory);
    QFETCH(QString, precision);
    app::GgufRequest asked = request();
    asked.memoryBytes = memory;

    const auto made = app::writeCheckedGguf(asked);

    QVERIFY2(made.ok(), made.status().message().c_str());
    const app::GgufOutcome outcome = Result(made).value();
    QVERIFY2(outcome.faults.empty(), outcome.faults.empty() ? "" : outcome.faults[0].c_str());
    QVERIFY(outcome.verdict.has_value());
    QVERIFY(outcome.verdict->tokens > 50);
    QCOMPARE(name(outcome.askedIn), std::string_view(precision.toStdString()));
    QCOMPARE(kept()["asked"]["precision"].get<std::string>(), precision.toStdString());
    for (const std::string& note : outcome.report.notes)
        QVERIFY2(!contains(note, "not asked"), note.c_str());
}

void TestGgufCheck::withoutMemoryItIsNotAsked()
{
    app::GgufRequest asked = request();
    asked.memoryBytes = needed(DType::BF16) - 1;

    const auto made = app::writeCheckedGguf(asked);

    QVERIFY2(made.ok(), made.status().message().c_str());
    const app::GgufOutcome outcome = Result(made).value();
    QVERIFY(!outcome.verdict.has_value());
    QVERIFY(outcome.faults.empty());
    QVERIFY(fs::exists(asked.out));
    QVERIFY(!outcome.report.notes.empty());
    QVERIFY2(contains(outcome.report.notes.back(), "It was not asked: asking needs "),
        outcome.report.notes.back().c_str());
    QVERIFY(!kept().contains("asked"));
    QVERIFY(contains(kept()["notes"].back().get<std::string>(), "It was not asked"));
    QCOMPARE(kept()["weights"]["F32"]["largest_error"].get<double>(), 0.0);
}

void TestGgufCheck::bf16JudgesEveryForm_data()
{
    QTest::addColumn<int>("form");
    for (const GgufForm form : {GgufForm::F32, GgufForm::F16, GgufForm::BF16, GgufForm::Q8_0,
             GgufForm::Q6_K, GgufForm::Q4_K_M, GgufForm::Q4_0})
        QTest::newRow(std::string(ggufFormName(form)).c_str()) << static_cast<int>(form);
}

void TestGgufCheck::bf16JudgesEveryForm()
{
    QFETCH(int, form);
    app::GgufRequest asked = request(static_cast<GgufForm>(form));
    asked.memoryBytes = needed(DType::BF16);

    const auto made = app::writeCheckedGguf(asked);

    QVERIFY2(made.ok(), made.status().message().c_str());
    const app::GgufOutcome outcome = Result(made).value();
    QVERIFY2(outcome.faults.empty(), outcome.faults.empty() ? "" : outcome.faults[0].c_str());
    qInfo(
        "agreement %.3f, mean KL %.3g", outcome.verdict->agreement(), outcome.verdict->divergence);
    if (static_cast<GgufForm>(form) == GgufForm::F32 ||
        static_cast<GgufForm>(form) == GgufForm::BF16)
        QCOMPARE(outcome.verdict->divergence, 0.0);
}

void TestGgufCheck::aStopAmongTheQuestionsLeavesNothing()
{
    ExportOrder order;
    order.model = m_model.path();
    order.out = m_out->path("model.gguf");
    order.form = ExportForm::Gguf;
    order.device = DeviceChoice::Cpu;
    order.threads = 1;
    int asked = 0; // times with all bytes written
    int stopAt = 0;
    const auto watch = [&](std::uint64_t done, std::uint64_t all) {
        asked += done == all ? 1 : 0;
        return stopAt == 0 || asked < stopAt;
    };
    QVERIFY(app::writeExport(order, watch).ok());
    const int whole = asked;
    QVERIFY2(whole > 2 * 10 * 10, qPrintable(QString::number(whole))); // tokens of both models

    for (const int stop : {2, whole / 3, whole}) { // behind the file itself, amid, the last token
        m_out = std::make_unique<Folder>();
        order.out = m_out->path("model.gguf");
        asked = 0;
        stopAt = stop;
        const Status status = app::writeExport(order, watch).status();
        QVERIFY2(status.kind() == ErrorKind::Cancelled, status.message().c_str());
        QCOMPARE(asked, stop); // at once
        QCOMPARE(files(), QStringList());
        QCOMPARE(cachedModels(), QStringList());
    }
}

MR_TEST(TestGgufCheck)

} // namespace mr::test::tst_gguf_check

#include "tst_gguf_check.moc"
