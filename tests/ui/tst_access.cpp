// Every page and every dialog can be used with the keyboard and with a screen reader: names and
// roles, reach and order of Tab, a focus that is seen.

#include "charts/table_window.h"
#include "language.h"
#include "main_window.h"
#include "pages/close_question.h"
#include "pages/compare_page.h"
#include "pages/dataset_section.h"
#include "pages/export_dialog.h"
#include "pages/get_model_dialog.h"
#include "pages/help_dialog.h"
#include "pages/help_page.h"
#include "pages/history_page.h"
#include "pages/home_page.h"
#include "pages/live_page.h"
#include "pages/models_dialog.h"
#include "pages/new_run_page.h"
#include "pages/report_dialog.h"
#include "pages/start_problem.h"
#include "pages/try_form.h"
#include "pages/try_page.h"
#include "support/test_room.h"
#include "text/theme_colors.h"
#include "theme.h"
#include "ui/support/demo_pair.h"
#include "ui/support/demo_rows.h"
#include "ui/support/fake_services.h"
#include "ui/support/own_settings.h"
#include "widgets/nav_rail.h"

#include <QAbstractButton>
#include <QAbstractItemView>
#include <QAbstractSpinBox>
#include <QAccessible>
#include <QApplication>
#include <QComboBox>
#include <QDialog>
#include <QImage>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QRadioButton>
#include <QScrollArea>
#include <QTemporaryDir>
#include <QTest>

#include <algorithm>

namespace mr::test::tst_access {

using namespace mr::ui;
using namespace mr::ui::test;

namespace {

constexpr QSize kAllOfAPage(1280, 4200); // nothing is scrolled away
constexpr int kMostStops = 400;

RunSpec goodSpec()
{
    RunSpec spec;
    spec.modelDir = kGoodModel;
    spec.data.push_back({kGoodData, DataFormat::Auto, {}});
    return spec;
}

QString nameOf(const QWidget& widget)
{
    auto* face = QAccessible::queryAccessibleInterface(const_cast<QWidget*>(&widget));
    return QString("%1 '%2' (%3) in %4")
        .arg(widget.metaObject()->className(), face ? face->text(QAccessible::Name) : QString(),
            widget.objectName(),
            widget.parentWidget() ? widget.parentWidget()->metaObject()->className() : "nothing");
}

// Parts that Qt puts into its own widgets: fields of boxes, corners and scroll bars of tables.
bool isOfQt(const QWidget& widget)
{
    const QWidget* parent = widget.parentWidget();
    return widget.objectName().startsWith("qt_") || widget.inherits("QLineEditIconButton") ||
           widget.inherits("QTableCornerButton") || widget.inherits("QHeaderView") ||
           qobject_cast<const QAbstractSpinBox*>(parent) || qobject_cast<const QComboBox*>(parent);
}

// Controls that a click changes or presses.
bool takesClicks(const QWidget& widget)
{
    return qobject_cast<const QAbstractButton*>(&widget) ||
           qobject_cast<const QComboBox*>(&widget) ||
           qobject_cast<const QAbstractSpinBox*>(&widget) ||
           qobject_cast<const QLineEdit*>(&widget) ||
           qobject_cast<const QPlainTextEdit*>(&widget) ||
           qobject_cast<const QAbstractItemView*>(&widget);
}

// Tab reaches the chosen one of radio buttons, and the arrow keys the others.
bool isInAGroup(const QWidget& widget)
{
    const auto* button = qobject_cast<const QRadioButton*>(&widget);
    return button != nullptr && button->autoExclusive() && !button->isChecked();
}

} // namespace

class TestAccess : public QObject
{
    Q_OBJECT

private slots:

    void initTestCase()
    {
        QVERIFY(m_folder.isValid());
        keepSettingsIn(m_folder.path());
        QVERIFY(makeSampleFolder(m_folder.filePath("sample")));
        m_theme = std::make_unique<Theme>();
        m_language = std::make_unique<Language>();
    }

    void cleanup()
    {
        m_dialog.reset();
        m_window.reset();
    }

    void cleanupTestCase() { m_theme->setChoice(ThemeChoice::System); }

    void everyControlHasANameAndARole_data() { eachPlace(); }

    void everyControlHasANameAndARole()
    {
        QFETCH(const QString, place);
        QWidget* top = open(place);
        QVERIFY(top != nullptr);

        QStringList bad;
        for (const QWidget* widget : everything(*top)) {
            if (!(widget->focusPolicy() & Qt::TabFocus) && !takesClicks(*widget))
                continue;
            auto* face = QAccessible::queryAccessibleInterface(const_cast<QWidget*>(widget));
            // Qt gives an area that scrolls no role but that of its content.
            const bool isArea = qobject_cast<const QScrollArea*>(widget) != nullptr;
            const bool isPlain = !face || face->role() == QAccessible::NoRole ||
                                 (face->role() == QAccessible::Client && !isArea);
            if (isPlain || face->text(QAccessible::Name).trimmed().isEmpty())
                bad << nameOf(*widget);
        }
        QVERIFY2(bad.isEmpty(), qPrintable(bad.join("\n")));
    }

