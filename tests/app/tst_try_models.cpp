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

    void aModelAndItsAdaptersShareTheModel()
    {
        RunRig rig;
        const auto device = smallDevice();
        RunSpec spec = rig.spec("one");
        spec.method = "lora";
        spec.rank = 4;
        spec.learningRate = 3e-2;
        const Outcome one = rig.train(spec, *device);
        spec.outDir = rig.folder.path("two");
        spec.seed = 9;
        const Outcome two = rig.train(spec, *device);
        QVERIFY2(one.ended.ok() && two.ended.ok(), two.ended.message().c_str());
        TryModels alone;
        const auto text = [&](TryModels& models, const std::string& path) {
            const auto answer = models.answer(path, somePrompt(), {});
            return answer.ok() ? Result(answer).value().text : answer.status().message();
        };
        std::vector<std::string> places = {
            rig.model.path(), one.dir.string(), two.dir.string(), rig.model.path()};
        std::vector<std::string> wanted;
        for (const std::string& place : places) {
            wanted.push_back(text(alone, place));
            alone.release();
        }
        QVERIFY(wanted[0] != wanted[1] && wanted[1] != wanted[2]);

        TryModels shared;
        QCOMPARE(text(shared, places[1]), wanted[1]);
        // Only adapters are read from here on.
        fs::rename(rig.model.path("model.safetensors"), rig.model.path("away.safetensors"));
        const auto now = fs::last_write_time(rig.model.path("away.safetensors"));
        for (const auto& entry : fs::directory_iterator(rig.model.path()))
            fs::last_write_time(entry.path(), now);
        for (const std::size_t i : {0U, 2U, 1U, 3U})
            QCOMPARE(text(shared, places[i]), wanted[i]);
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
