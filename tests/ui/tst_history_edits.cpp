// The history as something to work with, over a real database: names, notes, tags, deleting with a
// way back, and the bin.

#include "bridge/run_editor.h"
#include "models/run_table_model.h"
#include "pages/bin_view.h"
#include "pages/history_page.h"
#include "pages/run_list.h"
#include "pages/run_notes.h"
#include "pages/run_view.h"
#include "support/test_room.h"
#include "ui/support/demo_run.h"
#include "widgets/toast.h"

#include <QAccessible>
#include <QApplication>
#include <QDir>
#include <QFile>
#include <QHeaderView>
#include <QLabel>
#include <QLineEdit>
#include <QMessageBox>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSettings>
#include <QSignalSpy>
#include <QStandardPaths>
#include <QTemporaryDir>
#include <QTest>
#include <QToolButton>

namespace mr::test::tst_history_edits {

using namespace mr::ui;
using namespace mr::ui::test;

namespace {

// A history of three runs that ended, the oldest first: alpha, beta, gamma.
struct Rig {
    QTemporaryDir folder;
    std::unique_ptr<RunStore> store =
        RunStore::open(folder.filePath("history.db").toStdString()).value();
    std::array<std::int64_t, 3> ids{};
    std::unique_ptr<HistoryPage> page;

    Rig()
    {
        const std::array<const char*, 3> names = {"alpha", "beta", "gamma"};
        for (std::size_t i = 0; i < names.size(); ++i)
            ids.at(i) = fillDemoRun(*store, names.at(i), 12, 12, RunStatus::Done).value();
        UiServices services;
        services.openReader = &RunReader::open;
        services.database = store->path();
        services.edits = &store->edits();
        page = std::make_unique<HistoryPage>(services);
        page->resize(1100, 700);
        page->show();
        (void)QTest::qWaitForWindowActive(page.get());
        page->table()->setFocus();
    }

    RunList& list() const { return *static_cast<RunList*>(page->table()); }
    bool shows(int runs) const { return list().model()->rowCount() == runs; }

    void choose(std::initializer_list<std::size_t> which) const
    {
        list().clearSelection();
        for (const std::size_t i : which) {
            const int row = list().runs()->rowOf(ids.at(i));
            list().selectionModel()->setCurrentIndex(list().model()->index(rowOf(row), 0),
                QItemSelectionModel::Select | QItemSelectionModel::Rows);
        }
    }

    int rowOf(int sourceRow) const
    {
        const qint64 id = list().runs()->run(sourceRow)->id;
        for (int row = 0; row < list().model()->rowCount(); ++row) {
            if (list().model()->index(row, 0).data(RunTableModel::IdRole).toLongLong() == id)
                return row;
        }
        return -1;
    }

    RunRow read(std::size_t i) const
    {
        return RunReader::open(store->path()).value()->run(ids.at(i)).value();
    }

    void key(int key, Qt::KeyboardModifiers modifiers = Qt::NoModifier) const
    {
        QTest::keyClick(QApplication::focusWidget(), static_cast<Qt::Key>(key), modifiers);
    }
};

} // namespace

class TestHistoryEdits : public QObject
{
    Q_OBJECT

private slots:

    void initTestCase()
    {
        QLocale::setDefault(QLocale(QLocale::English));
        QStandardPaths::setTestModeEnabled(true);
        QCoreApplication::setOrganizationName(QStringLiteral("millrace-test"));
        QCoreApplication::setApplicationName(QStringLiteral("tst_history_edits"));
    }

    void init() { QSettings().clear(); }

    void deleteHidesTheChosenRunsAndUndoBringsThemBack()
    {
        Rig rig;
        QTRY_VERIFY(rig.shows(3));
        rig.choose({0, 2});

        rig.key(Qt::Key_Delete);

        QTRY_VERIFY(rig.shows(1));
        QTRY_VERIFY(rig.page->toast()->isVisible());
        QVERIFY2(
            rig.page->toast()->text().contains("Deleted 2"), qPrintable(rig.page->toast()->text()));
        rig.page->toast()->undoButton()->click();
        QTRY_VERIFY(rig.shows(3));
        QVERIFY(rig.page->toast()->text().startsWith("Undone"));
    }

    void ctrlZAndItsOppositeGoBackAndForth()
    {
        Rig rig;
        QTRY_VERIFY(rig.shows(3));
        rig.choose({1});
        rig.key(Qt::Key_Delete);
        QTRY_VERIFY(rig.shows(2));

        rig.key(Qt::Key_Z, Qt::ControlModifier);
        QTRY_VERIFY(rig.shows(3));
        rig.key(Qt::Key_Z, Qt::ControlModifier | Qt::ShiftModifier);

        QTRY_VERIFY(rig.shows(2));
    }

