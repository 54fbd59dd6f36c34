// The engine's headers come before those of Qt.
// clang-format off
#include "app/try_models.h"
#include "core/run/run_rig.h"
#include "support/test_room.h"
// clang-format on

#include <QtTest>

#include <chrono>

namespace mr::test::tst_try_models {

using namespace mr::app;
namespace fs = std::filesystem;

namespace {

Prompt somePrompt()
{
    Prompt prompt;
    prompt.text = "The miller counts";
    prompt.maxTokens = 8;
    prompt.temperature = 0.8;
    prompt.seed = 4;
    return prompt;
}

Answer asked(
    TryModels& models, const Folder& folder, const Prompt& prompt, const AnswerWatch& watch = {})
{
    Result<Answer> answer = models.answer(folder.path(), prompt, watch);
    if (!answer.ok())
        qFatal("%s", answer.status().message().c_str());
    return std::move(answer).value();
}

} // namespace

class TestTryModels : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void initTestCase()
    {
        writeSmallModel(m_first);
        fs::copy(m_first.path(), m_second.path(), fs::copy_options::recursive);
    }

    void theSamePromptAndSeedGiveTheSameAnswerEveryTime()
    {
        TryModels models;
        std::string pieces;
        Answer begun;
        AnswerWatch watch;
        watch.onRead = [&](const Answer& read) { begun = read; };
        watch.onText = [&](std::string_view piece) {
            pieces += piece;
            return true;
        };

        const Answer first = asked(models, m_first, somePrompt(), watch);
        const Answer other = asked(models, m_second, somePrompt());
        const Answer again = asked(models, m_first, somePrompt());
        models.release();
        const Answer loaded = asked(models, m_first, somePrompt());

        QCOMPARE(begun.read, std::string("The miller counts\n"));
        QVERIFY(!first.byTemplate);
        QCOMPARE(pieces, first.text);
        QVERIFY(first.tokens > 0);
        for (const Answer& answer : {other, again, loaded})
            QCOMPARE(answer.text, first.text);
        Prompt seeded = somePrompt();
        seeded.seed = 5;
        QVERIFY(asked(models, m_first, seeded).text != first.text);
    }

    void anAnswerStopsWhenItsWatcherSaysSo()
    {
        TryModels models;
        AnswerWatch watch;
        watch.onText = [](std::string_view) { return false; };

        const Answer answer = asked(models, m_first, somePrompt(), watch);

        QVERIFY(!answer.ended && answer.tokens < 8);
    }

    void weightsThatWereReplacedAreReadAgain()
    {
        TryModels models;
        const Answer before = asked(models, m_second, somePrompt());
        const ModelConfig config = readModelConfig(m_second.path()).value();
        const ParamTable table = buildParamTable(config);
        const Folder out;
        QVERIFY(saveModel(out.path(), config, table, *initialWeights(config, table, 99),
            ExportType::F32, m_second.path())
                    .ok());
        fs::copy_file(out.path("model.safetensors"), m_second.path("model.safetensors"),
            fs::copy_options::overwrite_existing);
        // A clock of its own, so that the test does not wait for the file system's to move on.
        fs::last_write_time(m_second.path("model.safetensors"),
            fs::file_time_type::clock::now() + std::chrono::hours(1));

        const Answer after = asked(models, m_second, somePrompt());

        QVERIFY(after.text != before.text);
    }

    void whatCannotBeAskedSaysWhy()
    {
        TryModels models;
        Prompt tooLong = somePrompt();
        tooLong.text = std::string(900, 'x');

        QVERIFY(
            contains(models.answer(m_first.path("nowhere"), somePrompt(), {}).status().message(),
                "nowhere"));
        QVERIFY(
            contains(models.answer(m_first.path(), tooLong, {}).status().message(), "room for"));
        QVERIFY(models.answer(m_first.path(), somePrompt(), {}).ok()); // and goes on
    }

private:
    Folder m_first;
    Folder m_second;
};

MR_TEST(TestTryModels)

} // namespace mr::test::tst_try_models

#include "tst_try_models.moc"
