// ScratchSection: it names the drive beside a folder. Measuring never holds the window up and ends
// when it should.

#include "language.h"
#include "pages/dataset_section.h"
#include "pages/new_run_page.h"
#include "pages/scratch_folder.h"
#include "pages/scratch_section.h"
#include "pages/settings_form.h"
#include "support/test_room.h"
#include "ui/support/fake_services.h"
#include "widgets/message_label.h"
#include "widgets/path_edit.h"
#include "widgets/plan_panel.h"

#include <QAbstractButton>
#include <QLineEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QSignalSpy>
#include <QTest>

#include <atomic>
#include <thread>

namespace mr::test::tst_scratch_section {

using namespace mr::ui;
using namespace mr::ui::test;

namespace {

// A measurement that lasts until it is let go or stopped.
struct SlowMeasurement {
    std::atomic<bool> release = false;
    std::atomic<bool> stopped = false;
    std::atomic<int> begun = 0;
    Status failure;

    Result<ScratchSpeed> run(const ScratchMeasuring& how)
    {
        ++begun;
        how.progress(0.25);
        while (!release && !how.cancelled())
            std::this_thread::yield();
        if (how.cancelled()) {
            stopped = true;
            return Status::error(ErrorKind::Cancelled, "the measurement was stopped");
        }
        if (!failure.ok())
            return failure;
        return ScratchSpeed{3.2e9, 2.9e9, 1.6e9, 1.5e9};
    }
};

UiServices servicesWith(const std::shared_ptr<SlowMeasurement>& slow)
{
    UiServices services = fakeServices(std::make_shared<FakeRun>());
    services.measureScratch = [slow](const std::string&, const ScratchMeasuring& how) {
        return slow->run(how);
    };
    return services;
}

QString plain(QString text)
{
    return text.replace(QChar(0xa0), QLatin1Char(' '));
}

void name(ScratchSection& section, const std::string& folder)
{
    section.folder(0)->pathEdit()->setPath(QString::fromStdString(folder));
    QTRY_VERIFY(section.settled());
}

} // namespace

class TestScratchSection : public QObject
{
    Q_OBJECT

private slots:

    void initTestCase() { QLocale::setDefault(QLocale(QLocale::English)); }

    void aGoodFolderSaysWhatItLiesOn()
    {
        ScratchSection section(fakeServices(std::make_shared<FakeRun>()));
        section.show();
        QVERIFY(!section.folder(0)->measureButton()->isVisible()); // nothing to measure yet

        name(section, kFastScratch);

        const QString facts = plain(section.folder(0)->facts()->text());
        QVERIFY2(facts.contains("ext4 on nvme0n1, 820 GiB free"), qPrintable(facts));
        QVERIFY2(facts.contains("41 °C"), qPrintable(facts));
        QVERIFY2(facts.contains("Its speed is not known"), qPrintable(facts));
        QVERIFY(section.folder(0)->warnings()->text().isEmpty());
        QVERIFY(section.folder(0)->measureButton()->isVisible() &&
                section.folder(0)->measureButton()->isEnabled());
        QVERIFY(section.problem().isEmpty());
    }

    void aWarningIsShownAndIsNoRefusal()
    {
        ScratchSection section(fakeServices(std::make_shared<FakeRun>()));

        name(section, kMemoryScratch);

        QVERIFY(section.folder(0)->warnings()->kind() == MessageLabel::Kind::Warning);
        QVERIFY(section.folder(0)->warnings()->text().contains("which is memory"));
        QVERIFY(plain(section.folder(0)->facts()->text()).contains("tmpfs, 7.00 GiB free"));
        QVERIFY(section.problem().isEmpty());
        name(section, std::string());
        QVERIFY(section.folder(0)->warnings()->text().isEmpty() &&
                section.folder(0)->facts()->text().isEmpty());
    }