    void tabReachesEverythingInOrderAndIsSeen_data() { eachPlace(); }

    void tabReachesEverythingInOrderAndIsSeen()
    {
        QFETCH(const QString, place);
        QWidget* top = open(place);
        QVERIFY(top != nullptr);
        QVERIFY(QTest::qWaitForWindowActive(top->window()));

        QStringList unseen;
        const std::vector<QWidget*> stops = walk(*top, unseen);

        QStringList missed;
        for (QWidget* widget : everything(*top)) {
            const bool isUsable = widget->isVisible() && widget->isEnabled();
            if (isUsable && takesClicks(*widget) && !isInAGroup(*widget) &&
                std::find(stops.begin(), stops.end(), widget) == stops.end())
                missed << nameOf(*widget);
        }
        QStringList reached;
        for (const QWidget* stop : stops)
            reached << nameOf(*stop);
        QVERIFY2(missed.isEmpty(),
            qPrintable("not reached:\n" + missed.join("\n") + "\nreached:\n" + reached.join("\n")));
        const QStringList wrong = outOfOrder(stops, *top);
        QVERIFY2(wrong.isEmpty(), qPrintable("out of order:\n" + wrong.join("\n")));
        QVERIFY2(unseen.isEmpty(), qPrintable("focus not seen:\n" + unseen.join("\n")));
    }

    void pagesAreTabsForScreenReaders()
    {
        open("home");
        const auto* rail = m_window->findChild<NavRail*>();
        int selected = 0;
        int tabs = 0;
        for (auto* button : rail->findChildren<QAbstractButton*>()) {
            auto* face = QAccessible::queryAccessibleInterface(button);
            if (face->role() != QAccessible::PageTab)
                continue;
            ++tabs;
            selected += face->state().selected ? 1 : 0;
        }

        QCOMPARE(tabs, 6);
        QCOMPARE(selected, 1);
        for (auto* button : rail->findChildren<QAbstractButton*>()) {
            auto* face = QAccessible::queryAccessibleInterface(button);
            if (face->text(QAccessible::Name) == "History")
                face->actionInterface()->doAction(QAccessibleActionInterface::pressAction());
        }
        QCOMPARE(m_window->page(), MainWindow::Page::History);
    }

private:
    static void eachPlace()
    {
        QTest::addColumn<QString>("place");
        for (const char* place : {"home", "new run", "live", "history", "run of the history",
                 "compare", "try", "glossary", "help page", "report", "models", "get a model",
                 "export", "start problem", "close question", "table"})
            QTest::newRow(place) << place;
    }

    // Shows the place; the part of the window to look at.
    QWidget* open(const QString& place)
    {
        if (QWidget* dialog = openDialog(place)) {
            m_dialog.reset(dialog);
            dialog->setAttribute(Qt::WA_DeleteOnClose, false);
            dialog->show();
            dialog->activateWindow();
            QCoreApplication::processEvents();
            return dialog;
        }
        UiServices services = fakeServices(std::make_shared<FakeRun>(), demoRuns());
        services.sampleDir = m_folder.filePath("sample").toStdString();
        m_window = std::make_unique<MainWindow>(services, *m_theme, *m_language);
        m_window->resize(kAllOfAPage);
        m_window->show();
        m_window->activateWindow();
        QWidget* page = openPage(place);
        for (int i = 0; i < 5; ++i)
            QCoreApplication::processEvents();
        return page;
    }

    QWidget* openPage(const QString& place)
    {
        MainWindow& window = *m_window;
        using Page = MainWindow::Page;
        if (place == "home") {
            window.showPage(Page::Home);
            window.home()->setRuns(demoRuns());
            return settled(
                [&] { return window.home()->sampleButton()->isEnabled(); }, window.home());
        }
        if (place == "new run") {
            window.showPage(Page::NewRun);
            window.newRun()->setSpec(goodSpec());
            window.findChild<QAbstractButton*>("advanced")->setChecked(true);
            return settled(
                [&] {
                    return window.newRun()->datasetSection()->info() && window.newRun()->settled();
                },
                window.newRun());
        }
        if (place == "live") {
            window.showPage(Page::Live);
            window.live()->showSnapshot(demoSnapshot(412, 600));
            return window.live();
        }
        if (place == "history" || place == "run of the history") {
            window.showPage(Page::History);
            window.history()->setRuns(demoRuns());
            if (place != "history")
                window.history()->showSnapshot(demoExported(300));
            return window.history();
        }
        if (place == "compare") {
            window.showPage(Page::Compare);
            const auto [first, second] = demoPair(140, 600);
            window.compare()->showSnapshot(0, first);
            window.compare()->showSnapshot(1, second);
            return window.compare();
        }
        window.showPage(Page::Try);
        window.tryIt()->form()->setText("How many eggs?");
        return window.tryIt();
    }

    static QWidget* settled(const std::function<bool()>& isDone, QWidget* page)
    {
        return QTest::qWaitFor(isDone) ? page : nullptr;
    }

