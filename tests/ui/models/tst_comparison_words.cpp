// The sentence of a comparison agrees with its rows: faster or slower, waiting, loss.

#include "models/comparison_words.h"
#include "support/test_room.h"

#include <QLocale>
#include <QTest>

namespace mr::test::tst_comparison_words {

using namespace mr::ui;

namespace {

RunFigures figures(const char* policy, double meanStepUs, double stallShare)
{
    RunFigures run{};
    run.policy = QString::fromLatin1(policy);
    run.name = std::string("run of ") + policy;
    run.isEnded = true;
    run.meanStepUs = meanStepUs;
    run.stallShare = stallShare;
    return run;
}

QString plain(QString text)
{
    return text.replace(QChar(0xa0), QChar(' '));
}

const CommonLoss kHeldOut{true, true, 300, 2.3, 2.31};

} // namespace

class TestComparisonWords : public QObject
{
    Q_OBJECT

private slots:

    void initTestCase() { QLocale::setDefault(QLocale(QLocale::English)); }

    void aFasterRunIsSaidToBe()
    {
        QCOMPARE(plain(ComparisonWords::sentence(
                     figures("zero-offload", 900, 0.41), figures("zenflow", 500, 0.02), kHeldOut)),
            QString("zenflow: 1.8 times faster per step than zero-offload, stalled 2 % instead of "
                    "41 %; held-out loss 2.310 against 2.300 at step 300."));
    }

    void aSlowerRunIsSaidToBe()
    {
        QCOMPARE(plain(ComparisonWords::sentence(
                     figures("resident", 500, 0.0), figures("streamed", 520, 0.003), {})),
            QString("streamed: 1.04 times slower per step than resident, stalled 0.3 % instead of "
                    "0 %."));
    }

    void aDifferenceThatMayBeChanceIsNotMadeOne()
    {
        RunFigures first = figures("streamed", 5100, 0.0);
        RunFigures second = figures("resident", 5000, 0.0);
        first.stepErrorUs = 60;
        second.stepErrorUs = 40;
        QVERIFY(ComparisonWords::sentence(first, second, {}).contains("as fast per step"));

        first.stepErrorUs = 6;
        second.stepErrorUs = 4;

        QVERIFY(ComparisonWords::sentence(first, second, {}).contains("1.02 times faster"));
    }

    void aDifferenceThatIsNoneIsNotMadeOne()
    {
        const QString sentence = ComparisonWords::sentence(
            figures("resident", 1000, 0.1), figures("streamed", 1002, 0.1), {});

        QVERIFY2(
            sentence.startsWith("streamed: as fast per step as resident"), qPrintable(sentence));
    }

    void whileOneGoesOnTheSentenceIsProvisional()
    {
        RunFigures live = figures("zenflow", 500, 0.02);
        live.isEnded = false;

        const QString sentence =
            ComparisonWords::sentence(figures("zero-offload", 900, 0.41), live, kHeldOut);

        QVERIFY2(sentence.startsWith("So far, zenflow: 1.8 times"), qPrintable(sentence));
    }

    void withoutStepsThereIsNoSentence()
    {
        QVERIFY(ComparisonWords::sentence(
            figures("zero-offload", 900, 0.41), figures("zenflow", std::nan(""), 0.0), kHeldOut)
                    .isEmpty());
    }

    void twoRunsOfOnePolicyAreToldApartByName()
    {
        RunFigures first = figures("zenflow", 1, 0);
        RunFigures second = first;
        first.name = "monday";
        second.name = "tuesday";

        const auto labels = ComparisonWords::labels(first, second);

        QCOMPARE(labels[0], QString("monday"));
        QCOMPARE(labels[1], QString("tuesday"));
    }

    void exactnessNeedsAPlan()
    {
        RunFigures run = figures("zenflow", 1, 0);
        QCOMPARE(ComparisonWords::exactness(run), QString(QChar(0x2013)));

        run.isPlanned = true;
        run.exact = true;

        QCOMPARE(ComparisonWords::exactness(run), QString("exact"));
        run.exact = false;
        QCOMPARE(ComparisonWords::exactness(run), QString("clipped by groups"));
        run.inexactBy = "order=by-layer-flip";
        QCOMPARE(ComparisonWords::exactness(run), QString("summed in flipped order"));
        run.maxStaleSteps = 3;
        QCOMPARE(ComparisonWords::exactness(run), QString("at most 3 step(s) stale"));
    }
};

MR_TEST_WITH_WINDOWS(TestComparisonWords)

} // namespace mr::test::tst_comparison_words

#include "tst_comparison_words.moc"
