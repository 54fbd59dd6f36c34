// PlanPanel: it shows the disk part of a plan that has one, and offers lighter ways.

#include "language.h"
#include "support/test_room.h"
#include "text/plan_words.h"
#include "ui/support/fake_services.h"
#include "widgets/plan_panel.h"
#include "widgets/stacked_bar.h"

#include <QLabel>
#include <QPushButton>
#include <QTest>

#include <algorithm>

namespace mr::test::tst_plan_panel {

using namespace mr::ui;
using namespace mr::ui::test;

namespace {

QString textOf(const PlanPanel& panel)
{
    QStringList texts;
    for (const auto* label : panel.findChildren<QLabel*>())
        texts << label->text();
    return texts.join('\n').replace(QChar(0xa0), ' ');
}

bool hasDiskBar(const PlanPanel& panel)
{
    const auto bars = panel.findChildren<StackedBar*>();
    return std::any_of(bars.begin(), bars.end(),
        [](const StackedBar* bar) { return bar->accessibleName() == QString("Disk"); });
}

} // namespace

class TestPlanPanel : public QObject
{
    Q_OBJECT

private slots:

    void initTestCase() { QLocale::setDefault(QLocale(QLocale::English)); }

    void whatWouldHelpStandsUnderTheVerdictOfARunThatDoesNotFit()
    {
        PlanPanel panel;

        panel.setPlan({fakePlan(false), std::uint64_t{1} << 40, 2});

        const QString text = textOf(panel);
        QVERIFY(text.indexOf("What would help") > 0);
        QVERIFY2(text.indexOf("What would help") < text.indexOf("Copies in each step"),
            qPrintable(text));
    }

    void aRunOfAFewStepsIsDoubted()
    {
        PlanPanel panel;
        PlanReport plan = fakePlan(true);
        plan.steps = 3;

        panel.setPlan({plan, std::uint64_t{1} << 40, 2});

        QVERIFY2(textOf(panel).contains("Only 3 step"), qPrintable(textOf(panel)));
        plan.steps = 300;
        panel.setPlan({plan, std::uint64_t{1} << 40, 2});
        QVERIFY(!textOf(panel).contains("Only"));
    }

    void aComparisonOfAPolicyWithItselfIsDoubted()
    {
        PlanPanel panel;
        const PlanView view{fakePlan(true), std::uint64_t{1} << 40, 2};

        panel.setPlan(view, view);

        QVERIFY2(textOf(panel).contains("Both runs would use"), qPrintable(textOf(panel)));
    }

    void aPlanSaysHowManyParametersItTrains()
    {
        PlanPanel panel;
        panel.setPlan({fakePlan(true), std::uint64_t{1} << 40, 2});
        QVERIFY2(textOf(panel).contains("Trains all 1.10 B parameters"), qPrintable(textOf(panel)));

        panel.setPlan({fakeAdapterPlan(16), std::uint64_t{1} << 40, 2});

        QVERIFY2(textOf(panel).contains("Trains 12.6 M parameters; the model has 1.10 B"),
            qPrintable(textOf(panel)));
        PlanReport old = fakePlan(true);
        old.parameters = old.trainedParameters = 0;
        panel.setPlan({old, std::uint64_t{1} << 40, 2});
        QVERIFY(!textOf(panel).contains("Trains"));
    }

    void aPlanOnADiskShowsItsTierItsTrafficAndItsWear()
    {
        PlanReport plan = fakePlan(true);
        addDisk(plan);
        PlanPanel panel;

        panel.setPlan({plan, std::uint64_t{1} << 40, 2});

        const QString text = textOf(panel);
        QVERIFY(hasDiskBar(panel));
        // A line's number was made before its name, a heading's after.
        for (const char* part :
            {"Disk\n9.19 GiB of 200 GiB", "9.19 GiB\nDisk to host", "8.98 GiB\nHost to disk",
                "Written to disk by the run\n2.26 TiB", "124,395 steps or 6.1 days"})
            QVERIFY2(text.contains(QString(part)), qPrintable(text));
    }

    void whatBindsIsSaidInJapanese()
    {
        PlanReport plan = fakePlan(false);
        Language language;
        language.choose("ja");

        QString said = PlanWords::limit(plan);
        plan.tiers[0].budgetBytes = plan.tiers[0].totalBytes;
        plan.tiers.push_back({"disk", 0, std::uint64_t{5} << 30, {}});
        const QString disk = PlanWords::limit(plan);
        language.choose("en");

        said.replace(QChar(0xa0), ' ');
        QCOMPARE(said, QString::fromUtf8("デバイスメモリ: 4.80 GiB が必要ですが、上限は 3.00 GiB "
                                         "で、1.80 GiB 足りません。"));
        QVERIFY(disk.contains(QString::fromUtf8("作業フォルダーが指定されていません")));
    }

    void whatIsNotKnownIsSaidInTheEnginesWords()
    {
        PlanReport plan = fakePlan(false);
        plan.tiers.clear();

        QCOMPARE(PlanWords::limit(plan), QString("device memory: 1.8 GiB short"));
        plan.limit.clear();
        QVERIFY(PlanWords::limit(plan).isEmpty());
    }

    void lighterWaysHaveAButtonEach()
    {
        const PlanReport plan = fakePlan(false);
        PlanPanel panel;
        panel.setPlan({plan, std::uint64_t{1} << 40, 2});
        const QString text = textOf(panel);
        for (const char* part :
            {"AdamW, its state compact\n5.50 GiB of host memory\n2,100 tokens/s",
                "weights of 24 bits\n3.30 GiB of host memory\n4,300 tokens/s",
                "weights of 16 bits\n2.20 GiB of host memory",
                "one block after the other\n2.40 GiB of host memory\n3,900 tokens/s"})
            QVERIFY2(text.contains(QString(part)), qPrintable(text));
        const auto buttons = panel.findChildren<QPushButton*>();
        QCOMPARE(buttons.size(), 4);

        LighterWay taken;
        connect(
            &panel, &PlanPanel::lighterChosen, &panel, [&](const LighterWay& way) { taken = way; });
        buttons[2]->click();

        QVERIFY(taken.weights == WeightFormat::Random16 && taken.policy == "streamed");
        QCOMPARE(
            buttons[2]->accessibleName(), QString("Use this: Light optimizer, weights of 16 bits"));
        panel.setPlan({fakePlan(true), std::uint64_t{1} << 40, 2});
        QVERIFY(panel.findChildren<QPushButton*>().isEmpty());
    }

    void aPlanWithoutADiskSaysNothingOfOne()
    {
        PlanReport plan = fakePlan(true);
        plan.diskWriteBytesOfRun = 9'000'000; // checkpoints
        PlanPanel panel;

        panel.setPlan({plan, std::uint64_t{1} << 40, 2});

        QVERIFY(!hasDiskBar(panel));
        const QString text = textOf(panel);
        QVERIFY(!text.contains("Disk to host") && !text.contains("Host to disk"));
        QVERIFY(!text.contains("Written to disk"));
    }
};

MR_TEST_WITH_WINDOWS(TestPlanPanel)

} // namespace mr::test::tst_plan_panel

#include "tst_plan_panel.moc"