    void aFolderThatIsNotThereOrCannotBeWrittenStopsTheRun()
    {
        NewRunPage page(fakeServices(std::make_shared<FakeRun>()));
        QSignalSpy started(&page, &NewRunPage::startRequested);
        RunSpec spec;
        spec.modelDir = kGoodModel;
        spec.data.push_back({kGoodData, DataFormat::Auto, {}});
        for (const std::string& folder : {kFrozenScratch, std::string("/nowhere")}) {
            spec.diskPaths = {folder};
            page.setSpec(spec);
            QVERIFY(page.scratch()->problem().contains("still being looked at"));
            QTRY_VERIFY(page.planPanel()->plan() && page.datasetSection()->info());
            QTRY_VERIFY(page.settled());

            page.start();

            QCOMPARE(page.startMessage()->text(),
                QString("The scratch folder cannot be used: see its message."));
        }
        QVERIFY(page.scratch()->folder(0)->facts()->text().contains("/nowhere"));
        spec.diskPaths = {kFastScratch};
        page.setSpec(spec);
        QTRY_VERIFY(page.planPanel()->plan() && page.settled());
        page.start();
        QCOMPARE(started.count(), 1);
        QCOMPARE(started[0][0].value<RunSpec>().diskPaths, std::vector{kFastScratch});
    }

    void aSecondDriveIsAdded()
    {
        ScratchSection section(fakeServices(std::make_shared<FakeRun>()));
        section.show();
        QVERIFY(!section.addButton()->isVisible()); // the first line is empty
        name(section, kFastScratch);

        section.addButton()->click();

        QCOMPARE(section.folderCount(), std::size_t{2});
        QVERIFY(!section.addButton()->isVisible());
        RunSpec spec;
        section.writeTo(spec);
        QCOMPARE(spec.diskPaths, std::vector{kFastScratch}); // not the empty line
        section.folder(1)->pathEdit()->setPath(QString::fromStdString(kOtherScratch));
        QTRY_VERIFY(section.settled());
        section.writeTo(spec);
        QCOMPARE(spec.diskPaths, (std::vector{kFastScratch, kOtherScratch}));
        QVERIFY(section.hint()->text().isEmpty() && section.problem().isEmpty());
        ScratchSection copy(fakeServices(std::make_shared<FakeRun>()));
        copy.readFrom(spec);
        QCOMPARE(copy.folderCount(), std::size_t{2});
        RunSpec back;
        copy.writeTo(back);
        QCOMPARE(back.diskPaths, spec.diskPaths);
        copy.readFrom(RunSpec());
        QCOMPARE(copy.folderCount(), std::size_t{1});
        QVERIFY(copy.folder(0)->folder().empty());
    }

    void theSameDriveIsAHintAndTheSameFolderAnError()
    {
        ScratchSection section(fakeServices(std::make_shared<FakeRun>()));
        RunSpec spec;
        spec.diskPaths = {kFastScratch, kFastScratch + "/below"};
        section.readFrom(spec);
        QTRY_VERIFY(section.settled());
        QVERIFY2(
            section.hint()->text().contains("are on nvme0n1"), qPrintable(section.hint()->text()));
        QVERIFY(section.problem().isEmpty());

        spec.diskPaths = {kOtherScratch, kFastScratch, kFastScratch};
        section.readFrom(spec);
        QTRY_VERIFY(section.settled());

        QVERIFY(section.hint()->kind() == MessageLabel::Kind::Error);
        QVERIFY2(
            section.problem().contains(QString::fromStdString(kFastScratch) + " is named twice"),
            qPrintable(section.problem()));
    }

