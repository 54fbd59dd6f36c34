// DatasetSection: the likely readings of unclear columns are choices, and rows that cannot be read
// can be left out; both are part of the run and of its command line.

#include "language.h"
#include "pages/column_form.h"
#include "pages/dataset_section.h"
#include "pages/new_run_page.h"
#include "pages/reading_choice.h"
#include "pages/row_checks_dialog.h"
#include "support/test_room.h"
#include "text/format.h"
#include "text/theme_colors.h"
#include "theme.h"
#include "ui/support/fake_services.h"
#include "widgets/message_label.h"

#include <QCheckBox>
#include <QComboBox>
#include <QImage>
#include <QListWidget>
#include <QPushButton>
#include <QRadioButton>
#include <QTest>

#include <algorithm>
#include <map>
#include <memory>

namespace mr::test::tst_dataset_section {

using namespace mr::ui;
using namespace mr::ui::test;

namespace {

using Map = std::map<std::string, std::string>;

RunSpec specOf(const std::string& path)
{
    RunSpec spec;
    spec.modelDir = kGoodModel;
    spec.data.push_back({path, DataFormat::Auto, {}});
    return spec;
}

NewRunPage* newPage()
{
    return new NewRunPage(fakeServices(std::make_shared<FakeRun>()));
}

bool isShown(const QWidget* widget)
{
    return !widget->isHidden();
}

void choose(QComboBox* box, const QString& text)
{
    const int index = box->findText(text);
    box->setCurrentIndex(index);
    emit box->activated(index);
}

} // namespace

class TestDatasetSection : public QObject
{
    Q_OBJECT

private slots:

    void init()
    {
        m_language.choose("en"); // has the plurals
        m_page.reset(newPage());
        m_data = m_page->datasetSection();
    }

    void likelyReadingsAreShownInPlainWords()
    {
        open(kUnclearData);

        QTRY_COMPARE(m_data->readings()->count(), 3);
        QVERIFY(isShown(m_data->readings()));
        QCOMPARE(m_data->readings()->button(0)->text(), QString("question + hint → answer"));
        QCOMPARE(m_data->readings()->firstRow(0),
            QString("Prompt: \"What is 12 plus 30?\" + \"Add the tens first.\"\n"
                    "Response: \"42.\""));
        QCOMPARE(m_data->readings()->button(2)->text(), QString("q&&a as plain text"));
        for (int i = 0; i < 3; ++i)
            QVERIFY(!m_data->readings()->button(i)->isChecked());
        QVERIFY(!m_data->info());
    }

    void aLongNameDoesNotWidenThePage()
    {
        const std::string name(300, 'x');
        ReadingChoice choice;

        choice.setReadings({{"text", {{"text", name}}, {}}});

        QVERIFY(choice.minimumSizeHint().width() < 600);
        QVERIFY(choice.button(0)->text().endsWith(QString("…")));
        QVERIFY(choice.button(0)->toolTip().contains(QString::fromStdString(name)));
    }

    void theRingOfAChoiceIsSeenInLightAndDark()
    {
        Theme theme;
        for (const ThemeChoice wanted : {ThemeChoice::Light, ThemeChoice::Dark}) {
            theme.setChoice(wanted);
            ReadingChoice choice;
            choice.setReadings({{"text", {{"text", "body"}}, {}}});
            choice.resize(300, 60);
            choice.show();
            QCoreApplication::processEvents();
            const QRadioButton* button = choice.button(0);
            const QColor ground = themeColors(choice.palette()).card;
            const QImage picture = choice.grab().toImage();
            double best = 1.0;
            const int row = button->geometry().center().y();
            for (int x = 0; x < 4; ++x)
                best = std::max(best, contrastRatio(picture.pixelColor(x, row), ground));
            QVERIFY2(best > 3.0, qPrintable(QString::number(best)));
        }
    }

