// Rotary frequencies of every kind of scaling against transformers, and the fields of a config.
//
// The goldens are made by tests/reference/make_goldens.py from the functions that published models
// are run with. Those work in float32: a frequency is at most ten roundings away, and a power of
// a base under 10^6 adds 14 u for the exponent's rounding (ln 10^6 = 13.8), u = 2^-24.

#include "core/model/model_config.h"
#include "core/model/model_folder.h"
#include "core/model/rope_scaling.h"
#include "support/test_room.h"

#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTest>

#include <cmath>
#include <filesystem>
#include <set>
#include <string>
#include <utility>

namespace mr::test::tst_rope_scaling {

namespace {

constexpr double kTolerance = 2.0 * 24.0 * 0x1p-24; // both sides round

QJsonArray goldenCases()
{
    const std::filesystem::path source = qEnvironmentVariable("MILLRACE_SOURCE").toStdString();
    QFile file(QString::fromStdString((source / "tests/core/model/goldens/rope.json").string()));
    if (!file.open(QIODevice::ReadOnly))
        qFatal("%s cannot be read", qPrintable(file.fileName()));
    return QJsonDocument::fromJson(file.readAll()).array();
}

std::string refusalOf(const std::string& scaling)
{
    std::string text = tinyConfig();
    text.replace(text.find("\"model_type\""), 0, "\"rope_scaling\": " + scaling + ",\n ");
    return parseModelConfig(text, "/m/config.json").status().message();
}

} // namespace

class TestRopeScaling : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void frequenciesAreThoseOfPublishedModels_data()
    {
        QTest::addColumn<QJsonObject>("golden");
        for (const QJsonValue& golden : goldenCases())
            QTest::newRow(qPrintable(golden["name"].toString())) << golden.toObject();
    }

    void frequenciesAreThoseOfPublishedModels()
    {
        QFETCH(QJsonObject, golden);
        const QByteArray text = QJsonDocument(golden["config"].toObject()).toJson();
        const ModelConfig c = config(text.toStdString());

        const RopeFrequencies rope = ropeFrequencies(
            c.ropes.front().scaling, c.shapeOf(c.ropes.front()), golden["length"].toInteger());

        const QJsonArray inverse = golden["inverse"].toArray();
        QCOMPARE(static_cast<qsizetype>(rope.inverse.size()), inverse.size());
        for (qsizetype i = 0; i < inverse.size(); ++i) {
            const double wanted = inverse[i].toDouble();
            const auto got = static_cast<double>(rope.inverse[static_cast<std::size_t>(i)]);
            QVERIFY2(std::abs(got - wanted) <= kTolerance * wanted,
                qPrintable(QStringLiteral("pair %1: %2, wanted %3").arg(i).arg(got).arg(wanted)));
        }
        const double factor = golden["attention_factor"].toDouble();
        QVERIFY(std::abs(rope.attentionFactor - factor) <= 1e-12 * factor);
    }

    void theGoldensCoverEveryType()
    {
        std::set<std::string> types;
        for (const QJsonValue& golden : goldenCases()) {
            const std::string name = golden["name"].toString().toStdString();
            types.insert(name.substr(0, name.find('_')));
        }
        QCOMPARE(types,
            (std::set<std::string>{"default", "dynamic", "linear", "llama3", "longrope", "yarn"}));
    }

    void aScalingThatLacksAFieldOrHasAStrangeOneIsRefusedByName()
    {
        const std::pair<const char*, const char*> cases[] = {
            {R"({"rope_type": "llama3", "factor": 8.0})", "low_freq_factor"},
            {R"({"rope_type": "linear"})", "factor"},
            {R"({"rope_type": "linear", "factor": 0})", "factor"},
            {R"({"rope_type": "linear", "factor": 2.0, "beta_fast": 3})", "beta_fast"},
            {R"({"rope_type": "yarn", "factor": 2.0, "mscale": -0.5})", "mscale"},
            {R"({"rope_type": "yarn", "factor": 2.0, "mscale_all_dim": -1})", "mscale_all_dim"},
            {R"({"rope_type": "mrope", "factor": 2.0})", "'mrope'"},
            {R"({"rope_type": "linear", "type": "yarn", "factor": 2.0})", "'yarn'"},
            {R"({"rope_type": "longrope", "short_factor": [1], "long_factor": [1, 1, 1]})",
                "short_factor"},
            {R"({"rope_type": "longrope", "short_factor": [1, 1, 1], "long_factor": [1, 0, 1]})",
                "long_factor"},
            {R"({"type": "su", "short_factor": [1, 1, 1], "long_factor": [1, 1, 1]})", "factor"},
            {R"({"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 4.0,
                "high_freq_factor": 4.0, "original_max_position_embeddings": 16})",
                "high_freq_factor"}};
        for (const auto& [scaling, name] : cases) {
            const std::string message = refusalOf(scaling);
            QVERIFY2(has(message, name) && message.starts_with("/m/config.json"),
                (message + scaling).c_str());
        }
        QCOMPARE(
            refusalOf(R"({"type": "linear", "rope_type": "linear", "factor": 2})"), std::string());
    }
};

MR_TEST(TestRopeScaling)

} // namespace mr::test::tst_rope_scaling

#include "tst_rope_scaling.moc"