    void aRunThatGoesOnIsNotDeletedAndItIsSaidWhy()
    {
        Rig rig;
        QVERIFY(fillDemoRun(*rig.store, "delta", 3, 12, RunStatus::Running).ok());
        rig.page->refresh();
        QTRY_VERIFY(rig.shows(4));
        rig.list().selectAll();

        rig.key(Qt::Key_Delete);

        QTRY_VERIFY(rig.page->toast()->text().contains("“delta”") ||
                    rig.page->toast()->text().contains("\"delta\" is going on"));
        QVERIFY(!rig.page->toast()->undoButton()->isVisible());
        QVERIFY(rig.shows(4));
        QCOMPARE(rig.page->editor()->stack()->count(), 0);
    }

    void f2RenamesInTheTable()
    {
        Rig rig;
        QTRY_VERIFY(rig.shows(3));
        rig.choose({0});
        rig.key(Qt::Key_F2);
        auto* editor = qobject_cast<QLineEdit*>(QApplication::focusWidget());
        QVERIFY(editor != nullptr);
        QCOMPARE(editor->text(), QString("alpha"));

        editor->setText("omega");
        rig.key(Qt::Key_Return);

        QTRY_COMPARE(rig.read(0).name, std::string("omega"));
        QTRY_COMPARE(rig.list().selectedRun()->name, std::string("omega"));
        rig.page->editor()->stack()->undo();
        QTRY_COMPARE(rig.read(0).name, std::string("alpha"));
    }

    void aNameThatCannotBeTakenIsRefusedInWords()
    {
        Rig rig;
        QTRY_VERIFY(rig.shows(3));

        rig.page->editor()->rename(rig.ids[0], "   ");

        QTRY_VERIFY(rig.page->toast()->text().contains("is empty"));
        QCOMPARE(rig.read(0).name, std::string("alpha"));
    }

    void aNoteIsKeptWhenItsFieldIsLeftAndTheFilterFindsIt()
    {
        Rig rig;
        QTRY_VERIFY(rig.shows(3));
        rig.choose({1});
        rig.key(Qt::Key_N);
        QVERIFY(rig.page->notes()->note()->hasFocus());

        QTest::keyClicks(rig.page->notes()->note(), "warm restart");
        rig.list().setFocus();

        QTRY_COMPARE(rig.read(1).notes, std::string("warm restart"));
        rig.page->findChild<QLineEdit*>("historyFilter")->setText("warm");
        QTRY_VERIFY(rig.shows(1));
    }

    void aNoteIsKeptWhenAnotherRunIsChosen()
    {
        Rig rig;
        QTRY_VERIFY(rig.shows(3));
        rig.choose({1});
        rig.page->notes()->note()->setPlainText("half typed");

        rig.choose({2});

        QTRY_COMPARE(rig.read(1).notes, std::string("half typed"));
        QCOMPARE(rig.read(2).notes, std::string());
        QCOMPARE(rig.page->notes()->note()->toPlainText(), QString());
    }

    void tagsOfSeveralRunsAreThoseThatAllHave()
    {
        Rig rig;
        QTRY_VERIFY(rig.shows(3));
        rig.choose({0, 1});
        rig.key(Qt::Key_T);
        QTest::keyClicks(rig.page->notes()->tags(), "keep, baseline");
        rig.key(Qt::Key_Return);
        QTRY_COMPARE(rig.read(0).tags, (std::vector<std::string>{"baseline", "keep"}));
        QTRY_COMPARE(rig.read(1).tags.size(), std::size_t{2});

        rig.list().setFocus();
        rig.choose({0, 2});
        QCOMPARE(rig.page->notes()->tags()->text(), QString());
        rig.choose({1});
        QTRY_COMPARE(rig.page->notes()->tags()->text(), QString("baseline, keep"));
        rig.page->notes()->tags()->setText("keep");
        rig.page->notes()->commit();

        QTRY_COMPARE(rig.read(1).tags, std::vector<std::string>{"keep"});
        QCOMPARE(rig.read(0).tags.size(), std::size_t{2});
    }

    void theFilterKnowsTags()
    {
        Rig rig;
        QVERIFY(rig.store->edits().addTag(rig.ids, "keep").ok());
        QVERIFY(rig.store->edits().removeTag(std::span(rig.ids).first(1), "keep").ok());
        QVERIFY(rig.store->edits().rename(rig.ids[0], "keep out").ok());
        rig.page->refresh();
        auto* filter = rig.page->findChild<QLineEdit*>("historyFilter");
        QTRY_VERIFY(rig.shows(3));

        filter->setText("keep");
        QTRY_VERIFY(rig.shows(3));
        filter->setText("tag:Keep");

        QTRY_VERIFY(rig.shows(2));
    }

    void theBinGivesRunsBack()
    {
        Rig rig;
        QTRY_VERIFY(rig.shows(3));
        rig.choose({0, 1});
        rig.key(Qt::Key_Delete);
        QTRY_VERIFY(rig.shows(1));

        rig.page->findChild<QPushButton*>("historyBin")->click();
        QTRY_COMPARE(rig.page->bin()->list()->model()->rowCount(), 2);
        QVERIFY(rig.page->bin()->isVisible());
        rig.page->bin()->list()->selectAll();
        rig.page->bin()->restoreButton()->click();

        QTRY_COMPARE(rig.page->bin()->list()->model()->rowCount(), 0);
        QTRY_VERIFY(rig.shows(3));
    }

