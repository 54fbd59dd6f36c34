// The card that chooses what a run trains: each choice says what it needs, and only the settings of
// the chosen one are the run's.

#include "models/run_command.h"
#include "pages/adapter_form.h"
#include "pages/method_section.h"
#include "pages/new_run_page.h"
#include "support/test_room.h"
#include "ui/support/fake_services.h"
#include "ui/support/own_settings.h"
#include "widgets/message_label.h"
#include "widgets/path_edit.h"

#include <QCheckBox>
#include <QLineEdit>
#include <QRadioButton>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTemporaryDir>
#include <QTest>
#include <QToolButton>

#include <atomic>

namespace mr::test::tst_method_section {

using namespace mr::ui;
using namespace mr::ui::test;

namespace {

RunSpec goodSpec()
{
    RunSpec spec;
    spec.modelDir = kGoodModel;
    spec.data.push_back({kGoodData, DataFormat::Auto, {}});
    return spec;
}

QString needOf(const NewRunPage& page, Method method)
{
    QString text = page.method()->need(method)->text();
    return text.replace(QChar(0xa0), ' ');
}

void choose(const NewRunPage& page, Method method)
{
    page.method()->button(method)->click();
}

void type(QLineEdit* line, const QString& text)
{
    line->setText(text);
    emit line->editingFinished();
}

} // namespace

class TestMethodSection : public QObject
{
    Q_OBJECT

private slots:

    void initTestCase()
    {
        QVERIFY(m_folder.isValid());
        keepSettingsIn(m_folder.path());
    }

    void eachChoiceSaysWhatItNeedsHere()
    {
        NewRunPage page(fakeServices(std::make_shared<FakeRun>()));
        QVERIFY(needOf(page, Method::Everything).isEmpty()); // no model is chosen

        page.setSpec(goodSpec());
        QTRY_VERIFY(page.settled());

        QCOMPARE(needOf(page, Method::Everything),
            QString("Fits: 4.80 GiB of device memory, 10.7 GiB of host memory, 4.21 s a step"));
        QCOMPARE(needOf(page, Method::Adapter),
            QString("Fits: 2.94 GiB of device memory, 12.0 MiB of host memory, 3.08 s a step"));
        QCOMPARE(needOf(page, Method::Nf4Adapter),
            QString("Fits: 1.54 GiB of device memory, 12.0 MiB of host memory, 3.19 s a step"));
        QVERIFY(needOf(page, Method::Layers).isEmpty()); // none are named
        QVERIFY(page.method()->need(Method::Adapter)->kind() == MessageLabel::Kind::Good);
        QCOMPARE(page.method()->button(Method::Adapter)->text(), QString("An adapter (LoRA)"));
    }

    void anAdapterIsRecommendedWhereTheModelDoesNotFit()
    {
        NewRunPage page(fakeServices(std::make_shared<FakeRun>()));
        RunSpec spec = goodSpec();
        spec.microBatch = 64;

        page.setSpec(spec);
        QTRY_VERIFY(page.settled());

        QVERIFY2(needOf(page, Method::Everything).startsWith("Does not fit. Device memory: needs"),
            qPrintable(needOf(page, Method::Everything)));
        const QRadioButton* adapter = page.method()->button(Method::Adapter);
        QCOMPARE(adapter->text(), QString("An adapter (LoRA), recommended"));
        QVERIFY(adapter->accessibleDescription().contains("Fits: "));
        QVERIFY(!adapter->isChecked()); // that is the user's choice
    }

    void anAdapterThatCannotBeMadeSaysWhy()
    {
        NewRunPage page(fakeServices(std::make_shared<FakeRun>()));
        RunSpec spec = goodSpec();
        spec.microBatch = 64;
        spec.method = "lora";
        spec.rank = 2048;

        page.setSpec(spec);
        QTRY_VERIFY(page.settled());

        QCOMPARE(needOf(page, Method::Adapter),
            QString("Not possible: rank 2048 is larger than self_attn.k_proj"));
        QVERIFY(page.method()->need(Method::Adapter)->kind() == MessageLabel::Kind::Warning);
        QCOMPARE(page.method()->button(Method::Adapter)->text(), QString("An adapter (LoRA)"));
    }

    void theModelInFourBitsIsRecommendedWhereNothingElseFits()
    {
        UiServices services = fakeServices(std::make_shared<FakeRun>());
        services.planAllMethods = [](const RunSpec& spec) {
            auto plans = fakeMethods(spec).value();
            plans[2].fits = false;
            return Result(plans);
        };
        NewRunPage page(services);
        RunSpec spec = goodSpec();
        spec.microBatch = 64;

        page.setSpec(spec);
        QTRY_VERIFY(page.settled());

        QCOMPARE(page.method()->button(Method::Adapter)->text(), QString("An adapter (LoRA)"));
        QCOMPARE(page.method()->button(Method::Nf4Adapter)->text(),
            QString("An adapter beside the model in 4 bits (QLoRA), recommended"));
    }

