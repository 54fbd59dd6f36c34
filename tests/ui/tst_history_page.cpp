// The History page: find a run, open it, resume it, copy it; and say so when there is nothing.

#include "models/run_table_model.h"
#include "pages/history_page.h"
#include "pages/run_view.h"
#include "support/test_room.h"
#include "ui/support/demo_rows.h"
#include "widgets/toast.h"

#include <millrace/step_timeline.h>

#include <QAccessible>
#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QPushButton>
#include <QSettings>
#include <QSignalSpy>
#include <QStandardPaths>
#include <QTableView>
#include <QTest>
#include <QTimer>

namespace mr::test::tst_history_page {

using mr::ui::HistoryPage;
using mr::ui::UiServices;
using mr::ui::test::demoRuns;
using mr::ui::test::demoSnapshot;

namespace {

// A history in which nothing is found: tests hand rows to the page themselves.
class EmptyReader final : public mr::RunReader
{
public:
    mr::Result<std::vector<mr::RunRow>> runs() override { return *demoRuns(); }
    mr::Result<mr::RunRow> run(std::int64_t id) override
    {
        mr::RunRow row = demoSnapshot(180, 600, RunStatus::Stopped)->run;
        row.id = id;
        return row;
    }
    mr::Result<std::vector<mr::StepRow>> steps(
        std::int64_t, std::int64_t after, std::int64_t) override
    {
        return after < 0 ? mr::ui::test::demoSteps(180) : std::vector<mr::StepRow>{};
    }
    mr::Result<std::vector<mr::ScalarRow>> scalars(
        std::int64_t, std::string_view, std::int64_t) override
    {
        return std::vector<mr::ScalarRow>{};
    }
    mr::Result<std::vector<mr::EventRow>> events(std::int64_t, std::int64_t) override
    {
        return std::vector<mr::EventRow>{};
    }
    mr::Result<std::vector<mr::CheckpointRow>> checkpoints(std::int64_t) override
    {
        return std::vector<mr::CheckpointRow>{};
    }
    mr::Result<std::vector<mr::AnswerRow>> answers(std::int64_t) override
    {
        return std::vector<mr::AnswerRow>{};
    }

    mr::Result<std::vector<mr::CounterInfo>> counters(std::int64_t) override
    {
        return std::vector<mr::CounterInfo>();
    }

    mr::Result<mr::CounterSeries> counter(
        std::int64_t, std::string_view, const mr::CounterWindow&) override
    {
        return mr::CounterSeries();
    }

    mr::Result<std::vector<mr::TraceInfo>> traces(std::int64_t) override
    {
        return std::vector<mr::TraceInfo>();
    }

    mr::Result<mr::StepTimeline> timeline(std::int64_t, std::int64_t) override
    {
        return mr::StepTimeline();
    }
};

UiServices services()
{
    UiServices made;
    made.openReader = [](const std::string&) -> mr::Result<std::unique_ptr<mr::RunReader>> {
        return std::unique_ptr<mr::RunReader>(new EmptyReader);
    };
    return made;
}

// Not QTableView::selectRow(): it looks at the modifier keys of the last test.
void select(const HistoryPage& page, int row)
{
    page.table()->selectionModel()->setCurrentIndex(page.table()->model()->index(row, 0),
        QItemSelectionModel::ClearAndSelect | QItemSelectionModel::Rows);
}

bool shows(const QWidget& page, const QString& text)
{
    for (const QLabel* label : page.findChildren<QLabel*>()) {
        if (label->isVisibleTo(&page) && label->text().contains(text))
            return true;
    }
    return false;
}

} // namespace

class TestHistoryPage : public QObject
{
    Q_OBJECT

private slots:

    void initTestCase()
    {
        QLocale::setDefault(QLocale(QLocale::English));
        QStandardPaths::setTestModeEnabled(true);
        QCoreApplication::setOrganizationName(QStringLiteral("millrace-test"));
        QCoreApplication::setApplicationName(QStringLiteral("tst_history_page"));
        QSettings().clear();
    }

