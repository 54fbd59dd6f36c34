// Parts of pages: readable colours, bars and chips that add up, texts in Japanese.

#include "language.h"
#include "models/run_command.h"
#include "support/test_room.h"
#include "text/theme_colors.h"
#include "ui/support/fake_services.h"
#include "widgets/stacked_bar.h"
#include "widgets/status_strip.h"
#include "widgets/token_preview.h"

#include <QDomDocument>
#include <QFile>
#include <QFontMetricsF>
#include <QTest>

namespace mr::test::tst_look {

using namespace mr::ui;
using namespace mr::ui::test;

namespace {

constexpr double kReadable = 4.5; // WCAG 2.1, 1.4.3, for text of normal size
constexpr double kVisible = 3.0;  // 1.4.11, for edges and marks

void eachTheme()
{
    QTest::addColumn<bool>("dark");
    QTest::newRow("light") << false;
    QTest::newRow("dark") << true;
}

void stands(const QColor& color, const QColor& ground, double least)
{
    QVERIFY2(
        contrastRatio(color, ground) >= least, qPrintable(QString("%1 on %2: %3")
                                                              .arg(color.name(), ground.name())
                                                              .arg(contrastRatio(color, ground))));
}

} // namespace

class TestLook : public QObject
{
    Q_OBJECT

private slots:

    void everyTextColourCanBeRead_data() { eachTheme(); }

    void everyTextColourCanBeRead()
    {
        QFETCH(const bool, dark);
        const QPalette palette = themePalette(dark);
        const ThemeColors& colors = themeColors(palette);
        QCOMPARE(isDark(palette), dark);

        const QColor window = palette.color(QPalette::Window);
        // Rows of tables stand on the last two.
        for (const QColor& ground : {window, colors.card, palette.color(QPalette::Base),
                 palette.color(QPalette::AlternateBase)}) {
            for (const QColor& text :
                {palette.color(QPalette::WindowText), palette.color(QPalette::Text), colors.muted,
                    colors.good, colors.warning, colors.error, colors.accent})
                stands(text, ground, kReadable);
        }
        stands(colors.trainedText, colors.trainedFill, kReadable);
        stands(colors.maskedText, colors.maskedFill, kReadable);
        const auto pair = [&](QPalette::ColorRole text, QPalette::ColorRole ground) {
            stands(palette.color(text), palette.color(ground), kReadable);
        };
        pair(QPalette::PlaceholderText, QPalette::Base);
        pair(QPalette::ButtonText, QPalette::Button);
        pair(QPalette::HighlightedText, QPalette::Highlight);
        pair(QPalette::ToolTipText, QPalette::ToolTipBase);
        pair(QPalette::Link, QPalette::Window);
        pair(QPalette::LinkVisited, QPalette::Window);
    }

    void everyEdgeAndMarkCanBeSeen_data() { eachTheme(); }

    void everyEdgeAndMarkCanBeSeen()
    {
        QFETCH(const bool, dark);
        const QPalette palette = themePalette(dark);
        const ThemeColors& colors = themeColors(palette);

        // Fields, boxes and the ring of the focus stand on cards and on the window.
        for (const QColor& ground : {palette.color(QPalette::Window), colors.card}) {
            stands(colors.frame, ground, kVisible);
            stands(colors.accent, ground, kVisible);
        }
        stands(colors.frame, palette.color(QPalette::Base), kVisible);
        for (const QColor& line : colors.series)
            stands(line, colors.card, kVisible);
        for (const QColor& cause : colors.stall)
            stands(cause, colors.card, kVisible);
        stands(colors.compute, colors.card, kVisible);
    }

    void piecesOfABarAddUpToTheirShareOfTheLimit()
    {
        const QVector<BarPiece> pieces = {{"a", 30, {}}, {"b", 20, {}}};

        const auto layout = StackedBarLayout::make(pieces, 100, 200.0);

        QCOMPARE(layout.pieces[0].width, 60.0);
        QCOMPARE(layout.pieces[1].left, 60.0);
        QCOMPARE(layout.pieces[1].width, 40.0);
        QCOMPARE(layout.limitX, 200.0);
    }

    void aBarThatIsTooFullShowsItsLimitInside()
    {
        const auto layout = StackedBarLayout::make({{"a", 400, {}}}, 100, 200.0);

        QCOMPARE(layout.pieces[0].width, 200.0);
        QCOMPARE(layout.limitX, 50.0);
    }