    void aClickOnAReadingFillsTheForm()
    {
        open(kUnclearData);
        QTRY_COMPARE(m_data->readings()->count(), 3);

        m_data->readings()->button(1)->click();

        const ColumnForm& form = *m_data->columnForm();
        QCOMPARE(form.box("prompt")->currentText(), QString("question"));
        QCOMPARE(form.box("response")->currentText(), QString("answer"));
        QTRY_VERIFY(m_data->info());
        QCOMPARE(columns(), (Map{{"prompt", "question"}, {"response", "answer"}}));
        QVERIFY(m_page->commandLine().contains("--map prompt=question,response=answer"));
    }

    void anotherReadingCanBeChosenAfterwards()
    {
        open(kUnclearData);
        QTRY_COMPARE(m_data->readings()->count(), 3);
        m_data->readings()->button(1)->click();
        QTRY_VERIFY(m_data->info());
        QCOMPARE(m_data->readings()->count(), 3);
        QVERIFY(m_data->readings()->button(1)->isChecked());

        m_data->readings()->button(2)->click();

        QTRY_VERIFY(m_data->info());
        QCOMPARE(columns(), (Map{{"text", "q&a"}}));
        QCOMPARE(m_data->columnForm()->kind(), ColumnForm::Text);
        QVERIFY(m_data->readings()->button(2)->isChecked());
    }

    void theFormMarksTheReadingThatItSays()
    {
        open(kUnclearData);
        QTRY_COMPARE(m_data->readings()->count(), 3);
        m_data->readings()->button(1)->click();
        QTRY_VERIFY(m_data->info());

        choose(m_data->columnForm()->box("input"), "hint");
        QVERIFY(m_data->readings()->button(0)->isChecked());
        choose(m_data->columnForm()->box("input"), "q&a");

        for (int i = 0; i < 3; ++i)
            QVERIFY(!m_data->readings()->button(i)->isChecked());
    }

    void anotherFileHasNoReadingsOfTheOneBefore()
    {
        open(kUnclearData);
        QTRY_COMPARE(m_data->readings()->count(), 3);

        m_data->setPath(QString::fromStdString(kGoodData));

        QTRY_VERIFY(m_data->info());
        QCOMPARE(m_data->readings()->count(), 0);
        QVERIFY(!isShown(m_data->readings()));
    }

    void rowsThatCannotBeReadAreLeftOutByASwitch()
    {
        open(kHoleyData);
        QTRY_VERIFY(isShown(m_data->skip()));
        QVERIFY(!m_data->skip()->isChecked());
        QVERIFY(!m_data->info());
        const QString refused = m_data->message()->text();
        QVERIFY2(refused.contains("4 rows cannot be read (not valid JSON: 3, not valid UTF-8: 1)"),
            qPrintable(refused));
        QVERIFY2(refused.contains("line 12") && !refused.contains("--"), qPrintable(refused));

        m_data->skip()->click();

        QTRY_VERIFY(m_data->info());
        QVERIFY(isShown(m_data->skip()));
        const QString said = m_data->message()->text();
        QVERIFY2(said.contains("4 rows cannot be read and are left out (not valid JSON: 3, not "
                               "valid UTF-8: 1)"),
            qPrintable(said));
        QVERIFY(m_page->spec().data.front().skipBadRows);
        QVERIFY(m_page->runs().front().data.front().skipBadRows);
        QVERIFY(m_page->commandLine().contains("--skip-bad-rows"));
        m_data->skip()->click();
        QTRY_VERIFY(m_page->settled() && !m_data->info());
        QVERIFY(isShown(m_data->skip()));
        QVERIFY(!m_page->commandLine().contains("--skip-bad-rows"));
    }

    void theSwitchIsNotThereForDataWithoutBadRows()
    {
        open(kGoodData);

        QTRY_VERIFY(m_data->info());
        QVERIFY(!isShown(m_data->skip()));
        QVERIFY(!m_page->spec().data.front().skipBadRows);
    }