    void cleanup() { QSettings().clear(); }

    void withoutRunsThePageOffersToStartOne()
    {
        HistoryPage page(services());

        page.setRuns(std::make_shared<const std::vector<mr::RunRow>>());

        QVERIFY(shows(page, QStringLiteral("No runs yet.")));
        QVERIFY(!page.table()->isVisibleTo(&page));
    }

    void aFilterThatMatchesNothingSaysSo()
    {
        HistoryPage page(services());
        page.setRuns(demoRuns());

        page.findChild<QLineEdit*>(QStringLiteral("historyFilter"))
            ->setText(QStringLiteral("zebra"));

        QCOMPARE(page.table()->model()->rowCount(), 0);
        QVERIFY(shows(page, QStringLiteral("No run matches “zebra”.")));
    }

    void ctrlFGoesToTheFilter()
    {
        HistoryPage page(services());
        page.setRuns(demoRuns());
        page.show();
        QVERIFY(QTest::qWaitForWindowActive(&page));
        page.table()->setFocus();

        QTest::keyClick(page.table(), Qt::Key_F, Qt::ControlModifier);

        QVERIFY(page.findChild<QLineEdit*>(QStringLiteral("historyFilter"))->hasFocus());
    }

    void aNewRunLikeAnOldOneIsAskedForWhatWasAskedForThen()
    {
        HistoryPage page(services());
        auto runs = std::make_shared<std::vector<mr::RunRow>>(*demoRuns());
        runs->resize(2);
        for (mr::RunRow& run : *runs)
            run.configJson = R"({"threads":8})";
        runs->back().askedJson = R"({"threads":0})"; // the other is an older program's
        QSignalSpy wanted(&page, &HistoryPage::newRunLikeRequested);
        const auto repeat = [&page] {
            QTimer::singleShot(0, &page, [] {
                auto* menu = qobject_cast<QMenu*>(QApplication::activePopupWidget());
                QVERIFY(menu != nullptr);
                for (QAction* action : menu->actions())
                    if (action->text() == QStringLiteral("New run like this"))
                        action->trigger();
                menu->close();
            });
            emit page.table()->customContextMenuRequested(QPoint(5, 5));
        };

        page.setRuns(runs);
        QStringList asked;
        for (int row = 0; row < 2; ++row) {
            select(page, row);
            repeat();
            QCOMPARE(wanted.count(), row + 1);
            asked << wanted[row][0].toString();
        }

        asked.sort();
        QCOMPARE(asked, (QStringList{R"({"threads":0})", R"({"threads":8})"}));
    }

    void resumeIsOfferedForResumableRunsOnly()
    {
        HistoryPage page(services());
        page.setRuns(demoRuns());
        QSignalSpy resume(&page, &HistoryPage::resumeRequested);
        auto* button = page.findChild<QPushButton*>(QStringLiteral("historyResume"));

        select(page, 2); // done
        QVERIFY(!button->isEnabled());
        select(page, 1); // stopped
        button->click();

        QCOMPARE(resume.count(), 1);
        QCOMPARE(resume[0][0].toString().toStdString(), (*demoRuns())[1].dir);
    }

    void twoSelectedRunsCanBeComparedTheOlderFirst()
    {
        HistoryPage page(services());
        page.setRuns(demoRuns());
        QSignalSpy compare(&page, &HistoryPage::compareRequested);
        auto* button = page.findChild<QPushButton*>(QStringLiteral("historyCompare"));
        select(page, 0);
        QVERIFY(!button->isEnabled());

        page.table()->selectionModel()->select(page.table()->model()->index(2, 0),
            QItemSelectionModel::Select | QItemSelectionModel::Rows);
        button->click();

        QCOMPARE(compare.count(), 1);
        QCOMPARE(compare[0][0].toLongLong(), qlonglong{(*demoRuns())[2].id});
        QCOMPARE(compare[0][1].toLongLong(), qlonglong{(*demoRuns())[0].id});
    }

