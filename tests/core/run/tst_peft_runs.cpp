// Runs that train an adapter, against the same runs of peft in float32: every loss, every norm of
// the gradient and the loss of held-out rows after the last step.
//
// The goldens are made by tests/reference/peft_runs.py, which says what lies in their folders.

#include "core/run/run_rig.h"
#include "support/test_room.h"

#include <millrace/spec_fields.h>

#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QtTest>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>

namespace mr::test::tst_peft_runs {

namespace fs = std::filesystem;

namespace {

constexpr double kLossError = 1e-5; // absolute, at losses of 1 to 4
constexpr double kNormError = 1e-4; // relative

fs::path sourceRoot()
{
    return {qEnvironmentVariable("MILLRACE_SOURCE").toStdString()};
}

// A run of peft.
struct Golden {
    explicit Golden(const std::string& name)
        : folder(sourceRoot() / "tests/core/run/goldens/peft" / name)
    {
        QFile file(QString::fromStdString((folder / "golden.json").string()));
        if (!file.open(QIODevice::ReadOnly))
            qFatal("%s cannot be read", qPrintable(file.fileName()));
        json = QJsonDocument::fromJson(file.readAll()).object();
        root = sourceRoot();
        if (text("place") == "shared")
            root = sharedData();
    }

    std::string text(const char* key) const { return json[key].toString().toStdString(); }

    // A part of the file that the run was trained on or evaluated on.
    std::string part(const char* key) const
    {
        const QJsonArray range = json[key].toArray();
        const auto begin = static_cast<std::size_t>(range[0].toInt());
        const auto end = static_cast<std::size_t>(range[1].toInt());
        return readFile((root / text("file")).string()).substr(begin, end - begin);
    }

    fs::path folder;
    fs::path root;
    QJsonObject json;
};

RunSpec specOf(const Golden& golden, const RunRig& rig)
{
    RunSpec spec = rig.spec(golden.folder.filename().string());
    spec.method = "lora"; // unless the options say otherwise
    const QJsonObject options = golden.json["options"].toObject();
    for (auto it = options.begin(); it != options.end(); ++it) {
        const SpecField* field = findSpecField(it.key().toStdString());
        if (field == nullptr || !readOption(*field, it->toString().toStdString(), spec).ok())
            qFatal("%s cannot be set", qPrintable(it.key()));
    }
    const std::string ending = fs::path(golden.text("file")).extension().string();
    spec.modelDir = (golden.root / golden.text("model")).string();
    spec.adapterDir = (golden.folder / "adapter").string();
    const auto source = [&](const std::string& name, const char* key) {
        return DataSource{rig.folder.write(name + ending, golden.part(key)), DataFormat::Auto, {}};
    };
    spec.data = {source("trained", "data")};
    spec.evalData = {source("held out", "eval_data")};
    spec.evalEvery = spec.steps;
    return spec;
}

double largest(const std::vector<double>& values)
{
    return *std::max_element(values.begin(), values.end());
}

} // namespace

class TestPeftRuns : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void lossesAndGradientsAreThoseOfPeft_data();
    void lossesAndGradientsAreThoseOfPeft();

private:
    RunRig m_rig;
};

void TestPeftRuns::lossesAndGradientsAreThoseOfPeft_data()
{
    QTest::addColumn<QString>("name");
    QTest::newRow("LoRA on all linear modules, clipped") << QStringLiteral("all_linears");
    QTest::newRow("rsLoRA") << QStringLiteral("rslora");
    QTest::newRow("DoRA on all linear modules, clipped") << QStringLiteral("dora");
    QTest::newRow("DoRA with dropout on four modules") << QStringLiteral("dora_dropout");
    QTest::newRow("LoRA on two modules, B zero, clipped") << QStringLiteral("query_value");
    QTest::newRow("patterns of rank and alpha, decay") << QStringLiteral("patterns");
    QTest::newRow("QLoRA, NF4 of bitsandbytes") << QStringLiteral("qlora");
    QTest::newRow("an embedding, which is the head, trained whole") << QStringLiteral("modules");
    QTest::newRow("rows of it") << QStringLiteral("tokens");
}

void TestPeftRuns::lossesAndGradientsAreThoseOfPeft()
{
    QFETCH(const QString, name);
    const Golden golden(name.toStdString());
    if (!fs::exists(golden.root / golden.text("model")))
        QSKIP("no shared data (MILLRACE_SHARED)");
    const auto device = smallDevice(2, CpuDeviceOptions::Mode::Threaded);

    const Outcome run = m_rig.train(specOf(golden, m_rig), *device);

    QVERIFY2(run.opened.ok(), run.opened.message().c_str());
    QVERIFY2(run.ended.ok(), run.ended.message().c_str());
    const QJsonArray losses = golden.json["losses"].toArray();
    const QJsonArray norms = golden.json["grad_norms"].toArray();
    const std::vector<StepRow> steps = m_rig.steps(run.id);
    QCOMPARE(std::ssize(steps), losses.size());
    std::vector<double> lossErrors;
    std::vector<double> normErrors;
    for (qsizetype i = 0; i < losses.size(); ++i) {
        const StepRow& step = steps[static_cast<std::size_t>(i)];
        lossErrors.push_back(std::abs(step.loss - losses[i].toDouble()));
        normErrors.push_back(std::abs(step.gradNorm / norms[i].toDouble() - 1.0));
    }
    const double evalError = std::abs(run.progress.evalLoss - golden.json["eval_loss"].toDouble());
    const QString errors = QStringLiteral("largest errors: loss %1, norm %2, evaluation %3")
                               .arg(largest(lossErrors))
                               .arg(largest(normErrors))
                               .arg(evalError);
    qInfo("%s", qPrintable(errors));
    QVERIFY2(largest(lossErrors) <= kLossError, qPrintable(errors));
    QVERIFY2(largest(normErrors) <= kNormError, qPrintable(errors));
    QVERIFY2(evalError <= kLossError, qPrintable(errors));
}

MR_TEST(TestPeftRuns)

} // namespace mr::test::tst_peft_runs

#include "tst_peft_runs.moc"