    void whatIsEnteredComesBack()
    {
        ScratchSection section(fakeServices(std::make_shared<FakeRun>()));
        RunSpec spec;
        spec.diskPaths = {kFastScratch};
        spec.diskBytes = std::uint64_t{200'000'000'000};
        spec.maxDiskWriteBytes = std::uint64_t{100'000'000'000'000};
        QSignalSpy changed(&section, &ScratchSection::changed);

        section.readFrom(spec);

        QCOMPARE(changed.count(), 0);
        RunSpec back;
        section.writeTo(back);
        QCOMPARE(back.diskPaths, spec.diskPaths);
        QCOMPARE(back.diskBytes, spec.diskBytes);
        QCOMPARE(back.maxDiskWriteBytes, spec.maxDiskWriteBytes);
        section.folder(0)->pathEdit()->setPath(QString());
        section.writeTo(back);
        QCOMPARE(back.diskBytes, std::uint64_t{0}); // no folder, no bytes
        QVERIFY(changed.count() > 0);
    }

    void measuringShowsHowFarItIsAndThenWhatItFound()
    {
        const auto slow = std::make_shared<SlowMeasurement>();
        ScratchSection section(servicesWith(slow));
        section.show();
        name(section, kFastScratch);
        QSignalSpy changed(&section, &ScratchSection::changed);

        section.folder(0)->measureButton()->click();

        QVERIFY(section.measuring());
        const auto* bar = section.findChild<QProgressBar*>();
        QVERIFY(bar->isVisible());
        QTRY_COMPARE(bar->value(), 250); // the window lives on
        QCOMPARE(section.folder(0)->measureButton()->text(), QString("Stop measuring"));
        slow->release = true;
        QTRY_VERIFY(!section.measuring());
        QVERIFY(!bar->isVisible());
        QCOMPARE(section.folder(0)->measureButton()->text(), QString("Measure its speed"));
        const QString facts = plain(section.folder(0)->facts()->text());
        QVERIFY2(facts.contains("reads 3.20 GB/s, writes 2.90 GB/s; both at once 1.60 GB/s and "
                                "1.50 GB/s"),
            qPrintable(facts));
        QCOMPARE(changed.count(), 1); // the plan is made again
    }

    void aFailureIsSaidAndItCanBeTriedAgain()
    {
        const auto slow = std::make_shared<SlowMeasurement>();
        slow->failure = Status::error(ErrorKind::Io, "the disk is full");
        slow->release = true;
        ScratchSection section(servicesWith(slow));
        name(section, kFastScratch);

        section.folder(0)->measureButton()->click();

        QTRY_VERIFY(!section.measuring());
        bool said = false;
        for (const auto* label : section.findChildren<MessageLabel*>())
            said = said || (label->kind() == MessageLabel::Kind::Error &&
                               label->text() == QString("the disk is full"));
        QVERIFY(said);
        section.folder(0)->measureButton()->click();
        QTRY_COMPARE(slow->begun.load(), 2);
        QTRY_VERIFY(!section.measuring());
    }

    void itStops_data()
    {
        QTest::addColumn<int>("how");
        QTest::newRow("by its button") << 0;
        QTest::newRow("with another folder") << 1;
        QTest::newRow("with its window") << 2;
    }
    void itStops()
    {
        QFETCH(int, how);
        const auto slow = std::make_shared<SlowMeasurement>();
        auto section = std::make_unique<ScratchSection>(servicesWith(slow));
        name(*section, kFastScratch);
        section->folder(0)->measureButton()->click();
        QTRY_COMPARE(slow->begun.load(), 1);

        if (how == 0)
            section->folder(0)->measureButton()->click();
        else if (how == 1)
            section->folder(0)->pathEdit()->setPath(QString::fromStdString(kMemoryScratch));
        else
            section.reset();

        QTRY_VERIFY(slow->stopped);
        QCoreApplication::processEvents();
        if (section) {
            QVERIFY(!section->measuring());
            QTRY_VERIFY(section->settled());
            QVERIFY(!section->folder(0)->facts()->text().contains("Measured"));
        }
    }

    void allOfItIsInJapanese()
    {
        Language language;
        ScratchSection section(fakeServices(std::make_shared<FakeRun>()));
        name(section, kFastScratch);
        const QString english = section.folder(0)->facts()->text();

        language.choose("ja");
        QTRY_VERIFY(section.folder(0)->facts()->text() != english);

        QVERIFY(section.folder(0)->facts()->text().contains(QStringLiteral("空き")));
        QVERIFY(section.folder(0)->measureButton()->text().contains(QStringLiteral("測定")));
        language.choose("en");
    }
};

MR_TEST_WITH_WINDOWS(TestScratchSection)

} // namespace mr::test::tst_scratch_section

#include "tst_scratch_section.moc"
