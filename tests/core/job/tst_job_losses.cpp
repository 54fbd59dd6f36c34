// losses.jsonl of a job: read as it is written, and refused by line and field where it is not.

#include "core/job/job_losses.h"
#include "support/test_room.h"

#include <QtTest>

#include <cmath>

namespace mr::test::tst_job_losses {

class TestJobLosses : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void stepsAndEvaluationsAreRead();
    void badLinesAreNamed_data();
    void badLinesAreNamed();
};

void TestJobLosses::stepsAndEvaluationsAreRead()
{
    const auto losses = parseJobLosses(
        R"({"step": 7, "loss": 2.5, "lr": 0.001, "grad_norm": null, "tokens": 96, "loss_tokens": 90, "wall_ms": 12.5})"
        "\n"
        R"({"step": 7, "eval_loss": 2.25})"
        "\n\n"
        R"({"step": 9, "loss": 2.0, "lr": 0.002, "grad_norm": 1.5, "tokens": 97, "loss_tokens": 91, "wall_ms": 1000})",
        "losses.jsonl");
    QVERIFY2(losses.ok(), losses.status().message().c_str());
    const JobLosses read = Result(losses).value();
    QCOMPARE(read.steps.size(), std::size_t{2});
    QCOMPARE(read.steps[0].loss, 2.5);
    QVERIFY(std::isnan(read.steps[0].gradNorm));
    QCOMPARE(read.steps[0].wallUs, 12'500);
    QCOMPARE(read.steps[0].computeUs, 12'500);
    QCOMPARE(read.steps[1].step, 9);
    QCOMPARE(read.steps[1].tokens, 97);
    QCOMPARE(read.steps[1].lossTokens, 91);
    QCOMPARE(read.steps[1].timeMs, 1012);
    QCOMPARE(read.evaluations.size(), std::size_t{1});
    QCOMPARE(read.evaluations[0].step, 7);
    QCOMPARE(read.evaluations[0].value, 2.25);
}

void TestJobLosses::badLinesAreNamed_data()
{
    const QByteArray good =
        R"({"step": 1, "loss": 2.5, "lr": 0.1, "grad_norm": 1, "tokens": 9, "loss_tokens": 9, "wall_ms": 1})";
    const auto with = [&](const char* from, const char* to) {
        return QByteArray(good).replace(from, to);
    };
    QTest::addColumn<QByteArray>("text");
    QTest::addColumn<QString>("words");
    QTest::newRow("no JSON") << good + "\n{\"step\": 2,"
                             << "losses.jsonl:2";
    QTest::newRow("NaN") << with("2.5", "NaN") << "losses.jsonl:1";
    QTest::newRow("a list") << QByteArray("[1]") << "losses.jsonl:1";
    QTest::newRow("no step") << with("\"step\"", "\"stop\"") << "\"step\"";
    QTest::newRow("step 0") << with("\"step\": 1", "\"step\": 0") << "\"step\"";
    QTest::newRow("a step twice") << good + "\n" + good << "losses.jsonl:2: field \"step\"";
    QTest::newRow("a loss that is a text") << with("2.5", "\"low\"") << "\"loss\"";
    QTest::newRow("tokens below 0") << with("\"tokens\": 9", "\"tokens\": -9") << "\"tokens\"";
    QTest::newRow("no time") << with("wall_ms\": 1", "wall_ms\": -1") << "\"wall_ms\"";
    QTest::newRow("too long a time") << with("wall_ms\": 1", "wall_ms\": 1e300") << "\"wall_ms\"";
    QTest::newRow("an evaluation without a number")
        << QByteArray(R"({"step": 1, "eval_loss": "x"})") << "\"eval_loss\"";
}

void TestJobLosses::badLinesAreNamed()
{
    QFETCH(QByteArray, text);
    QFETCH(QString, words);
    const auto losses = parseJobLosses(text.toStdString(), "losses.jsonl");
    QVERIFY(!losses.ok());
    QVERIFY(losses.status().kind() == ErrorKind::DataCorrupt);
    const QString message = QString::fromStdString(losses.status().message());
    QVERIFY2(message.contains(words), qPrintable(message));
    QVERIFY2(message.contains("losses.jsonl:"), qPrintable(message));
}

MR_TEST(TestJobLosses)

} // namespace mr::test::tst_job_losses

#include "tst_job_losses.moc"