    void enterOpensTheRunBelow()
    {
        HistoryPage page(services());
        page.setRuns(demoRuns());
        page.resize(1000, 700);
        page.show();
        select(page, 1);
        page.table()->setFocus();

        QTest::keyClick(page.table(), Qt::Key_Return);

        QTRY_VERIFY(page.view()->isVisible());
        QCOMPARE(page.view()->snapshot()->run.id, (*demoRuns())[1].id);
        QCOMPARE(page.view()->snapshot()->steps.size(), std::size_t{180});
    }

    void ctrlCCopiesTheRowWithHeadings()
    {
        HistoryPage page(services());
        page.setRuns(demoRuns());
        page.show();
        QVERIFY(QTest::qWaitForWindowActive(&page));
        page.table()->setFocus();
        select(page, 0);

        QTest::keyClick(page.table(), Qt::Key_C, Qt::ControlModifier);

        const QString text = QApplication::clipboard()->text();
        QVERIFY(text.startsWith(QStringLiteral("State\tName\t")));
        QVERIFY(text.contains(QStringLiteral("Notes, second try")));
    }

    void aFolderThatNobodyShowsIsNamed()
    {
        HistoryPage page(services());
        auto runs = std::make_shared<std::vector<mr::RunRow>>(*demoRuns());
        for (mr::RunRow& run : *runs)
            run.dir = "/runs/notes";
        page.setRuns(runs);
        select(page, 0);

        page.showFolder();

        QVERIFY2(page.toast()->text().contains("/runs/notes"), qPrintable(page.toast()->text()));
        QCOMPARE(QApplication::clipboard()->text(), QString("/runs/notes"));
    }

    void columnsAreRemembered()
    {
        {
            HistoryPage page(services());
            page.table()->horizontalHeader()->resizeSection(mr::ui::RunTableModel::Name, 321);
            page.table()->sortByColumn(mr::ui::RunTableModel::Steps, Qt::AscendingOrder);
        }

        HistoryPage again(services());

        const QHeaderView* header = again.table()->horizontalHeader();
        QCOMPARE(header->sectionSize(mr::ui::RunTableModel::Name), 321);
        QCOMPARE(header->sortIndicatorSection(), int(mr::ui::RunTableModel::Steps));
    }

    void theSelectionSurvivesARefresh()
    {
        HistoryPage page(services());
        page.setRuns(demoRuns());
        select(page, 3);
        std::vector<mr::RunRow> runs = *demoRuns();
        runs[0].lastStep += 1;

        page.setRuns(std::make_shared<const std::vector<mr::RunRow>>(runs));

        const QModelIndexList rows = page.table()->selectionModel()->selectedRows();
        QCOMPARE(rows.size(), 1);
        QCOMPARE(rows[0].data(mr::ui::RunTableModel::IdRole).toLongLong(), qlonglong{runs[3].id});
    }

    void everyControlHasANameForScreenReaders()
    {
        HistoryPage page(services());
        page.setRuns(demoRuns());

        for (QWidget* widget : page.findChildren<QWidget*>()) {
            if (widget->focusPolicy() == Qt::NoFocus || widget->objectName().startsWith(u"qt_"))
                continue;
            if (qobject_cast<QHeaderView*>(widget) != nullptr ||
                qobject_cast<QLabel*>(widget) != nullptr)
                continue; // a label's text is its name
            QAccessibleInterface* reader = QAccessible::queryAccessibleInterface(widget);
            QVERIFY2(reader != nullptr && !reader->text(QAccessible::Name).isEmpty(),
                widget->metaObject()->className());
        }
    }
};

MR_TEST_WITH_WINDOWS(TestHistoryPage)

} // namespace mr::test::tst_history_page

#include "tst_history_page.moc"