    void anAdapterBesideFourBitsHasTheSettingsOfAdapters()
    {
        NewRunPage page(fakeServices(std::make_shared<FakeRun>()));
        RunSpec spec = goodSpec();
        spec.method = "qlora";
        spec.rank = 32;

        page.setSpec(spec);

        QVERIFY(page.method()->button(Method::Nf4Adapter)->isChecked());
        QVERIFY(!page.method()->adapter()->isHidden());
        QVERIFY2(page.commandLine().endsWith("--method qlora --rank 32"),
            qPrintable(page.commandLine()));
        choose(page, Method::Adapter);
        QVERIFY(page.commandLine().endsWith("--method lora --rank 32"));
        QCOMPARE(page.spec().rank, std::int64_t{32});
    }

    void settingsOfTheAdapterAreThoseOfARunThatTrainsOne()
    {
        std::atomic<std::int64_t> plannedRank = 0;
        UiServices services = fakeServices(std::make_shared<FakeRun>());
        services.planAllMethods = [&plannedRank](const RunSpec& spec) {
            plannedRank = spec.rank;
            return fakeMethods(spec);
        };
        NewRunPage page(services);
        page.setSpec(goodSpec());
        QVERIFY(page.method()->adapter()->isHidden());

        choose(page, Method::Adapter);
        QVERIFY(!page.method()->adapter()->isHidden());
        page.findChild<QSpinBox*>("rank")->setValue(64);
        type(page.findChild<QLineEdit*>("alpha"), "128");
        type(page.findChild<QLineEdit*>("targets"), "q_proj,v_proj");
        type(page.findChild<QLineEdit*>("exclude_targets"), "o_proj");
        type(page.findChild<QLineEdit*>("adapter_layers"), "0-3");
        page.findChild<QCheckBox*>("rslora")->setChecked(true);

        QVERIFY2(page.commandLine().endsWith("--method lora --rank 64 --alpha 128 --rslora "
                                             "--targets q_proj,v_proj --exclude-targets o_proj "
                                             "--train-layers 0-3"),
            qPrintable(page.commandLine()));
        choose(page, Method::Everything);
        QCOMPARE(toJson(page.spec()), toJson([&] {
            RunSpec plain = goodSpec();
            plain.database = page.spec().database;
            return plain;
        }()));
        QTRY_VERIFY(page.settled());
        QCOMPARE(plannedRank.load(), std::int64_t{64}); // as it would be chosen again
        choose(page, Method::Adapter);
        QCOMPARE(page.spec().rank, std::int64_t{64});
        type(page.findChild<QLineEdit*>("alpha"), {});
        QCOMPARE(page.spec().alpha, -1.0);
    }

    void anAdapterThatIsContinuedBringsItsSettings()
    {
        NewRunPage page(fakeServices(std::make_shared<FakeRun>()));
        RunSpec spec = goodSpec();
        spec.method = "lora";
        spec.rank = 32;
        page.setSpec(spec);
        auto* rank = page.findChild<QSpinBox*>("rank");

        page.findChild<PathEdit*>("adapterPath")->setPath("/adapters/notes");

        QVERIFY(!rank->isEnabled());
        QVERIFY(!page.findChild<QLineEdit*>("targets")->isEnabled());
        QCOMPARE(page.spec().adapterDir, std::string("/adapters/notes"));
        QCOMPARE(page.spec().rank, RunSpec().rank); // beside a folder another one is refused
        page.findChild<PathEdit*>("adapterPath")->setPath({});
        QVERIFY(rank->isEnabled());
        QCOMPARE(page.spec().rank, std::int64_t{32});
    }

    void aRunLikeAnOldOneKeepsItsAdapterUntilAnotherMethodIsChosen()
    {
        NewRunPage page(fakeServices(std::make_shared<FakeRun>()));
        RunSpec old = goodSpec();
        old.method = "lora";
        old.rank = 64;
        old.rankPattern = {{"down_proj", "8"}};
        old.adapterDir = "/adapters/notes";
        old.trainLayers = "1-2";

        page.setSpec(old);

        QCOMPARE(page.spec().rank, std::int64_t{64}); // recorded beside its folder
        QCOMPARE(page.spec().rankPattern, old.rankPattern);
        QCOMPARE(page.spec().trainLayers, std::string("1-2"));
        choose(page, Method::Everything);
        QVERIFY(!trainCommand(page.spec()).contains("rank"));
        QCOMPARE(page.spec().rankPattern.size(), std::size_t{0});
        QVERIFY(page.spec().adapterDir.empty() && page.spec().trainLayers.empty());
    }