    void chipsStayInsideTheWidthAndKeepTheirOrder()
    {
        const auto rows = fakeDataset().preview;

        const auto layout = TokenLayout::make(rows, QFontMetricsF(QFont()), 200.0);

        QCOMPARE(layout.headings.size(), 3);
        std::size_t tokens = 0;
        for (const auto& row : rows)
            tokens += row.tokens.size();
        QCOMPARE(layout.chips.size(), static_cast<qsizetype>(tokens));
        for (int i = 0; i < layout.chips.size(); ++i) {
            QVERIFY(layout.chips[i].rect.right() <= 200.0);
            QVERIFY(layout.chips[i].rect.bottom() <= layout.height);
            if (i > 0)
                QVERIFY(layout.chips[i].rect.top() > layout.chips[i - 1].rect.top() ||
                        layout.chips[i].rect.left() > layout.chips[i - 1].rect.left());
        }
    }

    void whatCannotBeSeenInATokenIsMadeVisible()
    {
        QCOMPARE(visibleToken(" a\n"), QString("␣a⏎"));
        QCOMPARE(visibleToken(""), QString("∅"));
    }

    void waitingOfTheLastMinuteLeavesOlderStepsOut()
    {
        StepSeries steps;
        StepRow old;
        old.step = 1;
        old.timeMs = 1000;
        old.wallUs = 1'000'000;
        StepRow fresh;
        fresh.step = 2;
        fresh.timeMs = 100'000;
        fresh.wallUs = 1'000'000;
        fresh.computeUs = 750'000;
        const std::array rows = {old, fresh};
        steps.append(rows);

        QCOMPARE(recentStallPercent(steps, 60'000), 25.0);
        QVERIFY(std::isnan(recentStallPercent({}, 60'000)));
    }

    void theCommandLineNamesWhatDiffersAndQuotesPaths()
    {
        RunSpec spec;
        spec.modelDir = "/models/it's here";
        spec.data.push_back({"/data/a.jsonl", DataFormat::Auto, {{"prompt", "q"}}});
        spec.pack = true;
        spec.learningRate = 2e-3;
        spec.schedule = ScheduleKind::Linear;
        spec.policy = "resident";
        spec.diskPaths = {"/fast drive"};
        spec.diskBytes = 7;
        spec.maxDiskWriteBytes = 100'000'000'000'000;
        spec.linkBytesPerSecond = 12e9;

        QCOMPARE(trainCommand(spec),
            QString("millrace train --model '/models/it'\\''s here' --data /data/a.jsonl "
                    "--map prompt=q --pack --lr 0.002 --schedule linear --policy resident "
                    "--disk-space 7 --disk-path '/fast drive' "
                    "--max-disk-writes 100000000000000 --link 12GB/s"));
    }

    void everyTextHasAJapaneseTranslationWithTheSamePlaces()
    {
        QFile file(qEnvironmentVariable("MILLRACE_SOURCE") + "/translations/millrace_ja.ts");
        QVERIFY2(file.open(QIODevice::ReadOnly), qPrintable(file.fileName()));
        QDomDocument document;
        QVERIFY(document.setContent(&file));
        const QDomNodeList messages = document.elementsByTagName("message");
        QVERIFY(messages.size() > 100);
        for (int i = 0; i < messages.size(); ++i) {
            const QDomElement message = messages.at(i).toElement();
            const QString source = message.firstChildElement("source").text();
            const QDomElement translation = message.firstChildElement("translation");
            const QString text = translation.text();
            QVERIFY2(
                translation.attribute("type").isEmpty() && !text.isEmpty(), qPrintable(source));
            for (const char* place : {"%1", "%2", "%3", "%4", "%5", "%n"})
                QVERIFY2(source.contains(place) == text.contains(place), qPrintable(source));
        }
    }

    void japaneseIsInTheProgram()
    {
        Language language;
        language.choose("ja");

        QCOMPARE(QCoreApplication::translate("mr::ui::MainWindow", "History"), QString("履歴"));
        language.choose("en");
        QCOMPARE(QCoreApplication::translate("mr::ui::MainWindow", "History"), QString("History"));
    }
};

MR_TEST_WITH_WINDOWS(TestLook)

} // namespace mr::test::tst_look

#include "tst_look.moc"