    QWidget* openDialog(const QString& place)
    {
        UiServices services = fakeServices(std::make_shared<FakeRun>(), demoRuns());
        services.hubPeer = [] { return Result<HubPeer>(HubPeer{"huggingface.co", false}); };
        services.findModels = [](const std::vector<std::string>&) { return LocalModels(); };
        if (place == "glossary")
            return HelpDialog::glossary(nullptr);
        if (place == "help page")
            return new HelpPage(QStringLiteral("from_text_to_ollama"), nullptr);
        if (place == "report")
            return new ReportDialog(services, nullptr);
        if (place == "models")
            return new ModelsDialog(services, nullptr);
        if (place == "get a model")
            return new GetModelDialog(services, nullptr);
        if (place == "export")
            return new ExportDialog(services, {"/runs/7", "Eggs: first try", true, true}, nullptr);
        if (place == "start problem")
            return new StartProblem(
                "the history is damaged", "/a/history.db", [](const QString&) { return true; });
        if (place == "close question")
            return new CloseQuestion(true, "second", nullptr);
        if (place == "table")
            return tableWindow();
        return nullptr;
    }

    QWidget* tableWindow()
    {
        m_below = std::make_unique<QWidget>();
        TableWindow::showCsv(*m_below, "step,loss\n1,2\n", "Loss");
        auto* window = m_below->findChild<QDialog*>();
        window->setParent(nullptr, window->windowFlags());
        return window;
    }

    static QList<QWidget*> everything(QWidget& top)
    {
        QList<QWidget*> found;
        for (auto* widget : top.findChildren<QWidget*>())
            if (!isOfQt(*widget) && widget->window() == top.window() && !widget->focusProxy())
                found << widget;
        return found;
    }

    // The widgets that Tab stops at within `top`, in its order. Those whose picture is the same
    // with and without the focus are added to `unseen`.
    static std::vector<QWidget*> walk(QWidget& top, QStringList& unseen)
    {
        std::vector<QWidget*> stops;
        QWidget& window = *top.window();
        window.setFocus();
        for (int i = 0; i < kMostStops; ++i) {
            QTest::keyClick(window.focusWidget() ? window.focusWidget() : &window, Qt::Key_Tab);
            QWidget* now = window.focusWidget();
            if (!stops.empty() && now == stops.back())
                continue; // from link to link of a text
            if (now == nullptr || std::find(stops.begin(), stops.end(), now) != stops.end())
                break;
            stops.push_back(now);
            if (top.isAncestorOf(now) && !isSeen(*now))
                unseen << nameOf(*now);
        }
        std::erase_if(stops, [&top](const QWidget* stop) { return !top.isAncestorOf(stop); });
        return stops;
    }

    // Takes the focus away for a moment.
    static bool isSeen(QWidget& widget)
    {
        constexpr int kMargin = 3; // of what stands around it
        constexpr int kLeastPixels = 12;
        const QRect place(widget.mapTo(widget.window(), QPoint(-kMargin, -kMargin)),
            widget.size() + QSize(2 * kMargin, 2 * kMargin));
        const auto picture = [&] {
            QCoreApplication::processEvents();
            return widget.window()->grab(place).toImage().convertToFormat(QImage::Format_RGB32);
        };
        const QImage with = picture();
        widget.clearFocus();
        const QImage without = picture();
        widget.setFocus(Qt::TabFocusReason);
        int changed = 0;
        for (int y = 0; y < with.height() && changed < kLeastPixels; ++y)
            for (int x = 0; x < with.width(); ++x)
                if (with.pixel(x, y) != without.pixel(x, y) &&
                    contrastRatio(with.pixelColor(x, y), without.pixelColor(x, y)) >= 1.4)
                    ++changed;
        return changed >= kLeastPixels;
    }

    // The area that scrolls it; null: none does.
    static const QWidget* areaOf(const QWidget& widget)
    {
        for (const QWidget* above = widget.parentWidget(); above; above = above->parentWidget())
            if (qobject_cast<const QScrollArea*>(above))
                return above;
        return nullptr;
    }

    // Each is below the one before it or to its right; a column on the right begins at its top.
    // Places in two areas depend on how far each was scrolled, which says nothing.
    static QStringList outOfOrder(const std::vector<QWidget*>& stops, const QWidget& top)
    {
        QStringList wrong;
        for (std::size_t i = 1; i < stops.size(); ++i) {
            const auto at = [&top](const QWidget* widget) {
                return widget->mapTo(&top, widget->rect().center());
            };
            const QPoint before = at(stops[i - 1]);
            const QPoint now = at(stops[i]);
            const bool isUp = now.y() <= before.y() + 4 && now.x() <= before.x();
            if (isUp && areaOf(*stops[i]) == areaOf(*stops[i - 1]))
                wrong << nameOf(*stops[i]) + " after " + nameOf(*stops[i - 1]);
        }
        return wrong;
    }

    QTemporaryDir m_folder;
    std::unique_ptr<Theme> m_theme;
    std::unique_ptr<Language> m_language;
    std::unique_ptr<QWidget> m_below;
    std::unique_ptr<MainWindow> m_window;
    std::unique_ptr<QWidget> m_dialog;
};

MR_TEST_WITH_WINDOWS(TestAccess)

} // namespace mr::test::tst_access

#include "tst_access.moc"
