// The words of a timeline.

#include "support/test_room.h"
#include "text/timeline_words.h"

#include <QTest>

namespace mr::test::tst_timeline_words {

using namespace mr::ui;

class TestTimelineWords : public QObject
{
    Q_OBJECT

private slots:

    void initTestCase() { QLocale::setDefault(QLocale(QLocale::English)); }

    void layersAreNamedForPeople()
    {
        QCOMPARE(TimelineWords::layer("embedding"), QStringLiteral("Embedding"));
        QCOMPARE(TimelineWords::layer("block 17"), QStringLiteral("Layer 17"));
        QCOMPARE(TimelineWords::layer("shared"), QStringLiteral("Shared slots"));
        QCOMPARE(TimelineWords::layer("adapter"), QStringLiteral("adapter"));
        TimelineSpan span;
        span.group = 5;
        QCOMPARE(TimelineWords::layerOf(span, {"embedding"}), QStringLiteral("Group 5"));
        span.group = -1;
        QCOMPARE(TimelineWords::layerOf(span, {"embedding"}), QString());
    }

    void reasonsAreToldInWords()
    {
        QCOMPARE(TimelineWords::why("every 50th step"), QStringLiteral("one of every 50"));
        QCOMPARE(TimelineWords::why("slowest so far"), QStringLiteral("the slowest until then"));
        QCOMPARE(TimelineWords::why("asked for"), QStringLiteral("asked for"));
    }

    void aTaskOfANewerProgramKeepsItsName()
    {
        TimelineSpan span;
        span.task = "Compress";

        QCOMPARE(TimelineWords::task(span.task), QStringLiteral("Compress"));
        QVERIFY(TimelineWords::classOf(span) == TimelineClass::Engine);
    }

    void timesHaveUnitsAndTellNeighboursApart()
    {
        const QChar space(0xa0);
        QCOMPARE(spanText(0.0), QStringLiteral("0") + space + QStringLiteral("ns"));
        QCOMPARE(spanText(1'500.0), QStringLiteral("1.5") + space + QStringLiteral("µs"));
        QCOMPARE(spanText(12'345'678.0), QStringLiteral("12.35") + space + QStringLiteral("ms"));
        QCOMPARE(spanText(2.5e9), QStringLiteral("2.500") + space + QStringLiteral("s"));
    }

    void shortTextsComeAfterLongOnes()
    {
        TimelineSpan span;
        span.task = "Forward";
        span.group = 1;
        span.micro = 3;

        const QStringList texts = TimelineWords::barTexts(span, {"embedding", "block 0"});

        QVERIFY(texts.size() > 1);
        for (qsizetype i = 1; i < texts.size(); ++i)
            QVERIFY(texts[i].size() < texts[i - 1].size());
        QVERIFY(texts.first().contains(QStringLiteral("micro-batch 3")));
    }
};

MR_TEST_WITH_WINDOWS(TestTimelineWords)

} // namespace mr::test::tst_timeline_words

#include "tst_timeline_words.moc"