    void tickedRowsAreLeftOutOfTheRun()
    {
        open(kGoodData);
        QTRY_VERIFY(m_data->info());
        QVERIFY(isShown(m_data->checkButton()));
        m_data->checkButton()->click();
        auto* dialog = m_data->findChild<RowChecksDialog*>();
        QVERIFY(dialog != nullptr);
        QTRY_VERIFY(!dialog->busy());
        dialog->findings()->item(1)->setCheckState(Qt::Checked);

        dialog->apply()->click();

        QTRY_VERIFY(m_data->info());
        QVERIFY2(m_data->message()->text().contains("4 rows are excluded."),
            qPrintable(m_data->message()->text()));
        const RowList rows = RowList::parse("411-413,1777").value();
        QVERIFY(m_page->spec().data.front().excluded == rows);
        QVERIFY(m_page->commandLine().contains("--exclude-rows 411-413,1777"));
        m_data->setPath(QString::fromStdString(kChatData));
        QTRY_VERIFY(m_page->settled());
        QVERIFY(m_page->spec().data.front().excluded.empty());
    }

    void aNewRunLikeThisKeepsTheSwitch()
    {
        RunSpec spec = specOf(kHoleyData);
        spec.data.front().skipBadRows = true;

        m_page->setSpec(spec);

        QTRY_VERIFY(m_data->info());
        QVERIFY(m_data->skip()->isChecked() && isShown(m_data->skip()));
        QVERIFY(m_page->spec().data.front().skipBadRows);
        spec.data.front().skipBadRows = false; // for the same file
        m_page->setSpec(spec);
        QTRY_VERIFY(m_page->settled() && !m_data->info());
        QVERIFY(!m_data->skip()->isChecked());
    }

    void anotherFileIsReadWhole()
    {
        open(kHoleyData);
        QTRY_VERIFY(isShown(m_data->skip()));
        m_data->skip()->click();

        m_data->setPath(QString::fromStdString(kGoodData));

        QTRY_VERIFY(m_data->info());
        QVERIFY(!m_page->spec().data.front().skipBadRows);
        QVERIFY(!isShown(m_data->skip()));
    }

    void emptyThoughtsAndUnreadSwitchesAreSaidInBothLanguages()
    {
        open(kChatData);
        QTRY_VERIFY(m_data->info());
        QCOMPARE(m_data->message()->kind(), MessageLabel::Kind::Warning);
        const QString said = m_data->message()->text();
        QVERIFY2(said.contains(percentText(41.0) + " of the answers have an empty thought."),
            qPrintable(said));
        QVERIFY2(said.contains("12 rows hold /no_think"), qPrintable(said));
        QVERIFY2(said.contains("than the tekken.json beside it"), qPrintable(said));

        m_language.choose("ja");

        QTRY_VERIFY(m_data->message()->text().contains("は思考が空です"));
        QVERIFY(m_data->message()->text().contains("12 行に /no_think がありますが"));
    }

    void bothAreSaidInJapanese()
    {
        m_language.choose("ja");
        open(kUnclearData);
        QTRY_COMPARE(m_data->readings()->count(), 3);
        QVERIFY(m_data->readings()->firstRow(1).startsWith("プロンプト: \"What"));
        open(kHoleyData);
        QTRY_VERIFY(m_data->message()->text().contains("4 行が読み取れません (JSON として不正: 3"));
        QVERIFY(m_data->skip()->text().contains("除外"));
        m_language.choose("en");
        QTRY_VERIFY(m_data->message()->text().contains("4 rows cannot be read"));
    }

private:
    void open(const std::string& path) { m_page->setSpec(specOf(path)); }
    Map columns() const { return m_page->spec().data.front().columns; }

    Language m_language;
    std::unique_ptr<NewRunPage> m_page;
    DatasetSection* m_data = nullptr;
};

MR_TEST_WITH_WINDOWS(TestDatasetSection)

} // namespace mr::test::tst_dataset_section

#include "tst_dataset_section.moc"