    void layersMustBeNamed()
    {
        NewRunPage page(fakeServices(std::make_shared<FakeRun>()));
        QSignalSpy started(&page, &NewRunPage::startRequested);
        page.setSpec(goodSpec());
        QTRY_VERIFY(page.settled());
        QCOMPARE(page.method()->layers()->placeholderText(),
            QString("For example 18-21,head: the model has embedding, blocks 0 to 21 and head"));

        choose(page, Method::Layers);
        QTRY_VERIFY(page.settled());
        page.start();

        QCOMPARE(started.count(), 0);
        const QString sentence = "Name the layers to train, or choose to train everything.";
        QCOMPARE(page.startMessage()->text(), sentence);
        QVERIFY(!page.planPanel()->plan());             // that would be one of everything
        page.method()->layers()->setText("20-21,head"); // the line is not left
        page.start();
        QCOMPARE(page.startMessage()->text(),
            QString("The plan is still being made; try again in a moment."));
        QTRY_VERIFY(page.settled());
        QCOMPARE(page.spec().trainLayers, std::string("20-21,head"));
        QVERIFY(needOf(page, Method::Layers).startsWith("Fits: "));
        page.start();
        QCOMPARE(started.count(), 1);
    }

    void oneBlockAtATimeIsAChoiceWithItsTurns()
    {
        NewRunPage page(fakeServices(std::make_shared<FakeRun>()));
        RunSpec given = goodSpec();
        given.train = TrainOrder::Blocks;
        given.blockSteps = 35;
        given.trainLayers = "0-9"; // of the command line; the page does not show it

        page.setSpec(given);
        QTRY_VERIFY(page.settled());

        QVERIFY(page.method()->button(Method::Blocks)->isChecked());
        QCOMPARE(needOf(page, Method::Blocks),
            QString("Fits: 3.07 GiB of device memory, 2.65 GiB of host memory, 2.26 s a step"));
        QVERIFY(page.spec().train == TrainOrder::Blocks);
        QCOMPARE(page.spec().blockSteps, std::int64_t{35});
        QCOMPARE(page.spec().trainLayers, std::string("0-9"));
        QVERIFY(trainCommand(page.spec()).contains("--train blocks --block-steps 35"));
        choose(page, Method::Everything);
        QVERIFY(page.spec().train == TrainOrder::Together);
        QCOMPARE(page.spec().blockSteps, std::int64_t{0});
        QVERIFY(page.spec().trainLayers.empty());
    }

    void whatIsChosenByTheProgramIsThatOfTheMethod()
    {
        NewRunPage page(fakeServices(std::make_shared<FakeRun>()));
        const auto* rate = page.findChild<QLineEdit*>("learning_rate");
        const auto* decay = page.findChild<QLineEdit*>("weight_decay");
        page.setSpec(goodSpec());
        QCOMPARE(rate->placeholderText(), QString("Automatic (2e-5)"));
        QCOMPARE(decay->placeholderText(), QString("Automatic (0.01)"));

        choose(page, Method::Adapter);

        QCOMPARE(rate->placeholderText(), QString("Automatic (2e-4)"));
        QCOMPARE(decay->placeholderText(), QString("Automatic (0)"));
        QCOMPARE(page.spec().weightDecay, -1.0);
        RunSpec without = goodSpec();
        without.weightDecay = 0.0; // not the same as left open
        page.setSpec(without);
        QCOMPARE(decay->text(), QString("0"));
        QCOMPARE(page.spec().weightDecay, 0.0);
    }

    void theKeyboardGoesFromTopToBottomAndEveryEditorHasAName()
    {
        NewRunPage page(fakeServices(std::make_shared<FakeRun>()));
        RunSpec spec = goodSpec();
        spec.method = "lora";
        page.setSpec(spec);
        page.resize(900, 700);
        page.show();
        page.findChild<QToolButton*>("moreOfAdapter")->setChecked(true);
        QCoreApplication::processEvents();
        MethodSection& section = *page.method();
        QWidget* widget = section.button(Method::Adapter);
        widget->setFocus();

        QStringList names;
        for (int i = 0; i < 15; ++i) {
            names << page.focusWidget()->objectName();
            const bool isNamed = !page.focusWidget()->accessibleName().isEmpty() ||
                                 page.focusWidget()->inherits("QAbstractButton");
            QVERIFY2(isNamed, qPrintable(names.last()));
            QTest::keyClick(page.focusWidget(), Qt::Key_Tab);
        }

        names.removeAll(QString()); // the lines and buttons of a path
        QCOMPARE(names.mid(0, 13),
            QStringList({"method-lora", "rank", "alpha", "moreOfAdapter", "targets",
                "exclude_targets", "modules_to_save", "trainable_tokens", "adapter_layers",
                "rslora", "dora", "dropout", "lora_plus"}));
        widget->setFocus();
        QTest::keyClick(widget, Qt::Key_Down);
        QVERIFY(section.method() == Method::Nf4Adapter);
        QTest::keyClick(page.focusWidget(), Qt::Key_Down);
        QVERIFY(section.method() == Method::Layers);
    }

private:
    QTemporaryDir m_folder;
};

MR_TEST_WITH_WINDOWS(TestMethodSection)

} // namespace mr::test::tst_method_section

#include "tst_method_section.moc"