    void erasingAsksWithTheSizeAndCanBeCancelled()
    {
        Rig rig;
        const QString folder = rig.folder.filePath("run");
        QVERIFY(QDir().mkpath(folder + "/model"));
        writeFile(folder + "/run.json", "{\"uuid\":\"mine\"}");
        writeFile(folder + "/model/weights", QByteArray(3 << 20, 'x'));
        NewRun run;
        run.uuid = "mine";
        run.name = "heavy";
        run.configJson = R"({"seed":1})";
        run.dir = folder.toStdString();
        const std::int64_t id = rig.store->beginRun(run).value();
        QVERIFY(rig.store->endRun(id, RunStatus::Done, 0, "").ok());
        QVERIFY(rig.store->edits().remove(std::array{id}).ok());
        rig.page->showBin(true);
        auto* list = rig.page->bin()->list();
        QTRY_COMPARE(list->model()->rowCount(), 1);
        list->selectAll();

        rig.page->bin()->eraseButton()->click();
        QTRY_VERIFY(question(*rig.page) != nullptr);
        QPushButton* yes = button(*question(*rig.page), "Delete 3.00");
        QVERIFY(yes != nullptr);
        QVERIFY(!yes->isDefault());
        button(*question(*rig.page), "Cancel")->click();
        QTRY_VERIFY(question(*rig.page) == nullptr);
        QVERIFY(QFile::exists(folder + "/model/weights"));
        rig.page->bin()->eraseButton()->click();
        QTRY_VERIFY(question(*rig.page) != nullptr);
        button(*question(*rig.page), "Delete 3.00")->click();

        QTRY_COMPARE(list->model()->rowCount(), 0);
        QVERIFY(!QFile::exists(folder));
    }

    void theBinIsReachedAlsoWhenNoRunIsLeft()
    {
        Rig rig;
        QTRY_VERIFY(rig.shows(3));
        rig.list().selectAll();
        rig.key(Qt::Key_Delete);
        QTRY_VERIFY(rig.shows(0));

        QPushButton* bin = nullptr;
        for (auto* candidate : rig.page->findChildren<QPushButton*>()) {
            if (candidate->text() == "Bin" && candidate->objectName().isEmpty())
                bin = candidate;
        }
        QVERIFY(bin != nullptr);
        QTRY_VERIFY(bin->isVisible());
        bin->click();

        QTRY_COMPARE(rig.page->bin()->list()->model()->rowCount(), 3);
        QVERIFY(rig.page->bin()->isVisible());
    }

    void aRunThatIsLookedAtClosesWhenItIsDeleted()
    {
        Rig rig;
        QTRY_VERIFY(rig.shows(3));
        rig.choose({1});
        rig.key(Qt::Key_Return);
        QTRY_VERIFY(rig.page->view()->isVisible());
        rig.list().setFocus();

        rig.key(Qt::Key_Delete);

        QTRY_VERIFY(!rig.page->view()->isVisible());
    }

    void withoutEditsThePageOnlyReads()
    {
        Rig rig;
        UiServices services;
        services.openReader = &RunReader::open;
        services.database = rig.store->path();
        HistoryPage page(services);
        page.show();
        QTRY_COMPARE(page.table()->model()->rowCount(), 3);
        page.table()->selectAll();

        QTest::keyClick(page.table(), Qt::Key_Delete);

        QVERIFY(!page.notes()->isVisible());
        QVERIFY(!page.findChild<QPushButton*>("historyBin")->isVisible());
        QCOMPARE(page.table()->model()->rowCount(), 3);
    }

    void everyControlHasANameForScreenReaders()
    {
        Rig rig;

        for (QWidget* widget : rig.page->findChildren<QWidget*>()) {
            if (widget->focusPolicy() == Qt::NoFocus || widget->objectName().startsWith(u"qt_") ||
                qobject_cast<QHeaderView*>(widget) != nullptr ||
                qobject_cast<QLabel*>(widget) != nullptr)
                continue;
            QAccessibleInterface* reader = QAccessible::queryAccessibleInterface(widget);
            QVERIFY2(reader != nullptr && !reader->text(QAccessible::Name).isEmpty(),
                widget->metaObject()->className());
        }
    }

private:
    static void writeFile(const QString& path, const QByteArray& content)
    {
        QFile file(path);
        QVERIFY(file.open(QIODevice::WriteOnly));
        file.write(content);
    }

    static QMessageBox* question(const QWidget& page)
    {
        return page.findChild<QMessageBox*>("eraseQuestion");
    }

    static QPushButton* button(const QMessageBox& box, const QString& begin)
    {
        for (auto* candidate : box.findChildren<QPushButton*>()) {
            if (candidate->text().replace(QChar(0xa0), ' ').startsWith(begin))
                return candidate;
        }
        return nullptr;
    }
};

MR_TEST_WITH_WINDOWS(TestHistoryEdits)

} // namespace mr::test::tst_history_edits

#include "tst_history_edits.moc"
