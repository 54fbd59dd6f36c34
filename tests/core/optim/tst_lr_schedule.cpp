#include "core/optim/lr_schedule.h"
#include "support/test_room.h"

#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTest>

#include <cmath>
#include <optional>

namespace mr::test::tst_lr_schedule {

namespace {

// The shared data folder: $MILLRACE_SHARED, or beside the source tree.
QString sharedFolder()
{
    const QString named = qEnvironmentVariable("MILLRACE_SHARED");
    return named.isEmpty() ? qEnvironmentVariable("MILLRACE_SOURCE") + QStringLiteral("/../shared")
                           : named;
}

std::optional<ScheduleKind> kindOf(const QString& name)
{
    if (name.startsWith(QLatin1String("constant")))
        return ScheduleKind::Constant;
    if (name == QLatin1String("linear"))
        return ScheduleKind::Linear;
    if (name == QLatin1String("cosine"))
        return ScheduleKind::Cosine;
    return std::nullopt;
}

} // namespace

class TestLrSchedule : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void agreesWithTransformers()
    {
        QFile file(sharedFolder() + QStringLiteral("/data/optimizer_schedules.json"));
        if (!file.open(QIODevice::ReadOnly)) {
            qInfo("skipped: %s is not here", qPrintable(file.fileName()));
            return;
        }
        const QJsonObject cases =
            QJsonDocument::fromJson(file.readAll())[QLatin1String("hf_transformers")].toObject();
        int checked = 0;
        for (const auto& entry : cases[QLatin1String("schedules")].toArray()) {
            const QJsonObject schedule = entry.toObject();
            const auto kind = kindOf(schedule[QLatin1String("name")].toString());
            if (!kind)
                continue;
            const QJsonObject args = schedule[QLatin1String("args")].toObject();
            const LrSchedule ours{*kind, cases[QLatin1String("base_lr")].toDouble(),
                args[QLatin1String("num_warmup_steps")].toInt(),
                args[QLatin1String("num_training_steps")].toInt(10)};
            const QJsonArray rates = schedule[QLatin1String("lrs")].toArray();
            for (int k = 0; k < rates.size(); ++k)
                QVERIFY(std::fabs(learningRate(ours, k) - rates[k].toDouble()) <=
                        cases[QLatin1String("tolerance")].toDouble());
            ++checked;
        }
        QCOMPARE(checked, 4); // constant, with and without warm-up, linear, cosine
    }

    void warmUpRisesFromZeroAndTheEndIsZero()
    {
        const LrSchedule cosine{ScheduleKind::Cosine, 2e-3, 10, 300};
        QCOMPARE(learningRate(cosine, 0), 0.0);
        QCOMPARE(learningRate(cosine, 5), 1e-3);
        QCOMPARE(learningRate(cosine, 10), 2e-3);
        QCOMPARE(learningRate(cosine, 155), 1e-3);
        QVERIFY(learningRate(cosine, 299) > 0.0);
        QVERIFY(learningRate(cosine, 300) < 1e-18);
        QVERIFY(learningRate(cosine, 1000) < 1e-18);
        QCOMPARE(learningRate({ScheduleKind::Linear, 1.0, 0, 4}, 1), 0.75);
        QCOMPARE(learningRate({ScheduleKind::Constant, 1.0, 0, 4}, 100), 1.0);
        // A warm-up as long as the run is no division by zero.
        QCOMPARE(learningRate({ScheduleKind::Cosine, 1.0, 4, 4}, 4), 1.0);
    }
};

MR_TEST(TestLrSchedule)

} // namespace mr::test::tst_lr_schedule

#include "tst_lr_schedule.moc"
